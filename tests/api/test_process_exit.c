/* SPDX-License-Identifier: MIT */
/* Hearing of the end of a process: on_exit, wait and run, and who gets its result. */
#include <sched.h>

#include "exits.h"
#include "runtime/runtime.h"
#include "sched/shutdown.h"
#include "stopper.h"

#define ERROR_STEP (SKUA_E_USER - 2)

enum { RESULT = 7 };

/* ---- on_exit ---- */

static struct exits *open_with_exits(void)
{
    struct exits *exits = exits_new();
    world_open_with((skua_runtime_config){NOTES_EXITS(exits)});
    return exits;
}

TEST(on_exit_tells_how_a_process_ended_by_itself)
{
    struct exits *exits = open_with_exits();
    struct actor *done = actor_start(ACTS(finishes(99)));
    exits_await(exits, 1);
    struct actor *failed = actor_start(ACTS(fails(ERROR_STEP)));
    exits_await(exits, 2);
    world_close();
    assert_exited(exits, done, 0);
    assert_int_equal(skua_payload_to_u64(&exits->list[0].exit.result), 99);
    assert_exited(exits, failed, ERROR_STEP);
    assert_int_equal(exits->list[1].exit.result.storage, SKUA_PAYLOAD_EMPTY);
}

TEST(on_exit_tells_of_processes_ended_by_the_shutdown)
{
    struct actor *survivors[5];
    struct exits *exits = open_with_exits();
    for (size_t i = 0; i < COUNT_OF(survivors); i++) {
        survivors[i] = actor_new(NO_ACTS);
        survivors[i]->ignores_cancel = true;
        actor_submit(survivors[i]);
    }
    world_expect_survivors();
    world_close();
    assert_int_equal(exits->count, COUNT_OF(survivors));
    for (size_t i = 0; i < COUNT_OF(survivors); i++) {
        assert_exited(exits, survivors[i], SKUA_E_TERMINATED);
    }
}

TEST(on_exit_may_take_the_result)
{
    struct tracked item = {0};
    struct exits *exits = open_with_exits();
    exits->take_results = true;
    (void)actor_start(ACTS(finishes_with(RESULT, &item)));
    exits_await(exits, 1);
    world_close();
    assert_drops(&item, 1, 0);
    assert_ptr_equal(skua_payload_data(&exits->list[0].exit.result), &item);
}

/* What statistics say while on_exit runs. */
struct census {
    atomic_uint exits;
    atomic_uint uncounted; /* exits that were not among the finished */
    atomic_uint alive;     /* exits at which more were alive than have not been told of */
};

enum { CENSUS_SIZE = 200 };

static void take_census(void *arg, skua_exit *exit)
{
    struct census *census = arg;
    const unsigned exits = atomic_fetch_add(&census->exits, 1) + 1;
    const skua_stats stats = world_stats();
    (void)exit;
    (void)atomic_fetch_add(&census->uncounted, stats.finished < exits);
    (void)atomic_fetch_add(&census->alive, stats.live > CENSUS_SIZE - exits);
}

TEST(on_exit_finds_the_process_counted)
{
    struct census *census = test_alloc(sizeof *census);
    world_open_with((skua_runtime_config){.on_exit = take_census, .on_exit_arg = census});
    for (unsigned i = 0; i < CENSUS_SIZE; i++) {
        (void)actor_start(i % 2 == 0 ? ACTS(finishes(1)) : ACTS(fails(ERROR_STEP)));
    }
    world_await_live(0);
    world_close();
    assert_int_equal(census->exits, CENSUS_SIZE);
    assert_int_equal(census->uncounted, 0);
    assert_int_equal(census->alive, 0);
}

static bool is_past_the_timeout(void *arg)
{
    (void)arg;
    return shutdown_phase(&world_runtime()->sched) == PHASE_ENDING;
}

/* Stays until the stop has waited in vain, and leaves a trace. */
static void linger(void *arg, skua_exit *exit)
{
    struct tally *told = arg;
    (void)exit;
    tally_add(told, 1);
    wait_until(is_past_the_timeout, NULL, "the stop's timeout");
    tally_add(told, 1);
}

/* The process is counted as finished, so nothing is left to be ended; but the stop waits. */
TEST(stop_waits_for_on_exit_to_return)
{
    struct tracked item = {0};
    struct tally *told = test_alloc(sizeof *told);
    tally_init(told);
    world_open_with((skua_runtime_config){.on_exit = linger, .on_exit_arg = told});
    (void)actor_start(ACTS(finishes_with(RESULT, &item)));
    tally_wait(told, 1);
    assert_int_equal(world_stats().live, 0);
    const int stopped = skua_runtime_stop(world_runtime(), 0);
    assert_true(stopped == 0 || stopped == SKUA_E_STUCK); /* if the machine is that slow */
    assert_true(stopped == 0 || stop_patiently(SKUA_FOREVER) == SKUA_E_TIMEOUT);
    assert_int_equal(tally_count(told), 2);
    assert_drops(&item, 1, 1);
}

TEST(result_that_nobody_wants_is_dropped_once)
{
    struct tracked item = {0};
    (void)open_with_exits();
    (void)actor_start(ACTS(finishes_with(RESULT, &item)));
    world_await_live(0);
    world_close();
    assert_drops(&item, 1, 1);
}

/* ---- wait ---- */

static int wait_for(skua_pid pid, uint64_t timeout_ns, skua_exit *exit)
{
    return skua_process_wait(world_runtime(), pid, timeout_ns, exit);
}

TEST(wait_for_a_process_that_stays_times_out)
{
    skua_exit exit;
    world_open();
    const skua_pid pid = actor_start(NO_ACTS)->pid;
    assert_int_equal(wait_for(pid, 0, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(wait_for(pid, SKUA_MILLISECOND, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(wait_for(pid, SKUA_MILLISECOND, NULL), SKUA_E_TIMEOUT);
    assert_int_equal(world_stats().live, 1);
}

/* Waiting for a process is none of its business. */
TEST(wait_for_a_process_gives_it_no_step)
{
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    assert_int_equal(wait_for(actor->pid, 0, NULL), SKUA_E_TIMEOUT);
    actor_perform_until_held(actor, ACTS(holds()));
    assert_int_equal(wait_for(actor->pid, 0, NULL), SKUA_E_TIMEOUT);
    actor_release(actor);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    assert_int_equal(actor->steps, 2);
}

TEST(wait_for_a_finished_process_is_refused)
{
    world_open();
    struct actor *actor = actor_start(ACTS(finishes(0)));
    world_await_live(0);
    assert_int_equal(wait_for(actor->pid, SKUA_FOREVER, NULL), SKUA_E_NO_PROCESS);
    assert_int_equal(wait_for((skua_pid){0}, SKUA_FOREVER, NULL), SKUA_E_NO_PROCESS);
}

/* ---- wait of several threads ---- */

/* Threads that wait for the end of an actor, and the last, which lets it finish when they are about
 * to. That one waits can be seen only from its success: a process that ends a moment too early is
 * SKUA_E_NO_PROCESS. */
#define WAITERS     3
#define WAIT_ROUNDS 500

struct waiter {
    struct actor *actor;
    struct tally *ready;
    bool ends_it;
    int error;
    skua_exit exit;
    unsigned closes; /* of the actor, when the wait returned */
};

static void wait_or_end(void *arg)
{
    struct waiter *waiter = arg;
    if (waiter->ends_it) {
        tally_wait(waiter->ready, WAITERS);
        for (unsigned i = 0; i < 20; i++) {
            (void)sched_yield(); /* now the others would like to begin */
        }
        waiter->error = world_send(waiter->actor->pid, skua_payload_empty(0));
    } else {
        tally_add(waiter->ready, 1);
        waiter->error = wait_for(waiter->actor->pid, SKUA_FOREVER, &waiter->exit);
        waiter->closes = waiter->actor->closes;
    }
}

/* Lets them wait for an actor that finishes so; returns how many were there in time, and writes
 * their exits. */
static unsigned wait_together(struct act finishing, skua_exit *exits)
{
    struct waiter waiters[WAITERS + 1];
    struct tally ready;
    unsigned in_time = 0;
    struct actor *actor = actor_start(ACTS(awaits(1), finishing));
    tally_init(&ready);
    for (size_t i = 0; i <= WAITERS; i++) {
        waiters[i] = (struct waiter){.actor = actor, .ready = &ready, .ends_it = i == WAITERS};
    }
    api_in_threads(WAITERS + 1, wait_or_end, waiters, sizeof waiters[0]);
    assert_int_equal(waiters[WAITERS].error, 0);
    for (size_t i = 0; i < WAITERS; i++) {
        if (waiters[i].error == 0) {
            assert_true(skua_pid_equal(waiters[i].exit.pid, actor->pid));
            assert_int_equal(waiters[i].exit.error, 0);
            assert_int_equal(waiters[i].exit.result.type, RESULT);
            assert_int_equal(waiters[i].closes, 1);
            exits[in_time++] = waiters[i].exit;
        } else {
            assert_int_equal(waiters[i].error, SKUA_E_NO_PROCESS);
        }
    }
    world_await_live(0);
    return in_time;
}

TEST(wait_of_several_threads_tells_each_the_result)
{
    const struct act finishing = with_payload(finishes(0), skua_payload_u64(RESULT, 99));
    unsigned complete_rounds = 0;
    world_open_with((skua_runtime_config){.worker_count = 2});
    for (unsigned round = 0; round < WAIT_ROUNDS && complete_rounds < 5; round++) {
        skua_exit exits[WAITERS];
        const unsigned in_time = wait_together(finishing, exits);
        for (unsigned i = 0; i < in_time; i++) {
            assert_int_equal(skua_payload_to_u64(&exits[i].result), 99);
        }
        complete_rounds += in_time == WAITERS;
    }
    assert_true(complete_rounds > 0);
}

TEST(wait_of_several_threads_gives_an_owned_result_to_one)
{
    unsigned complete_rounds = 0;
    world_open_with((skua_runtime_config){.worker_count = 2});
    for (unsigned round = 0; round < WAIT_ROUNDS && complete_rounds < 5; round++) {
        struct tracked item = {0};
        skua_exit exits[WAITERS];
        const unsigned in_time = wait_together(finishes_with(RESULT, &item), exits);
        unsigned owners = 0;
        for (unsigned i = 0; i < in_time; i++) {
            owners += exits[i].result.storage == SKUA_PAYLOAD_OWNED;
            skua_payload_drop(&exits[i].result);
        }
        assert_int_equal(owners, in_time > 0 ? 1 : 0);
        assert_drops(&item, 1, 1);
        complete_rounds += in_time == WAITERS;
    }
    assert_true(complete_rounds > 0);
}

/* ---- calls from inside ---- */

static int wait_for_itself(struct turn *turn, const struct act *act)
{
    const uint64_t *timeout_ns = act->arg;
    return wait_for(turn->actor->pid, *timeout_ns, NULL);
}

static int run_idler(struct turn *turn, const struct act *act)
{
    struct tracked *items = act->arg;
    skua_payload input[] = {tracked_payload(0, &items[0]), tracked_payload(0, &items[1])};
    (void)turn;
    return skua_process_run_with(
        world_runtime(),
        &(skua_spawn_options){.type = &api_idler, .input = input, .input_count = 2}, NULL);
}

TEST(wait_and_run_inside_a_step_or_init_are_refused)
{
    uint64_t timeouts[] = {0, SKUA_FOREVER};
    struct tracked items[2] = {0};
    world_open();
    const struct act waits_forever =
        refused(does(wait_for_itself, &timeouts[1]), SKUA_E_INSIDE_STEP);
    struct actor *actor = actor_new(
        ACTS(refused(does(wait_for_itself, &timeouts[0]), SKUA_E_INSIDE_STEP), waits_forever,
             refused(does(run_idler, items), SKUA_E_INSIDE_STEP), finishes(0)));
    actor->in_init = ACTS(waits_forever);
    assert_result(actor_run(actor_new(ACTS(spawns(actor), finishes(0)))), 0);
    actor_await_end(actor);
    assert_drops(items, 2, 1);
}

/* For another runtime, a worker of this one is a thread like any other. */
static int start_and_end_elsewhere(struct turn *turn, const struct act *act)
{
    const struct api *other = act->arg;
    skua_pid pid = {0};
    (void)turn;
    const int error = skua_process_submit(other->runtime, &api_idler, skua_nothing(), &pid);
    return error != 0 ? error : skua_process_terminate(other->runtime, pid);
}

TEST(call_to_another_runtime_from_a_step_works)
{
    struct api other;
    world_open();
    api_run(&other, 1);
    const struct act calling = does(start_and_end_elsewhere, &other);
    assert_result(actor_run(actor_new(ACTS(calling, finishes(0)))), 0);
    assert_int_equal(api_stats(&other).spawned, 1);
    api_wait_live(&other, 0);
    api_stop(&other);
}

/* ---- run ---- */

TEST(run_returns_how_the_process_ended_after_its_close)
{
    struct tracked items[2] = {0};
    world_open();
    struct actor *done = actor_new(ACTS(finishes_with(RESULT, &items[0])));
    skua_exit exit = actor_run(done);
    assert_int_equal(done->closes, 1);
    assert_int_equal(exit.error, 0);
    assert_ptr_equal(skua_payload_data(&exit.result), &items[0]);
    assert_drops(&items[0], 1, 0);
    skua_payload_drop(&exit.result);

    struct actor *failed = actor_new(ACTS(fails(ERROR_STEP)));
    exit = actor_run(failed);
    assert_int_equal(failed->closes, 1);
    assert_int_equal(exit.result.storage, SKUA_PAYLOAD_EMPTY);
    assert_failed(exit, ERROR_STEP);

    struct actor *unheard = actor_new(ACTS(finishes_with(RESULT, &items[1])));
    assert_int_equal(actor_try_run(unheard, NULL), 0);
    assert_int_equal(unheard->closes, 1);
    world_await_live(0);
    assert_drops(&items[1], 1, 1);
}
