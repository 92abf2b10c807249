/* SPDX-License-Identifier: MIT */
/* The clock of a runtime: steps, timers and the poller's deadlines all read it, so that tests and
 * simulations can put their own clock in its place. Time that concerns the threads themselves (a
 * stuck step, a stop that waits) comes from base/monotonic.h. */
#ifndef SKUA_BASE_TIME_SOURCE_H
#define SKUA_BASE_TIME_SOURCE_H

#include <stdbool.h>

#include "base/monotonic.h"

struct time_source {
    uint64_t (*now)(struct time_source *source); /* nanoseconds; never goes back */
    bool is_monotonic; /* it is base/monotonic.h, so base/cheap_clock.h may stand in for it */
};

static inline uint64_t time_now(struct time_source *source)
{
    return source->now(source);
}

#endif
