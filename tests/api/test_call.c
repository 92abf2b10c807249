/* SPDX-License-Identifier: MIT */
/* Calls between processes: an answer reaches its caller, once, and whoever cannot have one is told
 * why. (Ends of callers and servers are in test_call_end.c.) */
#include "relations.h"
#include "timers.h"

/* ---- answers ---- */

TEST(call_is_answered_in_the_same_step)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(ACTS(expects(request(1)), answers(0, 2)));
        struct actor *client = actor_start(ACTS(asks(7, server, 1)));
        world_settle();
        assert_saw(client, completion_of(7, 0, 2));
        assert_saw(server, request(1));
        assert_int_equal(server->seen[0].from.bits, client->pid.bits);
    }
}

TEST(call_is_answered_in_a_later_step)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(asks(7, server, 1), asks(8, server, 2)));
        world_settle();
        assert_saw_nothing(client);
        actor_perform(server, ACTS(answers(1, 20), continues(3)));
        assert_then_saw(client, completion_of(8, 0, 20));
        actor_perform(server, ACTS(answers(0, 10)));
        assert_then_saw(client, completion_of(7, 0, 10));
    }
}

TEST(call_is_answered_from_close)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_new(ACTS(awaits(2), finishes(0)));
        server->in_close = ACTS(checks_deadline(0, SKUA_FOREVER), answers(0, 5),
                                refused(answers(0, 6), SKUA_E_LATE), checks_deadline(0, 0));
        actor_submit(server);
        struct actor *client = actor_start(ACTS(asks(1, server, 1), asks(2, server, 2)));
        world_settle();
        assert_saw(client, completion_of(1, 0, 5), peer_ended(2, 0));
    }
}

TEST(call_is_answered_with_an_error)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server =
            server_start(ACTS(awaits(2), answers_error(0, SKUA_E_USER),
                              refused(answers_error(1, 1), SKUA_E_INVALID), answers(1, 3)));
        struct actor *client = actor_start(ACTS(asks(1, server, 0), asks(2, server, 0)));
        world_settle();
        assert_saw(client, failure(1, SKUA_E_USER), completion_of(2, 0, 3));
    }
}

TEST(call_brings_payloads_that_are_dropped_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked question = {.value = 5};
        struct tracked answer = {.value = 6};
        world_open_driver(driver);
        struct actor *server = server_start(ACTS(expects(request(5)), answers_item(0, &answer)));
        struct actor *client =
            actor_start(ACTS(asks_item(1, server, &question), expects(completion_of(1, 0, 6))));
        world_settle();
        assert_saw(client, completion_of(1, 0, 6));
        world_close();
        assert_drops(&question, 1, 1);
        assert_drops(&answer, 1, 1);
    }
}

/* The payload of the second answer is dropped, too. */
TEST(call_is_answered_only_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked answer = {.value = 6};
        world_open_driver(driver);
        struct actor *server =
            server_start(ACTS(awaits(1), answers(0, 1), refused(answers(0, 2), SKUA_E_LATE),
                              refused(answers_item(0, &answer), SKUA_E_LATE)));
        struct actor *client = actor_start(ACTS(asks(1, server, 0)));
        world_settle();
        actor_perform(server, ACTS(refused(answers(0, 3), SKUA_E_LATE), checks_deadline(0, 0)));
        assert_saw(client, completion_of(1, 0, 1));
        assert_drops(&answer, 1, 1);
    }
}

TEST(call_is_answered_only_by_the_process_that_was_called)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(NO_ACTS);
        struct actor *thief = server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(asks(1, server, 0)));
        world_settle();
        const skua_request stolen = server->seen[0].request;
        const skua_request none = {0};
        actor_perform(thief, ACTS(refused(answers_token(&stolen), SKUA_E_LATE),
                                  refused(answers_token(&none), SKUA_E_LATE)));
        actor_perform(client, ACTS(refused(answers_token(&stolen), SKUA_E_LATE)));
        assert_saw_nothing(client);
        actor_perform(server, ACTS(refused(answers_token(&none), SKUA_E_LATE), answers(0, 1)));
        assert_saw(client, completion_of(1, 0, 1));
    }
}

/* Tokens of a thousand requests are of no use afterwards, though their nodes are used again. */
TEST(call_that_was_answered_leaves_no_valid_token)
{
    enum { MANY = 1000 };
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = server_start(ACTS(answers_all()));
    struct actor *client = actor_start(NO_ACTS);
    for (uint64_t i = 0; i < MANY; i++) {
        actor_perform(client, ACTS(asks(i, server, i), expects(completion_of(i, 0, i + 1))));
    }
    struct actor *second = server_new(NO_ACTS);
    second->script = ACTS(awaits(1));
    actor_submit(second);
    actor_perform(client, ACTS(asks(0, second, 5)));
    for (uint64_t i = 0; i < MANY; i++) {
        const skua_request old = server->seen[i].request;
        actor_perform(second, ACTS(refused(answers_token(&old), SKUA_E_LATE)));
    }
    actor_perform(second, ACTS(answers(0, 1)));
    assert_int_equal(client->seen_count, MANY + 1);
}

/* Calls and messages of one process to another come in the order in which they were made. */
TEST(call_keeps_its_place_among_messages)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(NO_ACTS);
        struct actor *client = actor_start(
            ACTS(asks(1, server, 1), sends(server, 0, 2), asks(2, server, 3), asks(3, server, 4)));
        world_settle();
        /* The step's sends happen in it, its yields afterwards. */
        assert_saw(server, message(0, 2), request(1), request(3), request(4));
        actor_perform(server, ACTS(sends(client, 0, 5), answers(0, 6), sends(client, 0, 7)));
        assert_saw(client, message(0, 5), completion_of(1, 0, 6), message(0, 7));
    }
}

TEST(call_works_among_many_at_once)
{
    enum { CLIENTS = 20, CALLS = 200 };
    struct actor *clients[CLIENTS];
    world_open();
    struct actor *server = server_start(ACTS(answers_all()));
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] =
            actor_start(ACTS(for_each_tag(CALLS, asks(0, server, 0)), awaits(CALLS), finishes(0)));
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        actor_await_end(clients[i]);
        assert_completed_each_once(clients[i], CALLS, 0);
    }
}

/* ---- refusals ---- */

TEST(call_of_no_process_says_why)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {0};
        world_open_driver(driver);
        struct actor *deaf = actor_start(NO_ACTS);
        struct actor *client =
            actor_start(ACTS(asks(1, ended_actor(), 0), asks(2, nobody(), 0),
                             asks(3, foreigner(), 0), asks(4, deaf, 0), asks_item(5, deaf, &item)));
        world_settle();
        assert_saw(client, failure(1, SKUA_E_NO_PROCESS), failure(2, SKUA_E_NO_PROCESS),
                   failure(3, SKUA_E_FOREIGN_PID), failure(4, SKUA_E_NOT_CALLABLE),
                   failure(5, SKUA_E_NOT_CALLABLE));
        assert_saw_nothing(deaf);
        assert_drops(&item, 1, 1);
    }
}

static int call_itself(struct turn *turn, const struct act *act)
{
    return skua_yield_call(turn->ctx, 1, skua_self(turn->ctx), tracked_payload(0, act->arg),
                           SKUA_FOREVER);
}

static int call_too_long(struct turn *turn, const struct act *act)
{
    const struct actor *to = act->peer;
    return skua_yield_call(turn->ctx, 1, to->pid, tracked_payload(0, act->arg),
                           SKUA_DURATION_MAX + 1);
}

static int call_too_large(struct turn *turn, const struct act *act)
{
    const struct actor *to = act->peer;
    return skua_yield_call(turn->ctx, 1, to->pid, tracked_oversized(1000, act->arg), SKUA_FOREVER);
}

static int call_without_payload(struct turn *turn, const struct act *act)
{
    const struct actor *to = act->peer;
    return skua_yield_call_from(turn->ctx, 1, to->pid, NULL, SKUA_FOREVER);
}

static struct act does_with(act_fn *function, struct actor *peer, void *arg)
{
    struct act act = does(function, arg);
    act.peer = peer;
    return act;
}

TEST(call_with_wrong_arguments_is_none)
{
    struct tracked items[3] = {{0}, {0}, {0}};
    world_open_virtual_with((skua_runtime_config){.payload_limit = 1000});
    struct actor *server = server_start(NO_ACTS);
    struct actor *client = server_start(
        ACTS(refused(does(call_itself, &items[0]), SKUA_E_INVALID),
             refused(does_with(call_too_long, server, &items[1]), SKUA_E_DURATION),
             refused(does_with(call_too_large, server, &items[2]), SKUA_E_PAYLOAD_SIZE),
             refused(does_with(call_without_payload, server, NULL), SKUA_E_INVALID)));
    world_settle();
    assert_saw_nothing(client);
    assert_saw_nothing(server);
    assert_drops(items, 3, 1);
}

/* ---- timeouts ---- */

TEST(call_times_out_and_the_answer_is_late)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked late = {0};
        world_open_driver(driver);
        struct actor *server = server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(within(SECOND, asks(1, server, 0))));
        world_settle();
        assert_saw(server, request(0));
        if (driver == 1) { /* the simulator has gone to the deadline by itself */
            assert_saw_nothing(client);
        }
        world_advance(2 * SECOND);
        assert_saw(client, failure(1, SKUA_E_TIMEOUT));
        actor_perform(server, ACTS(refused(answers_item(0, &late), SKUA_E_LATE)));
        assert_saw(client, failure(1, SKUA_E_TIMEOUT));
        assert_drops(&late, 1, 1);
    }
}

TEST(call_that_is_answered_in_time_does_not_time_out)
{
    world_open_virtual();
    struct actor *server = server_start(NO_ACTS);
    struct actor *client = actor_start(ACTS(within(SECOND, asks(1, server, 0))));
    world_settle();
    actor_perform(server, ACTS(checks_deadline(0, START + SECOND), answers(0, 4)));
    world_advance(2 * SECOND);
    assert_saw(client, completion_of(1, 0, 4));
    assert_int_equal(timers_armed(), 0);
}

TEST(call_without_time_is_over_at_once_and_never_handed_over)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = server_start(NO_ACTS);
    struct actor *client = actor_start(ACTS(within(0, asks(1, server, 0))));
    world_settle();
    assert_saw(client, failure(1, SKUA_E_TIMEOUT));
    assert_saw_nothing(server);
}

/* ---- the place in the mailbox ---- */

TEST(call_keeps_its_place_in_the_mailbox_until_it_is_answered)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_new(NO_ACTS);
        server->type.mailbox_limit = 1;
        actor_submit(server);
        struct actor *client = actor_start(NO_ACTS);
        actor_perform(client, ACTS(asks(1, server, 1)));
        assert_saw(server, request(1));
        actor_perform(client,
                      ACTS(asks(2, server, 2), refused(sends(server, 0, 0), SKUA_E_MAILBOX_FULL)));
        assert_then_saw(client, failure(2, SKUA_E_MAILBOX_FULL));
        assert_saw(server, request(1));
    }
}

/* A world whose server is told by a second process, as it cannot get messages. */
TEST(call_gives_its_place_back_when_it_is_answered)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_new(
            ACTS(awaits(1), continues(1), answers(0, 1), awaits(1), answers(1, 2), awaits(1)));
        server->type.mailbox_limit = 1;
        actor_submit(server);
        struct actor *client =
            actor_start(ACTS(asks(1, server, 1), expects(completion_of(1, 0, 1)),
                             asks(2, server, 2), expects(completion_of(2, 0, 2))));
        world_settle();
        actor_perform(client, ACTS(sends(server, 0, 3)));
        assert_saw(server, request(1), request(2), message(0, 3));
    }
}

/* In whatever way the first one ends: the place is free for a message afterwards. */
TEST(call_gives_its_place_back_when_the_caller_has_given_up)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = careful_server_new(NO_ACTS);
    server->type.mailbox_limit = 1;
    actor_submit(server);
    struct actor *client = actor_start(NO_ACTS);
    actor_perform(client, ACTS(asks(1, server, 1)));
    actor_perform(client, ACTS(cancels(1)));
    assert_then_saw(client, failure(1, SKUA_E_CANCELLED));
    actor_perform(client, ACTS(within(SECOND, asks(2, server, 2)), awaits(1)));
    assert_then_saw(client, failure(2, SKUA_E_TIMEOUT));
    actor_perform(client, ACTS(asks(3, server, 3), cancels(3))); /* not delivered */
    assert_then_saw(client, failure(3, SKUA_E_CANCELLED));
    actor_perform(client, ACTS(sends(server, 0, 4)));
    assert_saw(server, request(1), abandoned(), request(2), abandoned(), message(0, 4));
}

TEST(call_is_answered_though_the_mailbox_of_the_caller_is_full)
{
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct actor *server = server_start(NO_ACTS);
    struct actor *client = actor_new(ACTS(asks(1, server, 0), sleeps(2, 0), awaits(1), holds()));
    client->type.mailbox_limit = 1;
    actor_submit(client);
    actor_await_held(client, 1);
    actor_await_seen(server, 1);
    actor_perform(server, ACTS(sends(client, 0, 1),
                               refused(sends(client, 0, 2), SKUA_E_MAILBOX_FULL), answers(0, 3)));
    actor_let_go(client);
    actor_await_seen(client, 3);
    assert_saw(client, completion(2, 0), message(0, 1), completion_of(1, 0, 3));
}

/* ---- contexts ---- */

TEST(call_and_answer_belong_into_steps)
{
    struct tracked items[4] = {{0}, {0}, {0}, {0}};
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = server_start(NO_ACTS);
    struct actor *client = server_new(ACTS(awaits(1), finishes(0)));
    client->in_init = ACTS(refused(asks_item(1, server, &items[0]), SKUA_E_CONTEXT),
                           refused(answers(0, 0), SKUA_E_LATE),
                           refused(asks_for(0, 1, server, 0), SKUA_E_CONTEXT),
                           refused(forwards(0, server, 0), SKUA_E_CONTEXT));
    client->in_close = ACTS(refused(asks_item(1, server, &items[1]), SKUA_E_CONTEXT),
                            refused(asks_for(0, 1, server, 0), SKUA_E_CONTEXT),
                            refused(forwards(0, server, 0), SKUA_E_CONTEXT), answers(0, 5));
    actor_submit(client);
    struct actor *caller = actor_start(ACTS(asks(9, client, 0)));
    world_settle();
    assert_saw(caller, completion_of(9, 0, 5));
    /* Outside. */
    skua_context *const none = NULL;
    assert_int_equal(skua_yield_call(none, 1, server->pid, tracked_payload(0, &items[2]), 0),
                     SKUA_E_INVALID);
    assert_int_equal(skua_reply(none, (skua_request){0}, 0, tracked_payload(0, &items[3])),
                     SKUA_E_INVALID);
    assert_drops(items, 4, 1);
}

TEST(call_after_done_is_refused_and_before_it_is_carried_out)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = server_start(NO_ACTS);
    struct actor *client =
        actor_new(ACTS(asks(1, server, 1), finishes(0), refused(asks(2, server, 2), SKUA_E_DONE)));
    assert_result(actor_run(client), 0);
    world_settle();
    /* Its caller has ended before it could be handed over. */
    assert_saw_nothing(server);
}

TEST(call_of_a_failing_step_is_dropped)
{
    struct tracked item = {0};
    world_open_sim(1, SIM_NO_FAULTS);
    struct actor *server = server_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    struct actor *client = actor_new(ACTS(asks_item(1, server, &item), fails(SKUA_E_USER)));
    assert_failed(actor_run(client), SKUA_E_USER);
    world_settle();
    assert_saw_nothing(server);
    assert_drops(&item, 1, 1);
    assert_int_equal(nodes_in_use(), nodes);
}

/* ---- the books ---- */

TEST(call_leaves_no_event_nodes_behind)
{
    world_open_virtual();
    struct actor *server = careful_server_start(ACTS(awaits(1), answers(0, 1)));
    struct actor *client = actor_start(ACTS(asks(1, server, 1))); /* now there are annexes */
    world_settle();
    const uint64_t nodes = nodes_in_use();
    for (uint64_t i = 1; i < 20; i++) {
        actor_perform(client, ACTS(asks(1, server, 1), within(SECOND, asks(2, server, 2))));
        actor_perform(server, ACTS(answers(3 * i - 2, 0), answers(3 * i - 1, 0)));
        actor_perform(client, ACTS(asks(3, server, 3)));
        actor_perform(client, ACTS(cancels(3)));
        assert_int_equal(nodes_in_use(), nodes);
    }
    assert_int_equal(world_stats().calls, 1 + 19 * 3);
}
