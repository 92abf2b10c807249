/* SPDX-License-Identifier: MIT */
/* Where audits are made: in a debug build a fault in the scheduler's structures ends the program at
 * the next occasion; in other builds nobody looks. What is found is tested in unit.watch.audit. */
#include <unistd.h>

#include "aborts.h"
#include "actor.h"
#include "base/assert.h"
#include "idlers.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/worker.h"
#include "workers.h"

#ifdef SKUA_AUDIT
#define AUDITS_ARE_ON true
#else
#define AUDITS_ARE_ON false
#endif

/* After so many turns even a limited audit has been made. */
#define TURNS          100
#define TURNS_PER_STEP 4 /* at most, as in sim.c */

/* ---- faults, and the next occasion: all in a child ---- */

/* Takes an event node and forgets it. */
static void leak(void)
{
    uint32_t index;
    SKUA_ASSERT(deliver_acquire_node(&world_runtime()->sched, NULL, &index));
}

static void stop(void)
{
    (void)skua_runtime_stop(world_runtime(), SKUA_FOREVER);
}

static void stop_leaky(void *arg)
{
    (void)arg;
    world_open_with((skua_runtime_config){.worker_count = 2});
    leak();
    stop();
}

static void destroy_leaky(void *arg)
{
    (void)arg;
    world_open_with((skua_runtime_config){.worker_count = 2});
    stop();
    leak();
    (void)skua_runtime_destroy(world_runtime());
}

static void stop_simulation_leaky(void *arg)
{
    (void)arg;
    world_open_sim(1, (skua_sim_faults){0});
    leak();
    stop();
}

static void rest_leaky(void *arg)
{
    (void)arg;
    world_open_sim(1, (skua_sim_faults){0});
    leak();
    (void)skua_sim_run(world_runtime(), SKUA_FOREVER);
}

static void step_leaky(void *arg)
{
    (void)arg;
    world_open_sim(1, (skua_sim_faults){0});
    (void)actor_start(ACTS(continues(TURNS * TURNS_PER_STEP)));
    leak();
    for (uint32_t i = 0; i < TURNS; i++) {
        (void)skua_sim_step(world_runtime());
    }
}

static void run_leaky(void *arg)
{
    (void)arg;
    world_open_sim(1, (skua_sim_faults){0});
    leak();
    (void)actor_run(actor_new(ACTS(continues(TURNS * TURNS_PER_STEP), finishes(0))));
}

TEST(audits_are_made_in_debug_builds_only)
{
    static void (*const occasions[])(void *) = {
        stop_leaky, destroy_leaky, rest_leaky, step_leaky, run_leaky, stop_simulation_leaky,
    };
    for (size_t i = 0; i < COUNT_OF(occasions); i++) {
        if (AUDITS_ARE_ON) {
            assert_true(aborts_saying(occasions[i], NULL, "it is lost"));
        } else {
            assert_false(aborts(occasions[i], NULL));
        }
    }
}

/* ---- what looks odd, and is in order ---- */

#define CALLS 100 /* more than a process without an index has */

static int own_some(struct turn *turn, const struct act *act)
{
    void *memory;
    (void)act;
    return skua_own_alloc(turn->ctx, 100, &memory);
}

static int start_endless_timers(struct turn *turn, const struct act *act)
{
    int error = 0;
    (void)act;
    for (uint64_t tag = 0; tag < CALLS && error == 0; tag++) {
        error = perform(turn, timer(tag, SKUA_FOREVER));
    }
    return error;
}

/* Annexes with own memory and an index of tags, with and without calls. */
TEST(annexes_are_in_order)
{
    world_open_sim(1, (skua_sim_faults){0});
    for (unsigned round = 0; round < 3; round++) {
        (void)actor_start(ACTS(does(own_some, NULL)));
        struct actor *caller =
            actor_start(ACTS(does(start_endless_timers, NULL), cancels(CALLS / 2)));
        struct actor *owner = actor_start(
            ACTS(for_each_tag(CALLS, sleeps(0, 0)), does(own_some, NULL), cancels(CALLS)));
        world_settle();
        assert_saw(caller, failure(CALLS / 2, SKUA_E_CANCELLED));
        assert_completed_each_once(owner, CALLS, 0);
        actor_perform(caller, ACTS(does(own_some, NULL), for_each_tag(CALLS, cancels(0))));
        assert_int_equal(caller->seen_count, CALLS);
    }
}

#ifdef SKUA_AUDIT

/* Makes a process Ready that is Idle, and puts it nowhere. */
static void lose_token(skua_pid pid)
{
    struct process *process;
    SKUA_ASSERT(process_table_find(&world_runtime()->sched.table, pid, &process) == 0);
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
    watchdog_restart(); /* a child inherits none */
    world_open_with((skua_runtime_config){.worker_count = 2, .process_limit = 8});
    const skua_pid pid = idler_start();
    workers_await_asleep(0);
    lose_token(pid);
    idle_wake_all(&world_runtime()->sched); /* and they sleep again */
    wait_for_the_end();
}

/* The table is so large that workers hardly ever look at it. */
static void rest_on_lost_token(void *arg)
{
    (void)arg;
    watchdog_restart();
    world_open_with((skua_runtime_config){.worker_count = 2});
    (void)idlers_start(5000);
    const skua_pid pid = idler_start();
    workers_await_asleep(0);
    lose_token(pid);
    (void)api_submit(world->api, &api_idler, NULL); /* wakes the monitor */
    wait_for_the_end();
}

TEST(last_to_sleep_looks)
{
    assert_true(aborts_saying(sleep_on_lost_token, NULL, "INV-10: all sleep, and slot 1 is Ready"));
    assert_true(aborts_saying(rest_on_lost_token, NULL, "INV-10: all sleep, and slot"));
}

#endif
