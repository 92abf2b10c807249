/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/address.h"
#include "runtime/runtime.h"

/* What the peer sends or compares at once. */
#define PIECE ((size_t)16384)

const enum wire_kind wire_kinds[2] = {WIRE_UNIX, WIRE_TCP};

/* ---- files ---- */

static uint32_t file_count;
static uint64_t counted_for;

static void check_files(void)
{
    assert_int_equal(os_file_count(), file_count);
}

void files_must_come_back(void)
{
    if (counted_for != test_number) {
        counted_for = test_number;
        file_count = os_file_count();
        test_at_end(check_files);
    }
}

/* ---- the runtime ---- */

void wires_begin_with(skua_runtime_config config)
{
    need_loopback();
    files_must_come_back();
    world_open_with(config);
}

void wires_begin(void)
{
    wires_begin_with((skua_runtime_config){0});
}

struct sockets *world_sockets(void)
{
    return &world_runtime()->sockets;
}

uint32_t open_sockets(void)
{
    return load_acquire(&world_sockets()->count);
}

uint32_t lingering_sockets(void)
{
    return load_acquire(&world_sockets()->lingering);
}

static bool has_so_many(void *arg)
{
    return open_sockets() == *(const uint32_t *)arg;
}

void await_sockets(uint32_t open)
{
    wait_until(has_so_many, &open, "the number of open sockets");
}

/* ---- wires ---- */

static void make_blocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

static struct ends tcp_ends(void)
{
    const int listener = listener_open();
    const int far = connection_open(port_of(listener), 0);
    make_blocking(listener);
    const int near = fd_own(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    const int one = 1;
    assert_int_equal(setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    fd_close(listener);
    return (struct ends){.near = near, .far = far};
}

struct ends wire_ends(enum wire_kind kind)
{
    const struct ends ends = kind == WIRE_TCP ? tcp_ends() : pair_open();
    make_blocking(ends.far);
    return ends;
}

struct wire wire_open(enum wire_kind kind)
{
    if (!world->is_open || world->test_number != test_number) {
        wires_begin();
    }
    const struct ends ends = wire_ends(kind);
    skua_socket *socket = socket_new();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(adopts(socket, ends.near)));
    fd_disown(ends.near);
    return (struct wire){.actor = actor, .socket = socket, .peer = ends.far};
}

skua_socket_snapshot snapshot_of(struct actor *owner, const skua_socket *socket)
{
    skua_socket_snapshot *snapshot = test_alloc(sizeof *snapshot);
    actor_perform(owner, ACTS(looks_at(socket, snapshot)));
    return *snapshot;
}

struct listening listening_open(const char *address)
{
    struct listening listening = {.actor = actor_start(NO_ACTS), .listener = socket_new()};
    actor_perform(listening.actor, ACTS(listens(listening.listener, address)));
    const skua_socket_snapshot snapshot = snapshot_of(listening.actor, listening.listener);
    memcpy(listening.address, snapshot.local, sizeof listening.address);
    return listening;
}

/* ---- the other end ---- */

int peer_try_connect(const char *text)
{
    struct address address;
    assert_int_equal(address_parse(text, &address), 0);
    const int fd = fd_own(socket(address.as.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd, &address.as.any, address.size) == 0) {
        return fd;
    }
    const int error = -errno;
    fd_close(fd);
    return error;
}

int peer_connect(const char *text)
{
    const int fd = peer_try_connect(text);
    assert_true(fd >= 0);
    return fd;
}

int peer_accept(int listener)
{
    struct pollfd poll_for = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&poll_for, 1, -1), 1);
    return fd_own(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

static void send_all(int peer, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t sent = send(peer, at, size, MSG_NOSIGNAL);
        assert_true(sent > 0);
        at += sent;
        size -= (size_t)sent;
    }
}

void peer_sends(int peer, const char *text)
{
    send_all(peer, text, strlen(text));
}

void peer_sends_pattern(int peer, uint64_t from, size_t size)
{
    unsigned char piece[PIECE];
    while (size > 0) {
        const size_t length = size < PIECE ? size : PIECE;
        pattern_fill(piece, from, length);
        send_all(peer, piece, length);
        from += length;
        size -= length;
    }
}

static void assert_gets(int peer, const void *expected, size_t size)
{
    unsigned char data[PIECE];
    size_t got = 0;
    while (got < size) {
        const ssize_t count = recv(peer, data + got, size - got, 0);
        if (count <= 0) {
            fail_msg("the peer got %zu bytes of %zu: %s", got, size,
                     count == 0 ? "the end" : strerror(errno));
        }
        got += (size_t)count;
    }
    assert_memory_equal(data, expected, size);
}

void assert_peer_gets(int peer, const char *text)
{
    assert_in_range(strlen(text), 1, PIECE);
    assert_gets(peer, text, strlen(text));
}

void assert_peer_gets_pattern(int peer, uint64_t from, size_t size)
{
    unsigned char expected[PIECE];
    while (size > 0) {
        const size_t length = size < PIECE ? size : PIECE;
        pattern_fill(expected, from, length);
        assert_gets(peer, expected, length);
        from += length;
        size -= length;
    }
}

void assert_peer_at_end(int peer)
{
    char byte;
    assert_int_equal(recv(peer, &byte, 1, 0), 0);
}

void assert_peer_is_reset(int peer)
{
    char byte;
    assert_int_equal(recv(peer, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

void peer_resets(int peer)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    fd_close(peer);
}

/* ---- bytes ---- */

void pattern_fill(void *data, uint64_t from, size_t size)
{
    unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        const uint64_t at = from + i;
        bytes[i] = (unsigned char)(at * UINT64_C(0x9e3779b97f4a7c15) >> 56);
    }
}

struct seen received_pattern(uint64_t tag, uint64_t from, size_t size)
{
    void *data = test_alloc(size);
    pattern_fill(data, from, size);
    return received_bytes(tag, data, size);
}
