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
#ifndef SKUA_TELEMETRY_ACCOUNT_H
#define SKUA_TELEMETRY_ACCOUNT_H

#include "base/monotonic.h"
#include "base/time_source.h"
#include "process/process.h"

#define BORN_SHIFT 24
#define RUN_SHIFT  18

/* What the processes of one runtime share. */
struct account {
    struct time_source *simulated;   /* the clock of a simulation; null: the system's */
    uint64_t created;                /* when the runtime was */
    CACHE_ALIGNED atomic_u64 looked; /* when the monitor last did; 0 while it sleeps */
};

/* The time of the monitor's last look, or, if it sleeps or there is none, of now. */
static inline uint64_t account_now(struct account *account)
{
    if (UNLIKELY(account->simulated != NULL)) {
        return time_now(account->simulated);
    }
    const uint64_t looked = load_relaxed(&account->looked); /* statistic */
    return LIKELY(looked != 0) ? looked : monotonic_ns();
}

/* A process begins. */
static inline void account_begin(struct account *account, struct process *process)
{
    const uint64_t age = (account_now(account) - account->created) >> BORN_SHIFT;
    store_release(&process->born, age < UINT32_MAX ? (uint32_t)age : UINT32_MAX); /* MO-inspect */
    store_release(&process->run, 0);                                              /* MO-inspect */
}

/* How old it is. */
static inline uint64_t account_age(struct account *account, struct process *process)
{
    const uint64_t born = load_acquire(&process->born); /* MO-inspect */
    const uint64_t now = account_now(account) - account->created;
    return now > born << BORN_SHIFT ? now - (born << BORN_SHIFT) : 0;
}

/* How long it has run. */
static inline uint64_t account_run(struct process *process)
{
    return (uint64_t)load_acquire(&process->run) << RUN_SHIFT; /* MO-inspect */
}

/* `simulated` is null unless the runtime is a simulation. */
void account_init(struct account *account, struct time_source *simulated);

/* It has run for so many more units of 1 << RUN_SHIFT ns. One thread: the monitor's. */
void account_add_run(struct process *process, uint64_t units);

#endif
