/* SPDX-License-Identifier: MIT */
/* The monitor (sched/monitor.h): one thread that watches the workers from outside, because a stuck
 * worker cannot watch itself (G9). While any worker is busy it takes a sample every quarter of the
 * stall limit, or every 2.5 ms if that is shorter:
 *  - a worker that has been in the same step since a sample at least the limit ago is stuck: the
 *    process in its next slot moves to the global queue, a spare worker steps in, the program is
 *    told;
 *  - so does the process in the next slot of a worker that has been in the same step since the last
 *    sample, if another worker sleeps; that one is woken for the sources, if nobody waits for them;
 *  - a worker whose steps have become long is asked for a checkpoint (sched/checkpoint.h);
 *  - a worker that blocks and has no spare yet gets one;
 *  - overdue timers are fired, and the descriptors polled, if nobody else has done so for a while,
 *    which can only be because all workers are in long steps.
 * When no worker runs processes it takes samples less and less often, then none, until one does.
 * (One that blocks and is covered does not count as running.) */
#ifndef SKUA_WATCH_MONITOR_THREAD_H
#define SKUA_WATCH_MONITOR_THREAD_H

#include "sched/monitor.h"
#include "watch/backtrace.h"

/* A sample of one worker. */
struct worker_sample {
    uint64_t running;
    uint64_t steps;
    uint64_t since;
    uint64_t remainder; /* see run_time.h */
    bool is_stuck;      /* at the last sample */
    bool reported;
};

struct monitor_thread {
    struct monitor monitor;
    struct scheduler *sched;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;          /* under lock */
    atomic_u32 is_sampling; /* a timer or process may be in no wheel or queue, but in its hands */
    pthread_t thread;
    struct worker_sample *samples; /* one per worker; the thread's own */
    uint64_t fired;                /* timers, by workers, up to the last sample; likewise */
    struct backtrace backtrace;
};

/* `sched` has been initialized. Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int monitor_thread_init(struct monitor_thread *thread, struct scheduler *sched);

/* Before the scheduler's. */
void monitor_thread_deinit(struct monitor_thread *thread);

#endif
