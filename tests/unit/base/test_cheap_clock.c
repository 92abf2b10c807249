/* SPDX-License-Identifier: MIT */
/* The cheap clock shows the system's time, whatever becomes of the counter. */
#include "base/cheap_clock.h"

#include "test.h"

/* A reading may be off by a few parts per million of a millisecond; much less than this. */
#define TOLERANCE_NS UINT64_C(100000)

static void assert_shows_system_time(struct cheap_clock *clock)
{
    const uint64_t before = monotonic_ns();
    const uint64_t now = cheap_clock_now(clock);
    const uint64_t after = monotonic_ns();
    assert_true(now + TOLERANCE_NS >= before);
    assert_true(now <= after + TOLERANCE_NS);
}

/* Until the counter has been measured several times, and is trusted. */
static void use_for_a_while(struct cheap_clock *clock)
{
    const uint64_t end = monotonic_ns() + 10 * CHEAP_CLOCK_SPAN_NS;
    while (monotonic_ns() < end || (clock->has_counter && clock->span == 0)) {
        assert_shows_system_time(clock);
    }
}

/* The same until the counter is trusted, if there is one. On a busy machine that takes a while: a
 * thread that is interrupted cannot measure it. */
static void use_until_trusted(struct cheap_clock *clock)
{
    do {
        use_for_a_while(clock);
    } while (clock->has_counter && clock->span == 0);
    assert_int_equal(clock->span > 0, clock->has_counter);
}

TEST(clock_shows_the_time_of_the_system)
{
    struct cheap_clock clock;
    cheap_clock_init(&clock);
    use_until_trusted(&clock);
}

TEST(clock_without_a_counter_asks_the_system)
{
    struct cheap_clock clock = {.has_counter = false};
    use_for_a_while(&clock);
    assert_int_equal(clock.span, 0);
}

TEST(clock_whose_counter_went_back_shows_the_time_of_the_system)
{
    struct cheap_clock clock;
    cheap_clock_init(&clock);
    use_for_a_while(&clock);
    clock.ticks += UINT64_C(1) << 40; /* it was so much further */
    assert_shows_system_time(&clock);
    use_for_a_while(&clock);
}

TEST(clock_whose_counter_lost_something_is_behind_by_less_than_its_error)
{
    for (uint32_t i = 0; i < 10; i++) {
        struct cheap_clock clock;
        cheap_clock_init(&clock);
        use_for_a_while(&clock);
        const uint64_t counted = cheap_clock_ticks() - clock.ticks;
        clock.ticks += counted < clock.span ? counted : 0; /* all that it can lose unnoticed */
        const uint64_t before = monotonic_ns();
        assert_true(cheap_clock_now(&clock) + CHEAP_CLOCK_ERROR_NS > before);
    }
}

/* The system's clock stood still meanwhile, as while the machine is suspended. */
TEST(clock_whose_counter_went_on_alone_soon_shows_the_time_of_the_system)
{
    struct cheap_clock clock;
    cheap_clock_init(&clock);
    use_for_a_while(&clock);
    clock.ticks -= UINT64_C(1) << 40;
    assert_shows_system_time(&clock);
    use_until_trusted(&clock);
}

TEST(clock_that_was_not_used_for_long_shows_the_time_of_the_system)
{
    struct cheap_clock clock;
    cheap_clock_init(&clock);
    use_for_a_while(&clock);
    clock.ticks -= UINT64_C(1) << 45; /* hours ago */
    clock.ns -= 10000 * UINT64_C(1000000000);
    assert_shows_system_time(&clock);
    use_for_a_while(&clock);
}

TEST(time_between_readings_is_never_negative)
{
    assert_int_equal(cheap_clock_since(7, 5), 2);
    assert_int_equal(cheap_clock_since(5, 5), 0);
    assert_int_equal(cheap_clock_since(5, 7), 0);
}
