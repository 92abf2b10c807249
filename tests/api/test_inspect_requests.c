/* SPDX-License-Identifier: MIT */
/* The requests of docs/inspector.md and their answers, but for processes and traces; and requests
 * that are none. Clients that mean harm are in test_inspect_clients.c. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actor.h"
#include "idlers.h"
#include "inspected.h"

#define WORKERS 2

static const skua_runtime_config two_workers = {.worker_count = WORKERS};
static const skua_runtime_config one_worker = {.worker_count = 1};

/* ---- hello, stats ---- */

TEST(hello_tells_what_program_it_is)
{
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    client_ask(client, "hello");
    const struct inspect_line *line = client->lines;
    assert_int_equal(client->line_count, 1);
    assert_int_equal(line->count, 6);
    assert_string_equal(line->fields[0], "program");
    assert_int_equal(inspect_number(line, 1), getpid());
    assert_true(inspect_number(line, 2) > 0);
    assert_string_equal(line->fields[3], program_invocation_short_name);
    assert_string_equal(line->fields[4], skua_version());
    const uint64_t age = inspect_number(line, 5);
    client_ask(client, "hello");
    assert_true(inspect_number(client->lines, 5) > age);
}

#define ADD_NAME(name) #name,
static const char *const counter_names[] = {SKUA_STATS_MAP(ADD_NAME)};
#define COUNTERS COUNT_OF(counter_names)

/* A counter in a line whose columns for them begin with the `first`. */
static uint64_t counter(const struct inspect_line *line, size_t first, const char *name)
{
    size_t column = 0;
    while (strcmp(counter_names[column], name) != 0) {
        column++;
        assert_true(column < COUNTERS);
    }
    return inspect_number(line, first + column);
}

TEST(stats_have_a_column_for_every_counter)
{
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    client_ask(client, "stats");
    const struct inspect_line *lines = client->lines;
    assert_int_equal(client->line_count, 3 + WORKERS);
    assert_int_equal(lines[0].count, 7);
    assert_string_equal(lines[0].fields[0], "now");
    assert_string_equal(lines[1].fields[0], "counters");
    assert_int_equal(lines[1].count, 1 + COUNTERS);
    for (size_t i = 0; i < COUNTERS; i++) {
        assert_string_equal(lines[1].fields[1 + i], counter_names[i]);
    }
    assert_string_equal(lines[2].fields[0], "total");
    assert_int_equal(lines[2].count, 1 + COUNTERS);
    for (size_t i = 0; i < WORKERS; i++) {
        const struct inspect_line *line = &lines[3 + i];
        assert_string_equal(line->fields[0], "worker");
        assert_int_equal(line->count, 7 + COUNTERS);
        assert_int_equal(inspect_number(line, 1), i);
        assert_string_equal(line->fields[2], "worker");
    }
}

TEST(stats_are_those_of_the_program)
{
    uint64_t steps = 0;
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    (void)idler_start();
    idler_make_steps(idler_start(), 5);
    client_ask(client, "stats");
    const struct inspect_line *now = inspect_find(client, "now", 0);
    const struct inspect_line *total = inspect_find(client, "total", 0);
    assert_true(inspect_number(now, 1) >= inspect_number(now, 2)); /* the clock is older than it */
    assert_int_equal(inspect_number(now, 3), 2);
    assert_int_equal(inspect_number(now, 4), 0);
    assert_int_equal(counter(total, 1, "spawned"), 2);
    assert_int_equal(counter(total, 1, "messages"), 5);
    assert_int_equal(counter(total, 1, "steps"), 7);
    for (size_t i = 0; i < WORKERS; i++) {
        steps += counter(inspect_find(client, "worker", i), 7, "steps");
    }
    assert_int_equal(steps, 7);
}

TEST(stats_tell_what_the_workers_do)
{
    inspected_open(one_worker);
    struct inspect_client *client = client_open();
    struct actor *held = actor_start_held();
    client_ask(client, "stats");
    const struct inspect_line *line = inspect_find(client, "worker", 0);
    assert_string_equal(line->fields[3], "running");
    assert_true(skua_pid_equal(inspect_pid(line, 5), held->pid));
    assert_string_equal(line->fields[6], "actor");
    actor_release(held);
    do { /* it searches for a moment before it sleeps */
        client_ask(client, "stats");
        line = inspect_find(client, "worker", 0);
    } while (strcmp(line->fields[3], "parked") != 0 && strcmp(line->fields[3], "polling") != 0);
    assert_int_equal(inspect_number(line, 4), 0);
    assert_true(skua_pid_is_none(inspect_pid(line, 5)));
    assert_string_equal(line->fields[6], "-");
}

TEST(stats_tell_of_spare_workers)
{
    inspected_open((skua_runtime_config){.worker_count = 1, .stall_limit_ns = SKUA_MILLISECOND});
    struct inspect_client *client = client_open();
    struct actor *held = actor_start_held();
    do { /* until one has stepped in */
        client_ask(client, "stats");
    } while (inspect_count(client, "worker") < 2);
    const struct inspect_line *line = inspect_find(client, "worker", 1);
    assert_int_equal(inspect_number(line, 1), 1);
    assert_string_equal(line->fields[2], "spare");
    actor_let_go(held);
}

/* ---- metrics ---- */

/* At rest, the same as the function of the library writes; but for the age. */
TEST(metrics_are_those_of_the_library)
{
    static char expected[(size_t)1 << 17];
    size_t count = 0;
    char *rest = expected;
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    (void)idler_start();
    client_ask(client, "metrics");
    assert_in_range(skua_metrics_format(world_runtime(), expected, sizeof expected), 1,
                    sizeof expected - 1);
    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n"), count++) {
        assert_true(count < client->line_count);
        const struct inspect_line *told = &client->lines[count];
        const size_t name = strcspn(line, " ");
        assert_int_equal(told->count, 2);
        assert_string_equal(told->fields[0], "text");
        assert_memory_equal(told->fields[1], line, name + 1);
        if (strncmp(line, "skua_processes ", name) == 0) {
            assert_string_equal(told->fields[1], "skua_processes 1");
        }
    }
    assert_int_equal(client->line_count, count);
}

TEST(answer_without_memory_is_an_error)
{
    static const char *const requests[] = {"metrics", "trace start"};
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    client_ask(client, "hello");
    wait_until_all_have_slept(world_runtime());
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        counting_allocator_fail_once(&world->api->memory, 1);
        inspect_ask_wrong(client, requests[i], SKUA_E_NO_MEMORY);
        inspect_ask(client, requests[i]);
    }
}

/* ---- requests that are none ---- */

TEST(request_that_is_none_is_an_error)
{
    static const char *const requests[] = {
        "",
        " ",
        "hell",
        "helloo",
        "HELLO",
        " hello",
        "hello ",
        "hello world",
        "hello\r",
        "stats 1",
        "metrics 1",
        "processes",
        "processes pid",
        "processes pid 0",
        "processes pid 0 10 ",
        "processes pid 0 10 11",
        "processes pid 0 10 done",
        "processes pid 0 10 idler",
        "processes pid 0 10  idler",
        "processes run 0 10 any",
        "processes run 0 10 any idler",
        "processes  pid 0 10",
        "processes pid 0 0",
        "processes pid 0 257",
        "processes pid 0 18446744073709551617",
        "processes pid 0 -1",
        "processes pid 0 +1",
        "processes pid 0 0x10",
        "processes pid -1 10",
        "processes pid 0x1 10",
        "processes pid 1ffffffffffffffff 10",
        "processes pid g 10",
        "processes pid  10",
        "processes size 0 10",
        "processes run 1 10",
        "process",
        "process ",
        "process 1 2",
        "process xyz",
        "process -1",
        "trace",
        "trace go",
        "trace start now",
        "trace read", /* nothing has been started */
        "trace stop",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "%s%n%s%n",
    };
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        inspect_ask_wrong(client, requests[i], SKUA_E_INVALID);
        inspect_ask(client, "hello");
    }
}

/* 1200 bytes are a request, and 1201 are the end. */
TEST(request_that_is_too_long_ends_the_connection)
{
    char request[1202];
    inspected_open(two_workers);
    struct inspect_client *client = client_open();
    memset(request, 'x', sizeof request);
    request[1200] = '\0';
    inspect_ask_wrong(client, request, SKUA_E_INVALID);
    inspect_ask(client, "hello");
    memcpy(request + 1199, "xx\n", 3);
    inspect_send(client, request, sizeof request);
    assert_true(inspect_is_closed(client));
    inspect_say_hello(world_runtime());
}

/* One after the other, however they are cut into pieces; the last without its end, which never
 * comes. */
TEST(requests_are_answered_in_order)
{
    static const char sent[] = "hello\nstats\n\nhello\nhel";
    FOR_ROUNDS (round, (sizeof sent + 1) / 3) {
        const size_t piece = 3 * (size_t)round - 2;
        char text[8192];
        size_t length = 0;
        ssize_t count;
        inspected_open(two_workers);
        struct inspect_client *client = client_open();
        for (size_t at = 0; at < sizeof sent - 1; at += piece) {
            const size_t left = sizeof sent - 1 - at;
            inspect_send(client, sent + at, left < piece ? left : piece);
        }
        assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
        while ((count = recv(client->fd, text + length, sizeof text - 1 - length, 0)) > 0) {
            length += (size_t)count;
        }
        assert_int_equal(count, 0);
        text[length] = '\0';
        const char *first = strstr(text, "program\t");
        const char *second = strstr(text, "\nend\nnow\t");
        const char *third = strstr(text, "\nend\nerror\tSKUA_E_INVALID\t");
        const char *fourth = strstr(text, "\nprogram\t");
        assert_ptr_equal(first, text);
        assert_true(first < second && second < third && third < fourth);
        assert_string_equal(text + length - 5, "\nend\n");
    }
}
