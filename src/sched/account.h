/* SPDX-License-Identifier: MIT */
/* When a process began and how long it has run, for those who ask, at next to no cost for those who
 * do not. Reading a clock at every step would cost as much as half a message, so the monitor, which
 * looks at every busy worker every few milliseconds anyway, does it:
 *  - one half of the time between two looks goes to the process that a worker was found in at the
 *    first, the other to that of the second; if it was idle, to nobody. Right on average, for
 *    whatever runs long or often, however far apart the looks are;
 *  - a process that begins takes the time of the monitor's last look, which is mostly no older
 *    than the longest pause between two (80 ms), or asks the clock while the monitor sleeps.
 *
 * Both are 32-bit numbers in the record's one cache line: `born` in units of 17 ms since the
 * runtime was created, for two years; `run` in units of 0.26 ms, for thirteen days. They stay at
 * their largest value after that. They order nothing but what
 * MO-inspect says. A process may get the time of another that ended in its place a moment ago. */
#ifndef SKUA_SCHED_ACCOUNT_H
#define SKUA_SCHED_ACCOUNT_H

#include "sched/scheduler.h"

#define BORN_SHIFT 24
#define RUN_SHIFT  18

/* The time of the monitor's last look, or, if it sleeps or there is none, of now. */
static inline uint64_t account_now(struct scheduler *sched)
{
    if (UNLIKELY(sched->config.sim != NULL)) {
        return time_now(sched->time);
    }
    const uint64_t looked = load_relaxed(&sched->monitor.looked); /* statistic */
    return LIKELY(looked != 0) ? looked : monotonic_ns();
}

/* A process begins. */
static inline void account_begin(struct scheduler *sched, struct process *process)
{
    const uint64_t age = (account_now(sched) - sched->created) >> BORN_SHIFT;
    store_release(&process->born, age < UINT32_MAX ? (uint32_t)age : UINT32_MAX); /* MO-inspect */
    store_release(&process->run, 0);                                              /* MO-inspect */
}

/* How old it is. */
static inline uint64_t account_age(struct scheduler *sched, struct process *process)
{
    const uint64_t born = load_acquire(&process->born); /* MO-inspect */
    const uint64_t now = account_now(sched) - sched->created;
    return now > born << BORN_SHIFT ? now - (born << BORN_SHIFT) : 0;
}

/* How long it has run. */
static inline uint64_t account_run(struct process *process)
{
    return (uint64_t)load_acquire(&process->run) << RUN_SHIFT; /* MO-inspect */
}

/* For the monitor: a worker was found in the process `pid`, or in none, and `span` goes to it. What
 * is less than one unit stays in *rest for the next time. */
void account_add(struct scheduler *sched, struct worker *worker, skua_pid pid, uint64_t span,
                 uint64_t *rest);

#endif
