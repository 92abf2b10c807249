/* SPDX-License-Identifier: MIT */
#include "inspect/listing.h"

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

bool listing_is_recent(uint64_t made, uint64_t cost, uint64_t now)
{
    return made != 0 && now - made < KEPT_FACTOR * cost;
}

static void read_all(struct listing *listing, struct scheduler *sched)
{
    skua_process_snapshot infos[CHUNK];
    skua_pid after = {0};
    uint32_t count;
    for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
        listing->orders[order].count = 0;
    }
    do {
        count = process_info_list(sched, after, infos, CHUNK);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
                largest_offer(&listing->orders[order],
                              listing_value(&infos[i], (enum listing_order)order),
                              infos[i].pid.bits);
            }
        }
        after = count > 0 ? infos[count - 1].pid : after;
    } while (count == CHUNK);
}

void listing_renew(struct listing *listing, struct scheduler *sched)
{
    const uint64_t now = monotonic_ns();
    if (listing_is_recent(listing->made, listing->cost, now)) {
        return;
    }
    const uint64_t used = budget_thread_ns();
    read_all(listing, sched);
    for (uint32_t order = 0; order < LISTING_ORDERS; order++) {
        largest_sort(&listing->orders[order]);
    }
    listing->made = now;
    listing->cost = budget_thread_ns() - used;
}

uint32_t listing_read(struct listing *listing, struct scheduler *sched, enum listing_order order)
{
    /* Skips those that have exited since; the others may have overtaken each other. Each is read
     * once: what is shown is what was sorted by, while ages and run times go on. */
    const struct largest *largest = &listing->orders[order];
    uint32_t count = 0;
    for (uint32_t i = 0; i < largest->count; i++) {
        struct listing_row *row = &listing->rows[count];
        if (process_info_read(sched, (skua_pid){largest->entries[i].key}, &row->info) == 0) {
            row->entry =
                (struct largest_entry){listing_value(&row->info, order), largest->entries[i].key};
            count++;
        }
    }
    largest_sort_rows(listing->rows, count, sizeof listing->rows[0]);
    return count;
}
