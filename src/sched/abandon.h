/* SPDX-License-Identifier: MIT */
/* Telling a handler that a yield which it has left pending is over without its completion
 * (skua_handler.abandon).
 *
 * The owner's worker knows that `run` has returned SKUA_PENDING, so it tells: when it takes or
 * drops the event of a call that was taken back, has timed out, or was revoked because the process
 * ends, which it cannot do before `run` has returned. One case is left: the timeout was claimed,
 * but its event not yet pushed, when the process ended. Then whoever wanted to push it tells. It
 * has acquired what the owner did (MO-refused), so it knows, too.
 *
 * Each call is claimed once, and its node is taken, dropped, revoked or refused once: so the
 * handler is told once, and only if no completion has claimed the call. */
#ifndef SKUA_SCHED_ABANDON_H
#define SKUA_SCHED_ABANDON_H

#include "process/event.h"
#include "sched/scheduler.h"

/* The worker takes or drops an EVENT_ABANDONED of its process, which becomes a completion. */
void abandon_take(struct worker *worker, struct event_node *node, uint32_t index);

/* The owner of an EVENT_ABANDONED that could not be pushed has ended. Any thread. */
void abandon_refused(struct scheduler *sched, skua_pid owner, struct event_node *node,
                     uint32_t index);

#endif
