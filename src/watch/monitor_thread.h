/* SPDX-License-Identifier: MIT */
/* The monitor (sched/monitor.h): one thread that looks at the workers from outside, because a
 * worker that is stuck cannot look at itself (G9). While any worker is busy it looks every quarter
 * of the stall limit, or every 2.5 ms if that is shorter:
 *  - a worker that is in the same step since a look at least the limit ago is stuck: what waits in
 *    its next slot is taken out, a spare worker steps in, the program is told;
 *  - a worker that blocks and has no spare yet gets one;
 *  - timers that are overdue are fired, and the descriptors looked at, if nobody else has done so
 *    for a while, which can only be because all workers are in long steps.
 * When no worker runs processes it looks less and less often, then not at all, until one does. (One
 * that blocks and is covered does not count as running.) */
#ifndef SKUA_WATCH_MONITOR_THREAD_H
#define SKUA_WATCH_MONITOR_THREAD_H

#include "sched/monitor.h"
#include "watch/backtrace.h"

/* What was seen of a worker. */
struct sighting {
    uint64_t running;
    uint64_t steps;
    uint64_t since;
    uint64_t rest; /* see run_time.h */
    bool reported;
};

struct monitor_thread {
    struct monitor monitor;
    struct scheduler *sched;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping; /* under lock */
    pthread_t thread;
    struct sighting *sightings; /* one per worker; the thread's own */
    struct backtrace backtrace;
};

/* `sched` has been initialized. Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int monitor_thread_init(struct monitor_thread *thread, struct scheduler *sched);

/* Before the scheduler's. */
void monitor_thread_deinit(struct monitor_thread *thread);

#endif
