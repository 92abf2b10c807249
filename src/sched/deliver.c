/* SPDX-License-Identifier: MIT */
#include "sched/deliver.h"

#include "base/mutex.h"
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "process/payload.h"
#include "sched/abandon.h"
#include "sched/note.h"
#include "sched/worker.h"

/* A process with more waiting messages than this cannot keep up with its senders. */
#define CROWDED (4 * SKUA_EVENTS_PER_STEP)

bool deliver_acquire_node_outside(struct scheduler *sched, uint32_t *index)
{
    mutex_lock(&sched->outside.lock);
    const bool taken = event_acquire_owner(&sched->events, &sched->outside.caches.events, index);
    mutex_unlock(&sched->outside.lock);
    return taken;
}

void deliver_release_node(struct scheduler *sched, struct worker *worker, uint32_t index)
{
    if (worker != NULL) {
        event_release_owner(&sched->events, &worker->caches.events, index);
        return;
    }
    mutex_lock(&sched->outside.lock);
    event_release_owner(&sched->events, &sched->outside.caches.events, index);
    mutex_unlock(&sched->outside.lock);
}

/* Pushes a filled node and wakes the process if it waits. False if the process is gone. */
static bool push_event(struct scheduler *sched, struct worker *worker,
                       const struct prepared_event *event)
{
    switch (state_push_any(event->process, event->generation, event->index, &event->node->next)) {
    case STATE_ENQUEUE:
        submit_ready(sched, worker, event->process);
        return true;
    case STATE_DONE:
        return true;
    case STATE_CLOSED:
        break;
    }
    return false;
}

/* Builds the event of a message; reserves no place in the mailbox. Inline: sending is the one path
 * that must not pay for being split into functions. */
ALWAYS_INLINE static int make_message(struct scheduler *sched, struct worker *worker, skua_pid from,
                                      skua_pid to, const skua_payload *payload,
                                      struct prepared_event *event)
{
    const int refused = payload_refuse(payload, sched->config.payload_limit);
    if (UNLIKELY(refused != 0)) {
        return refused;
    }
    const int error = process_table_find_live(&sched->table, to, &event->process);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(!deliver_acquire_node(sched, worker, &event->index))) {
        return SKUA_E_NO_MEMORY;
    }
    event->generation = pid_generation(to);
    event->node = event_at(&sched->events, event->index);
    skua_event *content = &event->node->as.event;
    content->type = SKUA_EVENT_MESSAGE;
    content->error = 0;
    content->tag = 0;
    content->from = from;
    payload_put(&content->payload, payload);
    event->is_message = true;
    return 0;
}

/* Gives a message to a process that runs or is about to run. Returns 0, or an error if it has ended
 * meanwhile or its mailbox is full. */
static int add_message(struct scheduler *sched, struct worker *worker,
                       const struct prepared_event *event)
{
    if (UNLIKELY(!mailbox_reserve_any(event->process))) {
        return SKUA_E_MAILBOX_FULL;
    }
    if (UNLIKELY(!push_event(sched, worker, event))) {
        mailbox_unreserve_any(event->process);
        return SKUA_E_NO_PROCESS;
    }
    if (worker != NULL && mailbox_length(event->process) > CROWDED) {
        worker->is_pressed = true; /* back-pressure: ends the sender's pick */
    }
    return 0;
}

int deliver_message(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    skua_payload *payload)
{
    struct prepared_event event;
    int error = make_message(sched, worker, from, to, payload, &event);
    if (UNLIKELY(error != 0)) {
        goto refused;
    }
    note_send(sched, worker, from, to, event.index, payload->type);
    if (LIKELY(mailbox_has_room(event.process)) &&
        state_wake_any(event.process, event.generation, event.index, &event.node->next)) {
        submit_ready(sched, worker, event.process);
    } else {
        error = add_message(sched, worker, &event);
        if (UNLIKELY(error != 0)) {
            deliver_release_node(sched, worker, event.index);
            goto refused;
        }
    }
    NOTE_COUNT(sched, worker, messages);
    payload_mark_taken(payload);
    return 0;

refused:
    payload_discard(payload);
    return error;
}

int deliver_prepare(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    const skua_payload *payload, struct prepared_event *prepared)
{
    const int error = make_message(sched, worker, from, to, payload, prepared);
    if (error != 0) {
        return error;
    }
    if (!mailbox_reserve_any(prepared->process)) {
        deliver_release_node(sched, worker, prepared->index);
        return SKUA_E_MAILBOX_FULL;
    }
    return 0;
}

bool deliver_prepared(struct scheduler *sched, struct worker *worker,
                      const struct prepared_event *prepared)
{
    const bool pushed = push_event(sched, worker, prepared);
    if (!pushed) {
        if (prepared->is_message) {
            mailbox_unreserve_any(prepared->process);
        }
        deliver_release_node(sched, worker, prepared->index);
    } else if (prepared->is_message) {
        NOTE_COUNT(sched, worker, messages);
    }
    return pushed;
}

int deliver_prepare_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason,
                           struct prepared_event *prepared)
{
    const int error = process_table_find_live(&sched->table, to, &prepared->process);
    if (error != 0) {
        return error;
    }
    if (!deliver_acquire_node(sched, worker, &prepared->index)) {
        return SKUA_E_NO_MEMORY;
    }
    prepared->generation = pid_generation(to);
    prepared->node = event_at(&sched->events, prepared->index);
    prepared->node->as.event =
        (skua_event){.type = SKUA_EVENT_CANCEL, .error = reason, .payload = skua_payload_empty(0)};
    prepared->is_message = false;
    return 0;
}

int deliver_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason)
{
    struct prepared_event prepared;
    const int error = deliver_prepare_cancel(sched, worker, to, reason, &prepared);
    if (error != 0) {
        return error;
    }
    return deliver_prepared(sched, worker, &prepared) ? 0 : SKUA_E_NO_PROCESS;
}

int deliver_request(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t request)
{
    struct process *process;
    const int error = process_table_find(&sched->table, to, &process);
    if (error != 0) {
        return error;
    }
    switch (state_request_any(process, pid_generation(to), request)) {
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

/* Releases the node if the process is gone. */
static enum state_duty push_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                                 uint32_t call, struct process **process)
{
    struct event_node *node = event_at(&sched->events, call);
    *process = process_at(&sched->table, pid_slot(owner));
    const enum state_duty duty = state_push_any(*process, pid_generation(owner), call, &node->next);
    if (duty == STATE_CLOSED) {
        if (UNLIKELY(node->as.event.type == EVENT_ABANDONED)) {
            abandon_refused(sched, owner, node, call);
        }
        deliver_release_node(sched, worker, call);
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

/* Once it has claimed the call, the completion is accepted: if the process ends just then, it is
 * dropped with the process's other events, as it were. */
static int complete(struct scheduler *sched, struct worker *worker, skua_completion completion,
                    int error, skua_payload *result)
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
    if (!call_claim_any(node, call_guard(completion))) {
        return SKUA_E_LATE;
    }
    /* The call knows its owner, whatever a forged completion says. */
    const skua_pid owner = node->as.call.owner;
    call_disarm_owner(&sched->deadlines, node, index);
    note_event(sched, worker, TRACE_COMPLETE, owner, index);
    call_complete_owner(node, error, result);
    const enum state_duty duty = push_call(sched, worker, owner, index, &process);
    if (duty == STATE_ENQUEUE) {
        submit_ready(sched, worker, process);
    }
    if (UNLIKELY(duty == STATE_CLOSED)) {
        skua_payload_drop(result);
    }
    return 0;
}

int deliver_completion(struct scheduler *sched, struct worker *worker, skua_completion completion,
                       int error, skua_payload *result)
{
    const int outcome = complete(sched, worker, completion, error, result);
    if (outcome != 0) {
        skua_payload_drop(result);
    }
    if (outcome == SKUA_E_LATE) {
        NOTE_COUNT(sched, worker, late_completions);
    }
    return outcome;
}
