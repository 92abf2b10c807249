/* SPDX-License-Identifier: MIT */
/* Deadlines of yields: what has not ended by then ends with SKUA_E_TIMEOUT, once. */
#include "desk.h"
#include "timers.h"

TEST(deadline_that_passes_first_ends_the_command)
{
    const uint64_t due = START + SECOND;
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(yields_item(5, DESK_KEEP, 0, &actor->item), deadline(due)));
    assert_int_equal(desk->deadlines[0], due);
    assert_waits_until(firing_time(due));
    world_advance_to(firing_time(due) - 1);
    look_at_timers();
    assert_then_saw_nothing(actor);
    world_advance_to(firing_time(due));
    assert_then_saw(actor, completion(5, SKUA_E_TIMEOUT));
    assert_int_equal(timers_fired(), 1);
    assert_late(desk, 0);
    assert_nobody_waits();
    assert_then_saw_nothing(actor);
    assert_drops(&actor->item, 1, 1);
}

TEST(deadline_does_not_concern_a_command_that_ends_in_time)
{
    const uint64_t due = START + SECOND;
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    actor_perform(actor, ACTS(yields(0, DESK_KEEP, 0, 0), deadline(due),
                              yields(1, DESK_DOUBLE, 0, 0), deadline(due)));
    assert_int_equal(desk_complete(desk, 0, 0, 0), 0);
    actor_perform(actor, ACTS(yields(2, DESK_FAIL, 0, 0), deadline(due),
                              yields(3, DESK_UNKNOWN, 0, 0), deadline(due)));
    assert_int_equal(timers_armed(), 0);
    assert_then_saw_in_any_order(actor, completion(0, 0), completion(1, 0),
                                 completion(2, DESK_ERROR), completion(3, SKUA_E_UNKNOWN_COMMAND));
    world_advance(HOUR);
    assert_then_saw_nothing(actor);
    assert_int_equal(timers_fired(), 0);
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(deadline_that_has_passed_keeps_the_handler_from_being_called)
{
    static const uint64_t passed[] = {0, 1, START - HOUR, START - 1, START};
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    for (size_t i = 0; i < COUNT_OF(passed); i++) {
        actor_perform(actor, ACTS(yields_item(5, DESK_KEEP, 0, &actor->item), deadline(passed[i])));
        assert_then_saw(actor, completion(5, SKUA_E_TIMEOUT));
    }
    assert_int_equal(desk->calls, 0);
    assert_drops(&actor->item, 1, COUNT_OF(passed));
    /* One nanosecond later the handler gets its chance. */
    actor_perform(actor, ACTS(yields(6, DESK_DOUBLE, 0, 0), deadline(START + 1)));
    assert_then_saw(actor, completion(6, 0));
    assert_int_equal(virtual_wait_calls(&world->time), 0);
}

TEST(deadline_on_a_sleep_ends_it_if_it_comes_first)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(sleeps(1, 2 * SECOND), deadline(START + SECOND),
                                           timer(2, SKUA_FOREVER), deadline(START + 3 * SECOND)));
    assert_waits_until(firing_time(START + SECOND));
    world_advance_to(firing_time(START + SECOND));
    assert_then_saw(actor, completion(1, SKUA_E_TIMEOUT));
    world_advance_to(firing_time(START + 3 * SECOND));
    assert_then_saw(actor, completion(2, SKUA_E_TIMEOUT));
    actor_perform(actor, ACTS(sleeps(3, 0), deadline(START)));
    assert_then_saw(actor, completion(3, SKUA_E_TIMEOUT));
    assert_int_equal(timers_armed(), 0);
}

TEST(deadline_on_a_sleep_does_not_concern_one_that_ends_before)
{
    world_open_virtual();
    struct actor *actor =
        actor_start(ACTS(sleeps(1, SECOND), deadline(START + 2 * SECOND), sleeps(2, 3 * SECOND),
                         deadline(START + 3 * SECOND + 1)));
    assert_waits_until(firing_time(START + SECOND));
    world_advance_to(firing_time(START + SECOND));
    assert_then_saw(actor, completion(1, 0));
    world_advance(HOUR);
    assert_then_saw(actor, completion(2, 0));
    actor_perform(actor, ACTS(sleeps(3, 0), deadline(SKUA_FOREVER - 1)));
    assert_then_saw(actor, completion(3, 0));
    assert_int_equal(timers_armed(), 0);
    assert_int_equal(timers_fired(), 2);
}

TEST(deadline_at_the_end_of_a_sleep_gives_one_completion)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(sleeps(1, SECOND), deadline(START + SECOND)));
    world_advance(HOUR);
    assert_int_equal(actor->seen_count, 1);
    assert_saw(actor, completion(1, actor->seen[0].error)); /* either is right */
    assert_int_equal(timers_armed(), 0);
}

TEST(deadline_on_a_ticker_is_refused)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(ticker(1, SECOND), deadline(START + HOUR)));
    world_settle();
    assert_then_saw(actor, completion(1, SKUA_E_INVALID));
    assert_int_equal(timers_armed(), 0);
    actor_perform(actor, ACTS(ticker(2, SECOND), deadline(SKUA_FOREVER)));
    world_advance_to(firing_time(START + SECOND));
    assert_then_saw(actor, tick_at(2, 1, START + SECOND));
}

TEST(deadline_that_is_given_twice_is_the_last_one)
{
    struct desk *desk = desk_open_virtual();
    struct actor *actor =
        actor_start(ACTS(yields(1, DESK_KEEP, 0, 0), deadline(START), deadline(START + HOUR),
                         deadline(START + SECOND), yields(2, DESK_KEEP, 0, 0), deadline(START),
                         deadline(SKUA_FOREVER)));
    world_settle();
    assert_int_equal(desk->deadlines[0], START + SECOND);
    assert_int_equal(desk->deadlines[1], SKUA_FOREVER);
    assert_int_equal(timers_armed(), 1);
    world_advance(2 * HOUR);
    assert_then_saw(actor, completion(1, SKUA_E_TIMEOUT));
    assert_int_equal(desk_complete(desk, 1, 0, 0), 0);
    world_settle();
    assert_then_saw(actor, completion(2, 0));
}

TEST(deadline_without_a_yield_is_refused)
{
    const struct act late = refused(deadline(START + SECOND), SKUA_E_INVALID);
    world_open_virtual();
    struct actor *actor =
        actor_start(ACTS(late, cancels(1), late, sleeps(2, HOUR), cancels(1), late));
    /* A yield of an earlier step is none of this one's. */
    actor_perform(actor, ACTS(late));
    world_advance(MILLISECOND);
    assert_waits_until(firing_time(START + HOUR));
    assert_saw_nothing(actor);
}

TEST(calls_without_a_step_are_refused)
{
    assert_int_equal(skua_step_deadline(NULL, START), SKUA_E_INVALID);
    assert_int_equal(skua_step_cancel(NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_sleep(NULL, 1, SECOND), SKUA_E_INVALID);
    assert_int_equal(skua_step_timer(NULL, 1, SECOND), SKUA_E_INVALID);
    assert_int_equal(skua_step_ticker(NULL, 1, SECOND), SKUA_E_INVALID);
}
