/* SPDX-License-Identifier: MIT */
/* Calls whose caller gives up or ends, and calls whose server ends: nobody waits for ever, nobody
 * hears of it twice, and nothing is handed over that nobody waits for. */
#include "relations.h"
#include "threads.h"
#include "timers.h"

/* ---- the caller gives up before the request was handed over ---- */

/* The server is held until the caller has given up: taken back, timed out, done, failed. */
TEST(request_that_nobody_waits_for_is_never_handed_over)
{
    FOR_ROUNDS (way, 4) {
        struct tracked item = {0};
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *server = careful_server_new(ACTS(holds()));
        actor_submit(server);
        actor_await_held(server, 1);
        const struct act ask = asks_item(1, server, &item);
        struct actor *client =
            actor_start(way == 1   ? ACTS(ask, cancels(1), expects(failure(1, SKUA_E_CANCELLED)))
                        : way == 2 ? ACTS(within(1, ask), expects(failure(1, SKUA_E_TIMEOUT)))
                        : way == 3 ? ACTS(ask, continues(1), finishes(0))
                                   : ACTS(ask, continues(1), fails(SKUA_E_USER)));
        if (way > 2) {
            actor_await_end(client);
        } else {
            actor_await_seen(client, 1);
        }
        actor_release(server);
        actor_perform(server, ACTS(sends(server, 0, 5), awaits(1)));
        assert_saw(server, message(0, 5));
        assert_drops(&item, 1, 1);
        assert_int_equal(world_info(server->pid).mailbox_length, 0);
    }
}

/* ---- and after that ---- */

enum giving_up { TAKES_BACK, TIMES_OUT, IS_DONE, FAILS, IS_TERMINATED, IS_CANCELLED };
#define WAYS (IS_CANCELLED + 1)

/* A world with a server that has a request, and a caller that has given up. */
static struct actor *give_up(struct actor *server, enum giving_up way)
{
    struct actor *client =
        actor_start(ACTS(within(way == TIMES_OUT ? SECOND : HOUR, asks(1, server, 7))));
    world_settle();
    switch (way) {
    case TAKES_BACK:
        actor_perform(client, ACTS(cancels(1)));
        break;
    case TIMES_OUT:
        world_advance(2 * SECOND);
        break;
    case IS_DONE:
        actor_perform(client, ACTS(finishes(0)));
        break;
    case FAILS:
        actor_perform(client, ACTS(fails(SKUA_E_USER)));
        break;
    case IS_TERMINATED:
        assert_int_equal(world_terminate(client->pid), 0);
        break;
    case IS_CANCELLED:
        assert_int_equal(world_cancel(client->pid, 0), 0);
        break;
    }
    world_settle();
    return client;
}

TEST(server_hears_once_that_nobody_waits_any_more)
{
    FOR_ROUNDS (way, WAYS) {
        world_open_virtual();
        struct actor *server = careful_server_start(NO_ACTS);
        const struct actor *client = give_up(server, (enum giving_up)(way - 1));
        assert_saw(server, request(7), abandoned());
        assert_int_equal(server->seen[0].request.bits, server->seen[1].request.bits);
        assert_int_equal(server->seen[1].from.bits, client->pid.bits);
        actor_perform(server, ACTS(refused(answers(0, 1), SKUA_E_LATE), checks_deadline(0, 0)));
        assert_saw(server, request(7), abandoned());
        assert_int_equal(world_info(server->pid).mailbox_length, 0);
    }
}

TEST(server_that_does_not_ask_for_it_hears_nothing)
{
    FOR_ROUNDS (way, WAYS) {
        world_open_virtual();
        struct actor *server = server_start(NO_ACTS);
        (void)give_up(server, (enum giving_up)(way - 1));
        actor_perform(server, ACTS(refused(answers(0, 1), SKUA_E_LATE),
                                   refused(answers(0, 1), SKUA_E_LATE), checks_deadline(0, 0)));
        assert_saw(server, request(7));
        assert_int_equal(world_info(server->pid).mailbox_length, 0);
    }
}

TEST(server_that_has_answered_hears_nothing)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = careful_server_start(ACTS(awaits(1), answers(0, 1)));
        struct actor *client = actor_start(ACTS(asks(1, server, 7)));
        world_settle();
        actor_perform(client, ACTS(cancels(1), finishes(0)));
        assert_saw(server, request(7));
        assert_saw(client, completion_of(1, 0, 1));
    }
}

/* The server ends meanwhile: it need not be told, and nothing is left of the request. */
TEST(server_that_ends_hears_nothing_and_leaves_nothing)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *watcher = actor_start(NO_ACTS);
        world_settle();
        const uint64_t nodes = nodes_in_use();
        struct actor *server = careful_server_start(ACTS(awaits(1), finishes(0)));
        struct actor *client =
            actor_start(ACTS(asks(1, server, 7), awaits(1), cancels(1), finishes(0)));
        world_settle();
        assert_saw(client, peer_ended(1, 0));
        assert_int_equal(nodes_in_use(), nodes);
        assert_saw_nothing(watcher);
    }
}

/* ---- the server ends ---- */

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

static void end_server(struct actor *server, size_t row)
{
    if (ends[row].cancel != 0) {
        assert_int_equal(world_cancel(server->pid, ends[row].cancel), 0);
    } else if (ends[row].terminates) {
        assert_int_equal(world_terminate(server->pid), 0);
    } else if (ends[row].error != 0) {
        actor_tell(server, ACTS(fails(ends[row].error)));
    } else {
        actor_tell(server, ACTS(finishes(0)));
    }
}

static struct actor *mortal_server_start(struct script script)
{
    struct actor *server = server_new(script);
    server->type.cancel = SKUA_CANCEL_END;
    actor_submit(server);
    return server;
}

TEST(caller_hears_how_the_server_ended_that_had_its_request)
{
    FOR_ROWS (row, ends) {
        world_open_virtual();
        struct actor *server = mortal_server_start(NO_ACTS);
        struct actor *client = actor_start(ACTS(asks(1, server, 1), asks(2, server, 2)));
        world_settle();
        end_server(server, (size_t)(row - ends));
        world_settle();
        assert_then_saw_in_any_order(client, peer_ended(1, row->error), peer_ended(2, row->error));
        actor_perform(client, ACTS(asks(3, server, 3)));
        assert_then_saw(client, failure(3, SKUA_E_NO_PROCESS));
    }
}

/* The same for requests that wait behind what ends it. */
TEST(caller_hears_how_the_server_ended_that_had_not_got_its_request)
{
    FOR_ROWS (row, ends) {
        struct tracked items[50];
        memset(items, 0, sizeof items);
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *server = mortal_server_start(ACTS(holds()));
        actor_await_held(server, 1);
        struct actor *client = actor_start(NO_ACTS);
        if (row->cancel == 0 && !row->terminates) {
            actor_let_go(server);
            actor_perform_until_held(server, row->error != 0 ? ACTS(holds(), fails(row->error))
                                                             : ACTS(holds(), finishes(0)));
        } else {
            end_server(server, (size_t)(row - ends));
        }
        for (size_t i = 0; i < COUNT_OF(items); i++) {
            actor_perform(client, ACTS(asks_item(i, server, &items[i])));
        }
        actor_perform(client, ACTS(continues(1))); /* now all have been made */
        actor_let_go(server);
        actor_await_seen(client, COUNT_OF(items));
        assert_completed_each_once(client, COUNT_OF(items), SKUA_E_PEER_ENDED);
        for (size_t i = 0; i < COUNT_OF(items); i++) {
            assert_int_equal((int)client->seen[i].value, row->error);
        }
        world_close();
        assert_drops(items, COUNT_OF(items), 1);
        assert_saw_nothing(server);
    }
}

TEST(caller_hears_that_a_link_has_ended_the_server)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *other = actor_start(NO_ACTS);
        struct actor *server = server_start(ACTS(links(other, SKUA_LINK_BOTH, 0, NULL)));
        struct actor *client = actor_start(ACTS(asks(1, server, 1)));
        world_settle();
        actor_perform(other, ACTS(fails(SKUA_E_USER)));
        assert_saw(client, peer_ended(1, SKUA_E_USER));
        assert_ended_because_of(server, SKUA_E_USER, other);
    }
}

/* What the server sent before it ended comes before the news. */
TEST(caller_hears_of_the_end_after_what_the_server_sent)
{
    FOR_ROUNDS (seed, 50) {
        world_open_sim(seed, (skua_sim_faults){.message_delay = 500000});
        struct actor *server = server_start(ACTS(awaits(1)));
        struct actor *client = actor_start(ACTS(asks(1, server, 1)));
        world_settle();
        server->in_close = ACTS(sends(client, 0, 3));
        actor_perform(server, ACTS(sends(client, 0, 1), sends(client, 0, 2), finishes(0)));
        assert_saw(client, message(0, 1), message(0, 2), message(0, 3), peer_ended(1, 0));
    }
}

/* ---- races ---- */

/* Callers give up while a server answers and servers end while callers give up: each call has one
 * end, and a server hears of each request that it has not answered at most once. */
static int answer_some(struct turn *turn, const struct act *act)
{
    (void)act;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_CALL && skua_random(turn->ctx) % 2 == 0) {
            (void)skua_reply(turn->ctx, turn->events[i].request, 0, skua_payload_u64(0, 1));
        }
    }
    return ACT_WAITS;
}

TEST(calls_that_are_given_up_and_answered_at_once_end_once)
{
    enum { CLIENTS = 8, CALLS = 300 };
    FOR_ROUNDS (round, 20) {
        struct actor *clients[CLIENTS];
        world_open();
        struct actor *server = careful_server_start(ACTS(does(answer_some, NULL)));
        for (size_t i = 0; i < CLIENTS; i++) {
            clients[i] =
                actor_start(ACTS(for_each_tag(CALLS, within(i % 2 * 1000, asks(0, server, 0))),
                                 continues(i), for_each_tag(CALLS, cancels(0)), awaits(CALLS)));
        }
        for (size_t i = 0; i < CLIENTS; i++) {
            if (round % 2 == 0 && i == CLIENTS / 2) {
                assert_int_equal(world_terminate(server->pid), 0);
            }
            actor_await_seen(clients[i], CALLS);
        }
        world_close();
        for (size_t i = 0; i < CLIENTS; i++) {
            assert_int_equal(clients[i]->seen_count, CALLS + 1); /* and the cancel of the stop */
        }
    }
}
