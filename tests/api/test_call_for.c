/* SPDX-License-Identifier: MIT */
/* Calls on behalf of others: they have no more time than the one that they are made for, and end
 * with it. */
#include "relations.h"
#include "timers.h"

#define CHAIN 5

TEST(call_for_a_request_is_a_call)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *leaf = server_start(ACTS(answers_all()));
        struct actor *middle = server_start(ACTS(awaits(1), asks_for(0, 5, leaf, 10),
                                                 expects(completion_of(5, 0, 11)), answers(0, 12)));
        struct actor *client = actor_start(ACTS(asks(1, middle, 1)));
        world_settle();
        assert_saw(client, completion_of(1, 0, 12));
    }
}

TEST(call_for_a_request_that_is_not_owed_is_late)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {0};
        world_open_driver(driver);
        struct actor *leaf = server_start(NO_ACTS);
        struct actor *middle = server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(asks(1, middle, 1), asks(2, middle, 2)));
        world_settle();
        actor_perform(client, ACTS(cancels(2)));
        struct act late = asks_for(0, 5, leaf, 10);
        late.item = &item;
        actor_perform(middle,
                      ACTS(answers(0, 0), refused(late, SKUA_E_LATE),
                           refused(asks_for(7, 5, leaf, 0), SKUA_E_LATE),   /* there is none */
                           refused(asks_for(1, 5, leaf, 0), SKUA_E_LATE))); /* nobody waits */
        world_settle();
        assert_saw(middle, request(1), request(2));
        assert_saw_nothing(leaf);
        assert_drops(&item, 1, 1);
    }
}

/* A chain of servers, each of which calls the next on behalf of its request. The last one, the
 * leaf, is chain[CHAIN - 1]. */
static void start_chain(struct actor *chain[CHAIN], uint64_t timeout_ns)
{
    chain[CHAIN - 1] = careful_server_start(NO_ACTS);
    for (size_t i = CHAIN - 1; i-- > 0;) {
        chain[i] = server_start(
            ACTS(awaits(1), within(timeout_ns, asks_for(0, 100 + i, chain[i + 1], i))));
    }
}

TEST(call_for_a_request_inherits_its_deadline)
{
    struct actor *chain[CHAIN];
    world_open_virtual();
    start_chain(chain, SKUA_FOREVER);
    struct actor *client = actor_start(ACTS(until(START + SECOND, asks(1, chain[0], 1))));
    world_settle();
    for (size_t i = 0; i < CHAIN; i++) {
        actor_perform(chain[i], ACTS(checks_deadline(0, START + SECOND)));
    }
    world_advance(2 * SECOND);
    assert_saw(client, failure(1, SKUA_E_TIMEOUT));
    assert_int_equal(timers_armed(), 0);
    assert_saw(chain[CHAIN - 1], request(CHAIN - 2), abandoned());
}

/* Time passes between the call and the end of its step. */
TEST(call_for_a_request_in_a_long_step_has_no_more_time)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    struct actor *leaf = server_start(NO_ACTS);
    struct actor *middle = server_start(ACTS(awaits(1), asks_for(0, 5, leaf, 1), holds()));
    (void)actor_start(ACTS(until(START + SECOND, asks(1, middle, 1))));
    actor_await_held(middle, 1);
    world_set_clock(START + SECOND / 2);
    actor_release(middle);
    actor_perform(leaf, ACTS(checks_deadline(0, START + SECOND)));
}

TEST(call_for_a_request_may_have_less_time)
{
    world_open_virtual();
    struct actor *leaf = server_start(ACTS(awaits(1), checks_deadline(0, START + SECOND)));
    struct actor *middle = server_start(
        ACTS(awaits(1), until(START + SECOND, asks_for(0, 5, leaf, 1)), awaits(1), answers(0, 2)));
    struct actor *client = actor_start(ACTS(until(START + HOUR, asks(1, middle, 1))));
    world_settle();
    world_advance(2 * SECOND);
    assert_saw(middle, request(1), failure(5, SKUA_E_TIMEOUT));
    assert_saw(client, completion_of(1, 0, 2));
}

TEST(call_for_a_request_without_a_deadline_has_its_own)
{
    world_open_virtual();
    struct actor *leaf = server_start(NO_ACTS);
    struct actor *middle =
        server_start(ACTS(awaits(1), checks_deadline(0, SKUA_FOREVER), asks_for(0, 5, leaf, 1),
                          until(START + SECOND, asks_for(0, 6, leaf, 2))));
    (void)actor_start(ACTS(asks(1, middle, 1)));
    world_settle();
    actor_perform(leaf, ACTS(checks_deadline(0, SKUA_FOREVER), checks_deadline(1, START + SECOND)));
    world_advance(2 * SECOND);
    assert_saw(middle, request(1), failure(6, SKUA_E_TIMEOUT));
}

TEST(cancel_reaches_the_leaf)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *chain[CHAIN];
        world_open_driver(driver);
        start_chain(chain, SKUA_FOREVER);
        struct actor *client = actor_start(ACTS(asks(1, chain[0], 1)));
        world_settle();
        assert_saw(chain[CHAIN - 1], request(CHAIN - 2));
        actor_perform(client, ACTS(cancels(1)));
        assert_saw(client, failure(1, SKUA_E_CANCELLED));
        for (size_t i = 0; i < CHAIN - 1; i++) {
            assert_saw(chain[i], request(i == 0 ? 1 : i - 1), failure(100 + i, SKUA_E_CANCELLED));
        }
        assert_saw(chain[CHAIN - 1], request(CHAIN - 2), abandoned());
    }
}

TEST(end_of_the_caller_reaches_the_leaf)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *chain[CHAIN];
        world_open_driver(driver);
        start_chain(chain, SKUA_FOREVER);
        struct actor *client = actor_start(ACTS(asks(1, chain[0], 1)));
        world_settle();
        assert_int_equal(world_terminate(client->pid), 0);
        world_settle();
        assert_saw(chain[0], request(1), failure(100, SKUA_E_CANCELLED));
        assert_saw(chain[CHAIN - 1], request(CHAIN - 2), abandoned());
    }
}

/* The chain breaks in the middle: up it is the end of a peer, down nobody waits. */
TEST(end_of_a_server_in_the_middle_reaches_both_ends)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct actor *chain[CHAIN];
        world_open_driver(driver);
        start_chain(chain, SKUA_FOREVER);
        (void)actor_start(ACTS(asks(1, chain[0], 1)));
        world_settle();
        actor_perform(chain[2], ACTS(fails(SKUA_E_USER)));
        assert_saw(chain[1], request(0), peer_ended(101, SKUA_E_USER));
        assert_saw(chain[3], request(2), failure(103, SKUA_E_CANCELLED));
        assert_saw(chain[CHAIN - 1], request(CHAIN - 2), abandoned());
    }
}

/* A server that answers early leaves the calls that it has made alone. */
TEST(answer_leaves_calls_on_behalf_of_the_request_alone)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *leaf = server_start(NO_ACTS);
        struct actor *middle =
            server_start(ACTS(awaits(1), asks_for(0, 5, leaf, 10), asks_for(0, 6, leaf, 11)));
        struct actor *client = actor_start(ACTS(asks(1, middle, 1)));
        world_settle();
        actor_perform(middle, ACTS(answers(0, 2), continues(2)));
        assert_saw(client, completion_of(1, 0, 2));
        actor_perform(leaf, ACTS(answers(0, 1), answers(1, 1)));
        assert_saw(middle, request(1), completion_of(5, 0, 1), completion_of(6, 0, 1));
    }
}

/* Made and answered in the same step: the call is carried out after it, for nobody. */
TEST(answer_in_the_step_of_a_call_on_its_behalf_is_harmless)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *leaf = server_start(ACTS(answers_all()));
        struct actor *middle =
            server_start(ACTS(awaits(1), asks_for(0, 5, leaf, 10), answers(0, 2), awaits(1)));
        struct actor *client = actor_start(ACTS(asks(1, middle, 1)));
        world_settle();
        assert_saw(client, completion_of(1, 0, 2));
        assert_saw(middle, request(1), completion_of(5, 0, 11));
    }
}

TEST(forward_leaves_calls_on_behalf_of_the_request_alone)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *leaf = server_start(NO_ACTS);
        struct actor *second = server_start(NO_ACTS);
        struct actor *middle = server_start(
            ACTS(awaits(1), asks_for(0, 5, leaf, 10), continues(1), forwards(0, second, 3)));
        struct actor *client = actor_start(ACTS(asks(1, middle, 1)));
        world_settle();
        actor_perform(client, ACTS(cancels(1)));
        actor_perform(leaf, ACTS(answers(0, 1)));
        assert_saw(middle, request(1), completion_of(5, 0, 1));
    }
}

TEST(forward_that_fails_keeps_calls_on_behalf_of_the_request)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *leaf = careful_server_start(NO_ACTS);
        struct actor *middle = server_start(ACTS(awaits(1), asks_for(0, 5, leaf, 10)));
        struct actor *client = actor_start(ACTS(asks(1, middle, 1)));
        world_settle();
        actor_perform(middle, ACTS(refused(forwards(0, nobody(), 3), SKUA_E_NO_PROCESS)));
        actor_perform(client, ACTS(cancels(1)));
        assert_saw(middle, request(1), failure(5, SKUA_E_CANCELLED));
        assert_saw(leaf, request(10), abandoned());
    }
}

/* Whatever becomes of the calls, no node is left: answered, given up, the server's end. */
TEST(call_for_a_request_leaves_no_event_nodes_behind)
{
    enum { WAYS = 5 };
    FOR_ROUNDS (way, WAYS) {
        world_open_virtual();
        struct actor *leaf = careful_server_start(ACTS(awaits(1), answers(0, 0)));
        struct actor *client = actor_start(ACTS(asks(9, leaf, 1), awaits(1)));
        world_settle();
        const uint64_t nodes = nodes_in_use();
        struct actor *middle =
            server_start(ACTS(awaits(1), for_each_tag(10, asks_for(0, 0, leaf, 0)), continues(1),
                              for_each_tag(10, asks_for(0, 0, leaf, 0))));
        actor_perform(client, ACTS(asks(1, middle, 1)));
        actor_perform(middle, way == 1   ? ACTS(answers(0, 1), finishes(0))
                              : way == 2 ? ACTS(fails(SKUA_E_USER))
                              : way == 3 ? ACTS(for_each_tag(10, cancels(0)), awaits(20),
                                                answers(0, 1), finishes(0))
                              : way == 4 ? ACTS(finishes(0))
                                         : ACTS(for_each_tag(10, cancels(0)), awaits(20)));
        if (way == 5) {
            actor_perform(client, ACTS(cancels(1)));
            assert_int_equal(world_terminate(middle->pid), 0);
        }
        world_settle();
        assert_int_equal(nodes_in_use(), nodes);
    }
}
