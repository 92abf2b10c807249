/* SPDX-License-Identifier: MIT */
/* The largest processes by mailbox, steps, run time or age, out of however many there are. Finding
 * them means reading every process, which takes a tenth of a second for a million. So a listing is
 * reused for a hundred times as long as it took to make, which bounds the cost to one percent of
 * one CPU. Memory is fixed: one heap per order. */
#ifndef SKUA_INSPECT_LISTING_H
#define SKUA_INSPECT_LISTING_H

#include "sched/scheduler.h"

/* Rows of a page, and of a listing. */
#define LISTING_MAX 256

enum listing_order { BY_MAILBOX, BY_STEPS, BY_RUN, BY_AGE, LISTING_ORDERS };

struct listing_entry {
    uint64_t value;
    skua_pid pid;
};

/* An entry with the process as it was read last. */
struct listing_row {
    struct listing_entry entry;
    skua_process_snapshot info;
};

struct listing {
    struct listing_entry entries[LISTING_ORDERS][LISTING_MAX];
    uint32_t counts[LISTING_ORDERS];
    uint64_t made; /* when; 0: never */
    uint64_t cost; /* in CPU time: the program may have been suspended meanwhile */
    struct listing_row rows[LISTING_MAX]; /* for listing_read; too much for a stack */
};

/* The number that an order sorts by. */
uint64_t listing_value(const skua_process_snapshot *info, enum listing_order order);

/* Makes the listing anew, unless it is recent. */
void listing_renew(struct listing *listing, struct scheduler *sched);

/* Reads the processes of an order into `rows`, largest first, as they are now. Returns how many. */
uint32_t listing_read(struct listing *listing, struct scheduler *sched, enum listing_order order);

#endif
