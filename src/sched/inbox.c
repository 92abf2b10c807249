/* SPDX-License-Identifier: MIT */
#include "sched/inbox.h"

#include "dispatch/call.h"
#include "process/mailbox.h"
#include "process/payload.h"
#include "sched/abandon.h"
#include "sched/admission.h"
#include "sched/aside.h"
#include "sched/describe.h"
#include "sched/grouping.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/shedding.h"
#include "sched/signal.h"
#include "sched/timers.h"
#include "sched/urgent.h"
#include "sched/worker.h"

/* Events that are looked at in one turn: most of them may be put aside. */
#define LOOKS_MAX 256

/* Events put aside that are looked at again when one more waits there for room. */
#define SWEEP_LOOKS 4

/* `recalled` of a task that urgent messages come first for: they are at the front of the backlog,
 * and what it wants of the others is recalled when it wants none of them. No node. */
#define RECALL_LATER UINT32_MAX

static struct task *task_of(const struct process *process)
{
    return process->state.of_task.task;
}

/* ---- what a task wants ---- */

static bool receives_all(const struct task *task)
{
    return task == NULL || task->context.wait.kind == SKUA_WAIT_EVENT_;
}

/* Whether a task wants an event, as it would see it: a message, a call, a completion, a tick, an
 * abandon, an exit or a cancel that it receives. A process that serves and has no stack wants
 * everything. */
static bool wants_event(const struct task *task, const skua_event *event)
{
    if (receives_all(task)) {
        return true;
    }
    switch (task->context.wait.kind) {
    case SKUA_WAIT_TYPE_:
        return (event->type == SKUA_EVENT_MESSAGE || event->type == SKUA_EVENT_CALL) &&
               event->payload.type == task->wanted;
    case SKUA_WAIT_MATCH_:
        return task->match(task->match_arg, event);
    default:
        return false;
    }
}

/* Whether this is the completion of what the task waits for now, or the end of its time. */
static bool ends_wait(const struct task *task, uint64_t tag)
{
    return task != NULL && (tag == task->timer ||
                            (task->context.wait.kind == SKUA_WAIT_COMPLETION_ && tag == task->tag));
}

/* The same as wants_event, of an event in its node. */
static bool wants(const struct task *task, const struct event_node *node)
{
    skua_event event = node->as.event;
    event.type = event.type != EVENT_URGENT ? event.type : SKUA_EVENT_MESSAGE;
    event.type = event.type != EVENT_CALL_AGAIN ? event.type : SKUA_EVENT_CALL;
    if (event.type == SKUA_EVENT_CALL) { /* it cannot be answered yet */
        event.error = 0;
        event.request = (skua_request){0};
    } else if (event.type == SKUA_EVENT_COMPLETION || event.type == SKUA_EVENT_TICK) {
        event.from = (skua_pid){0};         /* where the links of a call are */
    } else if (event.type == EVENT_GROUP) { /* the news are drawn up when it is taken */
        event_make(&event, SKUA_EVENT_GROUP, 0);
        event.tag = node->as.event.tag;
    } else if (event.type == EVENT_ADMISSION) { /* a message, unless its sender gives up */
        event.type = SKUA_EVENT_MESSAGE;
        event.tag = 0;
    }
    return wants_event(task, &event);
}

/* The type changes when the function has returned. */
static bool is_recallable(const struct task *task, const struct event_node *node)
{
    return task == NULL ||
           (node->as.event.type != EVENT_UPGRADE && (receives_all(task) || wants(task, node)));
}

/* ---- messages put aside that wait for room ---- */

/* Looks again at an event that was put aside, after `previous`, and is not wanted. Returns it, or
 * `previous` if it has been released: the last that stays. */
static uint32_t look_again(struct worker *worker, struct process *process, uint32_t previous,
                           uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    if (LIKELY(event_at(events, index)->as.event.type != EVENT_ADMISSION)) {
        return index;
    }
    /* It may be free afterwards: out of the list first. */
    aside_take_out(events, process, previous, index);
    if (!admission_put_aside(worker, process, index)) {
        return previous;
    }
    aside_insert(events, process, previous, index);
    return index;
}

/* Another one is put aside. So that those whose senders have given up do not pile up while the task
 * waits for something else, it looks at a few that were there, in turns. */
static void sweep_aside(struct worker *worker, struct process *process)
{
    struct object_pool *events = &worker->sched->events;
    struct task *task = task_of(process);
    uint32_t previous = task->swept;
    for (uint32_t i = 0; i < SWEEP_LOOKS; i++) {
        const uint32_t index = previous == OBJECT_NONE ? process->state.of_task.aside
                                                       : event_at(events, previous)->next;
        if (index == OBJECT_NONE) {
            previous = OBJECT_NONE; /* from the beginning, with the next one */
            break;
        }
        previous = look_again(worker, process, previous, index);
    }
    task->swept = previous;
}

void inbox_recall(struct worker *worker, struct process *process, struct task *task)
{
    const struct object_pool *events = &worker->sched->events;
    uint32_t previous = OBJECT_NONE;
    uint32_t index = process->state.of_task.aside;
    while (index != OBJECT_NONE && !is_recallable(task, event_at(events, index))) {
        previous = look_again(worker, process, previous, index);
        index = previous == OBJECT_NONE ? process->state.of_task.aside
                                        : event_at(events, previous)->next;
    }
    if (index != OBJECT_NONE && urgent_is_first(events, process) &&
        !urgent_is(event_at(events, index))) {
        previous = OBJECT_NONE;
        index = RECALL_LATER;
    } else if (index != OBJECT_NONE) {
        aside_put_back(events, process, previous, index);
    }
    if (task != NULL) {
        task->recalled = index;
        task->recalled_after = previous;
    }
}

void inbox_give_way(const struct object_pool *events, struct process *process)
{
    struct task *task = task_of(process);
    const uint32_t index = process->backlog;
    const bool is_recalled =
        index != OBJECT_NONE &&
        (task != NULL ? task->recalled == index : process->state.of_task.aside != OBJECT_NONE);
    if (!is_recalled || urgent_is(event_at(events, index))) {
        return;
    }
    process->backlog = event_at(events, index)->next;
    aside_insert(events, process, task != NULL ? task->recalled_after : OBJECT_NONE, index);
    if (task != NULL) {
        task->recalled = RECALL_LATER;
    }
}

/* ---- finding an event ---- */

enum found {
    FOUND_NOTHING, /* go on */
    FOUND_ENOUGH,  /* the same, in the next turn */
    FOUND_EVENT,
    FOUND_END, /* the process ends */
};

static enum found found_event(struct delivery *delivery)
{
    delivery->count = 1;
    return FOUND_EVENT;
}

static enum found found_end(struct delivery *delivery, int error, skua_pid cause)
{
    delivery->cancelled = error;
    delivery->cause = cause;
    return FOUND_END;
}

static enum found found_special(struct delivery *delivery, enum skua_event_type type, int error)
{
    event_make(delivery->events, type, error);
    return found_event(delivery);
}

/* A cancel of a process whose type does not receive it. */
static enum found take_cancel(struct worker *worker, struct process *process,
                              struct delivery *delivery, int reason)
{
    struct task *task = task_of(process);
    if (task == NULL) {
        return found_end(delivery, reason,
                         reason == SKUA_E_STOPPED ? (skua_pid){0} : worker->context->self);
    }
    if (task->cancelled == 0) {
        task->cancelled = reason;
        task->flags |= TASK_CANCELLED;
    }
    return task->is_shielded ? FOUND_NOTHING : found_special(delivery, SKUA_EVENT_CANCEL, reason);
}

static bool is_told_by_waits(struct process *process, const struct event_node *node)
{
    return node->as.event.type == SKUA_EVENT_CANCEL && process_ends_when_cancelled(process);
}

/* Delivers an event that is in no node, or puts it aside. The node of the signal that it came from
 * has just been released, so there is one; without it the event would be lost. */
static enum found offer(struct worker *worker, struct process *process, struct delivery *delivery)
{
    uint32_t index;
    if (wants_event(task_of(process), delivery->events)) {
        return found_event(delivery);
    }
    if (event_acquire_owner(&worker->sched->events, &worker->caches.events, &index)) {
        event_at(&worker->sched->events, index)->as.event = delivery->events[0];
        aside_put(&worker->sched->events, process, index);
    }
    return FOUND_NOTHING;
}

static enum found take_signal(struct worker *worker, struct process *process, uint32_t index,
                              struct delivery *delivery)
{
    struct signal_end end;
    const uint32_t type = event_at(&worker->sched->events, index)->as.event.type;
    /* Those who look do not see themselves, of a socket its bytes say enough, and a bundle is no
     * event. */
    if (type != EVENT_DESCRIBE && type != EVENT_SOCKET && type != EVENT_UPGRADE &&
        type != EVENT_BUNDLE) {
        note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context->self, index);
    }
    switch (signal_take(worker, process, index, delivery->events, &end)) {
    case SIGNAL_ENDS:
        return found_end(delivery, end.error, end.cause);
    case SIGNAL_FILED:
        return FOUND_NOTHING;
    case SIGNAL_LONG:
        return FOUND_ENOUGH;
    case SIGNAL_EVENT:
        break;
    }
    return type == SKUA_EVENT_CALL || type == EVENT_CALL_AGAIN || type == EVENT_ADMISSION
               ? found_event(delivery)
               : offer(worker, process, delivery);
}

/* Takes an event, which stays in its node. */
static void take_event(struct worker *worker, struct process *process, uint32_t index,
                       struct delivery *delivery)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context->self, index);
    if (node->as.event.type == SKUA_EVENT_TICK) {
        timers_take_tick(worker, process, index, delivery->events);
        return;
    }
    if (node->as.event.type == EVENT_GROUP) {
        grouping_take(worker, process, index, delivery->events);
        return;
    }
    if (urgent_is(node)) {
        node->as.event.type = SKUA_EVENT_MESSAGE;
    }
    if (node->as.event.type == SKUA_EVENT_MESSAGE) {
        mailbox_consume_owner(process, 1);
    } else if (node->as.event.type == SKUA_EVENT_COMPLETION) {
        call_unlink_owner(events, process, node, index);
        node->as.event.from = (skua_pid){0}; /* where its links were */
    }
    delivery->events = &node->as.event;
    delivery->node = index;
}

/* Whether the event in a node is one that a task receives as it stands. Other signals act when they
 * are looked at; what comes of them is put aside as one that does. */
static bool is_received(const struct event_node *node)
{
    const uint32_t type = node->as.event.type;
    return type <= SKUA_EVENT_CHILD || type == SKUA_EVENT_BECOME || type == EVENT_GROUP ||
           type == EVENT_ADMISSION || type == EVENT_URGENT || type == EVENT_CALL_AGAIN;
}

/* The completion of a wait: of this one, or of one that is over. */
static enum found look_at_own(struct worker *worker, struct process *process, uint32_t index,
                              struct delivery *delivery)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    if (ends_wait(task_of(process), node->as.event.tag)) {
        take_event(worker, process, index, delivery);
        return found_event(delivery);
    }
    call_unlink_owner(events, process, node, index);
    skua_payload_drop(&node->as.event.payload);
    event_release_owner(events, &worker->caches.events, index);
    return FOUND_NOTHING;
}

/* `is_wanted`: that is known. */
static enum found look_at(struct worker *worker, struct process *process, uint32_t index,
                          bool is_wanted, struct delivery *delivery)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    if (node->as.event.type == EVENT_ABANDONED) {
        abandon_take(worker, node, index);
    }
    if (is_told_by_waits(process, node)) {
        const int reason = node->as.event.error;
        event_release_owner(events, &worker->caches.events, index);
        return take_cancel(worker, process, delivery, reason);
    }
    if (node->as.event.type == EVENT_UPGRADE && task_of(process) != NULL) {
        aside_put(events, process, index);
        return FOUND_NOTHING;
    }
    if (!is_received(node)) {
        return take_signal(worker, process, index, delivery);
    }
    if (node->as.event.type == SKUA_EVENT_COMPLETION && inbox_is_own(node->as.event.tag)) {
        return look_at_own(worker, process, index, delivery);
    }
    const bool is_waiting = node->as.event.type == EVENT_ADMISSION;
    if (!is_wanted && !wants(task_of(process), node)) {
        if (!is_waiting || admission_put_aside(worker, process, index)) {
            (urgent_is(node) ? aside_put_urgent : aside_put)(events, process, index);
        }
        if (UNLIKELY(is_waiting)) {
            sweep_aside(worker, process);
        }
        return FOUND_NOTHING;
    }
    if (node->as.event.type == SKUA_EVENT_CALL || node->as.event.type == EVENT_CALL_AGAIN ||
        is_waiting) {
        return take_signal(worker, process, index, delivery);
    }
    take_event(worker, process, index, delivery);
    return found_event(delivery);
}

/* Looks at the first event of the backlog. */
static enum found look_at_next(struct worker *worker, struct process *process,
                               struct delivery *delivery)
{
    const struct object_pool *events = &worker->sched->events;
    struct task *task = task_of(process);
    const uint32_t index = process->backlog;
    const bool is_recalled =
        task != NULL ? task->recalled == index : process->state.of_task.aside != OBJECT_NONE;
    process->backlog = event_at(events, index)->next;
    const enum found found = look_at(worker, process, index, is_recalled, delivery);
    const bool recalls = is_recalled || (task != NULL && task->recalled == RECALL_LATER);
    if (recalls && found == FOUND_NOTHING) {
        inbox_recall(worker, process, task);
    }
    return found;
}

/* The shutdown's cancel comes after everything that arrived before it. If the task does not want it
 * yet, it is due again when that waits for something else. */
static enum found take_stop(struct worker *worker, struct process *process,
                            struct delivery *delivery)
{
    struct task *task = task_of(process);
    process_set_progress_owner(process, process_progress(process) & ~PROCESS_CANCEL_DUE);
    if (process_ends_when_cancelled(process)) {
        return take_cancel(worker, process, delivery, SKUA_E_STOPPED);
    }
    event_make(delivery->events, SKUA_EVENT_CANCEL, SKUA_E_STOPPED);
    if (wants_event(task, delivery->events)) {
        return found_event(delivery);
    }
    task->is_stopping = true;
    return FOUND_NOTHING;
}

/* A task that has said so receives that it continues, when there is nothing else; unless it waits
 * for something else then. */
static bool may_continue(const struct task *task)
{
    return inbox_awaits_turn(task) || receives_all(task);
}

/* Whether a task that receives what is there has not yet seen all that was there when it began:
 * some events may have been left in the list, behind a backlog (take_news). They are taken once, as
 * others could keep arriving. */
static bool polls_on(struct process *process)
{
    struct task *task = task_of(process);
    if (task == NULL || !task->polls) {
        return false;
    }
    if (process->backlog != OBJECT_NONE) {
        return true;
    }
    const bool goes_on = !task->has_polled && state_has_news_owner(process);
    task->has_polled = true;
    return goes_on;
}

/* One of the tasks that were woken to be trimmed, if there is one left. */
static bool is_swept(struct scheduler *sched)
{
    uint32_t woken = load_relaxed(&sched->chores.woken); /* re-checked by the exchange */
    while (woken > 0) {
        if (cas_seq_cst(&sched->chores.woken, &woken, woken - 1)) { /* a count */
            return true;
        }
    }
    return false;
}

/* There is nothing for a task: it may have been woken to give back the memory below its stack
 * pointer (chores.c). Another that has nothing to do may be trimmed in its place. */
static void trim_if_swept(struct worker *worker, const struct process *process)
{
    struct scheduler *sched = worker->sched;
    const struct task *task = process->state.of_task.task;
    if (task == NULL || LIKELY(!is_swept(sched)) || sched->measures_stacks) {
        return;
    }
    const size_t bytes = stacks_trim_below(&sched->stacks, &task->stack, task->stack.peer);
    counter_add_owner(&worker->stats.trimmed_bytes, bytes);
    (void)fetch_add_relaxed(&sched->chores.swept, bytes); /* a hint */
}

/* Looks through what has arrived. */
static NOINLINE void find_event(struct worker *worker, struct process *process,
                                struct delivery *delivery, uint64_t progress)
{
    enum found found = FOUND_NOTHING;
    if (process_is_new(progress)) {
        (void)found_special(delivery, SKUA_EVENT_START, 0);
        return;
    }
    if (UNLIKELY((progress & PROCESS_TENDED) != 0)) {
        shedding_drop_old(worker, process);
    }
    for (uint32_t looks = 0;
         found == FOUND_NOTHING && process->backlog != OBJECT_NONE && looks < LOOKS_MAX; looks++) {
        found = look_at_next(worker, process, delivery);
    }
    found = found == FOUND_ENOUGH ? FOUND_NOTHING : found;
    if (found == FOUND_NOTHING && process->backlog == OBJECT_NONE &&
        (process_progress(process) & PROCESS_CANCEL_DUE) != 0) {
        found = take_stop(worker, process, delivery);
    }
    if (found == FOUND_NOTHING && (progress & PROCESS_CONTINUES) != 0 && !polls_on(process)) {
        process_set_progress_owner(process, process_progress(process) & ~PROCESS_CONTINUES);
        if (may_continue(task_of(process))) {
            (void)found_special(delivery, SKUA_EVENT_CONTINUE, 0);
        }
    }
    delivery->continues = found == FOUND_EVENT && (progress & PROCESS_CONTINUES) != 0 &&
                          !inbox_awaits_turn(task_of(process));
    if (delivery->count == 0 && delivery->cancelled == 0) {
        trim_if_swept(worker, process);
    }
    if (UNLIKELY((progress & PROCESS_TENDED) != 0)) {
        limits_settle(worker->sched, process);
    }
    if (delivery->count > 0) {
        describe_tell(worker); /* the inspector need not wait for the end of the step */
    }
}

/* Most tasks get a message that they wait for. */
void inbox_gather(struct worker *worker, struct process *process, struct delivery *delivery)
{
    const uint64_t progress = process_progress(process);
    const uint32_t first = process->backlog;
    delivery->events = worker->batch;
    delivery->count = 0;
    delivery->node = OBJECT_NONE;
    delivery->cancelled = 0;
    delivery->continues = false;
    delivery->trace = tracer_active(&worker->sched->tracer);
    if (LIKELY(first != OBJECT_NONE &&
               (progress & (PROCESS_CANCEL_DUE | PROCESS_CONTINUES | PROCESS_TENDED)) == 0)) {
        struct event_node *node = event_at(&worker->sched->events, first);
        if (LIKELY(node->as.event.type == SKUA_EVENT_MESSAGE && receives_all(task_of(process)))) {
            process->backlog = node->next;
            note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context->self, first);
            mailbox_consume_owner(process, 1);
            delivery->events = &node->as.event;
            delivery->node = first;
            delivery->count = 1;
            return;
        }
    }
    find_event(worker, process, delivery, progress);
}
