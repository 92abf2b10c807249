/* SPDX-License-Identifier: MIT */
#include "sched/stats.h"

#include "sched/cpu_clock.h"

static void add(skua_stats *total, const skua_stats *part)
{
#define ADD(name) total->name += part->name;
    SKUA_STATS_MAP(ADD)
#undef ADD
}

void stats_update_cpu(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        cpu_clock_update(&sched->workers[i]);
    }
}

void stats_read_total(struct scheduler *sched, skua_stats *out)
{
    const uint64_t live = stats_live(sched);
    const uint32_t threads = scheduler_threads(sched);
    counters_read(&sched->outside.stats, out);
    for (uint32_t i = 0; i < threads; i++) {
        skua_stats part;
        counters_read(&sched->workers[i].stats, &part);
        add(out, &part);
    }
    out->live = live;
}

uint32_t stats_worker_count(struct scheduler *sched)
{
    const uint32_t started = scheduler_threads(sched);
    return started > sched->worker_count ? started : sched->worker_count;
}

static uint64_t count_finished(struct scheduler *sched)
{
    uint64_t finished = 0;
    for (uint32_t i = 0; i < sched->capacity; i++) {
        /* MO-finished: before reading reporting and spawned. */
        finished += load_acquire(&sched->workers[i].stats.finished);
    }
    return finished;
}

static uint64_t count_reports(struct scheduler *sched)
{
    uint64_t reports = 0;
    for (uint32_t i = 0; i < sched->capacity; i++) {
        /* MO-finished: after reading finished, before reading spawned. */
        reports += load_acquire(&sched->workers[i].reporting);
    }
    return reports;
}

static uint64_t count_spawned(struct scheduler *sched)
{
    uint64_t spawned = load_relaxed(&sched->outside.stats.spawned); /* statistic */
    for (uint32_t i = 0; i < sched->capacity; i++) {
        spawned += load_relaxed(&sched->workers[i].stats.spawned); /* statistic */
    }
    return spawned;
}

/* Ends before beginnings: a process that ends in between counts as alive, none counts as
 * negative. */
uint64_t stats_live(struct scheduler *sched)
{
    const uint64_t finished = count_finished(sched);
    const uint64_t spawned = count_spawned(sched);
    return spawned > finished ? spawned - finished : 0;
}

/* If a process is among the finished, its worker was reporting by then; if that is over when it is
 * read, whatever on_exit has started is among the spawned. So zero means that nothing is left. */
uint64_t stats_left(struct scheduler *sched)
{
    const uint64_t finished = count_finished(sched);
    const uint64_t reports = count_reports(sched);
    const uint64_t spawned = count_spawned(sched);
    return (spawned > finished ? spawned - finished : 0) + reports;
}
