/* SPDX-License-Identifier: MIT */
/* After a step: hand its yields to their handlers and choose the next state. */
#include "dispatch/call.h"
#include "sched/note.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* Calls that completed at once, linked like an event list: newest first. */
struct finished_calls {
    uint32_t newest;
    struct event_node *oldest;
};

/* Runs the handler of a program's command. Returns what it returned; the result is in *result. */
static ALWAYS_INLINE int run_handler(struct worker *worker, struct yield *yield,
                                     skua_completion completion, uint64_t deadline,
                                     skua_payload *result)
{
    const skua_handler *handler = registry_find(worker->sched->registry, yield->command);
    if (UNLIKELY(handler == NULL)) {
        skua_payload_drop(&yield->as.payload);
        return SKUA_E_UNKNOWN_COMMAND;
    }
    skua_command command = {
        .id = yield->command,
        .runtime = worker->sched->runtime,
        .completion = completion,
        .input = yield->as.payload,
        .deadline = deadline,
    };
    const int outcome = handler->run(handler->arg, &command, result);
    skua_payload_drop(&command.input);
    return outcome <= SKUA_PENDING ? outcome : SKUA_E_INVALID;
}

/* Ends a call that this worker has claimed. */
static void finish_call(struct worker *worker, struct event_node *node, uint32_t index, int error,
                        const skua_payload *result, struct finished_calls *finished)
{
    call_disarm_owner(&worker->sched->deadlines, node, index);
    call_complete_owner(node, error, result);
    node->next = finished->newest;
    finished->newest = index;
    if (finished->oldest == NULL) {
        finished->oldest = node;
    }
}

/* Cancels the open calls with this tag. */
static void cancel_tag(struct worker *worker, struct process *process, uint64_t tag,
                       struct finished_calls *finished)
{
    const skua_payload nothing = skua_payload_empty(0);
    struct scheduler *sched = worker->sched;
    uint32_t index =
        call_first_owner(&sched->allocator, &sched->events, &worker->caches.events, process, tag);
    while (index != OBJECT_NONE) {
        struct event_node *node = event_at(&sched->events, index);
        const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
        node->as.call.previous |= CALL_ENDS;
        if (call_claim_any(node, guard)) {
            finish_call(worker, node, index, SKUA_E_CANCELLED, &nothing, finished);
        } /* otherwise its completion, or a ticker's tick, is on its way */
        index = call_next_owner(&sched->events, process, index, tag);
    }
}

/* Arms the timeout of a yield; returns the instant. */
static uint64_t arm_timeout(struct worker *worker, const struct yield *yield)
{
    const uint64_t now = time_now(worker->sched->time);
    const uint64_t deadline = time_after(now, yield->timeout);
    timers_arm(worker, yield->node,
               &(struct timing){.now = now, .when = deadline, .error = SKUA_E_TIMEOUT});
    return deadline;
}

static ALWAYS_INLINE int start(struct worker *worker, struct yield *yield,
                               skua_completion completion, uint64_t deadline, skua_payload *result)
{
    const struct service *service = service_of(worker->sched->services, yield);
    return service != NULL ? service->start(service->arg, worker, yield, completion, result)
                           : run_handler(worker, yield, completion, deadline, result);
}

/* Starts what a yield asks for. The timeout is armed before that: from then on anybody may complete
 * the call. One that is given no time needs no timer, which could fire before start returns. */
static int start_yield(struct worker *worker, struct yield *yield, skua_completion completion,
                       skua_payload *result)
{
    uint64_t deadline = SKUA_FOREVER;
    if (UNLIKELY(yield->timeout != SKUA_FOREVER)) {
        deadline = yield->timeout != 0 ? arm_timeout(worker, yield) : time_now(worker->sched->time);
    }
    return start(worker, yield, completion, deadline, result);
}

/* Ends a call whose yield was given no time and that is pending: what has not come by now is too
 * late. False if its completion was faster. */
static NOINLINE bool end_without_time(struct worker *worker, struct event_node *node,
                                      skua_completion completion, struct finished_calls *finished)
{
    const skua_payload nothing = skua_payload_empty(0);
    if (!call_claim_any(node, call_guard(completion))) {
        return false;
    }
    finish_call(worker, node, call_index(completion), SKUA_E_TIMEOUT, &nothing, finished);
    return true;
}

static void dispatch_one(struct worker *worker, struct process *process, struct yield *yield,
                         struct finished_calls *finished)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, yield->node);
    const skua_completion completion = call_open_owner(node, yield->node, worker->context->self);
    skua_payload result = skua_payload_empty(0);
    const int outcome = start_yield(worker, yield, completion, &result);
    if (outcome <= 0) {
        if (LIKELY(call_claim_any(node, call_guard(completion)))) {
            finish_call(worker, node, yield->node, outcome, &result, finished);
            return;
        }
        /* The handler completed it by a call before, or its time was up: that is on its way. */
        NOTE_COUNT(worker->sched, worker, late_completions);
    }
    skua_payload_drop(&result);
    if (UNLIKELY(yield->timeout == 0) && outcome == SKUA_PENDING &&
        end_without_time(worker, node, completion, finished)) {
        return;
    }
    call_link_owner(&worker->sched->allocator, events, process, yield->node);
}

/* Completions queue behind everything that has arrived, or a process that always yields would never
 * see a message. If nothing has arrived, that takes no atomic operation. */
static void queue_completions(struct worker *worker, struct process *process,
                              struct finished_calls *finished)
{
    if (LIKELY(process->backlog == OBJECT_NONE && !state_has_news_owner(process))) {
        process->backlog = event_reverse(&worker->sched->events, finished->newest);
        return;
    }
    const enum state_duty duty = state_push_any(process, pid_generation(worker->context->self),
                                                finished->newest, &finished->oldest->next);
    SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
}

/* A step without memory may have drawn on it. */
static void refill_reserve(struct step_output *out)
{
    if (UNLIKELY(out->reserve_count < STEP_RESERVE)) {
        step_output_fill_reserve(out);
    }
}

/* No yields are added meanwhile: the step has returned. */
static NOINLINE void dispatch_yields(struct worker *worker, struct process *process)
{
    struct step_output *out = &worker->out;
    struct finished_calls finished = {.newest = OBJECT_NONE};
    for (uint32_t i = 0; i < out->yield_count; i++) {
        struct yield *yield = &out->yields[i];
        if (UNLIKELY(yield->node == OBJECT_NONE)) {
            cancel_tag(worker, process, yield->cancels, &finished);
        } else {
            dispatch_one(worker, process, yield, &finished);
        }
    }
    if (finished.oldest != NULL) {
        queue_completions(worker, process, &finished);
    }
    refill_reserve(out);
}

/* Drops the yields of a step that has failed. */
static void discard_yields(struct worker *worker)
{
    struct step_output *out = &worker->out;
    for (uint32_t i = 0; i < out->yield_count; i++) {
        struct yield *yield = &out->yields[i];
        const struct service *service = service_of(worker->sched->services, yield);
        if (yield->node == OBJECT_NONE) {
            continue;
        }
        if (service == NULL) {
            skua_payload_drop(&yield->as.payload);
        } else if (service->discard != NULL) {
            service->discard(yield);
        }
        event_release_owner(out->events, out->event_cache, yield->node);
    }
    refill_reserve(out);
}

/* Ready -> Blocked if it has open calls, otherwise Idle. */
static ALWAYS_INLINE enum settlement rest(const struct worker *worker, struct process *process,
                                          uint64_t progress)
{
    if (process->backlog != OBJECT_NONE || UNLIKELY((progress & PROCESS_CANCEL_DUE) != 0)) {
        return AGAIN;
    }
    const uint32_t calls = LIKELY((progress & PROCESS_ANNEX) == 0)
                               ? process->calls
                               : *annex_calls(&worker->sched->events, process);
    const bool rests = state_rest_owner(process, calls != OBJECT_NONE ? STATE_BLOCKED : STATE_IDLE);
    return rests ? SETTLED : AGAIN;
}

enum settlement settle_rest(struct worker *worker, struct process *process)
{
    return rest(worker, process, process_progress(process));
}

enum settlement settle_output(struct worker *worker, struct process *process, int error)
{
    struct step_output *out = &worker->out;
    const bool is_done = out->status == STEP_DONE;
    if (UNLIKELY(error < 0 && !is_done)) {
        discard_yields(worker);
        exit_process(worker, process, error, NULL);
        return SETTLED;
    }
    if (out->yield_count > 0) {
        dispatch_yields(worker, process);
    }
    if (is_done) {
        exit_process(worker, process, 0, &out->result);
        return SETTLED;
    }
    const uint64_t progress = process_progress(process) & ~PROCESS_RUNS;
    if (out->status == STEP_CONTINUES) {
        process_set_progress_owner(process, progress | PROCESS_CONTINUES);
        return AGAIN;
    }
    process_set_progress_owner(process, progress);
    return rest(worker, process, progress);
}
