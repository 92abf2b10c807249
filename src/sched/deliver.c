/* SPDX-License-Identifier: MIT */
#include "sched/deliver.h"

#include "base/mutex.h"
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "sched/worker.h"

static bool take_node_outside(struct scheduler *sched, uint32_t *index)
{
    mutex_lock(&sched->outside.lock);
    const bool taken = event_take(&sched->events, &sched->outside.caches.events, index);
    mutex_unlock(&sched->outside.lock);
    return taken;
}

bool deliver_take_node(struct scheduler *sched, struct worker *worker, uint32_t *index)
{
    if (UNLIKELY(worker == NULL)) {
        return take_node_outside(sched, index);
    }
    return event_take(&sched->events, &worker->caches.events, index);
}

void deliver_give_node(struct scheduler *sched, struct worker *worker, uint32_t index)
{
    if (worker != NULL) {
        event_give(&sched->events, &worker->caches.events, index);
        return;
    }
    mutex_lock(&sched->outside.lock);
    event_give(&sched->events, &sched->outside.caches.events, index);
    mutex_unlock(&sched->outside.lock);
}

/* Pushes a filled node and wakes the process if it waits. False if the process is gone. */
static bool push_event(struct scheduler *sched, struct worker *worker, struct process *process,
                       uint32_t generation, uint32_t index)
{
    struct event_node *node = event_at(&sched->events, index);
    switch (state_push(process, generation, index, &node->next)) {
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

/* Finds a process that is alive, as far as one look can tell. */
static int find_live(struct scheduler *sched, skua_pid to, struct process **process)
{
    const int error = process_table_find(&sched->table, to, process);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    const uint32_t tag = state_peek(*process); /* the push looks again */
    const bool live = state_generation(tag) == pid_generation(to) && state_is_live(tag);
    return LIKELY(live) ? 0 : SKUA_E_NO_PROCESS;
}

/* Inline, as is the next: sending is the one path that must not pay for being in two halves. */
ALWAYS_INLINE static int prepare(struct scheduler *sched, struct worker *worker, skua_pid from,
                                 skua_pid to, const skua_payload *payload,
                                 struct prepared_event *prepared)
{
    struct process *process;
    uint32_t index;
    if (UNLIKELY(skua_payload_size(payload) > sched->config.payload_limit)) {
        return SKUA_E_PAYLOAD_SIZE;
    }
    const int error = find_live(sched, to, &process);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(!mailbox_reserve_any(process))) {
        return SKUA_E_MAILBOX_FULL;
    }
    if (UNLIKELY(!deliver_take_node(sched, worker, &index))) {
        mailbox_unreserve_any(process);
        return SKUA_E_NO_MEMORY;
    }
    event_at(&sched->events, index)->as.event =
        (skua_event){.type = SKUA_EVENT_MESSAGE, .from = from, .payload = *payload};
    *prepared = (struct prepared_event){process, pid_generation(to), index, .is_message = true};
    return 0;
}

ALWAYS_INLINE static bool hand_over(struct scheduler *sched, struct worker *worker,
                                    const struct prepared_event *prepared)
{
    if (UNLIKELY(
            !push_event(sched, worker, prepared->process, prepared->generation, prepared->index))) {
        if (prepared->is_message) {
            mailbox_unreserve_any(prepared->process);
        }
        deliver_give_node(sched, worker, prepared->index);
        return false;
    }
    if (prepared->is_message) {
        STATS_COUNT(sched, worker, messages);
    }
    return true;
}

static int send(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                const skua_payload *payload)
{
    struct prepared_event prepared;
    const int error = prepare(sched, worker, from, to, payload, &prepared);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    return LIKELY(hand_over(sched, worker, &prepared)) ? 0 : SKUA_E_NO_PROCESS;
}

int deliver_prepare(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    const skua_payload *payload, struct prepared_event *prepared)
{
    return prepare(sched, worker, from, to, payload, prepared);
}

bool deliver_prepared(struct scheduler *sched, struct worker *worker,
                      const struct prepared_event *prepared)
{
    return hand_over(sched, worker, prepared);
}

int deliver_message(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    skua_payload *payload)
{
    const int error = send(sched, worker, from, to, payload);
    if (UNLIKELY(error != 0)) {
        skua_payload_drop(payload);
    }
    return error;
}

int deliver_prepare_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason,
                           struct prepared_event *prepared)
{
    struct process *process;
    uint32_t index;
    const int error = find_live(sched, to, &process);
    if (error != 0) {
        return error;
    }
    if (!deliver_take_node(sched, worker, &index)) {
        return SKUA_E_NO_MEMORY;
    }
    event_at(&sched->events, index)->as.event =
        (skua_event){.type = SKUA_EVENT_CANCEL, .error = reason, .payload = skua_payload_empty(0)};
    *prepared = (struct prepared_event){process, pid_generation(to), index, .is_message = false};
    return 0;
}

int deliver_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason)
{
    struct prepared_event prepared;
    const int error = deliver_prepare_cancel(sched, worker, to, reason, &prepared);
    if (error != 0) {
        return error;
    }
    return hand_over(sched, worker, &prepared) ? 0 : SKUA_E_NO_PROCESS;
}

int deliver_request(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t request)
{
    struct process *process;
    const int error = process_table_find(&sched->table, to, &process);
    if (error != 0) {
        return error;
    }
    switch (state_request(process, pid_generation(to), request)) {
    case STATE_ENQUEUE:
        submit_ready(sched, worker, process);
        return 0;
    case STATE_DONE:
        return 0;
    case STATE_CLOSED:
        break;
    }
    return SKUA_E_NO_PROCESS;
}

/* The node is given back if the process has gone. */
static enum state_duty push_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                                 uint32_t call, struct process **process)
{
    struct event_node *node = event_at(&sched->events, call);
    *process = process_at(&sched->table, pid_slot(owner));
    const enum state_duty duty = state_push(*process, pid_generation(owner), call, &node->next);
    if (duty == STATE_CLOSED) {
        deliver_give_node(sched, worker, call);
    }
    return duty;
}

struct process *deliver_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                             uint32_t call)
{
    struct process *process;
    return push_call(sched, worker, owner, call, &process) == STATE_ENQUEUE ? process : NULL;
}

bool deliver_is_open(struct scheduler *sched, skua_completion completion)
{
    struct event_node *node = event_at(&sched->events, call_index(completion));
    return load_acquire(&node->guard) == call_guard(completion); /* MO-guard */
}

static int complete(struct scheduler *sched, struct worker *worker, skua_completion completion,
                    int error, const skua_payload *result)
{
    const uint32_t index = call_index(completion);
    struct process *process;
    const int found = process_table_find(&sched->table, completion.process, &process);
    if (found == SKUA_E_FOREIGN_PID) {
        return found;
    }
    if (found != 0 || !object_pool_holds(&sched->events, index)) {
        return SKUA_E_LATE;
    }
    struct event_node *node = event_at(&sched->events, index);
    if (!call_claim(node, call_guard(completion))) {
        return SKUA_E_LATE;
    }
    /* The call knows whose it is, whatever a made-up completion says. */
    const skua_pid owner = node->as.call.owner;
    call_disarm(&sched->deadlines, node, index);
    call_complete(node, error, result);
    const enum state_duty duty = push_call(sched, worker, owner, index, &process);
    if (duty == STATE_ENQUEUE) {
        submit_ready(sched, worker, process);
    }
    return duty != STATE_CLOSED ? 0 : SKUA_E_LATE;
}

int deliver_completion(struct scheduler *sched, struct worker *worker, skua_completion completion,
                       int error, skua_payload *result)
{
    const int outcome = complete(sched, worker, completion, error, result);
    if (outcome != 0) {
        skua_payload_drop(result);
    }
    if (outcome == SKUA_E_LATE) {
        STATS_COUNT(sched, worker, late_completions);
    }
    return outcome;
}
