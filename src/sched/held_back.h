/* SPDX-License-Identifier: MIT */
/* Back-pressure: senders that are held back until their receiver has caught up.
 *
 * Sending more to a process that cannot keep up gains nothing: what is sent waits, and leaves the
 * cache meanwhile. With several workers it costs: all but the one that runs the receiver fill its
 * mailbox, and every message moves from core to core. So a process that continues, has no events,
 * and has sent to a process that is *crowded* (deliver.c) and about to run, goes to no queue: it
 * rests in its word as always, but keeps the flag that it continues, and its PID joins the *line*
 * of that receiver. Any event, kill or cancel wakes it, as it wakes others that rest; its next step
 * gets that and CONTINUE together. Without one it is let go
 *  - by a worker that has no other work and sees that the receiver rests or has ended: the worker
 *    takes the oldest of the line and runs it. Most often it has just run the receiver; so receiver
 *    and senders take turns on one core, while the other workers sleep;
 *  - in the same way at a checkpoint of a worker that has other work, to the global queue;
 *  - after HELD_BACK_NS, whatever the receiver does: at a checkpoint, or by the worker that waits
 *    for timers and descriptors.
 *
 * Only while messages cost less than moving them to another core, as the worker measures it. Where
 * they take longer to make or to handle, senders and receiver run side by side, as they did.
 *
 * INV-46: a process that rests although it continues is in a line, or the thread that has just
 * removed it from there is about to wake it; and `due` is no later than the instant at which the
 * first of those in the lines is let go. The lock is held while a process comes to rest and joins:
 * who removes it finds it at rest, or woken by others and Ready. If it joined first and without the
 * lock, it could be removed and woken for nothing while it still runs, then rest for ever.
 *
 * `due` is a source of work like the deadlines of timers (poll.h), and covered by the same recipe:
 * an exchange under the lock (P1); whoever makes it earlier calls poll_publish when it has released
 * the lock (P1a, P1b). Making it later needs nothing: who waits too short a time looks again.
 *
 * A line may hold PIDs of processes that something else has woken since: those may run, rest for
 * other reasons, be in a line again or have ended. Waking one for nothing costs it a turn without a
 * step, or its place in the line; no more.
 *
 * Nobody waits for ever, and nobody spins. A process that has events is never held back, so in a
 * cycle of processes that fill each other's mailboxes the crowded ones run. Who waits for a process
 * that is held back has sent it an event, which wakes it.
 *
 * There are lines for HELD_BACK_LINES receivers at a time, with HELD_BACK_MAX places each. Who
 * finds no place goes to the global queue, as without a receiver that is crowded. */
#ifndef SKUA_SCHED_HELD_BACK_H
#define SKUA_SCHED_HELD_BACK_H

#include "sched/scheduler.h"

/* Less in models. */
#ifndef HELD_BACK_NS
#define HELD_BACK_NS UINT64_C(1000000)
#endif

void held_back_init(struct scheduler *sched);
void held_back_deinit(struct scheduler *sched);

/* Holds back a process whose pick ends, under back-pressure and without a backlog, if its last step
 * has sent to a process that is crowded. True: it rests, and is no longer the caller's. */
NODISCARD bool held_back_try(struct worker *worker, struct process *process);

/* For a worker that has nothing else to run: one whose receiver rests, or null. Its token is the
 * caller's. */
NODISCARD struct process *held_back_take(struct worker *worker);

/* At a checkpoint: lets go who should be. */
void held_back_check(struct worker *worker);

/* Lets go those whose time is over. */
void held_back_release(struct scheduler *sched, uint64_t now);

/* Whether a process is in a line; for audits. */
bool held_back_has(struct scheduler *sched, skua_pid pid);

/* When the first is let go in any case; UINT64_MAX: nobody is held back. */
static inline uint64_t held_back_next(struct scheduler *sched)
{
    return load_seq_cst(&sched->held_back.due); /* MO-poll */
}

#endif
