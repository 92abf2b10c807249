/* SPDX-License-Identifier: MIT */
/* Who waits for timers and sources: one idle worker at a time, as long as necessary, and somebody
 * in its place when it has something to do. The sources are made up (virtual_time.h). */
#include "desk.h"
#include "timers.h"

#define SECOND_LATER firing_time(START + SECOND)

/* ---- the idle worker ---- */

TEST(idle_worker_waits_for_the_nearest_deadline)
{
    static const uint64_t distances[] = {1, MILLISECOND, SECOND, 60 * SECOND, 120 * SECOND};
    (void)desk_open_virtual();
    struct actor *one = actor_start(NO_ACTS);
    struct actor *other = actor_start(NO_ACTS);
    assert_nobody_waits();
    /* Each is earlier than those before it, whichever worker it is armed with. */
    actor_perform(one, ACTS(sleeps(0, HOUR)));
    assert_waits_until(firing_time(START + HOUR));
    actor_perform(other, ACTS(ticker(1, 60 * SECOND)));
    assert_waits_until(firing_time(START + 60 * SECOND));
    actor_perform(one, ACTS(timer(2, START + SECOND)));
    assert_waits_until(firing_time(START + SECOND));
    actor_perform(other, ACTS(until(START + MILLISECOND, yields(3, DESK_KEEP, 0, 0))));
    assert_waits_until(firing_time(START + MILLISECOND));
    actor_perform(one, ACTS(sleeps(4, 1)));
    assert_waits_until(firing_time(START + 1));
    /* And back, one after the other. */
    for (size_t i = 0; i + 1 < COUNT_OF(distances); i++) {
        world_advance_to(firing_time(START + distances[i]));
        assert_int_equal(one->seen_count + other->seen_count, i + 1);
        assert_waits_until(firing_time(START + distances[i + 1]));
    }
}

TEST(idle_worker_is_not_disturbed_by_a_later_deadline)
{
    world_create_virtual((skua_runtime_config){.worker_count = test_workers() + 1});
    (void)desk_open();
    world_start();
    struct actor *actor = actor_start(ACTS(sleeps(0, SECOND)));
    world_settle();
    const uint64_t calls = virtual_wait_calls(&world->time);
    const uint64_t interrupts = virtual_interrupts(&world->time);
    const int waiter = virtual_waiter(&world->time);
    for (uint64_t i = 1; i <= 20; i++) {
        actor_perform(actor, ACTS(sleeps(1, SECOND + i * MILLISECOND), waits_for(2, i),
                                  until(START + HOUR, yields(3, DESK_KEEP, 0, 0))));
    }
    assert_int_equal(virtual_waiter(&world->time), waiter);
    assert_int_equal(virtual_wait_calls(&world->time), calls);
    assert_int_equal(virtual_interrupts(&world->time), interrupts);
}

TEST(idle_worker_without_anything_to_wait_for_stays_out_of_the_poller)
{
    (void)desk_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t command = i % 2 == 0 ? DESK_KEEP : DESK_DOUBLE;
        actor_perform(actor, ACTS(yields(1, command, 0, 0), continues(10)));
    }
    world_advance(HOUR);
    assert_int_equal(virtual_wait_calls(&world->time), 0);
    assert_int_equal(virtual_interrupts(&world->time), 0);
    /* Nor when there was something, once it has come. */
    actor_perform(actor, ACTS(sleeps(2, SECOND), waits_for(3, 1)));
    world_advance(2 * SECOND);
    assert_waits_until(SKUA_FOREVER);
    assert_int_equal(virtual_make_ready(&world->time, 1), 1);
    assert_nobody_waits();
    const uint64_t calls = virtual_wait_calls(&world->time);
    actor_perform(actor, ACTS(yields(1, DESK_KEEP, 0, 0)));
    world_advance(HOUR);
    assert_int_equal(virtual_wait_calls(&world->time), calls);
}

TEST(idle_worker_that_wakes_for_no_reason_waits_on)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(sleeps(1, SECOND), waits_for(2, 1)));
    world_settle();
    for (int i = 0; i < 50; i++) {
        virtual_nudge(&world->time);
        assert_waits_until(SECOND_LATER);
    }
    assert_saw_nothing(actor);
    world_advance_to(SECOND_LATER);
    assert_saw(actor, completion(1, 0));
}

/* ---- sources ---- */

/* Makes a source ready for so many waits, and lets happen what follows. */
static void make_ready(uint64_t source, size_t waits)
{
    world_settle();
    assert_int_equal(virtual_make_ready(&world->time, source), waits);
    world_settle();
}

TEST(source_that_is_ready_ends_the_waits_for_it)
{
    world_open_virtual();
    struct actor *one = actor_start(ACTS(waits_for(0, 10), waits_for(1, 11)));
    struct actor *other = actor_start(ACTS(waits_for(0, 10)));
    assert_waits_until(SKUA_FOREVER);
    make_ready(12, 0);
    make_ready(10, 2);
    assert_then_saw(one, completion(0, 0));
    assert_then_saw(other, completion(0, 0));
    make_ready(11, 1);
    assert_then_saw(one, completion(1, 0));
    assert_nobody_waits();
}

TEST(source_with_a_deadline_ends_by_what_comes_first)
{
    world_open_virtual();
    struct actor *actor =
        actor_start(ACTS(until(START + SECOND, waits_for(0, 10)),
                         until(START + 2 * SECOND, waits_for(1, 11)), waits_for(2, 12)));
    assert_waits_until(SECOND_LATER);
    make_ready(10, 1);
    assert_then_saw(actor, completion(0, 0));
    world_advance_to(firing_time(START + 2 * SECOND));
    assert_then_saw(actor, completion(1, SKUA_E_TIMEOUT));
    actor_perform(actor, ACTS(cancels(2)));
    assert_then_saw(actor, completion(2, SKUA_E_CANCELLED));
    /* What is ready too late changes nothing, also for a call that has the same node. */
    actor_perform(actor, ACTS(waits_for(3, 13), waits_for(4, 14)));
    make_ready(11, 1);
    make_ready(12, 1);
    assert_then_saw_nothing(actor);
}

TEST(source_and_timer_at_the_same_moment_are_both_served)
{
    world_open_virtual();
    struct actor *one = actor_start(ACTS(sleeps(0, SECOND), until(START + HOUR, waits_for(1, 1))));
    struct actor *other = actor_start(ACTS(waits_for(0, 2), sleeps(1, SECOND)));
    world_settle();
    world_set_clock(SECOND_LATER);
    assert_int_equal(virtual_make_ready(&world->time, 1), 1);
    assert_int_equal(virtual_make_ready(&world->time, 2), 1);
    world_settle();
    assert_completed_each_once(one, 2, 0);
    assert_completed_each_once(other, 2, 0);
}

/* ---- workers that are not idle ---- */

/* That somebody waits for the first timer while the actor holds its worker. */
static void assert_another_waits(const struct actor *held)
{
    virtual_await_wait_until(&world->time, SECOND_LATER);
    assert_int_not_equal(virtual_waiter(&world->time), (int)held->worker);
}

/* The worker that waited gets the ready process and is held by it: the other one must wait in its
 * place, for all that is left. */
TEST(poller_is_handed_over_before_a_step_runs)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    struct actor *held = actor_start(NO_ACTS);
    struct actor *other = actor_start(ACTS(sleeps(1, SECOND), waits_for(2, 2)));
    world_settle();
    for (int round = 0; round < 20; round++) {
        assert_int_not_equal(virtual_waiter(&world->time), VIRTUAL_NOBODY);
        actor_perform_until_held(held, ACTS(holds()));
        assert_another_waits(held);
        actor_release(held);
    }
    /* And while it is held, both kinds of sources are served. */
    actor_perform_until_held(held, ACTS(holds()));
    assert_int_equal(virtual_make_ready(&world->time, 2), 1);
    actor_await_seen(other, 1);
    assert_another_waits(held);
    world_set_clock(SECOND_LATER);
    actor_await_seen(other, 2);
    assert_int_not_equal(other->worker, held->worker);
    actor_release(held);
}

/* Ready by the poller, and held: the worker that delivered it is the one that is stuck. Its picks
 * were short, so it has woken nobody for what is left: the monitor does, when time has passed. */
TEST(poller_is_handed_over_by_the_worker_that_was_in_it)
{
    FOR_ROUNDS (round, 20) {
        world_open_virtual_with((skua_runtime_config){.worker_count = 2});
        struct actor *other = actor_start(ACTS(sleeps(1, SECOND)));
        struct actor *held = actor_start(ACTS(waits_for(1, 1), awaits(1), holds(), finishes(0)));
        world_settle();
        assert_int_equal(virtual_make_ready(&world->time, 1), 1);
        actor_await_held(held, 1);
        world_set_clock(SECOND_LATER - SECOND / 2);
        assert_another_waits(held);
        world_set_clock(SECOND_LATER);
        actor_await_seen(other, 1);
        actor_let_go(held);
    }
}

/* What was asked for must be waited for, though the worker that armed it has not come to an end
 * with it, and nobody was in the poller before. */
static void check_source_of_a_stuck_worker(struct act yield, uint64_t instant)
{
    world_create_virtual((skua_runtime_config){.worker_count = 2});
    struct desk *desk = desk_open();
    world_start();
    assert_nobody_waits();
    struct actor *actor = actor_start(ACTS(yield, yields(2, DESK_STICK, 0, 0)));
    desk_await_stuck(desk, 1);
    virtual_await_wait_until(&world->time, instant);
    assert_int_not_equal(virtual_waiter(&world->time), (int)actor->worker);
    desk_release(desk);
    assert_waits_until(instant);
    assert_saw(actor, completion(2, 0));
}

TEST(poller_is_entered_for_a_sleep_of_a_stuck_worker)
{
    check_source_of_a_stuck_worker(sleeps(1, SECOND), SECOND_LATER);
}

TEST(poller_is_entered_for_a_ticker_of_a_stuck_worker)
{
    check_source_of_a_stuck_worker(ticker(1, SECOND), SECOND_LATER);
}

TEST(poller_is_entered_for_a_source_of_a_stuck_worker)
{
    check_source_of_a_stuck_worker(waits_for(1, 1), SKUA_FOREVER);
}

TEST(timers_of_a_stuck_worker_are_fired_by_another)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    struct actor *sleeper = actor_start(ACTS(sleeps(1, SECOND)));
    world_settle();
    /* Both workers are held; then the one whose timer it is not is let go. */
    struct actor *stuck = actor_start(NO_ACTS);
    struct actor *lucky = actor_start(NO_ACTS);
    actor_perform_until_held(stuck, ACTS(holds()));
    actor_perform_until_held(lucky, ACTS(holds()));
    assert_int_not_equal(stuck->worker, lucky->worker);
    if (timers_armed_with(stuck->worker) == 0) {
        struct actor *const swap = stuck;
        stuck = lucky;
        lucky = swap;
    }
    assert_int_equal(timers_armed_with(stuck->worker), 1);
    actor_let_go(lucky);
    virtual_await_wait_until(&world->time, SECOND_LATER);
    assert_int_equal(virtual_waiter(&world->time), lucky->worker);
    world_set_clock(SECOND_LATER);
    actor_await_seen(sleeper, 1);
    actor_release(stuck);
    assert_saw(sleeper, completion(1, 0));
}

TEST(timers_of_a_blocked_worker_are_fired_by_a_spare_one)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 1});
    struct actor *sleeper = actor_start(ACTS(sleeps(1, SECOND), waits_for(2, 1), ticker(3, HOUR)));
    struct actor *blocked = actor_start(NO_ACTS);
    world_settle();
    actor_perform_until_held(blocked, ACTS(blocks()));
    assert_another_waits(blocked);
    world_set_clock(SECOND_LATER);
    actor_await_seen(sleeper, 1);
    assert_int_equal(virtual_make_ready(&world->time, 1), 1);
    actor_await_seen(sleeper, 2);
    actor_release(blocked);
    assert_waits_until(firing_time(START + HOUR));
}

/* A process that always goes on keeps its worker from ever being idle. */
TEST(sources_are_served_by_a_worker_that_is_never_idle)
{
    world_create_virtual((skua_runtime_config){.worker_count = 1});
    (void)desk_open();
    world_start();
    struct actor *actor = actor_start(
        ACTS(sleeps(1, SECOND), waits_for(2, 1), until(START + HOUR, yields(3, DESK_KEEP, 0, 0))));
    world_settle();
    struct actor *busy = actor_start(ACTS(continues(UINT64_MAX)));
    world_set_clock(SECOND_LATER);
    actor_await_seen(actor, 1);
    assert_int_equal(virtual_make_ready(&world->time, 1), 1);
    world_set_clock(SECOND_LATER + MILLISECOND);
    actor_await_seen(actor, 2);
    world_set_clock(firing_time(START + HOUR));
    actor_await_seen(actor, 3);
    assert_int_equal(world_cancel(busy->pid, SKUA_E_CANCELLED), 0);
    world_settle();
    assert_saw(actor, completion(1, 0), completion(2, 0), completion(3, SKUA_E_TIMEOUT));
}

/* The check of the poller is a chore: it has its time, and an idle worker to do it. */
TEST(chore_is_done_by_an_idle_worker_at_its_time)
{
    world_create_virtual((skua_runtime_config){.worker_count = 1});
    world->time.check_period_ns = 10 * SECOND;
    world_start();
    struct actor *actor = actor_start(ACTS(until(START + SECOND, waits_for(1, 1))));
    actor_perform(actor, ACTS(until(START + 15 * SECOND, waits_for(2, 2))));
    world_advance_to(SECOND_LATER);
    assert_then_saw(actor, completion(1, SKUA_E_TIMEOUT));
    assert_waits_until(START + 10 * SECOND);
    world_advance_to(START + 10 * SECOND - 1);
    assert_int_equal(world->time.seen.checks, 0);
    assert_int_equal(virtual_wait_count(&world->time), 2);
    world_advance_to(START + 10 * SECOND);
    assert_int_equal(world->time.seen.checks, 1);
    assert_int_equal(virtual_wait_count(&world->time), 1); /* one had ended */
    world_advance_to(firing_time(START + 15 * SECOND));
    assert_then_saw(actor, completion(2, SKUA_E_TIMEOUT));
    world_advance_to(START + 20 * SECOND);
    assert_int_equal(world->time.seen.checks, 2);
    assert_int_equal(virtual_wait_count(&world->time), 0);
    assert_nobody_waits();
    world_advance(HOUR);
    assert_int_equal(world->time.seen.checks, 2);
}
