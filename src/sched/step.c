/* SPDX-License-Identifier: MIT */
/* Running a process: take what has arrived, call its step, and settle what the step asked for. */
#include <string.h>

#include "base/assert.h"
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "process/payload.h"
#include "sched/abandon.h"
#include "sched/calls.h"
#include "sched/checkpoint.h"
#include "sched/context.h"
#include "sched/delivery.h"
#include "sched/describe.h"
#include "sched/inbox.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/shedding.h"
#include "sched/signal.h"
#include "sched/slice.h"
#include "sched/socket_hooks.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/tasks.h"
#include "sched/timers.h"
#include "sched/urgent.h"
#include "sched/worker.h"

/* Signals that are taken in one turn, fewer in models: most of them are no events for the step. */
#ifndef SIGNALS_MAX
#define SIGNALS_MAX 256
#endif

/* What there is for the step is not just the backlog. */
#define SPECIAL (PROCESS_CANCEL_DUE | PROCESS_CONTINUES | PROCESS_TENDED | PROCESS_DEFERS)

static void add_event(struct delivery *delivery, enum skua_event_type type, int error)
{
    event_make(&delivery->events[delivery->count++], type, error);
}

/* Takes the only event of the backlog, to be delivered in place. */
static ALWAYS_INLINE void take_one(struct worker *worker, struct process *process,
                                   struct event_node *node, uint32_t index, struct trace *trace)
{
    process->backlog = OBJECT_NONE;
    note_event_in(trace, worker, TRACE_TAKE, worker->context->self, index);
    if (LIKELY(node->as.event.type == SKUA_EVENT_MESSAGE)) {
        mailbox_consume_owner(process, 1);
    } else if (node->as.event.type == SKUA_EVENT_COMPLETION) {
        call_unlink_owner(&worker->sched->events, process, node, index);
    }
}

/* Delivers it. */
static ALWAYS_INLINE void gather_one(struct worker *worker, struct process *process,
                                     struct event_node *node, struct delivery *delivery)
{
    delivery->node = process->backlog;
    delivery->events = &node->as.event;
    delivery->count = 1;
    take_one(worker, process, node, delivery->node, delivery->trace);
}

/* Whether the batch ends before this event, at the front of the backlog: a cancel ends the process,
 * but not before the events that came before it have been handled. */
static bool gather_end(struct worker *worker, struct process *process, struct delivery *delivery,
                       const struct event_node *node)
{
    if (node->as.event.type != SKUA_EVENT_CANCEL || !process_ends_when_cancelled(process)) {
        return false;
    }
    if (delivery->count == 0) {
        const uint32_t index = process->backlog;
        delivery->cancelled = node->as.event.error;
        delivery->cause = worker->context->self;
        process->backlog = node->next;
        event_release_owner(&worker->sched->events, &worker->caches.events, index);
    }
    return true;
}

/* Takes a signal from the front of the backlog. Returns whether the batch ends before or with it:
 * the end of a linked process ends this one, but not before it has handled what came before; and
 * what came before a change of its type is for the old one. */
static NOINLINE bool gather_signal(struct worker *worker, struct process *process,
                                   struct delivery *delivery)
{
    const uint32_t index = process->backlog;
    const struct event_node *node = event_at(&worker->sched->events, index);
    struct signal_end end;
    if (delivery->count > 0 && signal_waits_for_step(worker->sched, node)) {
        return true;
    }
    process->backlog = node->next;
    if (node->as.event.type < EVENT_DESCRIBE) { /* what others have sent: not who looks */
        note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context->self, index);
    }
    switch (signal_take(worker, process, index, &delivery->events[delivery->count], &end)) {
    case SIGNAL_EVENT:
        delivery->count++;
        break;
    case SIGNAL_ENDS:
        delivery->cancelled = end.error;
        delivery->cause = end.cause;
        return true;
    case SIGNAL_LONG:
        return true; /* one of these in a turn */
    case SIGNAL_FILED:
        break;
    }
    return false;
}

/* If there is a step, the inspector need not wait for its end. Otherwise it is told when the
 * process rests again, so that it does not find it Ready the next time. */
static void tell_described(struct worker *worker, const struct delivery *delivery)
{
    if (delivery->count > 0) {
        describe_tell(worker);
    }
}

/* Takes messages from the front of the backlog, up to the first event of another kind; returns how
 * many. What it counts stays in registers: from store to load through memory would take longer than
 * all the rest. */
static ALWAYS_INLINE uint32_t gather_messages(struct worker *worker, struct process *process,
                                              struct delivery *delivery, uint32_t most, bool keeps)
{
    if (keeps || UNLIKELY(delivery->trace != NULL)) {
        return 0; /* that is for gather_events */
    }
    struct object_pool *events = &worker->sched->events;
    const uint32_t before = delivery->count;
    uint32_t index = process->backlog;
    uint32_t count = before;
    while (index != OBJECT_NONE && count < most) {
        const struct event_node *node = event_at(events, index);
        if (node->as.event.type != SKUA_EVENT_MESSAGE) {
            break;
        }
        const uint32_t next = node->next;
        delivery->events[count++] = node->as.event;
        event_release_owner(events, &worker->caches.events, index);
        index = next;
    }
    process->backlog = index;
    delivery->count = count;
    return count - before;
}

/* `keeps`: see gather_kept. */
static ALWAYS_INLINE void gather_events(struct worker *worker, struct process *process,
                                        struct delivery *delivery, uint32_t most, bool keeps)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t messages = 0;
    uint32_t signals = 0;
    while (signals < SIGNALS_MAX) {
        messages += gather_messages(worker, process, delivery, most, keeps);
        if (process->backlog == OBJECT_NONE || delivery->count >= most) {
            break;
        }
        const uint32_t index = process->backlog;
        struct event_node *node = event_at(events, index);
        uint32_t type = node->as.event.type;
        if (UNLIKELY(type >= SKUA_EVENT_CANCEL)) {
            if (type == EVENT_ABANDONED) {
                abandon_take(worker, node, index);
                type = SKUA_EVENT_COMPLETION;
            } else if (type == EVENT_URGENT) {
                node->as.event.type = type = SKUA_EVENT_MESSAGE;
                if (urgent_are_more_to_come(events, process, node)) {
                    most = delivery->count + 1;
                }
            } else if (type >= SKUA_EVENT_CALL) {
                if (gather_signal(worker, process, delivery)) {
                    break;
                }
                signals++;
                continue;
            } else if (gather_end(worker, process, delivery, node)) {
                break;
            }
        }
        process->backlog = node->next;
        note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context->self, index);
        skua_event *event = &delivery->events[delivery->count++];
        if (UNLIKELY(type == SKUA_EVENT_TICK)) {
            timers_take_tick(worker, process, index, event);
            continue;
        }
        if (type == SKUA_EVENT_COMPLETION) {
            call_unlink_owner(events, process, node, index);
        }
        messages += type == SKUA_EVENT_MESSAGE;
        *event = node->as.event;
        if (keeps && type == SKUA_EVENT_MESSAGE) {
            worker->kept[delivery->count - 1] = index;
        } else {
            event_release_owner(events, &worker->caches.events, index);
        }
    }
    mailbox_consume_owner(process, messages);
    tell_described(worker, delivery);
}

static NOINLINE void gather_batch(struct worker *worker, struct process *process,
                                  struct delivery *delivery, uint32_t most)
{
    gather_events(worker, process, delivery, most, false);
}

/* The same, and the nodes of messages stay where a step that defers finds them. */
static NOINLINE void gather_kept(struct worker *worker, struct process *process,
                                 struct delivery *delivery, uint32_t most)
{
    gather_events(worker, process, delivery, most, true);
}

/* The shutdown's cancel comes after everything that arrived before it. */
static void gather_stop(struct process *process, struct delivery *delivery)
{
    if (process_ends_when_cancelled(process)) {
        delivery->cancelled = delivery->count == 0 ? SKUA_E_STOPPED : 0;
        delivery->cause = (skua_pid){0}; /* nobody failed */
        return; /* otherwise it is still due when the step has handled the others */
    }
    add_event(delivery, SKUA_EVENT_CANCEL, SKUA_E_STOPPED);
    process_set_progress_owner(process, process_progress(process) & ~PROCESS_CANCEL_DUE);
}

/* A batch with events that nobody sent: START, first; CONTINUE and the shutdown's cancel, last, so
 * that a process that always continues can be cancelled. And those of a process that drops old
 * messages before. */
static void mix(struct worker *worker, struct process *process, struct delivery *delivery,
                uint64_t progress)
{
    const bool keeps = (progress & PROCESS_DEFERS) != 0;
    const uint32_t special = 2; /* at most: there is room for them even if the batch is full */
    const uint32_t room = SKUA_EVENTS_PER_STEP - special;
    if (process_is_new(progress)) {
        add_event(delivery, SKUA_EVENT_START, 0);
    }
    if (UNLIKELY((progress & PROCESS_TENDED) != 0)) {
        shedding_drop_old(worker, process);
    }
    if (process->backlog != OBJECT_NONE) {
        (keeps ? gather_kept : gather_batch)(worker, process, delivery,
                                             worker->events_max < room ? worker->events_max : room);
    }
    if (delivery->cancelled != 0) {
        return; /* a cancel that came before all else */
    }
    if (process->backlog == OBJECT_NONE && (progress & PROCESS_CANCEL_DUE) != 0) {
        gather_stop(process, delivery);
    }
    if (!process_is_new(progress) && (progress & PROCESS_CONTINUES) != 0 &&
        delivery->cancelled == 0) {
        add_event(delivery, SKUA_EVENT_CONTINUE, 0);
    }
    tell_described(worker, delivery);
}

static NOINLINE void gather_mixed(struct worker *worker, struct process *process,
                                  struct delivery *delivery, uint64_t progress)
{
    mix(worker, process, delivery, progress);
    if (UNLIKELY((progress & PROCESS_TENDED) != 0)) {
        limits_settle(worker->sched, process);
    }
}

/* All of a process that has deferred before. Its step has a turn of its own (turn_of_deferring), as
 * if there were none here. */
static NOINLINE void gather_deferring(struct worker *worker, struct process *process,
                                      struct delivery *delivery, uint64_t progress)
{
    if (process->backlog == OBJECT_NONE &&
        (progress & (PROCESS_CANCEL_DUE | PROCESS_CONTINUES)) == 0) {
        return;
    }
    memset(worker->kept, 0, sizeof worker->kept);
    gather_mixed(worker, process, delivery, progress);
    worker->kept_count = delivery->count;
    delivery->count = 0;
}

/* One request that comes alone, as those of a server do that has little to do. */
static NOINLINE void gather_call(struct worker *worker, struct process *process,
                                 struct delivery *delivery)
{
    const uint32_t index = process->backlog;
    process->backlog = OBJECT_NONE;
    note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context->self, index);
    delivery->count = calls_take_request(worker, process, index, delivery->events);
}

/* The same for news of a socket that come alone. What they bring is in the backlog then: most often
 * the completion of a read, which is delivered in place. Inline, as it returns here after a system
 * call, and the fewer functions do that, the better (base/system_call.h). */
static ALWAYS_INLINE void gather_socket(struct worker *worker, struct process *process,
                                        struct delivery *delivery)
{
    struct socket_hooks *sockets = worker->sched->sockets;
    const uint32_t signal = process->backlog;
    process->backlog = OBJECT_NONE;
    sockets->take(sockets, worker, process, signal);
    if (process->backlog == OBJECT_NONE) {
        return;
    }
    struct event_node *node = event_at(&worker->sched->events, process->backlog);
    if (LIKELY(node->next == OBJECT_NONE && node->as.event.type <= SKUA_EVENT_COMPLETION)) {
        gather_one(worker, process, node, delivery);
    } else {
        gather_batch(worker, process, delivery, worker->events_max);
    }
}

/* What turn_of_step does not find. */
static void gather(struct worker *worker, struct process *process, struct delivery *delivery)
{
    const uint64_t progress = process_progress(process);
    const uint32_t first = process->backlog;
    delivery->events = worker->batch;
    delivery->count = 0;
    delivery->node = OBJECT_NONE;
    delivery->cancelled = 0;
    delivery->trace = tracer_active(&worker->sched->tracer);
    if (UNLIKELY((progress & SPECIAL) != 0)) {
        ((progress & PROCESS_DEFERS) != 0 ? gather_deferring : gather_mixed)(worker, process,
                                                                             delivery, progress);
        return;
    }
    if (first == OBJECT_NONE) {
        return;
    }
    struct event_node *node = event_at(&worker->sched->events, first);
    if (node->next == OBJECT_NONE && node->as.event.type == SKUA_EVENT_CALL) {
        gather_call(worker, process, delivery);
    } else if (node->next == OBJECT_NONE && node->as.event.type == EVENT_SOCKET) {
        gather_socket(worker, process, delivery);
    } else {
        gather_batch(worker, process, delivery, worker->events_max);
    }
}

/* Drops the payloads that the step left in its events. */
static ALWAYS_INLINE void clean_up(struct worker *worker, const struct delivery *delivery)
{
    skua_event *event = delivery->events;
    uint32_t left = delivery->count; /* a step has one event at least */
    do {
        payload_drop_last(&event->payload);
        event++;
    } while (--left > 0);
    if (delivery->node != OBJECT_NONE) { /* that of the event, which was delivered in place */
        struct event_node *node = CONTAINER_OF(delivery->events, struct event_node, as.event);
        object_return_owner(&worker->sched->events, EVENT_LAYOUT, &worker->caches.events, node,
                            delivery->node);
    }
}

/* Once for steps and once for tasks, so that steps do not pay for the difference. */
static ALWAYS_INLINE int run_step(struct worker *worker, struct process *process,
                                  const struct delivery *delivery, bool is_task)
{
    process_set_progress_owner(process,
                               ((process_progress(process) + PROCESS_STEP_ONE) | PROCESS_RUNS) &
                                   ~PROCESS_CONTINUES);
    counter_add_owner(&worker->stats.steps, 1);
    skua_context *context = context_open(worker, CONTEXT_STEP);
    step_output_reset(&worker->out);
    /* Only simulations are observed, and their contexts are checked: one test for both, before the
     * step and after it, as what is known across it has to be stored. */
    struct observer *observer = worker->sched->observer;
    if (UNLIKELY(worker->is_checked) && observer != NULL) {
        observer->step_begins(observer, worker, delivery->events, delivery->count);
    }
    const skua_process_type *type = process_type(process);
    note_trace_in(delivery->trace, worker, TRACE_BEGIN, context->self, (uintptr_t)type,
                  delivery->count);
    const int outcome = is_task ? tasks_step(worker, process, delivery)
                                : type->step(process_state(process, type), context,
                                             delivery->events, delivery->count);
    const int error = LIKELY(outcome <= 0) ? outcome : SKUA_E_INVALID;
    context_close(worker);
    const char *where = UNLIKELY(delivery->trace != NULL) && is_task ? tasks_where(process) : NULL;
    note_trace_in(delivery->trace, worker, TRACE_END, context->self, (uintptr_t)where,
                  (uint32_t)error);
    observer = worker->sched->observer;
    if (UNLIKELY(worker->is_checked) && observer != NULL) {
        observer->step_ends(observer, worker);
    }
    spare_return(worker); /* a blocking section ends with its step */
    return error;
}

/* A process gets the shutdown's cancel event once, however often it is requested. `has_taken`: the
 * event list is in the backlog. */
static void accept_requests(struct worker *worker, struct process *process, uint32_t requests,
                            bool has_taken)
{
    uint64_t progress = process_progress(process);
    if ((requests & STATE_WATCHED) != 0) {
        progress |= PROCESS_WATCHED;
    }
    if ((requests & STATE_CANCEL) != 0 && (progress & PROCESS_CANCELLED) == 0) {
        progress |= PROCESS_CANCELLED | PROCESS_CANCEL_DUE;
    }
    process_set_progress_owner(process, progress);
    if ((requests & STATE_URGENT) != 0) {
        (has_taken ? urgent_sort : urgent_fetch)(worker, process);
    }
}

/* Appends the events just taken. The backlog holds at most one, the event that woke the process. */
static void add_to_backlog(struct worker *worker, struct process *process, uint32_t taken)
{
    const struct object_pool *events = &worker->sched->events;
    const uint32_t oldest = event_reverse(events, taken);
    if (process->backlog == OBJECT_NONE) {
        process->backlog = oldest;
        return;
    }
    struct event_node *first = event_at(events, process->backlog);
    SKUA_ASSERT(first->next == OBJECT_NONE); /* INV-6: what is older comes first */
    first->next = oldest;
}

/* The step of a process that defers: the nodes of its messages are kept until it is over. */
static NOINLINE enum settlement turn_of_deferring(struct worker *worker, struct process *process,
                                                  struct delivery *delivery)
{
    delivery->count = worker->kept_count;
    const int error = run_step(worker, process, delivery, false);
    for (uint32_t i = 0; i < delivery->count; i++) {
        if (worker->kept[i] != OBJECT_NONE) {
            event_release_owner(&worker->sched->events, &worker->caches.events, worker->kept[i]);
        }
    }
    clean_up(worker, delivery);
    worker->kept_count = 0;
    return settle_output(worker, process, error);
}

static NOINLINE enum settlement turn_without_step(struct worker *worker, struct process *process,
                                                  struct delivery *delivery)
{
    enum settlement settlement = SETTLED;
    if (worker->kept_count > 0) {
        return turn_of_deferring(worker, process, delivery);
    }
    if (delivery->cancelled == 0) {
        settlement = settle_rest(worker, process); /* only something that is not for the step */
    } else {
        exit_process(worker, process, delivery->cancelled, delivery->cause, NULL);
    }
    describe_tell(worker);
    return settlement;
}

/* A task takes what is delivered. */
static NOINLINE enum settlement turn_of_task(struct worker *worker, struct process *process)
{
    struct delivery delivery;
    inbox_gather(worker, process, &delivery);
    if (UNLIKELY(delivery.count == 0)) {
        return turn_without_step(worker, process, &delivery);
    }
    const int error = run_step(worker, process, &delivery, true);
    return settle_output(worker, process, error);
}

/* Whatever there is for the step. */
static NOINLINE enum settlement turn_of_any(struct worker *worker, struct process *process)
{
    struct delivery delivery;
    gather(worker, process, &delivery);
    if (UNLIKELY(delivery.count == 0)) {
        return turn_without_step(worker, process, &delivery);
    }
    const int error = run_step(worker, process, &delivery, false);
    clean_up(worker, &delivery);
    return settle_output(worker, process, error);
}

/* The only event of the backlog, which is delivered in place; or null: it is not so simple. */
static ALWAYS_INLINE struct event_node *find_one(struct worker *worker, struct process *process,
                                                 uint64_t progress)
{
    if (UNLIKELY((progress & SPECIAL) != 0) || process->backlog == OBJECT_NONE) {
        return NULL;
    }
    struct event_node *node = event_at(&worker->sched->events, process->backlog);
    const bool is_simple =
        node->next == OBJECT_NONE && node->as.event.type <= SKUA_EVENT_COMPLETION;
    return LIKELY(is_simple) ? node : NULL;
}

/* Most turns are for one event: this is the same as turn_of_any, but all of the delivery is in
 * registers. */
static ALWAYS_INLINE enum settlement turn_of_step(struct worker *worker, struct process *process)
{
    const uint64_t progress = process_progress(process);
    struct delivery one = {.events = worker->batch,
                           .count = 1,
                           .node = OBJECT_NONE,
                           .trace = tracer_active(&worker->sched->tracer)};
    struct event_node *node = find_one(worker, process, progress);
    if (node != NULL) {
        one.events = &node->as.event;
        one.node = process->backlog;
        take_one(worker, process, node, one.node, one.trace);
    } else if ((progress & SPECIAL) == PROCESS_CONTINUES && process->backlog == OBJECT_NONE) {
        event_make(worker->batch, process_is_new(progress) ? SKUA_EVENT_START : SKUA_EVENT_CONTINUE,
                   0);
    } else {
        return turn_of_any(worker, process);
    }
    const int error = run_step(worker, process, &one, false);
    clean_up(worker, &one);
    return settle_output(worker, process, error);
}

/* One turn with what take_news brought. */
static enum settlement turn(struct worker *worker, struct process *process, uint64_t news)
{
    const uint32_t requests = event_list_tag(news) & STATE_REQUESTS;
    const uint32_t taken = event_list_first(news);
    if (taken != OBJECT_NONE) {
        add_to_backlog(worker, process, taken);
    }
    if (UNLIKELY(requests != 0)) {
        accept_requests(worker, process, requests, taken != OBJECT_NONE);
        if ((requests & STATE_KILL) != 0) {
            exit_process(worker, process, SKUA_E_TERMINATED, worker->context->self, NULL);
            return SETTLED;
        }
    }
    if (UNLIKELY(process_is_task(process_type(process)))) {
        return turn_of_task(worker, process);
    }
    return turn_of_step(worker, process);
}

/* Takes what has arrived: the requests, and the events if they fit behind the backlog. They fit
 * behind one older event at most, since appending to more would mean walking to the end; and not
 * while the shutdown's cancel is due, which would never come if others kept arriving before it. */
static uint64_t take_news(struct worker *worker, struct process *process)
{
    if (!state_has_news_owner(process)) {
        return 0;
    }
    const uint32_t first = process->backlog;
    const bool fits =
        (first == OBJECT_NONE || event_at(&worker->sched->events, first)->next == OBJECT_NONE) &&
        (process_progress(process) & PROCESS_CANCEL_DUE) == 0;
    return fits ? state_take_owner(process) : state_take_requests_owner(process);
}

/* Whether an end that takes a while may go on: the process runs no step (INV-4), and its event list
 * is still open or closed already. */
static bool may_end(uint64_t progress, uint32_t tag)
{
    return (progress & PROCESS_RUNS) == 0 &&
           (state_of(tag) == STATE_READY || state_of(tag) == STATE_COMPLETE);
}

void step_run(struct worker *worker, struct process *process)
{
    const uint32_t tag = state_peek(process); /* it stays so, and of its generation */
    const uint64_t progress = process_progress(process);
    const bool is_ending = (progress & (PROCESS_ENDS | PROCESS_RUNS)) != 0; /* one test for both */
    SKUA_ASSERT(is_ending ? may_end(progress, tag) : state_of(tag) == STATE_READY); /* INV-3 */
    const skua_pid pid = process_table_pid(&worker->sched->table, process, state_generation(tag));
    context_set_process(worker, process, pid);
    store_release(&worker->running, pid.bits); /* MO-monitor */
    if (UNLIKELY(worker->is_pressed)) {
        worker->is_pressed = false;
    }
    if (UNLIKELY(is_ending)) {
        exit_go_on(worker, process);
        return;
    }
    if (UNLIKELY(!spawn_before_step(worker, process, pid))) {
        return;
    }
    uint32_t turns = 0;
    do {
        if (turn(worker, process, take_news(worker, process)) == SETTLED) {
            return;
        }
    } while (slice_goes_on(worker, process, ++turns));
    submit_unfinished(worker, process);
}
