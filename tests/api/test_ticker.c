/* SPDX-License-Identifier: MIT */
/* Tickers: they stay on the grid of their beginning and account for every period. */
#include "timers.h"

TEST(ticker_stays_on_the_grid_of_its_beginning)
{
    static const uint64_t periods[] = {RESOLUTION, MILLISECOND, 7777777, SECOND, HOUR};
    world_open_virtual_with((skua_runtime_config){.worker_count = 1});
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        const uint64_t start = world_now();
        struct actor *actor = actor_start(ACTS(ticker(3, periods[i])));
        for (uint64_t n = 1; n <= 20; n++) {
            const uint64_t instant = start + n * periods[i];
            assert_waits_until(firing_time(instant));
            world_advance_to(firing_time(instant) - 1);
            look_at_timers();
            assert_then_saw_nothing(actor);
            world_advance_to(firing_time(instant));
            assert_then_saw(actor, tick_at(3, 1, instant));
        }
        actor_perform(actor, ACTS(finishes(0)));
        assert_int_equal(timers_fired(), 20 * (i + 1));
    }
}

TEST(ticker_that_is_late_tells_how_many_periods_have_passed)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(ticker(3, SECOND)));
    world_advance_to(START + 5 * SECOND + SECOND / 2);
    assert_then_saw(actor, tick_at(3, 5, START + 5 * SECOND));
    assert_waits_until(firing_time(START + 6 * SECOND));
    world_advance_to(firing_time(START + 6 * SECOND));
    assert_then_saw(actor, tick_at(3, 1, START + 6 * SECOND));
    /* To the instant, and one nanosecond before. */
    world_advance_to(START + 1000 * SECOND - 1);
    assert_then_saw(actor, tick_at(3, 993, START + 999 * SECOND));
    world_advance_to(START + 2000 * SECOND);
    assert_then_saw(actor, tick_at(3, 1001, START + 2000 * SECOND));
}

/* Two workers: one is held in the ticking process's step, the other waits for the timers. */
TEST(ticker_of_a_slow_process_has_one_tick_waiting)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    struct actor *actor = actor_start(ACTS(ticker(3, SECOND)));
    actor_perform_until_held(actor, ACTS(holds()));
    advance_until_fired(firing_time(START + SECOND));
    world_set_clock(START + 4 * SECOND + SECOND / 2);
    assert_int_equal(timers_fired(), 1);
    assert_int_equal(timers_armed(), 0); /* it is armed again when its tick has been taken */
    actor_release(actor);
    assert_saw(actor, tick_at(3, 1, START + SECOND), tick_at(3, 3, START + 4 * SECOND));
    assert_waits_until(firing_time(START + 5 * SECOND));
}

/* How many periods the ticks with this tag stand for; they are on the grid, and none is early. */
static uint64_t count_periods(const struct actor *actor, uint64_t tag, uint64_t period_ns)
{
    uint64_t periods = 0;
    for (size_t i = 0; i < actor->seen_count; i++) {
        const struct seen *seen = &actor->seen[i];
        assert_int_equal(seen->type, SKUA_EVENT_TICK);
        assert_int_equal(seen->error, 0);
        if (seen->tag == tag) {
            periods += seen->value;
            assert_int_equal(seen->tick_time, START + periods * period_ns);
            assert_true(seen->now >= seen->tick_time);
        }
    }
    return periods;
}

TEST(ticker_with_the_shortest_period_loses_no_period)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(ticker(3, 1)));
    for (uint64_t i = 0; i < 100; i++) {
        world_advance(1 + i * 999);
    }
    world_advance(RESOLUTION);
    const uint64_t periods = count_periods(actor, 3, 1);
    assert_in_range(world_now() - START - periods, 0, RESOLUTION - 1);
    for (size_t i = 0; i < actor->seen_count; i++) {
        assert_int_equal(actor->seen[i].tick_time, actor->seen[i].now);
    }
}

TEST(ticker_with_the_longest_period_ticks_once_in_all_time)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(ticker(3, SKUA_DURATION_MAX)));
    world_advance_to(firing_time(START + SKUA_DURATION_MAX) - 1);
    assert_then_saw_nothing(actor);
    world_advance(1);
    assert_then_saw(actor, tick_at(3, 1, START + SKUA_DURATION_MAX));
    actor_perform(actor, ACTS(cancels(3)));
    assert_then_saw(actor, completion(3, SKUA_E_CANCELLED));
}

/* However unevenly time passes, the ticks stand for every period once. */
TEST(tickers_account_for_every_period)
{
    static const uint64_t periods[] = {MILLISECOND, 1300 * MICROSECOND, 77 * MILLISECOND};
    uint64_t seed = seed_choose();
    world_open_virtual();
    struct actor *actor =
        actor_start(ACTS(ticker(0, periods[0]), ticker(1, periods[1]), ticker(2, periods[2])));
    for (int i = 0; i < 300; i++) {
        world_advance(1 + seed_next(&seed) % (5 * MILLISECOND));
    }
    const uint64_t passed = world_now() - START;
    world_advance(RESOLUTION);
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        assert_in_range(count_periods(actor, i, periods[i]), passed / periods[i],
                        (passed + RESOLUTION) / periods[i]);
    }
    for (size_t i = 0; i < actor->seen_count; i++) {
        assert_in_range(actor->seen[i].tag, 0, COUNT_OF(periods) - 1);
    }
}
