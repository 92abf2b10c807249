/* SPDX-License-Identifier: MIT */
/* When a process began and how long it has run, at almost no cost while nobody asks. Reading a
 * clock at every step would cost as much as half a message, so the monitor, which samples every
 * busy worker every few milliseconds anyway, does it:
 *  - half of the time between two samples goes to the process that the worker ran at the first, the
 *    other half to that of the second; if it was idle, to nobody. Right on average for any process
 *    that runs long or often, however far apart the samples are;
 *  - a process that begins takes the time of the monitor's last sample, which is rarely older than
 *    the longest pause between two (80 ms), or reads the clock while the monitor sleeps.
 *
 * Both are 32-bit numbers in the record's one cache line: `born` in units of 17 ms since the
 * runtime was created, for two years; `run` in units of 0.26 ms, for thirteen days. Both saturate.
 * They order nothing except as MO-inspect says. A process may be charged for the last moments of
 * its predecessor in the slot. */
#ifndef SKUA_TELEMETRY_ACCOUNT_H
#define SKUA_TELEMETRY_ACCOUNT_H

#include "base/monotonic.h"
#include "base/time_source.h"
#include "process/process.h"

#define BORN_SHIFT 24
#define RUN_SHIFT  18

/* What the processes of one runtime share. */
struct account {
    struct time_source *simulated;       /* the clock of a simulation; null: the system's */
    uint64_t created;                    /* when the runtime was created */
    CACHE_ALIGNED atomic_u64 sampled_at; /* the monitor's last sample; 0 while it sleeps */
};

/* The time of the monitor's last sample, or now if it sleeps or there is none. */
static inline uint64_t account_now(struct account *account)
{
    if (UNLIKELY(account->simulated != NULL)) {
        return time_now(account->simulated);
    }
    const uint64_t sampled_at = load_relaxed(&account->sampled_at); /* statistic */
    return LIKELY(sampled_at != 0) ? sampled_at : monotonic_ns();
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

/* Adds run time, in units of 1 << RUN_SHIFT ns. Only the monitor's thread may call it. */
void account_add_run(struct process *process, uint64_t units);

#endif
