/* SPDX-License-Identifier: MIT */
/* The poller's role: one idle worker at a time waits for descriptors and for the next deadline; the
 * others sleep on their tokens. docs/idle.md explains it in full.
 *
 * Timers and descriptors are sources of work like the queues, so the same recipe covers them
 * (concurrent/parking.h). A source without a holder of the role is *unattended*, and that counts as
 * visible work:
 *
 *   publisher                                    parker
 *   P1 arm: exchange `next`, or count a          S1 set own bit
 *      descriptor (seq_cst RMW)                  S2 leave the search
 *   P1a the role is held:                        S3 look at every source; unattended sources:
 *      a deadline before `until`? interrupt         take the role
 *      otherwise done                            W1 store `until`
 *   P1b nobody holds it: P2 to P5                W2 look at the deadlines again; earlier: W1
 *                                                S4 wait in the poller until `until`
 *
 * INV-13: if a worker is parked and there are sources, somebody holds the role, or searches and
 * will take it, or a token is on its way; or a worker is awake whose picks are short. It looks at
 * its checkpoints and takes the role when it has nothing to do, before a worker that was woken for
 * it could: to wake one for every few messages of a socket takes more CPU time than to handle them.
 * If its step is long after all, the monitor wakes a worker for them. A worker that gives up the
 * role, or goes away for long, checks whether its sources are unattended (release_role,
 * poll_hand_over, or leave_search in idle.c), after the seq_cst exchange that frees the role: a
 * parker that failed to take the role had set its bit before.
 *
 * INV-15: if P1's exchange comes before W2 in the order of all seq_cst operations, W2 sees the
 * deadline; otherwise W1 comes before P1a, which sees `until` and interrupts.
 *
 * The role is never held while a step runs. A worker that has work looks at its own timers, and at
 * the poller if nobody holds the role, at its checkpoints (checkpoint.h); the monitor looks when
 * that takes too long. */
#ifndef SKUA_SCHED_POLL_H
#define SKUA_SCHED_POLL_H

#include "sched/scheduler.h"

/* Whether there are timers, descriptors, chores or processes that are held back, and nobody waits
 * for them. */
bool poll_is_unattended(struct scheduler *sched);

/* Whether a timer is due, or a process that is held back, and nobody waits for it. */
bool poll_is_late(struct scheduler *sched);

/* Takes the role for a worker that is about to sleep, if there is something to wait for and nobody
 * has it. */
NODISCARD bool poll_try_take(struct scheduler *sched, struct worker *worker);

/* Sleeps in the poller, in place of park_token_take_owner, then gives the role back. On return the
 * worker counts as searching, and what was ready or due has been submitted to it. */
void poll_sleep(struct worker *worker);

/* For a worker that will not look for a while: wakes another if its sources are unattended. */
void poll_hand_over(struct scheduler *sched, struct worker *worker);

/* Looks at the poller without waiting, if nobody has the role. `worker` is the caller's or null. */
void poll_check(struct scheduler *sched, struct worker *worker, uint64_t now);

/* P1a and P1b for a deadline or chore that is earlier than those before it, or for a descriptor
 * (`deadline` UINT64_MAX). */
void poll_publish(struct scheduler *sched, struct worker *worker, uint64_t deadline);

#endif
