/* SPDX-License-Identifier: MIT */
/* The request `sockets` of docs/inspector.md: what it tells of each socket, pages, filters and
 * orders; and what a process that waits for a socket says of itself. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "echo.h"
#include "effort.h"
#include "inspected.h"
#include "tape.h"

#define WORKERS     2
#define CONNECTIONS 5

/* Fields of a line `socket`. */
enum { SOCKET = 1, OWNER, TYPE, STATE, LOCAL, PEER, IN, OUT, QUEUED, IDLE, FIELDS };

static struct inspect_client *client;
static skua_pid server;
static skua_pid echoer; /* of one of the connections */
static int connections[CONNECTIONS];

/* A server with a listener and five connections. */
static void open_scene(void)
{
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    server = echo_start();
    for (size_t i = 0; i < CONNECTIONS; i++) {
        connections[i] = echo_connect();
    }
    client = client_open();
}

static size_t ask(const char *request)
{
    client_ask(client, "%s", request);
    assert_int_equal(inspect_count(client, "seen"), 1);
    return inspect_count(client, "socket");
}

static const struct inspect_line *row(size_t n)
{
    const struct inspect_line *line = inspect_find(client, "socket", n);
    assert_int_equal(line->count, FIELDS);
    return line;
}

/* The line of a connection of the test; null if it has none. */
static const struct inspect_line *row_of(int fd)
{
    char address[SKUA_ADDRESS_SIZE];
    echo_own_address(fd, address);
    for (size_t i = 0; i < inspect_count(client, "socket"); i++) {
        if (strcmp(row(i)->fields[PEER], address) == 0) {
            return row(i);
        }
    }
    return NULL;
}

/* ---- what is told ---- */

TEST(sockets_of_a_program_without_any_are_none)
{
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    client = client_open();
    assert_int_equal(ask("sockets socket 0 10"), 0);
    assert_int_equal(ask("sockets in 0 10"), 0);
    assert_int_equal(inspect_count(client, "more"), 0);
    assert_int_equal(inspect_number(inspect_find(client, "seen", 0), 1), 0);
}

TEST(sockets_show_the_listener_of_its_owner)
{
    open_scene();
    assert_int_equal(ask("sockets socket 0 10 listening"), 1);
    const struct inspect_line *line = row(0);
    assert_true(skua_pid_equal(inspect_pid(line, OWNER), server));
    assert_string_equal(line->fields[TYPE], "server");
    assert_string_equal(line->fields[STATE], "listening");
    assert_string_equal(line->fields[LOCAL], echo_address());
    assert_string_equal(line->fields[PEER], "");
    assert_int_equal(inspect_number(line, IN), 0);
    assert_int_equal(inspect_number(line, OUT), 0);
}

/* An echoer counts what it has written just after the test has read it. */
static bool has_echoed(void *bytes)
{
    assert_int_equal(ask("sockets socket 0 10"), CONNECTIONS + 1);
    return inspect_number(row_of(connections[2]), OUT) == *(uint64_t *)bytes;
}

TEST(sockets_show_what_went_through_them)
{
    open_scene();
    echo_exchange(connections[2], 700);
    uint64_t bytes = 701;
    wait_until(has_echoed, &bytes, "the echo is counted");
    const struct inspect_line *line = row_of(connections[2]);
    assert_int_equal(inspect_number(line, IN), 701);
    assert_int_equal(inspect_number(line, QUEUED), 0);
    assert_string_equal(line->fields[LOCAL], echo_address());
    assert_string_equal(line->fields[TYPE], "echoer");
    assert_string_equal(line->fields[STATE], "open");
    assert_int_equal(inspect_number(row_of(connections[1]), IN), 1);
    const struct inspect_line *seen = inspect_find(client, "seen", 0);
    assert_int_equal(seen->count, 5);
    assert_int_equal(inspect_number(seen, 1), CONNECTIONS + 1);
    assert_int_equal(inspect_number(seen, 3), 0);
    assert_int_equal(inspect_number(seen, 4), 0);
}

static bool is_gone(void *fd)
{
    (void)ask("sockets socket 0 10");
    return row_of(*(int *)fd) == NULL;
}

static bool says_how_many(void *pid)
{
    client_ask(client, "describe %" PRIx64, ((skua_pid *)pid)->bits);
    return inspect_count(client, "sockets") == 1;
}

TEST(process_says_how_many_sockets_it_has)
{
    open_scene();
    wait_until(says_how_many, &server, "the server answers in time");
    const struct inspect_line *line = inspect_find(client, "sockets", 0);
    assert_true(skua_pid_equal(inspect_pid(line, 1), server));
    assert_int_equal(inspect_number(line, 2), 1);
}

TEST(sockets_that_are_closed_are_gone)
{
    open_scene();
    /* The descriptor stays, so that its address does. */
    assert_int_equal(shutdown(connections[0], SHUT_WR), 0);
    wait_until(is_gone, &connections[0], "the echoer has closed its socket");
    assert_int_equal(ask("sockets socket 0 10"), CONNECTIONS);
}

TEST(stats_tell_how_many_sockets_there_are)
{
    open_scene();
    client_ask(client, "stats");
    const struct inspect_line *now = inspect_find(client, "now", 0);
    assert_int_equal(inspect_number(now, 5), CONNECTIONS + 1);
    assert_int_equal(inspect_number(now, 6), 0);
}

/* ---- a socket that was closed and has not written all ---- */

#define MUCH ((size_t)8 << 20)

static char nearby_address[64];

/* A Unix address that nobody else has, and a descriptor to use it with. */
static int open_nearby(struct sockaddr_un *address, socklen_t *size)
{
    const int length =
        snprintf(nearby_address, sizeof nearby_address, "unix:@skua-test-%ld", (long)getpid());
    const char *name = strchr(nearby_address, '@') + 1;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, strlen(name));
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length - strlen("unix:"));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    return fd;
}

/* Starts a process that listens there; returns a connection to it. */
static int connect_to(const skua_process_type *type)
{
    struct sockaddr_un to;
    socklen_t size;
    skua_pid pid;
    const int fd = open_nearby(&to, &size);
    assert_int_equal(skua_process_submit(world_runtime(), type, skua_nothing(), &pid), 0);
    while (connect(fd, (const struct sockaddr *)&to, size) != 0) {
        (void)sched_yield();
    }
    return fd;
}

static int flooder_main(void *self, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    skua_payload payload;
    skua_event *event;
    void *bytes;
    (void)self;
    int error = skua_listen(ctx, nearby_address, NULL, &listener);
    error = error != 0 ? error : skua_task_accept(ctx, listener, SKUA_FOREVER, &socket);
    error = error != 0 ? error : skua_payload_alloc(ctx, 0, MUCH, &bytes, &payload);
    if (error == 0) {
        memset(bytes, 'x', MUCH);
        error = skua_yield_write(ctx, 1, socket, payload, SKUA_FOREVER);
        (void)skua_socket_close(ctx, socket);
    }
    return error != 0 ? error : skua_task_receive(ctx, &event, SKUA_FOREVER);
}

static bool is_closing(void *nothing)
{
    (void)nothing;
    return ask("sockets socket 0 10 closing") == 1;
}

static bool is_all_gone(void *nothing)
{
    (void)nothing;
    (void)ask("sockets socket 0 10 closing");
    return inspect_number(inspect_find(client, "seen", 0), 3) == 0;
}

TEST(socket_that_still_writes_is_nobodys_and_closing)
{
    static const skua_process_type flooder = {.name = "flooder", .main = flooder_main};
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    client = client_open();
    const int fd = connect_to(&flooder);
    wait_until(is_closing, NULL, "the socket lingers");
    const struct inspect_line *line = row(0);
    assert_int_equal(inspect_pid(line, OWNER).bits, 0);
    assert_string_equal(line->fields[TYPE], "-");
    assert_string_equal(line->fields[LOCAL], nearby_address);
    assert_int_equal(inspect_number(line, QUEUED) + inspect_number(line, OUT), MUCH);
    assert_int_equal(inspect_number(inspect_find(client, "seen", 0), 3), 1);
    assert_int_equal(close(fd), 0);
    wait_until(is_all_gone, NULL, "its peer is gone, and so is it");
}

/* ---- pages, filters, orders ---- */

TEST(sockets_come_page_by_page_and_each_once)
{
    open_scene();
    uint64_t seen[CONNECTIONS + 1];
    size_t count = 0;
    uint64_t after = 0;
    const struct inspect_line *more;
    do {
        client_ask(client, "sockets socket %016" PRIx64 " 2", after);
        assert_true(inspect_count(client, "socket") <= 2);
        for (size_t i = 0; i < inspect_count(client, "socket"); i++) {
            assert_true(count < COUNT_OF(seen));
            seen[count] = inspect_pid(row(i), SOCKET).bits;
            assert_true(count == 0 || seen[count] > seen[count - 1]);
            count++;
        }
        more = inspect_find(client, "more", 0);
        after = more != NULL ? inspect_pid(more, 1).bits : 0;
    } while (more != NULL);
    assert_int_equal(count, CONNECTIONS + 1);
}

TEST(sockets_are_filtered_by_state_owner_and_type)
{
    char request[100];
    open_scene();
    assert_int_equal(ask("sockets socket 0 256 any"), CONNECTIONS + 1);
    assert_int_equal(ask("sockets socket 0 256 any 0"), CONNECTIONS + 1);
    assert_int_equal(ask("sockets socket 0 256 open"), CONNECTIONS);
    assert_int_equal(ask("sockets socket 0 256 listening"), 1);
    assert_int_equal(ask("sockets socket 0 256 connecting"), 0);
    assert_int_equal(ask("sockets socket 0 256 any 0 echoer"), CONNECTIONS);
    assert_int_equal(ask("sockets socket 0 256 any 0 nobody at all"), 0);
    assert_int_equal(ask("sockets socket 0 256 open 0 server"), 0);
    (void)snprintf(request, sizeof request, "sockets socket 0 256 any %" PRIx64, server.bits);
    assert_int_equal(ask(request), 1);
    assert_string_equal(row(0)->fields[STATE], "listening");
    (void)snprintf(request, sizeof request, "sockets socket 0 256 open %" PRIx64, server.bits);
    assert_int_equal(ask(request), 0);
}

TEST(largest_sockets_come_first)
{
    open_scene();
    for (size_t i = 0; i < CONNECTIONS; i++) {
        echo_exchange(connections[i], 10 * ((i + 2) % CONNECTIONS) + 1);
    }
    assert_int_equal(ask("sockets in 0 10"), CONNECTIONS + 1);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(inspect_number(row(i), IN), 10 * (CONNECTIONS - 1 - i) + 2);
    }
    assert_int_equal(ask("sockets in 0 2"), 2);
    assert_int_equal(ask("sockets out 0 10"), CONNECTIONS + 1);
    assert_int_equal(ask("sockets queued 0 10"), CONNECTIONS + 1);
    assert_int_equal(ask("sockets idle 0 10"), CONNECTIONS + 1);
    for (size_t i = 1; i <= CONNECTIONS; i++) {
        assert_true(inspect_number(row(i), IDLE) <= inspect_number(row(i - 1), IDLE));
    }
    assert_int_equal(inspect_count(client, "more"), 0);
}

TEST(requests_for_sockets_that_make_no_sense_are_refused)
{
    static const char *const wrong[] = {
        "sockets",
        "sockets socket",
        "sockets socket 0",
        "sockets socket 0 0",
        "sockets socket 0 257",
        "sockets socket x 10",
        "sockets socket 0 ten",
        "sockets socket 0 10 shut",
        "sockets socket 0 10 any somebody",
        "sockets socket 0 10 any ",
        "sockets pid 0 10",
        "sockets in 1 10",
        "sockets in 0 10 open",
        "sockets  0 10",
    };
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    client = client_open();
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        client_ask_wrong(client, SKUA_E_INVALID, "%s", wrong[i]);
    }
    assert_int_equal(ask("sockets socket ffffffff00000000 10"), 0);
}

/* ---- while they come and go ---- */

#define CHURNERS 3

/* Connects, says something, hears it and hangs up, again and again. */
static int churner_main(void *self, skua_context *ctx)
{
    skua_socket socket;
    skua_payload data;
    int error = 0;
    (void)self;
    while (error == 0) {
        error = skua_task_connect(ctx, echo_address(), NULL, SKUA_FOREVER, &socket);
        error =
            error != 0 ? error : skua_task_write(ctx, socket, skua_payload_u64(0, 1), SKUA_FOREVER);
        error = error != 0 ? error : skua_task_read(ctx, socket, 8, SKUA_FOREVER, &data);
        if (error == 0) {
            skua_payload_drop(&data);
            error = skua_socket_close(ctx, socket);
        }
    }
    return error;
}

/* Whatever is shown is a socket of those who have any. */
static void assert_known_owners(void)
{
    for (size_t i = 0; i < inspect_count(client, "socket"); i++) {
        const char *type = row(i)->fields[TYPE];
        assert_true(strcmp(type, "server") == 0 || strcmp(type, "echoer") == 0 ||
                    strcmp(type, "churner") == 0 || strcmp(type, "-") == 0 ||
                    strcmp(type, "?") == 0); /* it has just ended */
        assert_true(inspect_pid(row(i), SOCKET).bits != 0);
    }
}

TEST(sockets_can_be_looked_at_while_they_come_and_go)
{
    static const skua_process_type churner = {.name = "churner", .main = churner_main};
    const uint32_t times = EFFORT(400);
    skua_pid churners[CHURNERS];
    open_scene();
    for (size_t i = 0; i < CHURNERS; i++) {
        assert_int_equal(
            skua_process_submit(world_runtime(), &churner, skua_nothing(), &churners[i]), 0);
    }
    for (uint32_t i = 0; i < times; i++) {
        (void)ask(i % 2 == 0 ? "sockets socket 0 256" : "sockets in 0 256");
        assert_known_owners();
        client_ask(client, "process %" PRIx64, churners[i % CHURNERS].bits);
        client_ask(client, "stats");
    }
    (void)ask("sockets socket 0 256 listening");
    assert_int_equal(inspect_count(client, "socket"), 1);
}

/* ---- what processes say of themselves ---- */

TEST(process_that_accepts_or_reads_says_on_which_socket)
{
    char number[17];
    char peer[SKUA_ADDRESS_SIZE];
    open_scene();
    assert_int_equal(ask("sockets socket 0 10 listening"), 1);
    const uint64_t listener = inspect_pid(row(0), SOCKET).bits;
    const struct inspect_line *line = client_describe(client, "describe", server);
    assert_int_equal(line->count, DESCRIBED_FIELDS + 1);
    assert_string_equal(line->fields[DESCRIBED_KIND], "accept");
    assert_int_equal(inspect_pid(line, DESCRIBED_ABOUT).bits, listener);
    assert_string_equal(line->fields[DESCRIBED_TEXT], echo_address());
    assert_string_equal(line->fields[DESCRIBED_FIELDS], "");

    assert_int_equal(ask("sockets socket 0 10"), CONNECTIONS + 1);
    echo_own_address(connections[0], peer);
    echoer = inspect_pid(row_of(connections[0]), OWNER);
    (void)snprintf(number, sizeof number, "%s", row_of(connections[0])->fields[SOCKET]);
    do { /* it may be about to read */
        line = client_describe(client, "describe", echoer);
    } while (line->count == DESCRIBED_TAG);
    assert_string_equal(line->fields[DESCRIBED_KIND], "read");
    assert_string_equal(line->fields[DESCRIBED_ABOUT], number);
    assert_string_equal(line->fields[DESCRIBED_TEXT], echo_address());
    assert_string_equal(line->fields[DESCRIBED_FIELDS], peer);
}

enum { CONNECTED = 1, HUNG_UP, READ, WRITTEN };

/* Connects, then waits for three things at once. */
static int waiter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        return skua_yield_connect(ctx, CONNECTED, nearby_address, NULL, SKUA_FOREVER);
    }
    if (events[0].type != SKUA_EVENT_COMPLETION || events[0].tag != CONNECTED) {
        return 0;
    }
    skua_payload payload;
    void *bytes;
    const skua_socket socket = skua_payload_to_socket(&events[0].payload);
    int error = events[0].error;
    error = error != 0 ? error : skua_yield_hangup(ctx, HUNG_UP, socket, SKUA_FOREVER);
    error = error != 0 ? error : skua_yield_read(ctx, READ, socket, 1, SKUA_FOREVER);
    error = error != 0 ? error : skua_payload_alloc(ctx, 0, MUCH, &bytes, &payload);
    if (error == 0) {
        memset(bytes, 'x', MUCH);
        error = skua_yield_write(ctx, WRITTEN, socket, payload, SKUA_FOREVER);
    }
    return error;
}

/* Tags rise from the oldest; the newest is first. */
static bool tells_all(void *pid)
{
    client_ask(client, "process %" PRIx64, ((skua_pid *)pid)->bits);
    return inspect_count(client, "yield") == 3;
}

TEST(process_with_several_waits_on_a_socket_tells_all_and_the_socket)
{
    static const skua_process_type waiter = {.name = "waiter", .step = waiter_step};
    static const char *const kinds[] = {"write", "read", "hangup"};
    struct sockaddr_un at;
    socklen_t size;
    skua_pid pid;
    inspected_open((skua_runtime_config){.worker_count = WORKERS});
    client = client_open();
    const int fd = open_nearby(&at, &size);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(skua_process_submit(world_runtime(), &waiter, skua_nothing(), &pid), 0);
    wait_until(tells_all, &pid, "the process waits for all three");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct inspect_line *line = inspect_find(client, "yield", i);
        assert_int_equal(line->count, 8);
        assert_int_equal(inspect_number(line, 1), WRITTEN - i);
        assert_string_equal(line->fields[2], kinds[i]);
        assert_string_equal(line->fields[4], "");
        assert_string_equal(line->fields[7], nearby_address);
    }
    assert_int_equal(inspect_count(client, "socket"), 1);
    const struct inspect_line *line = row(0);
    assert_true(skua_pid_equal(inspect_pid(line, OWNER), pid));
    assert_string_equal(line->fields[PEER], nearby_address);
    assert_int_equal(inspect_number(line, QUEUED) + inspect_number(line, OUT), MUCH);
    const char *number = inspect_find(client, "yield", 0)->fields[3];
    assert_string_equal(line->fields[SOCKET], number);
    assert_int_equal(close(fd), 0);
}

/* ---- traces ---- */

static bool has_written(void *arg)
{
    struct tape *tape = arg;
    bool has = false;
    tape_read_all(tape);
    for (size_t i = 0; i < tape->count; i++) {
        has |= tape->notes[i].kind == NOTE_WRITE && skua_pid_equal(tape->notes[i].pid, echoer);
    }
    return has;
}

/* Others may still be noting what they wrote when the scene was opened. */
TEST(trace_has_what_went_through_a_socket)
{
    char peer[SKUA_ADDRESS_SIZE];
    open_scene();
    assert_int_equal(ask("sockets socket 0 10"), CONNECTIONS + 1);
    echoer = inspect_pid(row_of(connections[0]), OWNER);
    const uint64_t number = inspect_pid(row_of(connections[0]), SOCKET).bits;
    struct tape *tape = tape_new();
    tape_start(tape);
    echo_exchange(connections[0], 500);
    wait_until(has_written, tape, "the echoer has written");
    const struct note *read = tape_find(tape, NOTE_READ, echoer, 0);
    const struct note *write = tape_find(tape, NOTE_WRITE, echoer, 0);
    echo_own_address(connections[0], peer);
    assert_int_equal(read->arg, 500);
    assert_int_equal(write->arg, 500);
    assert_int_equal(read->node, number);
    assert_int_equal(write->node, number);
    assert_string_equal(read->type, peer);
    assert_true(read->time <= write->time - write->duration);
    assert_in_range(read->duration, 1, (1U << 28) - 1);
    assert_in_range(write->duration, 1, (1U << 28) - 1);
    assert_tape_makes_sense(tape);
    tape_stop(tape);
}
