/* SPDX-License-Identifier: MIT */
#include "sched/cpu_clock.h"

#include <unistd.h>

#include "base/monotonic.h"

/* The clock of a worker without a thread; no thread's. */
#define NO_CLOCK CLOCK_REALTIME

void cpu_clock_open(struct worker *worker)
{
    clockid_t clock;
    store_relaxed(&worker->thread_id, (uint32_t)gettid()); /* a number */
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        store_relaxed(&worker->cpu_clock, (uint32_t)clock); /* statistic */
    }
}

/* Once the thread has ended, its clock may be that of another one. */
void cpu_clock_close(struct worker *worker)
{
    cpu_clock_update(worker);
    store_relaxed(&worker->cpu_clock, (uint32_t)NO_CLOCK); /* statistic */
}

/* Counters only grow, though a thread that has read the clock may be late in saying so. */
static void raise_to(atomic_u64 *counter, uint64_t value)
{
    uint64_t seen = load_relaxed(counter); /* re-checked by the CAS */
    while (seen < value && !cas_acq_rel_relaxed(counter, &seen, value)) { /* statistic */
    }
}

void cpu_clock_update(struct worker *whose)
{
    struct timespec used;
    const clockid_t clock = (clockid_t)load_relaxed(&whose->cpu_clock); /* a snapshot */
    if (clock != NO_CLOCK && clock_gettime(clock, &used) == 0) {
        raise_to(&whose->stats.cpu_ns, monotonic_from_timespec(&used));
    }
}
