/* SPDX-License-Identifier: MIT */
#include "task_waits.h"

#include <skua/net.h>

#include "descriptors.h"

#define COMMAND_NEVER 7

/* What the waits of the current test are for. */
static struct {
    skua_pid silent; /* a process that does not answer, nor end */
    struct ends ends;
    struct tally released; /* functions on the blocking pool */
} scene;

/* ---- what does not come ---- */

static int never_answer(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    int error = skua_name_register(ctx, "silent", NULL); /* in some tests there is no memory */
    (void)errand;
    while (error == 0) {
        error = skua_task_receive(ctx, &event, SKUA_FOREVER);
    }
    return error;
}

static int never_complete(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_PENDING;
}

static int never_ready(void *arg, skua_completion completion, int fd, bool for_writing)
{
    (void)arg;
    (void)completion;
    (void)fd;
    (void)for_writing;
    return SKUA_PENDING;
}

static int never_run(void *arg, skua_completion completion, skua_pool pool,
                     skua_blocking_fn *function, skua_payload *input, skua_payload *result)
{
    (void)arg;
    (void)completion;
    (void)pool;
    (void)function;
    (void)input;
    (void)result;
    return SKUA_PENDING;
}

static int block(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    tally_wait(&scene.released, 1);
    return 0;
}

void task_waits_release(void)
{
    tally_add(&scene.released, 1);
}

void task_waits_close(void)
{
    task_waits_release();
    world_close();
}

/* ---- the waits ---- */

static bool match_none(void *arg, const skua_event *event)
{
    (void)arg;
    (void)event;
    return false;
}

static int wait_event(skua_context *ctx, uint64_t timeout_ns)
{
    skua_event *event;
    return skua_task_receive(ctx, &event, timeout_ns);
}

static int wait_type(skua_context *ctx, uint64_t timeout_ns)
{
    skua_event *event;
    return skua_task_receive_type(ctx, 12345, &event, timeout_ns);
}

static int wait_match(skua_context *ctx, uint64_t timeout_ns)
{
    skua_event *event;
    return skua_task_receive_if(ctx, match_none, NULL, &event, timeout_ns);
}

static int wait_sleep(skua_context *ctx, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return skua_task_sleep(ctx, SKUA_DURATION_MAX);
}

static int wait_ticker(skua_context *ctx, uint64_t timeout_ns)
{
    (void)timeout_ns;
    uint64_t next = 0;
    return skua_task_ticker(ctx, SKUA_DURATION_MAX, &next, NULL);
}

static skua_payload question(void)
{
    return skua_payload_u64(1, 2);
}

static int wait_call(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_call(ctx, scene.silent, question(), timeout_ns, NULL);
}

static int wait_call_name(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_call_name(ctx, "silent", question(), timeout_ns, NULL);
}

static int wait_monitor(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_monitor(ctx, scene.silent, timeout_ns, NULL);
}

static int wait_join(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_join(ctx, scene.silent, timeout_ns, NULL, NULL);
}

static int wait_name(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_await_name(ctx, "nobody", timeout_ns, NULL);
}

static int wait_readable(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_readable(ctx, scene.ends.near, timeout_ns);
}

static int wait_writable(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_writable(ctx, scene.ends.near, timeout_ns);
}

static int wait_blocking(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_blocking(ctx, (skua_pool){0}, block, question(), timeout_ns, NULL);
}

static int wait_yield(skua_context *ctx, uint64_t timeout_ns)
{
    return skua_task_yield(ctx, COMMAND_NEVER, question(), timeout_ns, NULL);
}

const struct task_wait task_waits[TASK_WAITS] = {
    {"receive", wait_event, .has_timeout = true},
    {"receive_type", wait_type, .has_timeout = true},
    {"receive_if", wait_match, .has_timeout = true},
    {"sleep", wait_sleep, .has_timeout = false},
    {"ticker", wait_ticker, .has_timeout = false},
    {"call", wait_call, .has_timeout = true, .has_peer = true},
    {"call_name", wait_call_name, .has_timeout = true, .has_peer = true},
    {"monitor", wait_monitor, .has_timeout = true, .has_peer = true},
    {"join", wait_join, .has_timeout = true, .has_peer = true},
    {"await_name", wait_name, .has_timeout = true},
    {"readable", wait_readable, .has_timeout = true},
    {"writable", wait_writable, .has_timeout = true},
    {"blocking", wait_blocking, .has_timeout = true},
    {"yield", wait_yield, .has_timeout = true},
};

/* ---- worlds ---- */

static void begin(void)
{
    world_register(COMMAND_NEVER, never_complete, NULL);
    world_start();
    tally_init(&scene.released);
    struct errand *silent = errand_start(never_answer);
    scene.silent = silent->pid;
    if (world->is_simulated) {
        world_settle();
    } else {
        scene.ends = full_pair_open();
        api_wait_state(world->api, silent->pid, SKUA_PROCESS_IDLE);
    }
    test_at_end(task_waits_release); /* before the world is closed */
}

void task_waits_open_sim(uint64_t seed, skua_sim_faults faults)
{
    world_create_sim(seed,
                     (skua_sim_config){.faults = faults,
                                       .services = {.wait = never_ready, .blocking = never_run}});
    begin();
}

const struct task_wait *task_waits_open(uint64_t round)
{
    if (round <= TASK_WAITS) {
        task_waits_open_sim(round, SIM_NO_FAULTS);
    } else {
        world_create((skua_runtime_config){0});
        begin();
    }
    return &task_waits[(round - 1) % TASK_WAITS];
}

void errand_await_wait(struct errand *errand)
{
    skua_process_snapshot info;
    if (world->is_simulated) {
        errands_go_on(SKUA_MILLISECOND);
        return;
    }
    tally_wait(&errand->noted, errand->asserted + 1);
    do {
        info = world_info(errand->pid);
    } while (info.state != SKUA_PROCESS_IDLE && info.state != SKUA_PROCESS_BLOCKED);
}

/* ---- errands ---- */

const struct task_wait *wait_of(const struct errand *errand)
{
    return errand->arg;
}

struct errand *errand_for(errand_fn *function, const struct task_wait *wait)
{
    struct errand *errand = errand_new(function);
    errand->arg = (void *)(uintptr_t)wait;
    return errand;
}

struct errand *errand_start_for(errand_fn *function, const struct task_wait *wait)
{
    struct errand *errand = errand_for(function, wait);
    errand_submit(errand);
    errand_await_wait(errand);
    return errand;
}
