/* SPDX-License-Identifier: MIT */
/* Steps that do not return (G9): what their workers hold up is served meanwhile, the program is
 * told which steps they are, and when they return all is as before. Steps are stuck until the test
 * lets them go on, which it does only after it has seen what it waits for. */
#include <time.h>

#include "base/monotonic.h"
#include "desk.h"
#include "runtime/runtime.h"
#include "stalls.h"
#include "waits.h"
#include "workers.h"

/* Started, but maybe not in its step yet. */
static struct actor *culprit_start(const char *name, struct script script)
{
    struct actor *culprit = actor_new(script);
    culprit->type.name = name;
    actor_submit(culprit);
    return culprit;
}

static void run_another(void)
{
    actor_await_end(actor_start(ACTS(finishes(0))));
}

/* Something is stuck on the only worker, and another process is served. */
static void assert_service_and_name(struct actor *culprit, const char *type_name)
{
    run_another();
    (void)stall_await(culprit);
    assert_stalled_once(culprit, type_name);
}

/* ---- all that two stuck workers hold up ---- */

#define WORKERS 2

/* Each culprit sends to its friend while it is stuck. */
struct scene {
    struct actor *culprits[WORKERS];
    struct actor *friends[WORKERS];
    struct actor *sleeper;
    struct actor *reader;
    struct ends pipe;
};

static void scene_begin(struct scene *scene, uint32_t spare_limit, uint64_t sleep_ns)
{
    stalls_open((skua_runtime_config){.worker_count = WORKERS, .spare_limit = spare_limit});
    for (size_t i = 0; i < WORKERS; i++) {
        scene->friends[i] = actor_start(NO_ACTS);
        actor_await_state(scene->friends[i], SKUA_PROCESS_IDLE);
    }
    scene->pipe = pipe_open();
    scene->reader = reader_start(scene->pipe.near);
    scene->sleeper = actor_start(ACTS(sleeps(1, sleep_ns)));
    tally_wait(&scene->sleeper->performed, 1);
}

/* Both culprits are in their steps. False if the timer was faster than that. */
static bool scene_get_stuck(struct scene *scene)
{
    static const char *const names[] = {"first culprit", "second culprit"};
    for (size_t i = 0; i < WORKERS; i++) {
        scene->culprits[i] = culprit_start(
            names[i], ACTS(holds(), sends(scene->friends[i], 0, 0), holds(), finishes(0)));
    }
    for (size_t i = 0; i < WORKERS; i++) {
        actor_await_held(scene->culprits[i], 1);
    }
    return deadlines_next_of_all(&world_runtime()->sched.deadlines, WORKERS) != UINT64_MAX;
}

/* Nobody is released for good. False if it was not the usual workers that were stuck. */
static bool scene_assert_service(struct scene *scene)
{
    bool usual = true;
    run_another();
    write_byte(scene->pipe.far);
    assert_wait_ends(scene->reader, 0);
    actor_await_seen(scene->sleeper, 1);
    assert_saw(scene->sleeper, completion(1, 0));
    for (size_t i = 0; i < WORKERS; i++) {
        usual = stall_await(scene->culprits[i]).stall.worker < WORKERS && usual;
        actor_let_go(scene->culprits[i]);
        actor_await_held(scene->culprits[i], 2);
        actor_await_seen(scene->friends[i], 1);
        assert_saw(scene->friends[i], message(0, 0));
    }
    return usual;
}

/* Everything goes on, and ends by itself. */
static void scene_end(struct scene *scene)
{
    for (size_t i = 0; i < WORKERS; i++) {
        actor_let_go(scene->culprits[i]);
        actor_await_end(scene->culprits[i]);
    }
    for (int i = 0; i < 100; i++) {
        run_another();
    }
    world_close();
}

static void scene_assert_names(struct scene *scene)
{
    assert_stalled_once(scene->culprits[0], "first culprit");
    assert_stalled_once(scene->culprits[1], "second culprit");
    const uint32_t calls = stall_count();
    const skua_stats stats = world_stats();
    assert_true(calls >= WORKERS);
    assert_true(stats.stalls >= calls); /* more, if a process ended at that moment */
    assert_true(stats.spares >= 1);
    assert_stalls_without_frames(); /* nobody has asked for any */
}

/* On a slow machine the timer may be due before both workers are stuck, or a spare worker may have
 * taken the place of the second one: then this was not the scene, and it is set up again. */
static void play_until_right(uint32_t spare_limit)
{
    uint64_t sleep_ns = 50 * SKUA_MILLISECOND;
    bool right = false;
    while (!right) {
        struct scene scene;
        scene_begin(&scene, spare_limit, sleep_ns);
        const bool timer_waits = scene_get_stuck(&scene);
        right = scene_assert_service(&scene) && timer_waits;
        if (right) {
            scene_assert_names(&scene);
        }
        if (spare_limit != 0) {
            assert_true(workers_count() <= WORKERS + spare_limit);
        }
        scene_end(&scene);
        sleep_ns *= timer_waits ? 1 : 2;
    }
}

TEST(monitor_with_all_workers_stuck_serves_everything_meanwhile)
{
    play_until_right(0);
}

TEST(monitor_with_one_spare_for_two_stuck_workers_serves_everything_meanwhile)
{
    play_until_right(1);
}

/* Nobody is awake who could come across the process that the stuck step readies. */
TEST(monitor_takes_out_what_a_stuck_step_readies_while_all_others_sleep)
{
    stalls_open((skua_runtime_config){0});
    struct actor *friend = actor_start(NO_ACTS);
    actor_await_state(friend, SKUA_PROCESS_IDLE);
    struct actor *culprit = actor_start(ACTS(holds(), sends(friend, 0, 0), holds(), finishes(0)));
    (void)stall_await(culprit);
    workers_await_asleep(1);

    actor_let_go(culprit);
    actor_await_held(culprit, 2);

    actor_await_seen(friend, 1);
    assert_saw(friend, message(0, 0));
    actor_let_go(culprit);
}

/* ---- other code of the program that is stuck ---- */

TEST(monitor_finds_a_handler_that_does_not_return)
{
    stalls_create((skua_runtime_config){.worker_count = 1});
    struct desk *desk = desk_open();
    world_start();
    struct actor *culprit = culprit_start("yielder", ACTS(yields(1, DESK_STICK, 0, 0)));
    desk_await_stuck(desk, 1);
    assert_service_and_name(culprit, "yielder");
    desk_release(desk);
}

TEST(monitor_finds_a_close_that_does_not_return)
{
    stalls_open((skua_runtime_config){.worker_count = 1});
    struct actor *culprit = actor_new(ACTS(finishes(0)));
    culprit->type.name = "closing";
    culprit->holds_in_close = true;
    actor_submit(culprit);
    actor_await_held(culprit, 1);
    assert_service_and_name(culprit, "closing");
    actor_let_go(culprit);
}

static void stick_at_exit_of(void *arg, skua_exit *exit)
{
    struct actor *culprit = arg;
    if (exit->type == &culprit->type) {
        tally_add(&culprit->held, 1);
        tally_wait(&culprit->released, 1);
    }
}

/* False if the machine was so slow that the step before it may have been taken for stuck. */
static bool play_with_a_stuck_exit_hook(void)
{
    struct actor *culprit = actor_new(ACTS(finishes(0)));
    stalls_open((skua_runtime_config){
        .worker_count = 1, .on_exit = stick_at_exit_of, .on_exit_arg = culprit});
    const uint64_t start = monotonic_ns();
    actor_submit(culprit);
    actor_await_held(culprit, 1);
    const bool right = stalls_are_impossible_since(start);
    run_another();
    (void)stall_await(culprit);
    if (right) {
        assert_stalled_once(culprit, "?");
    }
    actor_let_go(culprit);
    world_close();
    return right;
}

/* Its process has gone, so only the PID is left of it. */
TEST(monitor_finds_an_exit_hook_that_does_not_return)
{
    while (!play_with_a_stuck_exit_hook()) {
    }
}

/* ---- the limits ---- */

/* With every worker stuck, spare ones included, nobody is left; later everything goes on. */
TEST(monitor_with_every_spare_stuck_too_goes_on_after_the_release)
{
    struct actor *culprits[1 + 2];
    stalls_open((skua_runtime_config){.worker_count = 1, .spare_limit = 2});
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        culprits[i] = actor_start(ACTS(holds(), finishes(0)));
    }
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        (void)stall_await(culprits[i]);
    }
    struct actor *late = actor_start(ACTS(finishes(0)));
    assert_int_equal(workers_count(), COUNT_OF(culprits));
    assert_int_equal(late->steps, 0); /* nobody can have run it */

    actor_let_go(culprits[0]);
    actor_await_end(late);

    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        assert_stalled_once(culprits[i], "actor");
        actor_let_go(culprits[i]);
    }
}

/* Nobody is left to run them, but they are made ready. False if the timer was faster than the steps
 * that had to be stuck first. */
static bool play_with_nobody_left(uint64_t sleep_ns)
{
    struct actor *culprits[1 + 1];
    stalls_open((skua_runtime_config){.worker_count = 1, .spare_limit = 1});
    const struct ends pipe = pipe_open();
    struct actor *reader = reader_start(pipe.near);
    struct actor *sleeper = actor_start(ACTS(sleeps(1, sleep_ns)));
    tally_wait(&sleeper->performed, 1);
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        culprits[i] = actor_start(ACTS(holds(), finishes(0)));
        actor_await_held(culprits[i], 1);
    }
    const bool right = world_info(sleeper->pid).state == SKUA_PROCESS_BLOCKED;
    if (right) {
        actor_await_state(sleeper, SKUA_PROCESS_READY);
        write_byte(pipe.far);
        actor_await_state(reader, SKUA_PROCESS_READY);
    }
    for (size_t i = 0; i < COUNT_OF(culprits); i++) {
        actor_let_go(culprits[i]);
    }
    world_close();
    return right;
}

TEST(monitor_itself_looks_at_timers_and_descriptors_when_nobody_else_can)
{
    uint64_t sleep_ns = 100 * SKUA_MILLISECOND;
    while (!play_with_nobody_left(sleep_ns)) {
        sleep_ns *= 2;
    }
}

/* Longer than two looks of the monitor and shorter than the limit. */
#define LARGE_LIMIT_NS (800 * SKUA_MILLISECOND)

TEST(monitor_does_not_report_a_step_below_the_limit)
{
    const struct timespec length = {.tv_nsec = (long)(LARGE_LIMIT_NS * 5 / 8)};
    uint64_t duration_ns = LARGE_LIMIT_NS;
    while (duration_ns >= LARGE_LIMIT_NS) { /* not on a machine that was too slow to tell */
        stalls_open((skua_runtime_config){.worker_count = 1, .stall_limit_ns = LARGE_LIMIT_NS});
        struct actor *actor = actor_start(ACTS(holds(), finishes(0)));
        actor_await_held(actor, 1);
        (void)nanosleep(&length, NULL); /* the length of the step; nothing depends on it */
        actor_let_go(actor);
        actor_await_end(actor);
        duration_ns = monotonic_ns() - actor->init_now;
        const skua_stats stats = world_stats();
        world_close();
        if (duration_ns < LARGE_LIMIT_NS) {
            assert_int_equal(stall_count(), 0);
            assert_int_equal(stats.stalls, 0);
            assert_int_equal(stats.spares, 0);
        }
    }
}

/* Many short steps, until some time has passed. */
struct run {
    uint64_t end;
    uint64_t last;    /* when its last step began */
    uint64_t largest; /* time between two beginnings, or from the last one to the end */
};

static void note_time(struct run *run)
{
    const uint64_t now = monotonic_ns();
    run->largest = now - run->last > run->largest ? now - run->last : run->largest;
    run->last = now;
}

static int run_on(struct turn *turn, const struct act *act)
{
    struct run *run = act->arg;
    note_time(run);
    return run->last < run->end ? perform(turn, continues(UINT64_MAX)) : 0;
}

TEST(monitor_does_not_take_many_short_steps_of_one_process_for_a_long_one)
{
    const uint64_t limit_ns = 20 * SKUA_MILLISECOND;
    struct run run = {.largest = limit_ns};
    while (run.largest >= limit_ns) { /* a step was interrupted for that long: once more */
        stalls_open((skua_runtime_config){.worker_count = 1, .stall_limit_ns = limit_ns});
        const uint64_t now = monotonic_ns();
        run = (struct run){.end = now + 5 * limit_ns, .last = now};
        struct actor *runner = actor_new(ACTS(does(run_on, &run), finishes(0)));
        assert_result(actor_run(runner), 0);
        note_time(&run);
        world_close();
        assert_true(run.largest >= limit_ns || stall_count_of(runner) == 0);
    }
}

/* ---- what the hook may do ---- */

static struct {
    struct actor *friend;
    struct actor *fresh;
    int results[3];
    int culprit_error; /* how it ended */
} hook;

/* On the monitor's thread. */
static void tell_and_end(const skua_stall *stall)
{
    hook.results[0] = world_send(hook.friend->pid, skua_payload_empty(0));
    hook.results[1] = world_terminate(stall->pid);
    hook.results[2] = actor_try_submit(hook.fresh);
}

static void note_end_of(void *arg, skua_exit *exit)
{
    const struct actor *actor = arg;
    if (exit->type == &actor->type) {
        hook.culprit_error = exit->error;
    }
}

TEST(monitor_hook_may_send_terminate_and_submit)
{
    struct actor *culprit = actor_new(ACTS(holds())); /* it would not end by itself */
    culprit->type.name = "culprit";
    stalls_open(
        (skua_runtime_config){.worker_count = 1, .on_exit = note_end_of, .on_exit_arg = culprit});
    hook.friend = actor_start(NO_ACTS);
    hook.fresh = actor_new(NO_ACTS);
    stalls_react("culprit", tell_and_end);
    actor_submit(culprit);

    actor_await_seen(hook.friend, 1); /* while the culprit is still in its step */
    (void)stall_await(culprit);
    for (size_t i = 0; i < COUNT_OF(hook.results); i++) {
        assert_int_equal(hook.results[i], 0);
    }
    actor_let_go(culprit);
    actor_await_end(culprit);

    world_close();
    assert_saw(hook.friend, message(0, 0), cancel(SKUA_E_STOPPED));
    assert_saw(hook.fresh, cancel(SKUA_E_STOPPED));
    assert_saw_nothing(culprit);
    assert_int_equal(hook.culprit_error, SKUA_E_TERMINATED);
}
