/* SPDX-License-Identifier: MIT */
/* Calls from process to process (relations/request.h). */
#ifndef SKUA_SCHED_CALLS_H
#define SKUA_SCHED_CALLS_H

#include "sched/scheduler.h"

/* Fills in the services of calls, monitors and joins. */
void calls_attach(struct scheduler *sched);

/* As skua_reply, skua_forward and skua_request_deadline, in a context that allows them. The first
 * two take payload, always. */
int calls_reply(skua_context *ctx, skua_request request, int error, skua_payload *payload);
int calls_forward(skua_context *ctx, skua_request request, skua_pid to, skua_payload *payload);
uint64_t calls_deadline(skua_context *ctx, skua_request request);

/* Lets a call be made on behalf of a request: its caller's end will end that. Returns 0 or
 * SKUA_E_LATE. */
NODISCARD int calls_depend(skua_context *ctx, skua_request request, uint64_t *deadline);

/* The caller's side of a call has ended without an answer. `listener` is its request. Any
 * thread. */
void calls_abandon(struct scheduler *sched, struct worker *worker, skua_pid caller,
                   const skua_handler *listener);

/* Takes a request, or news that one is over, out of the backlog of the worker's process. Returns
 * whether there is an event for the step. */
NODISCARD bool calls_take_request(struct worker *worker, struct process *process, uint32_t index,
                                  skua_event *event);
NODISCARD bool calls_take_over(struct worker *worker, struct process *process, uint32_t index,
                               skua_event *event);

/* The same for EVENT_DEPENDENTS: sees to a slice of them. Or, in a process that is ending and whose
 * calls are revoked, releases one; if there are more, the signal is back in the backlog. */
void calls_take_dependents(struct worker *worker, uint32_t index);
void calls_drop_dependent(struct worker *worker, struct process *process, uint32_t index);

/* An ending process, which has an annex, closes what it owes, from the request `*next` on, which is
 * moved along: from now on nobody pushes it to the process. What is on its way already is not owed
 * any more. Its calls are revoked, so it releases those on behalf of a request, too. Lowers
 * `*budget`; false if there is more. */
NODISCARD bool calls_close_owed(struct worker *worker, struct process *process, uint32_t *next,
                                uint32_t *budget);

/* How long ago the process got a request that it owes: about. */
uint64_t calls_waited(struct scheduler *sched, const struct event_node *node);

/* Releases a request that the process owes no answer to any more, and its place in the mailbox. */
void calls_release_request(struct worker *worker, struct process *process, uint32_t index);

/* Makes a request that the process owes, and whose event is `event`, one that has not come yet:
 * EVENT_CALL_AGAIN, with its place in the mailbox. Gives its node. Returns 0 or SKUA_E_LATE. */
NODISCARD int calls_defer(skua_context *ctx, const skua_event *event, uint32_t *index);

#endif
