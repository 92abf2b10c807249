/* SPDX-License-Identifier: MIT */
/* The workloads. Each checks that its result is right. */
#include <string.h>

#include "bench.h"

/* Runs a root process to its end; returns the nanoseconds that took. */
static uint64_t run_root(skua_runtime *runtime, const skua_process_type *type, const char *method)
{
    skua_exit exit;
    const uint64_t begin = now_ns();
    expect_ok(skua_process_run(runtime, type, method, NULL, 0, &exit), "run");
    expect_ok(exit.error, type->name);
    return now_ns() - begin;
}

/* ---- spawn: a million processes that end in their first step, started from inside one ---- */

static int trivial_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type trivial = {.name = "trivial", .step = trivial_step};

static int spawn_some(skua_context *ctx, uint32_t count)
{
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        error = skua_context_spawn(ctx, &trivial, NULL, NULL, 0, NULL);
    }
    return error;
}

struct spawner {
    uint32_t per_step;
    uint32_t left;
};

static int spawner_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    (void)ctx;
    (void)input;
    (void)input_count;
    const bool burst = strcmp(method, "burst") == 0;
    *(struct spawner *)self = (struct spawner){.per_step = burst ? MILLION : 100, .left = MILLION};
    return 0;
}

static int spawner_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct spawner *spawner = self;
    (void)events;
    (void)count;
    const int error = spawn_some(ctx, spawner->per_step);
    spawner->left -= spawner->per_step;
    if (spawner->left > 0) {
        skua_step_continue(out);
    } else {
        skua_step_done(out, skua_payload_empty(0));
    }
    return error;
}

static const char *const spawner_methods[] = {"steady", "burst", NULL};
static const skua_process_type spawner_type = {
    .name = "spawner",
    .state_size = sizeof(struct spawner),
    .methods = spawner_methods,
    .init = spawner_init,
    .step = spawner_step,
};

static struct measurement spawn(uint32_t workers, const char *method)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_runtime_start(runtime), "start");
    const uint64_t begin = now_ns();
    (void)run_root(runtime, &spawner_type, method);
    bench_wait_until_empty(runtime, MILLION + 1);
    return bench_finish(runtime, (double)(now_ns() - begin) / MILLION);
}

static struct measurement spawn_steady(uint32_t workers)
{
    return spawn(workers, "steady");
}

static struct measurement spawn_burst(uint32_t workers)
{
    return spawn(workers, "burst");
}

/* ---- pingpong: two processes, a million round trips ---- */

static int pong_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            skua_step_done(out, skua_payload_empty(0));
            return 0;
        }
        skua_context_send(ctx, events[i].from, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type pong = {.name = "pong", .step = pong_step};

struct ping {
    skua_pid pong;
    uint32_t left;
};

static int ping_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct ping *ping = self;
    (void)events;
    if (count == 0) {
        ping->left = MILLION;
        const int error = skua_context_spawn(ctx, &pong, NULL, NULL, 0, &ping->pong);
        return error != 0 ? error : skua_context_send(ctx, ping->pong, skua_payload_empty(0));
    }
    ping->left--;
    if (ping->left == 0) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    return skua_context_send(ctx, ping->pong, skua_payload_empty(0));
}

static const skua_process_type ping_type = {
    .name = "ping", .state_size = sizeof(struct ping), .step = ping_step};

static struct measurement pingpong(uint32_t workers)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_runtime_start(runtime), "start");
    const uint64_t elapsed = run_root(runtime, &ping_type, NULL);
    return bench_finish(runtime, (double)elapsed / (2 * MILLION));
}

/* ---- yield: a command that its handler completes at once ---- */

static int echo(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    *result = skua_payload_take(&command->input);
    return 0;
}

struct yielder {
    uint64_t done;
};

static int yielder_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct yielder *yielder = self;
    (void)ctx;
    if (count > 0) {
        if (count != 1 || events[0].tag != yielder->done ||
            skua_payload_to_u64(&events[0].payload) != yielder->done) {
            return SKUA_E_USER;
        }
        yielder->done++;
    }
    if (yielder->done == MILLION) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    return skua_step_yield(out, 7, yielder->done, skua_payload_u64(0, yielder->done));
}

static const skua_process_type yielder_type = {
    .name = "yielder", .state_size = sizeof(struct yielder), .step = yielder_step};

static struct measurement yield(uint32_t workers)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_command_register(runtime, 7, &(skua_handler){.name = "echo", .run = echo}),
              "register");
    expect_ok(skua_runtime_start(runtime), "start");
    const uint64_t elapsed = run_root(runtime, &yielder_type, NULL);
    return bench_finish(runtime, (double)elapsed / MILLION);
}

/* ---- idle processes: what they cost in memory and in wake-ups ---- */

struct idler {
    unsigned char bytes[64];
};

static int idler_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)ctx;
    memset(((struct idler *)self)->bytes, 1, sizeof(struct idler));
    if (count > 0 && events[0].type == SKUA_EVENT_CANCEL) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type idler_type = {
    .name = "idler", .state_size = sizeof(struct idler), .step = idler_step};

/* Starts idle processes and waits until each has had its first step and all workers sleep. */
static void start_idlers(skua_runtime *runtime, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        expect_ok(skua_process_submit(runtime, &idler_type, NULL, NULL, 0, NULL), "submit");
    }
    skua_stats stats;
    uint64_t parks = 0;
    do {
        bench_sleep(10000000);
        (void)skua_stats_read(runtime, &stats, NULL, 0);
        if (stats.steps == count && stats.parks == parks) {
            break;
        }
        parks = stats.parks;
    } while (true);
}

static struct measurement idle_memory(uint32_t workers)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_runtime_start(runtime), "start");
    const uint64_t before = bench_resident_bytes();
    start_idlers(runtime, MILLION);
    return bench_finish(runtime, (double)(bench_resident_bytes() - before) / MILLION);
}

static struct measurement idle_cpu(uint32_t workers)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_runtime_start(runtime), "start");
    start_idlers(runtime, 10000);
    bench_sleep(500000000); /* until the monitor sleeps, too */
    const uint64_t before = bench_context_switches();
    bench_sleep(5000000000);
    return bench_finish(runtime, (double)(bench_context_switches() - before));
}

const struct workload workloads[] = {
    {"spawn", "ns per process", "a million processes, 100 per step of one that continues",
     spawn_steady},
    {"spawn-burst", "ns per process", "a million processes in one step: all alive at once",
     spawn_burst},
    {"pingpong", "ns per message", "two processes, a million round trips", pingpong},
    {"yield", "ns per yield", "a million commands, each completed at once", yield},
    {"idle-memory", "bytes per process", "a million idle processes with 64 bytes of state",
     idle_memory},
    {"idle-cpu", "wake-ups in 5 s", "10,000 idle processes", idle_cpu},
    {"timers", "s for all", "a million processes asleep for 0-1000 ms, from start to end",
     bench_timers},
    {"wake", "x a bare futex", "a message from outside to a sleeping runtime, one per ms",
     bench_wake},
    {"stuck", "ms, the slowest", "all workers stuck: a message, a timer, a descriptor",
     bench_stuck},
    {"idle-sources", "wake-ups in 5 s", "10,000 timers an hour away, 1,000 descriptors",
     bench_idle_sources},
    {"after-burst", "MiB above start", "memory after a million processes have ended",
     bench_after_burst},
    {0},
};
