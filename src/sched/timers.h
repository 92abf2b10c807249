/* SPDX-License-Identifier: MIT */
/* Timers: arming open calls, and ending those that are due (dispatch/deadlines.h). */
#ifndef SKUA_SCHED_TIMERS_H
#define SKUA_SCHED_TIMERS_H

#include "sched/scheduler.h"

/* When a call is to end, as of `now`: with `error`, because that was its timeout; or with a tick,
 * if `period` is not zero; or with success. */
struct timing {
    uint64_t now;
    uint64_t when;
    uint64_t period;
    int error;
    bool is_unlikely;             /* to come to that */
    const skua_handler *listener; /* of a timeout: see process/event.h */
};

/* Arms an open call in the worker's wheel, unless it is never due. */
void timers_arm(struct worker *worker, uint32_t call, const struct timing *timing);

/* Re-arms a ticker whose tick is being delivered. */
void timers_tick_again(struct worker *worker, uint32_t call, uint64_t last, uint64_t period);

/* Ends the due calls of one wheel, or of all wheels, and wakes their processes. Works in batches:
 * while timers_next is not after `now`, there may be more. `worker` is the caller's or null. */
void timers_fire(struct scheduler *sched, struct worker *worker, uint32_t wheel, uint64_t now);
void timers_fire_all(struct scheduler *sched, struct worker *worker, uint64_t now);

/* Makes timers_next later, if timers of this worker's wheel that have ended are the reason why it
 * is not. */
void timers_correct_next(struct worker *worker);

/* When the first timer of any wheel is due; UINT64_MAX if there is none. */
uint64_t timers_next(struct scheduler *sched);

#endif
