/* SPDX-License-Identifier: MIT */
/* A worker without work: it searches a little, then sleeps. The protocol that keeps it from
 * sleeping through work is in concurrent/parking.h; the steps are named here as there. */
#include <sched.h>

#include "base/monotonic.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

/* The ladder of a search: full looks at all sources, at first without a pause, then giving way to
 * other threads. Twelve yields take about as long as two futex calls, which is what sleeping and
 * being woken would cost. */
#define ROUNDS_TIGHT 3
#define ROUNDS_MAX   15

void idle_wake_one(struct scheduler *sched, struct worker *worker)
{
    const int claimed = parking_claim_any(&sched->parking); /* P2 to P4 */
    if (UNLIKELY(claimed != PARKING_NOBODY)) {
        STATS_COUNT(sched, worker, wakes);
        sched->driver->wake(sched->driver, (uint32_t)claimed); /* P5 */
    }
}

void idle_wake_all(struct scheduler *sched)
{
    for (uint32_t i = 0; i < sched->worker_count; i++) {
        if (parking_claim_worker(&sched->parking, i)) {
            sched->driver->wake(sched->driver, i);
        }
    }
}

/* S3: whether any source has something. The next slots do not count: their workers are awake. */
static bool work_is_visible(struct scheduler *sched)
{
    if (global_queue_length_recheck(&sched->global) > 0) {
        return true;
    }
    for (uint32_t i = 0; i < sched->worker_count; i++) {
        if (deque_has_items_any(&sched->workers[i].deque)) {
            return true;
        }
    }
    return false;
}

static void pause_between(uint32_t round)
{
    if (round <= ROUNDS_TIGHT) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    } else {
        (void)sched_yield();
    }
}

static struct process *climb_ladder(struct worker *worker)
{
    if (worker->sched->worker_count == 1) {
        return find_global(worker); /* nobody to steal from, nobody to give way to */
    }
    steal_begin(worker);
    for (uint32_t round = 1; round <= ROUNDS_MAX; round++) {
        struct process *process = find_global(worker);
        if (process == NULL) {
            process = steal(worker, round == ROUNDS_MAX);
        }
        if (process != NULL) {
            return process;
        }
        pause_between(round);
    }
    return NULL;
}

static struct process *search(struct worker *worker)
{
    const uint64_t start = monotonic_ns();
    struct process *process = climb_ladder(worker);
    stats_add_owner(&worker->stats.searching_ns, monotonic_ns() - start);
    return process;
}

/* The last searcher to find work makes sure that somebody searches for the rest: publishers that
 * saw it searching have woken nobody. If there is no rest, nobody needs to wake. */
static void leave_search(struct worker *worker)
{
    if (parking_end_search(&worker->sched->parking) && work_is_visible(worker->sched)) {
        idle_wake_one(worker->sched, worker);
    }
}

static bool must_exit(struct scheduler *sched)
{
    return load_seq_cst(&sched->exiting) != 0; /* MO-stop: pairs with shutdown.c */
}

/* Sleeps until there may be work. On return the worker counts as searching. */
static void park(struct worker *worker, bool searching)
{
    struct scheduler *sched = worker->sched;
    parking_announce(&sched->parking, worker->index, searching); /* S1, S2 */
    if (work_is_visible(sched) || must_exit(sched)) {            /* S3 */
        if (parking_retract(&sched->parking, worker->index)) {
            return;
        }
    } else {
        stats_add_owner(&worker->stats.parks, 1);
        shutdown_worker_is_quiet(sched);
    }
    sched->driver->wait(sched->driver, worker->index); /* S4 */
}

struct process *idle_find(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    bool searching = parking_start_search(&sched->parking);
    for (;;) {
        struct process *process = searching ? search(worker) : NULL;
        if (process != NULL) {
            leave_search(worker);
            return process;
        }
        if (must_exit(sched)) {
            if (searching) {
                leave_search(worker);
            }
            return NULL;
        }
        park(worker, searching);
        searching = true;
    }
}
