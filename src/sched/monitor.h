/* SPDX-License-Identifier: MIT */
/* The monitor: one thread that looks at the workers from outside, because a worker that is stuck
 * cannot look at itself (G9). While any worker is busy it looks every quarter of the stall limit,
 * or every 2.5 ms if that is shorter:
 *  - a worker that is in the same step since a look at least the limit ago is stuck: what waits in
 *    its next slot is taken out, a spare worker steps in, the program is told;
 *  - a worker that blocks and has no spare yet gets one;
 *  - timers that are overdue are fired, and the descriptors looked at, if nobody else has done so
 *    for a while, which can only be because all workers are in long steps.
 * When no worker runs processes it looks less and less often, then not at all, until one does. (One
 * that blocks and is covered does not count as running.)
 *
 * It cannot sleep through a stuck step: it sets `asleep` and then looks whether a worker is busy;
 * a worker that becomes busy says so in `running` or `absence` and then looks at `asleep`. All
 * seq_cst (MO-monitor), so one of the two sees the other. */
#ifndef SKUA_SCHED_MONITOR_H
#define SKUA_SCHED_MONITOR_H

#include "sched/scheduler.h"

/* Starts its thread; returns 0 or SKUA_E_THREAD. */
NODISCARD int monitor_start(struct scheduler *sched);

/* Ends it. */
void monitor_stop(struct scheduler *sched);

void monitor_wake(struct scheduler *sched);

/* Called by a worker that was idle or blocked and is busy from now on. */
static inline void monitor_notice(struct scheduler *sched)
{
    if (UNLIKELY(load_seq_cst(&sched->monitor.asleep) != 0)) { /* MO-monitor */
        monitor_wake(sched);
    }
}

#endif
