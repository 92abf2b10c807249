/* SPDX-License-Identifier: MIT */
#include "sched/admission.h"

#include "dispatch/call.h"
#include "process/mailbox.h"
#include "sched/deliver.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/shedding.h"
#include "sched/signal.h"
#include "sched/worker.h"

static skua_completion completion_of(const struct event_node *node)
{
    return (skua_completion){.process = node->as.event.from, .call = node->as.event.tag};
}

static void release(struct scheduler *sched, struct worker *worker, uint32_t index)
{
    skua_payload_drop(&event_at(&sched->events, index)->as.event.payload);
    deliver_release_node(sched, worker, index);
}

/* ---- the sender ---- */

/* Lets it wait at the receiver. */
static void make_wait(struct event_node *node, skua_completion completion)
{
    node->as.event.type = EVENT_ADMISSION;
    node->as.event.tag = completion.call;
}

static void make_message(struct event_node *node)
{
    node->as.event.type = SKUA_EVENT_MESSAGE;
    node->as.event.tag = 0;
}

/* Whether the simulator has taken it, to deliver it late. It then waits, however much room there
 * is. */
static NOINLINE bool takes_detour(struct scheduler *sched, skua_pid to, uint32_t index,
                                  skua_completion completion)
{
    struct event_node *node = event_at(&sched->events, index);
    make_wait(node, completion);
    if (sched->detour->take_signal(sched->detour, completion.process, to, index)) {
        return true;
    }
    make_message(node);
    return false;
}

/* There is a place for it: from now on the yield must not time out any more, or its sender would be
 * told so although the message is delivered. So the worker claims the call, takes its timer away,
 * and opens it again: nobody else knows of it. False if the time was up before that. */
static bool stop_timer(struct worker *worker, skua_completion completion)
{
    struct scheduler *sched = worker->sched;
    const uint32_t index = call_index(completion);
    struct event_node *call = event_at(&sched->events, index);
    if (!call_claim_any(call, call_guard(completion))) {
        return false;
    }
    call_disarm_owner(&sched->deadlines, call, index);
    call->as.call.wheel = 0;
    store_release(&call->guard, call_guard(completion)); /* MO-guard */
    return true;
}

/* It has a place in the mailbox. */
static int send_reserved(struct worker *worker, const struct prepared_event *event, bool is_timed,
                         skua_completion completion)
{
    if (is_timed && !stop_timer(worker, completion)) {
        deliver_unreserve(worker->sched, event);
        release(worker->sched, worker, event->index);
        return SKUA_PENDING; /* its completion is on its way */
    }
    return deliver_reserved(worker->sched, worker, event) ? 0 : SKUA_E_NO_PROCESS;
}

/* 0: admitted; SKUA_PENDING: it waits, or its time is up; or an error: the node is still the
 * caller's. */
static int send_or_wait(struct worker *worker, const struct yield *yield,
                        skua_completion completion)
{
    struct scheduler *sched = worker->sched;
    const skua_pid to = yield->as.peer.pid;
    const uint32_t index = yield->as.peer.node;
    struct prepared_event event = {.generation = pid_generation(to), .index = index};
    event.node = event_at(&sched->events, index);
    int error = process_table_find_live(&sched->table, to, &event.process);
    if (error != 0) {
        return error;
    }
    note_send(sched, worker, completion.process, to, index, event.node->as.event.payload.type);
    if (UNLIKELY(sched->detour != NULL) && takes_detour(sched, to, index, completion)) {
        return SKUA_PENDING;
    }
    error = deliver_reserve(sched, &event);
    if (error == 0) {
        const bool is_timed = yield->timeout != SKUA_FOREVER && yield->timeout != 0;
        return send_reserved(worker, &event, is_timed, completion);
    }
    if (error != SKUA_E_MAILBOX_FULL || shedding_makes_room(&event)) {
        return error;
    }
    make_wait(event.node, completion);
    return signal_push_now(sched, worker, to, index) ? SKUA_PENDING : SKUA_E_NO_PROCESS;
}

static int start_send(void *arg, struct worker *worker, const struct yield *yield,
                      skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)result;
    const int outcome = send_or_wait(worker, yield, completion);
    if (outcome < 0) {
        release(worker->sched, worker, yield->as.peer.node);
    }
    return outcome;
}

static void discard_send(struct worker *worker, const struct yield *yield)
{
    release(worker->sched, worker, yield->as.peer.node);
}

/* ---- the receiver ---- */

bool admission_is_awaited(const struct object_pool *events, const struct event_node *node)
{
    const skua_completion completion = completion_of(node);
    struct event_node *call = event_at(events, call_index(completion));
    return load_acquire(&call->guard) == call_guard(completion); /* MO-guard */
}

/* Whether the sender is told now that its message is admitted; otherwise the yield has ended. In a
 * simulation this takes no detour: the message is handed over at this moment. */
static bool admit(struct worker *worker, const struct event_node *node)
{
    skua_payload nothing = skua_payload_empty(0);
    if (!admission_is_awaited(&worker->sched->events, node) ||
        deliver_completion(worker->sched, worker, completion_of(node), 0, &nothing) != 0) {
        return false;
    }
    counter_add_owner(&worker->stats.messages, 1);
    return true;
}

bool admission_take(struct worker *worker, uint32_t index, skua_event *event)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    if (!admit(worker, node)) {
        release(worker->sched, worker, index);
        return false;
    }
    make_message(node);
    *event = node->as.event;
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
    return true;
}

bool admission_put_aside(struct worker *worker, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    if (admission_is_awaited(&worker->sched->events, node)) {
        if (!limits_reserve_own(worker->sched, process)) {
            return true;
        }
        if (admit(worker, node)) {
            make_message(node);
            return true;
        }
        limits_unreserve_own(worker->sched, process);
    }
    release(worker->sched, worker, index);
    return false;
}

void admission_tell(struct scheduler *sched, struct worker *worker, skua_pid pid, uint32_t index)
{
    const struct event_node *node = event_at(&sched->events, index);
    const skua_completion completion = completion_of(node);
    const bool is_awaited = admission_is_awaited(&sched->events, node);
    deliver_release_node(sched, worker, index);
    if (is_awaited) {
        skua_payload nothing = skua_payload_empty(0);
        (void)signal_complete(sched, worker, pid, completion, SKUA_E_NO_PROCESS, &nothing);
    }
}

void admission_attach(struct scheduler *sched)
{
    sched->services[SERVICE_SEND] =
        (struct service){.name = "send", .start = start_send, .discard = discard_send};
}
