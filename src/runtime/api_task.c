/* SPDX-License-Identifier: MIT */
/* The functions of skua/task.h. Each wait is the yield of the same name, with a tag of the task's
 * own, and then a wait for its completion. */
#include <skua/call.h>
#include <skua/clock.h>
#include <skua/name.h>
#include <skua/net.h>
#include <skua/socket.h>
#include <skua/watch.h>
#include <stdalign.h>

#include "clock/clock.h"
#include "process/payload.h"
#include "runtime/runtime.h"
#include "sched/tasks.h"

/* ---- completions ---- */

/* Waits for the completion of the yield that was just made with the task's tag, if `error`, which
 * is what that returned, is 0. Gives *result, which may be null. */
static int await(struct task *task, int error, skua_payload *result)
{
    if (error == 0) {
        error = tasks_wait(task, SKUA_WAIT_COMPLETION_);
        if (result != NULL) {
            *result = task->payload;
        } else {
            skua_payload_drop(&task->payload);
        }
        task->payload = skua_payload_empty(0);
    }
    return error;
}

static void clear(skua_payload *result)
{
    if (result != NULL) {
        *result = skua_payload_empty(0);
    }
}

/* The task, if it may wait; otherwise *error, and the payload that it was given is dropped. */
static struct task *enter_with(skua_context *ctx, skua_payload *payload, skua_payload *result,
                               int *error)
{
    struct task *task = tasks_enter(ctx, error);
    clear(result);
    if (*error != 0) {
        skua_payload_drop(payload);
        payload_mark_taken(payload);
    }
    return task;
}

/* ---- receiving ---- */

static int receive(skua_context *ctx, uint32_t kind, skua_event **event, uint64_t timeout_ns)
{
    struct task *task = CONTAINER_OF(ctx, struct task, context);
    int error = 0;
    if (timeout_ns == 0) {
        task->polls = true;
        task->has_polled = false;
        error = skua_continue(ctx);
    } else if (timeout_ns != SKUA_FOREVER) {
        task->timer = tasks_next_tag(task);
        error = clock_yield_alarm(ctx, task->timer, timeout_ns);
    }
    if (error != 0) {
        task->polls = false;
        task->timer = 0;
        return error;
    }
    error = tasks_wait(task, kind);
    *event = ctx->wait.event;
    return error;
}

/* 0 if the task may receive now; *event is null. */
static int check_receive(skua_context *ctx, struct task **task, skua_event **event)
{
    int error;
    if (event == NULL) {
        return SKUA_E_INVALID;
    }
    *event = NULL;
    *task = tasks_enter(ctx, &error);
    return error;
}

int skua_task_receive_slowly(skua_context *ctx, skua_event **event, uint64_t timeout_ns)
{
    struct task *task;
    const int error = check_receive(ctx, &task, event);
    return error == 0 ? receive(ctx, SKUA_WAIT_EVENT_, event, timeout_ns) : error;
}

int(skua_task_receive_type)(skua_context *ctx, uint32_t type, skua_event **event,
                            uint64_t timeout_ns)
{
    struct task *task;
    const int error = check_receive(ctx, &task, event);
    if (error != 0) {
        return error;
    }
    task->wanted = type;
    return receive(ctx, SKUA_WAIT_TYPE_, event, timeout_ns);
}

int(skua_task_receive_if)(skua_context *ctx, skua_match_fn *match, void *arg, skua_event **event,
                          uint64_t timeout_ns)
{
    struct task *task;
    const int error = check_receive(ctx, &task, event);
    if (error != 0 || match == NULL) {
        return error != 0 ? error : SKUA_E_INVALID;
    }
    task->match = match;
    task->match_arg = arg;
    return receive(ctx, SKUA_WAIT_MATCH_, event, timeout_ns);
}

/* ---- time ---- */

int(skua_task_sleep)(skua_context *ctx, uint64_t duration_ns)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    return error == 0 ? await(task, skua_yield_sleep(ctx, tasks_next_tag(task), duration_ns), NULL)
                      : error;
}

int(skua_task_ticker)(skua_context *ctx, uint64_t period_ns, uint64_t *next, uint64_t *count)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    if (error != 0) {
        return error;
    }
    if (next == NULL || period_ns == 0) {
        return SKUA_E_INVALID;
    }
    if (period_ns > SKUA_DURATION_MAX) {
        return SKUA_E_DURATION;
    }
    if (*next == 0) {
        *next = time_after(skua_now(ctx), period_ns);
    }
    error = await(task, skua_yield_timer(ctx, tasks_next_tag(task), *next), NULL);
    if (error == 0) {
        const uint64_t now = skua_now(ctx);
        const uint64_t passed = now > *next ? (now - *next) / period_ns : 0;
        *next = time_after(*next + passed * period_ns, period_ns);
        if (count != NULL) {
            *count = 1 + passed;
        }
    }
    return error;
}

int(skua_task_pause)(skua_context *ctx)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    if (error == 0) {
        error = skua_continue(ctx);
    }
    return error == 0 ? tasks_wait(task, SKUA_WAIT_TURN_) : error;
}

/* ---- other processes ---- */

int skua_task_call_from(skua_context *ctx, skua_pid to, skua_payload *payload, uint64_t timeout_ns,
                        skua_payload *reply)
{
    int error;
    if (payload == NULL) {
        clear(reply);
        return SKUA_E_INVALID;
    }
    struct task *task = enter_with(ctx, payload, reply, &error);
    return error == 0
               ? await(task,
                       skua_yield_call_from(ctx, tasks_next_tag(task), to, payload, timeout_ns),
                       reply)
               : error;
}

int skua_task_send_from(skua_context *ctx, skua_pid to, skua_payload *payload, uint64_t timeout_ns)
{
    int error;
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    struct task *task = enter_with(ctx, payload, NULL, &error);
    if (error == 0 && skua_pid_equal(to, ctx->self)) {
        payload_discard(payload);
        error = SKUA_E_INVALID;
    }
    return error == 0
               ? await(task,
                       skua_yield_send_from(ctx, tasks_next_tag(task), to, payload, timeout_ns),
                       NULL)
               : error;
}

int(skua_task_call_name)(skua_context *ctx, const char *name, skua_payload payload,
                         uint64_t timeout_ns, skua_payload *reply)
{
    int error;
    struct task *task = enter_with(ctx, &payload, reply, &error);
    return error == 0
               ? await(task,
                       skua_yield_call_name(ctx, tasks_next_tag(task), name, payload, timeout_ns),
                       reply)
               : error;
}

int(skua_task_call_for)(skua_context *ctx, skua_request request, skua_pid to, skua_payload payload,
                        uint64_t timeout_ns, skua_payload *reply)
{
    int error;
    struct task *task = enter_with(ctx, &payload, reply, &error);
    return error == 0 ? await(task,
                              skua_yield_call_for_from(ctx, tasks_next_tag(task), request, to,
                                                       &payload, timeout_ns),
                              reply)
                      : error;
}

/* The completion of a monitor or a join has the exit error, and a payload; or it has the reason
 * why there is none. */
static int tell_end(int error, skua_payload *end, int *exit_error, skua_payload *result)
{
    const bool has_ended = error == 0 || end->storage != SKUA_PAYLOAD_EMPTY;
    if (exit_error != NULL) {
        *exit_error = has_ended ? error : 0;
    }
    if (error == 0 && result != NULL) {
        *result = *end;
    } else {
        skua_payload_drop(end);
    }
    return has_ended ? 0 : error;
}

int(skua_task_monitor)(skua_context *ctx, skua_pid pid, uint64_t timeout_ns, int *exit_error)
{
    int error;
    skua_payload end = skua_payload_empty(0);
    struct task *task = tasks_enter(ctx, &error);
    if (error == 0) {
        error = await(task, skua_yield_monitor(ctx, tasks_next_tag(task), pid, timeout_ns), &end);
    }
    return tell_end(error, &end, exit_error, NULL);
}

int(skua_task_join)(skua_context *ctx, skua_pid pid, uint64_t timeout_ns, int *exit_error,
                    skua_payload *result)
{
    int error;
    skua_payload end = skua_payload_empty(0);
    struct task *task = tasks_enter(ctx, &error);
    clear(result);
    if (error == 0) {
        error = await(task, skua_yield_join(ctx, tasks_next_tag(task), pid, timeout_ns), &end);
    }
    return tell_end(error, &end, exit_error, result);
}

int(skua_task_await_name)(skua_context *ctx, const char *name, uint64_t timeout_ns, skua_pid *pid)
{
    int error;
    skua_payload found;
    struct task *task = tasks_enter(ctx, &error);
    if (pid != NULL) {
        *pid = (skua_pid){0};
    }
    if (error == 0) {
        error =
            await(task, skua_yield_await_name(ctx, tasks_next_tag(task), name, timeout_ns), &found);
    }
    if (error == 0 && pid != NULL) {
        pid->bits = skua_payload_to_u64(&found);
    }
    return error;
}

int(skua_task_publish)(skua_context *ctx, const char *name, skua_payload payload,
                       skua_published *published)
{
    int error;
    skua_payload result = skua_payload_empty(0);
    struct task *task = enter_with(ctx, &payload, NULL, &error);
    if (error == 0) {
        error = await(task, skua_yield_publish(ctx, tasks_next_tag(task), name, payload), &result);
    }
    if (published != NULL) {
        *published = skua_published_get(&result);
    }
    return error;
}

/* ---- the rest of the world ---- */

int(skua_task_readable)(skua_context *ctx, int fd, uint64_t timeout_ns)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    return error == 0
               ? await(task, skua_yield_readable(ctx, tasks_next_tag(task), fd, timeout_ns), NULL)
               : error;
}

int(skua_task_writable)(skua_context *ctx, int fd, uint64_t timeout_ns)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    return error == 0
               ? await(task, skua_yield_writable(ctx, tasks_next_tag(task), fd, timeout_ns), NULL)
               : error;
}

/* A wait whose result is a socket. */
static int await_socket(struct task *task, int error, skua_socket *socket)
{
    skua_payload result = skua_payload_empty(0);
    error = await(task, error, &result);
    socket->bits = error == 0 ? skua_payload_to_u64(&result) : 0;
    return error;
}

int(skua_task_accept)(skua_context *ctx, skua_socket listener, uint64_t timeout_ns,
                      skua_socket *socket)
{
    int error;
    if (socket == NULL) {
        return SKUA_E_INVALID;
    }
    *socket = (skua_socket){0};
    struct task *task = tasks_enter(ctx, &error);
    return error == 0
               ? await_socket(task,
                              skua_yield_accept(ctx, tasks_next_tag(task), listener, timeout_ns),
                              socket)
               : error;
}

int(skua_task_connect)(skua_context *ctx, const char *address, const char *source,
                       uint64_t timeout_ns, skua_socket *socket)
{
    int error;
    if (socket == NULL) {
        return SKUA_E_INVALID;
    }
    *socket = (skua_socket){0};
    struct task *task = tasks_enter(ctx, &error);
    return error == 0 ? await_socket(task,
                                     skua_yield_connect(ctx, tasks_next_tag(task), address, source,
                                                        timeout_ns),
                                     socket)
                      : error;
}

int(skua_task_read)(skua_context *ctx, skua_socket socket, size_t most, uint64_t timeout_ns,
                    skua_payload *data)
{
    int error;
    if (data == NULL) {
        return SKUA_E_INVALID;
    }
    clear(data);
    struct task *task = tasks_enter(ctx, &error);
    return error == 0
               ? await(task, skua_yield_read(ctx, tasks_next_tag(task), socket, most, timeout_ns),
                       data)
               : error;
}

int(skua_task_read_exactly)(skua_context *ctx, skua_socket socket, size_t size, uint64_t timeout_ns,
                            skua_payload *data)
{
    int error;
    if (data == NULL) {
        return SKUA_E_INVALID;
    }
    clear(data);
    struct task *task = tasks_enter(ctx, &error);
    return error == 0
               ? await(task,
                       skua_yield_read_exactly(ctx, tasks_next_tag(task), socket, size, timeout_ns),
                       data)
               : error;
}

int(skua_task_read_until)(skua_context *ctx, skua_socket socket, const char *delimiter,
                          size_t limit, uint64_t timeout_ns, skua_payload *data)
{
    int error;
    if (data == NULL) {
        return SKUA_E_INVALID;
    }
    clear(data);
    struct task *task = tasks_enter(ctx, &error);
    return error == 0 ? await(task,
                              skua_yield_read_until(ctx, tasks_next_tag(task), socket, delimiter,
                                                    limit, timeout_ns),
                              data)
                      : error;
}

int(skua_task_write)(skua_context *ctx, skua_socket socket, skua_payload payload,
                     uint64_t timeout_ns)
{
    int error;
    struct task *task = enter_with(ctx, &payload, NULL, &error);
    return error == 0 ? await(task,
                              skua_yield_write_from(ctx, tasks_next_tag(task), socket, &payload,
                                                    timeout_ns),
                              NULL)
                      : error;
}

int(skua_task_hangup)(skua_context *ctx, skua_socket socket, uint64_t timeout_ns)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    return error == 0
               ? await(task, skua_yield_hangup(ctx, tasks_next_tag(task), socket, timeout_ns), NULL)
               : error;
}

int(skua_task_blocking)(skua_context *ctx, skua_pool pool, skua_blocking_fn *function,
                        skua_payload input, uint64_t timeout_ns, skua_payload *result)
{
    int error;
    struct task *task = enter_with(ctx, &input, result, &error);
    return error == 0 ? await(task,
                              skua_yield_blocking(ctx, tasks_next_tag(task), pool, function, input,
                                                  timeout_ns),
                              result)
                      : error;
}

int(skua_task_yield)(skua_context *ctx, uint32_t command, skua_payload payload, uint64_t timeout_ns,
                     skua_payload *result)
{
    int error;
    struct task *task = enter_with(ctx, &payload, result, &error);
    return error == 0
               ? await(task,
                       skua_yield_from(ctx, tasks_next_tag(task), command, &payload, timeout_ns),
                       result)
               : error;
}

/* ---- ending ---- */

int skua_task_defer(skua_context *ctx, void (*function)(void *arg), void *arg)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    if (task == NULL || function == NULL) {
        return task == NULL ? error : SKUA_E_INVALID;
    }
    struct task_defer *defer =
        allocator_alloc(&ctx->sched->allocator, sizeof *defer, alignof(struct task_defer));
    if (defer == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    *defer = (struct task_defer){.next = task->defers, .function = function, .arg = arg};
    task->defers = defer;
    return 0;
}

int skua_task_ending(skua_context *ctx)
{
    int error;
    (void)!tasks_enter(ctx, &error); /* the error says it all */
    return error;
}

int skua_task_shield(skua_context *ctx, bool on)
{
    int error;
    struct task *task = tasks_enter(ctx, &error);
    if (task == NULL) {
        return error;
    }
    task->is_shielded = on;
    return 0;
}
