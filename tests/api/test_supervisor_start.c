/* SPDX-License-Identifier: MIT */
/* Supervisors: readiness, starts that fail, back-off, budgets. */
#include "actor.h"
#include "exits.h"
#include "timers.h"
#include "wards.h"

#define TOP(...) ((skua_supervisor){.name = "top", __VA_ARGS__})

static struct exits *exits;

static void open_wards(void)
{
    exits = exits_new();
    world_open_virtual_with((skua_runtime_config){NOTES_EXITS(exits)});
    wards_open();
}

static skua_child slow_ward(char letter, uint64_t start_ns)
{
    skua_child child = ward(letter);
    child.start_ns = start_ns;
    return child;
}

/* Moves the clock so that what is due after this time has happened. */
static void pass(uint64_t duration_ns)
{
    world_advance(duration_ns + 2 * SKUA_CLOCK_RESOLUTION_NS);
}

static skua_exit exit_of_process(skua_pid pid)
{
    for (size_t i = 0; i < exits->count; i++) {
        if (skua_pid_equal(exits->list[i].exit.pid, pid)) {
            return exits->list[i].exit;
        }
    }
    fail_msg("the process has not ended");
    return (skua_exit){.error = 1};
}

/* ---- readiness ---- */

TEST(the_next_child_starts_when_this_one_is_ready)
{
    open_wards();
    ward_of('a')->habits.ready_after_ns = SKUA_SECOND;
    const skua_pid top = supervise(TOP(WARDS(slow_ward('a', 10 * SKUA_SECOND), ward('b'))));
    assert_diary("+a");
    assert_int_equal(report_on(top, "a").state, SKUA_CHILD_STARTING);
    assert_int_equal(report_on(top, "b").state, SKUA_CHILD_STOPPED);
    pass(SKUA_SECOND);
    assert_diary("+b");
    assert_int_equal(report_on(top, "a").state, SKUA_CHILD_RUNNING);
}

TEST(a_start_without_end_has_failed)
{
    open_wards();
    ward_of('a')->habits.is_never_ready = true;
    const skua_pid top = supervise(TOP(WARDS(slow_ward('a', SKUA_SECOND), ward('b'))));
    assert_diary("+a");
    pass(SKUA_SECOND);
    assert_diary("-a+a");
    assert_int_equal(report_on(top, "a").last_error, SKUA_E_TIMEOUT);
    ward_of('a')->habits.is_never_ready = false;
    pass(SKUA_SECOND);
    pass(20 * SKUA_MILLISECOND);
    assert_diary("-a+a+b");
}

TEST(a_slow_start_holds_up_nobody_else)
{
    open_wards();
    ward_of('b')->habits.is_never_ready = true;
    const skua_pid top = supervise(TOP(WARDS(ward('a'), slow_ward('b', SKUA_FOREVER), ward('c'))));
    assert_diary("+a+b");
    ward_fail('a', SKUA_E_USER);
    assert_diary("-a+a");
    assert_int_equal(report_on(top, "a").restarts, 1);
    assert_int_equal(world_cancel(top, 0), 0);
    world_settle();
    assert_diary("-b-a");
}

TEST(a_child_whose_init_fails_is_tried_again)
{
    open_wards();
    ward_of('b')->habits = (struct ward_habits){.init_error = SKUA_E_USER, .init_failures = 2};
    const skua_pid top = supervise(TOP(WARDS(ward('a'), ward('b'), ward('c'))));
    assert_diary("+a!b!b");
    const skua_child_report report = report_on(top, "b");
    assert_int_equal(report.state, SKUA_CHILD_WAITING);
    assert_int_equal(report.last_error, SKUA_E_USER);
    assert_int_equal(report.pid.bits, 0);
    pass(13 * SKUA_MILLISECOND);
    assert_diary("+b+c");
}

/* Once it may be the runtime that stops; then it is the child. */
TEST(a_child_whose_init_says_stopped_has_ended)
{
    open_wards();
    skua_child child = ward('a');
    child.restart = SKUA_RESTART_NEVER;
    ward_of('a')->habits = (struct ward_habits){.init_error = SKUA_E_STOPPED, .init_failures = 9};
    const skua_pid top = supervise(TOP(WARDS(child, ward('b'))));
    assert_diary("!a");
    pass(2 * SKUA_SECOND);
    assert_diary("!a+b");
    assert_true(report_on(top, "a").is_over);
}

/* What the runtime says when it stops is no failure, however long that takes. */
TEST(starts_that_are_refused_with_stopped_do_not_count)
{
    open_wards();
    skua_child child = ward('a');
    child.budget = (skua_budget){1, 60 * SKUA_SECOND};
    ward_of('a')->habits = (struct ward_habits){.init_error = SKUA_E_STOPPED, .init_failures = 5};
    const skua_pid top = supervise(TOP(.budget = {1, 60 * SKUA_SECOND}, WARDS(child)));
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(report_on(top, "a").state, SKUA_CHILD_WAITING);
        pass(SKUA_SECOND);
    }
    assert_diary("!a!a!a!a!a+a");
    assert_int_equal(report_on(top, "a").restarts, 0);
    ward_fail('a', SKUA_E_USER);
    assert_diary("-a+a");
    assert_int_equal(world_stats().give_ups, 0);
}

TEST(a_child_that_need_not_start_is_left_out)
{
    open_wards();
    skua_child child = ward('a');
    child.restart = SKUA_RESTART_NEVER;
    ward_of('a')->habits = (struct ward_habits){.init_error = SKUA_E_USER, .init_failures = 1};
    const skua_pid top = supervise(TOP(WARDS(child, ward('b'))));
    assert_diary("!a+b");
    assert_true(report_on(top, "a").is_over);
}

/* ---- back-off ---- */

/* What a child that fails again and again has to wait for, in microseconds, by the book: ten
 * milliseconds, then twice as long each time up to thirty seconds, give or take a quarter. */
static const struct {
    uint64_t least;
    uint64_t most;
} waits[] = {
    {0, 0},
    {7500, 12500},
    {15000, 25000},
    {30000, 50000},
    {60000, 100000},
    {120000, 200000},
    {240000, 400000},
    {480000, 800000},
    {960000, 1600000},
    {1920000, 3200000},
    {3840000, 6400000},
    {7680000, 12800000},
    {15360000, 25600000},
    {22500000, 37500000},
    {22500000, 37500000},
    {22500000, 37500000},
};

/* Has a fail, and returns how long it will wait. Lets it start. */
static uint64_t fail_and_wait(skua_pid top)
{
    ward_fail('a', SKUA_E_USER);
    const skua_child_report report = report_on(top, "a");
    if (report.state == SKUA_CHILD_RUNNING) {
        return 0;
    }
    assert_int_equal(report.state, SKUA_CHILD_WAITING);
    const uint64_t wait = report.next_start - world_now();
    pass(wait);
    assert_int_equal(report_on(top, "a").state, SKUA_CHILD_RUNNING);
    return wait;
}

TEST(the_pause_doubles_and_begins_anew_after_a_stable_time)
{
    open_wards();
    const skua_pid top = supervise(TOP(WARDS(ward('a'))));
    bool varies = false;
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        const uint64_t wait = fail_and_wait(top);
        assert_in_range(wait, waits[i].least * 1000, waits[i].most * 1000);
        varies = varies || wait != (waits[i].least + waits[i].most) / 2 * 1000;
        pass(9 * SKUA_SECOND); /* that is not stable */
    }
    assert_true(varies);
    pass(10 * SKUA_SECOND);
    assert_int_equal(fail_and_wait(top), 0);
    assert_in_range(fail_and_wait(top), 7500 * SKUA_MICROSECOND, 12500 * SKUA_MICROSECOND);
}

TEST(the_pause_is_what_the_specification_says)
{
    open_wards();
    skua_child child = ward('a');
    child.backoff = (skua_backoff){
        .first_ns = SKUA_SECOND, .max_ns = 3 * SKUA_SECOND, .stable_ns = 5 * SKUA_SECOND};
    const skua_pid top = supervise(TOP(WARDS(child)));
    assert_int_equal(fail_and_wait(top), 0);
    assert_in_range(fail_and_wait(top), 750 * SKUA_MILLISECOND, 1250 * SKUA_MILLISECOND);
    assert_in_range(fail_and_wait(top), 1500 * SKUA_MILLISECOND, 2500 * SKUA_MILLISECOND);
    assert_in_range(fail_and_wait(top), 2250 * SKUA_MILLISECOND, 3750 * SKUA_MILLISECOND);
    pass(5 * SKUA_SECOND);
    assert_int_equal(fail_and_wait(top), 0);
}

/* A child that others take with them has lived for as long as it has. */
TEST(a_stable_child_that_is_stopped_with_others_begins_anew)
{
    static const enum skua_strategy strategies[] = {SKUA_STRATEGY_ALL, SKUA_STRATEGY_REST};
    FOR_ROWS (strategy, strategies) {
        open_wards();
        const skua_pid top = supervise(TOP(.strategy = *strategy, WARDS(ward('b'), ward('a'))));
        for (size_t failure = 0; failure < 5; failure++) {
            (void)fail_and_wait(top);
        }
        pass(9 * SKUA_SECOND);
        ward_fail('b', SKUA_E_USER);
        assert_in_range(fail_and_wait(top), 120 * SKUA_MILLISECOND, 200 * SKUA_MILLISECOND);
        pass(11 * SKUA_SECOND);
        ward_fail('b', SKUA_E_USER);
        pass(13 * SKUA_MILLISECOND);
        assert_int_equal(fail_and_wait(top), 0);
    }
}

/* What a child does before it is ready is no life. */
TEST(a_child_that_was_never_ready_does_not_begin_anew)
{
    open_wards();
    ward_of('a')->habits.is_never_ready = true;
    const skua_pid top = supervise(TOP(WARDS(slow_ward('a', 60 * SKUA_SECOND))));
    pass(60 * SKUA_SECOND);
    pass(60 * SKUA_SECOND);
    assert_int_equal(report_on(top, "a").restarts, 1);
    assert_int_equal(report_on(top, "a").state, SKUA_CHILD_WAITING);
}

TEST(others_wait_for_the_pause_of_one_they_depend_on)
{
    open_wards();
    const skua_pid top = supervise(TOP(.strategy = SKUA_STRATEGY_ALL, WARDS(ward('a'), ward('b'))));
    ward_fail('b', SKUA_E_USER);
    assert_diary("+a+b-b-a+a+b");
    ward_fail('b', SKUA_E_USER);
    assert_diary("-b-a");
    assert_int_equal(report_on(top, "a").state, SKUA_CHILD_STOPPED);
    assert_int_equal(report_on(top, "b").state, SKUA_CHILD_WAITING);
    pass(13 * SKUA_MILLISECOND);
    assert_diary("+a+b");
}

/* ---- budgets ---- */

static skua_child with_budget(skua_child child, uint32_t restarts, uint64_t period_ns)
{
    child.budget = (skua_budget){restarts, period_ns};
    return child;
}

TEST(one_failure_more_than_the_budget_of_a_child_ends_the_supervisor)
{
    open_wards();
    const skua_pid top = supervise(TOP(WARDS(ward('b'), with_budget(ward('a'), 3, SKUA_SECOND))));
    for (size_t i = 0; i < 3; i++) {
        (void)fail_and_wait(top);
    }
    const skua_pid last = ward_of('a')->pid;
    ward_fail('a', SKUA_E_USER);
    world_await_live(0);
    assert_int_equal(exit_of_process(top).error, SKUA_E_RESTARTS);
    assert_int_equal(exit_of_process(top).cause.bits, last.bits);
    assert_int_equal(ward_of('b')->exit_error, SKUA_E_CANCELLED);
    assert_int_equal(world_stats().restarts, 3);
    assert_int_equal(world_stats().give_ups, 1);
}

TEST(restarts_count_for_the_period_only)
{
    open_wards();
    const skua_pid top = supervise(TOP(WARDS(with_budget(ward('a'), 2, SKUA_SECOND))));
    for (size_t i = 0; i < 10; i++) {
        (void)fail_and_wait(top);
        (void)fail_and_wait(top);
        pass(30 * SKUA_SECOND);
    }
    assert_int_equal(report_on(top, "a").restarts, 20);
}

TEST(the_budget_of_a_supervisor_is_for_all_children)
{
    open_wards();
    const skua_pid top =
        supervise(TOP(.budget = {2, SKUA_SECOND}, WARDS(ward('a'), ward('b'), ward('c'))));
    ward_fail('a', SKUA_E_USER);
    ward_fail('b', SKUA_E_USER);
    assert_diary("+a+b+c-a+a-b+b");
    const skua_pid last = ward_of('c')->pid;
    ward_fail('c', SKUA_E_USER);
    world_await_live(0);
    assert_diary("-c-b-a");
    assert_int_equal(exit_of_process(top).error, SKUA_E_RESTARTS);
    assert_int_equal(exit_of_process(top).cause.bits, last.bits);
}

/* What is done to others together with one that fails is not a failure of theirs. */
TEST(a_group_that_restarts_counts_once)
{
    open_wards();
    const skua_pid top = supervise(TOP(.strategy = SKUA_STRATEGY_ALL, .budget = {2, SKUA_SECOND},
                                       WARDS(ward('a'), ward('b'), ward('c'))));
    ward_fail('a', SKUA_E_USER);
    ward_fail('b', SKUA_E_USER);
    assert_int_equal(report_on(top, "c").restarts, 2);
    assert_int_equal(world_stats().restarts, 6); /* each child of the group */
    assert_int_equal(world_stats().give_ups, 0);
    assert_int_equal(ward_of('c')->lives, 1);
}

TEST(a_supervisor_that_gives_up_is_a_failure_of_the_one_above)
{
    open_wards();
    const skua_supervisor *inner = specification_copy(
        (skua_supervisor){.name = "inner", WARDS(with_budget(ward('a'), 1, SKUA_SECOND))});
    const skua_pid top = supervise(TOP(WARDS({.name = "inner", .supervisor = inner})));
    const skua_pid first = report_on(top, "inner").pid;
    ward_fail('a', SKUA_E_USER);
    ward_fail('a', SKUA_E_USER);
    assert_diary("+a-a+a-a+a");
    const skua_child_report report = report_on(top, "inner");
    assert_int_equal(report.restarts, 1);
    assert_int_equal(report.last_error, SKUA_E_RESTARTS);
    assert_int_not_equal(report.pid.bits, first.bits);
}

/* ---- counters for supervisors of one's own ---- */

static int count_by_hand(struct turn *turn, const struct act *act)
{
    (void)act;
    assert_int_equal(skua_count(turn->ctx, SKUA_COUNT_RESTART), 0);
    assert_int_equal(skua_count(turn->ctx, SKUA_COUNT_RESTART), 0);
    assert_int_equal(skua_count(turn->ctx, SKUA_COUNT_GIVE_UP), 0);
    assert_int_equal(skua_count(turn->ctx, (enum skua_counted)3), SKUA_E_INVALID);
    assert_int_equal(skua_count(NULL, SKUA_COUNT_RESTART), SKUA_E_INVALID);
    return 0;
}

TEST(a_supervisor_of_ones_own_can_count_what_it_does)
{
    world_open();
    assert_result(actor_run(actor_new(ACTS(does(count_by_hand, NULL), finishes(0)))), 0);
    assert_int_equal(world_stats().restarts, 2);
    assert_int_equal(world_stats().give_ups, 1);
}
