/* SPDX-License-Identifier: MIT */
/* Names: waiting until a process has one, sending and calling by name. */
#include <stdio.h>

#include "effort.h"
#include "names.h"
#include "timers.h"

/* ---- waiting for a name ---- */

TEST(await_of_a_name_that_is_held_ends_at_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = named_start("clock", NO_ACTS);
        struct actor *waiter =
            actor_start(ACTS(awaits_name(1, "clock"), within(0, awaits_name(2, "clock")),
                             within(0, awaits_name(3, "nobody's"))));
        world_settle();
        assert_then_saw_in_any_order(waiter, holder_of(1, holder), holder_of(2, holder),
                                     failure(3, SKUA_E_TIMEOUT));
    }
}

TEST(await_ends_when_a_process_takes_the_name)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *waiter = actor_start(
            ACTS(awaits_name(1, "clock"), awaits_name(2, "cloc"), awaits_name(3, "clock")));
        struct actor *holder = actor_start(NO_ACTS);
        world_settle();
        assert_then_saw_nothing(waiter);
        actor_perform(holder, ACTS(takes_name("clock")));
        assert_then_saw(waiter, holder_of(1, holder), holder_of(3, holder));
        assert_int_equal(waiter->seen[0].from.bits, 0);
        actor_perform(holder, ACTS(gives_up_name("clock"), takes_name("clock")));
        assert_then_saw_nothing(waiter); /* once */
    }
}

TEST(await_ends_when_a_process_is_started_with_the_name)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *waiter =
            actor_start(ACTS(awaits_name(1, "child"), awaits_name(2, "other"), awaits(2),
                             sends_to_name("child", 0, 3), sends_to_name("other", 0, 4)));
        world_settle();
        struct actor *child = actor_new(NO_ACTS);
        struct actor *parent = actor_start(ACTS(spawns_named(child, "child")));
        struct actor *other = named_start("other", NO_ACTS);
        world_settle();
        assert_then_saw_in_any_order(waiter, holder_of(1, child), holder_of(2, other));
        assert_saw(child, message(0, 3));
        assert_saw(other, message(0, 4));
        assert_saw_nothing(parent);
    }
}

/* A name that is given up between is awaited anew; one's own name is one, too. */
TEST(await_knows_only_the_present_holder)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *holder = named_start("clock", NO_ACTS);
        struct actor *waiter = actor_start(NO_ACTS);
        actor_perform(holder, ACTS(gives_up_name("clock")));
        actor_perform(waiter, ACTS(awaits_name(1, "clock")));
        assert_then_saw_nothing(waiter);
        actor_perform(waiter, ACTS(awaits_name(2, "clock"), takes_name("clock")));
        assert_then_saw_in_any_order(waiter, holder_of(1, waiter), holder_of(2, waiter));
        actor_perform(waiter, ACTS(finishes(0)));
        struct actor *next = actor_start(ACTS(awaits_name(3, "clock")));
        world_settle();
        assert_then_saw_nothing(next);
    }
}

TEST(await_times_out_and_then_nothing_comes)
{
    world_open_virtual();
    struct actor *waiter = actor_start(
        ACTS(within(SECOND, awaits_name(1, "clock")), within(HOUR, awaits_name(2, "clock")),
             refused(within(SKUA_DURATION_MAX + 1, awaits_name(3, "clock")), SKUA_E_DURATION)));
    world_settle();
    assert_then_saw_nothing(waiter);
    world_advance(2 * SECOND);
    assert_then_saw(waiter, failure(1, SKUA_E_TIMEOUT));
    struct actor *holder = named_start("clock", NO_ACTS);
    world_settle();
    assert_then_saw(waiter, holder_of(2, holder));
    world_advance(2 * HOUR);
    assert_then_saw_nothing(waiter);
    assert_int_equal(timers_armed(), 0);
}

TEST(await_that_was_taken_back_is_over)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *waiter = actor_start(ACTS(awaits_name(1, "clock"), awaits_name(2, "clock"),
                                                awaits_name(3, "clock"), cancels(3), awaits(1)));
        world_settle();
        assert_then_saw(waiter, failure(3, SKUA_E_CANCELLED));
        actor_perform(waiter, ACTS(cancels(1)));
        assert_then_saw(waiter, failure(1, SKUA_E_CANCELLED));
        struct actor *holder = named_start("clock", NO_ACTS);
        world_settle();
        assert_then_saw(waiter, holder_of(2, holder));
        actor_perform(waiter, ACTS(cancels(1), cancels(2)));
        assert_then_saw_nothing(waiter);
    }
}

TEST(await_of_a_process_that_ends_is_forgotten)
{
    enum { ROUNDS = 100, EACH = 10 };
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *lasting = actor_start(ACTS(awaits_name(1, "clock")));
        world_settle();
        const uint64_t nodes = nodes_in_use();
        struct actor *waiter =
            actor_new(ACTS(for_each_tag(EACH, awaits_name(0, "clock")), continues(1), finishes(0)));
        for (int i = 0; i < ROUNDS; i++) {
            assert_result(actor_run(waiter), 0);
        }
        assert_in_range(nodes_in_use(), nodes, nodes + (uint64_t)4 * EACH);
        struct actor *holder = named_start("clock", NO_ACTS);
        world_settle();
        assert_saw(lasting, holder_of(1, holder));
        assert_saw_nothing(waiter);
        assert_in_range(nodes_in_use(), 0, nodes);
    }
}

TEST(await_by_many_ends_for_all)
{
    enum { MANY = 50, EACH = 20 };
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *waiters[MANY];
        world_open_driver(driver);
        for (size_t i = 0; i < MANY; i++) {
            waiters[i] = actor_start(ACTS(for_each_tag(EACH, awaits_name(0, "clock"))));
        }
        world_settle();
        struct actor *holder = actor_start(ACTS(takes_name("clock")));
        world_settle();
        for (size_t i = 0; i < MANY; i++) {
            assert_completed_each_once(waiters[i], EACH, 0);
            for (size_t n = 0; n < EACH; n++) {
                assert_int_equal(waiters[i]->seen[n].value, holder->pid.bits);
            }
        }
    }
}

TEST(await_that_is_never_answered_does_not_keep_the_runtime)
{
    world_open();
    struct actor *waiter = actor_start(ACTS(for_each_tag(100, awaits_name(0, "clock"))));
    actor_await_state(waiter, SKUA_PROCESS_BLOCKED);
    world_close();
    assert_int_equal(waiter->closes, 1);
}

/* ---- on threads: none is lost ---- */

#define RACES EFFORT(20000)

struct name_text {
    char text[24];
};

static struct name_text text_of(uint64_t number)
{
    struct name_text name;
    (void)snprintf(name.text, sizeof name.text, "race %llu", (unsigned long long)number);
    return name;
}

/* One name in each step. */
static int take_next(struct turn *turn, const struct act *act)
{
    const uint64_t number = turn->actor->counter++;
    if (number == act->number) {
        return 0;
    }
    const int error = skua_name_register(turn->ctx, text_of(number).text, NULL);
    return error != 0 ? error : (skua_continue(turn->ctx), ACT_WAITS);
}

/* Every third has a timeout that may come before the name. */
static int await_next(struct turn *turn, const struct act *act)
{
    const uint64_t number = turn->actor->counter++;
    const uint64_t timeout = number % 3 == 0 ? MICROSECOND : SKUA_FOREVER;
    if (number == act->number) {
        return 0;
    }
    const int error = skua_yield_await_name(turn->ctx, number, text_of(number).text, timeout);
    return error != 0 ? error : (skua_continue(turn->ctx), ACT_WAITS);
}

static struct act for_each_name(act_fn *function)
{
    struct act act = does(function, NULL);
    act.number = RACES;
    return act;
}

TEST(await_that_races_with_the_holder_ends_once)
{
    enum { WAITERS = 2 };
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *waiters[WAITERS];
    for (size_t i = 0; i < WAITERS; i++) {
        waiters[i] = actor_start(ACTS(for_each_name(await_next)));
    }
    struct actor *holder = actor_start(ACTS(for_each_name(take_next)));
    for (size_t i = 0; i < WAITERS; i++) {
        actor_await_seen(waiters[i], RACES);
        actor_perform(waiters[i], ACTS(continues(1)));
        assert_int_equal(waiters[i]->seen_count, RACES);
        bool *is_seen = test_alloc(RACES);
        for (size_t n = 0; n < RACES; n++) {
            const struct seen *seen = &waiters[i]->seen[n];
            assert_in_range(seen->tag, 0, RACES - 1);
            assert_false(is_seen[seen->tag]);
            is_seen[seen->tag] = true;
            assert_true(seen->error == 0 || (seen->error == SKUA_E_TIMEOUT && seen->tag % 3 == 0));
            assert_int_equal(seen->value, seen->error == 0 ? holder->pid.bits : 0);
        }
    }
}

/* ---- sending and calling ---- */

TEST(send_by_name_reaches_the_holder)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked items[3] = {{.value = 4}, {.value = 5}, {.value = 6}};
        world_open_driver(driver);
        struct actor *holder = actor_new(NO_ACTS);
        holder->type.mailbox_limit = 2;
        struct actor *sender =
            actor_start(ACTS(spawns_named(holder, "clock"),
                             refused(sends_item_to_name("none", &items[0]), SKUA_E_NO_PROCESS),
                             sends_to_name("clock", 7, 4), sends_item_to_name("clock", &items[1])));
        world_settle();
        assert_saw(holder, message(7, 4), message(0, 5));
        assert_int_equal(holder->seen[0].from.bits, sender->pid.bits);
        actor_perform(holder, ACTS(finishes(0)));
        actor_perform(sender,
                      ACTS(refused(sends_item_to_name("clock", &items[2]), SKUA_E_NO_PROCESS)));
        assert_drops(items, 3, 1);
    }
}

TEST(send_by_name_says_that_the_mailbox_is_full)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *holder = actor_new(ACTS(takes_name("clock"), holds()));
    holder->type.mailbox_limit = 1;
    actor_submit(holder);
    actor_await_held(holder, 1);
    struct actor *sender =
        actor_new(ACTS(sends_to_name("clock", 0, 1),
                       refused(sends_to_name("clock", 0, 2), SKUA_E_MAILBOX_FULL), finishes(0)));
    assert_result(actor_run(sender), 0);
    actor_let_go(holder);
    actor_await_seen(holder, 1);
    assert_saw(holder, message(0, 1));
}

TEST(call_by_name_is_answered_by_the_holder)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(ACTS(takes_name("clock"), answers_all()));
        world_settle();
        struct actor *client = actor_start(ACTS(asks_name(1, "clock", 5)));
        world_settle();
        assert_then_saw(client, completion_of(1, 0, 6));
        assert_int_equal(server->seen[0].from.bits, client->pid.bits);
    }
}

TEST(call_by_name_fails_as_a_call_does)
{
    struct tracked items[2] = {{.value = 1}, {.value = 2}};
    world_open_virtual();
    struct actor *deaf = named_start("deaf", NO_ACTS);
    struct actor *mute = server_start(ACTS(takes_name("mute")));
    world_settle();
    struct actor *client = actor_start(
        ACTS(asks_name_item(1, "nobody", &items[0]), asks_name_item(2, "deaf", &items[1]),
             within(SECOND, asks_name(3, "mute", 1)), asks_name(4, "mute", 2),
             refused(within(SKUA_DURATION_MAX + 1, asks_name(5, "mute", 1)), SKUA_E_DURATION)));
    world_settle();
    assert_then_saw_in_any_order(client, failure(1, SKUA_E_NO_PROCESS),
                                 failure(2, SKUA_E_NOT_CALLABLE));
    world_advance(2 * SECOND);
    assert_then_saw(client, failure(3, SKUA_E_TIMEOUT));
    actor_perform(mute, ACTS(fails(SKUA_E_USER)));
    assert_then_saw(client, peer_ended(4, SKUA_E_USER));
    assert_drops(items, 2, 1);
    assert_saw_nothing(deaf);
}

/* The call goes to whoever has the name when it is made, not to a later holder. */
TEST(call_by_name_stays_with_the_holder_of_that_moment)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *first = server_start(ACTS(takes_name("clock")));
        struct actor *second = server_start(NO_ACTS);
        world_settle();
        struct actor *client = actor_start(ACTS(asks_name(1, "clock", 5)));
        world_settle();
        actor_perform(first, ACTS(gives_up_name("clock")));
        actor_perform(second, ACTS(takes_name("clock")));
        actor_perform(first, ACTS(answers(0, 6)));
        assert_saw(client, completion_of(1, 0, 6));
        assert_saw_nothing(second);
    }
}
