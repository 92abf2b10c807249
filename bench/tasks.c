/* SPDX-License-Identifier: MIT */
/* Workloads of tasks, each the straight-line form of one of processes that have steps. */
#include <stdio.h>

#include "bench.h"

/* ---- task-pingpong and task-serve: pingpong, by two tasks, or by one and one that serves ---- */

static int pong_main(void *self, skua_context *ctx)
{
    skua_event *event;
    int error;
    (void)self;
    while ((error = skua_task_receive(ctx, &event, SKUA_FOREVER)) == 0) {
        error = skua_send(ctx, event->from, skua_nothing());
        if (error != 0) {
            break;
        }
    }
    return error;
}

static int pong_serve(void *self, skua_context *ctx, skua_event *event)
{
    (void)self;
    return skua_send(ctx, event->from, skua_nothing());
}

static const skua_process_type task_pong = {.name = "pong", .main = pong_main};
static const skua_process_type serving_pong = {.name = "pong", .serve = pong_serve};

static int play(skua_context *ctx, const skua_process_type *type)
{
    skua_pid pong;
    skua_event *event;
    int error = skua_spawn(ctx, type, skua_nothing(), &pong);
    for (uint32_t i = 0; i < MILLION && error == 0; i++) {
        error = skua_send(ctx, pong, skua_nothing());
        if (error == 0) {
            error = skua_task_receive(ctx, &event, SKUA_FOREVER);
        }
    }
    return error == 0 ? skua_terminate(ctx, pong) : error;
}

static int ping_tasks(void *self, skua_context *ctx)
{
    (void)self;
    return play(ctx, &task_pong);
}

static int ping_server(void *self, skua_context *ctx)
{
    (void)self;
    return play(ctx, &serving_pong);
}

static struct measurement measure_pingpong(uint32_t workers, const skua_process_type *type)
{
    skua_runtime *runtime = bench_start(workers);
    const uint64_t elapsed = bench_run(runtime, type, NULL, NULL);
    return bench_finish(runtime, UINT64_C(2) * MILLION, elapsed);
}

struct measurement bench_task_pingpong(uint32_t workers)
{
    static const skua_process_type type = {.name = "ping", .main = ping_tasks};
    return measure_pingpong(workers, &type);
}

struct measurement bench_task_serve(uint32_t workers)
{
    static const skua_process_type type = {.name = "ping", .main = ping_server};
    return measure_pingpong(workers, &type);
}

/* ---- task-spawn: spawn, by a task, of tasks that return at once ---- */

#define SPAWNED_AT_ONCE 100u

static int trivial_main(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    return 0;
}

static int spawner_main(void *self, skua_context *ctx)
{
    static const skua_process_type trivial = {.name = "trivial", .main = trivial_main};
    int error = 0;
    (void)self;
    for (uint32_t i = 1; i <= MILLION && error == 0; i++) {
        error = skua_spawn(ctx, &trivial, skua_nothing(), NULL);
        if (error == 0 && i % SPAWNED_AT_ONCE == 0) {
            error = skua_task_pause(ctx);
        }
    }
    return error;
}

struct measurement bench_task_spawn(uint32_t workers)
{
    static const skua_process_type type = {.name = "spawner", .main = spawner_main};
    skua_runtime *runtime = bench_start(workers);
    const uint64_t begin = now_ns();
    (void)bench_run(runtime, &type, NULL, NULL);
    bench_wait_until_empty(runtime, MILLION + 1);
    return bench_finish(runtime, MILLION, now_ns() - begin);
}

/* ---- task-memory: tasks that wait for a message that does not come ---- */

static atomic_uint waiting;

static int waiter_main(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    atomic_fetch_add(&waiting, 1);
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

static int crowd_main(void *self, skua_context *ctx)
{
    static const skua_process_type waiter = {.name = "waiter", .main = waiter_main};
    const uint64_t *size = self;
    int error = 0;
    for (uint64_t i = 1; i <= *size && error == 0; i++) {
        error = skua_spawn(ctx, &waiter, skua_nothing(), NULL);
        if (error == 0 && i % SPAWNED_AT_ONCE == 0) {
            error = skua_task_pause(ctx);
        }
    }
    return error;
}

static int crowd_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    uint64_t *size = self;
    (void)ctx;
    (void)count;
    *size = skua_payload_to_u64(input);
    return 0;
}

struct measurement bench_task_memory(uint32_t workers, uint32_t size)
{
    static const skua_process_type type = {
        .name = "crowd", .state_size = sizeof(uint64_t), .init = crowd_init, .main = crowd_main};
    skua_runtime *runtime = bench_start(workers);
    const double before = (double)bench_resident_bytes();
    const uint64_t begin = now_ns();
    atomic_store(&waiting, 0);
    (void)bench_run_sized(runtime, &type, size, NULL);
    bench_wait_for(&waiting, size);
    const uint64_t elapsed = now_ns() - begin;
    const double bytes = ((double)bench_resident_bytes() - before) / size;
    struct measurement result = bench_finish(runtime, size, elapsed);
    result.value = result.bytes_per_process = bytes;
    (void)snprintf(result.note, sizeof result.note, "started in %.2f s", (double)elapsed / 1e9);
    return result;
}
