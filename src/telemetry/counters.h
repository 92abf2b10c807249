/* SPDX-License-Identifier: MIT */
/* Counters. Each worker has a set that it alone writes, so counting is a plain addition; threads
 * that are not workers share one set and add atomically. All relaxed: they order nothing. */
#ifndef SKUA_TELEMETRY_COUNTERS_H
#define SKUA_TELEMETRY_COUNTERS_H

#include <skua/stats.h>

#include "base/atomic.h"

#define COUNTER(name) atomic_u64 name;
struct counters {
    SKUA_STATS_MAP(COUNTER)
};
#undef COUNTER

/* For the one thread that writes this set. */
static inline void counter_add_owner(atomic_u64 *counter, uint64_t amount)
{
    store_relaxed(counter, load_relaxed(counter) + amount); /* statistic; one writer */
}

static inline void counter_add_any(atomic_u64 *counter, uint64_t amount)
{
    (void)fetch_add_relaxed(counter, amount); /* statistic */
}

/* Reads one set. `live` belongs to no set and becomes 0. */
void counters_read(struct counters *counters, skua_stats *out);

#endif
