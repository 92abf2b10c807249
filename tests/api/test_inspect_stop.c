/* SPDX-License-Identifier: MIT */
/* The inspector while its runtime stops: one wants to know most of all what is going on when a
 * program does not come to its end. */
#include "actor.h"
#include "inspected.h"
#include "stopper.h"

TEST(inspector_answers_while_the_runtime_stops)
{
    inspected_open((skua_runtime_config){.worker_count = 2});
    struct inspect_client *client = client_open();
    struct actor *stubborn = actor_new(NO_ACTS);
    stubborn->ignores_cancel = true;
    actor_submit(stubborn);
    struct stopper *stopper = stopper_start(SKUA_FOREVER);
    actor_await_seen(stubborn, 1); /* the cancel event */
    client_ask(client, "processes pid 0 10");
    assert_true(skua_pid_equal(inspect_pid(client->lines, 1), stubborn->pid));
    inspect_say_hello(world_runtime());
    assert_int_equal(world_terminate(stubborn->pid), 0);
    assert_int_equal(stopper_join(stopper), 0);
    assert_true(inspect_is_closed(client));
    assert_false(inspect_is_there(world_runtime()));
}

/* A step that does not return is what an inspector is for. */
TEST(inspector_answers_when_the_stop_is_stuck)
{
    inspected_open((skua_runtime_config){.worker_count = 1});
    struct inspect_client *client = client_open();
    struct actor *stuck = actor_start(ACTS(holds(), finishes(0)));
    actor_await_held(stuck, 1);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_STUCK);
    client_ask(client, "stats");
    assert_true(skua_pid_equal(inspect_pid(inspect_find(client, "worker", 0), 5), stuck->pid));
    actor_let_go(stuck);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
    assert_true(inspect_is_closed(client));
}

/* Clients of all kinds: silent ones, one with half a request, one that traces, one that has not
 * read its answers. */
TEST(runtime_stops_under_its_clients)
{
    struct inspect_client *clients[5];
    inspected_open((skua_runtime_config){.worker_count = 2});
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        clients[i] = client_open();
        client_ask(clients[i], "hello");
    }
    inspect_send(clients[1], "hel", 3);
    client_ask(clients[2], "trace start");
    for (uint32_t i = 0; i < 100; i++) {
        inspect_send(clients[3], "metrics\n", 8);
    }
    client_ask(clients[4], "metrics");
    world_close();
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        while (!inspect_is_closed(clients[i])) {
        }
    }
}
