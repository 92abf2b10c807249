/* SPDX-License-Identifier: MIT */
/* Open calls that end at an instant: timers, and commands with a deadline.
 *
 * Each worker has a wheel, with its own lock because other threads reach into it, too: for a
 * completion that comes before the deadline, or to fire the timers of a stuck worker. The wheel
 * links the call's own node, so arming needs no memory and cannot fail.
 *
 * The guard of a call (dispatch/call.h) decides who ends it, here as everywhere (INV-14):
 *  - deadlines_collect_any takes a due call out of the wheel and claims it, both under the wheel's
 *    lock. If somebody else has claimed it first, it is left to them;
 *  - whoever else claims a call that has a deadline then calls deadlines_disarm_any, before the
 *    node is used for anything else: it takes the lock and finds the call in the wheel, or already
 *    taken out.
 * So a call that is in a wheel is always this call, not a later one on the same node, and under the
 * lock an open guard means that it is in the wheel.
 *
 * `next` says, without the lock, when a wheel is next due. seq_cst MO-timer: it is one of the
 * sources of work of the parking protocol (sched/poll.h). */
#ifndef SKUA_DISPATCH_DEADLINES_H
#define SKUA_DISPATCH_DEADLINES_H

#include "concurrent/wheel.h"
#include "process/event.h"

struct deadline_wheel {
    CACHE_ALIGNED atomic_u64 next; /* WHEEL_NEVER if the wheel is empty; written under lock */
    CACHE_ALIGNED pthread_mutex_t lock;
    struct wheel wheel; /* under lock */
};

struct deadlines {
    const struct allocator *allocator;
    struct object_pool *events;
    struct deadline_wheel *wheels; /* one per worker */
    uint32_t count;
};

NODISCARD bool deadlines_init(struct deadlines *deadlines, const struct allocator *allocator,
                              struct object_pool *events, uint32_t wheel_count);
void deadlines_deinit(struct deadlines *deadlines);

/* Arms an open call, to end at `when` with the error that its node has; `past` is an instant that
 * has passed. Returns true if nothing else in that wheel is as early: the caller must then publish
 * it to sleeping workers (sched/timers.h). */
NODISCARD bool deadlines_arm_any(struct deadlines *deadlines, uint32_t wheel, uint32_t call,
                                 uint64_t when, uint64_t past);

/* Takes a call that the caller has claimed out of its wheel, if it is still in there. */
void deadlines_disarm_any(struct deadlines *deadlines, uint32_t call);

/* Claims calls of one wheel that are due, up to `most`; the caller must complete them. There may be
 * more as long as deadlines_next is not after `now`. They come in order of time, unless so many are
 * due that the first are late by a millisecond: then each call brings some of the latest, too, or a
 * process whose timer is due a moment after a million others would wait for all of them. */
NODISCARD uint32_t deadlines_collect_any(struct deadlines *deadlines, uint32_t wheel, uint64_t now,
                                         struct wheel_due *due, uint32_t most);

/* When a wheel, or the earliest of the first `count` wheels, is next due. */
static inline uint64_t deadlines_next(struct deadlines *deadlines, uint32_t wheel)
{
    return load_seq_cst(&deadlines->wheels[wheel].next); /* MO-timer */
}

uint64_t deadlines_next_of_all(struct deadlines *deadlines, uint32_t count);

#endif
