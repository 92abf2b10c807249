/* SPDX-License-Identifier: MIT */
/* After a step: hand its yields to their handlers and choose the next state. */
#include "dispatch/call.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* Calls that completed at once, linked like an event list: newest first. */
struct finished_calls {
    uint32_t newest;
    struct event_node *oldest;
};

/* Runs the handler of a command. Returns what it returned; the result is in *result. */
static int run_handler(struct worker *worker, struct yield *yield, skua_completion completion,
                       skua_payload *result)
{
    const skua_handler *handler = registry_find(worker->sched->registry, yield->command);
    if (UNLIKELY(handler == NULL)) {
        skua_payload_drop(&yield->payload);
        return SKUA_E_UNKNOWN_COMMAND;
    }
    skua_command command = {
        .id = yield->command,
        .runtime = worker->sched->runtime,
        .completion = completion,
        .input = yield->payload,
        .deadline = yield->deadline,
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
    uint32_t index = process->calls;
    while (index != OBJECT_NONE) {
        struct event_node *node = event_at(&worker->sched->events, index);
        const uint32_t next = node->as.call.next;
        if (node->as.call.tag == tag) {
            const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
            if (call_claim_any(node, guard)) {
                finish_call(worker, node, index, SKUA_E_CANCELLED, &nothing, finished);
            } else {
                node->as.call.previous |= CALL_ENDS; /* matters if it is a ticker's tick */
            }
        }
        index = next;
    }
}

/* Starts a command, unless its deadline has passed. The deadline is armed before the handler runs:
 * from then on anybody may complete the call. */
static int start_command(struct worker *worker, struct yield *yield, skua_completion completion,
                         skua_payload *result)
{
    if (UNLIKELY(yield->deadline != SKUA_FOREVER)) {
        const uint64_t now = time_now(worker->sched->time);
        if (yield->deadline <= now) {
            skua_payload_drop(&yield->payload);
            return SKUA_E_TIMEOUT;
        }
        timers_arm(worker, yield->node,
                   &(struct timing){.now = now, .when = yield->deadline, .error = SKUA_E_TIMEOUT});
    }
    return run_handler(worker, yield, completion, result);
}

static void dispatch_one(struct worker *worker, struct process *process, struct yield *yield,
                         struct finished_calls *finished)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, yield->node);
    const skua_completion completion = call_open_owner(node, yield->node, worker->context.self);
    skua_payload result = skua_payload_empty(0);
    const int outcome = start_command(worker, yield, completion, &result);
    if (outcome <= 0 && call_claim_any(node, call_guard(completion))) {
        finish_call(worker, node, yield->node, outcome, &result, finished);
        return;
    }
    /* Pending; or the handler completed it by a call before returning a result, and that completion
     * is on its way. */
    skua_payload_drop(&result);
    call_link_owner(events, process, yield->node);
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
    const enum state_duty duty = state_push_any(process, pid_generation(worker->context.self),
                                                finished->newest, &finished->oldest->next);
    SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
}

/* No yields are added meanwhile: the step has returned. */
static NOINLINE void dispatch_yields(struct worker *worker, struct process *process)
{
    skua_step *out = &worker->out;
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
}

enum settlement settle_rest(struct process *process)
{
    if (process->backlog != OBJECT_NONE) {
        return AGAIN;
    }
    const bool waits = (process_progress(process) & PROCESS_WAITS) != 0;
    return state_rest_owner(process, waits ? STATE_BLOCKED : STATE_IDLE) ? SETTLED : AGAIN;
}

enum settlement settle_output(struct worker *worker, struct process *process, int error)
{
    skua_step *out = &worker->out;
    if (UNLIKELY(error < 0)) {
        step_output_discard(out);
        exit_process(worker, process, error, NULL);
        return SETTLED;
    }
    const bool yielded = out->yield_count > 0;
    if (yielded) {
        dispatch_yields(worker, process);
    }
    if (out->status == STEP_DONE) {
        exit_process(worker, process, 0, &out->result);
        return SETTLED;
    }
    uint64_t progress = process_progress(process) & ~(PROCESS_WAITS | PROCESS_RUNS);
    const bool waits = out->status == STEP_WAIT || (out->status == STEP_DEFAULT && yielded);
    if (waits && process->calls != OBJECT_NONE) {
        progress |= PROCESS_WAITS;
    }
    if (out->status == STEP_CONTINUE) {
        progress |= PROCESS_CONTINUES;
    }
    process_set_progress_owner(process, progress);
    return out->status == STEP_CONTINUE ? AGAIN : settle_rest(process);
}
