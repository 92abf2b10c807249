/* SPDX-License-Identifier: MIT */
/* Passing calls on: the debt goes with the call, and stays on an error. */
#include "relations.h"
#include "timers.h"

#define HOPS_MAX 14

TEST(forward_moves_the_debt)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *second = server_start(NO_ACTS);
        struct actor *first = server_start(
            ACTS(awaits(1), forwards(0, second, 2), refused(answers(0, 9), SKUA_E_LATE),
                 refused(forwards(0, second, 2), SKUA_E_LATE), checks_deadline(0, 0), finishes(0)));
        struct actor *client = actor_start(ACTS(asks(1, first, 1)));
        world_settle();
        assert_ended(first, 0);
        assert_saw_nothing(client);
        assert_saw(second, request(2));
        assert_int_equal(second->seen[0].from.bits, client->pid.bits);
        actor_perform(second, ACTS(answers(0, 3)));
        assert_saw(client, completion_of(1, 0, 3));
    }
}

TEST(forward_makes_the_end_of_the_second_server_count)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *second = server_start(NO_ACTS);
        struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 2)));
        struct actor *client = actor_start(ACTS(asks(1, first, 1)));
        world_settle();
        actor_perform(second, ACTS(fails(SKUA_E_USER)));
        assert_saw(client, peer_ended(1, SKUA_E_USER));
        actor_perform(first, ACTS(refused(answers(0, 9), SKUA_E_LATE)));
    }
}

/* Also with the first server's end in the same step, and the second's as soon as it can. */
TEST(forward_to_one_that_ends_before_it_comes_is_heard_of)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *second = server_start(ACTS(holds(), fails(SKUA_E_USER)));
    actor_await_held(second, 1);
    struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 2), finishes(0)));
    struct actor *client = actor_start(ACTS(asks(1, first, 1)));
    actor_await_end(first);
    actor_let_go(second);
    actor_await_seen(client, 1);
    assert_saw(client, peer_ended(1, SKUA_E_USER));
}

static int forward_too_much(struct turn *turn, const struct act *act)
{
    const struct actor *to = act->peer;
    return skua_forward(turn->ctx, turn->actor->seen[0].request, to->pid,
                        tracked_oversized(1000, act->arg));
}

static int forward_to_itself(struct turn *turn, const struct act *act)
{
    return skua_forward(turn->ctx, turn->actor->seen[0].request, skua_self(turn->ctx),
                        tracked_payload(0, act->arg));
}

TEST(forward_that_fails_keeps_the_call)
{
    struct tracked items[2] = {{0}, {0}};
    const bool careful[] = {false, true};
    FOR_ROWS (is_careful, careful) {
        memset(items, 0, sizeof items);
        world_open_virtual_with((skua_runtime_config){.payload_limit = 1000});
        struct actor *deaf = actor_start(NO_ACTS);
        struct actor *full = server_new(NO_ACTS);
        full->type.mailbox_limit = 1;
        actor_submit(full);
        struct actor *client = actor_start(ACTS(asks(9, full, 9)));
        world_settle();
        struct act large = does(forward_too_much, &items[0]);
        large.peer = deaf;
        struct actor *server = *is_careful ? careful_server_new(NO_ACTS) : server_new(NO_ACTS);
        actor_submit(server);
        actor_perform(client, ACTS(until(START + HOUR, asks(1, server, 1))));
        actor_perform(server, ACTS(refused(forwards(0, deaf, 0), SKUA_E_NOT_CALLABLE),
                                   refused(forwards(0, nobody(), 0), SKUA_E_NO_PROCESS),
                                   refused(forwards(0, ended_actor(), 0), SKUA_E_NO_PROCESS),
                                   refused(forwards(0, foreigner(), 0), SKUA_E_FOREIGN_PID),
                                   refused(forwards(0, full, 0), SKUA_E_MAILBOX_FULL),
                                   refused(large, SKUA_E_PAYLOAD_SIZE),
                                   refused(does(forward_to_itself, &items[1]), SKUA_E_INVALID),
                                   checks_deadline(0, START + HOUR)));
        assert_then_saw_nothing(client);
        assert_int_equal(world_info(server->pid).mailbox_length, 1);
        actor_perform(server, ACTS(answers(0, 5)));
        assert_then_saw(client, completion_of(1, 0, 5));
        assert_int_equal(world_info(server->pid).mailbox_length, 0);
        assert_drops(items, 2, 1);
    }
}

/* And a call that was kept is still given up, or its server's end heard of. */
TEST(forward_that_fails_keeps_all_that_belongs_to_the_call)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = careful_server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(asks(1, server, 1), asks(2, server, 2)));
        world_settle();
        actor_perform(server, ACTS(refused(forwards(0, nobody(), 0), SKUA_E_NO_PROCESS),
                                   refused(forwards(1, nobody(), 0), SKUA_E_NO_PROCESS)));
        actor_perform(client, ACTS(cancels(1)));
        assert_then_saw(client, failure(1, SKUA_E_CANCELLED));
        assert_saw(server, request(1), request(2), abandoned());
        actor_perform(server, ACTS(fails(SKUA_E_USER)));
        assert_then_saw(client, peer_ended(2, SKUA_E_USER));
    }
}

TEST(forward_works_fourteen_times)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *chain[HOPS_MAX + 1];
        world_open_driver(driver);
        struct actor *extra = server_start(NO_ACTS);
        chain[HOPS_MAX] = server_start(
            ACTS(awaits(1), refused(forwards(0, extra, 0), SKUA_E_FORWARDED), answers(0, 77)));
        for (size_t i = HOPS_MAX; i-- > 0;) {
            chain[i] = server_start(ACTS(awaits(1), forwards(0, chain[i + 1], i)));
        }
        struct actor *client = actor_start(ACTS(asks(1, chain[0], 1)));
        world_settle();
        assert_saw(client, completion_of(1, 0, 77));
        assert_saw_nothing(extra);
    }
}

TEST(forward_of_what_nobody_waits_for_is_late)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {0};
        world_open_driver(driver);
        struct actor *second = server_start(NO_ACTS);
        struct actor *first = server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(asks(1, first, 1)));
        world_settle();
        actor_perform(client, ACTS(cancels(1)));
        struct act late = forwards(0, second, 0);
        late.item = &item;
        actor_perform(first, ACTS(refused(late, SKUA_E_LATE), refused(answers(0, 0), SKUA_E_LATE)));
        assert_saw_nothing(second);
        assert_drops(&item, 1, 1);
        assert_int_equal(world_info(first->pid).mailbox_length, 0);
    }
}

/* Only the server that has it now hears that the caller has given up. */
TEST(forward_moves_the_news_that_nobody_waits)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *second = careful_server_start(NO_ACTS);
        struct actor *first = careful_server_start(ACTS(awaits(1), forwards(0, second, 2)));
        struct actor *client = actor_start(ACTS(asks(1, first, 1)));
        world_settle();
        actor_perform(client, ACTS(cancels(1)));
        assert_saw(first, request(1));
        assert_saw(second, request(2), abandoned());
    }
}

TEST(forward_back_to_one_that_had_it_gives_that_another_token)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *second = server_start(NO_ACTS);
        struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 2)));
        struct actor *client = actor_start(ACTS(asks(1, first, 1)));
        world_settle();
        actor_perform(second, ACTS(forwards(0, first, 3)));
        assert_saw(first, request(1), request(3));
        actor_perform(first, ACTS(refused(answers(0, 4), SKUA_E_LATE), answers(1, 5)));
        assert_saw(client, completion_of(1, 0, 5));
    }
}

TEST(forward_moves_the_place_in_the_mailbox)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *second = server_start(NO_ACTS);
        struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 2)));
        (void)actor_start(ACTS(asks(1, first, 1)));
        world_settle();
        assert_int_equal(world_info(first->pid).mailbox_length, 0);
        assert_int_equal(world_info(second->pid).mailbox_length, 1);
    }
}

TEST(forward_keeps_the_deadline)
{
    world_open_virtual();
    struct actor *second = server_start(ACTS(awaits(1), checks_deadline(0, START + SECOND)));
    struct actor *first = server_start(ACTS(awaits(1), forwards(0, second, 2)));
    struct actor *client = actor_start(ACTS(until(START + SECOND, asks(1, first, 1))));
    world_settle();
    world_advance(2 * SECOND);
    assert_saw(client, failure(1, SKUA_E_TIMEOUT));
    actor_perform(second, ACTS(refused(answers(0, 1), SKUA_E_LATE)));
}
