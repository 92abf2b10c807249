/* SPDX-License-Identifier: MIT */
#include "sched/monitor.h"

#include "base/monotonic.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "sched/backtrace.h"
#include "sched/inspect.h"
#include "sched/poll.h"
#include "sched/spare.h"
#include "sched/timers.h"
#include "sched/worker.h"

/* Looks in the time of one stall limit, while a worker is awake. */
#define LOOKS_PER_LIMIT 4
/* With all workers asleep, this many looks, each after twice the time of the one before. */
#define LOOKS_BEFORE_SLEEP 5

static void report(struct scheduler *sched, struct worker *worker, const struct sighting *seen,
                   uint64_t now)
{
    stats_add_any(&sched->outside.stats.stalls, 1);
    if (sched->config.on_stall == NULL) {
        return;
    }
    struct backtrace *backtrace = &sched->monitor.backtrace;
    skua_stall stall = {
        .pid = {seen->running},
        .type_name = inspect_type_name(sched, (skua_pid){seen->running}),
        .elapsed_ns = now - seen->since,
        .worker = worker->index,
        .frames = backtrace->frames,
    };
    if (sched->config.stall_signal != 0) {
        stall.frame_count = backtrace_take(backtrace, worker, sched->config.stall_signal);
    }
    sched->config.on_stall(sched->config.on_stall_arg, &stall);
}

/* A process that the stuck step has readied would run when it ends. */
static void free_next(struct scheduler *sched, struct worker *worker)
{
    struct process *process = exchange_acq_rel(&worker->next, NULL); /* MO-next */
    if (process != NULL) {
        submit_outside(sched, process);
    }
}

static void look_at_stuck(struct scheduler *sched, struct worker *worker, struct sighting *seen,
                          uint64_t now)
{
    const uint32_t absence = load_seq_cst(&worker->absence); /* MO-spare */
    if ((absence & ABSENCE_COVERED) == 0) {
        spare_cover(sched, worker, absence);
    }
    free_next(sched, worker);
    if (!seen->reported) {
        seen->reported = true;
        report(sched, worker, seen, now);
    }
}

static void look_at_worker(struct scheduler *sched, struct worker *worker, struct sighting *seen,
                           uint64_t now)
{
    const uint64_t running = load_acquire(&worker->running);   /* MO-monitor: the PID's record */
    const uint64_t steps = load_relaxed(&worker->stats.steps); /* statistic */
    const uint32_t absence = load_seq_cst(&worker->absence);   /* MO-spare */
    const bool blocks = (absence & ABSENCE_BLOCKS) != 0;
    if (blocks && (absence & ABSENCE_COVERED) == 0) {
        spare_cover(sched, worker, absence);
    }
    if (running == RUNNING_NOTHING || running == RUNNING_UNKNOWN || blocks ||
        running != seen->running || steps != seen->steps) {
        *seen = (struct sighting){.running = running, .steps = steps, .since = now};
    } else if (now - seen->since >= sched->config.stall_limit_ns) {
        look_at_stuck(sched, worker, seen, now);
    }
}

/* Fires timers and looks at descriptors if the workers have not done so for a stall limit. */
static void look_at_sources(struct scheduler *sched)
{
    const uint64_t now = time_now(sched->time);
    const uint64_t patience = sched->config.stall_limit_ns / LOOKS_PER_LIMIT;
    const uint64_t due = timers_next(sched);
    if (due <= now && now - due >= patience) {
        timers_fire_all(sched, NULL, now);
    }
    const uint64_t last = load_relaxed(&sched->poll.last); /* hint */
    if (load_seq_cst(&sched->poll.waits) > 0 && last <= now &&
        now - last >= patience) { /* MO-poll */
        poll_look(sched, NULL, now);
    }
}

static void look(struct scheduler *sched)
{
    const uint64_t now = monotonic_ns();
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        look_at_worker(sched, &sched->workers[i], &sched->monitor.sightings[i], now);
    }
    look_at_sources(sched);
}

static bool all_sleep(struct scheduler *sched)
{
    const uint32_t resting = load_seq_cst(&sched->spare.resting); /* MO-spare */
    return parking_asleep(&sched->parking) + resting == scheduler_threads(sched);
}

/* Waits for `period`, or until it is woken or must end. */
static void pause_locked(struct scheduler *sched, uint64_t period)
{
    (void)condition_wait_until(&sched->monitor.changed, &sched->monitor.lock,
                               monotonic_deadline(period));
}

/* Waits until a worker is awake or the monitor must end. */
static void sleep_locked(struct scheduler *sched)
{
    (void)exchange_seq_cst(&sched->monitor.asleep, 1); /* MO-monitor */
    while (!sched->monitor.stopping && load_seq_cst(&sched->monitor.asleep) != 0 &&
           all_sleep(sched)) {
        (void)condition_wait_until(&sched->monitor.changed, &sched->monitor.lock, UINT64_MAX);
    }
    (void)exchange_seq_cst(&sched->monitor.asleep, 0); /* MO-monitor */
}

static void watch_locked(struct scheduler *sched)
{
    uint32_t quiet = 0; /* looks in a row that found all workers asleep */
    while (!sched->monitor.stopping) {
        if (quiet > LOOKS_BEFORE_SLEEP) {
            sleep_locked(sched);
            quiet = 0;
        }
        pause_locked(sched, (sched->config.stall_limit_ns / LOOKS_PER_LIMIT) << quiet);
        mutex_unlock(&sched->monitor.lock);
        look(sched);
        quiet = all_sleep(sched) ? quiet + 1 : 0;
        mutex_lock(&sched->monitor.lock);
    }
}

static void *monitor_main(void *arg)
{
    struct scheduler *sched = arg;
    worker_set_inside(sched);
    mutex_lock(&sched->monitor.lock);
    watch_locked(sched);
    mutex_unlock(&sched->monitor.lock);
    return NULL;
}

void monitor_wake(struct scheduler *sched)
{
    mutex_lock(&sched->monitor.lock);
    store_seq_cst(&sched->monitor.asleep, 0); /* MO-monitor */
    (void)pthread_cond_signal(&sched->monitor.changed);
    mutex_unlock(&sched->monitor.lock);
}

int monitor_start(struct scheduler *sched)
{
    sched->monitor.stopping = false;
    return thread_create(&sched->monitor.thread, "skua-monitor", monitor_main, sched);
}

void monitor_stop(struct scheduler *sched)
{
    mutex_lock(&sched->monitor.lock);
    sched->monitor.stopping = true;
    (void)pthread_cond_signal(&sched->monitor.changed);
    mutex_unlock(&sched->monitor.lock);
    (void)pthread_join(sched->monitor.thread, NULL);
}
