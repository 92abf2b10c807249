/* SPDX-License-Identifier: MIT */
/* Timeouts of yields: what has not ended by then ends with SKUA_E_TIMEOUT, once. */
#include "desk.h"
#include "handlers.h"
#include "timers.h"

/* ---- what comes first ---- */

TEST(timeout_that_passes_first_ends_the_command)
{
    const uint64_t due = START + SECOND;
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(within(SECOND, yields_item(5, DESK_KEEP, 0, &actor->item))));
    assert_int_equal(desk->deadlines[0], due);
    assert_waits_until(firing_time(due));
    world_advance_to(firing_time(due) - 1);
    look_at_timers();
    assert_then_saw_nothing(actor);
    world_advance_to(firing_time(due));
    assert_then_saw(actor, failure(5, SKUA_E_TIMEOUT));
    assert_int_equal(timers_fired(), 1);
    assert_late(desk, 0);
    assert_nobody_waits();
    assert_then_saw_nothing(actor);
    assert_drops(&actor->item, 1, 1);
}

TEST(timeout_does_not_concern_a_command_that_ends_in_time)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    actor_perform(actor, ACTS(within(SECOND, yields(0, DESK_KEEP, 0, 0)),
                              within(SECOND, yields(1, DESK_DOUBLE, 0, 0))));
    assert_int_equal(desk_complete(desk, 0, 0, 0), 0);
    actor_perform(actor, ACTS(within(SECOND, yields(2, DESK_FAIL, 0, 0)),
                              within(SECOND, yields(3, DESK_UNKNOWN, 0, 0)),
                              within(SECOND, yields(4, DESK_COMPLETE, 0, 7))));
    assert_int_equal(timers_armed(), 0);
    assert_then_saw_in_any_order(actor, completion(0, 0), completion(1, 0),
                                 completion(2, DESK_ERROR), completion(3, SKUA_E_UNKNOWN_COMMAND),
                                 completion_of(4, DESK_RESULT, 7));
    world_advance(HOUR);
    assert_then_saw_nothing(actor);
    assert_int_equal(timers_fired(), 0);
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(timeouts_come_in_the_order_of_their_instants)
{
    (void)desk_open_virtual();
    struct actor *actor = actor_start(ACTS(within(3 * SECOND, yields(3, DESK_KEEP, 0, 0)),
                                           within(SECOND, yields(1, DESK_KEEP, 0, 0)),
                                           sleeps(4, 4 * SECOND), yields(5, DESK_KEEP, 0, 0),
                                           within(2 * SECOND, yields(2, DESK_KEEP, 0, 0))));
    world_settle();
    assert_int_equal(timers_armed(), 4);
    world_advance(HOUR);
    assert_saw(actor, failure(1, SKUA_E_TIMEOUT), failure(2, SKUA_E_TIMEOUT),
               failure(3, SKUA_E_TIMEOUT), completion(4, 0));
}

/* The step takes its time; its yields begin when it has ended. */
TEST(timeout_begins_at_the_end_of_the_step)
{
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    world_settle();
    actor_perform_until_held(actor, ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0)), holds()));
    world_set_clock(START + HOUR);
    actor_release(actor);
    assert_int_equal(desk->deadlines[0], START + HOUR + SECOND);
    assert_then_saw_nothing(actor);
    world_advance(2 * SECOND);
    assert_then_saw(actor, failure(1, SKUA_E_TIMEOUT));
}

/* ---- no time at all ---- */

TEST(command_that_is_given_no_time_ends_with_what_its_handler_brings_at_once)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    actor_perform(actor, ACTS(within(0, yields(1, DESK_DOUBLE, 0, 4)),
                              within(0, yields(2, DESK_FAIL, 0, 0)),
                              within(0, yields(3, DESK_UNKNOWN, 0, 0)),
                              within(0, yields(4, DESK_COMPLETE, 0, 9))));
    assert_then_saw_in_any_order(actor, completion_of(1, DESK_RESULT, 8), failure(2, DESK_ERROR),
                                 failure(3, SKUA_E_UNKNOWN_COMMAND),
                                 completion_of(4, DESK_RESULT, 9));
    actor_perform(actor, ACTS(within(0, yields_item(5, DESK_KEEP, 0, &actor->item))));
    assert_then_saw(actor, failure(5, SKUA_E_TIMEOUT));
    assert_int_equal(desk->deadlines[0], START);
    assert_late(desk, 0);
    assert_drops(&actor->item, 1, 1);
    assert_int_equal(timers_armed(), 0);
    assert_int_equal(timers_fired(), 0);
    assert_int_equal(nodes_in_use(), nodes);
    assert_int_equal(virtual_wait_calls(&world->time), 0);
}

/* However long the handler takes: it has brought it when it returns. */
TEST(command_that_is_given_no_time_waits_for_its_handler_to_return)
{
    struct desk *desk = desk_open_virtual();
    struct actor *sleeper = actor_start(ACTS(sleeps(2, SECOND)));
    world_settle();
    struct actor *actor = actor_start(ACTS(within(0, yields(1, DESK_STICK, 0, 0))));
    desk_await_stuck(desk, 1);
    if (test_workers() > 1) { /* the others look at the timers of all */
        advance_until_fired(firing_time(START + SECOND));
    }
    desk_release(desk);
    world_advance(HOUR);
    assert_saw(actor, completion(1, 0));
    assert_saw(sleeper, completion(2, 0));
    assert_int_equal(timers_fired(), 1);
}

static int pend_with_a_result(void *arg, skua_command *command, skua_payload *result)
{
    (void)command;
    *result = tracked_payload(1, arg);
    return SKUA_PENDING;
}

TEST(result_of_a_pending_command_that_is_given_no_time_is_dropped)
{
    struct tracked item = {0};
    world_create_virtual((skua_runtime_config){0});
    world_register(1, pend_with_a_result, &item);
    world_start();
    struct actor *actor = actor_start(ACTS(within(0, yields(1, 1, 0, 0))));
    world_settle();
    assert_saw(actor, failure(1, SKUA_E_TIMEOUT));
    assert_drops(&item, 1, 1);
}

/* ---- very much time, and too much ---- */

TEST(timeout_may_be_as_long_as_durations_get)
{
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(ACTS(within(SKUA_DURATION_MAX, yields(1, DESK_KEEP, 0, 0))));
    world_settle();
    assert_int_equal(desk->deadlines[0], START + SKUA_DURATION_MAX);
    assert_int_equal(timers_armed(), 1);
    world_advance(1000 * HOUR);
    assert_saw_nothing(actor);
    assert_int_equal(desk_complete(desk, 0, 0, 3), 0);
    world_settle();
    assert_saw(actor, completion_of(1, DESK_RESULT, 3));
    assert_int_equal(timers_armed(), 0);
}

TEST(command_without_a_timeout_is_given_all_the_time)
{
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(ACTS(within(SKUA_FOREVER, yields(1, DESK_KEEP, 0, 0))));
    world_settle();
    assert_int_equal(desk->deadlines[0], SKUA_FOREVER);
    assert_int_equal(timers_armed(), 0);
    world_advance(1000 * HOUR);
    assert_saw_nothing(actor);
    assert_int_equal(desk_complete(desk, 0, 0, 3), 0);
    world_settle();
    assert_saw(actor, completion_of(1, DESK_RESULT, 3));
}

static int wait_readable(struct turn *turn, const struct act *act)
{
    return skua_yield_readable(turn->ctx, act->tag, 0, act_timeout(turn, act));
}

static int wait_writable(struct turn *turn, const struct act *act)
{
    return skua_yield_writable(turn->ctx, act->tag, 0, act_timeout(turn, act));
}

TEST(timeout_that_is_too_long_is_refused)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    static const uint64_t too_long[] = {SKUA_DURATION_MAX + 1, SKUA_FOREVER - 1};
    struct tracked item = {0};
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    for (size_t i = 0; i < COUNT_OF(too_long); i++) {
        struct act blocking = offloads(2, NULL, return_at_once, 0);
        blocking.item = &item;
        const struct act wrong[] = {yields_item(1, DESK_KEEP, 0, &item), blocking,
                                    does(wait_readable, NULL), does(wait_writable, NULL)};
        for (size_t k = 0; k < COUNT_OF(wrong); k++) {
            actor_perform(actor, ACTS(refused(within(too_long[i], wrong[k]), SKUA_E_DURATION)));
        }
    }
    assert_saw_nothing(actor);
    assert_int_equal(desk->calls, 0);
    assert_int_equal(nodes_in_use(), nodes);
    assert_drops(&item, 1, 2 * COUNT_OF(too_long));
    assert_int_equal(world_info(actor->pid).state, SKUA_PROCESS_IDLE);
}

/* ---- taking back, and the end of the process ---- */

TEST(command_that_is_taken_back_has_no_timeout_any_more)
{
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0)),
                              within(0, yields(2, DESK_KEEP, 0, 0)), cancels(2)));
    assert_then_saw(actor, failure(2, SKUA_E_TIMEOUT)); /* it had ended by then */
    actor_perform(actor, ACTS(cancels(1)));
    assert_then_saw(actor, failure(1, SKUA_E_CANCELLED));
    assert_int_equal(timers_armed(), 0);
    world_advance(HOUR);
    assert_then_saw_nothing(actor);
    assert_late(desk, 0);
}

TEST(command_that_has_timed_out_cannot_be_taken_back)
{
    (void)desk_open_virtual();
    struct actor *actor = actor_start(ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0))));
    world_settle();
    world_advance(HOUR);
    assert_then_saw(actor, failure(1, SKUA_E_TIMEOUT));
    actor_perform(actor, ACTS(cancels(1)));
    assert_then_saw_nothing(actor);
}

TEST(process_that_ends_takes_its_timeouts_with_it)
{
    struct desk *desk = desk_open_virtual();
    const uint64_t nodes = nodes_in_use();
    struct actor *ending[] = {
        actor_start(ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0)), continues(1), finishes(0))),
        actor_start(ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0)), finishes(0))),
        actor_start(ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0)), continues(1), fails(-1))),
        actor_start(ACTS(within(SECOND, yields(1, DESK_KEEP, 0, 0)))),
    };
    world_settle();
    assert_int_equal(world_terminate(ending[3]->pid), 0);
    world_settle();
    assert_int_equal(world_stats().live, 0);
    assert_int_equal(timers_armed(), 0);
    assert_int_equal(nodes_in_use(), nodes);
    world_advance(HOUR);
    assert_int_equal(timers_fired(), 0);
    for (size_t i = 0; i < COUNT_OF(ending); i++) {
        assert_saw_nothing(ending[i]);
        assert_late(desk, i);
    }
}

/* The yields of a step that fails are never begun. */
TEST(timeout_of_a_failing_step_is_not_armed)
{
    struct desk *desk = desk_open_virtual();
    struct tracked item = {0};
    struct actor *actor =
        actor_start(ACTS(within(SECOND, yields_item(1, DESK_KEEP, 0, &item)), fails(-1)));
    world_settle();
    assert_int_equal(desk->calls, 0);
    assert_int_equal(timers_armed(), 0);
    assert_saw_nothing(actor);
    assert_drops(&item, 1, 1);
}
