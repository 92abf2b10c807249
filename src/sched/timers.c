/* SPDX-License-Identifier: MIT */
#include "sched/timers.h"

#include "dispatch/call.h"
#include "sched/deliver.h"
#include "sched/note.h"
#include "sched/poll.h"
#include "sched/worker.h"

/* Calls that are ended together. */
#define FIRE_BATCH 64
/* Batches that may be moved down a level without finding a due call before other work gets a turn:
 * a million timers can come down from a higher level together. */
#define PORTIONS_MAX 16

uint64_t timers_next(struct scheduler *sched)
{
    return deadlines_next_of_all(&sched->deadlines, scheduler_threads(sched));
}

void timers_correct_next(struct worker *worker)
{
    deadlines_correct_any(&worker->sched->deadlines, worker->index);
}

void timers_arm(struct worker *worker, uint32_t call, const struct timing *timing)
{
    struct scheduler *sched = worker->sched;
    struct event_node *node = event_at(&sched->events, call);
    if (timing->when == UINT64_MAX) {
        return; /* never due */
    }
    node->as.call.error = timing->error;
    if (timing->error != 0) {
        node->as.call.listener = timing->listener;
    } else {
        node->as.call.period = timing->period;
    }
    const bool is_earlier =
        timing->is_unlikely
            ? deadlines_put_beside_owner(&sched->deadlines, worker->index, call, timing->when)
            : deadlines_arm_any(&sched->deadlines, worker->index, call, timing->when, timing->now);
    if (UNLIKELY(is_earlier)) {
        poll_publish(sched, worker, timing->when);
    }
}

static void tick_again(struct worker *worker, uint32_t call, uint64_t last, uint64_t period)
{
    struct event_node *node = event_at(&worker->sched->events, call);
    node->next = call_subject(SERVICE_TICKER + 1, 0); /* it was in a list as a tick */
    (void)call_reopen_owner(node, call, worker->context->self);
    timers_arm(worker, call,
               &(struct timing){.now = last, .when = time_after(last, period), .period = period});
}

void timers_take_tick(struct worker *worker, struct process *process, uint32_t index,
                      skua_event *event)
{
    struct event_node *node = event_at(&worker->sched->events, index);
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
    tick_again(worker, index, words[TICK_TIME], words[TICK_PERIOD]);
}

/* Turns a call into a tick, which says how many periods have passed and when the last one did. */
static void make_tick(struct event_node *node, uint64_t when, uint64_t period, uint64_t now)
{
    const uint64_t more = now > when ? (now - when) / period : 0;
    node->as.event.type = SKUA_EVENT_TICK;
    node->as.event.payload.type = 0;
    node->as.event.payload.storage = SKUA_PAYLOAD_INLINE;
    node->as.event.payload.inline_size = 2 * sizeof(uint64_t);
    node->as.event.payload.as.words[TICK_COUNT] = 1 + more;
    node->as.event.payload.as.words[TICK_TIME] = when + more * period;
}

/* Returns the process if it has become Ready: the caller must submit it. */
static struct process *fire(struct scheduler *sched, struct worker *worker,
                            const struct wheel_due *due, uint64_t now)
{
    struct event_node *node = event_at(&sched->events, due->index);
    const skua_pid owner = node->as.call.owner;
    const int error = node->as.call.error;
    const uint64_t period = error == 0 ? node->as.call.period : 0;
    if (period != 0) {
        make_tick(node, due->when, period, now);
    } else {
        const skua_payload nothing = skua_payload_empty(0);
        const skua_handler *listener = error != 0 ? node->as.call.listener : NULL;
        call_complete_owner(node, error, &nothing);
        call_mark_abandoned_owner(node, listener);
    }
    NOTE_COUNT(sched, worker, timers);
    note_event(sched, worker, TRACE_TIMER, owner, due->index);
    return deliver_call(sched, worker, owner, due->index);
}

/* Fires in the order given, which is that of time (deadlines.h says when not), so that a process
 * sees its timers in that order. The last process is submitted first, because a worker runs what
 * was submitted last. */
static void fire_batch(struct scheduler *sched, struct worker *worker, const struct wheel_due *due,
                       uint32_t count, uint64_t now)
{
    struct process *ready[FIRE_BATCH];
    uint32_t ready_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct process *process = fire(sched, worker, &due[i], now);
        if (process != NULL) {
            ready[ready_count++] = process;
        }
    }
    while (ready_count > 0) {
        submit_ready(sched, worker, ready[--ready_count]);
    }
}

void timers_fire(struct scheduler *sched, struct worker *worker, uint32_t wheel, uint64_t now)
{
    struct wheel_due due[FIRE_BATCH];
    uint32_t count = 0;
    for (uint32_t i = 0; i < PORTIONS_MAX && count == 0; i++) {
        if (deadlines_next(&sched->deadlines, wheel) > now) {
            return;
        }
        count = deadlines_collect_any(&sched->deadlines, wheel, now, due, FIRE_BATCH);
    }
    fire_batch(sched, worker, due, count, now);
}

void timers_fire_all(struct scheduler *sched, struct worker *worker, uint64_t now)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        timers_fire(sched, worker, i, now);
    }
}
