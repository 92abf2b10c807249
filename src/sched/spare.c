/* SPDX-License-Identifier: MIT */
#include "sched/spare.h"

#include "base/assert.h"
#include "base/mutex.h"
#include "sched/monitor.h"
#include "sched/poll.h"
#include "sched/shutdown.h"
#include "sched/worker.h"

static bool take_surplus(struct scheduler *sched)
{
    uint32_t surplus = load_relaxed(&sched->spare.surplus); /* re-checked by the CAS */
    while (surplus > 0) {
        if (cas_acq_rel_relaxed(&sched->spare.surplus, &surplus, surplus - 1)) { /* MO-spare */
            return true;
        }
    }
    return false;
}

static void add_surplus(struct scheduler *sched)
{
    (void)fetch_add_acq_rel(&sched->spare.surplus, 1); /* MO-spare */
}

/* Wakes a resting spare or starts another; false if there are no more. */
static bool activate_locked(struct scheduler *sched)
{
    const uint32_t resting = load_relaxed(&sched->spare.resting); /* written under the lock only */
    if (resting > 0) {
        store_seq_cst(&sched->spare.resting, resting - 1); /* MO-spare */
        struct worker *worker = &sched->workers[sched->spare.rest[resting - 1]];
        const bool polls = park_token_give_any(&worker->token);
        SKUA_ASSERT(!polls);
        return true;
    }
    const uint32_t threads = scheduler_threads(sched);
    if (threads == sched->capacity) {
        return false;
    }
    store_seq_cst(&sched->threads, threads + 1); /* MO-spare: before it can hold anything */
    if (worker_start(&sched->workers[threads]) != 0) {
        store_seq_cst(&sched->threads, threads); /* it held nothing */
        return false;
    }
    return true;
}

static bool activate_spare(struct scheduler *sched)
{
    if (take_surplus(sched)) {
        return true;
    }
    mutex_lock(&sched->spare.lock);
    const bool exiting = load_seq_cst(&sched->exiting) != 0; /* MO-stop */
    const bool active = !exiting && activate_locked(sched);
    mutex_unlock(&sched->spare.lock);
    if (active) {
        counter_add_any(&sched->outside.stats.spares, 1);
    }
    return active;
}

void spare_begin_block(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    worker->blocks = true;
    const uint32_t before = fetch_or_seq_cst(&worker->absence, ABSENCE_BLOCKS); /* MO-spare */
    find_release_next(worker); /* it would have to wait for the step to end */
    if ((before & ABSENCE_COVERED) == 0 && activate_spare(sched)) {
        const uint32_t meanwhile =
            fetch_or_seq_cst(&worker->absence, ABSENCE_COVERED); /* MO-spare */
        if ((meanwhile & ABSENCE_COVERED) != 0) {
            add_surplus(sched); /* the monitor was faster */
        }
    }
    poll_hand_over(sched, worker);
}

void spare_end_block(struct worker *worker)
{
    worker->blocks = false;
    const uint32_t before = exchange_seq_cst(&worker->absence, 0); /* MO-spare, MO-monitor */
    if ((before & ABSENCE_COVERED) != 0) {
        add_surplus(worker->sched);
    }
    monitor_notice(worker->sched);
}

void spare_cover(struct scheduler *sched, struct worker *absent, uint32_t seen)
{
    if (!activate_spare(sched)) {
        return;
    }
    uint32_t expected = seen;
    if (!cas_seq_cst(&absent->absence, &expected, seen | ABSENCE_COVERED)) { /* MO-spare */
        add_surplus(sched); /* it has returned, or found a spare itself */
    }
}

/* False if the worker must not rest because all are about to exit. */
static bool register_rest(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    mutex_lock(&sched->spare.lock);
    const bool rests = load_seq_cst(&sched->exiting) == 0; /* MO-stop */
    if (rests) {
        const uint32_t resting = load_relaxed(&sched->spare.resting); /* under the lock */
        sched->spare.rest[resting] = worker->index;
        store_seq_cst(&sched->spare.resting, resting + 1); /* MO-spare */
    }
    mutex_unlock(&sched->spare.lock);
    return rests;
}

void spare_rest_if_surplus(struct worker *worker)
{
    if (LIKELY(load_relaxed(&worker->sched->spare.surplus) == 0) || /* re-checked */
        !take_surplus(worker->sched)) {
        return;
    }
    submit_all_to_global(worker);
    SKUA_ASSERT(worker->tally.count == 0);            /* as in idle.c */
    store_seq_cst(&worker->running, RUNNING_NOTHING); /* MO-busy */
    shutdown_worker_is_quiet(worker->sched);
    if (register_rest(worker)) {
        poll_hand_over(worker->sched, worker);
        park_token_take_owner(&worker->token);
    }
    idle_end(worker);
}

void spare_wake_resting(struct scheduler *sched)
{
    mutex_lock(&sched->spare.lock);
    while (load_relaxed(&sched->spare.resting) > 0 && activate_locked(sched)) { /* under the lock */
    }
    mutex_unlock(&sched->spare.lock);
}
