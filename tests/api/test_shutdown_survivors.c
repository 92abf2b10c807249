/* SPDX-License-Identifier: MIT */
/* Stopping a runtime whose processes do not finish in time: they are named and ended, what they had
 * is dropped, and a stop gives up on a step that does not return, but can be resumed. */
#include "actor.h"
#include "crowd.h"
#include "desk.h"
#include "sched/worker.h"
#include "stopper.h"
#include "survivors.h"

static struct survivors *open_with_survivors(uint32_t workers)
{
    skua_runtime_config config = {.worker_count = workers};
    struct survivors *survivors = survivors_watch(&config);
    world_open_with(config);
    return survivors;
}

static struct actor *start_stubborn(struct script script)
{
    struct actor *actor = actor_new(script);
    actor->ignores_cancel = true;
    actor_submit(actor);
    return actor;
}

/* Those that had to be ended may have been ended before their cancel event. */
static void assert_ended(const struct actor *actor)
{
    assert_int_equal(actor->closes, 1);
    if (actor->seen_count > 0) {
        assert_saw(actor, cancel(SKUA_E_STOPPED));
    }
}

/* ---- survivors ---- */

TEST(stop_names_and_ends_each_process_that_ignores_it)
{
    struct actor *stubborn[7];
    const struct survivors *survivors = open_with_survivors(0);
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        stubborn[i] = start_stubborn(NO_ACTS);
        actor_await_state(stubborn[i], SKUA_PROCESS_IDLE);
    }
    assert_int_equal(stop_patiently(20 * SKUA_MILLISECOND), SKUA_E_TIMEOUT);
    assert_int_equal(survivors->count, COUNT_OF(stubborn));
    for (size_t i = 0; i < COUNT_OF(stubborn); i++) {
        const skua_process_snapshot *info = survivors_find(survivors, stubborn[i]->pid);
        assert_in_range(info->steps, 1, 2);
        assert_int_equal(info->mailbox_length, 0);
        assert_string_equal(info->type_name, "actor");
        assert_ended(stubborn[i]);
    }
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), 0);
    world_close();
    assert_int_equal(survivors->count, COUNT_OF(stubborn));
}

TEST(stop_without_survivors_names_nobody)
{
    const struct survivors *survivors = open_with_survivors(0);
    (void)actor_start(NO_ACTS);
    world_close();
    assert_int_equal(survivors->count, 0);
}

TEST(stop_without_on_survivor_ends_them_too)
{
    world_open();
    struct actor *stubborn = start_stubborn(NO_ACTS);
    assert_int_equal(stop_patiently(0), SKUA_E_TIMEOUT);
    assert_int_equal(stubborn->closes, 1);
}

TEST(stop_ends_processes_that_never_rest)
{
    struct actor *restless[8];
    const struct survivors *survivors = open_with_survivors(0);
    for (size_t i = 0; i < COUNT_OF(restless); i++) {
        restless[i] = start_stubborn(ACTS(continues(UINT64_MAX)));
    }
    assert_int_equal(stop_patiently(50 * SKUA_MILLISECOND), SKUA_E_TIMEOUT);
    assert_int_equal(survivors->count, COUNT_OF(restless));
    for (size_t i = 0; i < COUNT_OF(restless); i++) {
        assert_ended(restless[i]);
    }
}

/* ---- their messages ---- */

#define LETTERS 120

/* One worker: a process holds it, another waits behind with its mailbox filled. */
struct full_mailbox {
    struct survivors *survivors;
    struct actor *holder;
    struct actor *waiting;
};

/* The worker is let go when both have been told to end, so that no step takes the messages. */
static void end_both(void *arg, const skua_process_snapshot *info)
{
    struct full_mailbox *scene = arg;
    (void)info;
    (void)world_terminate(scene->holder->pid);
    (void)world_terminate(scene->waiting->pid);
    if (scene->survivors->count == 2) {
        actor_let_go(scene->holder);
    }
}

TEST(stop_drops_the_messages_of_those_it_ends)
{
    struct tracked letters[LETTERS] = {{0}};
    struct full_mailbox scene = {.survivors = open_with_survivors(1)};
    scene.survivors->then = end_both;
    scene.survivors->then_arg = &scene;
    scene.holder = start_stubborn(ACTS(holds()));
    actor_await_held(scene.holder, 1);
    scene.waiting = start_stubborn(NO_ACTS);
    for (size_t i = 0; i < LETTERS; i++) {
        assert_int_equal(world_send(scene.waiting->pid, tracked_payload(0, &letters[i])), 0);
    }
    assert_int_equal(stop_patiently(0), SKUA_E_TIMEOUT);
    assert_int_equal(scene.survivors->count, 2);
    const skua_process_snapshot *holder = survivors_find(scene.survivors, scene.holder->pid);
    assert_int_equal(holder->state, SKUA_PROCESS_RUNNING);
    assert_int_equal(holder->steps, 1);
    const skua_process_snapshot *waiting = survivors_find(scene.survivors, scene.waiting->pid);
    assert_int_equal(waiting->state, SKUA_PROCESS_READY);
    assert_int_equal(waiting->steps, 0);
    assert_int_equal(waiting->mailbox_length, LETTERS);
    assert_int_equal(scene.waiting->steps, 0);
    assert_int_equal(scene.waiting->closes, 1);
    assert_int_equal(scene.holder->closes, 1);
    assert_drops(letters, LETTERS, 1);
}

TEST(stop_drops_the_messages_that_came_during_a_last_step)
{
    struct tracked letters[LETTERS] = {{0}};
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *holder = actor_start(ACTS(holds(), finishes(0)));
    actor_await_held(holder, 1);
    for (size_t i = 0; i < LETTERS; i++) {
        assert_int_equal(world_send(holder->pid, tracked_payload(0, &letters[i])), 0);
    }
    struct stopper *stopper = stopper_begin(SKUA_FOREVER);
    actor_let_go(holder);
    assert_int_equal(stopper_join(stopper), 0);
    assert_saw_nothing(holder);
    assert_drops(letters, LETTERS, 1);
}

/* ---- what on_survivor may do ---- */

struct busy_callback {
    struct actor *refused;
    struct tracked letter;
    int submit;
    int send;
    int cancel;
    int info;
    int stats;
    int config;
};

static void call_much(void *arg, const skua_process_snapshot *info)
{
    struct busy_callback *scene = arg;
    skua_process_snapshot again;
    skua_stats total;
    skua_runtime_config config;
    scene->submit = actor_try_submit(scene->refused);
    scene->send = world_send(info->pid, tracked_payload(0, &scene->letter));
    scene->cancel = world_cancel(info->pid, SKUA_E_USER);
    scene->info = skua_process_info(world_runtime(), info->pid, &again);
    scene->stats = skua_stats_read(world_runtime(), &total, NULL, 0);
    scene->config = skua_runtime_config_read(world_runtime(), &config);
}

TEST(on_survivor_may_make_every_call_that_does_not_wait)
{
    struct survivors *survivors = open_with_survivors(2);
    struct busy_callback scene = {.refused = actor_new(NO_ACTS)};
    survivors->then = call_much;
    survivors->then_arg = &scene;
    struct actor *stubborn = start_stubborn(NO_ACTS);
    assert_int_equal(stop_patiently(0), SKUA_E_TIMEOUT);
    assert_int_equal(survivors->count, 1);
    assert_int_equal(scene.submit, SKUA_E_STOPPED);
    assert_int_equal(scene.send, 0);
    assert_int_equal(scene.cancel, 0);
    assert_int_equal(scene.info, 0);
    assert_int_equal(scene.stats, 2);
    assert_int_equal(scene.config, 0);
    assert_drops(&scene.letter, 1, 1);
    assert_int_equal(scene.refused->inits, 0);
    assert_int_equal(stubborn->closes, 1);
}

/* ---- stuck steps ---- */

TEST(stop_with_a_stuck_step_gives_up_and_can_be_resumed)
{
    const uint32_t threads = os_wait_alone();
    const struct survivors *survivors = open_with_survivors(0);
    skua_runtime *runtime = world_runtime();
    struct actor *stuck = start_stubborn(ACTS(holds()));
    actor_await_held(stuck, 1);

    /* Nobody lets the step go before this returns. */
    assert_int_equal(skua_runtime_stop(runtime, 0), SKUA_E_STUCK);
    assert_int_equal(survivors->count, 1);
    assert_int_equal(survivors_find(survivors, stuck->pid)->state, SKUA_PROCESS_RUNNING);
    assert_int_equal(skua_runtime_destroy(runtime), SKUA_E_BUSY);
    assert_int_equal(skua_runtime_start(runtime), SKUA_E_STOPPED);
    assert_int_equal(actor_try_submit(actor_new(NO_ACTS)), SKUA_E_STOPPED);
    assert_int_equal(skua_runtime_stop(runtime, 10 * SKUA_MILLISECOND), SKUA_E_STUCK);
    assert_int_equal(stuck->closes, 0);

    actor_let_go(stuck);
    assert_int_equal(skua_runtime_stop(runtime, SKUA_FOREVER), SKUA_E_TIMEOUT);
    assert_int_equal(stuck->closes, 1);
    assert_int_equal(survivors->count, 1);
    os_wait_threads(threads);
}

TEST(stop_with_a_stuck_step_still_ends_all_others)
{
    struct actor *obedient[50];
    struct actor *stubborn[50];
    world_open_with((skua_runtime_config){.worker_count = 2});
    for (size_t i = 0; i < COUNT_OF(obedient); i++) {
        obedient[i] = actor_start(NO_ACTS);
        stubborn[i] = start_stubborn(NO_ACTS);
    }
    struct actor *stuck = start_stubborn(ACTS(holds()));
    actor_await_held(stuck, 1);
    assert_int_equal(skua_runtime_stop(world_runtime(), 100 * SKUA_MILLISECOND), SKUA_E_STUCK);
    for (size_t i = 0; i < COUNT_OF(obedient); i++) {
        actor_await_end(obedient[i]); /* at once, unless the machine is very busy */
        actor_await_end(stubborn[i]);
        assert_ended(obedient[i]);
        assert_ended(stubborn[i]);
    }
    actor_let_go(stuck);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
}

/* Has the worker of this step take its time before it steals, as after many small thefts. */
static int become_patient(struct turn *turn, const struct act *act)
{
    (void)turn;
    (void)act;
    worker_of_thread()->last_steal.patience = 100;
    return 0;
}

/* What the stuck step has readied, only a thief can reach. */
TEST(stop_with_a_stuck_step_ends_what_waits_for_its_worker)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *thief = start_stubborn(ACTS(does(become_patient, NULL), holds()));
    actor_await_held(thief, 1);
    const struct crowd children = crowd_new(20, NO_ACTS);
    struct actor *stuck = start_stubborn(ACTS(spawns_crowd(children), holds()));
    actor_await_held(stuck, 1);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_STUCK);
    actor_let_go(thief);
    crowd_await_end(children);
    actor_await_end(thief);
    assert_int_equal(stuck->closes, 0);
    actor_let_go(stuck);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
}

/* A handler that does not return is as bad. */
TEST(stop_with_a_stuck_handler_gives_up_too)
{
    struct tracked input = {0};
    world_create((skua_runtime_config){.worker_count = 1});
    struct desk *desk = desk_open();
    world_start();
    struct actor *actor = actor_start(ACTS(yields_item(1, DESK_STICK, 0, &input)));
    desk_await_stuck(desk, 1);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_STUCK);
    desk_release(desk);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
    assert_int_equal(actor->closes, 1);
    assert_drops(&input, 1, 1);
}
