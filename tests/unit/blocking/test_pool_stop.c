/* SPDX-License-Identifier: MIT */
/* How a blocking pool stops, and that each accepted job is run or dropped exactly once, whoever
 * submits it and whenever the stop comes. */
#include <sched.h>
#include <skua/error.h>

#include "aborts.h"
#include "base/atomic.h"
#include "base/monotonic.h"
#include "blocking_rig.h"

TEST(stop_wakes_and_joins_idle_threads)
{
    open_pool(.threads = 4, .idle_ns = FOR_EVER);
    submit_tasks(0, 4);
    release_all();
    await_threads(4, 4);
    stop_pool();
    assert_counts(0, 0, 0);
    assert_int_equal(counting_allocator_live_blocks(&memory), 0);
    assert_true(stop_pool_at_once()); /* and again */
}

TEST(submit_after_stop_is_refused)
{
    open_pool(.threads = 2, .queue = 2, .idle_ns = FOR_EVER);
    submit_tasks(0, 1);
    await_begun(1);
    assert_false(stop_pool_at_once());
    assert_int_equal(try_submit(1), SKUA_E_STOPPED); /* while a job runs */
    release_all();
    stop_pool();
    assert_int_equal(try_submit(1), SKUA_E_STOPPED);
    assert_task(1, 0, 0);
}

TEST(stop_drops_what_is_queued_in_order_and_not_what_runs)
{
    open_pool(.threads = 2, .queue = 5);
    submit_tasks(0, 7);
    await_begun(2);
    assert_false(stop_pool_at_once());
    assert_counts(2, 0, 0);
    release_all();
    stop_pool();
    assert_int_equal(jobs->returned, 2);
    assert_int_equal(jobs->dropped, 5);
    for (uint32_t i = 0; i < 7; i++) {
        assert_task(i, i < 2, i >= 2);
    }
    for (uint32_t i = 0; i < 5; i++) {
        assert_ptr_equal(jobs->dropped_order[i], &jobs->tasks[2 + i]);
    }
}

TEST(stop_runs_what_cannot_be_dropped_in_order)
{
    open_pool(.threads = 1, .queue = 6);
    for (uint32_t i = 1; i < 7; i += 2) {
        jobs->tasks[i].job.drop = NULL;
    }
    submit_tasks(0, 7);
    await_begun(1);
    assert_false(stop_pool_at_once());
    assert_counts(1, 0, 3);
    assert_false(stop_pool_at_once()); /* and a second one drops no more */
    assert_counts(1, 0, 3);
    release_all();
    stop_pool();
    for (uint32_t i = 0; i < 7; i++) {
        const bool is_run = i == 0 || i % 2 == 1;
        assert_task(i, is_run, !is_run);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_ptr_equal(jobs->begun_order[1 + i], &jobs->tasks[1 + 2 * i]);
    }
}

/* Uses the pool, which would never return if the pool's lock were held. */
static void drop_and_submit_again(struct blocking_job *job)
{
    const int error = blocking_pool_submit(&jobs->pool, job);
    drop_task(job);
    CONTAINER_OF(job, struct task, job)->is_released = error == SKUA_E_STOPPED;
}

TEST(drop_is_called_without_the_lock)
{
    open_pool(.threads = 1, .queue = 1);
    jobs->tasks[1].job.drop = drop_and_submit_again;
    submit_tasks(0, 2);
    await_begun(1);
    assert_false(stop_pool_at_once());
    assert_task(1, 0, 1);
    assert_true(jobs->tasks[1].is_released);
}

/* The threads are new and need a moment to begin; stop comes before at least one of them does. */
TEST(stop_drops_jobs_whose_thread_has_not_begun)
{
    bool dropped_by_its_thread = false;
    open_jobs();
    release_all();
    for (uint32_t round = 0; round < 1000 && !dropped_by_its_thread; round++) {
        make_pool("test", (struct blocking_pool_limits){.threads = 8});
        submit_tasks(0, 8);
        close_pool();
        for (uint32_t i = 0; i < 8; i++) {
            const struct task *task = &jobs->tasks[i];
            assert_int_equal(task->runs + task->drops, round + 1);
            dropped_by_its_thread |=
                task->drops > 0 && !pthread_equal(task->thread, pthread_self());
        }
    }
    assert_true(dropped_by_its_thread);
}

TEST(stop_gives_up_at_its_deadline_and_can_be_called_again)
{
    open_pool(.threads = 2);
    submit_tasks(0, 2);
    await_begun(2);
    release_task(0);
    const uint64_t deadline = monotonic_deadline(5 * MILLISECOND);
    assert_false(blocking_pool_stop(&jobs->pool, deadline));
    assert_true(monotonic_ns() >= deadline);
    assert_false(stop_pool_at_once());
    release_task(1);
    stop_pool();
    assert_int_equal(jobs->returned, 2);
}

static void *stop_without_deadline(void *arg)
{
    return blocking_pool_stop(&jobs->pool, FOR_EVER) ? arg : NULL;
}

TEST(stop_without_deadline_waits_for_the_last_job_to_return)
{
    pthread_t stopper;
    void *stopped;
    open_pool(.threads = 1);
    submit_tasks(0, 1);
    await_begun(1);
    assert_int_equal(pthread_create(&stopper, NULL, stop_without_deadline, jobs), 0);
    while (try_submit(1) != SKUA_E_STOPPED) { /* the thread is busy, so nothing is accepted */
        (void)sched_yield();
    }
    release_all();
    assert_int_equal(pthread_join(stopper, &stopped), 0);
    assert_ptr_equal(stopped, jobs);
    assert_int_equal(jobs->returned, 1);
    assert_true(stop_pool_at_once()); /* by another thread than before */
}

static void deinit_pool(void *arg)
{
    (void)arg;
    blocking_pool_deinit(&jobs->pool);
}

TEST(deinit_of_a_pool_with_threads_is_refused)
{
    open_pool(.threads = 1);
    submit_tasks(0, 1);
    await_begun(1);
    assert_true(aborts(deinit_pool, NULL));
    assert_false(stop_pool_at_once());
    assert_true(aborts(deinit_pool, NULL));
    release_all();
    stop_pool();
    assert_false(aborts(deinit_pool, NULL));
}

/* ---- many submitters ---- */

#define SUBMITTERS      4
#define JOBS_PER_THREAD 300
#define ALL_JOBS        (SUBMITTERS * JOBS_PER_THREAD)

struct crowd_job {
    struct blocking_job job;
    bool is_accepted; /* written by its submitter, read after that is joined */
    atomic_u32 runs;
    atomic_u32 drops;
};

static struct crowd {
    uint32_t threads; /* the limit */
    atomic_u32 running;
    atomic_u32 too_many; /* how often more than the limit ran */
    atomic_u32 finished;
    atomic_u32 errors; /* that should not be */
    pthread_t submitters[SUBMITTERS];
    struct crowd_job jobs[SUBMITTERS][JOBS_PER_THREAD];
} * crowd;

/* All relaxed: they only count, and are compared after everything is joined. */
static void run_crowd_job(struct blocking_job *job)
{
    if (fetch_add_relaxed(&crowd->running, 1) >= crowd->threads) {
        (void)fetch_add_relaxed(&crowd->too_many, 1);
    }
    (void)sched_yield();
    (void)fetch_add_relaxed(&CONTAINER_OF(job, struct crowd_job, job)->runs, 1);
    (void)fetch_add_relaxed(&crowd->finished, 1);
    (void)fetch_sub_relaxed(&crowd->running, 1);
}

static void drop_crowd_job(struct blocking_job *job)
{
    (void)fetch_add_relaxed(&CONTAINER_OF(job, struct crowd_job, job)->drops, 1);
}

static int submit_when_there_is_room(struct blocking_job *job)
{
    int error;
    while ((error = blocking_pool_submit(&jobs->pool, job)) == SKUA_E_POOL_FULL) {
        (void)sched_yield();
    }
    return error;
}

static void *submit_jobs(void *arg)
{
    struct crowd_job *own = arg;
    for (uint32_t i = 0; i < JOBS_PER_THREAD; i++) {
        own[i].job = (struct blocking_job){.run = run_crowd_job, .drop = drop_crowd_job};
        const int error = submit_when_there_is_room(&own[i].job);
        own[i].is_accepted = error == 0;
        if (error != 0) {
            (void)fetch_add_relaxed(&crowd->errors, error != SKUA_E_STOPPED);
            break;
        }
    }
    return NULL;
}

/* Short idle times make threads end while jobs are on their way to them. */
static const struct blocking_pool_limits crowd_limits[] = {
    {.threads = 3, .queue = 5, .idle_ns = 0},      {.threads = 2, .queue = 0, .idle_ns = 1000},
    {.threads = 1, .queue = 1, .idle_ns = 20000},  {.threads = 4, .queue = 0, .idle_ns = FOR_EVER},
    {.threads = 8, .queue = 2, .idle_ns = 100000},
};

static void open_crowd(const struct blocking_pool_limits *limits)
{
    open_pool_with(*limits);
    crowd = test_alloc(sizeof *crowd);
    crowd->threads = limits->threads;
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        assert_int_equal(pthread_create(&crowd->submitters[i], NULL, submit_jobs, crowd->jobs[i]),
                         0);
    }
}

static void join_submitters(void)
{
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        (void)pthread_join(crowd->submitters[i], NULL);
    }
}

static void await_finished(uint32_t count)
{
    while (load_relaxed(&crowd->finished) < count) { /* the watchdog ends a hang */
        (void)sched_yield();
    }
}

/* Returns how many jobs were accepted; each of them was run or dropped, and no other. */
static uint32_t assert_each_accepted_job_was_finished_once(void)
{
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < ALL_JOBS; i++) {
        struct crowd_job *job = &crowd->jobs[i / JOBS_PER_THREAD][i % JOBS_PER_THREAD];
        assert_int_equal(load_relaxed(&job->runs) + load_relaxed(&job->drops), job->is_accepted);
        accepted += job->is_accepted;
    }
    assert_int_equal(load_relaxed(&crowd->errors), 0);
    assert_int_equal(load_relaxed(&crowd->too_many), 0);
    return accepted;
}

TEST(jobs_of_many_submitters_are_all_run_once_within_the_limit)
{
    FOR_ROWS (limits, crowd_limits) {
        open_crowd(limits);
        join_submitters();
        await_finished(ALL_JOBS);
        stop_pool();
        assert_int_equal(assert_each_accepted_job_was_finished_once(), ALL_JOBS);
        assert_int_equal(load_relaxed(&crowd->finished), ALL_JOBS);
    }
}

TEST(stop_in_the_middle_of_a_burst_runs_or_drops_each_accepted_job_once)
{
    FOR_ROUNDS (round, 40) {
        const uint32_t finished = (uint32_t)(round - 1) * 3;
        open_crowd(&crowd_limits[round % COUNT_OF(crowd_limits)]);
        await_finished(finished);
        stop_pool();
        join_submitters();
        assert_true(assert_each_accepted_job_was_finished_once() >= finished);
    }
}
