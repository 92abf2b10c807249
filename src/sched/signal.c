/* SPDX-License-Identifier: MIT */
#include "sched/signal.h"

#include "process/annex.h"
#include "process/mailbox.h"
#include "relations/request.h"
#include "sched/calls.h"
#include "sched/deliver.h"
#include "sched/describe.h"
#include "sched/links.h"
#include "sched/monitors.h"
#include "sched/naming.h"
#include "sched/socket_hooks.h"
#include "sched/worker.h"

struct annex *signal_annex(struct scheduler *sched, struct worker *worker, struct process *process)
{
    uint32_t node;
    struct annex *annex = annex_of(&sched->events, process);
    if (UNLIKELY(annex == NULL) && deliver_acquire_node(sched, worker, &node)) {
        annex = annex_attach_owner(&sched->events, process, node);
    }
    return annex;
}

/* ---- sending ---- */

bool signal_push_now(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t node)
{
    struct process *process = process_at(&sched->table, pid_slot(to));
    switch (
        state_push_any(process, pid_generation(to), node, &event_at(&sched->events, node)->next)) {
    case STATE_ENQUEUE:
        submit_ready(sched, worker, process);
        return true;
    case STATE_DONE:
        return true;
    case STATE_CLOSED:
        break;
    }
    return false;
}

bool signal_push(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                 uint32_t node)
{
    struct detour *detour = sched->detour;
    if (UNLIKELY(detour != NULL) && worker != NULL && detour->take_signal(detour, from, to, node)) {
        return true;
    }
    return signal_push_now(sched, worker, to, node);
}

int signal_complete(struct scheduler *sched, struct worker *worker, skua_pid from,
                    skua_completion completion, int error, skua_payload *result)
{
    struct detour *detour = sched->detour;
    if (UNLIKELY(detour != NULL) && worker != NULL &&
        detour->take_completion(detour, from, completion, error, result)) {
        return 0;
    }
    return deliver_completion(sched, worker, completion, error, result);
}

/* ---- receiving ---- */

bool signal_would_end(struct scheduler *sched, const struct event_node *node)
{
    return node->as.event.type == EVENT_LINK_END && links_would_end(sched, node);
}

enum signal_outcome signal_take(struct worker *worker, struct process *process, uint32_t index,
                                skua_event *event, struct signal_end *end)
{
    switch (event_at(&worker->sched->events, index)->as.event.type) {
    case SKUA_EVENT_CALL:
        return calls_take_request(worker, process, index, event) ? SIGNAL_EVENT : SIGNAL_FILED;
    case EVENT_REQUEST_OVER:
        return calls_take_over(worker, process, index, event) ? SIGNAL_EVENT : SIGNAL_FILED;
    case EVENT_MONITOR:
    case EVENT_JOIN:
        monitors_take(worker, process, index);
        return SIGNAL_FILED;
    case EVENT_LINK:
        links_take_new(worker, process, index);
        return SIGNAL_FILED;
    case EVENT_UNLINK:
        links_take_unlink(worker, process, index);
        return SIGNAL_FILED;
    case EVENT_DESCRIBE:
        describe_take(worker, process, index);
        return SIGNAL_FILED;
    case EVENT_DEPENDENTS:
        calls_take_dependents(worker, index);
        return SIGNAL_LONG;
    case EVENT_WAITERS:
        naming_take_waiters(worker, index);
        return SIGNAL_LONG;
    case EVENT_SOCKET:
    case EVENT_SOCKET_GIVEN:
        worker->sched->sockets->take(worker->sched->sockets, worker, process, index);
        return SIGNAL_FILED;
    default:
        return links_take_end(worker, process, index, event, end);
    }
}

bool signal_drop(struct worker *worker, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    switch (node->as.event.type) {
    case SKUA_EVENT_CALL:
        skua_payload_drop(&node->as.event.payload);
        mailbox_consume_owner(process, 1);
        return true;
    case EVENT_MONITOR:
    case EVENT_JOIN:
    case EVENT_LINK:
        return true;
    case EVENT_REQUEST_OVER:
        calls_release_request(worker, process, index);
        return false;
    case EVENT_UNLINK:
        links_take_unlink(worker, process, index);
        return false;
    case EVENT_DESCRIBE:
        describe_drop(worker, index);
        return false;
    case EVENT_DEPENDENTS:
        calls_drop_dependent(worker, process, index);
        return false;
    case EVENT_WAITERS:
        naming_drop_waiter(worker, process, index);
        return false;
    case EVENT_SOCKET:
    case EVENT_SOCKET_GIVEN:
        worker->sched->sockets->drop(worker->sched->sockets, worker, index);
        return false;
    default: /* both have ended: the peer has told us, and will not hear of us */
        event_release_owner(&worker->sched->events, &worker->caches.events, index);
        return false;
    }
}
