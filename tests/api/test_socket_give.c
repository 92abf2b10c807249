/* SPDX-License-Identifier: MIT */
/* Sockets change hands: who has them when, and that nothing gets lost on the way. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "effort.h"
#include "threads.h"
#include "wire.h"

/* ---- giving ---- */

TEST(receiver_has_the_socket_and_the_giver_has_not)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        struct actor *other = actor_start(NO_ACTS);
        peer_sends(wire.peer, "one");
        actor_perform(wire.actor, ACTS(gives(wire.socket, other),
                                       refused(gives(wire.socket, other), SKUA_E_SOCKET),
                                       refused(reads_some(1, wire.socket, 9), SKUA_E_SOCKET),
                                       refused(closes(wire.socket), SKUA_E_SOCKET)));
        actor_perform(other, ACTS(reads_some(1, wire.socket, 9), expects(received(1, "one")),
                                  writes_text(2, wire.socket, "two"), expects(failure(2, 0))));
        assert_peer_gets(wire.peer, "two");
        assert_true(skua_pid_equal(snapshot_of(other, wire.socket).owner, other->pid));
    }
}

/* Also for a message that overtakes what the runtime itself has to say. */
TEST(message_that_is_sent_after_the_socket_finds_it_there)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct actor *other = actor_start(
        ACTS(expects(message(1, 1)), writes_text(1, wire.socket, "x"), expects(failure(1, 0))));
    actor_perform(wire.actor, ACTS(gives(wire.socket, other), sends(other, 1, 1)));
    assert_peer_gets(wire.peer, "x");
}

/* What was read along with a line goes with the socket. */
TEST(data_that_was_received_goes_with_the_socket)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        struct actor *other = actor_start(NO_ACTS);
        peer_sends(wire.peer, "line\nrest");
        actor_perform(wire.actor, ACTS(reads_line(1, wire.socket, "\n", 99),
                                       expects(received(1, "line\n")), gives(wire.socket, other)));
        actor_perform(other, ACTS(reads_some(1, wire.socket, 9), expects(received(1, "rest"))));
    }
}

TEST(socket_with_an_open_yield_stays)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct actor *other = actor_start(NO_ACTS);
    actor_perform(wire.actor,
                  ACTS(reads_some(1, wire.socket, 9), continues(1),
                       refused(gives(wire.socket, other), SKUA_E_SOCKET_BUSY), cancels(1),
                       expects(failure(1, SKUA_E_CANCELLED)), awaits_hangup(2, wire.socket),
                       continues(1), refused(gives(wire.socket, other), SKUA_E_SOCKET_BUSY),
                       cancels(2), expects(failure(2, SKUA_E_CANCELLED)),
                       writes_text(3, wire.socket, "x"),
                       refused(gives(wire.socket, other), SKUA_E_SOCKET_BUSY),
                       expects(failure(3, 0)), gives(wire.socket, other)));
    actor_perform(other, ACTS(writes_text(1, wire.socket, "y"), expects(failure(1, 0))));
    assert_peer_gets(wire.peer, "xy");
}

TEST(socket_stays_if_nobody_is_there_to_have_it)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct actor *gone = actor_start(ACTS(finishes(0)));
    struct actor none = {.pid = {0}};
    skua_socket nobody = {UINT64_C(0xffffffff00000001)};
    actor_await_end(gone);
    actor_perform(wire.actor, ACTS(refused(gives(wire.socket, gone), SKUA_E_NO_PROCESS),
                                   refused(gives(wire.socket, &none), SKUA_E_NO_PROCESS),
                                   refused(gives(&nobody, wire.actor), SKUA_E_SOCKET),
                                   gives(wire.socket, wire.actor), /* to itself */
                                   writes_text(1, wire.socket, "x"), expects(failure(1, 0))));
    assert_peer_gets(wire.peer, "x");
}

TEST(socket_is_closed_if_the_receiver_ends_before_it_hears_of_it)
{
    wires_begin_with((skua_runtime_config){.worker_count = 2});
    const struct wire wire = wire_open(WIRE_TCP);
    struct actor *held = actor_start_held();
    actor_perform(wire.actor, ACTS(gives(wire.socket, held)));
    assert_int_equal(world_terminate(held->pid), 0);
    assert_int_equal(open_sockets(), 1);
    actor_let_go(held);
    actor_await_end(held);
    assert_peer_is_reset(wire.peer);
    await_sockets(0);
}

TEST(socket_that_was_received_is_closed_with_its_process)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        struct actor *other = actor_start(NO_ACTS);
        actor_perform(wire.actor, ACTS(gives(wire.socket, other)));
        actor_tell(other, ACTS(finishes(0)));
        actor_await_end(other);
        assert_peer_at_end(wire.peer);
        await_sockets(0);
    }
}

/* ---- starting a process with a socket ---- */

TEST(new_process_has_its_socket_in_its_first_step)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        struct actor *child = actor_new(
            ACTS(writes_text(1, wire.socket, "hello"), expects(failure(1, 0)), finishes(0)));
        actor_perform(wire.actor, ACTS(spawns_owner(wire.socket, child),
                                       refused(closes(wire.socket), SKUA_E_SOCKET)));
        assert_peer_gets(wire.peer, "hello");
        assert_peer_at_end(wire.peer);
        actor_await_end(child);
    }
}

TEST(socket_stays_if_the_process_cannot_be_started)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct actor *child = actor_new(NO_ACTS);
    child->init_returns = SKUA_E_USER;
    struct actor *another = actor_new(NO_ACTS);
    skua_socket nobody = {0};
    nobody.bits = UINT64_C(1) << 40 | 1;
    actor_perform(wire.actor, ACTS(refused(spawns_owner(wire.socket, child), SKUA_E_USER),
                                   refused(spawns_owner(&nobody, another), SKUA_E_SOCKET),
                                   reads_some(1, wire.socket, 9), continues(1),
                                   refused(spawns_owner(wire.socket, another), SKUA_E_SOCKET_BUSY),
                                   cancels(1), expects(failure(1, SKUA_E_CANCELLED)),
                                   writes_text(2, wire.socket, "x"), expects(failure(2, 0))));
    assert_peer_gets(wire.peer, "x");
    assert_int_equal(open_sockets(), 1);
}

/* Listener, acceptor and sessions, as a server has them. */
TEST(accepted_connections_go_to_processes_of_their_own)
{
    enum { CLIENTS = 50 };
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    struct actor *sessions[CLIENTS];
    int peers[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        skua_socket *near = socket_new();
        sessions[i] = actor_new(ACTS(reads_line(1, near, "\n", 10), expects(received(1, "ask\n")),
                                     writes_text(2, near, "told\n"), finishes(0)));
        peers[i] = peer_connect(server.address);
        actor_perform(server.actor, ACTS(accepts(1, server.listener), expects(completion(1, 0)),
                                         keeps(near), spawns_owner(near, sessions[i])));
    }
    for (int i = 0; i < CLIENTS; i++) {
        peer_sends(peers[i], "ask\n");
    }
    for (int i = 0; i < CLIENTS; i++) {
        assert_peer_gets(peers[i], "told\n");
        assert_peer_at_end(peers[i]);
    }
}

/* ---- a listener, with a connection that came too late for its accept ---- */

TEST(listener_can_be_given)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    struct actor *other = actor_start(NO_ACTS);
    skua_socket *near = socket_new();
    const int peer = peer_connect(server.address);
    actor_perform(server.actor, ACTS(gives(server.listener, other),
                                     refused(accepts(1, server.listener), SKUA_E_SOCKET)));
    actor_perform(other, ACTS(accepts(1, server.listener), expects(completion(1, 0)), keeps(near),
                              writes_text(2, near, "x"), expects(failure(2, 0))));
    assert_peer_gets(peer, "x");
}

/* Connections race with accepts whose time is up, while the listener goes from hand to hand and its
 * owners end: none is lost as long as somebody listens. */
TEST(connection_that_came_too_late_goes_with_its_listener)
{
    enum { CONNECTIONS = 200 };
    wires_begin();
    char address[64];
    (void)snprintf(address, sizeof address, "unix:@skua-give-late-%d", (int)getpid());
    const struct listening server = listening_open(address);
    struct actor *owner = server.actor;
    unsigned accepted = 0;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        struct actor *next = actor_start(NO_ACTS);
        const size_t before = owner->seen_count;
        actor_tell(owner, ACTS(within((uint64_t)(i % 40) * 2500, accepts(i, server.listener)),
                               awaits(1), gives(server.listener, next), finishes(0)));
        fd_close(peer_connect(server.address));
        actor_await_end(owner);
        accepted += owner->seen[before].error == 0;
        owner = next;
    }
    for (; accepted < CONNECTIONS; accepted++) {
        actor_perform(owner, ACTS(accepts(1, server.listener), expects(completion(1, 0))));
    }
    actor_perform(
        owner, ACTS(within(0, accepts(1, server.listener)), expects(failure(1, SKUA_E_TIMEOUT))));
}

/* ---- while data comes ---- */

struct flood {
    int peer;
    size_t size;
};

static void send_in_pieces(void *arg)
{
    const struct flood *flood = arg;
    for (size_t at = 0; at < flood->size; at += 10) {
        peer_sends_pattern(flood->peer, at, 10);
    }
}

/* Each process of a chain reads some and gives the socket on, at once; the peer writes all the
 * while. */
TEST(no_byte_is_lost_while_the_socket_goes_from_hand_to_hand)
{
    enum { HANDS = 4, ROUNDS = EFFORT(500) };
    FOR_ROWS (kind, wire_kinds) {
        struct wire wire = wire_open(*kind);
        struct actor *hands[HANDS];
        hands[0] = wire.actor;
        for (int i = 1; i < HANDS; i++) {
            hands[i] = actor_start(NO_ACTS);
        }
        const struct flood flood = {.peer = wire.peer, .size = (size_t)ROUNDS * HANDS * 10};
        struct thread *sender = thread_start(send_in_pieces, (void *)(uintptr_t)&flood);
        for (size_t i = 0; i < (size_t)ROUNDS * HANDS; i++) {
            struct actor *hand = hands[i % HANDS];
            actor_tell(hand, ACTS(reads_exactly(1, wire.socket, 10),
                                  expects(received_pattern(1, i * 10, 10)),
                                  gives(wire.socket, hands[(i + 1) % HANDS])));
            tally_wait(&hand->performed, hand->given);
        }
        thread_join(sender);
    }
}

static int pass_socket(struct turn *turn, const struct act *act)
{
    const skua_socket *socket = act->arg;
    for (size_t i = 0; i < turn->count; i++) {
        const skua_event *event = &turn->events[i];
        const bool has_it = event->type == SKUA_EVENT_MESSAGE;
        const bool has_read = event->type == SKUA_EVENT_COMPLETION;
        int error = 0;
        if (has_it) {
            error = skua_yield_read(turn->ctx, 1, *socket, 7, SKUA_FOREVER);
        } else if (has_read && skua_payload_size(&event->payload) > 0) {
            error = skua_socket_give(turn->ctx, *socket, act->peer->pid);
            error = error != 0 ? error : perform(turn, sends(act->peer, 1, 1));
        } else if (has_read) {
            tally_add(&act->peer->released, 1); /* the end: the test waits for this */
        }
        if (error != 0) {
            actor_surprise(turn->actor, "%s", skua_error_name(error));
        }
    }
    return ACT_WAITS;
}

static struct act passes_socket(skua_socket *socket, struct actor *to)
{
    struct act act = does(pass_socket, socket);
    act.peer = to;
    return act;
}

/* The same without the test in between: two processes give it to and fro as fast as they can. */
TEST(reports_find_the_owner_while_the_socket_goes_to_and_fro)
{
    FOR_ROWS (kind, wire_kinds) {
        struct wire wire = wire_open(*kind);
        struct actor *one = actor_new(NO_ACTS);
        struct actor *two = actor_new(NO_ACTS);
        one->script = ACTS(passes_socket(wire.socket, two));
        two->script = ACTS(passes_socket(wire.socket, one));
        actor_submit(two);
        actor_submit(one);
        actor_perform(wire.actor, ACTS(gives(wire.socket, one), sends(one, 1, 1)));
        const struct flood flood = {.peer = wire.peer, .size = 10 * (size_t)EFFORT(20000)};
        send_in_pieces((void *)(uintptr_t)&flood);
        fd_close(wire.peer);
        while (tally_count(&one->released) + tally_count(&two->released) == 0) {
            (void)sched_yield();
        }
        world_close();
        const size_t pieces = one->seen_count + two->seen_count;
        assert_true(pieces > 2);
        uint64_t bytes = 0;
        for (size_t i = 0; i < one->seen_count; i++) {
            bytes += one->seen[i].type == SKUA_EVENT_COMPLETION ? one->seen[i].size : 0;
        }
        for (size_t i = 0; i < two->seen_count; i++) {
            bytes += two->seen[i].type == SKUA_EVENT_COMPLETION ? two->seen[i].size : 0;
        }
        assert_int_equal(bytes, flood.size);
    }
}

static int give_if_it_lives(struct turn *turn, const struct act *act)
{
    const int error = skua_socket_give(turn->ctx, *(const skua_socket *)act->arg, act->peer->pid);
    return error == SKUA_E_NO_PROCESS ? 0 : error;
}

/* Given to processes that are just being ended: each socket is closed in the end, by one. */
TEST(sockets_that_are_given_to_processes_that_end_are_closed)
{
    uint64_t seed = seed_choose();
    wires_begin();
    for (unsigned i = 0; i < EFFORT(500); i++) {
        const struct wire wire = wire_open(wire_kinds[i % 2]);
        struct actor *other = actor_start(NO_ACTS);
        struct act give = does(give_if_it_lives, wire.socket);
        give.peer = other;
        actor_tell(wire.actor, ACTS(give));
        if (seed_next(&seed) % 2 == 0) {
            peer_sends(wire.peer, "x");
        }
        (void)!world_terminate(seed_next(&seed) % 2 == 0 ? other->pid : wire.actor->pid);
        if (seed_next(&seed) % 2 == 0) {
            (void)!world_terminate(other->pid);
        }
        fd_close(wire.peer);
    }
    world_close();
}
