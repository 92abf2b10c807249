/* SPDX-License-Identifier: MIT */
/* How long the inspector waits for its clients, and how long they wait for it. Its thread lives by
 * clocks that the tests turn: the linker puts the functions below between the library and the C
 * library (--wrap, see CMakeLists.txt). Nothing here depends on how fast the machine is. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "inspect/budget.h"
#include "inspect/client.h"
#include "inspected.h"
#include "runtime/runtime.h"

#define SECOND UINT64_C(1000000000)

/* ---- clocks ---- */

/* What a look at the clock costs: an answer costs more than nothing. */
#define TICK_NS 1000

static atomic_u64 clock_ns; /* CLOCK_MONOTONIC of the inspector's thread */
static atomic_u64 cpu_ns;   /* what it has used of a CPU */
static _Thread_local bool is_inspector;
static _Thread_local bool is_answering; /* at length, see below */

/* The names are the linker's. */
int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

/* Only the inspector asks for the CPU time of a thread: first of all, and after each answer. */
int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    if (id == CLOCK_THREAD_CPUTIME_ID) {
        is_inspector = true;
        is_answering = false;
        *time = monotonic_timespec(atomic_fetch_add(&cpu_ns, TICK_NS));
        return 0;
    }
    if (!is_inspector) {
        return __real_clock_gettime(id, time);
    }
    *time = monotonic_timespec(atomic_load(&clock_ns));
    return 0;
}

static void advance(uint64_t ns)
{
    (void)atomic_fetch_add(&clock_ns, ns);
}

/* ---- connections that are refused ---- */

static atomic_uint accepts; /* calls */
static atomic_bool refuses;

int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    (void)atomic_fetch_add(&accepts, 1);
    if (!atomic_load(&refuses)) {
        return __real_accept4(fd, address, size, flags);
    }
    errno = EMFILE;
    return -1;
}

/* ---- answers that take long ---- */

/* Those to `metrics`: the only ones that need memory of their own, some more than once. */
static struct {
    uint32_t files;
    struct tally begun;         /* such answers, so far */
    struct tally allowed;       /* how many may go on */
    atomic_u64 answer_takes_ns; /* each, by the clock */
    atomic_u64 answer_costs_ns; /* of the CPU */
} scene;

static void *allocate(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    if (is_inspector && !is_answering && alignment == 1 && new_size != 0 &&
        new_size != ANSWER_SIZE) {
        is_answering = true;
        tally_add(&scene.begun, 1);
        tally_wait(&scene.allowed, tally_count(&scene.begun));
        (void)atomic_fetch_add(&clock_ns, atomic_load(&scene.answer_takes_ns));
        (void)atomic_fetch_add(&cpu_ns, atomic_load(&scene.answer_costs_ns));
    }
    return counting_allocate(arg, pointer, old_size, new_size, alignment);
}

static void allow_all(void)
{
    tally_add(&scene.allowed, UINT32_MAX);
}

static void close_program(void)
{
    allow_all();
    world_close();
    assert_int_equal(os_file_count(), scene.files);
}

static void open_program(void)
{
    atomic_store(&clock_ns, monotonic_ns());
    atomic_store(&cpu_ns, 0);
    atomic_store(&refuses, false);
    atomic_store(&scene.answer_takes_ns, 0);
    atomic_store(&scene.answer_costs_ns, 0);
    scene.files = os_file_count();
    tally_init(&scene.begun);
    tally_init(&scene.allowed);
    inspected_prepare();
    world_create((skua_runtime_config){.worker_count = 2, .inspect = true});
    world_runtime()->sched.allocator.function = allocate;
    world_start();
    test_at_end(close_program);
}

/* ---- clients ---- */

/* That have been answered, in the places from the first one on. */
static void open_clients(struct inspect_client **clients, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        clients[i] = client_open();
        client_ask(clients[i], "hello");
    }
}

static void send_times(struct inspect_client *client, const char *request, uint32_t times)
{
    char bytes[REQUEST_MAX] = "";
    for (uint32_t i = 0; i < times; i++) {
        assert_true(strlen(bytes) + strlen(request) < sizeof bytes);
        strcat(bytes, request);
    }
    inspect_send(client, bytes, strlen(bytes));
}

static void read_times(const struct inspect_client *client, uint32_t times)
{
    struct inspect_count count = {.fd = client->fd};
    while (count.answers < times) {
        assert_true(inspect_count_more(&count));
    }
    assert_int_equal(count.answers, times);
    assert_false(count.in_line);
}

/* Lets the inspector look at all its clients, more than once. */
static void pass_turns(void)
{
    for (uint32_t i = 0; i < 10; i++) {
        inspect_say_hello(world_runtime());
    }
}

static bool is_hung_up(int fd)
{
    struct pollfd look = {.fd = fd};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLHUP) != 0;
}

static bool is_hung_up_after_a_turn(void *arg)
{
    inspect_say_hello(world_runtime());
    return is_hung_up(*(const int *)arg);
}

/* Sends requests until no more fit, and reads nothing. Returns how many, when as many answers as
 * fit are on their way. */
static uint32_t clog_up(int fd)
{
    const uint32_t requests = inspect_send_until_full(fd, "metrics\n");
    uint64_t answers;
    do {
        answers = tally_count(&scene.begun);
        pass_turns();
    } while (tally_count(&scene.begun) > answers);
    assert_in_range(answers, 1, requests - 1);
    return requests;
}

/* ---- who is closed ---- */

TEST(client_that_never_reads_is_closed)
{
    open_program();
    struct inspect_client *client = client_open();
    allow_all();
    (void)clog_up(client->fd);
    advance(STALL_NS - 1);
    pass_turns();
    assert_false(is_hung_up(client->fd));
    advance(1);
    wait_until(is_hung_up_after_a_turn, &client->fd, "the end of the connection");
}

TEST(trace_that_nobody_reads_is_ended)
{
    open_program();
    struct inspect_client *client = client_open();
    client_ask(client, "trace start");
    advance(STALL_NS - 1);
    pass_turns();
    assert_true(inspected_is_traced());
    advance(1);
    wait_until(is_hung_up_after_a_turn, &client->fd, "the end of the connection");
    assert_false(inspected_is_traced());
}

static void assert_turned_away(struct inspect_client *client)
{
    assert_true(inspect_read(client));
    assert_string_equal(client->error, "SKUA_E_BUSY");
    assert_true(inspect_is_closed(client));
}

static void assert_no_place_is_left(void)
{
    assert_turned_away(client_open());
}

/* Nobody can keep the others out by being there: who says nothing makes room, one at a time. */
TEST(silent_clients_make_room)
{
    struct inspect_client *clients[CLIENTS_MAX];
    size_t closed = 0;
    open_program();
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        clients[i] = client_open();
        inspect_send(clients[i], "hel", i % 4); /* nothing, or a piece of a request */
    }
    assert_no_place_is_left();
    advance(QUIET_NS - 1);
    assert_no_place_is_left();
    advance(1);
    inspect_say_hello(world_runtime());
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        closed += is_hung_up(clients[i]->fd);
    }
    assert_int_equal(closed, 1);
}

/* ---- who is not ---- */

/* It had no time to read before the answer was there. */
TEST(client_whose_answer_took_long_has_time_to_read_it)
{
    open_program();
    atomic_store(&scene.answer_takes_ns, 2 * STALL_NS);
    struct inspect_client *client = client_open();
    allow_all();
    const uint32_t requests = clog_up(client->fd);
    assert_false(is_hung_up(client->fd));
    read_times(client, requests);
}

/* The inspector is busy with the first client while the others, who have been quiet, ask something
 * and a ninth one comes. */
TEST(client_that_has_asked_keeps_its_place)
{
    struct inspect_client *clients[CLIENTS_MAX];
    open_program();
    open_clients(clients, CLIENTS_MAX);
    advance(QUIET_NS);
    send_times(clients[0], "metrics\n", 1);
    tally_wait(&scene.begun, 1);
    send_times(clients[0], "metrics\n", 1);
    struct inspect_client *late = client_open();
    tally_add(&scene.allowed, 1);
    tally_wait(&scene.begun, 2); /* by now it knows of the ninth, and of nobody else */
    for (size_t i = 1; i < CLIENTS_MAX; i++) {
        send_times(clients[i], "hello\n", 1);
    }
    allow_all();
    assert_turned_away(late);
    read_times(clients[0], 2);
    for (size_t i = 1; i < CLIENTS_MAX; i++) {
        read_times(clients[i], 1);
    }
}

/* One client has used up the budget. Another, who traces, has asked before and is kept waiting for
 * longer than it may keep the inspector waiting. */
TEST(client_that_waits_for_the_budget_is_answered)
{
    enum { REQUESTS = 20 };
    struct inspect_client *clients[2];
    open_program();
    open_clients(clients, 2);
    struct inspect_client *tracer = clients[0];
    struct inspect_client *spender = clients[1];
    client_ask(tracer, "trace start");
    send_times(spender, "metrics\n", 1);
    tally_wait(&scene.begun, 1);
    send_times(spender, "metrics\n", 1);
    send_times(tracer, "hello\n", REQUESTS);
    tally_add(&scene.allowed, 1);
    tally_wait(&scene.begun, 2); /* between two answers to the tracer */
    atomic_store(&scene.answer_costs_ns, 3 * SECOND);
    tally_add(&scene.allowed, 1);
    read_times(spender, 2);
    advance(60 * SECOND); /* within which it may be answered, at most a fifth of a CPU */
    read_times(tracer, REQUESTS);
    assert_true(inspected_is_traced());
}

/* ---- who is answered when ---- */

/* All places but one are taken by clients that ask for more than is answered. Whoever asks for less
 * is answered before each of them has got another answer. */
TEST(floods_hold_up_nobody)
{
    enum { FLOODS = CLIENTS_MAX - 1, REQUESTS = 20 };
    struct inspect_client *clients[CLIENTS_MAX];
    open_program();
    atomic_store(&scene.answer_costs_ns, SECOND / 1000);
    open_clients(clients, CLIENTS_MAX);
    for (size_t i = 0; i < FLOODS; i++) {
        send_times(clients[i], "metrics\n", REQUESTS);
    }
    tally_wait(&scene.begun, 1);
    send_times(clients[FLOODS], "hello\n", REQUESTS);
    tally_add(&scene.allowed, FLOODS);
    read_times(clients[FLOODS], REQUESTS);
    allow_all();
    for (size_t i = 0; i < FLOODS; i++) {
        read_times(clients[i], REQUESTS);
    }
}

/* ---- who has to come again ---- */

/* Longer than the inspector pauses after a refusal. */
#define PAUSE_NS SECOND

static bool has_refused(void *arg)
{
    return atomic_load(&accepts) > *(const unsigned *)arg;
}

/* A client that is there already, and one that the inspector could not accept for want of
 * descriptors: it is not tried again while no time passes, whatever else there is to do. */
struct refusal {
    struct inspect_client *early;
    struct inspect_client *late;
};

static struct refusal begin_refusal(void)
{
    struct refusal refusal;
    open_program();
    open_clients(&refusal.early, 1);
    unsigned before = atomic_load(&accepts);
    atomic_store(&refuses, true);
    refusal.late = client_open();
    wait_until(has_refused, &before, "a refusal");
    for (uint32_t i = 0; i < 100; i++) {
        client_ask(refusal.early, "hello");
    }
    assert_int_equal(atomic_load(&accepts), before + 1);
    atomic_store(&refuses, false);
    return refusal;
}

TEST(connection_that_was_refused_is_accepted_later)
{
    const struct refusal refusal = begin_refusal();
    advance(PAUSE_NS);
    client_ask(refusal.late, "hello");
}

TEST(connection_that_was_refused_is_accepted_when_another_ends)
{
    const struct refusal refusal = begin_refusal();
    client_close(refusal.early);
    client_ask(refusal.late, "hello");
}
