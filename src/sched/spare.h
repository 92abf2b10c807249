/* SPDX-License-Identifier: MIT */
/* Spare workers: they step in for those that are stuck in a step or blocked in one (G1).
 *
 * A step cannot be interrupted, and its worker's deque cannot be given to another thread while it
 * may be pushing to it. So nothing is taken over. All that a worker holds can be reached by others
 * as it is: the deque and, late, the next slot by thieves; timers by whoever has the poller's role;
 * and a spare worker with a deque of its own makes up for the one that is absent.
 *
 * `absence` of a worker: {blocks, covered}. The worker sets `blocks` in skua_blocking_begin; the
 * worker or the monitor set `covered` once a spare has stepped in. When the worker is back it takes
 * both off, and if it was covered there is now one worker too many: `surplus` + 1. A spare that
 * sees a surplus between two picks takes it off, leaves what it holds to the others, and rests; one
 * that sleeps meanwhile does so after the pick for which it is woken.
 * The next absence first uses up the surplus, so that short ones wake nobody.
 *
 * INV-18: surplus + covered absences = spare workers that do not rest. Each of the three changes
 * goes together with one of the others, and each is one atomic operation: if the monitor covers a
 * worker that comes back at that moment, its compare-exchange fails and it adds the surplus. */
#ifndef SKUA_SCHED_SPARE_H
#define SKUA_SCHED_SPARE_H

#include "sched/scheduler.h"

#define ABSENCE_BLOCKS  UINT32_C(1)
#define ABSENCE_COVERED UINT32_C(2)

/* Says that the worker's own step blocks, and that it does not any more. */
void spare_begin_block(struct worker *worker);
void spare_end_block(struct worker *worker);

/* For the monitor: makes up for a worker whose `absence` was `seen`, not covered. */
void spare_cover(struct scheduler *sched, struct worker *absent, uint32_t seen);

/* After a pick: the worker is back, if anybody thought it was not. */
static inline void spare_return(struct worker *worker)
{
    if (UNLIKELY(load_relaxed(&worker->absence) != 0)) { /* re-checked by the exchange */
        spare_end_block(worker);
    }
}

/* Between two picks of a spare worker: rests if there is a surplus. */
void spare_rest_if_surplus(struct worker *worker);

/* Wakes all that rest, so that they exit; `exiting` is set. */
void spare_wake_resting(struct scheduler *sched);

#endif
