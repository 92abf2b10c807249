/* SPDX-License-Identifier: MIT */
#include "process/step_output.h"

#include <skua/error.h>
#include <stdalign.h>

/* The initial capacity; it doubles when full and stays for later steps of the worker. */
#define YIELDS_FIRST 16

/* Yields from the reserve have their places behind the others: they are for steps that have no
 * memory for one yield more. */
static size_t array_size(uint32_t capacity)
{
    return capacity == 0 ? 0 : (capacity + STEP_RESERVE) * sizeof(struct yield);
}

static bool grow(struct step_output *out, uint32_t capacity)
{
    struct yield *yields =
        allocator_grow(out->allocator, out->yields, array_size(out->yield_capacity),
                       array_size(capacity), alignof(struct yield));
    if (yields == NULL) {
        return false;
    }
    out->yields = yields;
    out->yield_capacity = capacity;
    return true;
}

bool step_output_init(struct step_output *out)
{
    return grow(out, YIELDS_FIRST);
}

void step_output_deinit(struct step_output *out)
{
    allocator_free(out->allocator, out->yields, array_size(out->yield_capacity),
                   alignof(struct yield));
}

int step_output_refuse(struct step_output *out)
{
    if (out->status == STEP_DONE) {
        return SKUA_E_DONE;
    }
    return grow(out, 2 * out->yield_capacity) ? 0 : SKUA_E_NO_MEMORY;
}

int step_output_yield_reserved(struct step_output *out, uint64_t tag, uint32_t command,
                               struct yield **yield)
{
    const int error = step_output_add(out, tag, command, yield);
    if (LIKELY(error != SKUA_E_NO_MEMORY) || out->reserve_count == 0 ||
        out->yield_count == out->yield_capacity + STEP_RESERVE) {
        return error;
    }
    *yield = step_output_append(out, tag, command, out->reserve[--out->reserve_count]);
    return 0;
}

int step_output_cancel(struct step_output *out, uint64_t tag)
{
    const int error = step_output_has_room(out) ? 0 : step_output_refuse(out);
    if (error == 0) {
        out->yields[out->yield_count++] = (struct yield){.node = OBJECT_NONE, .cancels = tag};
    }
    return error;
}

void step_output_fill_reserve(struct step_output *out)
{
    while (out->reserve_count < STEP_RESERVE &&
           event_acquire_owner(out->events, out->event_cache, &out->reserve[out->reserve_count])) {
        out->reserve_count++;
    }
}

void step_output_drain_reserve(struct step_output *out)
{
    while (out->reserve_count > 0) {
        event_release_owner(out->events, out->event_cache, out->reserve[--out->reserve_count]);
    }
}
