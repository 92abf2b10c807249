/* SPDX-License-Identifier: MIT */
#include "sched/defer.h"

#include "process/annex.h"
#include "process/mailbox.h"
#include "process/payload.h"
#include "sched/aside.h"
#include "sched/calls.h"
#include "sched/deliver.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/signal.h"
#include "sched/urgent.h"
#include "sched/worker.h"

/* ---- deferring ---- */

/* What a task has received and still has; null if this is none of that. */
static struct task_event *received_by_task(skua_context *ctx, const skua_event *event)
{
    struct task *task = CONTAINER_OF(ctx, struct task, context);
    if (task->received.event == event) {
        return &task->received;
    }
    return task->served.event == event ? &task->served : NULL;
}

/* Whether this is an event in its node: a step that has only one gets it there. */
static bool is_in_node(struct object_pool *events, const skua_event *event)
{
    const uint32_t index = object_pool_index_of(events, event);
    return index != OBJECT_NONE && event == &event_at(events, index)->as.event;
}

/* Whether this is one of the events of the step and not a copy, which would leave its payload with
 * two owners. How many there are is known only of a process that has deferred before. */
static bool is_of_step(struct worker *worker, const skua_event *event)
{
    const uintptr_t offset = (uintptr_t)event - (uintptr_t)worker->batch;
    const uint32_t count = worker->kept_count > 0 ? worker->kept_count : SKUA_EVENTS_PER_STEP;
    const bool is_in_batch = offset < count * sizeof *event && offset % sizeof *event == 0;
    return is_in_batch || (worker->kept_count == 0 && is_in_node(&worker->sched->events, event));
}

/* A node with a message of the step; OBJECT_NONE: there is no memory. */
static uint32_t take_node(struct worker *worker, skua_event *event)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t index = OBJECT_NONE;
    if (worker->kept_count > 0) {
        index = worker->kept[event - worker->batch];
        worker->kept[event - worker->batch] = OBJECT_NONE;
    }
    if (index == OBJECT_NONE && !event_acquire_owner(events, &worker->caches.events, &index)) {
        return OBJECT_NONE;
    }
    event_at(events, index)->as.event = *event;
    payload_mark_taken(&event->payload);
    return index;
}

/* The same for the process of a context: `received` if it is a task, otherwise null. A message that
 * had waited for room (admission.h) has no node any more. */
static int take_message(skua_context *ctx, struct task_event *received, skua_event *event,
                        uint32_t *index)
{
    if (!limits_return(ctx->sched, ctx->process)) {
        return SKUA_E_MESSAGE_QUOTA;
    }
    *index = received != NULL && received->node != OBJECT_NONE ? received->node
                                                               : take_node(ctx->worker, event);
    if (*index == OBJECT_NONE) {
        mailbox_consume_owner(ctx->process, 1);
        limits_settle_if_marked(ctx->sched, ctx->process);
        return SKUA_E_NO_MEMORY;
    }
    return 0;
}

static int take_call(skua_context *ctx, skua_event *event, uint32_t *index)
{
    const int error = calls_defer(ctx, event, index);
    if (error == 0) {
        payload_mark_taken(&event->payload);
    }
    return error;
}

static void append(const struct object_pool *events, struct wing *wing, uint32_t index)
{
    event_at(events, index)->next = OBJECT_NONE;
    if (wing->deferred == OBJECT_NONE) {
        wing->deferred = index;
    } else {
        event_at(events, wing->deferred_last)->next = index;
    }
    wing->deferred_last = index;
    wing->deferred_count++;
}

int defer_event(skua_context *ctx, skua_event *event)
{
    const bool is_task = process_is_task(process_type(ctx->process));
    struct task_event *received = is_task ? received_by_task(ctx, event) : NULL;
    uint32_t index;
    if (is_task ? received == NULL : !is_of_step(ctx->worker, event)) {
        return SKUA_E_INVALID;
    }
    if (event->type != SKUA_EVENT_MESSAGE && event->type != SKUA_EVENT_CALL) {
        return SKUA_E_INVALID;
    }
    if (event->payload.storage == SKUA_PAYLOAD_TAKEN) {
        return SKUA_E_TAKEN;
    }
    struct wing *wing = signal_wing(ctx->sched, ctx->worker, ctx->process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    const uint32_t payload_type = event->payload.type;
    const int error = event->type == SKUA_EVENT_CALL ? take_call(ctx, event, &index)
                                                     : take_message(ctx, received, event, &index);
    if (error != 0) {
        return error;
    }
    if (received != NULL) {
        received->event = NULL;
    }
    append(&ctx->sched->events, wing, index);
    process_set_progress_owner(ctx->process, process_progress(ctx->process) | PROCESS_DEFERS);
    note_send(ctx->sched, ctx->worker, ctx->self, ctx->self, index, payload_type);
    return 0;
}

/* ---- resuming ---- */

/* Takes all of them; `last` has no next. */
static uint32_t take_all(struct wing *wing, uint32_t *last)
{
    const uint32_t first = wing->deferred;
    *last = wing->deferred_last;
    wing->deferred = OBJECT_NONE;
    wing->deferred_count = 0;
    return first;
}

/* Where the urgent messages of the backlog end. There are some only if they did not fit in the
 * batch, or came one by one to a task. */
static uint32_t *behind_urgent(const struct object_pool *events, struct process *process)
{
    uint32_t *link = &process->backlog;
    while (*link != OBJECT_NONE && urgent_is(event_at(events, *link))) {
        link = &event_at(events, *link)->next;
    }
    return link;
}

static void put_in_front(const struct object_pool *events, uint32_t *link, struct wing *wing)
{
    uint32_t last;
    const uint32_t first = take_all(wing, &last);
    event_at(events, last)->next = *link;
    *link = first;
}

void defer_resume(const skua_context *ctx)
{
    const struct object_pool *events = &ctx->sched->events;
    struct wing *wing = annex_wing(events, ctx->process);
    uint32_t last;
    if (wing == NULL || wing->deferred == OBJECT_NONE) {
        return;
    }
    if (process_is_task(process_type(ctx->process))) {
        const uint32_t first = take_all(wing, &last);
        aside_resume(events, ctx->process, first, last);
    } else {
        put_in_front(events, behind_urgent(events, ctx->process), wing);
    }
}

void defer_end(const struct object_pool *events, struct process *process)
{
    struct wing *wing = annex_wing(events, process);
    if (wing != NULL && wing->deferred != OBJECT_NONE) {
        put_in_front(events, &process->backlog, wing);
    }
}
