/* SPDX-License-Identifier: MIT */
/* Clients of the inspector that mean harm, or are badly written. Whatever they do, another client
 * is answered afterwards, the processes of the program go on all the time, and nothing is left
 * behind when it stops. How long they wait for each other is in test_inspect_time.c. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "effort.h"
#include "inspected.h"
#include "traffic.h"

#define CLIENTS_MAX 8
#define HANG_MS     120000

/* ---- a program that works ---- */

static struct traffic *traffic;
static uint32_t files;

/* Nothing of all those clients stays: no memory, no descriptor. */
static void close_program(void)
{
    world_close();
    assert_int_equal(os_file_count(), files);
}

static void open_program(void)
{
    files = os_file_count();
    inspected_open((skua_runtime_config){.worker_count = 2});
    test_at_end(close_program);
    traffic = traffic_start();
    traffic_begin(traffic, TRAFFIC_FOR_EVER);
}

static void assert_unharmed(void)
{
    traffic_await(traffic, traffic->messages + 1000);
    inspect_say_hello(world_runtime());
}

/* ---- connections without a client's manners ---- */

static int connection_open(void)
{
    const int fd = inspect_connect(world_runtime());
    assert_true(fd >= 0);
    return fd;
}

static void connection_close(int fd)
{
    assert_int_equal(close(fd), 0);
}

/* Sends all, or until the other side has had enough. */
static bool send_all(int fd, const char *bytes, size_t count)
{
    for (size_t sent = 0; sent < count;) {
        const ssize_t part = send(fd, bytes + sent, count - sent, MSG_NOSIGNAL);
        if (part < 0) {
            assert_true(errno == EPIPE || errno == ECONNRESET);
            return false;
        }
        sent += (size_t)part;
    }
    return true;
}

/* Reads whatever comes until the other side closes. */
static void drain(int fd)
{
    char bytes[4096];
    ssize_t count;
    do {
        count = recv(fd, bytes, sizeof bytes, 0);
    } while (count > 0);
    assert_true(count == 0 || errno == ECONNRESET);
}

/* ---- what they send ---- */

TEST(rubbish_harms_nobody)
{
    uint64_t seed = seed_choose();
    open_program();
    for (uint32_t round = 0; round < EFFORT(200); round++) {
        char bytes[1000];
        const int fd = connection_open();
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (char)seed_next(&seed);
            bytes[i] = seed_next(&seed) % 50 == 0 ? '\n' : bytes[i];
        }
        (void)send_all(fd, bytes, 1 + seed_next(&seed) % sizeof bytes);
        connection_close(fd);
    }
    assert_unharmed();
}

/* Pieces of requests in any order, so that more of them get further than the first word. */
TEST(rubbish_that_looks_like_requests_harms_nobody)
{
    static const char *const words[] = {
        "hello",     "stats",
        "processes", "process",
        "trace",     "start",
        "stop",      "read",
        "pid",       "run",
        "0",         "1",
        "256",       "257",
        "-1",        "age",
        "\n",        "\n",
        "\n",        " ",
        " ",         " ",
        "\t",        "\r",
        "\x80",      "ffffffffffffffff",
    };
    uint64_t seed = seed_choose();
    open_program();
    for (uint32_t round = 0; round < EFFORT(500); round++) {
        char bytes[400] = "";
        const int fd = connection_open();
        for (const char *word = ""; strlen(bytes) + strlen(word) + 7 <= sizeof bytes;
             word = words[seed_next(&seed) % COUNT_OF(words)]) {
            strcat(bytes, word);
        }
        (void)send_all(fd, bytes, strlen(bytes));
        (void)shutdown(fd, SHUT_WR);
        drain(fd);
        connection_close(fd);
    }
    assert_unharmed();
}

TEST(zeros_harm_nobody)
{
    static const char zeros[1300];
    static const char *const requests[] = {"hel\0lo\n", "hello\0\n"};
    open_program();
    struct inspect_client *client = client_open();
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        inspect_send(client, requests[i], 7);
        assert_true(inspect_read(client));
        assert_string_equal(client->error, "SKUA_E_INVALID");
    }
    client_ask(client, "hello");
    (void)send_all(client->fd, zeros, sizeof zeros);
    assert_true(inspect_is_closed(client));
    assert_unharmed();
}

TEST(endless_line_is_cut_off)
{
    static char line[10000];
    open_program();
    const int fd = connection_open();
    memset(line, 'x', sizeof line);
    while (send_all(fd, line, sizeof line)) {
    }
    drain(fd);
    connection_close(fd);
    assert_unharmed();
}

TEST(half_a_request_holds_up_nobody)
{
    open_program();
    struct inspect_client *client = client_open();
    inspect_send(client, "hel", 3);
    assert_unharmed();
    client_ask(client, "lo");
    assert_string_equal(client->lines[0].fields[0], "program");
}

/* ---- how many they are ---- */

TEST(connections_that_come_and_go_harm_nobody)
{
    open_program();
    for (uint32_t i = 0; i < EFFORT(3000); i++) {
        const int fd = connection_open();
        if (i % 3 == 1) {
            (void)send_all(fd, "stats\n", 6);
        } else if (i % 3 == 2) {
            (void)shutdown(fd, SHUT_RDWR);
        }
        connection_close(fd);
    }
    assert_unharmed();
}

TEST(ninth_client_is_turned_away)
{
    struct inspect_client *clients[CLIENTS_MAX];
    open_program();
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        clients[i] = client_open();
        client_ask(clients[i], "hello");
    }
    for (uint32_t i = 0; i < 20; i++) {
        struct inspect_client *ninth = client_open();
        assert_true(inspect_read(ninth));
        assert_string_equal(ninth->error, "SKUA_E_BUSY");
        assert_true(inspect_is_closed(ninth));
        client_close(ninth);
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        client_ask(clients[i], "hello");
    }
    client_close(clients[5]);
    assert_unharmed(); /* which needs a place */
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (i != 5) {
            client_ask(clients[i], "hello");
        }
    }
}

/* ---- what they do not read ---- */

/* A trace costs the program something, so it ends with who wanted it. */
TEST(trace_ends_with_its_client)
{
    open_program();
    struct inspect_client *client = client_open();
    client_ask(client, "trace start");
    assert_true(inspected_is_traced());
    client_close(client);
    while (inspected_is_traced()) {
        inspect_say_hello(world_runtime()); /* answered by the thread that ends it */
    }
}

/* It may take its time between two reads. */
TEST(client_that_reads_slowly_gets_all)
{
    char byte;
    char last[4] = "";
    open_program();
    const int fd = connection_open();
    assert_true(send_all(fd, "metrics\n", 8));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    while (recv(fd, &byte, 1, 0) == 1) {
        memmove(last, last + 1, 3);
        last[3] = byte;
    }
    assert_memory_equal(last, "end\n", 4);
    connection_close(fd);
    assert_unharmed();
}

TEST(client_that_leaves_in_the_middle_harms_nobody)
{
    static const char *const requests[] = {"metrics\n", "processes run 0 256\n", "trace start\n",
                                           "trace read\n"};
    open_program();
    for (uint32_t i = 0; i < EFFORT(300); i++) {
        const int fd = connection_open();
        char bytes[100];
        for (uint32_t k = 0; k < 50; k++) {
            const char *request = requests[(i + k) % COUNT_OF(requests)];
            (void)send_all(fd, request, strlen(request));
        }
        if (i % 2 == 0) {
            (void)recv(fd, bytes, sizeof bytes, 0);
        }
        connection_close(fd);
    }
    assert_unharmed();
}

/* ---- how much they ask ---- */

struct flooder {
    const char *request;
    bool failed;
};

/* Keeps several requests on the way, and reads what comes. Asserts nothing: it is a thread. */
static void flood(void *arg)
{
    struct flooder *flooder = arg;
    struct inspect_count count = {.fd = inspect_connect(world_runtime())};
    flooder->failed = count.fd < 0;
    for (uint32_t asked = 0; count.answers < EFFORT(500) && !flooder->failed;) {
        for (; asked < count.answers + 20; asked++) {
            (void)send(count.fd, flooder->request, strlen(flooder->request), MSG_NOSIGNAL);
        }
        flooder->failed = !inspect_count_more(&count);
    }
    (void)close(count.fd);
}

TEST(floods_are_answered_and_harm_nobody)
{
    struct flooder flooders[] = {{.request = "hello\n"},
                                 {.request = "stats\n"},
                                 {.request = "processes pid 0 256\n"},
                                 {.request = "processes run 0 256\n"},
                                 {.request = "metrics\n"},
                                 {.request = "hello\n"}};
    open_program();
    api_in_threads(COUNT_OF(flooders), flood, flooders, sizeof flooders[0]);
    for (size_t i = 0; i < COUNT_OF(flooders); i++) {
        assert_false(flooders[i].failed);
    }
    assert_unharmed();
}

/* Asks for as much as fits, and reads from whoever has got something. */
static void ask_and_read(struct inspect_count *clients, size_t count)
{
    struct pollfd fds[CLIENTS_MAX];
    for (size_t i = 0; i < count; i++) {
        (void)inspect_send_until_full(clients[i].fd, "metrics\n");
        fds[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
    }
    assert_true(poll(fds, count, HANG_MS) > 0);
    for (size_t i = 0; i < count; i++) {
        if (fds[i].revents != 0) {
            assert_true(inspect_count_more(&clients[i]));
        }
    }
}

static uint32_t fewest_answers(const struct inspect_count *clients, size_t count)
{
    uint32_t fewest = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        fewest = clients[i].answers < fewest ? clients[i].answers : fewest;
    }
    return fewest;
}

/* All places but one are taken by clients that always have requests on the way. */
TEST(floods_of_many_clients_harm_nobody)
{
    struct inspect_count clients[CLIENTS_MAX - 1];
    open_program();
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        clients[i] = (struct inspect_count){.fd = connection_open()};
    }
    while (fewest_answers(clients, COUNT_OF(clients)) < EFFORT(200)) {
        ask_and_read(clients, COUNT_OF(clients));
    }
    assert_unharmed();
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        connection_close(clients[i].fd);
    }
    assert_unharmed();
}
