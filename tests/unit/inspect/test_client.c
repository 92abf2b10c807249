/* SPDX-License-Identifier: MIT */
/* A connection of the inspector, at times that the tests make up: who keeps whom waiting. */
#include "inspect/client.h"

#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#define BEGIN (UINT64_C(77) * 1000000000)
#define NEVER UINT64_MAX

struct pair {
    struct client client; /* the inspector's side */
    int other;
    char answer[ANSWER_SIZE];
};

static struct pair pair;

static void pair_close(void)
{
    if (pair.other >= 0) {
        assert_int_equal(close(pair.other), 0);
    }
    assert_int_equal(close(pair.client.fd), 0);
}

static void pair_open(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    pair.client = (struct client){.fd = fds[0], .answer = pair.answer, .active = BEGIN};
    pair.other = fds[1];
    test_at_end(pair_close);
}

static void ask(const char *bytes)
{
    assert_int_equal(send(pair.other, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
}

/* An answer, of which the other side can take only a part at a time. */
static void begin_answer(void)
{
    memset(pair.answer, 'x', sizeof pair.answer);
    pair.client.answer_length = sizeof pair.answer;
    pair.client.answer_sent = 0;
    assert_true(client_send(&pair.client, BEGIN));
    assert_in_range(pair.client.answer_sent, 1, sizeof pair.answer - 1);
}

static void take_what_has_come(void)
{
    char bytes[65536];
    while (recv(pair.other, bytes, sizeof bytes, 0) > 0) {
    }
}

/* ---- client_time_left ---- */

TEST(client_that_rests_may_do_so_for_ever)
{
    pair_open();
    assert_int_equal(client_time_left(&pair.client, false, BEGIN), NEVER);
    assert_int_equal(client_time_left(&pair.client, false, BEGIN + 1000 * STALL_NS), NEVER);
}

TEST(client_has_so_long_to_read)
{
    pair_open();
    begin_answer();
    assert_int_equal(client_time_left(&pair.client, false, BEGIN), STALL_NS);
    assert_int_equal(client_time_left(&pair.client, false, BEGIN + STALL_NS - 1), 1);
    assert_int_equal(client_time_left(&pair.client, false, BEGIN + STALL_NS), 0);
    assert_int_equal(client_time_left(&pair.client, false, BEGIN + 1000 * STALL_NS), 0);
}

TEST(client_that_takes_a_part_has_time_for_the_next)
{
    pair_open();
    begin_answer();
    const uint64_t later = BEGIN + STALL_NS - 1;
    assert_true(client_send(&pair.client, later)); /* nothing: it has not read */
    assert_int_equal(client_time_left(&pair.client, false, later), 1);
    take_what_has_come();
    assert_true(client_send(&pair.client, later));
    assert_int_equal(client_time_left(&pair.client, false, later), STALL_NS);
    while (client_has_answer(&pair.client)) {
        take_what_has_come();
        assert_true(client_send(&pair.client, later));
    }
    assert_int_equal(client_time_left(&pair.client, false, later), NEVER);
}

TEST(client_that_traces_has_so_long_to_ask)
{
    pair_open();
    assert_int_equal(client_time_left(&pair.client, true, BEGIN), STALL_NS);
    assert_int_equal(client_time_left(&pair.client, true, BEGIN + STALL_NS), 0);
    ask("trace re");
    assert_true(client_receive(&pair.client));
    assert_int_equal(client_time_left(&pair.client, true, BEGIN + STALL_NS), 0);
}

/* It has asked: now the inspector keeps it waiting. */
TEST(client_that_traces_may_wait_for_its_answer)
{
    pair_open();
    ask("trace read\ntra");
    assert_true(client_receive(&pair.client));
    assert_int_equal(client_time_left(&pair.client, true, BEGIN + 1000 * STALL_NS), NEVER);
}

/* Asking for more does not help a client that does not read. */
TEST(client_that_asks_must_read_all_the_same)
{
    pair_open();
    ask("hello\nhello\n");
    assert_true(client_receive(&pair.client));
    begin_answer();
    assert_false(client_is_asking(&pair.client));
    assert_int_equal(client_time_left(&pair.client, false, BEGIN + STALL_NS), 0);
    assert_int_equal(client_time_left(&pair.client, true, BEGIN + STALL_NS), 0);
}

/* ---- client_is_quiet ---- */

TEST(client_that_asks_nothing_for_long_is_quiet)
{
    pair_open();
    assert_false(client_is_quiet(&pair.client, BEGIN));
    assert_false(client_is_quiet(&pair.client, BEGIN + QUIET_NS - 1));
    assert_true(client_is_quiet(&pair.client, BEGIN + QUIET_NS));
    ask("hel");
    assert_true(client_receive(&pair.client));
    assert_true(client_is_quiet(&pair.client, BEGIN + QUIET_NS));
}

TEST(client_that_waits_for_its_answer_is_not_quiet)
{
    pair_open();
    ask("hello\n");
    assert_false(client_is_quiet(&pair.client, BEGIN + 1000 * QUIET_NS)); /* not read yet */
    assert_true(client_receive(&pair.client));
    assert_true(client_is_asking(&pair.client));
    assert_false(client_is_quiet(&pair.client, BEGIN + 1000 * QUIET_NS));
}

TEST(client_that_has_gone_is_quiet)
{
    pair_open();
    assert_int_equal(close(pair.other), 0);
    pair.other = -1;
    assert_true(client_is_quiet(&pair.client, BEGIN + QUIET_NS));
}
