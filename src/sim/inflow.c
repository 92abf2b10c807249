/* SPDX-License-Identifier: MIT */
/* The bytes on their way to an endpoint, or waiting there to be read: a list of segments. */
#include <stdalign.h>
#include <string.h>

#include "sim/sim.h"

struct segment *inflow_new_segment(struct network *network, const struct iovec *pieces, size_t size)
{
    struct segment *segment =
        allocator_alloc(&network->sim->allocator, sizeof *segment + size, alignof(struct segment));
    if (segment == NULL) {
        return NULL;
    }
    *segment = (struct segment){.size = size};
    for (size_t done = 0; done < size; pieces++) {
        const size_t part = pieces->iov_len < size - done ? pieces->iov_len : size - done;
        if (part > 0) {
            memcpy(segment->bytes + done, pieces->iov_base, part);
        }
        done += part;
    }
    return segment;
}

void inflow_free_segment(struct network *network, struct segment *segment)
{
    allocator_free(&network->sim->allocator, segment, sizeof *segment + segment->size,
                   alignof(struct segment));
}

void inflow_append(struct inflow *in, struct segment *segment)
{
    if (in->last != NULL) {
        in->last->next = segment;
    } else {
        in->first = segment;
    }
    in->last = segment;
    if (in->in_flight == NULL) {
        in->in_flight = segment;
    }
}

static void remove_first(struct network *network, struct inflow *in)
{
    struct segment *first = in->first;
    in->first = first->next;
    if (in->first == NULL) {
        in->last = NULL;
    }
    inflow_free_segment(network, first);
}

void inflow_drop_arrived(struct network *network, struct inflow *in)
{
    while (in->first != in->in_flight) {
        in->dropped += in->first->size - in->first->taken;
        remove_first(network, in);
    }
    in->arrived = 0;
}

void inflow_drop_in_flight(struct network *network, struct inflow *in)
{
    struct segment *last = NULL; /* that has arrived */
    for (struct segment *at = in->first; at != in->in_flight; at = at->next) {
        last = at;
    }
    struct segment *at = in->in_flight;
    while (at != NULL) {
        struct segment *next = at->next;
        in->dropped += at->size;
        inflow_free_segment(network, at);
        at = next;
    }
    if (last != NULL) {
        last->next = NULL;
    } else {
        in->first = NULL;
    }
    in->last = last;
    in->in_flight = NULL;
}

void inflow_take(struct network *network, struct inflow *in, unsigned char *data, size_t size)
{
    in->arrived -= size;
    in->read += size;
    while (size > 0) {
        struct segment *first = in->first;
        const size_t left = first->size - first->taken;
        const size_t part = size < left ? size : left;
        memcpy(data, first->bytes + first->taken, part);
        first->taken += part;
        data += part;
        size -= part;
        if (first->taken == first->size) {
            remove_first(network, in);
        }
    }
}

uint64_t inflow_held(const struct inflow *in)
{
    uint64_t held = 0;
    for (const struct segment *at = in->first; at != NULL; at = at->next) {
        held += at->size - at->taken;
    }
    return held;
}
