/* SPDX-License-Identifier: MIT */
/* Sockets of processes, and the other ends of their connections:
 *
 *   TEST(line_comes_as_one_payload)
 *   {
 *       FOR_ROWS (kind, wire_kinds) {
 *           const struct wire wire = wire_open(*kind);
 *           peer_sends(wire.peer, "a line\n");
 *           actor_perform(wire.actor, ACTS(reads_line(1, wire.socket, "\n", 100),
 *                                          expects(received(1, "a line\n"))));
 *       }
 *   }
 *
 * The other end of a wire, its peer, is a descriptor of the test's that blocks. Acts name sockets
 * by where their handles are kept, so that scripts can be written before there is one. Other
 * threads of the test may use a peer. */
#ifndef SKUA_TESTS_WIRE_H
#define SKUA_TESTS_WIRE_H

#include <skua/socket.h>

#include "actor.h"
#include "waits.h"

/* ---- acts ---- */

/* The place of a handle; the memory lives until the end of the test. */
skua_socket *socket_new(void);

struct act listens(skua_socket *listener, const char *address);
struct act listens_with(skua_socket *listener, const char *address,
                        const skua_listen_options *options);
struct act accepts(uint64_t tag, const skua_socket *listener);
struct act connects(uint64_t tag, const char *address);
struct act connects_from(uint64_t tag, const char *address, const char *source);
/* Keeps the socket that the last event has brought. */
struct act keeps(skua_socket *socket);
/* The descriptor is the socket's from then on. */
struct act adopts(skua_socket *socket, int fd);
struct act detaches(skua_socket *socket, int *fd);

struct act reads_some(uint64_t tag, const skua_socket *socket, size_t most);
struct act reads_exactly(uint64_t tag, const skua_socket *socket, size_t size);
struct act reads_line(uint64_t tag, const skua_socket *socket, const char *delimiter, size_t limit);
struct act awaits_hangup(uint64_t tag, const skua_socket *socket);

/* Text; a part of the pattern (below); or any payload, see with_payload. */
struct act writes_text(uint64_t tag, const skua_socket *socket, const char *text);
struct act writes_pattern(uint64_t tag, const skua_socket *socket, uint64_t from, size_t size);
struct act writes_payload(uint64_t tag, const skua_socket *socket, skua_payload payload);

/* The same without a completion. */
struct act tells(const skua_socket *socket, const char *text);
struct act tells_pattern(const skua_socket *socket, uint64_t from, size_t size);
struct act tells_payload(const skua_socket *socket, skua_payload payload);

struct act shuts_down(const skua_socket *socket);
struct act closes(const skua_socket *socket);
struct act gives(const skua_socket *socket, struct actor *to);
struct act spawns_owner(const skua_socket *socket, struct actor *actor);
struct act sets(const skua_socket *socket, enum skua_socket_option option, uint64_t value);
struct act looks_at(const skua_socket *socket, skua_socket_snapshot *snapshot);

/* ---- a process with a socket, and its peer ---- */

enum wire_kind { WIRE_UNIX, WIRE_TCP };
extern const enum wire_kind wire_kinds[2];

struct wire {
    struct actor *actor;
    skua_socket *socket;
    int peer; /* owned by the test: see fd_close */
};

/* A runtime on which sockets are tried; the test is skipped without a network. All descriptors
 * have to be closed again when the test ends. */
void wires_begin(void);
void wires_begin_with(skua_runtime_config config);
/* That alone. */
void files_must_come_back(void);

/* A runtime, if there is none yet, and a connection whose near end belongs to an actor. */
struct wire wire_open(enum wire_kind kind);

/* The descriptors of a connection; the test's. The far end blocks. */
struct ends wire_ends(enum wire_kind kind);

/* An actor that listens; returns it, the listener, and its address. */
struct listening {
    struct actor *actor;
    skua_socket *listener;
    char address[SKUA_ADDRESS_SIZE];
};
struct listening listening_open(const char *address);

/* Where a socket is, as its owner sees it. */
skua_socket_snapshot snapshot_of(struct actor *owner, const skua_socket *socket);

/* ---- the other end ---- */

/* Connects to an address; owned by the test. Its connect may be refused: -errno. */
int peer_connect(const char *text);
int peer_try_connect(const char *text);
/* The next connection of a listener of the test's. */
int peer_accept(int listener);

void peer_sends(int peer, const char *text);
void peer_sends_pattern(int peer, uint64_t from, size_t size);

void assert_peer_gets(int peer, const char *text);
void assert_peer_gets_pattern(int peer, uint64_t from, size_t size);
/* The end of input, or a reset, is next. */
void assert_peer_at_end(int peer);
void assert_peer_is_reset(int peer);

/* Breaks the connection off. */
void peer_resets(int peer);

/* Bytes that are all different enough: those from `from` on of one endless row. */
void pattern_fill(void *data, uint64_t from, size_t size);
struct seen received_pattern(uint64_t tag, uint64_t from, size_t size);

/* ---- the sockets of the current runtime ---- */

struct sockets *world_sockets(void);
/* Open ones; those among them that linger. */
uint32_t open_sockets(void);
uint32_t lingering_sockets(void);
void await_sockets(uint32_t open);

/* ---- the system in between ---- */

/* What the runtime asks of the system, counted, and made to answer otherwise. All at any time. */
struct meddler {
    atomic_uint reads;
    atomic_uint writes;
    atomic_uint accepts;
    atomic_uint most_pieces;  /* of one write */
    atomic_size_t write_most; /* bytes that a write takes; 0: as many as there are */
    atomic_int accept_error;  /* an errno that accepts fail with, or 0 */
    atomic_int watch_error;   /* the same for watches */
    atomic_uint accept_fails; /* how many of them; 0: all */
};

/* Between world_create and world_start. */
struct meddler *meddler_install(void);

#endif
