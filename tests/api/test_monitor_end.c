/* SPDX-License-Identifier: MIT */
/* Monitors and joins: whoever asks hears once, and truly, how a process has ended. */
#include "relations.h"
#include "timers.h"

/* In each way that a process can end. */
static const struct {
    int error; /* the exit error */
    int cancel;
    bool terminates;
} ends[] = {
    {.error = 0},
    {.error = SKUA_E_USER - 3},
    {.error = SKUA_E_CANCELLED, .cancel = SKUA_E_CANCELLED},
    {.error = SKUA_E_USER - 4, .cancel = SKUA_E_USER - 4},
    {.error = SKUA_E_TERMINATED, .terminates = true},
};

static struct actor *mortal_start(void)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->type.cancel = SKUA_CANCEL_END;
    actor_submit(actor);
    return actor;
}

static void end_actor(struct actor *actor, size_t row)
{
    if (ends[row].cancel != 0) {
        assert_int_equal(world_cancel(actor->pid, ends[row].cancel), 0);
    } else if (ends[row].terminates) {
        assert_int_equal(world_terminate(actor->pid), 0);
    } else if (ends[row].error != 0) {
        actor_tell(actor, ACTS(fails(ends[row].error)));
    } else {
        actor_tell(actor, ACTS(finishes(5)));
    }
    world_settle();
}

/* A join differs only in what comes with an orderly end. */
TEST(monitor_tells_the_true_exit_error)
{
    FOR_ROWS (row, ends) {
        world_open_virtual();
        struct actor *actor = mortal_start();
        struct actor *watcher = actor_start(ACTS(monitors(1, actor), joins(2, actor)));
        world_settle();
        assert_saw_nothing(watcher);
        end_actor(actor, (size_t)(row - ends));
        const struct seen joined =
            row->error == 0 ? completion_of(2, 0, 5) : end_of(2, actor, row->error);
        assert_saw(watcher, end_of(1, actor, row->error), joined);
        assert_int_equal(actor->closes, 1);
    }
}

TEST(monitor_of_no_process_says_why)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *watcher = actor_start(ACTS(monitors(1, ended_actor()), monitors(2, nobody()),
                                                 monitors(3, foreigner()), joins(4, ended_actor()),
                                                 joins(5, nobody()), joins(6, foreigner())));
        world_settle();
        assert_saw(watcher, failure(1, SKUA_E_NO_PROCESS), failure(2, SKUA_E_NO_PROCESS),
                   failure(3, SKUA_E_FOREIGN_PID), failure(4, SKUA_E_NO_PROCESS),
                   failure(5, SKUA_E_NO_PROCESS), failure(6, SKUA_E_FOREIGN_PID));
    }
}

static int watch_itself(struct turn *turn, const struct act *act)
{
    const skua_pid self = skua_self(turn->ctx);
    return act->number == 0 ? skua_yield_monitor(turn->ctx, 1, self, SKUA_FOREVER)
                            : skua_yield_join(turn->ctx, 1, self, SKUA_FOREVER);
}

TEST(monitor_with_wrong_arguments_is_none)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *other = actor_start(NO_ACTS);
        struct act joins_itself = does(watch_itself, NULL);
        joins_itself.number = 1;
        struct actor *watcher = actor_new(
            ACTS(refused(does(watch_itself, NULL), SKUA_E_INVALID),
                 refused(joins_itself, SKUA_E_INVALID),
                 refused(within(SKUA_DURATION_MAX + 1, monitors(1, other)), SKUA_E_DURATION),
                 finishes(0), refused(monitors(1, other), SKUA_E_DONE)));
        watcher->in_init = ACTS(refused(monitors(1, other), SKUA_E_CONTEXT),
                                refused(joins(1, other), SKUA_E_CONTEXT));
        watcher->in_close = watcher->in_init;
        assert_result(actor_run(watcher), 0);
        assert_saw_nothing(watcher);
        assert_int_equal(skua_yield_monitor(NULL, 1, other->pid, 0), SKUA_E_INVALID);
        assert_int_equal(skua_yield_join(NULL, 1, other->pid, 0), SKUA_E_INVALID);
    }
}

TEST(monitor_times_out_and_then_nothing_comes)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    struct actor *watcher =
        actor_start(ACTS(within(SECOND, monitors(1, actor)), within(SECOND, joins(2, actor)),
                         within(0, monitors(3, actor))));
    world_settle();
    assert_then_saw(watcher, failure(3, SKUA_E_TIMEOUT));
    world_advance(2 * SECOND);
    assert_then_saw_in_any_order(watcher, failure(1, SKUA_E_TIMEOUT), failure(2, SKUA_E_TIMEOUT));
    actor_perform(actor, ACTS(fails(SKUA_E_USER)));
    assert_then_saw_nothing(watcher);
}

TEST(monitor_that_was_taken_back_is_over)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *actor = actor_start(NO_ACTS);
        struct actor *watcher =
            actor_start(ACTS(monitors(1, actor), joins(1, actor), monitors(2, actor)));
        world_settle();
        actor_perform(watcher, ACTS(cancels(1)));
        assert_then_saw(watcher, failure(1, SKUA_E_CANCELLED), failure(1, SKUA_E_CANCELLED));
        actor_perform(actor, ACTS(fails(SKUA_E_USER)));
        assert_then_saw(watcher, end_of(2, actor, SKUA_E_USER));
        actor_perform(watcher, ACTS(cancels(1), cancels(2)));
        assert_then_saw_nothing(watcher);
    }
}

/* Ten thousand monitors that are taken back leave next to nothing behind. */
TEST(monitors_that_were_taken_back_do_not_pile_up)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    struct actor *watcher = actor_start(ACTS(monitors(0, actor), cancels(0), awaits(1)));
    world_settle();
    const uint64_t nodes = nodes_in_use();
    for (int i = 0; i < 100; i++) {
        actor_perform(watcher, ACTS(for_each_tag(100, monitors(0, actor)),
                                    for_each_tag(100, cancels(0)), awaits(100)));
    }
    world_settle();
    assert_in_range(nodes_in_use(), 0, nodes + 210);
}

TEST(monitor_of_one_that_is_watched_already_is_another)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *actor = actor_start(NO_ACTS);
        struct actor *watcher =
            actor_start(ACTS(for_each_tag(50, monitors(0, actor)), monitors(7, actor)));
        world_settle();
        actor_perform(actor, ACTS(fails(SKUA_E_USER)));
        assert_int_equal(watcher->seen_count, 51);
    }
}

TEST(monitor_whose_watcher_ends_first_is_forgotten)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *actor = actor_start(NO_ACTS);
        const uint64_t nodes = (world_settle(), nodes_in_use());
        struct actor *watcher = actor_start(
            ACTS(for_each_tag(50, monitors(0, actor)), for_each_tag(50, joins(0, actor))));
        world_settle();
        actor_perform(watcher, ACTS(finishes(0)));
        actor_perform(actor, ACTS(finishes(0)));
        assert_in_range(nodes_in_use(), 0, nodes);
    }
}

/* ---- at spawn ---- */

TEST(monitor_at_spawn_hears_even_of_one_that_ends_at_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(ACTS(fails(SKUA_E_USER)));
        struct actor *parent = actor_start(
            ACTS(spawns_with(child, (skua_spawn_options){.monitor = true, .monitor_tag = 9})));
        world_settle();
        assert_saw(parent, end_of(9, child, SKUA_E_USER));
    }
}

TEST(monitor_at_spawn_can_be_taken_back)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(
            ACTS(spawns_with(child, (skua_spawn_options){.monitor = true, .monitor_tag = 9}),
                 continues(1), cancels(9)));
        world_settle();
        assert_then_saw(parent, failure(9, SKUA_E_CANCELLED));
        actor_perform(child, ACTS(fails(SKUA_E_USER)));
        assert_then_saw_nothing(parent);
    }
}

static const skua_spawn_options all_relations = {.monitor = true, .link = true, .link_tag = 3};

TEST(spawn_that_is_refused_undoes_its_relations)
{
    FOR_ROUNDS (driver, DRIVERS) {
        skua_link_id id = {1};
        skua_spawn_options options = all_relations;
        options.link_id = &id;
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        child->init_returns = SKUA_E_USER;
        struct actor *parent = actor_start(NO_ACTS);
        actor_perform(parent, ACTS(continues(1))); /* it has begun */
        const uint64_t nodes = nodes_in_use();
        for (int i = 0; i < 10; i++) {
            actor_perform(parent, ACTS(refused(spawns_with(child, options), SKUA_E_USER)));
            assert_int_equal(id.bits, 0);
        }
        assert_saw_nothing(parent);
        assert_in_range(nodes_in_use(), nodes, nodes + 1); /* its annex */
        actor_perform(parent, ACTS(finishes(0)));
        assert_ended(parent, 0);
    }
}

TEST(relations_at_spawn_belong_into_steps)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_new(ACTS(finishes(0)));
        parent->in_init =
            ACTS(refused(spawns_with(child, (skua_spawn_options){.monitor = true}), SKUA_E_CONTEXT),
                 refused(spawns_with(child, (skua_spawn_options){.link = true}), SKUA_E_CONTEXT));
        parent->in_close = parent->in_init;
        assert_result(actor_run(parent), 0);
        skua_payload input = api_world_payload(child);
        skua_spawn_options options = {
            .type = &child->type, .input = &input, .input_count = 1, .monitor = true};
        assert_int_equal(skua_process_submit_with(world_runtime(), &options, NULL), SKUA_E_CONTEXT);
        input = api_world_payload(child);
        options.monitor = false;
        options.link = true;
        assert_int_equal(skua_process_run_with(world_runtime(), &options, NULL), SKUA_E_CONTEXT);
    }
}

/* ---- results ---- */

TEST(join_gives_an_inline_result_to_all)
{
    enum { MANY = 20 };
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *watchers[MANY];
        world_open_driver(driver);
        struct actor *actor = actor_start(NO_ACTS);
        for (size_t i = 0; i < MANY; i++) {
            watchers[i] = actor_start(ACTS(joins(i, actor)));
        }
        world_settle();
        actor_perform(actor, ACTS(finishes(42)));
        for (size_t i = 0; i < MANY; i++) {
            assert_saw(watchers[i], completion_of(i, 0, 42));
        }
    }
}

TEST(join_gives_a_result_that_owns_memory_to_one)
{
    test_of_steps("a task drops a payload when it receives the next event");
    enum { MANY = 20 };
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {.value = 42};
        struct actor *watchers[MANY];
        unsigned got = 0;
        world_open_driver(driver);
        struct actor *actor = actor_start(NO_ACTS);
        for (size_t i = 0; i < MANY; i++) {
            watchers[i] = actor_start(ACTS(i % 2 == 0 ? joins(i, actor) : monitors(i, actor)));
        }
        world_settle();
        actor_perform(actor, ACTS(finishes_with(0, &item)));
        for (size_t i = 0; i < MANY; i++) {
            assert_int_equal(watchers[i]->seen_count, 1);
            assert_int_equal(watchers[i]->seen[0].error, 0);
            got += watchers[i]->seen[0].value == 42;
        }
        assert_int_equal(got, 1);
        assert_drops(&item, 1, 1);
    }
}

/* ---- order, and what holds when one hears of the end ---- */

static int check_end(struct turn *turn, const struct act *act)
{
    const struct actor *ended = act->peer;
    if (ended->closes != 1) {
        actor_surprise(turn->actor, "close has not returned");
    }
    return skua_send(turn->ctx, ended->pid, skua_payload_u64(0, 0));
}

TEST(monitor_tells_of_the_end_after_close_and_after_all_messages)
{
    FOR_ROUNDS (seed, 100) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = seed % 2 * 400000});
        struct actor *actor = actor_start(NO_ACTS);
        struct act checks = does(check_end, NULL);
        checks.peer = actor;
        struct actor *watcher =
            actor_start(ACTS(monitors(1, actor), awaits(5), refused(checks, SKUA_E_NO_PROCESS)));
        world_settle();
        actor->in_close = ACTS(sends(watcher, 0, 4));
        actor_perform(actor, ACTS(sends(watcher, 0, 1), continues(1), sends(watcher, 0, 2),
                                  sends(watcher, 0, 3), finishes(0)));
        assert_saw(watcher, message(0, 1), message(0, 2), message(0, 3), message(0, 4),
                   end_of(1, actor, 0));
    }
}

TEST(monitor_tells_though_the_mailbox_is_full)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *actor = actor_start(NO_ACTS);
    struct actor *watcher = actor_new(
        ACTS(monitors(1, actor), links(actor, SKUA_LINK_TELL, 2, NULL), continues(1), holds()));
    watcher->type.mailbox_limit = 1;
    actor_submit(watcher);
    actor_await_held(watcher, 1);
    actor_tell(actor, ACTS(sends(watcher, 0, 1), refused(sends(watcher, 0, 2), SKUA_E_MAILBOX_FULL),
                           fails(SKUA_E_USER)));
    actor_await_end(actor);
    actor_let_go(watcher);
    actor_await_seen(watcher, 3);
    assert_saw(watcher, message(0, 1), end_of(1, actor, SKUA_E_USER),
               exit_of(2, actor, SKUA_E_USER));
}

/* Monitors that come while the process ends: each has one completion, with the true error or that
 * there is no such process. */
TEST(monitors_that_race_with_the_end_complete_once)
{
    enum { WATCHERS = 6, MONITORS = 100 };
    FOR_ROUNDS (round, 30) {
        struct actor *watchers[WATCHERS];
        world_open();
        struct actor *actor = actor_start(ACTS(continues(10 * round), fails(SKUA_E_USER)));
        for (size_t i = 0; i < WATCHERS; i++) {
            watchers[i] =
                actor_start(ACTS(for_each_tag(MONITORS, monitors(0, actor)), awaits(MONITORS)));
        }
        for (size_t i = 0; i < WATCHERS; i++) {
            actor_await_seen(watchers[i], MONITORS);
        }
        world_close();
        for (size_t i = 0; i < WATCHERS; i++) {
            assert_int_equal(watchers[i]->seen_count, MONITORS + 1);
            for (size_t n = 0; n < MONITORS; n++) {
                const struct seen *seen = &watchers[i]->seen[n];
                assert_true(seen->error == SKUA_E_USER || seen->error == SKUA_E_NO_PROCESS);
                assert_int_equal(seen->value, seen->error == SKUA_E_USER ? actor->pid.bits : 0);
            }
        }
    }
}
