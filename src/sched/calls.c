/* SPDX-License-Identifier: MIT */
#include "sched/calls.h"

#include "process/mailbox.h"
#include "process/payload.h"
#include "relations/request.h"
#include "sched/deliver.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/signal.h"
#include "sched/worker.h"

/* The unit of owed_request.since, which counts from the creation of the runtime, for 49 days. */
#define SINCE_NS UINT64_C(1000000)

/* Calls on behalf of a request that are seen to in one slice; fewer in models. */
#ifndef DEPENDENTS_SLICE
#define DEPENDENTS_SLICE 256
#endif

/* ---- the caller ---- */

/* 0, or why this process cannot be called. If its record belongs to another by now, the push finds
 * that out. */
static int check_callee(struct scheduler *sched, skua_pid to, struct process **process)
{
    const int error = process_table_find_live(&sched->table, to, process);
    if (UNLIKELY(error != 0) || LIKELY(process_type_any(*process)->calls)) {
        return error;
    }
    const int gone = process_table_find_live(&sched->table, to, process);
    return gone != 0 ? gone : SKUA_E_NOT_CALLABLE;
}

/* The time, perhaps as of the last checkpoint: for packing a deadline, minutes do not matter. */
static uint64_t rough_now(const struct worker *worker)
{
    struct time_source *time = worker->sched->time;
    return LIKELY(time->is_monotonic) ? worker->checked_at : time_now(time);
}

/* When its caller stops waiting, as a request has it that is on its way; SKUA_FOREVER: never. */
static void put_deadline(const struct worker *worker, struct event_node *node, uint64_t deadline)
{
    node->as.event.error =
        deadline == SKUA_FOREVER ? 0 : (int32_t)request_pack_deadline(deadline, rough_now(worker));
}

static uint64_t deadline_of(const struct worker *worker, const struct event_node *node)
{
    const uint32_t packed = (uint32_t)node->as.event.error;
    return packed == 0 ? SKUA_FOREVER : request_unpack_deadline(packed, rough_now(worker));
}

/* Reserves a place for a request; 0 or why there is none. */
static int reserve(struct scheduler *sched, struct process *process, uint32_t generation,
                   struct quota **quota)
{
    *quota = NULL;
    if (LIKELY(mailbox_reserve_any(process))) {
        return 0;
    }
    const int error =
        mailbox_is_marked(process) ? limits_charge(sched, process, generation, quota) : 0;
    if (error != 0 || mailbox_reserve_within_any(process, limits_of_mailbox(sched, process))) {
        return error;
    }
    limits_pushed(sched, *quota, false);
    return SKUA_E_MAILBOX_FULL;
}

/* Whether the simulator has taken a request, to deliver it late: with a place in the mailbox from
 * now on. If there is none left, the usual way refuses it. */
static NOINLINE bool takes_detour(struct scheduler *sched, struct process *process, skua_pid from,
                                  skua_pid to, uint32_t index)
{
    struct quota *quota;
    if (reserve(sched, process, pid_generation(to), &quota) != 0) {
        return false;
    }
    const bool is_taken = sched->detour->take_signal(sched->detour, from, to, index);
    if (!is_taken) {
        mailbox_unreserve_any(process);
    }
    limits_pushed(sched, quota, is_taken);
    return is_taken;
}

/* Pushes a request to a server, with a place in its mailbox. On error it is still the caller's. */
static int send_request(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                        uint32_t index)
{
    struct process *process;
    struct event_node *node = event_at(&sched->events, index);
    struct quota *quota;
    int error = check_callee(sched, to, &process);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    note_send(sched, worker, from, to, index, node->as.event.payload.type);
    if (UNLIKELY(sched->detour != NULL) && worker != NULL &&
        takes_detour(sched, process, from, to, index)) {
        return 0;
    }
    if (LIKELY(mailbox_has_room(process)) &&
        state_wake_any(process, pid_generation(to), index, &node->next)) {
        submit_ready(sched, worker, process);
        return 0;
    }
    error = reserve(sched, process, pid_generation(to), &quota);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    const bool is_pushed = signal_push_now(sched, worker, to, index);
    if (UNLIKELY(!is_pushed)) {
        mailbox_unreserve_any(process);
    }
    limits_pushed(sched, quota, is_pushed);
    return is_pushed ? 0 : SKUA_E_NO_PROCESS;
}

static void release_request(struct scheduler *sched, struct worker *worker, uint32_t index)
{
    skua_payload_drop(&event_at(&sched->events, index)->as.event.payload);
    deliver_release_node(sched, worker, index);
}

/* The request that this call is made on behalf of may have been answered since. */
static void add_dependent(struct worker *worker, const struct yield *yield,
                          skua_completion completion)
{
    struct object_pool *events = &worker->sched->events;
    struct pool_cache *cache = &worker->caches.events;
    const uint32_t index = request_node(events, yield->as.peer.request.bits, worker->context->self);
    if (index != OBJECT_NONE) {
        request_add_dependent_owner(events, cache, event_at(events, index),
                                    yield->as.peer.dependent, completion);
    } else {
        event_release_owner(events, cache, yield->as.peer.dependent);
    }
}

static int start_call(void *arg, struct worker *worker, const struct yield *yield,
                      skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)result;
    struct scheduler *sched = worker->sched;
    const uint32_t index = yield->as.peer.node;
    struct event_node *node = event_at(&sched->events, index);
    node->as.event.tag = completion.call;
    put_deadline(worker, node, yield->as.peer.deadline);
    if (UNLIKELY(yield->as.peer.dependent != OBJECT_NONE)) {
        add_dependent(worker, yield, completion);
    }
    const int error = send_request(sched, worker, worker->context->self, yield->as.peer.pid, index);
    if (UNLIKELY(error != 0)) {
        release_request(sched, worker, index);
        return error;
    }
    counter_add_owner(&worker->stats.calls, 1);
    return SKUA_PENDING;
}

static void discard_call(struct worker *worker, const struct yield *yield)
{
    release_request(worker->sched, worker, yield->as.peer.node);
    if (yield->as.peer.dependent != OBJECT_NONE) {
        deliver_release_node(worker->sched, worker, yield->as.peer.dependent);
    }
}

void calls_abandon(struct scheduler *sched, struct worker *worker, skua_pid caller,
                   const skua_handler *listener)
{
    uint32_t base;
    const uint32_t index = request_of_listener(listener, &base);
    struct event_node *node = event_at(&sched->events, index);
    if (!request_claim_any(node, base)) {
        return; /* answered, not delivered yet, or the server does not care */
    }
    node->as.event.type = EVENT_REQUEST_OVER;
    if (!signal_push(sched, worker, caller, node->as.request.server, index)) {
        deliver_release_node(sched, worker, index);
    }
}

/* ---- calls on behalf of a request ---- */

/* A request that is answered, forwarded or over may have a million calls on its behalf. To take
 * them back, or only to forget them, would keep the worker from all else. So it is done in slices:
 * what is left after the first goes to the end of the process's own events, and again, so that
 * others and what has come since have their turns in between. Meanwhile the calls are as any
 * others: they may be answered, cancelled or revoked, and then are not there to be claimed. */

/* Takes back a call that was made on behalf of a request whose caller has given up. */
static void end_dependent(struct worker *worker, uint64_t call)
{
    struct scheduler *sched = worker->sched;
    const skua_completion completion = {.process = worker->context->self, .call = call};
    const uint32_t index = call_index(completion);
    struct event_node *node = event_at(&sched->events, index);
    if (!call_claim_any(node, call_guard(completion))) {
        return;
    }
    const bool tells = (node->as.call.previous & CALL_TELLS) != 0;
    const skua_handler *listener = tells ? node->as.call.listener : NULL;
    const skua_payload nothing = skua_payload_empty(0);
    call_disarm_owner(&sched->deadlines, node, index);
    call_complete_owner(node, SKUA_E_CANCELLED, &nothing);
    call_mark_abandoned_owner(node, listener);
    struct process *ready = deliver_call(sched, worker, worker->context->self, index);
    SKUA_ASSERT(ready == NULL); /* it runs, here */
}

/* Leaves the rest for later, on a node that is free for it. False if the process is ending. */
static bool leave_dependents(struct worker *worker, uint32_t index, uint32_t last, bool end)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    node->as.dependents =
        (struct dependent_calls){.type = EVENT_DEPENDENTS, .last = last, .end = end};
    return signal_push_now(worker->sched, worker, worker->context->self, index);
}

/* Takes back a slice of the calls on behalf of a request, or only forgets them. */
static NOINLINE void see_to_dependents(struct worker *worker, uint32_t last, bool end)
{
    struct object_pool *events = &worker->sched->events;
    for (uint32_t count = 1; last != OBJECT_NONE; count++) {
        const uint32_t index = request_take_dependent_owner(events, &last);
        if (end) {
            end_dependent(worker, event_at(events, index)->as.dependent.call);
        }
        if (count >= DEPENDENTS_SLICE && last != OBJECT_NONE &&
            leave_dependents(worker, index, last, end)) {
            return;
        }
        event_release_owner(events, &worker->caches.events, index);
    }
}

static void end_dependents(struct worker *worker, struct event_node *node)
{
    const uint32_t last = node->as.request.dependents;
    node->as.request.dependents = OBJECT_NONE;
    see_to_dependents(worker, last, true);
}

static void forget_dependents(struct worker *worker, struct event_node *node)
{
    const uint32_t last = node->as.request.dependents;
    node->as.request.dependents = OBJECT_NONE;
    see_to_dependents(worker, last, false);
}

void calls_take_dependents(struct worker *worker, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    const struct dependent_calls left = event_at(events, index)->as.dependents;
    event_release_owner(events, &worker->caches.events, index);
    see_to_dependents(worker, left.last, left.end);
}

void calls_drop_dependent(struct worker *worker, struct process *process, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    uint32_t *last = &node->as.dependents.last;
    event_release_owner(events, &worker->caches.events, request_take_dependent_owner(events, last));
    if (*last == OBJECT_NONE) {
        event_release_owner(events, &worker->caches.events, index);
    } else {
        node->next = process->backlog;
        process->backlog = index;
    }
}

/* ---- the server ---- */

/* The process does not owe it any more. */
static inline void strike_request(struct worker *worker, struct process *process, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    if (node->as.request.is_listed) {
        request_settle_owner(events, process, index);
        if (UNLIKELY(node->as.request.dependents != OBJECT_NONE)) {
            forget_dependents(worker, node);
        }
        mailbox_consume_owner(process, 1);
        limits_settle_if_marked(worker->sched, process);
    }
}

void calls_release_request(struct worker *worker, struct process *process, uint32_t index)
{
    strike_request(worker, process, index);
    request_end_owner(event_at(&worker->sched->events, index));
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
}

/* Releases dependents of a request, whose calls are revoked; false if there are more. */
static bool free_some_dependents(struct worker *worker, struct event_node *node, uint32_t *budget)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t *last = &node->as.request.dependents;
    for (; *last != OBJECT_NONE && *budget > 0; --*budget) {
        event_release_owner(events, &worker->caches.events,
                            request_take_dependent_owner(events, last));
    }
    return *last == OBJECT_NONE;
}

bool calls_close_owed(struct worker *worker, struct process *process, uint32_t *next,
                      uint32_t *budget)
{
    while (*next != OBJECT_NONE && *budget > 0) {
        const uint32_t index = *next;
        struct event_node *node = event_at(&worker->sched->events, index);
        --*budget;
        if (!free_some_dependents(worker, node, budget)) {
            return false;
        }
        *next = node->as.request.next;
        if (!request_close_owner(node)) {
            strike_request(worker, process, index);
            request_end_owner(node); /* by the time of close it may be free */
        }
    }
    return *next == OBJECT_NONE;
}

/* A request that will not be delivered; its caller waits, or not. */
static void refuse_request(struct worker *worker, struct process *process, uint32_t index)
{
    request_end_owner(event_at(&worker->sched->events, index));
    mailbox_consume_owner(process, 1);
    release_request(worker->sched, worker, index);
}

/* Files a request that the process has got, or has again. */
static void owe(struct worker *worker, struct process *process, uint32_t index, uint64_t deadline)
{
    struct scheduler *sched = worker->sched;
    const uint64_t age = (account_now(&sched->account) - sched->account.created) / SINCE_NS;
    request_owe_owner(&sched->events, process, worker->context->self, index, deadline);
    event_at(&sched->events, index)->as.request.since =
        age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
}

uint64_t calls_waited(struct scheduler *sched, const struct event_node *node)
{
    const uint64_t age = account_now(&sched->account) - sched->account.created;
    const uint64_t since = node->as.request.since * SINCE_NS;
    return age > since ? age - since : 0;
}

/* Lets the caller's end be heard of. False if it has ended already: then the request is settled, or
 * will be when it arrives as an event. */
static bool open_request(struct worker *worker, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    if (LIKELY(request_open_owner(&worker->sched->events, node))) {
        return true;
    }
    if (request_close_owner(node)) {
        end_dependents(worker, node);
        calls_release_request(worker, process, index);
    }
    return false;
}

bool calls_take_request(struct worker *worker, struct process *process, uint32_t index,
                        skua_event *event)
{
    struct scheduler *sched = worker->sched;
    struct event_node *node = event_at(&sched->events, index);
    if (!request_is_awaited(&sched->events, node)) {
        refuse_request(worker, process, index);
        return false;
    }
    if (UNLIKELY(annex_of(&sched->events, process) == NULL) &&
        signal_annex(worker->sched, worker, process) == NULL) {
        skua_payload nothing = skua_payload_empty(0);
        const skua_completion completion = request_completion(node);
        refuse_request(worker, process, index);
        (void)signal_complete(sched, worker, worker->context->self, completion, SKUA_E_NO_MEMORY,
                              &nothing);
        return false;
    }
    *event = node->as.event;
    event->error = 0;
    event->request.bits =
        request_token(index, load_relaxed(&node->guard), worker->context->self); /* its own */
    owe(worker, process, index, deadline_of(worker, node));
    if (UNLIKELY(process_type(process)->abandons) && !open_request(worker, process, index)) {
        skua_payload_drop(&event->payload);
        return false;
    }
    return true;
}

bool calls_take_over(struct worker *worker, struct process *process, uint32_t index,
                     skua_event *event)
{
    const struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    const bool tells = process_type(process)->abandons && node->as.request.is_known;
    *event = (skua_event){
        .type = SKUA_EVENT_ABANDON,
        .request.bits = request_token(index, load_relaxed(&node->guard), /* its own again */
                                      worker->context->self),
        .from = node->as.request.caller,
        .payload = skua_payload_empty(0),
    };
    end_dependents(worker, node);
    calls_release_request(worker, process, index);
    return tells;
}

/* The request of a token that this process owes an answer to, for it alone; or OBJECT_NONE. */
static uint32_t claim_owed(skua_context *ctx, skua_request request)
{
    struct object_pool *events = &ctx->sched->events;
    const uint32_t index = request_node(events, request.bits, ctx->self);
    if (UNLIKELY(index == OBJECT_NONE) || !request_close_owner(event_at(events, index))) {
        return OBJECT_NONE;
    }
    return index;
}

int calls_reply(skua_context *ctx, skua_request request, int error, skua_payload *payload)
{
    const uint32_t index = claim_owed(ctx, request);
    if (UNLIKELY(index == OBJECT_NONE)) {
        skua_payload_drop(payload);
        return SKUA_E_LATE;
    }
    const skua_completion completion = request_completion(event_at(&ctx->sched->events, index));
    calls_release_request(ctx->worker, ctx->process, index);
    return signal_complete(ctx->sched, ctx->worker, ctx->self, completion, error, payload);
}

/* It stays with this server, which could not pass it on; unless the caller has given up. */
static int keep_request(skua_context *ctx, uint32_t index, const struct owed_request *before,
                        int error)
{
    struct event_node *node = event_at(&ctx->sched->events, index);
    store_relaxed(&node->guard, load_relaxed(&node->guard) - REQUEST_HOP_ONE); /* closed: its own */
    owe(ctx->worker, ctx->process, index, before->deadline);
    node->as.request.dependents = before->dependents;
    const bool opens = process_type(ctx->process)->abandons || before->dependents != OBJECT_NONE;
    if (opens && !open_request(ctx->worker, ctx->process, index)) {
        return SKUA_E_LATE;
    }
    return error;
}

static int forward(skua_context *ctx, uint32_t index, skua_pid to, const skua_payload *payload)
{
    struct object_pool *events = &ctx->sched->events;
    struct event_node *node = event_at(events, index);
    if (!request_is_awaited(events, node)) {
        end_dependents(ctx->worker, node);
        calls_release_request(ctx->worker, ctx->process, index);
        return SKUA_E_LATE;
    }
    const struct owed_request before = node->as.request;
    request_settle_owner(events, ctx->process, index);
    store_relaxed(&node->guard, load_relaxed(&node->guard) + REQUEST_HOP_ONE); /* closed: its own */
    put_deadline(ctx->worker, node, before.deadline);
    payload_put(&node->as.event.payload, payload);
    const int error = send_request(ctx->sched, ctx->worker, ctx->self, to, index);
    if (error != 0) {
        return keep_request(ctx, index, &before, error);
    }
    see_to_dependents(ctx->worker, before.dependents, false);
    mailbox_consume_owner(ctx->process, 1);
    limits_settle_if_marked(ctx->sched, ctx->process);
    counter_add_owner(&ctx->worker->stats.calls, 1);
    return 0;
}

static bool may_hop(const struct event_node *node)
{
    const uint32_t guard = load_relaxed(&node->guard); /* its own, or about to be */
    return guard % REQUEST_WINDOW < REQUEST_HOPS_MAX * REQUEST_HOP_ONE;
}

int calls_forward(skua_context *ctx, skua_request request, skua_pid to, skua_payload *payload)
{
    int error = payload_refuse(payload, ctx->sched->config.payload_limit);
    const uint32_t found = request_node(&ctx->sched->events, request.bits, ctx->self);
    if (error == 0 && found != OBJECT_NONE && !may_hop(event_at(&ctx->sched->events, found))) {
        error = SKUA_E_FORWARDED;
    }
    if (error == 0) {
        const uint32_t index = claim_owed(ctx, request);
        error = index != OBJECT_NONE ? forward(ctx, index, to, payload) : SKUA_E_LATE;
    }
    if (error != 0) {
        skua_payload_drop(payload);
    }
    payload_mark_taken(payload);
    return error;
}

int calls_defer(skua_context *ctx, const skua_event *event, uint32_t *index)
{
    struct object_pool *events = &ctx->sched->events;
    *index = claim_owed(ctx, event->request);
    if (*index == OBJECT_NONE) {
        return SKUA_E_LATE;
    }
    struct event_node *node = event_at(events, *index);
    const struct owed_request before = node->as.request;
    request_settle_owner(events, ctx->process, *index);
    node->as.event = *event;
    node->as.event.tag = before.call;
    request_hide_owner(node);
    put_deadline(ctx->worker, node, before.deadline);
    see_to_dependents(ctx->worker, before.dependents, false);
    return 0;
}

uint64_t calls_deadline(skua_context *ctx, skua_request request)
{
    const uint32_t index = request_node(&ctx->sched->events, request.bits, ctx->self);
    return index != OBJECT_NONE ? event_at(&ctx->sched->events, index)->as.request.deadline : 0;
}

int calls_depend(skua_context *ctx, skua_request request, uint64_t *deadline)
{
    const uint32_t index = request_node(&ctx->sched->events, request.bits, ctx->self);
    if (index == OBJECT_NONE) {
        return SKUA_E_LATE;
    }
    struct event_node *node = event_at(&ctx->sched->events, index);
    *deadline = node->as.request.deadline;
    if (node->as.request.is_opened) {
        return 0; /* if it is on its way as an event, it will end the call when it arrives */
    }
    return open_request(ctx->worker, ctx->process, index) ? 0 : SKUA_E_LATE;
}

void calls_attach(struct scheduler *sched)
{
    sched->services[SERVICE_CALL] =
        (struct service){.name = "call", .start = start_call, .discard = discard_call};
}
