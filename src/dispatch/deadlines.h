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
 * lock an open guard means that it is in the wheel, or beside it.
 *
 * `next` says, without the lock, when a wheel is next due. seq_cst MO-timer: it is one of the
 * sources of work of the parking protocol (sched/poll.h).
 *
 * A call with a long timeout hardly ever comes to its deadline. So it is spared the wheel and its
 * lock: its worker puts it into a *place beside* the wheel, and whoever claims it takes it out
 * again, each by one atomic operation. With the lock, anybody may take in what lies there, which
 * moves it to the wheel: the owner does when the place that comes next is still in use, whoever
 * collects what is due does, and whoever makes `next` later, because
 *
 * INV-15: nothing that is in a wheel or beside it is due before its `next`.
 *
 *   who puts a call there                       who makes `next` later, with the lock
 *   A1 exchange the place                       B1 exchange `next`: it is in question
 *   A2 load `next`: if it is in question, or    B2 look at each place, take in what is there
 *      later than this call, take the lock      B3 exchange `next`
 *      and make it earlier
 *
 * If B2 finds the call, B3 accounts for it. If not, B2 looked before A1 in the order of all seq_cst
 * operations (MO-beside), so B1 came before A2, which sees that `next` is in question, or what it
 * is afterwards.
 *
 * Whoever claims a call tries to exchange it for nothing in its place. If it is not there, somebody
 * has taken it in and holds the lock until it is in the wheel; so it is found with the lock, as if
 * it had always been there. The place may have another call by then, but never this one again.
 *
 * Taking a call out leaves `next` as it is: too early, which costs a look for nothing. A worker
 * corrects that of its own wheel before it sleeps (deadlines_correct_any). */
#ifndef SKUA_DISPATCH_DEADLINES_H
#define SKUA_DISPATCH_DEADLINES_H

#include "concurrent/wheel.h"
#include "process/event.h"

/* Places beside a wheel (fewer in models). */
#ifndef DEADLINE_PLACES
#define DEADLINE_PLACES 16u
#endif

struct deadline_wheel {
    CACHE_ALIGNED atomic_u64 next; /* WHEEL_NEVER if there is nothing; written under lock */
    CACHE_ALIGNED pthread_mutex_t lock;
    struct wheel wheel;                               /* under lock */
    CACHE_ALIGNED atomic_u32 beside[DEADLINE_PLACES]; /* calls, or OBJECT_NONE */
    uint32_t turn; /* the owner's: the place that comes next, modulo their number */
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

/* The same, for the owner of the wheel and a call that is likely to end before `when`. */
NODISCARD bool deadlines_put_beside_owner(struct deadlines *deadlines, uint32_t wheel,
                                          uint32_t call, uint64_t when);

/* Makes deadlines_next of a wheel later, if that is due to calls which have ended since. */
void deadlines_correct_any(struct deadlines *deadlines, uint32_t wheel);

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
    const uint64_t next = load_seq_cst(&deadlines->wheels[wheel].next); /* MO-timer */
    /* Without the bit that says that it may be about to become later (deadlines.c). */
    return next != WHEEL_NEVER ? next & ~UINT64_C(1) : next;
}

uint64_t deadlines_next_of_all(struct deadlines *deadlines, uint32_t count);

#endif
