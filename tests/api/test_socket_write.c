/* SPDX-License-Identifier: MIT */
/* Writing: order, limits, and peers that do not read. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "effort.h"
#include "wire.h"

#define LONG_TIMEOUT (600 * SKUA_SECOND)  /* one that never passes */
#define MANY         (UINT64_C(64) << 20) /* more than any buffer of the system */

/* ---- what arrives ---- */

TEST(what_is_written_arrives)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "hello"), expects(failure(1, 0)),
                                       within(LONG_TIMEOUT, writes_text(2, wire.socket, " again")),
                                       expects(failure(2, 0))));
        assert_peer_gets(wire.peer, "hello again");
        assert_int_equal(snapshot_of(wire.actor, wire.socket).bytes_out, 11);
    }
}

TEST(writes_of_one_step_leave_together_and_in_order)
{
    enum { WRITES = 50 };
    files_must_come_back();
    need_loopback();
    world_create((skua_runtime_config){0});
    struct meddler *meddler = meddler_install();
    world_start();
    const struct wire wire = wire_open(WIRE_TCP);
    struct act acts[2 * WRITES];
    for (size_t i = 0; i < WRITES; i++) {
        acts[i] = writes_pattern(i, wire.socket, 100 * i, 100);
        acts[WRITES + i] = expects(failure(i, 0));
    }
    actor_perform(wire.actor, script_copy(acts, COUNT_OF(acts)));
    assert_peer_gets_pattern(wire.peer, 0, (size_t)100 * WRITES);
    if (!test_has_tasks()) { /* whose writes leave one by one */
        assert_int_equal(meddler->writes, 1);
        assert_int_equal(meddler->most_pieces, WRITES);
    }
}

/* More than the system takes at once. */
TEST(very_many_writes_of_one_step_arrive_in_order)
{
    enum { WRITES = 2000 };
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        struct act acts[2 * WRITES];
        for (size_t i = 0; i < WRITES; i++) {
            acts[i] = writes_pattern(i, wire.socket, 100 * i, 100);
            acts[WRITES + i] = expects(failure(i, 0));
        }
        actor_tell(wire.actor, script_copy(acts, COUNT_OF(acts)));
        assert_peer_gets_pattern(wire.peer, 0, (size_t)100 * WRITES);
        actor_await_seen(wire.actor, WRITES);
    }
}

TEST(writes_go_on_where_the_system_has_stopped)
{
    static const size_t mosts[] = {1, 7, 100, 4096};
    FOR_ROWS (most, mosts) {
        files_must_come_back();
        world_create((skua_runtime_config){0});
        struct meddler *meddler = meddler_install();
        meddler->write_most = *most;
        world_start();
        const struct wire wire = wire_open(WIRE_UNIX);
        actor_tell(wire.actor,
                   ACTS(writes_pattern(1, wire.socket, 0, 10), writes_text(2, wire.socket, ""),
                        writes_pattern(3, wire.socket, 10, 2000),
                        writes_pattern(4, wire.socket, 2010, 1), expects(failure(1, 0)),
                        expects(failure(2, 0)), expects(failure(3, 0)), expects(failure(4, 0))));
        /* The rest leaves when the system has room: it always has. */
        assert_peer_gets_pattern(wire.peer, 0, 2011);
        actor_await_seen(wire.actor, 4);
    }
}

TEST(empty_write_completes)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, ""), expects(failure(1, 0)),
                                       writes_payload(2, wire.socket, skua_payload_empty(0)),
                                       expects(failure(2, 0)), writes_text(3, wire.socket, "x"),
                                       expects(failure(3, 0))));
        assert_peer_gets(wire.peer, "x");
    }
}

/* ---- payloads ---- */

TEST(payload_of_every_kind_is_written_and_dropped)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct tracked owned = {.value = 7};
    skua_payload shared;
    skua_payload another;
    assert_int_equal(skua_payload_shared(world_runtime(), 0, "shared by many, long enough to be so",
                                         36, &shared),
                     0);
    assert_int_equal(skua_payload_ref(&shared, &another), 0);
    actor_perform(
        wire.actor,
        ACTS(writes_payload(1, wire.socket, skua_payload_u64(0, UINT64_C(0x6867666564636261))),
             writes_payload(2, wire.socket, tracked_payload(0, &owned)),
             writes_payload(3, wire.socket, another), writes_payload(4, wire.socket, shared),
             expects(failure(1, 0)), expects(failure(2, 0)), expects(failure(3, 0)),
             expects(failure(4, 0))));
    assert_peer_gets(wire.peer, "abcdefgh");
    char bytes[sizeof owned];
    assert_int_equal(recv(wire.peer, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
    assert_peer_gets(wire.peer,
                     "shared by many, long enough to be soshared by many, long enough to "
                     "be so");
    assert_drops(&owned, 1, 1);
}

static int refuse_pointer(struct turn *turn, const struct act *act)
{
    const struct wire *wire = act->arg;
    return skua_yield_write(turn->ctx, 1, *wire->socket, skua_payload_pointer(0, turn->actor, NULL),
                            SKUA_FOREVER);
}

TEST(payload_that_is_refused_is_dropped)
{
    wires_begin_with((skua_runtime_config){.payload_limit = 1000});
    struct wire wire = wire_open(WIRE_UNIX);
    struct tracked items[3] = {{0}};
    const skua_socket nobody = {0};
    actor_perform(
        wire.actor,
        ACTS(refused(does(refuse_pointer, &wire), SKUA_E_PAYLOAD_TYPE),
             refused(writes_payload(1, wire.socket, tracked_oversized(1000, &items[0])),
                     SKUA_E_PAYLOAD_SIZE),
             refused(writes_payload(1, &nobody, tracked_payload(0, &items[1])), SKUA_E_SOCKET),
             shuts_down(wire.socket),
             refused(writes_payload(1, wire.socket, tracked_payload(0, &items[2])),
                     SKUA_E_SHUT_DOWN)));
    assert_drops(items, COUNT_OF(items), 1);
}

/* ---- limits ---- */

/* Fills what the system takes, so that whatever is written next stays queued. */
static void plug(const struct wire *wire)
{
    actor_perform(wire->actor, ACTS(sets(wire->socket, SKUA_SOCKET_WRITE_LIMIT, UINT32_MAX),
                                    writes_pattern(99, wire->socket, 0, MANY / 8)));
    const skua_socket_snapshot snapshot = snapshot_of(wire->actor, wire->socket);
    assert_true(snapshot.queued > 0);
}

/* On a Unix socket, whose buffers do not grow. */
TEST(queue_is_full_exactly_at_its_limit)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    plug(&wire);
    const uint64_t queued = snapshot_of(wire.actor, wire.socket).queued;
    actor_perform(wire.actor,
                  ACTS(sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, queued + 100),
                       refused(writes_pattern(1, wire.socket, 0, 101), SKUA_E_SOCKET_FULL),
                       writes_pattern(2, wire.socket, 0, 60),
                       refused(writes_pattern(3, wire.socket, 0, 41), SKUA_E_SOCKET_FULL),
                       writes_pattern(4, wire.socket, 60, 40),
                       refused(writes_pattern(5, wire.socket, 0, 1), SKUA_E_SOCKET_FULL),
                       writes_text(6, wire.socket, "")));
    assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, queued + 100);
    assert_peer_gets_pattern(wire.peer, 0, MANY / 8);
    assert_peer_gets_pattern(wire.peer, 0, 100);
    actor_await_seen(wire.actor, 4);
    actor_await_state(wire.actor, SKUA_PROCESS_IDLE);
    assert_saw(wire.actor, failure(99, 0), failure(2, 0), failure(4, 0), failure(6, 0));
    assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, 0);
}

/* The limit also counts what this very step writes; the default is a MiB. */
TEST(writes_of_one_step_count_against_the_limit)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor,
                  ACTS(writes_pattern(1, wire.socket, 0, 1 << 19),
                       writes_pattern(2, wire.socket, 1 << 19, 1 << 19),
                       refused(writes_pattern(3, wire.socket, 0, 1), SKUA_E_SOCKET_FULL)));
    assert_peer_gets_pattern(wire.peer, 0, 1 << 20);
    actor_await_seen(wire.actor, 2);
}

TEST(payload_larger_than_the_limit_is_taken_alone)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, 10),
                           writes_pattern(1, wire.socket, 0, 3000000),
                           refused(writes_pattern(2, wire.socket, 0, 1), SKUA_E_SOCKET_FULL)));
        assert_peer_gets_pattern(wire.peer, 0, 3000000);
        actor_await_seen(wire.actor, 1);
    }
}

/* ---- writes that nothing completes ---- */

TEST(write_without_a_completion_arrives_in_its_place)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(tells(wire.socket, "one "), writes_text(1, wire.socket, "two "),
                           tells(wire.socket, "three "), expects(failure(1, 0)),
                           tells(wire.socket, "four"), continues(1), shuts_down(wire.socket),
                           refused(tells(wire.socket, "x"), SKUA_E_SHUT_DOWN)));
        assert_peer_gets(wire.peer, "one two three four");
        assert_peer_at_end(wire.peer);
        assert_saw(wire.actor, failure(1, 0));
    }
}

TEST(write_without_a_completion_counts_against_the_limit)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    struct tracked items[2] = {{0}};
    actor_perform(
        wire.actor,
        ACTS(tells_pattern(wire.socket, 0, 8000000),
             refused(tells_payload(wire.socket, tracked_payload(0, &items[0])), SKUA_E_SOCKET_FULL),
             continues(1),
             refused(tells_payload(wire.socket, tracked_payload(0, &items[1])),
                     SKUA_E_SOCKET_FULL)));
    assert_drops(items, COUNT_OF(items), 1);
    assert_peer_gets_pattern(wire.peer, 0, 8000000);
    assert_saw_nothing(wire.actor);
}

TEST(write_without_a_completion_is_the_last_word_of_a_process)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor, ACTS(tells_pattern(wire.socket, 0, 5000000), finishes(0)));
        assert_peer_gets_pattern(wire.peer, 0, 5000000);
        assert_peer_at_end(wire.peer);
        actor_await_end(wire.actor);
    }
}

TEST(write_without_a_completion_fails_in_silence_and_the_next_read_tells)
{
    const struct wire wire = wire_open(WIRE_TCP);
    struct tracked item = {0};
    actor_tell(wire.actor, ACTS(reads_some(1, wire.socket, 9), expects(failure(1, SKUA_E_RESET))));
    actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
    peer_resets(wire.peer);
    actor_perform(wire.actor,
                  ACTS(tells_payload(wire.socket, tracked_payload(0, &item)), continues(1),
                       reads_some(2, wire.socket, 9), expects(failure(2, SKUA_E_RESET))));
    assert_drops(&item, 1, 1);
    assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, 0);
}

/* ---- peers that do not read ---- */

TEST(write_that_times_out_still_leaves_in_its_place)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        plug(&wire);
        actor_perform(wire.actor,
                      ACTS(within(SKUA_MILLISECOND, writes_text(1, wire.socket, "one")),
                           expects(failure(1, SKUA_E_TIMEOUT)), writes_text(2, wire.socket, "two"),
                           continues(1), cancels(2), expects(failure(2, SKUA_E_CANCELLED)),
                           writes_text(3, wire.socket, "three")));
        assert_peer_gets_pattern(wire.peer, 0, MANY / 8);
        assert_peer_gets(wire.peer, "onetwothree");
        actor_await_seen(wire.actor, 4);
        assert_saw(wire.actor, failure(1, SKUA_E_TIMEOUT), failure(2, SKUA_E_CANCELLED),
                   failure(99, 0), failure(3, 0));
    }
}

TEST(peer_that_takes_nothing_is_given_up)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(sets(wire.socket, SKUA_SOCKET_PROGRESS, 20 * SKUA_MILLISECOND),
                           sets(wire.socket, SKUA_SOCKET_WRITE_LIMIT, UINT32_MAX),
                           awaits_hangup(8, wire.socket), reads_some(9, wire.socket, 10),
                           writes_pattern(1, wire.socket, 0, MANY), writes_text(2, wire.socket, ""),
                           awaits(4)));
        assert_then_saw_in_any_order(wire.actor, failure(1, SKUA_E_NO_PROGRESS),
                                     failure(2, SKUA_E_NO_PROGRESS), failure(8, SKUA_E_NO_PROGRESS),
                                     failure(9, SKUA_E_NO_PROGRESS));
        actor_perform(wire.actor,
                      ACTS(writes_text(3, wire.socket, "x"),
                           expects(failure(3, SKUA_E_NO_PROGRESS)), reads_some(4, wire.socket, 1),
                           expects(failure(4, SKUA_E_NO_PROGRESS)), awaits_hangup(5, wire.socket),
                           expects(failure(5, SKUA_E_NO_PROGRESS))));
        assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, 0);
    }
}

/* Shortened while something is queued already. */
TEST(patience_can_be_shortened_while_the_peer_takes_nothing)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(writes_pattern(1, wire.socket, 0, MANY), continues(1),
                                   sets(wire.socket, SKUA_SOCKET_PROGRESS, SKUA_MILLISECOND),
                                   expects(failure(1, SKUA_E_NO_PROGRESS))));
}

TEST(slow_reader_holds_up_nobody_else)
{
    wires_begin_with((skua_runtime_config){.worker_count = 1});
    const struct wire slow = wire_open(WIRE_UNIX);
    const struct wire fast = wire_open(WIRE_UNIX);
    plug(&slow);
    for (int i = 0; i < 100; i++) {
        actor_perform(fast.actor,
                      ACTS(writes_text(1, fast.socket, "ping"), expects(failure(1, 0))));
        assert_peer_gets(fast.peer, "ping");
    }
    assert_peer_gets_pattern(slow.peer, 0, MANY / 8);
    actor_await_seen(slow.actor, 1);
}

/* A peer that reads a little now and then is not given up. */
TEST(peer_that_reads_slowly_gets_everything)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor,
                   ACTS(writes_pattern(1, wire.socket, 0, 5000000), expects(failure(1, 0))));
        for (uint64_t at = 0; at < 5000000; at += 10000) {
            assert_peer_gets_pattern(wire.peer, at, 10000);
        }
        actor_await_seen(wire.actor, 1);
    }
}

/* ---- peers that are gone ---- */

static atomic_uint pipe_signals;

static void count_pipe_signal(int signal)
{
    (void)signal;
    (void)atomic_fetch_add(&pipe_signals, 1);
}

TEST(write_to_a_peer_that_is_gone_is_reset_and_raises_no_signal)
{
    struct sigaction before;
    const struct sigaction counts = {.sa_handler = count_pipe_signal};
    assert_int_equal(sigaction(SIGPIPE, &counts, &before), 0);
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        fd_close(wire.peer);
        /* The first write may still be taken; the answer to it says that nobody is there. */
        actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "x"), awaits(1),
                                       awaits_hangup(2, wire.socket), awaits(1)));
        int error = 0;
        for (uint64_t i = 3; error == 0; i++) {
            actor_perform(wire.actor, ACTS(writes_text(i, wire.socket, "x"),
                                           writes_text(i, wire.socket, "y"), awaits(2)));
            error = wire.actor->seen[wire.actor->seen_count - 1].error;
        }
        assert_int_equal(error, SKUA_E_RESET);
        assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, 0);
    }
    assert_int_equal(pipe_signals, 0);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
}

/* The first write waits for the last of its step; meanwhile the read finds out. */
TEST(writes_around_a_read_that_fails_end_as_well)
{
    const struct wire wire = wire_open(WIRE_TCP);
    peer_resets(wire.peer);
    actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "x"), reads_some(2, wire.socket, 10),
                                   writes_text(3, wire.socket, "y"), awaits(3)));
    assert_then_saw_in_any_order(wire.actor, failure(1, SKUA_E_RESET), failure(2, SKUA_E_RESET),
                                 failure(3, SKUA_E_RESET));
    assert_int_equal(snapshot_of(wire.actor, wire.socket).queued, 0);
}

TEST(writes_that_wait_end_when_the_peer_breaks_off)
{
    const struct wire wire = wire_open(WIRE_TCP);
    plug(&wire);
    actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "x"), awaits_hangup(2, wire.socket),
                                   reads_some(3, wire.socket, 9)));
    peer_resets(wire.peer);
    actor_await_seen(wire.actor, 4);
    assert_then_saw_in_any_order(wire.actor, failure(99, SKUA_E_RESET), failure(1, SKUA_E_RESET),
                                 failure(2, SKUA_E_RESET), failure(3, SKUA_E_RESET));
}

/* Both directions at once, with much data: nobody waits for ever. */
TEST(both_directions_flow_at_once)
{
    enum { BYTES = 4000000 };
    wires_begin();
    const struct ends ends = wire_ends(WIRE_TCP);
    struct actor *actors[2];
    const int fds[2] = {ends.near, ends.far};
    for (int i = 0; i < 2; i++) {
        skua_socket *place = socket_new();
        actors[i] = actor_start(NO_ACTS);
        actor_perform(actors[i], ACTS(adopts(place, fds[i])));
        fd_disown(fds[i]);
        actor_tell(actors[i], ACTS(reads_exactly(1, place, BYTES),
                                   writes_pattern(2, place, (uint64_t)i * 1000, BYTES), awaits(2)));
    }
    for (int i = 0; i < 2; i++) {
        actor_await_seen(actors[i], 2);
        actor_await_state(actors[i], SKUA_PROCESS_IDLE);
        assert_then_saw_in_any_order(actors[i], failure(2, 0),
                                     received_pattern(1, (uint64_t)(1 - i) * 1000, BYTES));
    }
}
