/* SPDX-License-Identifier: MIT */
/* What one connection does costs no other one anything, and nothing is done in vain. */
#include <stdio.h>
#include <sys/socket.h>

#include "threads.h"
#include "wire.h"

#define ROUNDS 50

/* Asks and is answered, over and over. */
static void assert_is_served(const struct wire *wire)
{
    for (int i = 0; i < ROUNDS; i++) {
        actor_tell(wire->actor,
                   ACTS(reads_line(1, wire->socket, "\n", 9), expects(received(1, "ask\n")),
                        writes_text(2, wire->socket, "told\n"), expects(failure(2, 0))));
        peer_sends(wire->peer, "ask\n");
        assert_peer_gets(wire->peer, "told\n");
    }
}

/* ---- floods ---- */

struct flood {
    int peer;
    atomic_bool stops;
};

static void flood_peer(void *arg)
{
    struct flood *flood = arg;
    static const char block[65536];
    while (!flood->stops) {
        (void)!send(flood->peer, block, sizeof block, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static int read_on_and_on(struct turn *turn, const struct act *act)
{
    const skua_socket *socket = act->arg;
    if (turn->events[turn->count - 1].type == SKUA_EVENT_CANCEL) {
        return ACT_WAITS;
    }
    const int error = skua_yield_read(turn->ctx, 1, *socket, SIZE_MAX, SKUA_FOREVER);
    if (error != 0) {
        actor_surprise(turn->actor, "%s", skua_error_name(error));
    }
    turn->actor->seen_count = 0; /* there are too many */
    turn->actor->read = 0;
    return ACT_WAITS;
}

TEST(connection_that_always_has_data_holds_up_nobody_else)
{
    wires_begin_with((skua_runtime_config){.worker_count = 1});
    const struct wire flooded = wire_open(WIRE_UNIX);
    const struct wire other = wire_open(WIRE_UNIX);
    struct flood flood = {.peer = flooded.peer};
    actor_tell(flooded.actor, ACTS(does(read_on_and_on, flooded.socket)));
    struct thread *thread = thread_start(flood_peer, &flood);
    assert_is_served(&other);
    flood.stops = true;
    thread_join(thread);
}

/* One read of very much is many turns. */
TEST(read_of_very_much_holds_up_nobody_else)
{
    wires_begin_with((skua_runtime_config){.worker_count = 1});
    const struct wire flooded = wire_open(WIRE_UNIX);
    const struct wire other = wire_open(WIRE_UNIX);
    struct flood flood = {.peer = flooded.peer};
    actor_tell(flooded.actor, ACTS(reads_exactly(1, flooded.socket, UINT64_C(1) << 30)));
    struct thread *thread = thread_start(flood_peer, &flood);
    assert_is_served(&other);
    flood.stops = true;
    thread_join(thread);
}

TEST(connect_that_nobody_answers_holds_up_nobody_else)
{
    wires_begin_with((skua_runtime_config){.worker_count = 1});
    const int listener = listener_open(); /* with a backlog of one */
    char address[64];
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", port_of(listener));
    for (int i = 0; i < 8; i++) {
        (void)connection_open(port_of(listener), SOCK_NONBLOCK);
    }
    struct actor *actors[10];
    for (size_t i = 0; i < COUNT_OF(actors); i++) {
        actors[i] = actor_start(NO_ACTS);
        actor_perform(actors[i], ACTS(connects(1, address)));
    }
    const struct wire other = wire_open(WIRE_TCP);
    assert_is_served(&other);
}

/* ---- nothing is pushed ---- */

TEST(who_does_not_read_gets_nothing)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends_pattern(wire.peer, 0, 10000);
        let_poller_catch_up();
        actor_perform(wire.actor, ACTS(sleeps(1, 0), expects(failure(1, 0))));
        assert_saw(wire.actor, failure(1, 0));
        const skua_socket_snapshot snapshot = snapshot_of(wire.actor, wire.socket);
        assert_int_equal(snapshot.bytes_in + snapshot.buffered, 0);
    }
}

/* ---- nothing is tried in vain ---- */

static struct meddler *open_with_meddler(void)
{
    need_loopback();
    files_must_come_back();
    world_create((skua_runtime_config){0});
    struct meddler *meddler = meddler_install();
    world_start();
    return meddler;
}

/* Reports about one direction say nothing about the other. */
TEST(read_is_not_tried_because_something_can_be_written)
{
    struct meddler *meddler = open_with_meddler();
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(reads_some(1, wire.socket, 9), continues(1),
                                   writes_pattern(2, wire.socket, 0, 4000000)));
    const unsigned reads = meddler->reads;
    const unsigned writes = meddler->writes;
    assert_peer_gets_pattern(wire.peer, 0, 4000000);
    actor_await_seen(wire.actor, 1);
    assert_true(meddler->writes > writes); /* it had to wait */
    assert_int_equal(meddler->reads, reads);
}

/* A read that got less than it had room for has got all: the next one waits without asking. */
TEST(request_and_answer_take_one_read_and_one_write)
{
    struct meddler *meddler = open_with_meddler();
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor, ACTS(reads_some(1, wire.socket, 100), expects(received(1, "ask")),
                                writes_text(2, wire.socket, "told"), expects(failure(2, 0))));
    actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
    peer_sends(wire.peer, "ask");
    assert_peer_gets(wire.peer, "told");
    actor_await_seen(wire.actor, 2);
    const unsigned reads = meddler->reads;
    const unsigned writes = meddler->writes;
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t seen = tally_count(&wire.actor->arrived);
        actor_tell(wire.actor, ACTS(reads_some(1, wire.socket, 100), expects(received(1, "ask")),
                                    writes_text(2, wire.socket, "told"), expects(failure(2, 0))));
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        peer_sends(wire.peer, "ask");
        assert_peer_gets(wire.peer, "told");
        actor_await_seen(wire.actor, seen + 2);
    }
    assert_int_equal(meddler->writes - writes, ROUNDS);
    assert_int_equal(meddler->reads - reads, ROUNDS);
}

TEST(nothing_happens_on_idle_connections)
{
    struct meddler *meddler = open_with_meddler();
    struct wire wires[10];
    for (size_t i = 0; i < COUNT_OF(wires); i++) {
        wires[i] = wire_open(wire_kinds[i % 2]);
        actor_perform(wires[i].actor, ACTS(reads_some(1, wires[i].socket, 1)));
        actor_await_state(wires[i].actor, SKUA_PROCESS_BLOCKED);
    }
    let_poller_catch_up();
    const unsigned reads = meddler->reads;
    for (int i = 0; i < ROUNDS; i++) {
        let_poller_catch_up();
    }
    assert_int_equal(meddler->reads, reads);
}
