/* SPDX-License-Identifier: MIT */
/* How connections end: shut down, closed, reset; and what the peer gets. */
#include <errno.h>
#include <sys/socket.h>

#include "effort.h"
#include "stopper.h"
#include "threads.h"
#include "wire.h"

#define MUCH ((size_t)8 << 20) /* more than the system takes at once */

/* ---- half close ---- */

TEST(peer_sees_the_end_after_what_was_written_and_can_still_answer)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(writes_text(1, wire.socket, "question"), shuts_down(wire.socket),
                           shuts_down(wire.socket), expects(failure(1, 0)),
                           refused(writes_text(2, wire.socket, "more"), SKUA_E_SHUT_DOWN)));
        assert_peer_gets(wire.peer, "question");
        assert_peer_at_end(wire.peer);
        assert_int_equal(snapshot_of(wire.actor, wire.socket).state, SKUA_SOCKET_SHUT_DOWN);
        peer_sends(wire.peer, "answer");
        actor_perform(wire.actor,
                      ACTS(reads_some(3, wire.socket, 100), expects(received(3, "answer"))));
    }
}

TEST(peer_sees_the_end_after_all_that_was_queued)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(writes_pattern(1, wire.socket, 0, MUCH), continues(1),
                                       shuts_down(wire.socket)));
        assert_peer_gets_pattern(wire.peer, 0, MUCH);
        assert_peer_at_end(wire.peer);
        actor_await_seen(wire.actor, 1);
    }
}

TEST(answer_can_be_written_after_the_end_of_input)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "question");
        assert_int_equal(shutdown(wire.peer, SHUT_WR), 0);
        actor_tell(wire.actor,
                   ACTS(reads_exactly(1, wire.socket, 100), expects(received(1, "question")),
                        writes_pattern(2, wire.socket, 0, MUCH), closes(wire.socket), awaits(1)));
        assert_peer_gets_pattern(wire.peer, 0, MUCH);
        assert_peer_at_end(wire.peer);
        actor_await_seen(wire.actor, 2);
    }
}

/* ---- closing ---- */

TEST(close_comes_after_the_writes_of_its_step)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(writes_text(1, wire.socket, "one "), writes_text(2, wire.socket, "two"),
                           closes(wire.socket), refused(closes(wire.socket), SKUA_E_SOCKET),
                           refused(writes_text(3, wire.socket, "x"), SKUA_E_SOCKET), awaits(2)));
        assert_peer_gets(wire.peer, "one two");
        assert_peer_at_end(wire.peer);
        await_sockets(0);
    }
}

TEST(close_leaves_what_is_queued_to_be_written)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(writes_pattern(1, wire.socket, 0, MUCH), continues(2),
                                       closes(wire.socket), expects(failure(1, SKUA_E_CLOSED))));
        assert_peer_gets_pattern(wire.peer, 0, MUCH);
        assert_peer_at_end(wire.peer);
        await_sockets(0);
    }
}

static void check_that_all_is_written_by(struct act end)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, 2 * MUCH),
                                   writes_pattern(1, wire.socket, 0, MUCH / 2),
                                   writes_text(2, wire.socket, "the end")));
    actor_tell(wire.actor, ACTS(end));
    actor_await_end(wire.actor);
    assert_peer_gets_pattern(wire.peer, 0, MUCH / 2);
    assert_peer_gets(wire.peer, "the end");
    assert_peer_at_end(wire.peer);
    await_sockets(0);
}

TEST(process_that_ends_in_an_orderly_way_leaves_what_is_queued_to_be_written)
{
    check_that_all_is_written_by(finishes(0));
    check_that_all_is_written_by(fails(SKUA_E_STOPPED));
    check_that_all_is_written_by(fails(SKUA_E_CANCELLED));
}

/* A step that says that it is done has its writes carried out, too, however small. */
TEST(last_words_of_a_process_arrive)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor, ACTS(writes_text(1, wire.socket, "bye"), finishes(0)));
        assert_peer_gets(wire.peer, "bye");
        assert_peer_at_end(wire.peer);
        actor_await_end(wire.actor);
    }
}

/* What nobody has read must not cost the peer what it was sent. */
TEST(peer_gets_all_though_it_was_not_listened_to)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "ignored");
        let_poller_catch_up();
        actor_perform(wire.actor,
                      ACTS(writes_text(1, wire.socket, "answer"), closes(wire.socket), awaits(1)));
        assert_peer_gets(wire.peer, "answer");
        assert_peer_at_end(wire.peer);
    }
}

/* The same for what it says while the answer lingers. */
TEST(peer_gets_all_though_it_went_on_talking)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(writes_pattern(1, wire.socket, 0, MUCH), closes(wire.socket),
                                       awaits(1)));
        peer_sends(wire.peer, "ignored");
        let_poller_catch_up();
        assert_peer_gets_pattern(wire.peer, 0, MUCH);
        assert_peer_at_end(wire.peer);
    }
}

/* The peer stops reading: what lingers is given up after the time without progress. */
TEST(what_lingers_is_given_up_if_the_peer_takes_nothing)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(sets(wire.socket, SKUA_SOCKET_PROGRESS, 20 * SKUA_MILLISECOND),
                           writes_pattern(1, wire.socket, 0, MUCH), closes(wire.socket),
                           awaits(1)));
        await_sockets(0);
    }
}

TEST(what_lingers_is_given_up_if_the_peer_breaks_off)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_perform(wire.actor,
                  ACTS(writes_pattern(1, wire.socket, 0, MUCH), closes(wire.socket), awaits(1)));
    assert_int_equal(lingering_sockets(), 1);
    peer_resets(wire.peer);
    await_sockets(0);
}

/* ---- stopping the runtime ---- */

static void read_much(void *arg)
{
    const int peer = *(const int *)arg;
    assert_peer_gets_pattern(peer, 0, MUCH);
    assert_peer_at_end(peer);
}

/* The stop waits for what lingers, as it waits for processes. */
TEST(stop_lets_what_lingers_be_written)
{
    FOR_ROWS (kind, wire_kinds) {
        struct wire wire = wire_open(*kind);
        actor_tell(wire.actor, ACTS(writes_pattern(1, wire.socket, 0, MUCH), finishes(0)));
        actor_await_end(wire.actor);
        struct thread *reader = thread_start(read_much, &wire.peer);
        world_stop();
        thread_join(reader);
    }
}

TEST(stop_lets_what_processes_write_when_they_are_stopped_be_written)
{
    FOR_ROWS (kind, wire_kinds) {
        struct wire wire = wire_open(*kind);
        actor_tell(wire.actor, ACTS(expects(cancel(SKUA_E_STOPPED)),
                                    writes_pattern(1, wire.socket, 0, MUCH), finishes(0)));
        struct thread *reader = thread_start(read_much, &wire.peer);
        world_stop();
        thread_join(reader);
    }
}

/* Its timeout passes: what lingers is reset, and no process has survived. */
TEST(stop_gives_up_what_lingers_at_its_timeout)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor, ACTS(writes_pattern(1, wire.socket, 0, MUCH), finishes(0)));
    actor_await_end(wire.actor);
    assert_int_equal(lingering_sockets(), 1);
    assert_int_equal(skua_runtime_stop(world_runtime(), 20 * SKUA_MILLISECOND), 0);
    world_close();
    char bytes[65536];
    ssize_t count;
    while ((count = recv(wire.peer, bytes, sizeof bytes, 0)) > 0) {
    }
    assert_int_equal(count, -1);
    assert_int_equal(errno, ECONNRESET);
}

/* ---- resets ---- */

static void assert_ends_with_reset(const struct wire *wire)
{
    actor_await_end(wire->actor);
    assert_peer_is_reset(wire->peer);
    await_sockets(0);
}

TEST(process_that_fails_resets_its_connections)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor, ACTS(reads_some(1, wire.socket, 10), fails(SKUA_E_USER)));
    assert_ends_with_reset(&wire);
}

TEST(process_that_is_terminated_resets_its_connections)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_perform(wire.actor, ACTS(reads_some(1, wire.socket, 10)));
    assert_int_equal(world_terminate(wire.actor->pid), 0);
    assert_ends_with_reset(&wire);
}

/* Also if it has never used them, or has just written. */
TEST(process_that_fails_drops_what_it_has_written_in_that_step)
{
    const struct wire wire = wire_open(WIRE_TCP);
    struct tracked item = {0};
    actor_tell(wire.actor, ACTS(writes_payload(1, wire.socket, tracked_payload(0, &item)),
                                closes(wire.socket), fails(SKUA_E_USER)));
    assert_ends_with_reset(&wire);
    assert_drops(&item, 1, 1);
}

TEST(queued_writes_are_dropped_when_their_process_is_terminated)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct tracked item = {0};
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, 2 * MUCH),
                                   writes_pattern(1, wire.socket, 0, MUCH),
                                   writes_payload(2, wire.socket, tracked_payload(0, &item))));
    assert_drops(&item, 1, 0);
    assert_int_equal(world_terminate(wire.actor->pid), 0);
    actor_await_end(wire.actor);
    assert_drops(&item, 1, 1);
    await_sockets(0);
}

TEST(writes_that_linger_are_dropped_when_they_are_given_up)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct tracked item = {0};
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, 2 * MUCH),
                                   writes_pattern(1, wire.socket, 0, MUCH),
                                   writes_payload(2, wire.socket, tracked_payload(0, &item)),
                                   closes(wire.socket), awaits(2)));
    assert_drops(&item, 1, 0);
    fd_close(wire.peer);
    await_drop(&item); /* without the lock that counts sockets: after the socket is gone */
    await_sockets(0);
    assert_drops(&item, 1, 1);
}

/* ---- every open yield completes once ---- */

TEST(close_ends_every_open_yield_once)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, 2 * MUCH),
                           writes_pattern(1, wire.socket, 0, MUCH), reads_some(2, wire.socket, 10),
                           awaits_hangup(3, wire.socket), writes_text(4, wire.socket, ""),
                           continues(1), closes(wire.socket), awaits(4)));
        fd_close(wire.peer);
        await_sockets(0);
        let_poller_catch_up();
        actor_await_state(wire.actor, SKUA_PROCESS_IDLE);
        assert_then_saw_in_any_order(wire.actor, failure(1, SKUA_E_CLOSED),
                                     failure(2, SKUA_E_CLOSED), failure(3, SKUA_E_CLOSED),
                                     failure(4, SKUA_E_CLOSED));
    }
}

/* A yield and a close in one step. */
TEST(read_that_is_yielded_before_a_close_says_closed)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(reads_some(1, wire.socket, 10), awaits_hangup(2, wire.socket),
                           closes(wire.socket), awaits(2)));
        assert_then_saw_in_any_order(wire.actor, failure(1, SKUA_E_CLOSED),
                                     failure(2, SKUA_E_CLOSED));
    }
}

/* ---- all at once: yields of every kind, and ends of every kind, at random ---- */

static struct act random_yield(uint64_t *seed, uint64_t tag, const struct wire *wire)
{
    const uint64_t limit = seed_next(seed) % 3 == 0 ? seed_next(seed) % 200000 : SKUA_FOREVER;
    struct act act;
    switch (seed_next(seed) % 6) {
    case 0:
        act = reads_some(tag, wire->socket, 1 + seed_next(seed) % 5000);
        break;
    case 1:
        act = reads_exactly(tag, wire->socket, 1 + seed_next(seed) % 100000);
        break;
    case 2:
        act = reads_line(tag, wire->socket, "\n", 1 + seed_next(seed) % 5000);
        break;
    case 3:
        act = awaits_hangup(tag, wire->socket);
        break;
    default:
        act = writes_pattern(tag, wire->socket, 0, seed_next(seed) % 50000);
        break;
    }
    return limit != SKUA_FOREVER ? within(limit, act) : act;
}

static void end_somehow(uint64_t *seed, const struct wire *wire)
{
    switch (seed_next(seed) % 6) {
    case 0:
        actor_tell(wire->actor, ACTS(closes(wire->socket)));
        break;
    case 1:
        actor_tell(wire->actor, ACTS(fails(SKUA_E_USER)));
        break;
    case 2:
        actor_tell(wire->actor, ACTS(finishes(0)));
        break;
    case 3:
        assert_int_equal(world_terminate(wire->actor->pid), 0);
        break;
    case 4:
        actor_tell(wire->actor, ACTS(shuts_down(wire->socket)));
        break;
    default:
        break; /* the peer does */
    }
}

/* Some bytes, unless the other end has given up already: it may be done with its patience. */
static void peer_tries_to_send(int peer, size_t size)
{
    static const char bytes[10000];
    (void)!send(peer, bytes, size, MSG_NOSIGNAL);
}

#define YIELDS 6

TEST(sockets_end_at_any_moment_with_yields_of_every_kind_open)
{
    uint64_t seed = seed_choose();
    wires_begin();
    for (unsigned round = 0; round < EFFORT(600); round++) {
        const struct wire wire = wire_open(wire_kinds[round % 2]);
        struct act acts[YIELDS + 1];
        for (size_t i = 0; i < YIELDS; i++) {
            acts[i] = random_yield(&seed, i, &wire);
        }
        acts[YIELDS] = sets(wire.socket, SKUA_SOCKET_PROGRESS, SKUA_MILLISECOND);
        actor_tell(wire.actor, script_copy(acts, COUNT_OF(acts)));
        if (seed_next(&seed) % 2 == 0) {
            peer_tries_to_send(wire.peer, 1 + seed_next(&seed) % 10000);
        }
        end_somehow(&seed, &wire);
        if (seed_next(&seed) % 2 == 0) {
            peer_resets(wire.peer);
        } else {
            fd_close(wire.peer);
        }
    }
    world_close();
}
