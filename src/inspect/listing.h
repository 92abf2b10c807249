/* SPDX-License-Identifier: MIT */
/* The processes that are largest in some respect, out of however many there are. Finding them means
 * looking at every process, which takes a tenth of a second for a million. So what was found is
 * used again for a hundred times as long as it took: looking costs one percent of one CPU at most.
 * The memory is fixed: for each order a heap of those that are ahead so far. */
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

struct listing {
    struct listing_entry entries[LISTING_ORDERS][LISTING_MAX];
    uint32_t counts[LISTING_ORDERS];
    uint64_t made; /* when; 0: never */
    uint64_t cost; /* how much CPU time it took: the program may have been stopped meanwhile */
};

/* Which of the numbers of a process an order is about. */
uint64_t listing_value(const skua_process_info *info, enum listing_order order);

/* Looks at all processes, unless that was done a short while ago. */
void listing_renew(struct listing *listing, struct scheduler *sched);

/* The first of an order, largest first, as they are now. Returns how many, at most `most`. */
uint32_t listing_read(const struct listing *listing, struct scheduler *sched,
                      enum listing_order order, skua_process_info *infos, uint32_t most);

#endif
