/* SPDX-License-Identifier: MIT */
/* Very many yields that wait for one name: when a process takes it, they are told in slices, each
 * once. */
#include "names.h"
#include "timers.h"

#define MANY 5000

static struct actor *waiter_start(void)
{
    struct actor *waiter =
        actor_start(ACTS(for_each_tag(MANY, within(HOUR, awaits_name(0, "clock")))));
    await_before_timers();
    assert_saw_nothing(waiter);
    assert_int_equal(timers_armed(), MANY);
    return waiter;
}

static void assert_all_told(const struct actor *waiter, const struct actor *holder)
{
    bool came[MANY] = {false};
    assert_int_equal(waiter->seen_count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const struct seen *seen = &waiter->seen[i];
        const struct seen expected = holder_of(seen->tag, holder);
        assert_true(seen_matches(seen, &expected));
        assert_in_range(seen->tag, 0, MANY - 1);
        assert_false(came[seen->tag]);
        came[seen->tag] = true;
    }
    assert_int_equal(timers_armed(), 0);
}

TEST(very_many_that_wait_for_a_name_are_told_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *waiter = waiter_start();
        struct actor *holder = actor_start(ACTS(takes_name("clock")));
        await_before_timers();
        assert_all_told(waiter, holder);
        assert_saw_nothing(holder);
    }
}

TEST(very_many_that_wait_for_a_name_are_told_of_one_that_is_started_with_it)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *waiter = waiter_start();
        struct actor *holder = named_start("clock", NO_ACTS);
        await_before_timers();
        assert_all_told(waiter, holder);
    }
}

/* They run when the first of them have been told. */
TEST(very_many_that_wait_for_a_name_are_told_in_slices)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *waiter = waiter_start();
    struct actor *holder = actor_start(ACTS(takes_name("clock")));
    for (uint64_t instant = world_now(); waiter->seen_count == 0;) {
        instant += MICROSECOND;
        world_set_clock(instant);
    }
    assert_in_range(timers_armed(), MANY / 2, MANY - 1);
    await_before_timers();
    assert_all_told(waiter, holder);
}

/* Or gives the name up: they were to be told of the one that took it. */
TEST(very_many_that_wait_for_a_name_are_told_also_if_its_holder_ends)
{
    enum { MOMENTS = 30 };
    FOR_ROUNDS (round, 2 * MOMENTS) {
        world_open_sim(round, SIM_NO_FAULTS);
        struct actor *waiter = waiter_start();
        struct actor *holder =
            actor_start(ACTS(takes_name("clock"), continues(round / 2),
                             round % 2 == 0 ? fails(SKUA_E_USER) : gives_up_name("clock")));
        await_before_timers();
        assert_all_told(waiter, holder);
    }
}

TEST(very_many_that_wait_for_a_name_leave_no_event_nodes_behind)
{
    uint64_t nodes = 0;
    world_open_virtual();
    for (int i = 0; i < 4; i++) {
        struct actor *waiter = waiter_start();
        struct actor *holder = actor_start(ACTS(takes_name("clock")));
        if (i % 2 == 0) {
            actor_tell(holder, ACTS(finishes(0)));
        }
        await_before_timers();
        assert_all_told(waiter, holder);
        if (i % 2 == 1) {
            actor_perform(holder, ACTS(finishes(0)));
        }
        actor_perform(waiter, ACTS(finishes(0)));
        nodes = i == 0 ? nodes_in_use() : nodes;
        assert_int_equal(nodes_in_use(), nodes);
    }
}

TEST(runtime_stops_while_very_many_that_wait_for_a_name_are_told)
{
    FOR_ROUNDS (round, 8) {
        world_open_virtual_with((skua_runtime_config){.worker_count = 2});
        struct actor *waiter = waiter_start();
        struct actor *holder = actor_new(ACTS(takes_name("clock")));
        actor_submit(holder);
        world_close();
        assert_int_equal(holder->closes, 1);
        assert_int_equal(waiter->closes, 1);
    }
}
