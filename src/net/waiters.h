/* SPDX-License-Identifier: MIT */
/* Those that wait for a descriptor of the program's (net/net.h). All of it under the lock. */
#ifndef SKUA_NET_WAITERS_H
#define SKUA_NET_WAITERS_H

#include "net/net.h"

/* What a waiter wants, as epoll says it; and what epoll's events mean to waiters: an error or a
 * hang-up, which the kernel reports whatever was asked for, ends every wait. */
NODISCARD uint32_t waiters_wanted_by(const struct net_waiter *waiter);
NODISCARD uint32_t waiters_readiness_of(uint32_t events);

/* Goes through all waiters of a descriptor. Completes with `error` those that want one of `events`,
 * or all of them if `error` is not 0; frees those whose calls have ended otherwise. */
void waiters_scan_locked(struct net *net, struct worker *worker, struct net_descriptor *descriptor,
                         uint32_t events, int error);

/* Frees one of them. */
void waiters_remove_locked(struct net *net, struct net_waiter **link);

/* A descriptor had waiters, or not, and has some now, or not: the poller knows how many do. */
void waiters_count_locked(struct net *net, bool before, bool after);

#endif
