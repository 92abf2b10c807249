/* SPDX-License-Identifier: MIT */
/* Events that a process has got and put off: they wait in its wing, in order, until it resumes.
 *
 * A message counts against the mailbox limit again, and stays in its node. A step has that no more,
 * or its worker alone knows which it is. So the first time the message gets another node, and from
 * then on (PROCESS_DEFERS) the worker keeps those of all messages until the step is over.
 *
 * A request is not owed any more, but on its way again: its node is what it was when it arrived,
 * but for the type, EVENT_CALL_AGAIN, and the guard, so that tokens of it do not match. So its
 * caller may give up or time out, and then it is not delivered again; and if the process ends, its
 * caller is told.
 *
 * What is resumed comes before all that a step has not got, but for urgent messages: in front of
 * the backlog or, in a task, of what was put aside. */
#ifndef SKUA_SCHED_DEFER_H
#define SKUA_SCHED_DEFER_H

#include "sched/scheduler.h"

/* As skua_defer and skua_resume, for a context that is checked. */
NODISCARD int defer_event(skua_context *ctx, skua_event *event);
void defer_resume(const skua_context *ctx);

/* Puts all of them to the backlog of a process that ends. */
void defer_end(const struct object_pool *events, struct process *process);

#endif
