/* SPDX-License-Identifier: MIT */
#include "sched/tasks.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "dispatch/call.h"
#include "process/payload.h"
#include "sched/aside.h"
#include "sched/context.h"
#include "sched/inbox.h"
#include "sched/log.h"
#include "sched/stack_use.h"
#include "sched/worker.h"
#include "task/valgrind.h"

/* Of a stack that is painted in the simulator, so that what a task has not written reads the same
 * in every run. */
#define PAINT      0xa5
#define PAINT_SIZE ((size_t)16 << 10)

/* The tag of a wait: {SKUA_TASK_TAGS:16 | worker:9 | number:39}. */
#define TAG_NUMBER_BITS 39
_Static_assert(SKUA_WORKERS_MAX + SKUA_SPARES_MAX <= 1 << (48 - TAG_NUMBER_BITS), "they fit");

static struct task *task_of(const struct process *process)
{
    return process->state.of_task.task;
}

/* ---- running ---- */

static ALWAYS_INLINE void release_event(struct worker *worker, skua_event *event, uint32_t node)
{
    skua_payload_drop(&event->payload);
    if (LIKELY(node != OBJECT_NONE)) {
        event_release_owner(&worker->sched->events, &worker->caches.events, node);
    }
}

/* Drops what is left of an event that the task has received. */
static ALWAYS_INLINE void drop_received(struct worker *worker, struct task_event *received)
{
    if (received->event != NULL) {
        release_event(worker, received->event, received->node);
        received->event = NULL;
    }
}

/* The task receives what was delivered. */
static ALWAYS_INLINE void receive(struct worker *worker, struct task_event *received,
                                  const struct delivery *delivery)
{
    drop_received(worker, received);
    received->event = delivery->events;
    received->node = delivery->node;
    if (UNLIKELY(delivery->node == OBJECT_NONE)) {
        received->copy = *delivery->events;
        received->event = &received->copy;
    }
}

static void run_defers(struct task *task)
{
    while (task->defers != NULL) {
        struct task_defer *defer = task->defers;
        const struct task_defer call = *defer;
        task->defers = defer->next;
        allocator_free(&task->context.sched->allocator, defer, sizeof *defer,
                       alignof(struct task_defer));
        call.function(call.arg);
    }
}

/* On the task's own stack. */
static void run_function(struct stack *stack)
{
    struct task *task = (struct task *)(void *)stack;
    struct process *process = task->context.process;
    const skua_process_type *type = process_type(process);
    void *self = process_state(process, type);
    task->outcome = type->main != NULL ? type->main(self, &task->context)
                                       : type->serve(self, &task->context, task->served.event);
    run_defers(task);
    task->flags |= TASK_RETURNED;
}

static void paint(const struct stack *stack)
{
    const size_t size = (size_t)((const char *)stack - stack->low);
    const size_t painted = size < PAINT_SIZE ? size - sizeof(uint64_t) * 8 : PAINT_SIZE;
    valgrind_allow((const char *)stack - painted, painted);
    memset((char *)stack - painted, PAINT, painted);
}

/* Takes a stack, which is all zeros if it is new. A task that has returned leaves nothing behind
 * that it has received or deferred, and a closed context; so what is set here is the rest. */
static ALWAYS_INLINE int begin(struct worker *worker, struct process *process,
                               const skua_process_type *type)
{
    struct stack *stack;
    struct scheduler *sched = worker->sched;
    const uint32_t tier =
        LIKELY(type->stack_size == 0) ? STACK_TIER_DEFAULT : stacks_tier(type->stack_size);
    const int error = stacks_acquire(&sched->stacks, &worker->stacks, tier, &stack);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(sched->config.sim != NULL)) {
        paint(stack);
        stack->peer = NULL;
    }
    struct task *task = (struct task *)(void *)stack;
    if (UNLIKELY(stack->peer == NULL)) {
        log_weak_guard(sched); /* the stack may be new */
        coroutine_begin(stack, run_function);
        task->context.sched = sched;
    }
    task->context.process = process;
    task->context.self = worker->context->self;
    task->context.wait.where = NULL;
    task->timer = 0;
    task->flags = stack->has_guard ? 0 : TASK_CANARY;
    task->recalled = OBJECT_NONE;
    task->swept = OBJECT_NONE;
    task->urgent_aside = OBJECT_NONE;
    task->cancelled = 0;
    task->moves = 0;
    task->polls = false;
    task->has_polled = false;
    task->is_shielded = false;
    task->is_stopping = false;
    store_relaxed(&stack->owner, task->context.self.bits); /* a number */
    process->state.of_task.task = task;
    return 0;
}

/* Its function has returned. */
static ALWAYS_INLINE void release(struct worker *worker, struct process *process, struct task *task)
{
    drop_received(worker, &task->received);
    drop_received(worker, &task->served);
    process->state.of_task.task = NULL;
    store_relaxed(&task->stack.owner, 0); /* a number */
    if (UNLIKELY(worker->sched->measures_stacks)) {
        stack_use_note(worker->sched, process_type(process), &task->stack);
    }
    stacks_release(&worker->sched->stacks, &worker->stacks, &task->stack);
}

/* Until the task waits, or has returned. */
static ALWAYS_INLINE void enter(struct worker *worker, struct task *task)
{
    skua_context *context = &task->context;
    context->wait.peer = &task->stack.peer;
    context->worker = worker;
    context->now = 0;
    context->phase = worker->context->phase;
    coroutine_enter(&task->stack);
    context->wait.peer = NULL;
    context->phase = CONTEXT_CLOSED;
}

/* Why the wait of a task ends at once, or 0. */
static int refusal(const struct worker *worker, const struct task *task)
{
    if (UNLIKELY((task->flags & TASK_CLOSING) != 0)) {
        return SKUA_E_TERMINATED;
    }
    if (UNLIKELY(worker->out.status == STEP_DONE)) {
        return SKUA_E_DONE;
    }
    return UNLIKELY(task->cancelled != 0) && !task->is_shielded ? SKUA_E_CANCELLED : 0;
}

static void check_canary(const struct task *task)
{
    if (UNLIKELY(!stacks_is_whole(&task->stack))) {
        log_overflow(&task->context, stacks_size(task->stack.tier));
        abort(); /* it has written over something else */
    }
}

/* The task has just waited or returned. Ends its waits, as long as they are refused. */
static NOINLINE void refuse_waits(struct worker *worker, struct task *task)
{
    check_canary(task);
    while ((task->flags & TASK_RETURNED) == 0) {
        const int refused = refusal(worker, task);
        if (refused == 0) {
            return;
        }
        task->context.wait.result = refused;
        task->context.wait.event = NULL;
        enter(worker, task);
        check_canary(task);
    }
}

/* The wait of the task is over: takes back what it waited for. There is room for that, nothing has
 * been yielded in this step. */
static void take_back(struct worker *worker, uint64_t tag)
{
    const int error = step_output_cancel(&worker->out, tag);
    SKUA_ASSERT(error == 0);
    (void)error;
}

/* The wait is over before its time is. Nobody is to hear of that, so there is no completion: the
 * call is just gone; or its completion is on its way and will be dropped. */
static void drop_timer(struct worker *worker, struct task *task)
{
    struct scheduler *sched = worker->sched;
    struct process *process = task->context.process;
    const uint32_t index = call_first_owner(&sched->allocator, &sched->events,
                                            &worker->caches.events, process, task->timer);
    task->timer = 0;
    if (UNLIKELY(index == OBJECT_NONE)) {
        return;
    }
    struct event_node *node = event_at(&sched->events, index);
    if (LIKELY(call_claim_any(node, load_relaxed(&node->guard)))) { /* re-checked by the claim */
        call_disarm_owner(&sched->deadlines, node, index);
        call_unlink_owner(&sched->events, process, node, index);
        event_release_owner(&sched->events, &worker->caches.events, index);
    }
}

/* The completion of the wait. */
static void complete(struct worker *worker, struct task *task, const struct delivery *delivery)
{
    skua_event *event = delivery->events;
    task->context.wait.result = event->error;
    task->payload = event->payload;
    event_release_owner(&worker->sched->events, &worker->caches.events, delivery->node);
}

/* Ends the wait of the task with what was delivered. */
static NOINLINE void end_wait(struct worker *worker, struct task *task,
                              const struct delivery *delivery)
{
    struct skua_wait_ *wait = &task->context.wait;
    const skua_event *event = delivery->events;
    const bool is_own = event->type == SKUA_EVENT_COMPLETION && inbox_is_own(event->tag);
    if (is_own && event->tag == task->timer) {
        wait->result = SKUA_E_TIMEOUT;
        task->timer = 0;
        release_event(worker, delivery->events, delivery->node);
    } else if (is_own) {
        complete(worker, task, delivery);
    } else if (event->type == SKUA_EVENT_CANCEL && task->cancelled != 0) {
        wait->result = SKUA_E_CANCELLED;
        if (wait->kind == SKUA_WAIT_COMPLETION_) {
            take_back(worker, task->tag);
        }
    } else if (event->type == SKUA_EVENT_CONTINUE && inbox_awaits_turn(task)) {
        wait->result = task->polls ? SKUA_E_TIMEOUT : 0;
    } else {
        receive(worker, &task->received, delivery);
        wait->event = task->received.event;
    }
    if (task->timer != 0) {
        drop_timer(worker, task);
    }
    task->polls = false;
}

static ALWAYS_INLINE void hand_over(struct worker *worker, struct task *task,
                                    const struct delivery *delivery)
{
    struct skua_wait_ *wait = &task->context.wait;
    wait->result = 0;
    wait->event = NULL;
    if (LIKELY(delivery->events->type == SKUA_EVENT_MESSAGE && task->timer == 0)) {
        receive(worker, &task->received, delivery);
        wait->event = task->received.event;
        task->polls = false;
    } else {
        end_wait(worker, task, delivery);
    }
}

/* What the end of its function means for a process. */
static int finish(struct worker *worker, struct process *process, struct task *task)
{
    const skua_process_type *type = process_type(process);
    struct step_output *out = &worker->out;
    int outcome = task->outcome;
    if (outcome == SKUA_E_CANCELLED && task->cancelled != 0) {
        outcome = task->cancelled;
    }
    if (outcome == 0 && type->main != NULL && out->status != STEP_DONE) {
        out->status = STEP_DONE;
        out->result = skua_payload_empty(0);
    }
    if (outcome == 0 && type->serve != NULL) {
        outcome = task->cancelled; /* it would serve the next event otherwise */
    }
    release(worker, process, task);
    return outcome;
}

/* Begins to run its function, unless it serves and there is nothing to serve. */
static NOINLINE int start(struct worker *worker, struct process *process,
                          const struct delivery *delivery, struct task **task)
{
    const skua_process_type *type = process_type(process);
    if (delivery->events->type == SKUA_EVENT_START && type->main == NULL) {
        return 0;
    }
    const int error = begin(worker, process, type);
    if (error == 0) {
        *task = task_of(process);
        receive(worker, &(*task)->served, delivery);
    }
    return error;
}

/* The task may want the shutdown's cancel now. */
static void be_stopped(struct process *process, struct task *task)
{
    if (UNLIKELY(task->is_stopping)) {
        task->is_stopping = false;
        process_set_progress_owner(process, process_progress(process) | PROCESS_CANCEL_DUE);
    }
}

/* The task has waited anew: perhaps for what it did not want before. */
static ALWAYS_INLINE void look_back(struct worker *worker, struct process *process,
                                    struct task *task)
{
    task->recalled = OBJECT_NONE;
    if (task->context.wait.kind >= SKUA_WAIT_COMPLETION_) {
        return;
    }
    be_stopped(process, task);
    if (UNLIKELY(process->state.of_task.aside != OBJECT_NONE)) {
        inbox_recall(worker, process, task);
    }
}

/* Its function has returned. */
static NOINLINE int leave(struct worker *worker, struct process *process, struct task *task)
{
    be_stopped(process, task);
    const int outcome = finish(worker, process, task);
    if (UNLIKELY(process->state.of_task.aside != OBJECT_NONE)) {
        inbox_recall(worker, process, NULL);
    }
    return outcome;
}

int tasks_step(struct worker *worker, struct process *process, const struct delivery *delivery)
{
    struct task *task = task_of(process);
    if (LIKELY(task != NULL)) {
        hand_over(worker, task, delivery);
    } else {
        const int error = start(worker, process, delivery, &task);
        if (task == NULL) {
            release_event(worker, delivery->events, delivery->node);
            return error;
        }
    }
    task->context.random_calls = 0;
    if (UNLIKELY(delivery->continues)) {
        worker->out.status = STEP_CONTINUES; /* it has not heard of that yet */
    }
    enter(worker, task);
    if (UNLIKELY(task->flags != 0 || worker->out.status == STEP_DONE)) {
        if (task->flags != TASK_RETURNED) {
            refuse_waits(worker, task);
        }
        if ((task->flags & TASK_RETURNED) != 0) {
            return leave(worker, process, task);
        }
    }
    look_back(worker, process, task);
    return 0;
}

/* ---- the end ---- */

void tasks_end(struct worker *worker, struct process *process)
{
    aside_put_all_back(&worker->sched->events, process);
}

void tasks_unwind(struct worker *worker, struct process *process)
{
    struct task *task = task_of(process);
    if (task == NULL) {
        return;
    }
    (void)context_open(worker, CONTEXT_CLOSE);
    task->flags |= TASK_CLOSING;
    task->context.random_calls = 0;
    refuse_waits(worker, task);
    SKUA_ASSERT((task->flags & TASK_RETURNED) != 0);
    release(worker, process, task);
    context_close(worker);
}

/* ---- waiting ---- */

struct task *tasks_enter(skua_context *ctx, int *error)
{
    if (ctx != NULL && ctx->wait.peer != NULL) {
        struct task *task = CONTAINER_OF(ctx, struct task, context);
        *error = context_refuse(ctx, CONTEXT_ANY);
        if (*error != 0) {
            return NULL;
        }
        *error = refusal(ctx->worker, task);
        return task;
    }
    *error = context_check(ctx, CONTEXT_STEP);
    *error = *error != 0 ? *error : SKUA_E_NOT_TASK;
    return NULL;
}

/* Tags are not used again by other waits of the process: what is left of an old one must not be
 * taken for the end of a new one, also if another call of a serve function makes that, on another
 * stack. A worker comes round to the same number after half a day at the earliest. */
uint64_t tasks_next_tag(struct task *task)
{
    struct worker *worker = task->context.worker;
    const uint64_t number = ++worker->waits & ((UINT64_C(1) << TAG_NUMBER_BITS) - 1);
    task->tag = SKUA_TASK_TAGS | (uint64_t)worker->index << TAG_NUMBER_BITS | number;
    return task->tag;
}

int tasks_wait(struct task *task, uint32_t kind)
{
    task->context.wait.kind = kind;
    coroutine_leave(&task->stack);
    return task->context.wait.result;
}
