/* SPDX-License-Identifier: MIT */
/* The contract between the scheduler and whoever watches its workers: watch/ implements it with a
 * thread and, in debug builds, with audits; models bring their own.
 *
 * The monitor sleeps while no worker is busy and says so in `monitor_asleep` of the scheduler. It
 * cannot sleep through a stuck step: it sets `monitor_asleep`, then checks whether a worker is
 * busy; a worker that becomes busy says so in `running` or `absence`, then checks `monitor_asleep`.
 * All four are seq_cst (MO-monitor), so at least one side sees the other. */
#ifndef SKUA_SCHED_MONITOR_H
#define SKUA_SCHED_MONITOR_H

#include "sched/scheduler.h"

struct backtrace;

struct monitor {
    /* Before any thread starts: returns 0 or SKUA_E_INVALID. After all of them have exited. */
    int (*open)(struct monitor *monitor);
    void (*close)(struct monitor *monitor);
    /* Start watching once the workers run: returns 0 or SKUA_E_THREAD. Stop before the workers
     * exit, since the monitor starts spare ones. */
    int (*start)(struct monitor *monitor);
    void (*stop)(struct monitor *monitor);
    /* Wakes the monitor. */
    void (*wake)(struct monitor *monitor);
    /* The calling worker is about to sleep: it has announced that and taken the poller's role if
     * nobody had it. Null: nobody wants to know. */
    void (*worker_sleeps)(struct monitor *monitor);
    /* The calling thread has become a worker; it is about to end. Null: nobody wants to know. */
    void (*worker_begins)(struct monitor *monitor);
    void (*worker_ends)(struct monitor *monitor);
    /* For the stall signal's handler on a worker; opaque to the scheduler. */
    struct backtrace *backtrace;
};

/* Called by a worker that was idle or blocked and is now busy. */
static inline void monitor_notice(struct scheduler *sched)
{
    if (UNLIKELY(load_seq_cst(&sched->monitor_asleep) != 0)) { /* MO-monitor */
        sched->monitor->wake(sched->monitor);
    }
}

#endif
