/* SPDX-License-Identifier: MIT */
/* The largest processes by mailbox, steps, run time or age, out of however many there are. Finding
 * them means reading every process, which takes a tenth of a second for a million. So a listing is
 * reused for a hundred times as long as it took to make, which bounds the cost to one percent of
 * one CPU. Memory is fixed: one heap per order. */
#ifndef SKUA_INSPECT_LISTING_H
#define SKUA_INSPECT_LISTING_H

#include "inspect/largest.h"
#include "sched/scheduler.h"

enum listing_order { BY_MAILBOX, BY_STEPS, BY_RUN, BY_AGE, LISTING_ORDERS };

/* An entry with the process as it was read last. */
struct listing_row {
    struct largest_entry entry; /* first; its key is the PID */
    skua_process_snapshot info;
};

struct listing {
    struct largest orders[LISTING_ORDERS];
    uint64_t made; /* when; 0: never */
    uint64_t cost; /* in CPU time: the program may have been suspended meanwhile */
    struct listing_row rows[LISTING_MAX]; /* for listing_read; too much for a stack */
};

/* The number that an order sorts by. */
uint64_t listing_value(const skua_process_snapshot *info, enum listing_order order);

/* Whether one that was made then (0: never), at this cost, is good enough. */
bool listing_is_recent(uint64_t made, uint64_t cost, uint64_t now);

/* Makes the listing anew, unless it is recent. */
void listing_renew(struct listing *listing, struct scheduler *sched);

/* Reads the processes of an order into `rows`, largest first, as they are now. Returns how many. */
uint32_t listing_read(struct listing *listing, struct scheduler *sched, enum listing_order order);

#endif
