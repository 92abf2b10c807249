/* SPDX-License-Identifier: MIT */
/* Open calls whose time comes (dispatch/deadlines.h), and the processes that wait for them. */
#ifndef SKUA_SCHED_TIMERS_H
#define SKUA_SCHED_TIMERS_H

#include "sched/scheduler.h"

/* When a call is to end, as of `now`: with `error`, or, if `period` is not zero, with a tick. */
struct timing {
    uint64_t now;
    uint64_t when;
    uint64_t period;
    int error;
};

/* Arms an open call in the worker's wheel, unless its time never comes. */
void timers_arm(struct worker *worker, uint32_t call, const struct timing *timing);

/* The same for a call that was armed on this worker and that only its timer can end. */
void timers_move(struct worker *worker, uint32_t call, uint64_t when, int error);

/* Opens a ticker again whose tick has been taken from the mailbox, for the next tick. */
void timers_tick_again(struct worker *worker, uint32_t call, uint64_t last, uint64_t period);

/* Ends calls of one wheel, or of all wheels, that are due, and wakes their processes. A portion at
 * a time: while timers_next is not after `now`, there may be more. `worker` is the caller's or
 * null. */
void timers_fire(struct scheduler *sched, struct worker *worker, uint32_t wheel, uint64_t now);
void timers_fire_all(struct scheduler *sched, struct worker *worker, uint64_t now);

/* When the first timer of any wheel is due; UINT64_MAX if there is none. */
uint64_t timers_next(struct scheduler *sched);

#endif
