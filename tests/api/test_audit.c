/* SPDX-License-Identifier: MIT */
/* Where audits are made: in a debug build a fault in the scheduler's structures ends the program at
 * the next occasion; in other builds nobody looks. What is found is tested in unit.watch.audit. */
#include <skua/skua.h>
#include <unistd.h>

#include "aborts.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/worker.h"
#include "test.h"

#ifdef SKUA_AUDIT
#define AUDITS_ARE_ON true
#else
#define AUDITS_ARE_ON false
#endif

/* After so many turns even a limited audit has been made. */
#define TURNS 100

/* Processes that make a table large. */
#define CROWD 5000

/* Ends a child that should have aborted long ago. */
#define HANG_SECONDS 120

static int go_on(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    uint32_t *turns = self;
    (void)ctx;
    (void)events;
    (void)count;
    if (++*turns < TURNS * STEP_TURNS_MAX) {
        skua_step_continue(out);
    } else {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type going_on = {
    .name = "going-on", .state_size = sizeof(uint32_t), .step = go_on};

/* ---- in a child ---- */

static skua_runtime *start(const skua_runtime_config *config)
{
    skua_runtime *runtime;
    SKUA_ASSERT(skua_runtime_create(&runtime, config) == 0);
    SKUA_ASSERT(skua_runtime_start(runtime) == 0);
    return runtime;
}

static skua_runtime *start_threads(void)
{
    return start(&(skua_runtime_config){.worker_count = 2});
}

static skua_runtime *start_simulation(void)
{
    const skua_sim_config sim = {0};
    return start(&(skua_runtime_config){.sim = &sim});
}

static skua_pid submit(skua_runtime *runtime, const skua_process_type *type)
{
    skua_pid pid;
    SKUA_ASSERT(skua_process_submit(runtime, type, NULL, NULL, 0, &pid) == 0);
    return pid;
}

/* Takes an event node and forgets it. */
static void leak(skua_runtime *runtime)
{
    uint32_t index;
    SKUA_ASSERT(deliver_acquire_node(&runtime->sched, NULL, &index));
}

static void stop_leaky(void *arg)
{
    (void)arg;
    skua_runtime *runtime = start_threads();
    leak(runtime);
    (void)skua_runtime_stop(runtime, SKUA_FOREVER);
}

static void destroy_leaky(void *arg)
{
    (void)arg;
    skua_runtime *runtime = start_threads();
    (void)skua_runtime_stop(runtime, SKUA_FOREVER);
    leak(runtime);
    (void)skua_runtime_destroy(runtime);
}

static void rest_leaky(void *arg)
{
    (void)arg;
    skua_runtime *runtime = start_simulation();
    leak(runtime);
    (void)skua_sim_run(runtime, SKUA_FOREVER);
}

static void step_leaky(void *arg)
{
    (void)arg;
    skua_runtime *runtime = start_simulation();
    (void)submit(runtime, &going_on);
    leak(runtime);
    for (uint32_t i = 0; i < TURNS; i++) {
        (void)skua_sim_step(runtime);
    }
}

static void run_leaky(void *arg)
{
    (void)arg;
    skua_runtime *runtime = start_simulation();
    skua_exit exit;
    leak(runtime);
    SKUA_ASSERT(skua_process_run(runtime, &going_on, NULL, NULL, 0, &exit) == 0);
}

static void stop_simulation_leaky(void *arg)
{
    (void)arg;
    skua_runtime *runtime = start_simulation();
    leak(runtime);
    (void)skua_runtime_stop(runtime, SKUA_FOREVER);
}

/* ---- here ---- */

TEST(audits_are_made_in_debug_builds_only)
{
    static void (*const occasions[])(void *) = {
        stop_leaky, destroy_leaky, rest_leaky, step_leaky, run_leaky, stop_simulation_leaky,
    };
    for (size_t i = 0; i < sizeof occasions / sizeof *occasions; i++) {
        if (AUDITS_ARE_ON) {
            assert_true(aborts_saying(occasions[i], NULL, "it is lost"));
        } else {
            assert_false(aborts(occasions[i], NULL));
        }
    }
}

#ifdef SKUA_AUDIT

static int rest(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_idle(out);
    return 0;
}

static const skua_process_type resting = {.name = "resting", .step = rest};

static void wait_until_idle(skua_runtime *runtime, skua_pid pid)
{
    struct scheduler *sched = &runtime->sched;
    skua_process_info info;
    do {
        SKUA_ASSERT(skua_process_info_read(runtime, pid, &info) == 0);
    } while (info.state != SKUA_PROCESS_IDLE);
    while (parking_asleep(&sched->parking) < scheduler_threads(sched)) {
        (void)usleep(100);
    }
}

/* Makes a process Ready that is Idle, and puts it nowhere. */
static void lose_token(skua_runtime *runtime, skua_pid pid)
{
    struct process *process;
    SKUA_ASSERT(process_table_find(&runtime->sched.table, pid, &process) == 0);
    SKUA_ASSERT(state_request_any(process, pid_generation(pid), STATE_KILL) == STATE_ENQUEUE);
}

static void wait_for_the_end(void)
{
    for (;;) {
        (void)pause();
    }
}

/* The table is so small that it is looked at whenever all sleep. */
static void sleep_on_lost_token(void *arg)
{
    (void)arg;
    (void)alarm(HANG_SECONDS);
    skua_runtime *runtime = start(&(skua_runtime_config){.worker_count = 2, .process_limit = 8});
    const skua_pid pid = submit(runtime, &resting);
    wait_until_idle(runtime, pid);
    lose_token(runtime, pid);
    idle_wake_all(&runtime->sched); /* and they sleep again */
    wait_for_the_end();
}

/* The table is so large that workers hardly ever look at it. */
static void rest_on_lost_token(void *arg)
{
    (void)arg;
    (void)alarm(HANG_SECONDS);
    skua_runtime *runtime = start_threads();
    for (uint32_t i = 0; i < CROWD; i++) {
        (void)submit(runtime, &resting);
    }
    const skua_pid pid = submit(runtime, &resting);
    wait_until_idle(runtime, pid);
    lose_token(runtime, pid);
    (void)submit(runtime, &resting); /* wakes the monitor */
    wait_for_the_end();
}

TEST(last_to_sleep_looks)
{
    assert_true(aborts_saying(sleep_on_lost_token, NULL, "INV-10: all sleep, and slot 1 is Ready"));
    assert_true(aborts_saying(rest_on_lost_token, NULL, "INV-10: all sleep, and slot"));
}

#endif
