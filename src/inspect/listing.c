/* SPDX-License-Identifier: MIT */
#include "inspect/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "inspect/budget.h"
#include "sched/process_info.h"

/* A listing is reused for this many times as long as it took to make. */
#define KEPT_FACTOR 100
/* Processes read at a time. */
#define CHUNK 64

uint64_t listing_value(const skua_process_snapshot *info, enum listing_order order)
{
    switch (order) {
    case BY_MAILBOX:
        return info->mailbox_length;
    case BY_STEPS:
        return info->steps;
    case BY_RUN:
        return info->run_ns;
    case BY_AGE:
        return info->age_ns;
    case LISTING_ORDERS:
        break;
    }
    return 0;
}

/* The entries are a min-heap: the first is the smallest, which a larger one replaces. */
static void sink(struct listing_entry *heap, uint32_t count, struct listing_entry entry)
{
    uint32_t place = 0;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && heap[child + 1].value < heap[child].value) {
            child++;
        }
        if (entry.value <= heap[child].value) {
            break;
        }
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = entry;
}

static void rise(struct listing_entry *heap, uint32_t place, struct listing_entry entry)
{
    while (place > 0 && entry.value < heap[(place - 1) / 2].value) {
        heap[place] = heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap[place] = entry;
}

static void offer(struct listing *listing, enum listing_order order,
                  const skua_process_snapshot *info)
{
    struct listing_entry *heap = listing->entries[order];
    const struct listing_entry entry = {listing_value(info, order), info->pid};
    if (listing->counts[order] < LISTING_MAX) {
        rise(heap, listing->counts[order]++, entry);
    } else if (entry.value > heap[0].value) {
        sink(heap, LISTING_MAX, entry);
    }
}

static void read_all(struct listing *listing, struct scheduler *sched)
{
    skua_process_snapshot infos[CHUNK];
    skua_pid after = {0};
    uint32_t count;
    memset(listing->counts, 0, sizeof listing->counts);
    do {
        count = process_info_list(sched, after, infos, CHUNK);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
                offer(listing, (enum listing_order)order, &infos[i]);
            }
        }
        after = count > 0 ? infos[count - 1].pid : after;
    } while (count == CHUNK);
}

static int larger_first(const void *a, const void *b)
{
    const struct listing_entry *left = a;
    const struct listing_entry *right = b;
    if (left->value != right->value) {
        return left->value > right->value ? -1 : 1;
    }
    /* Ties are broken by PID, so that equal ones keep their places from one listing to the next. */
    return (left->pid.bits > right->pid.bits) - (left->pid.bits < right->pid.bits);
}

void listing_renew(struct listing *listing, struct scheduler *sched)
{
    const uint64_t now = monotonic_ns();
    if (listing->made != 0 && now - listing->made < KEPT_FACTOR * listing->cost) {
        return;
    }
    const uint64_t used = budget_thread_ns();
    read_all(listing, sched);
    for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
        qsort(listing->entries[order], listing->counts[order], sizeof listing->entries[order][0],
              larger_first);
    }
    listing->made = now;
    listing->cost = budget_thread_ns() - used;
}

uint32_t listing_read(struct listing *listing, struct scheduler *sched, enum listing_order order)
{
    /* Skips those that have exited since; the others may have overtaken each other. Each is read
     * once: what is shown is what was sorted by, while ages and run times go on. */
    uint32_t count = 0;
    for (uint32_t i = 0; i < listing->counts[order]; i++) {
        struct listing_row *row = &listing->rows[count];
        if (process_info_read(sched, listing->entries[order][i].pid, &row->info) == 0) {
            row->entry = (struct listing_entry){listing_value(&row->info, order), row->info.pid};
            count++;
        }
    }
    /* The entry is the first in its row, as larger_first wants it. */
    qsort(listing->rows, count, sizeof listing->rows[0], larger_first);
    return count;
}
