/* SPDX-License-Identifier: MIT */
/* What sockets are made of: the system's (net/kernel.c), or the simulated network's
 * (sim/network.c). What a process sees of a socket - its queues, limits, deadlines, ends - is the
 * same code above both (net/sockets.h).
 *
 * A number that listen, accept or connect has returned names a socket of the transport until close.
 * Functions return 0 or more, or a negative errno; none waits: what cannot be done now is -EAGAIN,
 * and when that may have changed, the transport reports it.
 *
 * Readiness is reported by edges: sockets_report is called when a socket becomes readable or
 * writable, has reached the end of input, or has failed, at some time after that has become true,
 * for sockets that are watched; it is also called for what is true when the watch begins. A report
 * too many does no harm. Of one socket, one thread at a time calls these functions. */
#ifndef SKUA_NET_TRANSPORT_H
#define SKUA_NET_TRANSPORT_H

#include <sys/types.h>
#include <sys/uio.h>

#include "net/address.h"

struct worker;

struct transport {
    /* `owner` is the process on whose behalf it is opened: in a simulation, that has a host. */
    int (*listen)(struct transport *transport, skua_pid owner, const struct address *address,
                  const skua_listen_options *options);
    /* `source` may be null. The number of a socket that is connected or, as `connected` then says,
     * will be when it becomes writable. */
    int (*connect)(struct transport *transport, skua_pid owner, const struct address *address,
                   const struct address *source);
    /* 0 once it is connected; -EINPROGRESS; or why it is not. */
    int (*connected)(struct transport *transport, int fd);
    int (*accept)(struct transport *transport, int fd);
    /* Takes over a descriptor of the program's: `*listens` says what it is. Null: it cannot. */
    int (*adopt)(struct transport *transport, int fd, bool *listens);
    /* Stops watching it, and leaves it to the program. Null: it cannot. */
    int (*detach)(struct transport *transport, int fd);
    /* Bytes; 0: the end of input. Null, both: by the system (net/transport_io.h). */
    ssize_t (*read)(struct transport *transport, int fd, void *data, size_t size);
    ssize_t (*write)(struct transport *transport, int fd, const struct iovec *pieces, int count);
    /* No more is written. */
    int (*shutdown)(struct transport *transport, int fd);
    /* Nobody listens there any more: comes before the close of a listener. Null: nothing to do. */
    void (*unlisten)(struct transport *transport, int fd);
    /* Ends it; with a reset, if the peer is not to believe that this was the end of input. */
    void (*close)(struct transport *transport, int fd, bool reset);
    /* From now on sockets_report is called with `key`. Once for each socket. */
    int (*watch)(struct transport *transport, int fd, uint64_t key);
    int (*set)(struct transport *transport, int fd, enum skua_socket_option option, uint64_t value);
    /* Its own address, or the other side's. */
    int (*address)(struct transport *transport, int fd, bool of_peer, struct address *address);
    /* Out of descriptors: turns away the connection that waits at a listener, if there is one and
     * it can. */
    bool (*turn_away)(struct transport *transport, int fd);
    /* Asks for a call of sockets_alarm at that time, or soon after; an earlier one stays asked
     * for. `worker` is the caller's or null. */
    void (*wake_at)(struct transport *transport, struct worker *worker, uint64_t when);
};

#endif
