/* SPDX-License-Identifier: MIT */
/* The scheduler's interface to I/O: epoll in net/, simulated sources in tests. Only the holder of
 * the poller's role (sched/poll.h) calls wait and deliver. */
#ifndef SKUA_SCHED_POLLER_H
#define SKUA_SCHED_POLLER_H

#include <stdint.h>

struct scheduler;
struct worker;

struct poller {
    /* Before the workers start: returns 0 or SKUA_E_POLLER. After they have ended. */
    int (*open)(struct poller *poller);
    void (*close)(struct poller *poller);
    /* Waits until something is ready, until the runtime's clock shows `deadline` (UINT64_MAX:
     * never; 0: does not wait), until it is interrupted, or for no reason. Returns how much is
     * ready. */
    uint32_t (*wait)(struct poller *poller, uint64_t deadline);
    /* Completes the calls that the last wait found ready. `worker` is the caller's or null. */
    void (*deliver)(struct poller *poller, struct worker *worker, uint32_t ready);
    /* Ends the wait that is under way, or else the next one. Any thread. */
    void (*interrupt)(struct poller *poller);
    /* Looks for calls that can never end. Returns when to look again, or UINT64_MAX. */
    uint64_t (*check)(struct poller *poller, struct worker *worker, uint64_t now);
};

#endif
