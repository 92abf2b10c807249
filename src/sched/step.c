/* SPDX-License-Identifier: MIT */
/* Running a process: take what has arrived, call its step, and settle what the step asked for. */
#include "base/assert.h"
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "sched/note.h"
#include "sched/spare.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* The events of one step: copies in the worker's batch or, for a single event, the event inside its
 * node, which is released after the step. */
struct delivery {
    skua_event *events;
    uint32_t count;
    uint32_t node;
    struct trace *trace; /* null: nobody traces */
};

/* Takes the oldest event off the backlog. */
static struct event_node *shift_backlog(struct worker *worker, struct process *process,
                                        uint32_t *index)
{
    struct object_pool *events = &worker->sched->events;
    *index = process->backlog;
    struct event_node *node = event_at(events, *index);
    process->backlog = node->next;
    if (node->as.event.type == SKUA_EVENT_COMPLETION) {
        call_unlink_owner(events, process, node, *index);
    }
    return node;
}

/* Delivers the only event of the backlog in place. */
static void gather_one(struct worker *worker, struct process *process, struct event_node *node,
                       struct delivery *delivery)
{
    delivery->node = process->backlog;
    delivery->events = &node->as.event;
    delivery->count = 1;
    process->backlog = OBJECT_NONE;
    note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context.self, delivery->node);
    if (LIKELY(node->as.event.type == SKUA_EVENT_MESSAGE)) {
        mailbox_consume_owner(process, 1);
    } else if (node->as.event.type == SKUA_EVENT_COMPLETION) {
        call_unlink_owner(&worker->sched->events, process, node, delivery->node);
    }
}

/* A tick is copied, and its node becomes the open call of the next tick; unless the ticker was
 * cancelled meanwhile, in which case this is its completion. */
static void gather_tick(struct worker *worker, struct process *process, struct event_node *node,
                        uint32_t index, skua_event *event)
{
    const uint64_t *words = node->as.event.payload.as.words;
    const bool ends = (node->as.call.previous & CALL_ENDS) != 0;
    *event = node->as.event;
    event->from = (skua_pid){0}; /* the call's links overlay it */
    if (UNLIKELY(ends)) {
        const skua_payload nothing = skua_payload_empty(0);
        event->type = SKUA_EVENT_COMPLETION;
        event->error = SKUA_E_CANCELLED;
        event->payload = nothing;
        call_unlink_owner(&worker->sched->events, process, node, index);
        event_release_owner(&worker->sched->events, &worker->caches.events, index);
        return;
    }
    event->payload.as.words[TICK_PERIOD] = 0; /* internal */
    timers_tick_again(worker, index, words[TICK_TIME], words[TICK_PERIOD]);
}

static NOINLINE void gather_batch(struct worker *worker, struct process *process,
                                  struct delivery *delivery, uint32_t most)
{
    uint32_t messages = 0;
    while (process->backlog != OBJECT_NONE && delivery->count < most) {
        uint32_t index;
        struct event_node *node = shift_backlog(worker, process, &index);
        skua_event *event = &delivery->events[delivery->count++];
        note_event_in(delivery->trace, worker, TRACE_TAKE, worker->context.self, index);
        if (UNLIKELY(node->as.event.type == SKUA_EVENT_TICK)) {
            gather_tick(worker, process, node, index, event);
            continue;
        }
        messages += node->as.event.type == SKUA_EVENT_MESSAGE;
        *event = node->as.event;
        event_release_owner(&worker->sched->events, &worker->caches.events, index);
    }
    mailbox_consume_owner(process, messages);
}

/* The shutdown's cancel event comes after everything that arrived before it. */
static void gather_cancel(struct worker *worker, struct process *process, struct delivery *delivery)
{
    const uint32_t most = worker->events_max;
    gather_batch(worker, process, delivery, most > 1 ? most - 1 : 1); /* room for it */
    if (process->backlog != OBJECT_NONE) {
        return;
    }
    delivery->events[delivery->count++] = (skua_event){
        .type = SKUA_EVENT_CANCEL, .error = SKUA_E_STOPPED, .payload = skua_payload_empty(0)};
    process_set_progress_owner(process, process_progress(process) & ~PROCESS_CANCEL_DUE);
}

static void gather(struct worker *worker, struct process *process, struct delivery *delivery)
{
    delivery->events = worker->batch;
    delivery->count = 0;
    delivery->node = OBJECT_NONE;
    delivery->trace = tracer_active(&worker->sched->tracer);
    if (UNLIKELY((process_progress(process) & PROCESS_CANCEL_DUE) != 0)) {
        gather_cancel(worker, process, delivery);
        return;
    }
    const uint32_t first = process->backlog;
    if (first == OBJECT_NONE) {
        return;
    }
    struct event_node *node = event_at(&worker->sched->events, first);
    if (LIKELY(node->next == OBJECT_NONE && node->as.event.type != SKUA_EVENT_TICK)) {
        gather_one(worker, process, node, delivery);
    } else {
        gather_batch(worker, process, delivery, worker->events_max);
    }
}

/* Drops the payloads that the step left in its events. */
static void clean_up(struct worker *worker, const struct delivery *delivery)
{
    for (uint32_t i = 0; i < delivery->count; i++) {
        skua_payload_drop(&delivery->events[i].payload);
    }
    if (delivery->node != OBJECT_NONE) {
        event_release_owner(&worker->sched->events, &worker->caches.events, delivery->node);
    }
}

static int run_step(struct worker *worker, struct process *process, const struct delivery *delivery)
{
    process_set_progress_owner(process,
                               ((process_progress(process) + PROCESS_STEP_ONE) | PROCESS_RUNS) &
                                   ~PROCESS_CONTINUES);
    counter_add_owner(&worker->stats.steps, 1);
    worker->context.now = 0;
    worker->context.random_calls = 0;
    step_output_reset(&worker->out);
    struct observer *observer = worker->sched->observer;
    if (UNLIKELY(observer != NULL)) {
        observer->step_begins(observer, worker, delivery->events, delivery->count);
    }
    const skua_process_type *type = process_type(process);
    note_trace_in(delivery->trace, worker, TRACE_BEGIN, worker->context.self, (uintptr_t)type,
                  delivery->count);
    const int error = type->step(process_state(process, type), &worker->context, delivery->events,
                                 delivery->count, &worker->out);
    worker->out.open = false;
    note_trace_in(delivery->trace, worker, TRACE_END, worker->context.self, 0,
                  (uint32_t)(error < 0 ? error : 0));
    if (UNLIKELY(observer != NULL)) {
        observer->step_ends(observer, worker);
    }
    spare_return(worker); /* a blocking section ends with its step */
    return error;
}

/* A process gets the shutdown's cancel event once, however often it is requested. */
static void accept_requests(struct process *process, uint32_t requests)
{
    uint64_t progress = process_progress(process);
    if ((requests & STATE_WATCHED) != 0) {
        progress |= PROCESS_WATCHED;
    }
    if ((requests & STATE_CANCEL) != 0 && (progress & PROCESS_CANCELLED) == 0) {
        progress |= PROCESS_CANCELLED | PROCESS_CANCEL_DUE;
    }
    process_set_progress_owner(process, progress);
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

/* One turn with what take_news brought. */
static enum settlement turn(struct worker *worker, struct process *process, uint64_t news)
{
    const uint32_t requests = event_list_tag(news) & STATE_REQUESTS;
    const uint32_t taken = event_list_first(news);
    if (taken != OBJECT_NONE) {
        add_to_backlog(worker, process, taken);
    }
    if (UNLIKELY(requests != 0)) {
        accept_requests(process, requests);
    }
    if (UNLIKELY((requests & STATE_KILL) != 0)) {
        exit_process(worker, process, SKUA_E_TERMINATED, NULL);
        return SETTLED;
    }
    struct delivery delivery;
    gather(worker, process, &delivery);
    if (UNLIKELY(delivery.count == 0 && (process_progress(process) & PROCESS_CONTINUES) == 0)) {
        return settle_rest(process); /* only a request that is not for the step */
    }
    const int error = run_step(worker, process, &delivery);
    clean_up(worker, &delivery);
    return settle_output(worker, process, error);
}

/* Takes what has arrived: the requests, and the events if they fit behind the backlog. They fit
 * behind one older event at most, since appending to more would mean walking to the end; and not
 * while a cancel event is due, which would never come if others kept arriving before it. */
static uint64_t take_news(struct worker *worker, struct process *process)
{
    if (!state_has_news_owner(process)) {
        return 0;
    }
    const uint32_t first = process->backlog;
    const bool fits =
        first == OBJECT_NONE || (event_at(&worker->sched->events, first)->next == OBJECT_NONE &&
                                 (process_progress(process) & PROCESS_CANCEL_DUE) == 0);
    return fits ? state_take_owner(process) : state_take_requests_owner(process);
}

void step_run(struct worker *worker, struct process *process)
{
    const uint32_t tag = state_peek(process);  /* it stays Ready, and of its generation */
    SKUA_ASSERT(state_of(tag) == STATE_READY); /* INV-3 */
    SKUA_ASSERT((process_progress(process) & PROCESS_RUNS) == 0); /* INV-4 */
    worker->context.process = process;
    worker->context.self = process_table_pid(&worker->sched->table, process, state_generation(tag));
    store_release(&worker->running, worker->context.self.bits); /* MO-monitor */
    for (worker->turns_left = worker->turns_max; worker->turns_left > 0; worker->turns_left--) {
        if (turn(worker, process, take_news(worker, process)) == SETTLED) {
            return;
        }
    }
    submit_unfinished(worker, process);
}
