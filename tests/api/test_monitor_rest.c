/* SPDX-License-Identifier: MIT */
/* The monitor when nothing is stuck: it sleeps, and so do the spare workers that were needed. Also
 * its settings, and the signal for backtraces. */
#include <signal.h>

#include "base/monotonic.h"
#include "runtime/runtime.h"
#include "stalls.h"
#include "waits.h"
#include "workers.h"

#define CLEAR_LIMIT_NS (100 * SKUA_MILLISECOND) /* short steps rarely take that long */

static bool monitor_is_asleep(void *arg)
{
    (void)arg;
    return load_seq_cst(&world_runtime()->sched.monitor_asleep) == 1;
}

static void await_monitor_asleep(void)
{
    wait_until(monitor_is_asleep, NULL, "the monitor to sleep");
}

/* ---- sleeping ---- */

/* Timers and descriptors that are waited for do not keep it awake, as they do no worker. */
TEST(monitor_sleeps_while_all_is_idle_and_wakes_for_work)
{
    stalls_open((skua_runtime_config){0});
    await_monitor_asleep();
    struct actor *sleeper = actor_start(ACTS(sleeps(1, 3600 * SKUA_SECOND)));
    struct actor *reader = reader_start(pipe_open().near);
    actor_await_state(sleeper, SKUA_PROCESS_BLOCKED);

    for (int round = 0; round < 3; round++) {
        await_monitor_asleep();
        struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
        (void)stall_await(culprit);
        assert_false(monitor_is_asleep(NULL));
        assert_stalled_once(culprit, "actor");
        actor_let_go(culprit);
        actor_await_end(culprit);
    }
    await_monitor_asleep();
    assert_waits(sleeper, 0);
    assert_waits(reader, 0);
}

/* False if the machine was so slow that the step may have seemed stuck before it blocked. */
static bool play_with_a_step_that_blocks(void)
{
    stalls_open((skua_runtime_config){.stall_limit_ns = CLEAR_LIMIT_NS});
    const uint64_t start = monotonic_ns();
    struct actor *culprit = actor_start(ACTS(blocks(), holds(), finishes(0)));
    actor_await_held(culprit, 1);
    const bool right = stalls_are_impossible_since(start);
    await_monitor_asleep();
    assert_true(!right || stall_count_of(culprit) == 0);

    actor_let_go(culprit);
    actor_await_held(culprit, 2);

    (void)stall_await(culprit); /* with nothing else to wake it */
    actor_await_end(actor_start(ACTS(finishes(0))));
    assert_stalled_once(culprit, "actor");
    actor_let_go(culprit);
    world_close();
    return right;
}

TEST(monitor_sleeps_while_a_step_blocks_and_finds_it_stuck_afterwards)
{
    while (!play_with_a_step_that_blocks()) {
    }
}

/* Its thread must not be left behind, however deep it sleeps. */
TEST(monitor_that_sleeps_does_not_hold_up_the_stop)
{
    const uint32_t threads = os_wait_alone();
    stalls_open((skua_runtime_config){0});
    assert_int_equal(os_thread_count(), threads + test_workers() + 1);
    await_monitor_asleep();
    world_close();
    assert_int_equal(os_wait_alone(), threads);
}

TEST(monitor_with_the_longest_limit_does_not_hold_up_the_stop)
{
    world_open_with((skua_runtime_config){.stall_limit_ns = SKUA_DURATION_MAX});
    assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
}

/* ---- after a stall ---- */

static bool only_one_was_stuck(void)
{
    return stall_count() == 1 && world_stats().stalls == 1 && world_stats().spares == 1;
}

/* False if the machine was so busy that a short step was taken for stuck, too. */
static bool play_with_a_spare_that_rests(void)
{
    struct actor *listeners[2];
    stalls_open((skua_runtime_config){.worker_count = 1, .stall_limit_ns = CLEAR_LIMIT_NS});
    const struct scheduler *sched = &world_runtime()->sched;
    struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
    (void)stall_await(culprit);
    for (size_t i = 0; i < COUNT_OF(listeners); i++) {
        listeners[i] = actor_start(NO_ACTS); /* it runs on the spare worker */
        actor_await_state(listeners[i], SKUA_PROCESS_IDLE);
    }
    actor_let_go(culprit);
    actor_await_end(culprit);
    workers_let_spares_rest();
    const bool right = only_one_was_stuck();

    await_monitor_asleep(); /* before it sleeps it looks for longer than the limit */

    if (right) {
        assert_int_equal(load_seq_cst(&sched->spare.resting), 1);
        for (size_t i = 0; i < COUNT_OF(listeners); i++) {
            assert_int_equal(stall_count_of(listeners[i]), 0);
            assert_int_equal(load_seq_cst(&sched->workers[i].running), RUNNING_NOTHING);
        }
        assert_true(only_one_was_stuck());
    }
    world_close();
    return right;
}

/* A spare worker that rests is in no step, whatever it has run last: it must be taken neither for
 * stuck by the monitor nor for running by the stop. */
TEST(monitor_takes_a_spare_that_rests_for_what_it_is)
{
    while (!play_with_a_spare_that_rests()) {
    }
}

/* The same few threads serve again and again. */
TEST(monitor_uses_the_same_spare_for_stall_after_stall)
{
    stalls_open((skua_runtime_config){.worker_count = 1, .stall_limit_ns = SKUA_MILLISECOND});
    const uint64_t rounds = 20;
    for (uint64_t round = 0; round < rounds; round++) {
        struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
        (void)stall_await(culprit);
        actor_await_end(actor_start(ACTS(finishes(0))));
        actor_let_go(culprit);
        actor_await_end(culprit);
        if (round % 2 == 0) {
            workers_let_spares_rest();
        }
    }
    /* A short step may have taken a millisecond as well, and may have needed one more. */
    const uint64_t stalls = world_stats().stalls;
    assert_true(stalls >= rounds);
    assert_in_range(workers_count(), 2, 4 + (stalls - rounds));
}

/* ---- backtraces ---- */

/* Not inlined: there is an address to return to. */
__attribute__((noinline)) static int hold_here(struct turn *turn, const struct act *act)
{
    *(void **)act->arg = __builtin_return_address(0);
    return perform(turn, holds());
}

static bool has_frame(const struct stall_record *record, const void *wanted)
{
    for (uint32_t i = 0; i < record->stall.frame_count; i++) {
        if (record->frames[i] == wanted) {
            return true;
        }
    }
    return false;
}

/* The monitor does not wait long for a thread that gets no CPU, so this is tried a few times. */
TEST(monitor_with_a_signal_gives_the_stack_of_the_stuck_step)
{
    struct stall_record record = {0};
    bool found = false;
    stalls_open((skua_runtime_config){.worker_count = 2, .stall_signal = SIGUSR2});
    for (int attempt = 0; attempt < 100 && !found; attempt++) {
        void *return_address = NULL;
        struct actor *captive = actor_start(ACTS(does(hold_here, &return_address), finishes(0)));
        record = stall_await(captive);
        actor_let_go(captive);
        actor_await_end(captive);
        found = has_frame(&record, return_address);
    }
    assert_true(found);
    assert_string_equal(record.stall.type_name, "actor");
    assert_in_range(record.stall.frame_count, 2, BACKTRACE_MAX);
    assert_false(has_frame(&record, NULL));
}

static void ignore_signal(int number)
{
    (void)number;
}

static bool signal_is_mine(void)
{
    struct sigaction action;
    assert_int_equal(sigaction(SIGUSR2, NULL, &action), 0);
    return action.sa_handler == ignore_signal;
}

TEST(monitor_signal_is_handed_back_by_the_last_runtime_that_uses_it)
{
    const struct sigaction mine = {.sa_handler = ignore_signal};
    struct sigaction before;
    struct api apis[2];
    assert_int_equal(sigaction(SIGUSR2, &mine, &before), 0);
    for (size_t i = 0; i < COUNT_OF(apis); i++) {
        api_create(&apis[i], (skua_runtime_config){.worker_count = 1, .stall_signal = SIGUSR2});
        assert_true(signal_is_mine() == (i == 0));
        api_start(&apis[i]);
        assert_false(signal_is_mine());
    }
    api_stop(&apis[0]);
    assert_false(signal_is_mine());
    api_stop(&apis[1]);
    assert_true(signal_is_mine());
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
}

/* ---- settings ---- */

TEST(monitor_signal_that_a_runtime_cannot_use_is_refused)
{
    static const int signals[] = {
        SIGSEGV, SIGBUS, SIGFPE, SIGILL,    SIGABRT, SIGTRAP, SIGSYS,    SIGKILL,
        SIGSTOP, 32,     33,     INT32_MIN, -1,      NSIG,    INT32_MAX,
    };
    FOR_ROWS (number, signals) {
        skua_runtime *runtime = NULL;
        const skua_runtime_config config = {.worker_count = 2, .stall_signal = *number};
        assert_int_equal(skua_runtime_create(&runtime, &config), SKUA_E_SIGNAL);
        assert_null(runtime);
    }
}

TEST(monitor_signal_that_a_runtime_can_use_is_taken)
{
    const int signals[] = {SIGHUP, SIGUSR1, SIGPROF, SIGURG, SIGRTMIN, SIGRTMAX};
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        world_open_with((skua_runtime_config){.worker_count = 1, .stall_signal = signals[i]});
        world_close();
    }
}

TEST(monitor_limits_out_of_range_are_refused)
{
    static const skua_runtime_config wrong[] = {
        {.stall_limit_ns = SKUA_MILLISECOND - 1}, {.stall_limit_ns = SKUA_DURATION_MAX + 1},
        {.stall_limit_ns = SKUA_FOREVER - 1},     {.spare_limit = SKUA_SPARES_MAX + 1},
        {.spare_limit = SKUA_SPARES_NONE - 1},
    };
    FOR_ROWS (config, wrong) {
        skua_runtime *runtime;
        assert_int_equal(skua_runtime_create(&runtime, config), SKUA_E_INVALID);
    }
    skua_runtime_config config = {.stall_limit_ns = SKUA_MILLISECOND,
                                  .spare_limit = SKUA_SPARES_MAX};
    world_open_with(config);
    assert_int_equal(skua_runtime_config_read(world_runtime(), &config), 0);
    assert_int_equal(config.stall_limit_ns, SKUA_MILLISECOND);
    assert_int_equal(config.spare_limit, SKUA_SPARES_MAX);
}

/* ---- switched off ---- */

TEST(monitor_settings_that_switch_it_off_are_kept)
{
    skua_runtime_config config = {.stall_limit_ns = SKUA_FOREVER, .spare_limit = SKUA_SPARES_NONE};
    world_open_with(config);
    assert_int_equal(skua_runtime_config_read(world_runtime(), &config), 0);
    assert_int_equal(config.stall_limit_ns, SKUA_FOREVER);
    assert_int_equal(config.spare_limit, SKUA_SPARES_NONE);
}

/* Whether the monitor has watched a step for so long that it would be stuck. */
static bool has_watched_long(void *arg)
{
    const uint64_t *since = arg;
    return load_relaxed(&world_runtime()->sched.account.sampled_at) > *since + CLEAR_LIMIT_NS;
}

TEST(monitor_without_a_limit_takes_no_step_for_stuck)
{
    stalls_open((skua_runtime_config){.worker_count = 1, .stall_limit_ns = SKUA_FOREVER});
    struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
    actor_await_held(culprit, 1);
    uint64_t since = monotonic_ns();
    wait_until(has_watched_long, &since, "the monitor's samples");
    assert_int_equal(workers_count(), 1);
    assert_int_equal(world_stats().stalls, 0);
    assert_int_equal(world_stats().spares, 0);
    assert_int_equal(stall_count(), 0);
    actor_let_go(culprit);
}

/* The stall is told, but nobody steps in. */
TEST(monitor_without_spares_only_tells)
{
    stalls_open((skua_runtime_config){.worker_count = 1, .spare_limit = SKUA_SPARES_NONE});
    struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
    struct actor *other = actor_start(ACTS(finishes(0)));
    (void)stall_await(culprit);
    assert_stalled_once(culprit, "actor");
    assert_int_equal(workers_count(), 1);
    assert_int_equal(world_stats().spares, 0);
    assert_int_equal(other->steps, 0);
    actor_let_go(culprit);
    actor_await_end(other);
}
