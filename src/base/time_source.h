/* SPDX-License-Identifier: MIT */
/* Where a runtime's time comes from: steps, timers and the poller's deadlines all ask it, so that
 * tests and simulations can put a clock of their own in its place. What concerns the threads
 * themselves (a step that is stuck, a stop that waits) is measured by base/monotonic.h. */
#ifndef SKUA_BASE_TIME_SOURCE_H
#define SKUA_BASE_TIME_SOURCE_H

#include "base/monotonic.h"

struct time_source {
    uint64_t (*now)(struct time_source *source); /* nanoseconds; never goes back */
};

static inline uint64_t time_now(struct time_source *source)
{
    return source->now(source);
}

#endif
