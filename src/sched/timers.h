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

/* Delivers a tick of the worker's process: it is copied, and its node becomes the open call of the
 * next tick; unless the ticker was cancelled meanwhile, in which case this is its completion. */
void timers_take_tick(struct worker *worker, struct process *process, uint32_t index,
                      skua_event *event);

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
