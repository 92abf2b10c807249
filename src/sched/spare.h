/* SPDX-License-Identifier: MIT */
/* Spare workers: they stand in for workers that are stuck or blocked in a step (G1).
 *
 * A step cannot be interrupted, and its worker's deque cannot be handed to another thread while the
 * step may push to it. So nothing is taken over. Others can already reach everything an absent
 * worker holds: thieves its deque and, late in their search, its next slot; the holder of the
 * poller's role its timers. A spare worker with its own deque makes up for the lost thread.
 *
 * `absence` of a worker: {blocks, covered}. The worker sets `blocks` in skua_blocking_begin; the
 * worker or the monitor sets `covered` once a spare has stepped in. A worker that returns clears
 * both, and if it was covered there is now one worker too many: `surplus` + 1. A spare that sees a
 * surplus between two picks takes it, leaves its work to the others and rests; a spare that is
 * asleep at the time does so after the pick for which it is next woken. The next absence uses up
 * the surplus first, so that short absences wake nobody.
 *
 * INV-18: surplus + covered absences = spare workers that do not rest. Each of the three changes
 * together with one of the others, by one atomic operation each: if the monitor covers a worker
 * that returns at that moment, its compare-exchange fails and it adds to the surplus. */
#ifndef SKUA_SCHED_SPARE_H
#define SKUA_SCHED_SPARE_H

#include "sched/scheduler.h"

#define ABSENCE_BLOCKS  UINT32_C(1)
#define ABSENCE_COVERED UINT32_C(2)

/* The worker's own step begins to block, and ends it. */
void spare_begin_block(struct worker *worker);
void spare_end_block(struct worker *worker);

/* For the monitor: brings in a spare for a worker whose `absence` was `seen`, not covered. */
void spare_cover(struct scheduler *sched, struct worker *absent, uint32_t seen);

/* After a pick: clears the worker's absence, if it was thought absent. */
static inline void spare_return(struct worker *worker)
{
    if (UNLIKELY(load_relaxed(&worker->absence) != 0)) { /* re-checked by the exchange */
        spare_end_block(worker);
    }
}

/* Between two picks of a spare worker: rests if there is a surplus. */
void spare_rest_if_surplus(struct worker *worker);

/* Wakes all resting spares so that they exit; `exiting` is set. */
void spare_wake_resting(struct scheduler *sched);

#endif
