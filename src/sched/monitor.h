/* SPDX-License-Identifier: MIT */
/* What the scheduler needs of whoever watches its workers from outside: watch/ does so with a
 * thread and, in debug builds, with audits; models with what they make up.
 *
 * The monitor sleeps while no worker is busy, and says so in `monitor_asleep` of the scheduler. It
 * cannot sleep through a stuck step: it sets `monitor_asleep` and then looks whether a worker is
 * busy; a worker that becomes busy says so in `running` or `absence` and then looks at
 * `monitor_asleep`. All seq_cst (MO-monitor), so one of the two sees the other. */
#ifndef SKUA_SCHED_MONITOR_H
#define SKUA_SCHED_MONITOR_H

#include "sched/scheduler.h"

struct backtrace;

struct monitor {
    /* Before any thread starts: returns 0 or SKUA_E_INVALID. After all have ended. */
    int (*open)(struct monitor *monitor);
    void (*close)(struct monitor *monitor);
    /* Starts to watch, when the workers run: returns 0 or SKUA_E_THREAD. Ends it, before they end:
     * the monitor starts spare ones. */
    int (*start)(struct monitor *monitor);
    void (*stop)(struct monitor *monitor);
    /* Ends its sleep. */
    void (*wake)(struct monitor *monitor);
    /* The calling worker has announced that it sleeps, has taken the poller's role if that was
     * vacant, and is about to sleep. Null: nobody wants to know. */
    void (*worker_sleeps)(struct monitor *monitor);
    /* Where a worker finds what the monitor asks it by a signal; not the scheduler's business. */
    struct backtrace *backtrace;
};

/* Called by a worker that was idle or blocked and is busy from now on. */
static inline void monitor_notice(struct scheduler *sched)
{
    if (UNLIKELY(load_seq_cst(&sched->monitor_asleep) != 0)) { /* MO-monitor */
        sched->monitor->wake(sched->monitor);
    }
}

#endif
