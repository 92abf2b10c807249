/* SPDX-License-Identifier: MIT */
/* Waiting for descriptors: the yields of skua/net.h, and the poller of the scheduler
 * (sched/poller.h) on top of epoll.
 *
 * A descriptor that is waited for is registered with EPOLLET and EPOLLONESHOT, for what its waiters
 * want: the kernel reports it once, and only if it is ready then or later; nothing wakes anybody
 * while nobody waits. It stays registered, disarmed, so the next wait is one epoll_ctl again.
 *
 * A close() notifies no waiter, and the number may at once mean another file. The kernel keeps
 * registrations by file and number: changing one fails if the number means another file now
 * (ENOENT) or none (EBADF). Then its waiters get SKUA_E_CLOSED. A close is noticed when somebody
 * waits for the number again, when an event for it arrives (a file lives on if it has another
 * number somewhere), by skua_descriptor_close, or by a chore. Events carry a serial besides the
 * number, so that a late one about an earlier file is recognised.
 *
 * A waiter is a completion: its call may end otherwise (deadline, cancel, exit). The ended waiter
 * stays until the next scan of the descriptor's waiters, which happens when an event arrives and
 * whenever their number has doubled.
 *
 * If the program closes our epoll, there is a new one, and what is waited for is registered again
 * (net/epoll_set.h).
 *
 * One lock guards all of it. Completing a call under it takes locks of the scheduler, never the
 * other way round. */
#ifndef SKUA_NET_NET_H
#define SKUA_NET_NET_H

#include <pthread.h>

#include "net/epoll_set.h"
#include "net/sockets.h"
#include "sched/poller.h"
#include "sched/scheduler.h"

#define NET_BATCH 128

struct net_waiter {
    struct net_waiter *next;
    skua_completion completion;
    bool writes;
};

struct net_descriptor {
    struct net_waiter *waiters;
    uint32_t serial;  /* grows when the number means another file */
    uint32_t wanted;  /* events that some waiter wants, or wanted at the last scan */
    uint32_t count;   /* of waiters, ended ones included */
    uint32_t scan_at; /* a count at which a scan for ended ones is worth it */
};

struct net {
    struct poller poller;
    struct scheduler *sched;
    struct sockets *sockets; /* whose readiness it reports */
    /* It has a lock of its own: the thread that gave the token may get to interrupt the wait only
     * after the runtime has stopped. */
    struct epoll_set set;
    struct epoll_event ready[NET_BATCH]; /* for the holder of the poller's role */
    pthread_mutex_t lock;
    unsigned lost;                      /* under lock: what is to be logged */
    struct net_descriptor *descriptors; /* under lock; by number */
    uint32_t capacity;                  /* under lock */
};

void net_init(struct net *net, struct scheduler *sched, struct sockets *sockets);
void net_deinit(struct net *net);

/* Makes it the scheduler's service for waiting for descriptors. */
void net_attach(struct net *net);

/* As skua_descriptor_close. `worker` is the caller's or null. */
int net_close_descriptor(struct net *net, struct worker *worker, int fd);

/* For the sockets of the system (net/kernel.c): there is one more, up to net_unwatch or
 * net_close_socket. */
void net_count_socket(struct net *net);

/* Watches a descriptor that is ours: from now on
 * sockets_report is called with `key` when something about it changes. Returns 0 or a negative
 * errno. */
NODISCARD int net_watch(struct net *net, int fd, uint64_t key);

/* Stops watching it, and leaves it open; or closes it. */
NODISCARD int net_unwatch(struct net *net, int fd);
void net_close_socket(struct net *net, int fd);

/* sockets_alarm is called at that time. */
void net_wake_sockets(struct net *net, struct worker *worker, uint64_t when);

#endif
