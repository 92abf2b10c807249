/* SPDX-License-Identifier: MIT */
/* Cancelling yields by their tag: each that has not ended does so at once, with exactly one
 * completion, and no other is meant. */
#include "desk.h"
#include "timers.h"

static struct act (*const every_wait[])(uint64_t tag, uint64_t duration_ns) = {sleeps, ticker};

TEST(cancel_of_what_waits_ends_it_at_once)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    for (size_t i = 0; i < COUNT_OF(every_wait); i++) {
        actor_perform(actor, ACTS(every_wait[i](5, SECOND)));
        assert_int_equal(timers_armed(), 1);
        actor_perform(actor, ACTS(cancels(5)));
        assert_then_saw(actor, completion(5, SKUA_E_CANCELLED));
        assert_int_equal(timers_armed(), 0);
        world_advance(HOUR);
        assert_then_saw_nothing(actor);
    }
    assert_int_equal(timers_fired(), 0);
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(cancel_in_the_same_step_ends_what_was_asked_before_it)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    for (size_t i = 0; i < COUNT_OF(every_wait); i++) {
        actor_perform(actor, ACTS(every_wait[i](5, SECOND), cancels(5), cancels(5)));
        assert_then_saw(actor, completion(5, SKUA_E_CANCELLED));
        assert_int_equal(timers_armed(), 0);
    }
}

TEST(cancel_in_the_same_step_leaves_what_has_ended_and_what_comes_after_it)
{
    world_open_virtual();
    struct actor *actor = actor_start(
        ACTS(timer(6, SKUA_FOREVER), sleeps(7, 0), cancels(6), cancels(7), sleeps(6, SECOND)));
    world_settle();
    assert_then_saw_in_any_order(actor, completion(6, SKUA_E_CANCELLED), completion(7, 0));
    world_advance(2 * SECOND);
    assert_then_saw(actor, completion(6, 0));
}

TEST(cancel_of_several_with_one_tag_ends_them_all_and_no_other)
{
    (void)desk_open_virtual();
    struct actor *actor = actor_start(
        ACTS(sleeps(5, SECOND), sleeps(4, SECOND), timer(5, START + 5 * SECOND), ticker(5, SECOND),
             ticker(6, SECOND), timer(5, SKUA_FOREVER), yields(5, DESK_KEEP, 0, 0), waits_for(5, 1),
             until(START + 2 * SECOND, yields(7, DESK_KEEP, 0, 0)),
             until(START + 2 * SECOND, yields(5, DESK_KEEP, 0, 0))));
    actor_perform(actor, ACTS(sleeps(5, HOUR), cancels(99)));
    assert_then_saw_nothing(actor);
    actor_perform(actor, ACTS(cancels(5)));
    const struct seen cancelled = completion(5, SKUA_E_CANCELLED);
    assert_then_saw(actor, cancelled, cancelled, cancelled, cancelled, cancelled, cancelled,
                    cancelled, cancelled);
    world_advance_to(firing_time(START + SECOND));
    assert_then_saw_in_any_order(actor, completion(4, 0), tick(6, 1));
    world_advance_to(firing_time(START + 2 * SECOND));
    assert_then_saw_in_any_order(actor, completion(7, SKUA_E_TIMEOUT), tick(6, 1));
}

TEST(cancel_after_the_end_changes_nothing)
{
    (void)desk_open_virtual();
    struct actor *actor =
        actor_start(ACTS(sleeps(5, SECOND), yields(5, DESK_DOUBLE, 0, 0), cancels(1)));
    world_settle();
    assert_then_saw(actor, completion(5, 0));
    world_advance(2 * SECOND);
    assert_then_saw(actor, completion(5, 0));
    actor_perform(actor, ACTS(cancels(5)));
    assert_then_saw_nothing(actor);
}

/* A worker is held in the process's step; the other one fires; then the step cancels what has fired
 * and waits in the mailbox. */
static void check_cancel_of_what_has_fired(struct act yield, int error)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    actor_perform(actor, ACTS(yield));
    actor_perform_until_held(actor, ACTS(holds(), cancels(5), cancels(5)));
    advance_until_fired(firing_time(START + SECOND));
    actor_release(actor);
    assert_then_saw(actor, completion(5, error));
    world_advance(HOUR);
    assert_then_saw_nothing(actor);
    assert_int_equal(timers_armed(), 0);
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(cancel_of_a_sleep_that_has_fired_lets_it_end_well)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    check_cancel_of_what_has_fired(sleeps(5, SECOND), 0);
}

TEST(cancel_of_a_ticker_whose_tick_waits_ends_it_instead)
{
    check_cancel_of_what_has_fired(ticker(5, SECOND), SKUA_E_CANCELLED);
}

TEST(cancel_of_a_ticker_that_has_ticked_ends_it)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(ticker(5, SECOND)));
    world_advance(SECOND + RESOLUTION);
    world_advance(SECOND);
    assert_then_saw(actor, tick(5, 1), tick(5, 1));
    actor_perform(actor, ACTS(cancels(5)));
    assert_then_saw(actor, completion(5, SKUA_E_CANCELLED));
    world_advance(HOUR);
    assert_then_saw_nothing(actor);
    /* The tag is free for another one. */
    actor_perform(actor, ACTS(ticker(5, SECOND)));
    world_advance(SECOND + RESOLUTION);
    assert_then_saw(actor, tick(5, 1));
}

TEST(cancel_of_a_ticker_by_its_tick_lets_no_other_come)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(ticker(1, SECOND), awaits(1), cancels(1)));
    world_advance(10 * SECOND);
    world_advance(10 * SECOND);
    assert_saw(actor, tick(1, 10), completion(1, SKUA_E_CANCELLED));
}

TEST(cancel_of_the_earliest_leaves_the_later_ones_their_time)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 1});
    struct actor *actor =
        actor_start(ACTS(sleeps(1, SECOND), sleeps(2, SECOND + RESOLUTION), sleeps(3, HOUR)));
    actor_perform(actor, ACTS(cancels(1)));
    assert_then_saw(actor, completion(1, SKUA_E_CANCELLED));
    world_advance_to(firing_time(START + SECOND));
    assert_then_saw_nothing(actor);
    assert_waits_until(firing_time(START + SECOND + RESOLUTION));
    world_advance_to(firing_time(START + SECOND + RESOLUTION));
    assert_then_saw(actor, completion(2, 0));
    actor_perform(actor, ACTS(cancels(3)));
    assert_nobody_waits();
}

TEST(cancel_of_a_command_under_way_drops_its_late_result)
{
    struct desk *desk = desk_open_virtual();
    struct actor *actor = actor_start(ACTS(yields(5, DESK_KEEP, 0, 0)));
    actor_perform(actor, ACTS(cancels(5)));
    assert_then_saw(actor, completion(5, SKUA_E_CANCELLED));
    assert_int_equal(desk->calls, 1);
    /* Also when its node carries another call by now. */
    actor_perform(actor, ACTS(yields(6, DESK_KEEP, 0, 0)));
    assert_late(desk, 0);
    assert_int_equal(desk_complete(desk, 1, 0, 0), 0);
    world_settle();
    assert_then_saw(actor, completion(6, 0));
    assert_late(desk, 1);
    world_settle();
    assert_then_saw_nothing(actor);
}
