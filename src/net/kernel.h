/* SPDX-License-Identifier: MIT */
/* The system's sockets as a transport; see net/transport.h. Readiness comes from the epoll that the
 * scheduler's poller waits for (net/net.h). */
#ifndef SKUA_NET_KERNEL_H
#define SKUA_NET_KERNEL_H

#include "net/epoll_set.h"
#include "net/sockets.h"

struct net;

struct kernel {
    struct transport transport;
    struct net *net;
    int spare; /* a descriptor that is given up to turn a connection away; under net->lock */
    atomic_u32 lacks_spare; /* somebody was faster to take it: another one is wanted */
};

/* The data of a registration: {1 | slot:31 | generation:32} of a socket, {0 | serial:31 |
 * number:32} of another descriptor. */
#define KERNEL_KEY (UINT64_C(1) << 63)

/* Registers a socket with an epoll, once. Returns 0 or an errno. */
NODISCARD int kernel_register(struct epoll_set *set, int fd, uint64_t key);

/* Registers all of them with a new one. */
void kernel_register_all(struct epoll_set *set, struct sockets *sockets);

/* Reports the sockets among `events`; returns how many others there are, and moves these to the
 * front. */
NODISCARD uint32_t kernel_report(struct sockets *sockets, struct worker *worker,
                                 struct epoll_event *events, uint32_t count, struct epoll_set *set);

void kernel_init(struct kernel *kernel, struct net *net);
void kernel_deinit(struct kernel *kernel);

#endif
