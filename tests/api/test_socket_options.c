/* SPDX-License-Identifier: MIT */
/* Options, and what can be seen of a socket. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/runtime.h"
#include "wire.h"

/* What the system says of the socket with this handle. */
static int system_option(skua_socket handle, int level, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    struct socket *socket = socket_at(world_sockets(), socket_slot(handle.bits));
    assert_int_equal(getsockopt(socket_fd(socket), level, option, &value, &size), 0);
    return value;
}

/* ---- a connection's own ---- */

TEST(connections_send_small_pieces_at_once_unless_told_otherwise)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    struct actor *client = actor_start(NO_ACTS);
    skua_socket *near = socket_new();
    skua_socket *far = socket_new();
    actor_perform(client, ACTS(connects(1, server.address), expects(completion(1, 0)), keeps(far)));
    actor_perform(server.actor,
                  ACTS(accepts(1, server.listener), expects(completion(1, 0)), keeps(near)));
    assert_int_not_equal(system_option(*near, IPPROTO_TCP, TCP_NODELAY), 0);
    assert_int_not_equal(system_option(*far, IPPROTO_TCP, TCP_NODELAY), 0);
    actor_perform(client, ACTS(sets(far, SKUA_SOCKET_NODELAY, 0)));
    assert_int_equal(system_option(*far, IPPROTO_TCP, TCP_NODELAY), 0);
}

TEST(keepalive_is_off_unless_told_otherwise)
{
    const struct wire wire = wire_open(WIRE_TCP);
    assert_int_equal(system_option(*wire.socket, SOL_SOCKET, SO_KEEPALIVE), 0);
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_KEEPALIVE, 90 * SKUA_SECOND + 1)));
    assert_int_equal(system_option(*wire.socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(system_option(*wire.socket, IPPROTO_TCP, TCP_KEEPIDLE), 91);
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_KEEPALIVE, SKUA_DURATION_MAX)));
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_KEEPALIVE, 0)));
    assert_int_equal(system_option(*wire.socket, SOL_SOCKET, SO_KEEPALIVE), 0);
}

TEST(buffers_are_as_large_as_told)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_SEND_BUFFER, 20000),
                                       sets(wire.socket, SKUA_SOCKET_RECEIVE_BUFFER, 30000)));
        /* Linux doubles them. */
        assert_int_equal(system_option(*wire.socket, SOL_SOCKET, SO_SNDBUF), 40000);
        assert_int_equal(system_option(*wire.socket, SOL_SOCKET, SO_RCVBUF), 60000);
    }
}

TEST(value_out_of_range_is_refused)
{
    static const struct {
        int option;
        uint64_t value;
        int error;
    } rows[] = {
        {0, 1, SKUA_E_INVALID},
        {-1, 1, SKUA_E_INVALID},
        {SKUA_SOCKET_PROGRESS + 1, 1, SKUA_E_INVALID},
        {SKUA_SOCKET_NODELAY, 2, SKUA_E_INVALID},
        {SKUA_SOCKET_SEND_BUFFER, 0, SKUA_E_INVALID},
        {SKUA_SOCKET_SEND_BUFFER, UINT64_MAX, SKUA_E_INVALID},
        {SKUA_SOCKET_RECEIVE_BUFFER, 0, SKUA_E_INVALID},
        {SKUA_SOCKET_WRITE_LIMIT, 0, SKUA_E_INVALID},
        {SKUA_SOCKET_WRITE_LIMIT, UINT64_C(1) << 32, SKUA_E_INVALID},
        {SKUA_SOCKET_KEEPALIVE, SKUA_DURATION_MAX + 1, SKUA_E_DURATION},
        {SKUA_SOCKET_IDLE, SKUA_FOREVER, SKUA_E_DURATION},
        {SKUA_SOCKET_PROGRESS, 0, SKUA_E_DURATION},
        {SKUA_SOCKET_PROGRESS, SKUA_FOREVER, SKUA_E_DURATION},
    };
    const struct wire wire = wire_open(WIRE_TCP);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        actor_perform(
            wire.actor,
            ACTS(refused(sets(wire.socket, (enum skua_socket_option)rows[i].option, rows[i].value),
                         rows[i].error)));
    }
}

TEST(option_of_tcp_is_refused_by_a_unix_socket)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor,
                  ACTS(refused(sets(wire.socket, SKUA_SOCKET_NODELAY, 1), SKUA_E_NETWORK)));
}

/* ---- a listener's: what accepted sockets begin with ---- */

static void check_what_is_inherited(const char *address, bool is_tcp)
{
    wires_begin();
    const struct listening server = listening_open(address);
    skua_socket *near = socket_new();
    actor_perform(server.actor, ACTS(sets(server.listener, SKUA_SOCKET_SEND_BUFFER, 20000),
                                     sets(server.listener, SKUA_SOCKET_RECEIVE_BUFFER, 30000),
                                     sets(server.listener, SKUA_SOCKET_WRITE_LIMIT, 10),
                                     sets(server.listener, SKUA_SOCKET_PROGRESS, SKUA_SECOND)));
    if (is_tcp) {
        actor_perform(server.actor,
                      ACTS(sets(server.listener, SKUA_SOCKET_NODELAY, 0),
                           sets(server.listener, SKUA_SOCKET_KEEPALIVE, 50 * SKUA_SECOND)));
    }
    (void)peer_connect(server.address);
    actor_perform(server.actor,
                  ACTS(accepts(1, server.listener), expects(completion(1, 0)), keeps(near),
                       writes_text(2, near, "12345"), writes_text(3, near, "12345"),
                       refused(writes_text(4, near, "1"), SKUA_E_SOCKET_FULL), awaits(2)));
    assert_int_equal(system_option(*near, SOL_SOCKET, SO_SNDBUF), 40000);
    assert_int_equal(system_option(*near, SOL_SOCKET, SO_RCVBUF), 60000);
    if (is_tcp) {
        assert_int_equal(system_option(*near, IPPROTO_TCP, TCP_NODELAY), 0);
        assert_int_equal(system_option(*near, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(system_option(*near, IPPROTO_TCP, TCP_KEEPIDLE), 50);
    }
}

TEST(accepted_sockets_begin_with_what_their_listener_says)
{
    check_what_is_inherited("127.0.0.1:0", true);
    world_close();
    char address[64];
    (void)snprintf(address, sizeof address, "unix:@skua-inherits-%d", (int)getpid());
    check_what_is_inherited(address, false);
}

/* Linux sets the first part of it, and refuses the rest, on a Unix socket. */
TEST(accepted_sockets_do_not_get_what_was_refused_to_their_listener)
{
    wires_begin();
    char address[64];
    (void)snprintf(address, sizeof address, "unix:@skua-refuses-%d", (int)getpid());
    const struct listening server = listening_open(address);
    skua_socket *near = socket_new();
    actor_perform(server.actor,
                  ACTS(refused(sets(server.listener, SKUA_SOCKET_KEEPALIVE, 50 * SKUA_SECOND),
                               SKUA_E_NETWORK)));
    (void)peer_connect(server.address);
    actor_perform(server.actor,
                  ACTS(accepts(1, server.listener), expects(completion(1, 0)), keeps(near)));
    assert_int_equal(system_option(*near, SOL_SOCKET, SO_KEEPALIVE), 0);
}

TEST(accepted_sockets_have_the_idle_time_of_their_listener)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    skua_socket *near = socket_new();
    actor_perform(server.actor,
                  ACTS(sets(server.listener, SKUA_SOCKET_IDLE, 20 * SKUA_MILLISECOND)));
    const int peer = peer_connect(server.address);
    actor_perform(server.actor,
                  ACTS(accepts(1, server.listener), expects(completion(1, 0)), keeps(near),
                       reads_some(2, near, 10), expects(failure(2, SKUA_E_IDLE))));
    assert_peer_is_reset(peer);
    /* The listener itself is never idle. */
    (void)peer_connect(server.address);
    actor_perform(server.actor, ACTS(accepts(3, server.listener), expects(completion(3, 0))));
}

/* ---- idle time ---- */

TEST(idle_connection_is_reset_whether_or_not_anybody_waits)
{
    const struct wire wire = wire_open(WIRE_TCP);
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_IDLE, SKUA_MILLISECOND)));
    assert_peer_is_reset(wire.peer); /* nobody has asked for anything */
    int fd;
    actor_perform(wire.actor,
                  ACTS(reads_some(1, wire.socket, 1), expects(failure(1, SKUA_E_IDLE)),
                       writes_text(2, wire.socket, "x"), expects(failure(2, SKUA_E_IDLE)),
                       awaits_hangup(3, wire.socket), expects(failure(3, SKUA_E_IDLE)),
                       refused(detaches(wire.socket, &fd), SKUA_E_IDLE), shuts_down(wire.socket),
                       closes(wire.socket)));
    await_sockets(0);
}

TEST(idle_connection_ends_all_its_yields)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        actor_perform(wire.actor,
                      ACTS(reads_some(1, wire.socket, 1), awaits_hangup(2, wire.socket),
                           sets(wire.socket, SKUA_SOCKET_IDLE, SKUA_MILLISECOND), awaits(2)));
        assert_then_saw_in_any_order(wire.actor, failure(1, SKUA_E_IDLE), failure(2, SKUA_E_IDLE));
    }
}

TEST(idle_time_passes_to_the_next_owner)
{
    const struct wire wire = wire_open(WIRE_TCP);
    struct actor *other = actor_start(NO_ACTS);
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_IDLE, 5 * SKUA_MILLISECOND),
                                   gives(wire.socket, other)));
    assert_peer_is_reset(wire.peer);
    actor_perform(other, ACTS(reads_some(1, wire.socket, 1), expects(failure(1, SKUA_E_IDLE))));
}

TEST(idle_time_can_be_taken_back)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(sets(wire.socket, SKUA_SOCKET_IDLE, SKUA_MILLISECOND),
                                   sets(wire.socket, SKUA_SOCKET_IDLE, 0),
                                   within(5 * SKUA_MILLISECOND, reads_some(1, wire.socket, 1)),
                                   expects(failure(1, SKUA_E_TIMEOUT)),
                                   writes_text(2, wire.socket, "x"), expects(failure(2, 0))));
}

/* The simulated network is as strict with numbers that mean nothing as the system is lenient. */
static void check_failed_socket(void)
{
    struct actor *server = actor_start(NO_ACTS);
    struct actor *client = actor_start(NO_ACTS);
    skua_socket *listener = socket_new();
    skua_socket *near = socket_new();
    actor_perform(server, ACTS(listens(listener, "127.0.0.1:0")));
    const char *address = test_alloc(SKUA_ADDRESS_SIZE);
    memcpy((char *)(uintptr_t)address, snapshot_of(server, listener).local, SKUA_ADDRESS_SIZE);
    actor_perform(client, ACTS(connects(1, address), expects(completion(1, 0)), keeps(near),
                               sets(near, SKUA_SOCKET_IDLE, SKUA_MILLISECOND),
                               reads_some(2, near, 1), expects(failure(2, SKUA_E_IDLE)),
                               refused(sets(near, SKUA_SOCKET_NODELAY, 1), SKUA_E_NETWORK),
                               shuts_down(near)));
    assert_string_equal(snapshot_of(client, near).local, "");
    actor_perform(client, ACTS(closes(near)));
}

TEST(socket_that_has_failed_can_be_looked_at_and_closed)
{
    wires_begin();
    check_failed_socket();
    world_close();
    world_open_sim(1, SIM_NO_FAULTS);
    check_failed_socket();
}

/* ---- info ---- */

TEST(snapshot_shows_what_went_through)
{
    FOR_ROWS (kind, wire_kinds) {
        const struct wire wire = wire_open(*kind);
        skua_socket_snapshot snapshot = snapshot_of(wire.actor, wire.socket);
        assert_int_equal(snapshot.socket.bits, wire.socket->bits);
        assert_true(skua_pid_equal(snapshot.owner, wire.actor->pid));
        assert_int_equal(snapshot.state, SKUA_SOCKET_OPEN);
        assert_int_equal(
            snapshot.bytes_in + snapshot.bytes_out + snapshot.queued + snapshot.buffered, 0);
        peer_sends(wire.peer, "abcdef");
        actor_perform(wire.actor, ACTS(reads_exactly(1, wire.socket, 2), expects(received(1, "ab")),
                                       writes_text(2, wire.socket, "xyz"), expects(failure(2, 0))));
        snapshot = snapshot_of(wire.actor, wire.socket);
        assert_int_equal(snapshot.bytes_in, 6);
        assert_int_equal(snapshot.buffered, 4);
        assert_int_equal(snapshot.bytes_out, 3);
        assert_int_equal(snapshot.queued, 0);
    }
}

static int look_with_sizes(struct turn *turn, const struct act *act)
{
    const skua_socket *socket = act->arg;
    skua_socket_snapshot snapshot;
    memset(&snapshot, 0x55, sizeof snapshot);
    /* An older program, whose struct ends after the state. */
    const size_t old = offsetof(skua_socket_snapshot, local);
    int error = skua_socket_info_sized(turn->ctx, *socket, &snapshot, old);
    if (error != 0 || snapshot.state != SKUA_SOCKET_OPEN || snapshot.local[0] != 0x55) {
        actor_surprise(turn->actor, "an old struct: %s", skua_error_name(error));
    }
    error = skua_socket_info(turn->ctx, (skua_socket){1}, &snapshot);
    if (error != SKUA_E_SOCKET || snapshot.state != 0) {
        actor_surprise(turn->actor, "no socket: %s", skua_error_name(error));
    }
    return skua_socket_info(turn->ctx, *socket, NULL);
}

TEST(snapshot_fits_the_struct_of_the_program)
{
    const struct wire wire = wire_open(WIRE_UNIX);
    actor_perform(wire.actor, ACTS(refused(does(look_with_sizes, wire.socket), SKUA_E_INVALID)));
}

/* ---- shortages ---- */

static uint64_t turned_away(void)
{
    return load_relaxed(&world_sockets()->turned_away);
}

struct attempts {
    struct meddler *meddler;
    unsigned at_least;
};

static bool has_tried(void *arg)
{
    const struct attempts *attempts = arg;
    return attempts->meddler->accepts >= attempts->at_least;
}

struct decision {
    struct actor *actor;
    uint64_t seen;
    int peer;
};

/* Whether the peer was accepted, or turned away: then it sees the end of its connection. One that
 * was accepted may see a reset instead, before its owner has heard of it, if it is idle. */
static bool is_decided(void *arg)
{
    const struct decision *decision = arg;
    struct pollfd peer = {.fd = decision->peer, .events = POLLIN};
    return tally_count(&decision->actor->arrived) >= decision->seen ||
           (poll(&peer, 1, 0) == 1 && (peer.revents & POLLHUP) == 0);
}

/* Attempts that began when there were none may turn the first away, and all that waited before. */
static void connect_until_served(const struct listening *server, uint64_t seen)
{
    do {
        struct decision decision = {server->actor, seen, peer_connect(server->address)};
        wait_until(is_decided, &decision, "the connection to be accepted");
    } while (tally_count(&server->actor->arrived) < seen);
}

TEST(without_descriptors_connections_are_turned_away_and_nothing_spins)
{
    static const int shortages[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
    need_loopback();
    files_must_come_back();
    world_create((skua_runtime_config){0});
    struct meddler *meddler = meddler_install();
    world_start();
    const struct listening server = listening_open("127.0.0.1:0");
    actor_perform(server.actor, ACTS(sets(server.listener, SKUA_SOCKET_IDLE, SKUA_MILLISECOND)));
    for (size_t i = 0; i < COUNT_OF(shortages); i++) {
        meddler->accept_error = shortages[i];
        const unsigned before = meddler->accepts;
        const uint64_t away = turned_away();
        actor_tell(server.actor, ACTS(accepts(i, server.listener), expects(completion(i, 0))));
        for (int n = 0; n < 3; n++) { /* one after the other: each is turned away in its turn */
            const int peer = peer_connect(server.address);
            char byte;
            assert_true(recv(peer, &byte, 1, 0) <= 0);
        }
        /* One attempt for each, and those that find nobody. */
        assert_in_range(meddler->accepts - before, 3, 20);
        struct attempts more = {meddler, meddler->accepts + 2};
        wait_until(has_tried, &more, "more attempts");
        assert_int_equal(turned_away(), away + 3);
        meddler->accept_error = 0;
        connect_until_served(&server, i + 1); /* service resumes */
    }
}

/* The system limits how much memory a user's epolls have. */
TEST(watches_that_are_used_up_are_a_lack_of_memory)
{
    need_loopback();
    files_must_come_back();
    world_create((skua_runtime_config){0});
    struct meddler *meddler = meddler_install();
    world_start();
    const struct listening server = listening_open("127.0.0.1:0");
    struct actor *client = actor_start(NO_ACTS);
    const struct ends ends = pair_open();
    meddler->watch_error = ENOSPC;
    actor_perform(client, ACTS(refused(listens(socket_new(), "127.0.0.1:0"), SKUA_E_NO_MEMORY),
                               refused(adopts(socket_new(), ends.near), SKUA_E_NO_MEMORY),
                               connects(1, server.address), expects(failure(1, SKUA_E_NO_MEMORY))));
    (void)peer_connect(server.address);
    actor_perform(server.actor,
                  ACTS(accepts(2, server.listener), expects(failure(2, SKUA_E_NO_MEMORY))));
    meddler->watch_error = 0;
    (void)peer_connect(server.address);
    actor_perform(server.actor, ACTS(accepts(3, server.listener), expects(completion(3, 0))));
}

TEST(connections_that_are_gone_are_passed_over_unless_all_are_refused)
{
    static const struct {
        int reason;
        int error;
    } rows[] = {{EPERM, SKUA_E_PERMISSION},
                {ECONNABORTED, SKUA_E_RESET},
                {EHOSTUNREACH, SKUA_E_UNREACHABLE},
                {EPROTO, SKUA_E_NETWORK}};
    need_loopback();
    files_must_come_back();
    world_create((skua_runtime_config){0});
    struct meddler *meddler = meddler_install();
    world_start();
    const struct listening server = listening_open("127.0.0.1:0");
    FOR_ROWS (row, rows) {
        (void)peer_connect(server.address);
        const unsigned before = meddler->accepts;
        meddler->accept_error = row->reason;
        actor_perform(server.actor,
                      ACTS(accepts(1, server.listener), expects(completion(1, row->error)),
                           accepts(2, server.listener), expects(completion(2, row->error))));
        assert_in_range(meddler->accepts - before, 2, 200);
        meddler->accept_fails = 10;
        actor_perform(server.actor, ACTS(accepts(3, server.listener), expects(completion(3, 0))));
        assert_int_equal(meddler->accept_error, 0);
    }
}

/* The same with the system itself: the limit is reached by the program's own files. */
TEST(service_resumes_when_descriptors_come_back)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    int peers[4];
    for (size_t i = 0; i < COUNT_OF(peers); i++) {
        peers[i] = peer_connect(server.address);
    }
    const uint32_t open_files = os_file_count();
    files_allow(open_files); /* some numbers below may be free: these are filled up */
    int filler;
    while ((filler = dup(peers[0])) >= 0) {
        (void)fd_own(filler);
    }
    assert_int_equal(errno, EMFILE);
    actor_tell(server.actor, ACTS(accepts(1, server.listener), expects(completion(1, 0))));
    char byte;
    assert_int_equal(recv(peers[0], &byte, 1, 0), 0); /* turned away */
    files_allow_many();
    connect_until_served(&server, 1); /* the others may have been turned away meanwhile */
}

/* So few are allowed that not even the one that is kept in reserve can be opened again: connections
 * wait. Once there are descriptors, there is one in reserve for the next shortage. */
static bool lacks_reserve(void *arg)
{
    struct kernel *kernel = arg;
    return load_relaxed(&kernel->lacks_spare) != 0;
}

TEST(reserve_that_was_lost_is_replaced)
{
    wires_begin();
    struct kernel *kernel = &world_runtime()->kernel;
    const struct listening server = listening_open("127.0.0.1:0");
    const int peer = peer_connect(server.address);
    skua_socket *near = socket_new();
    files_allow(3);
    actor_tell(server.actor, ACTS(accepts(1, server.listener), expects(completion(1, 0)),
                                  keeps(near), writes_text(2, near, "x"), expects(failure(2, 0))));
    wait_until(lacks_reserve, kernel, "the reserve to be used up");
    files_allow_many();
    assert_peer_gets(peer, "x"); /* it was not turned away */
    assert_false(lacks_reserve(kernel));
    assert_int_equal(turned_away(), 0);
}

TEST(connect_and_listen_say_that_there_are_no_descriptors)
{
    wires_begin();
    const struct listening server = listening_open("127.0.0.1:0");
    skua_socket *another = socket_new();
    struct actor *client = actor_start(NO_ACTS);
    const int one = eventfd_open();
    files_allow(os_file_count());
    int filler;
    while ((filler = dup(one)) >= 0) {
        (void)fd_own(filler);
    }
    actor_perform(client, ACTS(connects(1, server.address), expects(failure(1, SKUA_E_DESCRIPTORS)),
                               refused(listens(another, "127.0.0.1:0"), SKUA_E_DESCRIPTORS)));
    files_allow_many();
    actor_perform(client, ACTS(connects(2, server.address), expects(completion(2, 0))));
}
