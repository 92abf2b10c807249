/* SPDX-License-Identifier: MIT */
/* Reading: what comes in which portions, and what is kept for later. */
#include <stdio.h>
#include <sys/socket.h>

#include "wire.h"

#define LONG_TIMEOUT (600 * SKUA_SECOND) /* one that never passes */
#define READ         1

TEST(read_gets_what_there_is)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "hello");
        actor_perform(wire.actor,
                      ACTS(reads_some(READ, wire.socket, 100), expects(received(READ, "hello"))));
    }
}

TEST(read_waits_for_data)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor,
                   ACTS(reads_some(READ, wire.socket, 100), expects(received(READ, "later"))));
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        peer_sends(wire.peer, "later");
        actor_await_seen(wire.actor, 1);
    }
}

TEST(read_gets_at_most_what_it_asks_for)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "abcdef");
        actor_perform(wire.actor,
                      ACTS(reads_some(READ, wire.socket, 2), expects(received(READ, "ab")),
                           reads_some(READ, wire.socket, 3), expects(received(READ, "cde")),
                           reads_some(READ, wire.socket, 9), expects(received(READ, "f"))));
    }
}

/* ---- split at every byte ---- */

/* The peer sends the text in two parts, the second one when the first was seen to have been
 * read. */
static void send_split(const struct wire *wire, const char *text, size_t at)
{
    char first[64];
    memcpy(first, text, at);
    first[at] = '\0';
    if (at > 0) {
        peer_sends(wire->peer, first);
        let_poller_catch_up();
        actor_await_state(wire->actor, SKUA_PROCESS_BLOCKED);
    }
    peer_sends(wire->peer, text + at);
}

TEST(line_may_be_split_anywhere)
{
    static const char text[] = "one\r\ntwo\rthree\r\n\r\nrest";
    FOR_ROWS (kind, wire_kinds) {
        for (size_t at = 0; at < strlen(text); at++) {
            const struct wire wire = wire_open(*kind);
            actor_tell(wire.actor,
                       ACTS(reads_line(1, wire.socket, "\r\n", 100),
                            expects(received(1, "one\r\n")),
                            reads_line(2, wire.socket, "\r\n\r\n", 100),
                            expects(received(2, "two\rthree\r\n\r\n")),
                            reads_exactly(3, wire.socket, 4), expects(received(3, "rest"))));
            send_split(&wire, text, at);
            actor_await_seen(wire.actor, 3);
            fd_close(wire.peer);
        }
    }
}

TEST(exact_read_may_be_split_anywhere)
{
    static const char text[] = "0123456789abcdef";
    FOR_ROWS (kind, wire_kinds) {
        for (size_t at = 0; at < strlen(text); at++) {
            const struct wire wire = wire_open(*kind);
            actor_tell(wire.actor,
                       ACTS(reads_exactly(1, wire.socket, 5), expects(received(1, "01234")),
                            reads_exactly(2, wire.socket, 1), expects(received(2, "5")),
                            within(LONG_TIMEOUT, reads_exactly(3, wire.socket, 10)),
                            expects(received(3, "6789abcdef"))));
            send_split(&wire, text, at);
            actor_await_seen(wire.actor, 3);
            fd_close(wire.peer);
        }
    }
}

/* Every delimiter of up to four bytes, in data that comes byte by byte and nearly has it often. */
TEST(delimiter_is_found_in_bytes_that_come_one_by_one)
{
    static const struct {
        const char *delimiter;
        const char *first;
        const char *second;
    } rows[] = {{"\n", "a\n", "b\n"},
                {"ab", "aaab", "ab"},
                {"aab", "abaaaab", "aab"},
                {"aaba", "abaaaba", "aaba"},
                {"\r\n\r\n", "\r\n\r\r\n\r\n", "\r\n\n\r\n\r\n"}};
    FOR_ROWS (row, rows) {
        const struct wire wire = wire_open(WIRE_UNIX);
        char text[64];
        (void)snprintf(text, sizeof text, "%s%s", row->first, row->second);
        actor_tell(wire.actor, ACTS(reads_line(1, wire.socket, row->delimiter, 50),
                                    expects(received(1, row->first)),
                                    reads_line(2, wire.socket, row->delimiter, 50),
                                    expects(received(2, row->second))));
        for (size_t i = 0; text[i] != '\0'; i++) {
            peer_sends(wire.peer, (char[]){text[i], '\0'});
            let_poller_catch_up();
            actor_await_state(wire.actor,
                              text[i + 1] != '\0' ? SKUA_PROCESS_BLOCKED : SKUA_PROCESS_IDLE);
        }
        assert_saw(wire.actor, received(1, row->first), received(2, row->second));
    }
}

/* A rest that is shorter than the next delimiter, in the middle of a buffer that moves. */
TEST(short_rest_of_a_line_is_looked_through_with_what_follows)
{
    for (size_t rest = 0; rest < 4; rest++) {
        const struct wire wire = wire_open(WIRE_UNIX);
        char text[5000];
        memset(text, 'x', sizeof text);
        text[4990] = '\0';
        peer_sends(wire.peer, "1234567\n");
        peer_sends(wire.peer, (const char *[]){"", "\r", "\r\n", "\r\n\r"}[rest]);
        actor_tell(wire.actor,
                   ACTS(reads_exactly(1, wire.socket, 8), expects(received(1, "1234567\n")),
                        reads_line(2, wire.socket, "\r\n\r\n", 10000), awaits(1)));
        actor_await_seen(wire.actor, 1);
        let_poller_catch_up();
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        peer_sends(wire.peer, text);
        peer_sends(wire.peer, "\r\n\r\n");
        actor_await_seen(wire.actor, 2);
        actor_await_state(wire.actor, SKUA_PROCESS_IDLE);
        assert_int_equal(wire.actor->seen[1].size, 4990 + 4 + rest);
    }
}

/* ---- urgent data ---- */

static void peer_sends_urgently(int peer, const char *text)
{
    assert_int_equal(send(peer, text, strlen(text), MSG_OOB), strlen(text));
}

/* The system ends a read in front of the last byte of urgent data, which is none of the stream's;
 * more may be behind it. All of this has come, and was reported, before the first of the reads. */
TEST(data_behind_urgent_data_is_read)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor, ACTS(reads_some(1, wire.socket, 100), expects(received(1, "zero"))));
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        peer_sends(wire.peer, "zero");
        actor_await_seen(wire.actor, 1);
        peer_sends(wire.peer, "one");
        peer_sends_urgently(wire.peer, "!");
        peer_sends(wire.peer, "two");
        peer_sends(wire.peer, "three");
        let_poller_catch_up();
        actor_perform(wire.actor,
                      ACTS(reads_some(2, wire.socket, 100), expects(received(2, "one")),
                           reads_exactly(3, wire.socket, 8), expects(received(3, "twothree"))));
        peer_sends(wire.peer, "four");
        actor_perform(wire.actor,
                      ACTS(reads_some(4, wire.socket, 100), expects(received(4, "four"))));
    }
}

TEST(line_may_have_urgent_data_in_it)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor,
               ACTS(reads_line(1, wire.socket, "\n", 100), expects(received(1, "zero\n")),
                    reads_line(2, wire.socket, "\n", 100), expects(received(2, "one, two\n")),
                    reads_some(3, wire.socket, 100), expects(received(3, ""))));
    actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
    peer_sends(wire.peer, "zero\none,");
    peer_sends_urgently(wire.peer, "!");
    peer_sends(wire.peer, " two\n");
    fd_close(wire.peer);
    actor_await_seen(wire.actor, 3);
}

/* ---- sizes ---- */

TEST(payloads_of_all_sizes_are_read_exactly)
{
    static const size_t sizes[] = {1,     24,    25,    1023,  1024,   1025,   4096,   16383,
                                   16384, 65535, 65536, 65537, 262144, 262145, 1000000};
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        uint64_t at = 0;
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            actor_tell(wire.actor, ACTS(reads_exactly(i, wire.socket, sizes[i]),
                                        expects(received_pattern(i, at, sizes[i]))));
            peer_sends_pattern(wire.peer, at, sizes[i]);
            actor_await_seen(wire.actor, i + 1);
            at += sizes[i];
        }
    }
}

/* All that has come before is there when the reads come: frames and rests of all sizes. */
TEST(frames_that_came_together_are_read_one_by_one)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        uint64_t at = 0;
        peer_sends_pattern(wire.peer, 0, 100000);
        for (size_t i = 0, size = 1; at + size <= 100000; i++, size = (size * 7 + 3) % 9000 + 1) {
            actor_perform(wire.actor, ACTS(reads_exactly(i, wire.socket, size),
                                           expects(received_pattern(i, at, size))));
            at += size;
        }
    }
}

TEST(read_gets_at_most_64_kib)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor, ACTS(reads_exactly(1, wire.socket, 1), awaits(1)));
    peer_sends_pattern(wire.peer, 0, 300000);
    actor_await_seen(wire.actor, 1);
    actor_perform(wire.actor, ACTS(reads_some(2, wire.socket, SIZE_MAX), awaits(1)));
    assert_in_range(wire.actor->seen[1].size, 1, SKUA_READ_MAX);
}

/* ---- limits ---- */

TEST(line_of_the_limit_is_a_line)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "12345\n");
        actor_perform(wire.actor, ACTS(reads_line(READ, wire.socket, "\n", 6),
                                       expects(received(READ, "12345\n"))));
    }
}

TEST(line_over_the_limit_is_too_long_and_can_be_read_otherwise)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "12345\n678\n");
        actor_perform(
            wire.actor,
            ACTS(reads_line(1, wire.socket, "\n", 5), expects(failure(1, SKUA_E_TOO_LONG)),
                 reads_line(2, wire.socket, "\n", 5), expects(failure(2, SKUA_E_TOO_LONG)),
                 reads_line(3, wire.socket, "\n", 6), expects(received(3, "12345\n")),
                 reads_some(4, wire.socket, 100), expects(received(4, "678\n"))));
    }
}

/* What a read has got and could not deliver is this socket's, and no other's. */
TEST(line_that_is_too_long_does_not_get_into_other_connections)
{
    wires_begin_with((skua_runtime_config){.worker_count = 1});
    const struct wire one = wire_open(WIRE_UNIX);
    const struct wire other = wire_open(WIRE_UNIX);
    peer_sends(one.peer, "a secret that is too long");
    actor_perform(one.actor,
                  ACTS(reads_line(1, one.socket, "\n", 10), expects(failure(1, SKUA_E_TOO_LONG))));
    peer_sends(other.peer, "a line\n");
    actor_perform(other.actor,
                  ACTS(reads_line(1, other.socket, "\n", 10), expects(received(1, "a line\n"))));
    actor_perform(one.actor, ACTS(reads_some(2, one.socket, 100),
                                  expects(received(2, "a secret that is too long"))));
}

TEST(line_that_grows_past_the_limit_while_it_is_waited_for_is_too_long)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor,
                   ACTS(reads_line(1, wire.socket, "\n", 5), expects(failure(1, SKUA_E_TOO_LONG)),
                        reads_exactly(2, wire.socket, 5), expects(received(2, "abcde"))));
        peer_sends(wire.peer, "abc");
        let_poller_catch_up();
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        peer_sends(wire.peer, "de");
        actor_await_seen(wire.actor, 2);
    }
}

TEST(read_of_more_than_a_payload_may_have_is_refused)
{
    wires_begin_with((skua_runtime_config){.payload_limit = 1000});
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor,
                  ACTS(refused(reads_exactly(1, wire.socket, 1001), SKUA_E_PAYLOAD_SIZE),
                       refused(reads_line(1, wire.socket, "\n", 1001), SKUA_E_PAYLOAD_SIZE)));
    peer_sends_pattern(wire.peer, 0, 3000);
    actor_perform(wire.actor,
                  ACTS(reads_exactly(1, wire.socket, 1000), expects(received_pattern(1, 0, 1000)),
                       reads_some(2, wire.socket, 5000), awaits(1)));
    assert_in_range(wire.actor->seen[1].size, 1, 1000);
}

/* ---- the end of input ---- */

TEST(end_of_input_is_an_empty_payload_again_and_again)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        fd_close(wire.peer);
        actor_perform(wire.actor,
                      ACTS(reads_some(1, wire.socket, 100), expects(received(1, "")),
                           reads_exactly(2, wire.socket, 5), expects(received(2, "")),
                           reads_line(3, wire.socket, "\n", 5), expects(received(3, ""))));
    }
}

TEST(end_of_input_comes_after_the_data)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "last");
        fd_close(wire.peer);
        actor_perform(wire.actor,
                      ACTS(reads_some(1, wire.socket, 100), expects(received(1, "last")),
                           reads_some(2, wire.socket, 100), expects(received(2, ""))));
    }
}

TEST(end_of_input_is_waited_for)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor, ACTS(reads_some(1, wire.socket, 100), expects(received(1, ""))));
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        fd_close(wire.peer);
        actor_await_seen(wire.actor, 1);
    }
}

TEST(rest_that_is_no_line_or_too_short_comes_at_the_end)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_tell(wire.actor,
                   ACTS(reads_line(1, wire.socket, "\n", 100), expects(received(1, "a\n")),
                        reads_line(2, wire.socket, "\n", 100), expects(received(2, "rest")),
                        reads_line(3, wire.socket, "\n", 100), expects(received(3, ""))));
        peer_sends(wire.peer, "a\nrest");
        fd_close(wire.peer);
        actor_await_seen(wire.actor, 3);
        const struct wire exact = wire_open(*kind);
        actor_tell(exact.actor, ACTS(reads_exactly(1, exact.socket, 3), expects(received(1, "abc")),
                                     reads_exactly(2, exact.socket, 3), expects(received(2, "de")),
                                     reads_exactly(3, exact.socket, 3), expects(received(3, ""))));
        peer_sends(exact.peer, "abcde");
        fd_close(exact.peer);
        actor_await_seen(exact.actor, 3);
    }
}

/* ---- reads that end otherwise ---- */

TEST(data_is_kept_for_the_next_read_when_one_has_timed_out)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "half a ");
        actor_perform(wire.actor,
                      ACTS(within(SKUA_MILLISECOND, reads_line(1, wire.socket, "\n", 50)),
                           expects(failure(1, SKUA_E_TIMEOUT)),
                           within(0, reads_exactly(2, wire.socket, 20)),
                           expects(failure(2, SKUA_E_TIMEOUT))));
        peer_sends(wire.peer, "line\nmore");
        actor_perform(wire.actor,
                      ACTS(reads_line(3, wire.socket, "\n", 50),
                           expects(received(3, "half a line\n")), reads_exactly(4, wire.socket, 4),
                           expects(received(4, "more"))));
    }
}

TEST(data_is_kept_for_the_next_read_when_one_was_taken_back)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "half a ");
        actor_perform(wire.actor, ACTS(reads_line(1, wire.socket, "\n", 50), continues(1),
                                       cancels(1), expects(failure(1, SKUA_E_CANCELLED))));
        peer_sends(wire.peer, "line\n");
        actor_perform(wire.actor, ACTS(reads_line(2, wire.socket, "\n", 50),
                                       expects(received(2, "half a line\n"))));
    }
}

TEST(data_that_comes_after_a_read_has_timed_out_waits_for_the_next)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(within(SKUA_MILLISECOND, reads_some(1, wire.socket, 50)),
                                       expects(failure(1, SKUA_E_TIMEOUT))));
        peer_sends(wire.peer, "late");
        let_poller_catch_up();
        actor_perform(wire.actor,
                      ACTS(reads_some(2, wire.socket, 50), expects(received(2, "late"))));
    }
}

/* Nothing is lost or doubled where data races with the end of the read's time. */
TEST(no_byte_is_lost_or_doubled_when_data_races_with_time_outs)
{
    enum { BYTES = 2000 };
    const struct wire wire = wire_open(WIRE_UNIX);
    size_t got = 0;
    for (size_t sent = 0; sent < BYTES; sent++) {
        actor_tell(wire.actor,
                   ACTS(within((sent % 50) * 2000, reads_some(7, wire.socket, 5000)), awaits(1)));
        peer_sends_pattern(wire.peer, sent, 1);
        actor_await_seen(wire.actor, sent + 1);
        const struct seen *seen = &wire.actor->seen[sent];
        assert_true(seen->error == 0 || seen->error == SKUA_E_TIMEOUT);
        if (seen->error == 0) {
            const struct seen expected = received_pattern(7, got, seen->size);
            assert_true(seen_matches(seen, &expected));
        }
        got += seen->size;
    }
    if (got < BYTES) {
        actor_perform(wire.actor, ACTS(reads_exactly(8, wire.socket, BYTES - got),
                                       expects(received_pattern(8, got, BYTES - got))));
    }
    assert_int_equal(snapshot_of(wire.actor, wire.socket).buffered, 0);
}

TEST(second_read_is_refused_while_one_is_open)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(reads_some(1, wire.socket, 100), reads_some(2, wire.socket, 100),
                           expects(failure(2, SKUA_E_SOCKET_BUSY)),
                           reads_exactly(3, wire.socket, 100),
                           expects(failure(3, SKUA_E_SOCKET_BUSY))));
        peer_sends(wire.peer, "for the first");
        actor_await_seen(wire.actor, 3);
        actor_perform(wire.actor, ACTS(within(0, reads_some(4, wire.socket, 100)), awaits(1)));
        assert_saw(wire.actor, failure(2, SKUA_E_SOCKET_BUSY), failure(3, SKUA_E_SOCKET_BUSY),
                   received(1, "for the first"), failure(4, SKUA_E_TIMEOUT));
    }
}

TEST(read_of_a_connection_that_the_peer_has_broken_off_is_reset)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor,
               ACTS(reads_some(1, wire.socket, 100), expects(failure(1, SKUA_E_RESET)),
                    reads_some(2, wire.socket, 100), expects(failure(2, SKUA_E_RESET))));
    actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
    peer_resets(wire.peer);
    actor_await_seen(wire.actor, 2);
}

/* What has arrived in whole before the connection broke is still there. */
TEST(what_came_before_the_reset_can_be_read)
{
    const struct wire wire = wire_open(WIRE_TCP);
    peer_sends(wire.peer, "one\ntwo\n");
    actor_perform(wire.actor,
                  ACTS(reads_line(1, wire.socket, "\n", 100), expects(received(1, "one\n"))));
    peer_resets(wire.peer);
    let_poller_catch_up();
    actor_perform(wire.actor,
                  ACTS(writes_text(2, wire.socket, "to nobody"), expects(failure(2, SKUA_E_RESET)),
                       reads_line(3, wire.socket, "\n", 100), expects(received(3, "two\n")),
                       reads_line(4, wire.socket, "\n", 100), expects(failure(4, SKUA_E_RESET))));
}

/* ---- hang-up ---- */

TEST(hangup_is_noticed_though_nobody_reads)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        peer_sends(wire.peer, "unread");
        actor_tell(wire.actor, ACTS(awaits_hangup(1, wire.socket), expects(failure(1, 0)),
                                    awaits_hangup(2, wire.socket), expects(failure(2, 0)),
                                    reads_some(3, wire.socket, 100), expects(received(3, "unread")),
                                    reads_some(4, wire.socket, 100), expects(received(4, ""))));
        actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
        fd_close(wire.peer);
        actor_await_seen(wire.actor, 4);
    }
}

TEST(hangup_of_a_reset_connection_says_so)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_tell(wire.actor, ACTS(awaits_hangup(1, wire.socket), expects(failure(1, SKUA_E_RESET)),
                                awaits_hangup(2, wire.socket), expects(failure(2, SKUA_E_RESET))));
    actor_await_state(wire.actor, SKUA_PROCESS_BLOCKED);
    peer_resets(wire.peer);
    actor_await_seen(wire.actor, 2);
}

TEST(hangup_can_be_waited_for_by_one_and_times_out)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(awaits_hangup(1, wire.socket), awaits_hangup(2, wire.socket),
                                   expects(failure(2, SKUA_E_SOCKET_BUSY)), cancels(1),
                                   expects(failure(1, SKUA_E_CANCELLED)),
                                   within(SKUA_MILLISECOND, awaits_hangup(3, wire.socket)),
                                   expects(failure(3, SKUA_E_TIMEOUT)),
                                   within(LONG_TIMEOUT, awaits_hangup(4, wire.socket))));
    fd_close(wire.peer);
    actor_await_seen(wire.actor, 4);
    assert_saw_from(wire.actor, 3, (struct seen[]){failure(4, 0)}, 1);
}
