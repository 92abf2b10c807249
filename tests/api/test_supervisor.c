/* SPDX-License-Identifier: MIT */
/* Supervisors: who is started, who is started again, and in which order. */
#include "wards.h"

static const int orderly_ends[] = {0, SKUA_E_STOPPED, SKUA_E_CANCELLED};

static void open_wards(void)
{
    world_open_virtual();
    wards_open();
}

static skua_child with_restart(skua_child child, enum skua_restart restart)
{
    child.restart = restart;
    return child;
}

static void stop(skua_pid supervisor)
{
    assert_int_equal(world_cancel(supervisor, 0), 0);
    world_settle();
}

/* ---- order ---- */

TEST(children_start_in_order_and_stop_in_reverse)
{
    open_wards();
    const skua_pid top =
        supervise((skua_supervisor){.name = "top", WARDS(ward('a'), ward('b'), ward('c'))});
    assert_diary("+a+b+c");
    stop(top);
    assert_diary("-c-b-a");
}

TEST(the_runtime_stops_roots_and_they_stop_their_children)
{
    open_wards();
    (void)supervise((skua_supervisor){.name = "top", WARDS(ward('a'), ward('b'), ward('c'))});
    world_stop();
    assert_diary("+a+b+c-c-b-a");
    assert_int_equal(ward_of('a')->exit_error, SKUA_E_STOPPED);
}

TEST(supervisors_in_supervisors_start_and_stop_in_their_place)
{
    open_wards();
    const skua_supervisor *inner =
        specification_copy((skua_supervisor){.name = "inner", WARDS(ward('b'), ward('c'))});
    const skua_child place = {.name = "inner", .supervisor = inner, .start_ns = SKUA_SECOND};
    const skua_pid top =
        supervise((skua_supervisor){.name = "top", WARDS(ward('a'), place, ward('d'))});
    assert_diary("+a+b+c+d");
    stop(top);
    assert_diary("-d-c-b-a");
}

/* ---- strategies ---- */

TEST(strategies_say_who_is_started_again)
{
    static const struct {
        enum skua_strategy strategy;
        char fails;
        const char *diary;
    } rows[] = {
        {SKUA_STRATEGY_ONE, 'a', "-a+a"},          {SKUA_STRATEGY_ONE, 'b', "-b+b"},
        {SKUA_STRATEGY_ONE, 'c', "-c+c"},          {SKUA_STRATEGY_ALL, 'a', "-a-c-b+a+b+c"},
        {SKUA_STRATEGY_ALL, 'b', "-b-c-a+a+b+c"},  {SKUA_STRATEGY_ALL, 'c', "-c-b-a+a+b+c"},
        {SKUA_STRATEGY_REST, 'a', "-a-c-b+a+b+c"}, {SKUA_STRATEGY_REST, 'b', "-b-c+b+c"},
        {SKUA_STRATEGY_REST, 'c', "-c+c"},
    };
    FOR_ROWS (row, rows) {
        open_wards();
        (void)supervise((skua_supervisor){
            .name = "top", .strategy = row->strategy, WARDS(ward('a'), ward('b'), ward('c'))});
        assert_diary("+a+b+c");
        ward_fail(row->fails, SKUA_E_USER);
        assert_diary(row->diary);
    }
}

/* While c waits for its back-off, a fails for the first time: it is started at once, and so is b;
 * c in its turn. */
TEST(earlier_child_does_not_wait_for_the_back_off_of_a_later_one)
{
    open_wards();
    (void)supervise((skua_supervisor){
        .name = "top", .strategy = SKUA_STRATEGY_REST, WARDS(ward('a'), ward('b'), ward('c'))});
    ward_fail('c', SKUA_E_USER);
    ward_fail('c', SKUA_E_USER);
    assert_diary("+a+b+c-c+c-c");
    ward_fail('a', SKUA_E_USER);
    assert_diary("-a-b+a+b");
    world_advance(15 * SKUA_MILLISECOND);
    assert_diary("+c");
}

TEST(restarts_depend_on_how_a_child_ended)
{
    static const struct {
        enum skua_restart restart;
        bool after_failure;
        bool after_orderly_end;
    } rows[] = {
        {SKUA_RESTART_ALWAYS, true, true},
        {SKUA_RESTART_ON_ERROR, true, false},
        {SKUA_RESTART_NEVER, false, false},
    };
    FOR_ROWS (row, rows) {
        open_wards();
        (void)supervise((skua_supervisor){
            .name = "top",
            WARDS(with_restart(ward('a'), row->restart), with_restart(ward('b'), row->restart),
                  with_restart(ward('c'), row->restart), with_restart(ward('d'), row->restart))});
        ward_fail('a', SKUA_E_USER);
        ward_finish('b');
        ward_fail('c', orderly_ends[1]);
        ward_fail('d', orderly_ends[2]);
        assert_int_equal(ward_of('a')->lives, row->after_failure);
        assert_int_equal(ward_of('b')->lives, row->after_orderly_end);
        assert_int_equal(ward_of('c')->lives, row->after_orderly_end);
        assert_int_equal(ward_of('d')->lives, row->after_orderly_end);
    }
}

TEST(a_child_that_is_done_is_not_started_with_others)
{
    open_wards();
    (void)supervise(
        (skua_supervisor){.name = "top",
                          .strategy = SKUA_STRATEGY_ALL,
                          WARDS(with_restart(ward('a'), SKUA_RESTART_ON_ERROR), ward('b'),
                                with_restart(ward('c'), SKUA_RESTART_NEVER))});
    ward_finish('a');
    assert_diary("+a+b+c-a");
    ward_fail('b', SKUA_E_USER);
    assert_diary("-b-c+b"); /* c is stopped with the others, and never started again */
}

TEST(all_at_once_if_that_is_wanted)
{
    open_wards();
    ward_of('a')->habits.stops_after_ns = SKUA_SECOND;
    ward_of('b')->habits.stops_after_ns = SKUA_SECOND;
    const skua_pid top = supervise(
        (skua_supervisor){.name = "top", .parallel_stop = true, WARDS(ward('a'), ward('b'))});
    assert_diary("+a+b");
    assert_int_equal(world_cancel(top, 0), 0);
    world_settle();
    world_advance(SKUA_SECOND + 2 * SKUA_CLOCK_RESOLUTION_NS);
    assert_diary_in_any_order("-a-b");
}

/* ---- failures in the middle of it ---- */

/* While c takes its time to stop, b and a fail: that joins, and all are started once. */
TEST(failure_while_others_stop_joins_the_restart)
{
    static const enum skua_strategy strategies[] = {SKUA_STRATEGY_ALL, SKUA_STRATEGY_REST};
    FOR_ROWS (strategy, strategies) {
        open_wards();
        ward_of('d')->habits.stops_after_ns = SKUA_SECOND;
        const skua_pid top =
            supervise((skua_supervisor){.name = "top",
                                        .strategy = *strategy,
                                        WARDS(ward('a'), ward('b'), ward('c'), ward('d'))});
        ward_fail('b', SKUA_E_USER);
        assert_diary("+a+b+c+d-b");
        assert_int_equal(report_on(top, "d").state, SKUA_CHILD_STOPPING);
        ward_fail('c', SKUA_E_USER);
        ward_fail('a', SKUA_E_USER);
        assert_diary("-c-a");
        world_advance(SKUA_SECOND + 2 * SKUA_CLOCK_RESOLUTION_NS);
        assert_diary("-d+a+b+c+d");
        assert_int_equal(report_on(top, "d").restarts, 1);
        ward_of('d')->habits.stops_after_ns = 0;
    }
}

/* While b takes its time to get ready again, a fails: what has started is stopped, and all begins
 * anew. */
TEST(failure_while_others_start_joins_the_restart)
{
    open_wards();
    skua_child slow = ward('b');
    slow.start_ns = 10 * SKUA_SECOND;
    const skua_pid top = supervise((skua_supervisor){
        .name = "top", .strategy = SKUA_STRATEGY_ALL, WARDS(ward('a'), slow, ward('c'))});
    assert_diary("+a+b+c");
    ward_of('b')->habits.ready_after_ns = SKUA_SECOND;
    ward_fail('c', SKUA_E_USER);
    assert_diary("-c-b-a+a+b");
    assert_int_equal(report_on(top, "b").state, SKUA_CHILD_STARTING);
    ward_fail('a', SKUA_E_USER);
    assert_diary("-a-b+a+b");
    world_advance(SKUA_SECOND + 2 * SKUA_CLOCK_RESOLUTION_NS);
    assert_diary("+c");
}

/* ---- nobody outlives a supervisor ---- */

TEST(children_end_with_a_supervisor_that_is_terminated)
{
    open_wards();
    const skua_supervisor *inner =
        specification_copy((skua_supervisor){.name = "inner", WARDS(ward('b'), ward('c'))});
    const skua_pid top = supervise(
        (skua_supervisor){.name = "top", WARDS(ward('a'), {.name = "inner", .supervisor = inner})});
    assert_int_equal(world_terminate(top), 0);
    world_await_live(0);
    assert_diary_in_any_order("+a+b+c-a-b-c");
    assert_int_equal(ward_of('c')->exit_error, SKUA_E_TERMINATED);
}

/* A supervisor of one's own: it starts a child in its first step, and ends in an orderly way. */
static int start_own(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            skua_payload input = ward_input('a');
            assert_int_equal(skua_spawn_with(ctx,
                                             &(skua_spawn_options){.type = &ward_type,
                                                                   .input = &input,
                                                                   .input_count = 1,
                                                                   .link_tag = 7,
                                                                   .supervisor = skua_self(ctx)},
                                             NULL),
                             0);
        } else if (events[i].type == SKUA_EVENT_MESSAGE) {
            return skua_done(ctx, skua_nothing());
        } else if (events[i].type == SKUA_EVENT_EXIT) {
            assert_int_equal(events[i].tag, 7);
            diary_write('e', events[i].error == SKUA_E_USER ? 'u' : '?');
        }
    }
    return 0;
}

static const skua_process_type own_type = {.name = "own", .step = start_own};

TEST(children_end_with_a_supervisor_that_is_done)
{
    skua_pid pid;
    open_wards();
    assert_int_equal(skua_process_submit(world_runtime(), &own_type, skua_nothing(), &pid), 0);
    world_settle();
    assert_int_equal(world_info(ward_of('a')->pid).supervisor.bits, pid.bits);
    assert_int_equal(world_info(pid).supervisor.bits, 0);
    assert_int_equal(world_send(pid, skua_nothing()), 0);
    world_await_live(0);
    assert_diary("+a-a");
    assert_int_equal(ward_of('a')->exit_error, SKUA_E_CANCELLED);
}

TEST(a_supervisor_of_ones_own_hears_of_its_children)
{
    skua_pid pid;
    open_wards();
    assert_int_equal(skua_process_submit(world_runtime(), &own_type, skua_nothing(), &pid), 0);
    world_settle();
    ward_fail('a', SKUA_E_USER);
    assert_diary("+a-aeu");
}
