/* SPDX-License-Identifier: MIT */
/* A join at spawn: the result of a child is never lost, however soon it ends. */
#include "effort.h"
#include "relations.h"
#include "timers.h"

static skua_spawn_options joining(uint64_t tag)
{
    return (skua_spawn_options){.join = true, .join_tag = tag};
}

TEST(join_at_spawn_gets_the_result_of_one_that_ends_at_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(ACTS(finishes(42)));
        struct actor *parent = actor_start(ACTS(spawns_with(child, joining(9))));
        world_settle();
        assert_saw(parent, completion_of(9, 0, 42));
    }
}

TEST(join_at_spawn_tells_how_a_child_has_failed)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *failing = actor_new(ACTS(fails(SKUA_E_USER)));
        struct actor *ended = actor_new(NO_ACTS);
        struct actor *parent =
            actor_start(ACTS(spawns_with(failing, joining(1)), spawns_with(ended, joining(2))));
        world_settle();
        assert_then_saw(parent, end_of(1, failing, SKUA_E_USER));
        assert_int_equal(world_terminate(ended->pid), 0);
        world_settle();
        assert_then_saw(parent, end_of(2, ended, SKUA_E_TERMINATED));
    }
}

TEST(join_at_spawn_gets_a_result_that_owns_memory)
{
    test_of_steps("a task drops a payload when it receives the next event");
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {.value = 42};
        world_open_driver(driver);
        struct actor *child = actor_new(ACTS(finishes_with(3, &item)));
        struct actor *parent = actor_start(ACTS(spawns_with(child, joining(9))));
        world_settle();
        assert_saw(parent, completion_of(9, 3, 42));
        assert_drops(&item, 1, 1);
        world_close();
    }
}

/* A result that nobody can get any more is dropped. */
TEST(join_at_spawn_whose_parent_has_ended_drops_the_result)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {.value = 42};
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent =
            actor_start(ACTS(spawns_with(child, joining(9)), continues(1), finishes(0)));
        world_settle();
        assert_ended(parent, 0);
        actor_perform(child, ACTS(finishes_with(3, &item)));
        assert_drops(&item, 1, 1);
        world_close();
    }
}

TEST(join_at_spawn_goes_with_a_monitor_and_a_link)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {.value = 42};
        world_open_driver(driver);
        skua_spawn_options options = joining(1);
        options.monitor = true;
        options.monitor_tag = 2;
        options.link = true;
        options.link_flags = SKUA_LINK_TELL;
        options.link_tag = 3;
        struct actor *child = actor_new(ACTS(finishes_with(7, &item)));
        struct actor *failing = actor_new(ACTS(fails(SKUA_E_USER)));
        struct actor *parent = actor_start(ACTS(spawns_with(child, options)));
        world_settle();
        assert_then_saw_in_any_order(parent, completion_of(1, 7, 42), end_of(2, child, 0),
                                     exit_of(3, NULL, 0));
        actor_perform(parent, ACTS(spawns_with(failing, options)));
        assert_then_saw_in_any_order(parent, end_of(1, failing, SKUA_E_USER),
                                     end_of(2, failing, SKUA_E_USER),
                                     exit_of(3, failing, SKUA_E_USER));
        assert_drops(&item, 1, 1);
        world_close();
    }
}

TEST(join_at_spawn_can_be_taken_back)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {.value = 42};
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(ACTS(spawns_with(child, joining(9)), cancels(9)));
        world_settle();
        assert_then_saw(parent, failure(9, SKUA_E_CANCELLED));
        actor_perform(child, ACTS(finishes_with(3, &item)));
        assert_then_saw_nothing(parent);
        assert_drops(&item, 1, 1);
        world_close();
    }
}

TEST(join_at_spawn_of_one_whose_init_fails_is_none)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        child->init_returns = SKUA_E_USER;
        struct actor *parent = actor_start(ACTS(continues(1)));
        const uint64_t nodes = nodes_in_use();
        for (int i = 0; i < 10; i++) {
            actor_perform(parent, ACTS(refused(spawns_with(child, joining(9)), SKUA_E_USER)));
        }
        assert_saw_nothing(parent);
        assert_in_range(nodes_in_use(), nodes, nodes + 1); /* its annex */
    }
}

TEST(join_at_spawn_belongs_into_steps)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_new(ACTS(finishes(0)));
        child->init_returns = SKUA_E_USER; /* but it does not come to that */
        parent->in_init = ACTS(refused(spawns_with(child, joining(1)), SKUA_E_CONTEXT));
        parent->in_close = parent->in_init;
        assert_result(actor_run(parent), 0);
        skua_payload input = api_world_payload(child);
        const skua_spawn_options options = {
            .type = &child->type, .input = &input, .input_count = 1, .join = true};
        assert_int_equal(skua_process_submit_with(world_runtime(), &options, NULL), SKUA_E_CONTEXT);
    }
}

/* On threads, where the child may end before its parent's step does. */
TEST(join_at_spawn_loses_no_result_on_threads)
{
    enum { CHILDREN = 100 };
    FOR_ROUNDS (round, EFFORT(50)) {
        struct tracked items[CHILDREN] = {0};
        struct act acts[CHILDREN + 1];
        world_open();
        for (size_t i = 0; i < CHILDREN; i++) {
            items[i].value = 1000 + i;
            acts[i] = spawns_with(actor_new(ACTS(finishes_with(0, &items[i]))), joining(i));
        }
        acts[CHILDREN] = awaits(CHILDREN);
        struct actor *parent = actor_start(script_copy(acts, CHILDREN + 1));
        actor_await_seen(parent, CHILDREN);
        actor_perform(parent, ACTS(continues(1)));
        assert_completed_each_once(parent, CHILDREN, 0);
        for (size_t i = 0; i < CHILDREN; i++) {
            assert_int_equal(parent->seen[i].value, 1000 + parent->seen[i].tag);
        }
        world_close();
        assert_drops(items, CHILDREN, 1);
    }
}
