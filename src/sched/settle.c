/* SPDX-License-Identifier: MIT */
/* After a step: hand its yields to their handlers and choose the next state. */
#include "dispatch/call.h"
#include "relations/request.h"
#include "sched/checkpoint.h"
#include "sched/children.h"
#include "sched/naming.h"
#include "sched/note.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* A timeout from here on is unlikely to pass, and what cheap_clock.h may be wrong by is little
 * beside it. */
#define LONG_TIMEOUT_NS UINT64_C(1000000000)

/* Calls that completed at once, linked like an event list: newest first. */
struct finished_calls {
    uint32_t newest;
    struct event_node *oldest;
};

/* Runs the handler of a program's command. Returns what it returned; the result is in *result. */
static ALWAYS_INLINE int run_handler(struct worker *worker, const skua_handler *handler,
                                     struct yield *yield, skua_completion completion,
                                     uint64_t deadline, skua_payload *result)
{
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

/* Ends a call that this worker has claimed and nobody has completed. `listener` is to be told. */
static void end_call(struct worker *worker, struct event_node *node, uint32_t index, int error,
                     const skua_handler *listener, struct finished_calls *finished)
{
    const skua_payload nothing = skua_payload_empty(0);
    finish_call(worker, node, index, error, &nothing, finished);
    call_mark_abandoned_owner(node, listener);
}

/* The handler that is to be told of the end of a call that the process lists, or null. */
static const skua_handler *listener_to(const struct event_node *node)
{
    return (node->as.call.previous & CALL_TELLS) != 0 ? node->as.call.listener : NULL;
}

/* Cancels the open calls with this tag. */
static void cancel_tag(struct worker *worker, struct process *process, uint64_t tag,
                       struct finished_calls *finished)
{
    struct scheduler *sched = worker->sched;
    uint32_t index =
        call_first_owner(&sched->allocator, &sched->events, &worker->caches.events, process, tag);
    while (index != OBJECT_NONE) {
        struct event_node *node = event_at(&sched->events, index);
        const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
        node->as.call.previous |= CALL_ENDS;
        if (call_claim_any(node, guard)) {
            end_call(worker, node, index, SKUA_E_CANCELLED, listener_to(node), finished);
        } /* otherwise its completion, or a ticker's tick, is on its way */
        index = call_next_owner(&sched->events, process, index, tag);
    }
}

/* The handler of a program's command, or null. */
static ALWAYS_INLINE const skua_handler *handler_of(const struct scheduler *sched,
                                                    const struct yield *yield)
{
    return yield->command < SKUA_COMMAND_RESERVED ? registry_find(sched->registry, yield->command)
                                                  : NULL;
}

static ALWAYS_INLINE bool asks_process(const struct yield *yield)
{
    return yield->command == service_command(SERVICE_CALL);
}

/* Who wants to hear if the yield is abandoned: its handler, or the process that it calls; or
 * null. */
static ALWAYS_INLINE const skua_handler *
listener_of(const struct worker *worker, const skua_handler *handler, const struct yield *yield)
{
    if (UNLIKELY(asks_process(yield))) {
        const uint32_t request = yield->as.peer.node;
        return request_listener(event_at(&worker->sched->events, request), request);
    }
    return handler != NULL && UNLIKELY(handler->abandon != NULL) ? handler : NULL;
}

/* What a yield is about, for those who inspect the process (process/event.h). */
static ALWAYS_INLINE uint32_t subject_of(const struct worker *worker, const struct yield *yield)
{
    if (yield->command < SKUA_COMMAND_RESERVED) {
        return call_subject(CALL_SUBJECT_COMMAND, yield->command);
    }
    const uint32_t service = yield->command - SKUA_COMMAND_RESERVED;
    if (service >= SERVICE_CALL && service <= SERVICE_SEND) {
        return call_subject(service + 1, pid_slot(yield->as.peer.pid));
    }
    if (UNLIKELY(service == SERVICE_NAME)) {
        return call_subject(service + 1, naming_entry(worker->sched, yield->as.name.text));
    }
    if (service >= SERVICE_ACCEPT && service <= SERVICE_HANGUP && service != SERVICE_CONNECT) {
        return call_subject(service + 1, (uint32_t)(yield->as.read.socket.bits >> 32));
    }
    return call_subject(service + 1, service == SERVICE_READABLE || service == SERVICE_WRITABLE
                                         ? (uint32_t)yield->as.fd
                                         : 0);
}

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Arms the timeout of a yield; returns the instant. That of a long one is armed later by what the
 * cheap clock may be behind, so that it is not early. */
static uint64_t arm_timeout(struct worker *worker, const struct yield *yield,
                            const skua_handler *listener)
{
    struct time_source *time = worker->sched->time;
    const bool is_long = yield->timeout >= LONG_TIMEOUT_NS;
    const uint64_t now = is_long ? checkpoint_clock(worker) : time_now(time);
    const uint64_t error = is_long && time->is_monotonic ? CHEAP_CLOCK_ERROR_NS : 0;
    const uint64_t deadline = time_after(now, yield->timeout);
    const uint64_t end = /* the step took a while */
        UNLIKELY(asks_process(yield)) ? yield->as.peer.deadline : SKUA_FOREVER;
    timers_arm(worker, yield->node,
               &(struct timing){.now = now,
                                .when = earlier_of(time_after(deadline, error), end),
                                .error = SKUA_E_TIMEOUT,
                                .is_unlikely = is_long,
                                .listener = listener});
    return earlier_of(deadline, end);
}

/* Starts what a yield asks for. The timeout is armed before that: from then on anybody may complete
 * the call. One that is given no time needs no timer, which could fire before start returns. */
static ALWAYS_INLINE int start_yield(struct worker *worker, const skua_handler *handler,
                                     const skua_handler *listener, struct yield *yield,
                                     skua_completion completion, skua_payload *result)
{
    const struct service *service = service_of(worker->sched->services, yield);
    uint64_t deadline = SKUA_FOREVER;
    if (UNLIKELY(yield->timeout != SKUA_FOREVER)) {
        deadline = yield->timeout != 0 ? arm_timeout(worker, yield, listener)
                                       : time_now(worker->sched->time);
    }
    if (UNLIKELY(asks_process(yield))) {
        yield->as.peer.deadline = deadline;
    }
    return service != NULL ? service->start(service->arg, worker, yield, completion, result)
                           : run_handler(worker, handler, yield, completion, deadline, result);
}

/* Ends a call whose yield was given no time and that is pending: what has not come by now is too
 * late. False if its completion was faster. */
static NOINLINE bool end_without_time(struct worker *worker, struct event_node *node,
                                      skua_completion completion, const skua_handler *listener,
                                      struct finished_calls *finished)
{
    if (!call_claim_any(node, call_guard(completion))) {
        return false;
    }
    node->as.call.previous |= listener != NULL ? CALL_TELLS : 0;
    end_call(worker, node, call_index(completion), SKUA_E_TIMEOUT, listener, finished);
    return true;
}

/* Keeps a call that is pending, or whose end is on its way: from now on the process lists it. The
 * handler, if it is not null, wants to hear of its end; nobody can have told it yet (abandon.h). */
static void keep_call(struct worker *worker, struct process *process, struct yield *yield,
                      const skua_handler *listener)
{
    struct object_pool *events = &worker->sched->events;
    call_link_owner(&worker->sched->allocator, events, process, yield->node);
    if (UNLIKELY(listener != NULL)) {
        event_at(events, yield->node)->as.call.previous |= CALL_TELLS;
    }
}

static void dispatch_one(struct worker *worker, struct process *process, struct yield *yield,
                         struct finished_calls *finished)
{
    struct event_node *node = event_at(&worker->sched->events, yield->node);
    const skua_handler *handler = handler_of(worker->sched, yield);
    const skua_handler *listener = listener_of(worker, handler, yield);
    const skua_completion completion = call_open_owner(node, yield->node, worker->context->self);
    skua_payload result = skua_payload_empty(0);
    node->next = subject_of(worker, yield); /* nobody else knows of the call yet, here and below */
    if (UNLIKELY(listener != NULL)) {
        node->as.call.listener = listener;
        worker->puts_off = false;
    }
    const int outcome = start_yield(worker, handler, listener, yield, completion, &result);
    if (outcome <= 0) {
        if (LIKELY(call_claim_any(node, call_guard(completion)))) {
            finish_call(worker, node, yield->node, outcome, &result, finished);
            return;
        }
        /* The handler completed it by a call before, or its time was up: that is on its way. */
        NOTE_COUNT(worker->sched, worker, late_completions);
    }
    skua_payload_drop(&result);
    if (UNLIKELY(listener != NULL) && (outcome != SKUA_PENDING || worker->puts_off)) {
        listener = NULL; /* it has left nothing pending */
    }
    if (UNLIKELY(yield->timeout == 0) && outcome == SKUA_PENDING &&
        end_without_time(worker, node, completion, listener, finished)) {
        return;
    }
    keep_call(worker, process, yield, listener);
}

/* What is no yield. */
static void act_silently(struct worker *worker, struct process *process, const struct yield *yield,
                         struct finished_calls *finished)
{
    if (yield_cancels(yield)) {
        cancel_tag(worker, process, yield->cancels, finished);
        return;
    }
    const struct service *service = service_of(worker->sched->services, yield);
    skua_payload nothing;
    (void)service->start(service->arg, worker, yield, (skua_completion){0}, &nothing);
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
static ALWAYS_INLINE void dispatch_yields(struct worker *worker, struct process *process)
{
    struct step_output *out = &worker->out;
    struct finished_calls finished = {.newest = OBJECT_NONE};
    for (uint32_t i = 0; i < out->yield_count; i++) {
        struct yield *yield = &out->yields[i];
        if (UNLIKELY(yield->node == OBJECT_NONE)) {
            act_silently(worker, process, yield, &finished);
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
        if (yield_cancels(yield)) {
            continue;
        }
        if (service == NULL) {
            skua_payload_drop(&yield->as.payload);
        } else if (service->discard != NULL) {
            service->discard(worker, yield);
        }
        if (yield->node != OBJECT_NONE) {
            event_release_owner(out->events, out->event_cache, yield->node);
        }
    }
    refill_reserve(out);
}

/* Ready -> Blocked if it has open calls, otherwise Idle. */
static ALWAYS_INLINE enum settlement rest(const struct worker *worker, struct process *process,
                                          uint64_t progress)
{
    if (process->backlog != OBJECT_NONE ||
        UNLIKELY((progress & (PROCESS_CANCEL_DUE | PROCESS_CONTINUES)) != 0)) {
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

/* What the process does next, when its yields are with their handlers. */
static ALWAYS_INLINE enum settlement choose_state(struct worker *worker, struct process *process)
{
    struct step_output *out = &worker->out;
    if (out->status == STEP_DONE) {
        exit_process(worker, process, 0, (skua_pid){0}, &out->result);
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

/* One function does both: a handler may have made a system call, and the fewer functions return
 * after one, the better (base/system_call.h). */
static NOINLINE enum settlement dispatch_and_choose(struct worker *worker, struct process *process)
{
    dispatch_yields(worker, process);
    return choose_state(worker, process);
}

static NOINLINE enum settlement settle_failure(struct worker *worker, struct process *process,
                                               int error)
{
    discard_yields(worker);
    exit_process(worker, process, error,
                 children_blamed(worker->sched, process, worker->context->self), NULL);
    return SETTLED;
}

enum settlement settle_output(struct worker *worker, struct process *process, int error)
{
    const struct step_output *out = &worker->out;
    if (UNLIKELY(error < 0 && out->status != STEP_DONE)) {
        return settle_failure(worker, process, error);
    }
    return out->yield_count > 0 ? dispatch_and_choose(worker, process)
                                : choose_state(worker, process);
}
