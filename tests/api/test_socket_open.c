/* SPDX-License-Identifier: MIT */
/* Listening, accepting and connecting. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "scratch.h"
#include "wire.h"

#define ACCEPT  1
#define CONNECT 2

/* ---- addresses of every kind ---- */

static const char *unix_address(void)
{
    char path[SCRATCH_PATH_SIZE];
    char *address = test_alloc(SCRATCH_PATH_SIZE + 8);
    scratch_open();
    scratch_path(path, "s");
    (void)snprintf(address, SCRATCH_PATH_SIZE + 8, "unix:%s", path);
    return address;
}

static const char *abstract_address(void)
{
    static unsigned count;
    char *address = test_alloc(64);
    (void)snprintf(address, 64, "unix:@skua-test-%d-%u", (int)getpid(), count++);
    return address;
}

static const char *v4_address(void)
{
    return "127.0.0.1:0";
}

static const char *v6_address(void)
{
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                         .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const bool works = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    assert_true(fd < 0 || close(fd) == 0);
    return works ? "[::1]:0" : NULL;
}

typedef const char *address_fn(void);
static address_fn *const kinds[] = {v4_address, v6_address, unix_address, abstract_address};

TEST(connection_of_every_kind_carries_data_both_ways)
{
    FOR_ROWS (kind, kinds) {
        const char *address = (*kind)();
        if (address == NULL) {
            print_message("no IPv6 here\n");
            continue;
        }
        wires_begin();
        const struct listening server = listening_open(address);
        struct actor *client = actor_start(NO_ACTS);
        skua_socket *near = socket_new();
        skua_socket *far = socket_new();
        actor_tell(server.actor,
                   ACTS(accepts(ACCEPT, server.listener), expects(completion(ACCEPT, 0)),
                        keeps(near), reads_line(3, near, "\n", 10), expects(received(3, "ping\n")),
                        writes_text(4, near, "pong\n"), expects(failure(4, 0))));
        actor_perform(client,
                      ACTS(connects(CONNECT, server.address), expects(completion(CONNECT, 0)),
                           keeps(far), writes_text(5, far, "ping\n"), expects(failure(5, 0)),
                           reads_line(6, far, "\n", 10), expects(received(6, "pong\n"))));
        actor_await_seen(server.actor, 3);
        const skua_socket_snapshot at_client = snapshot_of(client, far);
        const skua_socket_snapshot at_server = snapshot_of(server.actor, near);
        assert_string_equal(at_client.peer, server.address);
        assert_string_equal(at_server.local, server.address);
        assert_string_equal(at_server.peer, at_client.local);
    }
}

TEST(connection_that_waits_is_accepted_and_so_is_one_that_comes_later)
{
    FOR_ROWS (kind, kinds) {
        const char *address = (*kind)();
        if (address == NULL) {
            continue;
        }
        wires_begin();
        const struct listening server = listening_open(address);
        (void)peer_connect(server.address);
        actor_perform(server.actor, ACTS(accepts(1, server.listener), expects(completion(1, 0))));
        actor_perform(server.actor, ACTS(accepts(2, server.listener)));
        actor_await_state(server.actor, SKUA_PROCESS_BLOCKED);
        (void)peer_connect(server.address);
        actor_await_seen(server.actor, 2);
        assert_saw_from(server.actor, 1, (struct seen[]){completion(2, 0)}, 1);
    }
}

/* ---- listening ---- */

TEST(listening_tells_why_it_cannot)
{
    const char *path = unix_address();
    static const struct {
        const char *address;
        int error;
    } rows[] = {
        {"", SKUA_E_ADDRESS},
        {"localhost:80", SKUA_E_ADDRESS},
        {"127.0.0.1", SKUA_E_ADDRESS},
        {"192.0.2.1:0", SKUA_E_ADDRESS}, /* of nobody's machine */
        {"unix:", SKUA_E_ADDRESS},
        {"unix:/no/such/folder/s", SKUA_E_ADDRESS},
        {"unix:/dev/null/s", SKUA_E_ADDRESS},
    };
    wires_begin();
    struct actor *actor = actor_start(NO_ACTS);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        skua_socket *listener = socket_new();
        listener->bits = 77;
        actor_perform(actor, ACTS(refused(listens(listener, rows[i].address), rows[i].error)));
        assert_int_equal(listener->bits, 0);
    }
    skua_socket *first = socket_new();
    skua_socket *second = socket_new();
    actor_perform(
        actor, ACTS(listens(first, path), refused(listens(second, path), SKUA_E_ADDRESS_IN_USE)));
    assert_int_equal(open_sockets(), 1);
}

TEST(port_that_is_listened_on_is_in_use)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    skua_socket *second = socket_new();
    actor_perform(server.actor,
                  ACTS(refused(listens(second, server.address), SKUA_E_ADDRESS_IN_USE),
                       closes(server.listener), listens(second, server.address)));
}

TEST(port_can_be_shared_by_those_who_say_so)
{
    wires_begin();
    const skua_listen_options shares = {.reuseport = true};
    struct actor *actor = actor_start(NO_ACTS);
    skua_socket *first = socket_new();
    skua_socket *second = socket_new();
    skua_socket *third = socket_new();
    actor_perform(actor, ACTS(listens_with(first, "127.0.0.1:0", &shares)));
    const skua_socket_snapshot at = snapshot_of(actor, first);
    actor_perform(actor, ACTS(listens_with(second, at.local, &shares),
                              refused(listens(third, at.local), SKUA_E_ADDRESS_IN_USE)));
}

/* A connection that has been closed a moment ago leaves its port in TIME_WAIT. */
TEST(port_can_be_listened_on_again_at_once)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    const int peer = peer_connect(server.address);
    skua_socket *near = socket_new();
    skua_socket *again = socket_new();
    actor_perform(server.actor, ACTS(accepts(1, server.listener), expects(completion(1, 0)),
                                     keeps(near), closes(near), closes(server.listener)));
    assert_peer_at_end(peer);
    fd_close(peer);
    actor_perform(server.actor, ACTS(listens(again, server.address)));
}

TEST(backlog_is_what_the_program_says)
{
    const char *address = abstract_address();
    wires_begin();
    const skua_listen_options options = {.backlog = 1};
    struct actor *actor = actor_start(NO_ACTS);
    skua_socket *listener = socket_new();
    actor_perform(actor, ACTS(listens_with(listener, address, &options)));
    /* A Unix listener holds one more than its backlog; the next connect would wait for ever. */
    for (int i = 0; i < 2; i++) {
        (void)peer_connect(address);
    }
    actor_perform(actor,
                  ACTS(connects(CONNECT, address), expects(failure(CONNECT, SKUA_E_REFUSED))));
}

TEST(file_of_a_unix_listener_is_removed_with_it)
{
    const char *address = unix_address();
    const char *path = address + strlen("unix:");
    struct stat status;
    wires_begin();
    struct actor *actor = actor_start(NO_ACTS);
    skua_socket *listener = socket_new();
    actor_perform(actor, ACTS(listens(listener, address)));
    assert_int_equal(stat(path, &status), 0);
    actor_perform(actor, ACTS(closes(listener)));
    assert_int_equal(stat(path, &status), -1);
    actor_perform(actor, ACTS(listens(listener, address)));
    world_close();
    assert_int_equal(stat(path, &status), -1);
}

/* The file of a listener that somebody else has made is theirs. */
TEST(file_of_an_adopted_listener_stays)
{
    const char *address = unix_address();
    const char *path = address + strlen("unix:");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat status;
    files_must_come_back();
    const int fd = fd_own(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 5), 0);
    wires_begin();
    struct actor *actor = actor_start(NO_ACTS);
    skua_socket *listener = socket_new();
    actor_perform(actor, ACTS(adopts(listener, fd)));
    fd_disown(fd);
    (void)peer_connect(address);
    actor_perform(actor, ACTS(accepts(1, listener), expects(completion(1, 0)), closes(listener)));
    assert_int_equal(stat(path, &status), 0);
}

/* ---- accepting ---- */

TEST(accept_times_out_and_can_be_taken_back)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    actor_perform(server.actor,
                  ACTS(within(SKUA_MILLISECOND, accepts(1, server.listener)),
                       expects(failure(1, SKUA_E_TIMEOUT)), within(0, accepts(2, server.listener)),
                       expects(failure(2, SKUA_E_TIMEOUT)), accepts(3, server.listener),
                       accepts(4, server.listener), expects(failure(4, SKUA_E_SOCKET_BUSY)),
                       cancels(3), expects(failure(3, SKUA_E_CANCELLED))));
    const int peer = peer_connect(server.address);
    skua_socket *near = socket_new();
    actor_perform(server.actor,
                  ACTS(accepts(5, server.listener), expects(completion(5, 0)), keeps(near),
                       writes_text(6, near, "x"), expects(failure(6, 0))));
    assert_peer_gets(peer, "x");
}

TEST(accept_ends_when_the_listener_is_closed)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    actor_perform(server.actor, ACTS(accepts(1, server.listener), continues(1),
                                     closes(server.listener), expects(failure(1, SKUA_E_CLOSED)),
                                     refused(accepts(2, server.listener), SKUA_E_SOCKET)));
    assert_int_equal(peer_try_connect(server.address), -ECONNREFUSED);
}

/* Connections race with the end of the accept's time: each is accepted in the end, once. */
TEST(no_connection_is_lost_when_it_races_with_time_outs)
{
    enum { CONNECTIONS = 300 };
    wires_begin();
    const struct listening server = listening_open(abstract_address());
    unsigned accepted = 0;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        actor_tell(server.actor,
                   ACTS(within((uint64_t)(i % 40) * 2500, accepts(i, server.listener)), awaits(1)));
        fd_close(peer_connect(server.address));
        actor_await_seen(server.actor, i + 1);
        accepted += server.actor->seen[i].error == 0;
    }
    for (; accepted < CONNECTIONS; accepted++) {
        actor_perform(server.actor, ACTS(accepts(7, server.listener), expects(completion(7, 0))));
    }
    actor_perform(server.actor, ACTS(within(0, accepts(8, server.listener)),
                                     expects(failure(8, SKUA_E_TIMEOUT))));
}

TEST(listener_can_neither_be_read_nor_written)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(server.actor, ACTS(refused(reads_some(1, server.listener, 10), SKUA_E_SOCKET),
                                     refused(writes_text(1, server.listener, "x"), SKUA_E_SOCKET),
                                     refused(awaits_hangup(1, server.listener), SKUA_E_SOCKET),
                                     refused(shuts_down(server.listener), SKUA_E_SOCKET)));
    actor_perform(wire.actor, ACTS(refused(accepts(1, wire.socket), SKUA_E_SOCKET)));
}

/* ---- connecting ---- */

/* A socket that has a port, but does not listen. */
static int bound_open(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = fd_own(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

TEST(connect_tells_why_it_cannot)
{
    const char *nobody = unix_address();
    wires_begin();
    const int bound = bound_open(); /* and kept: nobody else listens there meanwhile */
    char closed[64];
    (void)snprintf(closed, sizeof closed, "127.0.0.1:%u", port_of(bound));
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor,
                  ACTS(refused(connects(1, "localhost:80"), SKUA_E_ADDRESS),
                       refused(connects(1, "127.0.0.1:65536"), SKUA_E_ADDRESS),
                       refused(connects_from(1, "127.0.0.1:80", "me:0"), SKUA_E_ADDRESS),
                       connects(1, closed), expects(failure(1, SKUA_E_REFUSED)),
                       connects(2, nobody), expects(failure(2, SKUA_E_REFUSED)),
                       connects(3, "unix:@skua-no-such"), expects(failure(3, SKUA_E_REFUSED)),
                       connects(4, "unix:/dev/null"), expects(failure(4, SKUA_E_REFUSED)),
                       connects_from(5, closed, "192.0.2.1:0"), expects(failure(5, SKUA_E_ADDRESS)),
                       connects_from(6, closed, "[::1]:0"), expects(failure(6, SKUA_E_ADDRESS))));
    assert_int_equal(open_sockets(), 0);
}

TEST(connect_comes_from_where_it_says)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    struct actor *client = actor_start(NO_ACTS);
    skua_socket *near = socket_new();
    skua_socket *far = socket_new();
    actor_perform(client, ACTS(connects_from(1, server.address, "127.0.0.2:0"),
                               expects(completion(1, 0)), keeps(far)));
    actor_perform(server.actor,
                  ACTS(accepts(1, server.listener), expects(completion(1, 0)), keeps(near)));
    const skua_socket_snapshot snapshot = snapshot_of(server.actor, near);
    assert_int_equal(strncmp(snapshot.peer, "127.0.0.2:", strlen("127.0.0.2:")), 0);
    assert_string_equal(snapshot.peer, snapshot_of(client, far).local);
    actor_perform(client, ACTS(connects_from(2, server.address, server.address),
                               expects(failure(2, SKUA_E_ADDRESS_IN_USE))));
}

/* A listener whose backlog is full leaves connects to it unanswered. */
static const char *silent_address(void)
{
    const int listener = listener_open(); /* with a backlog of one */
    char *address = test_alloc(64);
    (void)snprintf(address, 64, "127.0.0.1:%u", port_of(listener));
    for (int i = 0; i < 8; i++) {
        (void)connection_open(port_of(listener), SOCK_NONBLOCK);
    }
    return address;
}

TEST(connect_that_nobody_answers_times_out_and_can_be_taken_back)
{
    wires_begin();
    const char *address = silent_address();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(within(SKUA_MILLISECOND, connects(1, address)),
                              expects(failure(1, SKUA_E_TIMEOUT)), connects(2, address),
                              continues(1), cancels(2), expects(failure(2, SKUA_E_CANCELLED))));
    await_sockets(0); /* they are given up soon after */
}

TEST(connect_that_nobody_answers_ends_with_its_process)
{
    wires_begin();
    const char *address = silent_address();
    struct actor *actor = actor_start(ACTS(connects(1, address)));
    actor_await_state(actor, SKUA_PROCESS_BLOCKED);
    assert_int_equal(open_sockets(), 1);
    assert_int_equal(world_terminate(actor->pid), 0);
    actor_await_end(actor);
    await_sockets(0);
}

/* ---- descriptors of the program ---- */

TEST(socket_that_was_detached_is_the_programs_again)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        int fd = 77;
        actor_perform(wire.actor, ACTS(writes_text(1, wire.socket, "one"), expects(failure(1, 0)),
                                       detaches(wire.socket, &fd),
                                       refused(closes(wire.socket), SKUA_E_SOCKET)));
        (void)fd_own(fd);
        assert_int_equal(open_sockets(), 0);
        assert_peer_gets(wire.peer, "one");
        peer_sends(wire.peer, "two");
        assert_peer_gets(fd, "two");
        skua_socket *again = socket_new();
        actor_perform(wire.actor, ACTS(adopts(again, fd)));
        fd_disown(fd);
        peer_sends(wire.peer, "three");
        actor_perform(wire.actor, ACTS(reads_some(2, again, 10), expects(received(2, "three"))));
    }
}

TEST(socket_with_open_yields_or_data_cannot_be_detached)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    int fd = 77;
    peer_sends(wire.peer, "abc");
    actor_perform(wire.actor,
                  ACTS(reads_exactly(1, wire.socket, 1), expects(received(1, "a")),
                       refused(detaches(wire.socket, &fd), SKUA_E_SOCKET_BUSY), /* "bc" */
                       reads_some(2, wire.socket, 9), expects(received(2, "bc")),
                       awaits_hangup(3, wire.socket), continues(1),
                       refused(detaches(wire.socket, &fd), SKUA_E_SOCKET_BUSY), cancels(3),
                       expects(failure(3, SKUA_E_CANCELLED)), writes_text(4, wire.socket, "x"),
                       refused(detaches(wire.socket, &fd), SKUA_E_SOCKET_BUSY),
                       expects(failure(4, 0))));
    assert_int_equal(fd, -1);
}

TEST(what_is_no_stream_is_not_adopted)
{
    wires_begin();
    struct actor *actor = actor_start(NO_ACTS);
    skua_socket *socket_place = socket_new();
    const struct ends pipe = pipe_open();
    const int datagram = fd_own(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int unconnected = fd_own(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int fds[] = {-1, 1 << 20, pipe.near, file_open(), datagram, unconnected};
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        actor_perform(actor, ACTS(refused(adopts(socket_place, fds[i]), SKUA_E_DESCRIPTOR)));
        assert_int_equal(socket_place->bits, 0);
    }
    assert_int_equal(open_sockets(), 0);
}

/* The registration of a number outlives it while another number means the same file. */
TEST(number_that_meant_the_same_connection_before_can_be_adopted_again)
{
    wires_begin();
    const struct ends ends = pair_open();
    struct actor *actor = actor_start(NO_ACTS);
    skua_socket *near = socket_new();
    const int number = dup(ends.near);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dup2(ends.near, number), number);
        actor_perform(actor, ACTS(adopts(near, number)));
        write_byte(ends.far);
        actor_perform(actor, ACTS(reads_some(1, near, 1), expects(received(1, "x")), closes(near)));
    }
}
