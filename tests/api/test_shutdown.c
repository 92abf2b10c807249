/* SPDX-License-Identifier: MIT */
/* Stopping a runtime whose processes obey: every process is asked to finish exactly once, whatever
 * it does at that time, and whoever waits is released. */
#include "actor.h"
#include "desk.h"
#include "effort.h"
#include "handlers.h"
#include "stopper.h"
#include "survivors.h"
#include "threads.h"

static const skua_runtime_config one_worker = {.worker_count = 1};

/* ---- one cancel event for everybody ---- */

#define CROWD 500

TEST(stop_of_idle_processes_cancels_each_once)
{
    struct actor *crowd[CROWD];
    world_open();
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = actor_start(NO_ACTS);
    }
    world_close();
    for (size_t i = 0; i < CROWD; i++) {
        assert_saw(crowd[i], cancel(SKUA_E_STOPPED));
        /* The first step and the one with the cancel event, or both at once. */
        assert_in_range(crowd[i]->steps, 1, 2);
    }
}

#define MULTITUDE 100000

TEST(stop_of_a_hundred_thousand_processes_reaches_all)
{
    struct probe *probes = test_alloc(MULTITUDE * sizeof *probes);
    world_open_with((skua_runtime_config){.worker_count = 2});
    for (size_t i = 0; i < MULTITUDE; i++) {
        assert_int_equal(probe_submit(world_runtime(), &probes[i], NULL), 0);
    }
    assert_int_equal(world_stats().live, MULTITUDE);
    world_close();
    for (size_t i = 0; i < MULTITUDE; i++) {
        assert_probe_stopped_once(&probes[i]);
    }
}

TEST(stop_reaches_running_and_queued_processes)
{
    struct actor *queued[5];
    world_open_with(one_worker);
    struct actor *running = actor_start(ACTS(holds()));
    actor_await_held(running, 1);
    for (size_t i = 0; i < COUNT_OF(queued); i++) {
        queued[i] = actor_start(NO_ACTS);
    }
    struct stopper *stopper = stopper_begin(SKUA_FOREVER);
    assert_true(stopper_is_busy(stopper));
    actor_let_go(running);
    assert_int_equal(stopper_join(stopper), 0);
    assert_saw(running, cancel(SKUA_E_STOPPED));
    for (size_t i = 0; i < COUNT_OF(queued); i++) {
        assert_saw(queued[i], cancel(SKUA_E_STOPPED));
    }
}

/* Sends itself a message for each that it gets, so their number stays the same, until it is
 * cancelled. */
static int circulate(struct turn *turn, const struct act *act)
{
    const uint32_t *circulating = act->arg;
    const uint64_t count = turn_starts(turn) ? *circulating : turn->count;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_CANCEL) {
            return 0;
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        const int error = perform(turn, sends(turn->actor, 0, 0));
        if (error != 0) {
            return error;
        }
    }
    return ACT_WAITS;
}

/* The cancel event has its place behind what came before it, not behind what comes later. */
TEST(stop_reaches_a_process_that_always_has_messages)
{
    uint32_t counts[] = {1,
                         2,
                         SKUA_EVENTS_PER_STEP - 1,
                         SKUA_EVENTS_PER_STEP,
                         SKUA_EVENTS_PER_STEP + 1,
                         2 * SKUA_EVENTS_PER_STEP - 1,
                         2 * SKUA_EVENTS_PER_STEP};
    FOR_ROUNDS (round, COUNT_OF(counts)) {
        world_open_with(one_worker);
        struct actor *actor = actor_start(ACTS(does(circulate, &counts[round - 1]), finishes(0)));
        api_wait_steps(world->api, actor->pid, 10);
        world_close();
    }
}

TEST(stop_cancels_those_that_ignore_it_only_once)
{
    struct actor *stubborn[20];
    world_open();
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        stubborn[i] = actor_new(NO_ACTS);
        stubborn[i]->ignores_cancel = true;
        actor_submit(stubborn[i]);
        assert_int_equal(world_cancel(stubborn[i]->pid, SKUA_E_USER), 0);
    }
    struct stopper *stopper = stopper_start(SKUA_FOREVER);
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        actor_await_seen(stubborn[i], 2);
    }
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) { /* further steps bring no further ones */
        assert_int_equal(world_send(stubborn[i]->pid, skua_payload_u64(0, 5)), 0);
        actor_await_seen(stubborn[i], 3);
        actor_await_state(stubborn[i], SKUA_PROCESS_IDLE);
        assert_int_equal(world_terminate(stubborn[i]->pid), 0);
    }
    assert_int_equal(stopper_join(stopper), 0);
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        assert_saw(stubborn[i], cancel(SKUA_E_USER), cancel(SKUA_E_STOPPED), message(0, 5));
    }
}

/* ---- processes that wait for completions ---- */

static struct desk *open_with_desk(uint32_t workers)
{
    world_create((skua_runtime_config){.worker_count = workers});
    struct desk *desk = desk_open();
    world_start();
    return desk;
}

/* Processes that each wait for a completion, with their own item as input. */
static void start_waiting(struct actor **actors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        actors[i] = actor_new(NO_ACTS);
        actors[i]->script = ACTS(yields_item(1, DESK_KEEP, 0, &actors[i]->item));
        actor_submit(actors[i]);
        actor_await_state(actors[i], SKUA_PROCESS_BLOCKED);
    }
}

TEST(stop_with_open_yields_makes_their_completions_late)
{
    struct actor *actors[20];
    struct tracked results[COUNT_OF(actors)] = {{0}};
    struct desk *desk = open_with_desk(0);
    start_waiting(actors, COUNT_OF(actors));
    assert_int_equal(stop_patiently(SKUA_FOREVER), 0);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        assert_saw(actors[i], cancel(SKUA_E_STOPPED));
        assert_drops(&actors[i]->item, 1, 1);
        assert_int_equal(desk_complete_with(desk, i, tracked_payload(0, &results[i])), SKUA_E_LATE);
    }
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(world_stats().late_completions, COUNT_OF(results));
}

TEST(stop_waits_for_a_process_that_needs_a_completion_to_finish)
{
    struct tracked result = {.value = 5};
    struct desk *desk = open_with_desk(0);
    struct actor *actor =
        actor_start(ACTS(yields(1, DESK_KEEP, 0, 0), expects(cancel(SKUA_E_STOPPED)),
                         yields(2, DESK_KEEP, 0, 0), awaits(1), finishes(0)));
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    struct stopper *stopper = stopper_start(SKUA_FOREVER);
    desk_await_kept(desk, 2);
    assert_true(stopper_is_busy(stopper));
    actor_await_state(actor, SKUA_PROCESS_BLOCKED); /* it has been added to the open calls */
    assert_int_equal(desk_complete_with(desk, 1, tracked_payload(0, &result)), 0);
    assert_int_equal(stopper_join(stopper), 0);
    assert_saw(actor, cancel(SKUA_E_STOPPED), completion_of(2, 0, 5));
    assert_drops(&result, 1, 1);
}

/* A thread that completes while another stops the runtime. */
struct completer {
    struct desk *desk;
    struct tracked results[100];
    uint32_t in_time;
    uint32_t late;
};

static void complete_all(void *arg)
{
    struct completer *completer = arg;
    for (size_t i = 0; i < COUNT_OF(completer->results); i++) {
        const int error =
            desk_complete_with(completer->desk, i, tracked_payload(0, &completer->results[i]));
        completer->in_time += error == 0;
        completer->late += error == SKUA_E_LATE;
    }
}

TEST(stop_racing_with_completions_loses_no_payload)
{
    FOR_ROUNDS (round, EFFORT(100)) {
        struct completer completer = {.desk = open_with_desk(2)};
        struct actor *actors[COUNT_OF(completer.results)];
        start_waiting(actors, COUNT_OF(actors));
        struct thread *thread = thread_start(complete_all, &completer);
        assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), 0);
        thread_join(thread);

        assert_int_equal(completer.in_time + completer.late, COUNT_OF(actors));
        assert_int_equal(world_stats().late_completions, completer.late);
        assert_drops(completer.results, COUNT_OF(completer.results), 1);
        uint32_t completions = 0;
        for (size_t i = 0; i < COUNT_OF(actors); i++) {
            uint32_t cancels = 0;
            for (size_t n = 0; n < actors[i]->seen_count; n++) {
                completions += actors[i]->seen[n].type == SKUA_EVENT_COMPLETION;
                cancels += actors[i]->seen[n].type == SKUA_EVENT_CANCEL &&
                           actors[i]->seen[n].error == SKUA_E_STOPPED;
            }
            assert_int_equal(cancels, 1);
        }
        /* An accepted one may still come after the last step. */
        assert_in_range(completions, 0, completer.in_time);
    }
}

/* ---- threads that wait ---- */

struct waiter {
    struct actor *actor;
    struct tally waiting;
    int result;
    skua_exit exit;
    struct thread *thread;
};

static void wait_for_end(void *arg)
{
    struct waiter *waiter = arg;
    tally_add(&waiter->waiting, 1);
    waiter->result =
        skua_process_wait(world_runtime(), waiter->actor->pid, SKUA_FOREVER, &waiter->exit);
}

TEST(stop_releases_those_who_wait_for_processes)
{
    const struct {
        bool ignores_cancel;
        uint64_t timeout;
        int stopped;
        int exit_error;
    } rows[] = {
        {false, SKUA_FOREVER, 0, 0},
        {true, 0, SKUA_E_TIMEOUT, SKUA_E_TERMINATED},
    };
    FOR_ROWS (row, rows) {
        struct waiter waiters[6] = {{0}};
        world_open_with(one_worker);
        /* With its worker held, no process can end before its waiter waits. */
        struct actor *holder = actor_start(ACTS(holds()));
        actor_await_held(holder, 1);
        for (size_t i = 0; i < COUNT_OF(waiters); i++) {
            if (i % 2 == 0) { /* two for each process: the end of one must wake both */
                waiters[i].actor = actor_new(NO_ACTS);
                waiters[i].actor->ignores_cancel = row->ignores_cancel;
                actor_submit(waiters[i].actor);
            } else {
                waiters[i].actor = waiters[i - 1].actor;
            }
            tally_init(&waiters[i].waiting);
            waiters[i].thread = thread_start(wait_for_end, &waiters[i]);
            tally_wait(&waiters[i].waiting, 1);
        }
        actor_let_go(holder);
        for (size_t i = 0; i < COUNT_OF(waiters); i++) {
            actor_await_state(waiters[i].actor, SKUA_PROCESS_IDLE);
        }
        assert_int_equal(stop_patiently(row->timeout), row->stopped);
        for (size_t i = 0; i < COUNT_OF(waiters); i++) {
            thread_join(waiters[i].thread);
            /* A thread that announced itself but did not get to the call may have come too late. */
            if (waiters[i].result != SKUA_E_NO_PROCESS) {
                assert_int_equal(waiters[i].result, 0);
                assert_int_equal(waiters[i].exit.error, row->exit_error);
                assert_true(skua_pid_equal(waiters[i].exit.pid, waiters[i].actor->pid));
            }
        }
    }
}

/* ---- other calls at the same time ---- */

TEST(stop_by_several_threads_at_once_happens_once)
{
    struct actor *actors[50];
    struct stopper *stoppers[4];
    skua_runtime_config config = {0};
    const struct survivors *survivors = survivors_watch(&config);
    world_open_with(config);
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        actors[i] = actor_start(NO_ACTS);
    }
    for (size_t i = 0; i < COUNT_OF(stoppers); i++) {
        stoppers[i] = stopper_start(SKUA_FOREVER);
    }
    for (size_t i = 0; i < COUNT_OF(stoppers); i++) {
        assert_int_equal(stopper_join(stoppers[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        assert_saw(actors[i], cancel(SKUA_E_STOPPED));
    }
    assert_int_equal(survivors->count, 0);
}

static void start_late(void *result)
{
    *(int *)result = skua_runtime_start(world_runtime());
}

static void register_late(void *result)
{
    const skua_handler handler = {.name = "late", .run = never_called};
    *(int *)result = skua_command_register(world_runtime(), 200, &handler);
}

static bool is_done(void *thread)
{
    return thread_is_done(thread);
}

/* On threads of their own, because they might wait for the stop, which does not come to its end. */
TEST(stop_under_way_holds_up_no_call_that_does_not_wait)
{
    const struct {
        void (*call)(void *result);
        int expected;
    } rows[] = {{start_late, SKUA_E_STOPPED}, {register_late, SKUA_E_FROZEN}};
    world_open();
    struct actor *holder = actor_start(ACTS(holds()));
    actor_await_held(holder, 1);
    struct stopper *stopper = stopper_begin(SKUA_FOREVER);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int result = 1;
        struct thread *thread = thread_start(rows[i].call, &result);
        wait_until(is_done, thread, "a call during a stop");
        thread_join(thread);
        assert_int_equal(result, rows[i].expected);
    }
    assert_true(stopper_is_busy(stopper));
    actor_let_go(holder);
    assert_int_equal(stopper_join(stopper), 0);
}
