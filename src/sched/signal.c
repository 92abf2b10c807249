/* SPDX-License-Identifier: MIT */
#include "sched/signal.h"

#include <stdalign.h>

#include "process/annex.h"
#include "process/mailbox.h"
#include "relations/request.h"
#include "sched/admission.h"
#include "sched/calls.h"
#include "sched/children.h"
#include "sched/deliver.h"
#include "sched/describe.h"
#include "sched/grouping.h"
#include "sched/links.h"
#include "sched/monitors.h"
#include "sched/naming.h"
#include "sched/publishing.h"
#include "sched/socket_hooks.h"
#include "sched/upgrade.h"
#include "sched/urgent.h"
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

struct wing *signal_wing(struct scheduler *sched, struct worker *worker, struct process *process)
{
    struct annex *annex = signal_annex(sched, worker, process);
    if (annex != NULL && annex->wing == NULL) {
        annex->wing =
            allocator_alloc_zeroed(&sched->allocator, sizeof *annex->wing, alignof(struct wing));
    }
    return annex != NULL ? annex->wing : NULL;
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

bool signal_waits_for_step(struct scheduler *sched, const struct event_node *node)
{
    return node->as.event.type == EVENT_UPGRADE || node->as.event.type == EVENT_OVERFLOW ||
           node->as.event.type == EVENT_PUBLISH || /* submit_later: no step until they are queued */
           (node->as.event.type == EVENT_LINK_END && links_would_end(sched, node));
}

/* An event that comes as it is. */
static enum signal_outcome take_event(struct worker *worker, uint32_t index, skua_event *event)
{
    *event = event_at(&worker->sched->events, index)->as.event;
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
    return SIGNAL_EVENT;
}

static enum signal_outcome take_overflow(struct worker *worker, uint32_t index,
                                         struct signal_end *end)
{
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
    *end = (struct signal_end){SKUA_E_OVERFLOW, worker->context->self};
    return SIGNAL_ENDS;
}

static enum signal_outcome take_request(struct worker *worker, struct process *process,
                                        uint32_t index, skua_event *event)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    if (node->as.event.type == EVENT_CALL_AGAIN) {
        request_show_owner(node);
    }
    return calls_take_request(worker, process, index, event) ? SIGNAL_EVENT : SIGNAL_FILED;
}

enum signal_outcome signal_take(struct worker *worker, struct process *process, uint32_t index,
                                skua_event *event, struct signal_end *end)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    switch (node->as.event.type) {
    case EVENT_CALL_AGAIN:
    case SKUA_EVENT_CALL:
        return take_request(worker, process, index, event);
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
    case EVENT_GROUP:
        grouping_take(worker, process, index, event);
        return SIGNAL_EVENT;
    case EVENT_CHILD:
    case EVENT_CHILD_READY:
        children_take(worker, process, index, event);
        return SIGNAL_EVENT;
    case EVENT_DESCRIBE:
        describe_take(worker, process, index);
        return SIGNAL_FILED;
    case EVENT_DEPENDENTS:
        calls_take_dependents(worker, index);
        return SIGNAL_LONG;
    case EVENT_WAITERS:
        naming_take_waiters(worker, index);
        return SIGNAL_LONG;
    case EVENT_PUBLISH:
        publishing_take(worker, process, index);
        return SIGNAL_LONG;
    case EVENT_SOCKET:
    case EVENT_SOCKET_GIVEN:
        worker->sched->sockets->take(worker->sched->sockets, worker, process, index);
        return SIGNAL_FILED;
    case EVENT_ADMISSION:
        return admission_take(worker, index, event) ? SIGNAL_EVENT : SIGNAL_FILED;
    case EVENT_OVERFLOW:
        return take_overflow(worker, index, end);
    case EVENT_UPGRADE:
        upgrade_take(worker, process, index);
        return SIGNAL_FILED;
    case SKUA_EVENT_BECOME:
        return take_event(worker, index, event);
    case EVENT_BUNDLE:
        urgent_take_bundle(worker, process, index);
        return SIGNAL_FILED;
    default:
        return links_take_end(worker, process, index, event, end);
    }
}

bool signal_drop(struct worker *worker, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    switch (node->as.event.type) {
    case EVENT_CALL_AGAIN:
        request_show_owner(node);
        skua_payload_drop(&node->as.event.payload);
        mailbox_consume_owner(process, 1);
        return true;
    case SKUA_EVENT_CALL:
        skua_payload_drop(&node->as.event.payload);
        mailbox_consume_owner(process, 1);
        return true;
    case EVENT_ADMISSION:
        skua_payload_drop(&node->as.event.payload);
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
    case EVENT_GROUP:
        grouping_drop(worker, index);
        return false;
    case EVENT_CHILD:
    case EVENT_CHILD_READY:
        children_drop(worker, process, index);
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
    case EVENT_PUBLISH:
        publishing_drop(worker, process, index);
        return false;
    case EVENT_SOCKET:
    case EVENT_SOCKET_GIVEN:
        worker->sched->sockets->drop(worker->sched->sockets, worker, index);
        return false;
    case EVENT_UPGRADE:
        upgrade_drop(worker, index);
        return false;
    case EVENT_BUNDLE:
        urgent_take_bundle(worker, process, index);
        return false;
    default: /* both have ended: the peer has told us, and will not hear of us */
        event_release_owner(&worker->sched->events, &worker->caches.events, index);
        return false;
    }
}
