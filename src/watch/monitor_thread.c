/* SPDX-License-Identifier: MIT */
#include "watch/monitor_thread.h"

#include <stdalign.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "sched/checkpoint.h"
#include "sched/chores.h"
#include "sched/log.h"
#include "sched/poll.h"
#include "sched/process_info.h"
#include "sched/spare.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "watch/audit.h"
#include "watch/crash_report.h"
#include "watch/run_time.h"

/* Samples per stall limit, or per LIMIT_MAX_NS if that is shorter. */
#define SAMPLES_PER_LIMIT 4
#define LIMIT_MAX_NS      (UINT64_C(10) * 1000000)
/* With no worker busy, this many samples, each after twice the pause before the last one. */
#define SAMPLES_BEFORE_SLEEP 5
/* Batches of due timers that one sample fires at most. */
#define FIRE_MAX 64

/* The time between two samples. A program may raise the stall limit, but that does not delay the
 * monitor's check of its timers and descriptors. */
static uint64_t sample_period(const struct scheduler *sched)
{
    const uint64_t limit = sched->config.stall_limit_ns;
    return (limit < LIMIT_MAX_NS ? limit : LIMIT_MAX_NS) / SAMPLES_PER_LIMIT;
}

static void report(struct monitor_thread *self, struct worker *worker,
                   const struct worker_sample *seen, uint64_t now)
{
    struct scheduler *sched = self->sched;
    counter_add_owner(&worker->stats.stalls, 1); /* written by the monitor alone */
    if (sched->config.on_stall == NULL) {
        return;
    }
    skua_stall stall = {
        .pid = {seen->running},
        .type_name = process_info_type_name(sched, (skua_pid){seen->running}),
        .elapsed_ns = now - seen->since,
        .worker = worker->index,
        .frames = self->backtrace.frames,
    };
    if (sched->config.stall_signal != 0) {
        stall.frame_count = backtrace_take(&self->backtrace, worker, sched->config.stall_signal);
    }
    sched->config.on_stall(sched->config.on_stall_arg, &stall);
}

/* Otherwise a process that a long step has readied would wait until that ends. */
static void empty_next_slot(struct scheduler *sched, struct worker *worker)
{
    struct process *process = exchange_seq_cst(&worker->next, NULL); /* MO-next, MO-stop */
    if (process != NULL) {
        submit_outside(sched, process);
    }
}

/* Steps since the last sample of `span` were so long that timers and others wait for the next
 * checkpoint. */
static void hasten_checkpoint(struct worker *worker, uint64_t steps, uint64_t span)
{
    if (steps * CHECK_NS < span) {
        checkpoint_hasten(worker);
    }
}

static bool is_stuck(const struct scheduler *sched, const struct worker_sample *seen, uint64_t now)
{
    return seen->running != RUNNING_NOTHING && now - seen->since >= sched->config.stall_limit_ns;
}

/* Records what a worker does, and covers for it if it has been absent for too long. The time is
 * read after what it does, or a step that begins in between would be longer than it is. */
static void sample_worker(struct scheduler *sched, struct worker *worker,
                          struct worker_sample *seen, uint64_t span)
{
    uint64_t running = load_acquire(&worker->running);         /* MO-monitor: the PID's record */
    const uint64_t steps = load_relaxed(&worker->stats.steps); /* statistic */
    const uint32_t absence = load_seq_cst(&worker->absence);   /* MO-spare */
    const uint64_t now = monotonic_ns();
    const bool blocks = (absence & ABSENCE_BLOCKS) != 0;
    if (running == RUNNING_UNKNOWN) {
        running = RUNNING_NOTHING;
    }
    if (running != RUNNING_NOTHING) {
        hasten_checkpoint(worker, steps - seen->steps, span);
    }
    run_time_add(sched, (skua_pid){seen->running}, span / 2, &seen->remainder);
    run_time_add(sched, (skua_pid){running}, span / 2, &seen->remainder);
    if (running != seen->running || steps != seen->steps) {
        *seen = (struct worker_sample){
            .running = running, .steps = steps, .since = now, .remainder = seen->remainder};
    } else if (blocks) {
        seen->since = now; /* it has said so: its time starts anew when it goes on */
    }
    seen->is_stuck = is_stuck(sched, seen, now);
    if ((seen->is_stuck || blocks) && (absence & ABSENCE_COVERED) == 0) {
        spare_cover(sched, worker, absence);
    }
    if (seen->is_stuck || (now > seen->since && parking_may_claim(&sched->parking))) {
        empty_next_slot(sched, worker);
        if (running != RUNNING_NOTHING) {
            poll_hand_over(sched, NULL);
        }
    }
}

/* Whether workers have fired timers since the last sample. Then they are at it, and it is only that
 * there are many: what the monitor fires goes to the end of the global queue. */
static bool workers_fire(struct monitor_thread *self)
{
    struct scheduler *sched = self->sched;
    const uint32_t threads = scheduler_threads(sched);
    const uint64_t before = self->fired;
    self->fired = 0;
    for (uint32_t i = 0; i < threads; i++) {
        self->fired += load_relaxed(&sched->workers[i].stats.timers); /* statistic */
    }
    return self->fired != before;
}

/* Fires timers and polls descriptors if the workers have not done so for a while. */
static void check_sources(struct monitor_thread *self)
{
    struct scheduler *sched = self->sched;
    const uint64_t now = time_now(sched->time);
    const uint64_t patience = sample_period(sched);
    const uint32_t batches = workers_fire(self) ? 0 : FIRE_MAX;
    uint64_t due = timers_next(sched);
    for (uint32_t i = 0; i < batches && due <= now && now - due >= patience; i++) {
        timers_fire_all(sched, NULL, now);
        due = timers_next(sched);
    }
    const uint64_t last = load_relaxed(&sched->poll.last);   /* hint */
    const bool waits = load_seq_cst(&sched->poll.waits) > 0; /* MO-poll */
    if (waits && last <= now && now - last >= patience) {
        poll_check(sched, NULL, now);
    }
    chores_check_if_overdue(sched, now);
}

/* Records the time of a sample; returns the time since the last one. */
static uint64_t begin_sample(struct scheduler *sched, uint64_t now)
{
    const uint64_t span = now - load_relaxed(&sched->account.sampled_at); /* this thread's */
    store_relaxed(&sched->account.sampled_at, now);                       /* statistic */
    return span;
}

/* Covers for all stuck workers first; then tells the program, which takes longer. */
static void sample(struct monitor_thread *self)
{
    struct scheduler *sched = self->sched;
    const uint64_t span = begin_sample(sched, monotonic_ns());
    const uint32_t threads = scheduler_threads(sched);
    struct worker_sample *samples = self->samples;
    for (uint32_t i = 0; i < threads; i++) {
        sample_worker(sched, &sched->workers[i], &samples[i], span);
    }
    check_sources(self);
    log_tell_dropped(sched, false);
    for (uint32_t i = 0; i < threads; i++) {
        if (!samples[i].reported && samples[i].is_stuck) {
            samples[i].reported = true;
            report(self, &sched->workers[i], &samples[i], monotonic_ns());
        }
    }
}

/* Whether no worker runs processes; one that blocks and has a spare in its place does not count. */
static bool nobody_is_busy(struct scheduler *sched)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        struct worker *worker = &sched->workers[i];
        const uint32_t away = ABSENCE_BLOCKS | ABSENCE_COVERED;
        if (load_seq_cst(&worker->running) != RUNNING_NOTHING && /* MO-monitor */
            load_seq_cst(&worker->absence) != away) {            /* MO-monitor */
            return false;
        }
    }
    return true;
}

/* Waits for `period`, or until it is woken or must end. */
static void pause_locked(struct monitor_thread *self, uint64_t period)
{
    (void)condition_wait_until(&self->changed, &self->lock, monotonic_deadline(period));
}

/* Waits until a worker is busy or the monitor must end. */
static void sleep_locked(struct monitor_thread *self)
{
    struct scheduler *sched = self->sched;
    store_relaxed(&sched->account.sampled_at, 0);      /* statistic */
    (void)exchange_seq_cst(&sched->monitor_asleep, 1); /* MO-monitor */
    while (!self->stopping && load_seq_cst(&sched->monitor_asleep) != 0 && nobody_is_busy(sched)) {
        (void)condition_wait_until(&self->changed, &self->lock, UINT64_MAX);
    }
    (void)exchange_seq_cst(&sched->monitor_asleep, 0);         /* MO-monitor */
    store_relaxed(&sched->account.sampled_at, monotonic_ns()); /* statistic: sleep is not charged */
}

static void watch_locked(struct monitor_thread *self)
{
    uint32_t quiet = 0; /* samples in a row with nobody busy */
    while (!self->stopping) {
        if (quiet > SAMPLES_BEFORE_SLEEP) {
            sleep_locked(self);
            quiet = 0;
            continue;
        }
        pause_locked(self, sample_period(self->sched) << quiet);
        mutex_unlock(&self->lock);
        store_seq_cst(&self->is_sampling, 1); /* before it takes a timer out of a wheel */
        sample(self);
        store_seq_cst(&self->is_sampling, 0); /* after it has submitted the process */
        quiet = nobody_is_busy(self->sched) ? quiet + 1 : 0;
        if (quiet > SAMPLES_BEFORE_SLEEP) {
            audit_asleep(self->sched, AUDIT_PATIENCE_MS);
        }
        mutex_lock(&self->lock);
    }
}

static void *run_monitor(void *arg)
{
    struct monitor_thread *self = arg;
    struct scheduler *sched = self->sched;
    worker_enter_callback(sched);
    store_relaxed(&sched->account.sampled_at, monotonic_ns()); /* statistic */
    mutex_lock(&self->lock);
    watch_locked(self);
    store_relaxed(&sched->account.sampled_at, 0); /* statistic: no more samples */
    mutex_unlock(&self->lock);
    return NULL;
}

/* ---- what the scheduler calls ---- */

static struct monitor_thread *as_monitor_thread(struct monitor *monitor)
{
    return CONTAINER_OF(monitor, struct monitor_thread, monitor);
}

static int open_signals(struct monitor *monitor)
{
    const skua_runtime_config *config = &as_monitor_thread(monitor)->sched->config;
    const int error = config->stall_signal != 0 ? backtrace_install(config->stall_signal) : 0;
    if (error == 0 && config->crash_report) {
        crash_report_install();
    }
    return error;
}

static void close_signals(struct monitor *monitor)
{
    struct scheduler *sched = as_monitor_thread(monitor)->sched;
    if (sched->config.crash_report) {
        crash_report_remove();
    }
    if (sched->config.stall_signal != 0) {
        backtrace_remove(sched->config.stall_signal);
    }
    audit_now(sched, &(struct audit_moment){.is_at_rest = true, .is_at_end = true});
}

static int start(struct monitor *monitor)
{
    struct monitor_thread *self = as_monitor_thread(monitor);
    self->stopping = false;
    return thread_create(&self->thread, "skua-monitor", run_monitor, self);
}

static void stop(struct monitor *monitor)
{
    struct monitor_thread *self = as_monitor_thread(monitor);
    mutex_lock(&self->lock);
    self->stopping = true;
    (void)pthread_cond_signal(&self->changed);
    mutex_unlock(&self->lock);
    (void)pthread_join(self->thread, NULL);
}

static void wake(struct monitor *monitor)
{
    struct monitor_thread *self = as_monitor_thread(monitor);
    mutex_lock(&self->lock);
    store_seq_cst(&self->sched->monitor_asleep, 0); /* MO-monitor */
    (void)pthread_cond_signal(&self->changed);
    mutex_unlock(&self->lock);
}

#ifdef SKUA_AUDIT
static void check_if_all_sleep(struct monitor *monitor)
{
    audit_asleep_now_and_then(as_monitor_thread(monitor)->sched, AUDIT_PATIENCE_MS);
}
#endif

static void begin_worker(struct monitor *monitor)
{
    const skua_runtime_config *config = &as_monitor_thread(monitor)->sched->config;
    if (config->crash_report || config->stall_signal != 0) {
        crash_report_begin_thread();
    }
}

static void end_worker(struct monitor *monitor)
{
    (void)monitor;
    crash_report_end_thread();
}

static size_t samples_size(const struct scheduler *sched)
{
    return sched->capacity * sizeof(struct worker_sample);
}

static void free_samples(struct monitor_thread *thread)
{
    allocator_free(&thread->sched->allocator, thread->samples, samples_size(thread->sched),
                   alignof(struct worker_sample));
}

int monitor_thread_init(struct monitor_thread *thread, struct scheduler *sched)
{
    thread->monitor = (struct monitor){
        .open = open_signals,
        .close = close_signals,
        .start = start,
        .stop = stop,
        .wake = wake,
#ifdef SKUA_AUDIT
        .worker_sleeps = check_if_all_sleep,
#endif
        .worker_begins = begin_worker,
        .worker_ends = end_worker,
        .backtrace = &thread->backtrace,
    };
    thread->sched = sched;
    thread->samples = allocator_alloc_zeroed(&sched->allocator, samples_size(sched),
                                             alignof(struct worker_sample));
    if (thread->samples == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    if (backtrace_init(&thread->backtrace, sched) != 0) {
        free_samples(thread);
        return SKUA_E_NO_MEMORY;
    }
    mutex_init(&thread->lock);
    condition_init(&thread->changed);
    return 0;
}

void monitor_thread_deinit(struct monitor_thread *thread)
{
    mutex_deinit(&thread->lock);
    (void)pthread_cond_destroy(&thread->changed);
    backtrace_deinit(&thread->backtrace, thread->sched);
    free_samples(thread);
}
