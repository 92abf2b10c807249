/* SPDX-License-Identifier: MIT */
/* Clients of the inspector that mean harm, or are badly written. Whatever they do, another client
 * is answered afterwards, the processes of the program go on all the time, and nothing is left
 * behind when it stops. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "effort.h"
#include "inspect_client.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "scratch.h"

#define WORKERS     2
#define CLIENTS_MAX 8
#define HANG_MS     120000

/* ---- a program that works ---- */

/* Two processes that send a message to and fro. */
struct traffic {
    skua_pid pids[2];
    atomic_uint_fast64_t messages;
};

struct scene {
    struct api api;
    struct traffic traffic;
    uint32_t files;
};

static struct scene scene;

static int answer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct traffic *traffic = api_world(self);
    if (api_finish_if_cancelled(events, count, out)) {
        return 0;
    }
    const bool is_first = skua_context_self(ctx).bits == traffic->pids[0].bits;
    for (size_t i = 0; i < count; i++) {
        (void)atomic_fetch_add(&traffic->messages, 1);
        (void)skua_context_send(ctx, traffic->pids[is_first], skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type answerer = {
    .name = "answerer", .state_size = sizeof(void *), .init = api_init_world, .step = answer_step};

static int setup(void **state)
{
    if (scratch_setup(state) != 0) {
        return -1;
    }
    scene.files = os_file_count();
    api_create(&scene.api, (skua_runtime_config){.worker_count = WORKERS, .inspect = true});
    api_start(&scene.api);
    atomic_store(&scene.traffic.messages, 0);
    for (uint32_t i = 0; i < 2; i++) {
        scene.traffic.pids[i] = api_submit(&scene.api, &answerer, &scene.traffic);
    }
    return skua_message_send(scene.api.runtime, scene.traffic.pids[0], skua_payload_empty(0));
}

/* Nothing of all those clients stays: no memory, no descriptor. */
static int teardown(void **state)
{
    api_stop(&scene.api);
    assert_int_equal(os_file_count(), scene.files);
    return scratch_teardown(state);
}

static bool has_messages(void *arg)
{
    return atomic_load(&scene.traffic.messages) >= *(uint_fast64_t *)arg;
}

static void assert_unharmed(void)
{
    uint_fast64_t wanted = atomic_load(&scene.traffic.messages) + 1000;
    wait_until(has_messages, &wanted, "messages between processes");
    inspect_say_hello(scene.api.runtime);
}

/* ---- clients ---- */

static int open_connection(void)
{
    const int fd = inspect_connect(scene.api.runtime);
    assert_true(fd >= 0);
    return fd;
}

static void close_connection(int fd)
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

static void rubbish_harms_nobody(void **state)
{
    (void)state;
    uint64_t seed = seed_choose();
    for (uint32_t round = 0; round < EFFORT(200); round++) {
        char bytes[1000];
        const int fd = open_connection();
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (char)seed_next(&seed);
            if (seed_next(&seed) % 50 == 0) {
                bytes[i] = '\n';
            }
        }
        (void)send_all(fd, bytes, 1 + seed_next(&seed) % sizeof bytes);
        close_connection(fd);
    }
    assert_unharmed();
}

/* Pieces of requests in any order, so that more of them get further than the first word. */
static void rubbish_that_looks_like_requests_harms_nobody(void **state)
{
    (void)state;
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
    for (uint32_t round = 0; round < EFFORT(500); round++) {
        struct inspect_client client;
        size_t length = 0;
        char bytes[400];
        for (;;) {
            const char *word = words[seed_next(&seed) % COUNT_OF(words)];
            if (length + strlen(word) + 7 > sizeof bytes) {
                break;
            }
            memcpy(bytes + length, word, strlen(word));
            length += strlen(word);
        }
        inspect_open(&client, scene.api.runtime);
        (void)send_all(client.fd, bytes, length);
        (void)shutdown(client.fd, SHUT_WR);
        drain(client.fd);
        inspect_close(&client);
    }
    assert_unharmed();
}

static void zeros_harm_nobody(void **state)
{
    (void)state;
    static const char zeros[300];
    struct inspect_client client;
    inspect_open(&client, scene.api.runtime);
    inspect_send(&client, "hel\0lo\n", 7);
    assert_true(inspect_read(&client));
    assert_string_equal(client.error, "SKUA_E_INVALID");
    inspect_send(&client, "hello\0\n", 7);
    assert_true(inspect_read(&client));
    assert_string_equal(client.error, "SKUA_E_INVALID");
    inspect_ask(&client, "hello");
    (void)send_all(client.fd, zeros, sizeof zeros);
    assert_true(inspect_is_closed(&client));
    inspect_close(&client);
    assert_unharmed();
}

static void endless_line_is_cut_off(void **state)
{
    (void)state;
    static char line[10000];
    const int fd = open_connection();
    memset(line, 'x', sizeof line);
    while (send_all(fd, line, sizeof line)) {
    }
    drain(fd);
    close_connection(fd);
    assert_unharmed();
}

static void half_a_request_holds_up_nobody(void **state)
{
    (void)state;
    struct inspect_client client;
    inspect_open(&client, scene.api.runtime);
    inspect_send(&client, "hel", 3);
    assert_unharmed();
    inspect_ask(&client, "lo");
    assert_string_equal(client.lines[0].fields[0], "program");
    inspect_close(&client);
}

/* ---- how many they are ---- */

static void connections_that_come_and_go_harm_nobody(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < EFFORT(3000); i++) {
        const int fd = open_connection();
        if (i % 3 == 1) {
            (void)send_all(fd, "stats\n", 6);
        } else if (i % 3 == 2) {
            (void)shutdown(fd, SHUT_RDWR);
        }
        close_connection(fd);
    }
    assert_unharmed();
}

static void ninth_client_is_turned_away(void **state)
{
    (void)state;
    struct inspect_client clients[CLIENTS_MAX];
    struct inspect_client ninth;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        inspect_open(&clients[i], scene.api.runtime);
        inspect_ask(&clients[i], "hello");
    }
    for (uint32_t i = 0; i < 20; i++) {
        inspect_open(&ninth, scene.api.runtime);
        assert_true(inspect_read(&ninth));
        assert_string_equal(ninth.error, "SKUA_E_BUSY");
        assert_true(inspect_is_closed(&ninth));
        inspect_close(&ninth);
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        inspect_ask(&clients[i], "hello");
    }
    inspect_close(&clients[5]);
    assert_unharmed(); /* which needs a place */
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (i != 5) {
            inspect_ask(&clients[i], "hello");
            inspect_close(&clients[i]);
        }
    }
}

/* ---- what they do not read ---- */

static bool is_traced(void)
{
    return load_acquire(&scene.api.runtime->sched.tracer.active) != NULL;
}

/* A trace costs the program something, so it ends with who wanted it. */
static void trace_ends_with_its_client(void **state)
{
    (void)state;
    struct inspect_client client;
    inspect_open(&client, scene.api.runtime);
    inspect_ask(&client, "trace start");
    assert_true(is_traced());
    inspect_close(&client);
    while (is_traced()) {
        inspect_say_hello(scene.api.runtime); /* answered by the thread that ends it */
    }
}

/* It may take its time between two reads. */
static void client_that_reads_slowly_gets_all(void **state)
{
    (void)state;
    const int fd = open_connection();
    char byte;
    char last[4] = "";
    assert_true(send_all(fd, "metrics\n", 8));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    while (recv(fd, &byte, 1, 0) == 1) {
        memmove(last, last + 1, 3);
        last[3] = byte;
    }
    assert_memory_equal(last, "end\n", 4);
    close_connection(fd);
    assert_unharmed();
}

static void client_that_leaves_in_the_middle_harms_nobody(void **state)
{
    (void)state;
    static const char *const requests[] = {"metrics\n", "processes run 0 256\n", "trace start\n",
                                           "trace read\n"};
    for (uint32_t i = 0; i < EFFORT(300); i++) {
        const int fd = open_connection();
        char bytes[100];
        for (uint32_t k = 0; k < 50; k++) {
            const char *request = requests[(i + k) % COUNT_OF(requests)];
            (void)send_all(fd, request, strlen(request));
        }
        if (i % 2 == 0) {
            (void)recv(fd, bytes, sizeof bytes, 0);
        }
        close_connection(fd);
    }
    assert_unharmed();
}

/* ---- how much they ask ---- */

struct flooder {
    skua_runtime *runtime;
    const char *request;
    uint32_t answers; /* wanted */
    bool failed;
};

/* Keeps several requests on the way, and reads what comes. Asserts nothing: it is a thread. */
static void flood(void *arg)
{
    struct flooder *flooder = arg;
    struct inspect_count count = {.fd = inspect_connect(flooder->runtime)};
    flooder->failed = count.fd < 0;
    for (uint32_t asked = 0; count.answers < flooder->answers && !flooder->failed;) {
        for (; asked < count.answers + 20; asked++) {
            (void)send(count.fd, flooder->request, strlen(flooder->request), MSG_NOSIGNAL);
        }
        flooder->failed = !inspect_count_more(&count);
    }
    (void)close(count.fd);
}

static void floods_are_answered_and_harm_nobody(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "hello\n",   "stats\n", "processes pid 0 256\n", "processes run 0 256\n",
        "metrics\n", "hello\n"};
    struct flooder flooders[COUNT_OF(requests)];
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        flooders[i] = (struct flooder){scene.api.runtime, requests[i], EFFORT(500), false};
    }
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
static void floods_of_many_clients_harm_nobody(void **state)
{
    (void)state;
    struct inspect_count clients[CLIENTS_MAX - 1];
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        clients[i] = (struct inspect_count){.fd = open_connection()};
    }
    while (fewest_answers(clients, COUNT_OF(clients)) < EFFORT(200)) {
        ask_and_read(clients, COUNT_OF(clients));
    }
    assert_unharmed();
    for (size_t i = 0; i < COUNT_OF(clients); i++) {
        close_connection(clients[i].fd);
    }
    assert_unharmed();
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    watchdog_start();
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(rubbish_harms_nobody),
        SCRATCH_TEST(rubbish_that_looks_like_requests_harms_nobody),
        SCRATCH_TEST(zeros_harm_nobody),
        SCRATCH_TEST(endless_line_is_cut_off),
        SCRATCH_TEST(half_a_request_holds_up_nobody),
        SCRATCH_TEST(connections_that_come_and_go_harm_nobody),
        SCRATCH_TEST(ninth_client_is_turned_away),
        SCRATCH_TEST(trace_ends_with_its_client),
        SCRATCH_TEST(client_that_reads_slowly_gets_all),
        SCRATCH_TEST(client_that_leaves_in_the_middle_harms_nobody),
        SCRATCH_TEST(floods_are_answered_and_harm_nobody),
        SCRATCH_TEST(floods_of_many_clients_harm_nobody),
    };
    return cmocka_run_group_tests_name("inspect_clients", tests, NULL, NULL);
}
