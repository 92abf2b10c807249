/* SPDX-License-Identifier: MIT */
#include "workers.h"

#include "crowd.h"
#include "runtime/runtime.h"

uint32_t workers_count(void)
{
    return (uint32_t)skua_stats_read(world_runtime(), NULL, NULL, 0);
}

/* ---- sleep ---- */

static struct scheduler *sched(void)
{
    return &world_runtime()->sched;
}

static uint32_t resting(void)
{
    return load_seq_cst(&sched()->spare.resting);
}

static bool others_sleep(void *arg)
{
    const uint32_t busy = *(const uint32_t *)arg;
    return parking_asleep(&sched()->parking) + resting() + busy == scheduler_threads(sched());
}

void workers_await_asleep(uint32_t busy)
{
    wait_until(others_sleep, &busy, "workers to sleep");
}

static int await_others_asleep(struct turn *turn, const struct act *act)
{
    (void)turn;
    (void)act;
    workers_await_asleep(1);
    return 0;
}

struct act awaits_others_asleep(void)
{
    return does(await_others_asleep, NULL);
}

/* ---- at once ---- */

void workers_meet(uint32_t count)
{
    struct tally *arrived = test_alloc(sizeof *arrived);
    tally_init(arrived);
    const struct crowd crowd =
        crowd_new(count, ACTS(counts(arrived), awaits_count(arrived, count), finishes(0)));
    crowd_submit(crowd);
    crowd_await_end(crowd);
}

void workers_let_spares_rest(void)
{
    workers_await_asleep(0);
    while (resting() + sched()->worker_count != scheduler_threads(sched())) {
        workers_meet(sched()->worker_count + 1);
        workers_await_asleep(0);
    }
    assert_int_equal(load_seq_cst(&sched()->spare.surplus), 0);
    for (uint32_t i = 0; i < scheduler_threads(sched()); i++) {
        assert_int_equal(load_seq_cst(&sched()->workers[i].absence), 0);
    }
}

void meter_enter(struct meter *meter)
{
    const unsigned inside = atomic_fetch_add(&meter->inside, 1) + 1;
    unsigned most = atomic_load(&meter->most);
    while (inside > most && !atomic_compare_exchange_weak(&meter->most, &most, inside)) {
    }
    (void)atomic_fetch_add(&meter->entries, 1);
}

void meter_leave(struct meter *meter)
{
    (void)atomic_fetch_sub(&meter->inside, 1);
}

static int measure(struct turn *turn, const struct act *act)
{
    (void)turn;
    meter_enter(act->arg);
    meter_leave(act->arg);
    return 0;
}

struct act measures(struct meter *meter)
{
    return does(measure, meter);
}
