/* SPDX-License-Identifier: MIT */
/* Sockets: TCP and Unix streams that belong to processes.
 *
 *     int step(void *self, skua_context *ctx, skua_event *events, size_t count)
 *     ...
 *     case SKUA_EVENT_START:
 *         error = skua_listen(ctx, "127.0.0.1:7000", NULL, &listener);
 *         error = skua_yield_accept(ctx, ACCEPTED, listener, SKUA_FOREVER);
 *     case ACCEPTED:
 *         error = skua_spawn_with(ctx, &(skua_spawn_options){
 *             .type = &session, .socket = skua_payload_to_socket(&event->payload)}, NULL);
 *
 * A socket has one owner at a time, which alone can use it; it is closed when its owner ends. Its
 * handle stays the same when it is given to another process. Data is delivered on request only: a
 * read is a yield, and a process that does not read gets nothing. Writes queue, up to a limit, and
 * leave together at the end of the step.
 *
 * Addresses are text: "127.0.0.1:80", "[::1]:80", "0.0.0.0:0" (any port), "unix:/run/x.sock",
 * "unix:@name" (abstract). No names: nothing is looked up.
 *
 * If a process ends in an orderly way (skua_done, SKUA_E_STOPPED, SKUA_E_CANCELLED), what its
 * sockets have queued is still written, as after skua_socket_close; if it fails or is terminated,
 * its connections are reset.
 *
 * A peer that is gone never raises SIGPIPE. In a simulated runtime all of this works between
 * simulated hosts (skua/sim.h). */
#ifndef SKUA_SOCKET_H
#define SKUA_SOCKET_H

#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Room for the text of an address. */
#define SKUA_ADDRESS_SIZE 128

/* The most that one read returns, whatever it asks for: skua_yield_read. */
#define SKUA_READ_MAX ((size_t)64 * 1024)

/* ---- opening ---- */

/* How to listen. Zero means the default, in every field. */
typedef struct skua_listen_options {
    uint32_t backlog;      /* connections that wait to be accepted; default 4096, or what the system
                              allows if that is less */
    bool reuseport;        /* several sockets may listen on one port, and share what comes */
    uintptr_t reserved[3]; /* zero */
} skua_listen_options;

/* Like skua_listen, with the size of the caller's struct. */
SKUA_API SKUA_NODISCARD int skua_listen_sized(skua_context *ctx, const char *address,
                                              const skua_listen_options *options,
                                              skua_socket *listener, size_t options_size);

/* Listens on an address. A Unix address must not exist yet; its file is removed when the socket is
 * closed.
 * Borrows: address, options (may be null).      Gives: *listener, zero on error.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_ADDRESS (not an address, or not one of this machine); SKUA_E_ADDRESS_IN_USE;
 *          SKUA_E_PERMISSION; SKUA_E_DESCRIPTORS; SKUA_E_NETWORK (see skua_error_os);
 *          SKUA_E_NO_MEMORY; SKUA_E_CONTEXT; SKUA_E_INVALID. */
static inline SKUA_NODISCARD int skua_listen(skua_context *ctx, const char *address,
                                             const skua_listen_options *options,
                                             skua_socket *listener)
{
    return skua_listen_sized(ctx, address, options, listener, sizeof *options);
}

/* Completes with the next connection: skua_payload_to_socket gives the socket, which is this
 * process's. One accept at a time may be open on a listener.
 * If there are no descriptors left, connections are turned away and the accept goes on waiting.
 * The completion's error is 0; SKUA_E_CLOSED (the listener was closed); SKUA_E_TIMEOUT;
 * SKUA_E_CANCELLED; SKUA_E_NO_MEMORY; SKUA_E_SOCKET_BUSY (another is open); SKUA_E_PERMISSION,
 * SKUA_E_RESET, SKUA_E_UNREACHABLE (the system refuses one connection after the other, for this
 * reason); SKUA_E_NETWORK.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET (not a socket of this process, or not a listener); SKUA_E_DURATION;
 *          SKUA_E_NO_MEMORY; SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_accept(skua_context *ctx, uint64_t tag, skua_socket listener,
                                              uint64_t timeout_ns);

/* Connects to an address; from `source`, an address whose port may be 0, if that is not null.
 * Completes with the socket, as skua_yield_accept does.
 * The completion's error is 0; SKUA_E_REFUSED; SKUA_E_UNREACHABLE; SKUA_E_ADDRESS (of the source:
 * not one of this machine; or there is none to connect from, as when no port is free);
 * SKUA_E_ADDRESS_IN_USE; SKUA_E_TIMEOUT; SKUA_E_CANCELLED; SKUA_E_RESET;
 * SKUA_E_PERMISSION; SKUA_E_DESCRIPTORS; SKUA_E_NO_MEMORY; SKUA_E_NETWORK.
 * Borrows: address, source.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_ADDRESS (not an address); SKUA_E_DURATION; SKUA_E_NO_MEMORY; SKUA_E_DONE;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_connect(skua_context *ctx, uint64_t tag, const char *address,
                                               const char *source, uint64_t timeout_ns);

/* Makes a socket of a descriptor: of a connected TCP or Unix stream, or one that listens.
 * Takes:   fd, unless it fails; the program must not use or close it any more. The file of a Unix
 *          address that somebody else has made stays when the socket is closed.
 * Gives:   *socket, zero on error.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DESCRIPTOR (not open, or not such a socket); SKUA_E_NOT_SIMULATED;
 *          SKUA_E_NO_MEMORY; SKUA_E_NETWORK; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_socket_adopt(skua_context *ctx, int fd, skua_socket *socket);

/* Makes a descriptor of a socket again, which is the program's to close. It is non-blocking.
 * Gives:   *fd, -1 on error.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET; SKUA_E_SOCKET_BUSY (a yield is open on it, or it holds data that was
 *          received or is to be sent); the error that has ended it; SKUA_E_NOT_SIMULATED;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_socket_detach(skua_context *ctx, skua_socket socket, int *fd);

/* ---- reading ---- */

/* Reads what there is, at least a byte, at most `most`, SKUA_READ_MAX or the runtime's payload
 * limit, whichever is least.
 * Completes with the bytes as payload; one without bytes is the end of input, which is no error.
 * One read at a time may be open on a socket. What a read that timed out or was taken back did not
 * deliver comes with the next one. The byte that a peer has sent as urgent data (MSG_OOB) is left
 * out, and ends a read that has got something.
 * The completion's error is 0; SKUA_E_RESET (the peer has broken off, or is gone);
 * SKUA_E_UNREACHABLE, SKUA_E_PERMISSION, SKUA_E_NETWORK (what the system says has ended it);
 * SKUA_E_IDLE (see SKUA_SOCKET_IDLE); SKUA_E_NO_PROGRESS (of a write: see SKUA_SOCKET_PROGRESS);
 * SKUA_E_CLOSED (this side has closed it); SKUA_E_TIMEOUT; SKUA_E_CANCELLED; SKUA_E_NO_MEMORY;
 * SKUA_E_SOCKET_BUSY (another read is open).
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET (not a socket of this process, or one that listens); SKUA_E_DURATION;
 *          SKUA_E_NO_MEMORY; SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID (no size). */
SKUA_API SKUA_NODISCARD int skua_yield_read(skua_context *ctx, uint64_t tag, skua_socket socket,
                                            size_t most, uint64_t timeout_ns);

/* Reads exactly `size` bytes. Fewer are the end of input, as are none. `size` is at most the
 * runtime's payload limit.
 * The completion's error is as that of skua_yield_read.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_read; SKUA_E_PAYLOAD_SIZE. */
SKUA_API SKUA_NODISCARD int skua_yield_read_exactly(skua_context *ctx, uint64_t tag,
                                                    skua_socket socket, size_t size,
                                                    uint64_t timeout_ns);

/* Reads up to and with a delimiter of 1 to 4 bytes, as "\n" or "\r\n". A payload that does not end
 * with it is the end of input. If `limit` bytes have come without it, the completion says
 * SKUA_E_TOO_LONG, and they can still be read otherwise.
 * The completion's error is as that of skua_yield_read; SKUA_E_TOO_LONG.
 * Borrows: delimiter.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_read; SKUA_E_PAYLOAD_SIZE. */
SKUA_API SKUA_NODISCARD int skua_yield_read_until(skua_context *ctx, uint64_t tag,
                                                  skua_socket socket, const char *delimiter,
                                                  size_t limit, uint64_t timeout_ns);

/* Completes when the peer has said that it writes no more, or is gone, whether or not anybody
 * reads: for who works on a request and would rather stop if nobody waits for the answer. One at a
 * time may be open on a socket.
 * The completion's error is 0; as that of skua_yield_read, SKUA_E_SOCKET_BUSY if another one of
 * these is open.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_read. */
SKUA_API SKUA_NODISCARD int skua_yield_hangup(skua_context *ctx, uint64_t tag, skua_socket socket,
                                              uint64_t timeout_ns);

/* ---- writing ---- */

/* Like skua_yield_write, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_yield_write_from(skua_context *ctx, uint64_t tag,
                                                  skua_socket socket, skua_payload *payload,
                                                  uint64_t timeout_ns);

/* Writes the bytes of a payload. Any number of writes may be open; they leave in order. Completes
 * when the system has taken the bytes. A write that times out or is taken back has still been
 * queued, and leaves in its place.
 * The completion's error is 0; SKUA_E_RESET; SKUA_E_UNREACHABLE; SKUA_E_PERMISSION;
 * SKUA_E_NETWORK; SKUA_E_NO_PROGRESS (the peer has taken nothing for SKUA_SOCKET_PROGRESS);
 * SKUA_E_IDLE; SKUA_E_CLOSED; SKUA_E_TIMEOUT; SKUA_E_CANCELLED; SKUA_E_NO_MEMORY.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET_FULL (more than SKUA_SOCKET_WRITE_LIMIT would be queued; a payload that
 *          alone is larger is taken if nothing is queued); SKUA_E_SOCKET;
 *          SKUA_E_SHUT_DOWN (after skua_socket_shutdown); SKUA_E_DURATION; SKUA_E_PAYLOAD_SIZE;
 *          SKUA_E_PAYLOAD_TYPE (a pointer payload); SKUA_E_TAKEN; SKUA_E_NO_MEMORY; SKUA_E_DONE;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. On error nothing is queued. */
static inline SKUA_NODISCARD int skua_yield_write(skua_context *ctx, uint64_t tag,
                                                  skua_socket socket, skua_payload payload,
                                                  uint64_t timeout_ns)
{
    return skua_yield_write_from(ctx, tag, socket, &payload, timeout_ns);
}

/* Like skua_socket_write, with a pointer to the payload. */
SKUA_API int skua_socket_write_from(skua_context *ctx, skua_socket socket, skua_payload *payload);

/* Writes like skua_yield_write, but nothing completes: for servers that answer and read on. That
 * the peer is gone shows in the next read; that it is slow, in SKUA_E_SOCKET_FULL.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_write. */
static inline int skua_socket_write(skua_context *ctx, skua_socket socket, skua_payload payload)
{
    return skua_socket_write_from(ctx, socket, &payload);
}

/* ---- ending ---- */

/* Says to the peer that no more is written, after what is queued: its reads come to the end of
 * input. Reading goes on.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_socket_shutdown(skua_context *ctx, skua_socket socket);

/* Closes a socket at the end of this step, after the writes that were yielded in it. What the
 * system has not taken by then is still written for as long as the peer takes something; open
 * yields complete with SKUA_E_CLOSED meanwhile. The handle is not valid any more from now on.
 * A peer that goes on writing may be reset before it has read all: whoever has to be sure that it
 * gets the last answer shuts down, and reads to the end of input before closing.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_socket_close(skua_context *ctx, skua_socket socket);

/* Gives a socket to another process, at once and for good: messages that this process sends to it
 * later find it the owner. If that process ends before it has heard of it, the socket is closed. To
 * start a process with a socket, see skua_spawn_options.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_SOCKET; SKUA_E_SOCKET_BUSY (a yield is
 *          open on it, or something is queued); SKUA_E_NO_MEMORY; SKUA_E_CONTEXT; SKUA_E_INVALID.
 *          On error it stays. */
SKUA_API SKUA_NODISCARD int skua_socket_give(skua_context *ctx, skua_socket socket, skua_pid to);

/* ---- settings, and what there is to know ---- */

/* What can be set on a socket. On one that listens: what accepted sockets begin with. */
enum skua_socket_option {
    SKUA_SOCKET_NODELAY = 1,     /* TCP: send small pieces at once; default 1 */
    SKUA_SOCKET_KEEPALIVE = 2,   /* TCP: ns without data until probes begin; 0, the default: none */
    SKUA_SOCKET_SEND_BUFFER = 3, /* bytes; the system decides unless it is set */
    SKUA_SOCKET_RECEIVE_BUFFER = 4, /* the same */
    SKUA_SOCKET_IDLE = 5,        /* ns without data in either direction, after which the connection
                                       is reset with SKUA_E_IDLE; 0, the default: never */
    SKUA_SOCKET_WRITE_LIMIT = 6, /* bytes that may be queued; default 1 MiB */
    SKUA_SOCKET_PROGRESS = 7,    /* ns that the peer may take nothing of what is queued; then the
                                       connection is reset with SKUA_E_NO_PROGRESS; default 30 s */
};

/* Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET; SKUA_E_INVALID (no such option, or out of its range); SKUA_E_DURATION;
 *          SKUA_E_NETWORK (refused by the system); SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. */
SKUA_API int skua_socket_set(skua_context *ctx, skua_socket socket, enum skua_socket_option option,
                             uint64_t value);

/* What a socket is doing. */
enum skua_socket_state {
    SKUA_SOCKET_LISTENING = 1,  /* for connections */
    SKUA_SOCKET_CONNECTING = 2, /* not connected yet */
    SKUA_SOCKET_OPEN = 3,       /* connected */
    SKUA_SOCKET_SHUT_DOWN = 4,  /* this side writes no more */
    SKUA_SOCKET_CLOSING = 5,    /* closed, and not all that was queued has left */
};

/* A snapshot of a socket. */
typedef struct skua_socket_snapshot {
    skua_socket socket;            /* which */
    skua_pid owner;                /* whose */
    enum skua_socket_state state;  /* what it is doing */
    char local[SKUA_ADDRESS_SIZE]; /* its address */
    char peer[SKUA_ADDRESS_SIZE];  /* that of the other side; empty: none */
    uint64_t bytes_in;             /* received so far */
    uint64_t bytes_out;            /* taken by the system so far */
    uint64_t queued;               /* bytes that wait to be written */
    uint64_t buffered;             /* bytes that were received and wait to be read */
    uint64_t idle_ns;              /* since data last went in either direction */
} skua_socket_snapshot;

/* Like skua_socket_info, with the size of the caller's struct. */
SKUA_API int skua_socket_info_sized(skua_context *ctx, skua_socket socket,
                                    skua_socket_snapshot *snapshot, size_t snapshot_size);

/* Looks at a socket of this process.
 * Gives:   *snapshot, zero on error.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_SOCKET; SKUA_E_CONTEXT; SKUA_E_INVALID. */
static inline int skua_socket_info(skua_context *ctx, skua_socket socket,
                                   skua_socket_snapshot *snapshot)
{
    return skua_socket_info_sized(ctx, socket, snapshot, sizeof *snapshot);
}

/* ---- handles in payloads ---- */

/* The socket in the payload of an accept or a connect; zero if there is none. */
static inline skua_socket skua_payload_to_socket(const skua_payload *payload)
{
    skua_socket socket;
    socket.bits = skua_payload_to_u64(payload);
    return socket;
}

SKUA_END_DECLS

#endif
