/* SPDX-License-Identifier: MIT */
/* Counters. Each worker has a set that it alone writes, so counting is a plain addition; threads
 * that are not workers share one set and add atomically. All relaxed: they order nothing. */
#ifndef SKUA_SCHED_STATS_H
#define SKUA_SCHED_STATS_H

#include <skua/stats.h>

#include "base/atomic.h"

#define STATS_COUNTER(name) atomic_u64 name;
struct stats {
    SKUA_STATS_MAP(STATS_COUNTER)
};
#undef STATS_COUNTER

/* For the one thread that writes this set. */
static inline void stats_add_owner(atomic_u64 *counter, uint64_t amount)
{
    store_relaxed(counter, load_relaxed(counter) + amount); /* statistic; one writer */
}

static inline void stats_add_any(atomic_u64 *counter, uint64_t amount)
{
    (void)fetch_add_relaxed(counter, amount); /* statistic */
}

/* Counts on a worker's set or, where `worker` is null, on that of the outside. */
#define STATS_COUNT(sched, worker, name)                                                           \
    ((worker) != NULL ? stats_add_owner(&(worker)->stats.name, 1)                                  \
                      : stats_add_any(&(sched)->outside.stats.name, 1))

struct scheduler;

/* Reads one set, or the sum of all. */
void stats_read(struct stats *stats, skua_stats *out);
void stats_read_total(struct scheduler *sched, skua_stats *out);

/* How many workers have a set: all but the spare ones that have never been started. */
uint32_t stats_worker_count(struct scheduler *sched);

/* Processes alive: exact once the workers are quiet, never negative. */
uint64_t stats_live(struct scheduler *sched);

#endif
