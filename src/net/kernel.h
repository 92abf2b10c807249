/* SPDX-License-Identifier: MIT */
/* The system's sockets as a transport; see net/transport.h. Readiness comes from the epoll that the
 * scheduler's poller waits for (net/net.h). */
#ifndef SKUA_NET_KERNEL_H
#define SKUA_NET_KERNEL_H

#include "net/transport.h"

struct net;

struct kernel {
    struct transport transport;
    struct net *net;
    int spare; /* a descriptor that is given up to turn a connection away; under net->lock */
};

void kernel_init(struct kernel *kernel, struct net *net);
void kernel_deinit(struct kernel *kernel);

#endif
