/* SPDX-License-Identifier: MIT */
#include "sched/abandon.h"

#include "dispatch/call.h"
#include "relations/request.h"
#include "sched/calls.h"
#include "sched/grouping.h"
#include "sched/worker.h"

/* `worker` is the caller's or null. */
static void tell(struct scheduler *sched, struct worker *worker, skua_pid owner,
                 struct event_node *node, uint32_t index, const skua_handler *listener)
{
    if (request_is_listener(listener)) {
        calls_abandon(sched, worker, owner, listener);
        return;
    }
    if (group_watch_is_listener(listener)) {
        grouping_abandon(sched, worker, listener);
        return;
    }
    listener->abandon(listener->arg, sched->runtime, call_completion(node, index, owner));
}

/* Only if the handler has left it pending: it may have been about to return a result, late. */
static bool is_left_pending(const struct event_node *node)
{
    return (node->as.call.previous & CALL_TELLS) != 0;
}

void abandon_take(struct worker *worker, struct event_node *node, uint32_t index)
{
    const skua_handler *listener = node->as.call.listener;
    node->as.event.type = SKUA_EVENT_COMPLETION;
    node->as.event.payload = skua_payload_empty(0); /* the listener was there */
    if (is_left_pending(node)) {
        tell(worker->sched, worker, worker->context->self, node, index, listener);
    }
}

/* The thread may be a worker that is idle, and has no process whose life holds up the shutdown. So
 * for what the handler calls it counts as a thread from outside. */
void abandon_refused(struct scheduler *sched, skua_pid owner, struct event_node *node,
                     uint32_t index)
{
    if (!is_left_pending(node)) {
        return;
    }
    struct worker *worker = worker_of_thread();
    const struct scheduler *outer = worker_enter_callback(sched);
    worker_set_current(NULL);
    tell(sched, NULL, owner, node, index, node->as.call.listener);
    worker_set_current(worker);
    (void)worker_enter_callback(outer);
}
