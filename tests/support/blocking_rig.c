/* SPDX-License-Identifier: MIT */
#include "blocking_rig.h"

#include <sched.h>

#include "base/monotonic.h"
#include "base/mutex.h"

#define HANG_NS (20000 * MILLISECOND) /* whatever takes so long never comes */

struct jobs *jobs;

/* ---- threads that cannot be had ---- */

static pthread_attr_t usual_attributes; /* never destroyed */
static bool knows_usual_attributes;

void allow_threads(void)
{
    (void)pthread_setattr_default_np(&usual_attributes);
}

/* There is no room for such a stack in any address space. */
void forbid_threads(void)
{
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)1 << 60), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    (void)pthread_attr_destroy(&attributes);
}

/* ---- opening and closing ---- */

static void close_jobs(void)
{
    allow_threads();
    release_all();
    if (jobs->has_pool) {
        close_pool();
    }
    (void)pthread_cond_destroy(&jobs->changed);
    mutex_deinit(&jobs->lock);
}

/* In memory of its own: the threads of a test that failed may still use it. */
void open_jobs(void)
{
    memory_open();
    jobs = test_alloc(sizeof *jobs);
    if (!knows_usual_attributes) {
        assert_int_equal(pthread_getattr_default_np(&usual_attributes), 0);
        knows_usual_attributes = true;
    }
    allow_threads();
    mutex_init(&jobs->lock);
    condition_init(&jobs->changed);
    for (size_t i = 0; i < TASKS; i++) {
        jobs->tasks[i].job = (struct blocking_job){.run = run_task, .drop = drop_task};
    }
    test_at_end(close_jobs);
}

void make_pool(const char *name, struct blocking_pool_limits limits)
{
    assert_false(jobs->has_pool);
    blocking_pool_init(&jobs->pool, name, &limits, &memory.allocator);
    jobs->has_pool = true;
}

void open_pool_with(struct blocking_pool_limits limits)
{
    open_jobs();
    make_pool("test", limits);
}

void stop_pool(void)
{
    assert_true(blocking_pool_stop(&jobs->pool, monotonic_deadline(HANG_NS)));
}

bool stop_pool_at_once(void)
{
    return blocking_pool_stop(&jobs->pool, 0);
}

void close_pool(void)
{
    stop_pool();
    blocking_pool_deinit(&jobs->pool);
    jobs->has_pool = false;
}

/* ---- tasks ---- */

void count_begun(void)
{
    mutex_lock(&jobs->lock);
    jobs->begun++;
    (void)pthread_cond_broadcast(&jobs->changed);
    mutex_unlock(&jobs->lock);
}

void run_task(struct blocking_job *job)
{
    struct task *task = CONTAINER_OF(job, struct task, job);
    mutex_lock(&jobs->lock);
    task->runs++;
    task->thread = pthread_self();
    jobs->begun_order[jobs->begun++ % TASKS] = task;
    (void)pthread_cond_broadcast(&jobs->changed);
    while (!task->is_released && !jobs->all_released) {
        (void)condition_wait_until(&jobs->changed, &jobs->lock, UINT64_MAX);
    }
    jobs->returned++;
    (void)pthread_cond_broadcast(&jobs->changed);
    mutex_unlock(&jobs->lock);
}

void drop_task(struct blocking_job *job)
{
    struct task *task = CONTAINER_OF(job, struct task, job);
    mutex_lock(&jobs->lock);
    task->drops++;
    task->thread = pthread_self();
    jobs->dropped_order[jobs->dropped++ % TASKS] = task;
    mutex_unlock(&jobs->lock);
}

static void set(bool *flag)
{
    mutex_lock(&jobs->lock);
    *flag = true;
    (void)pthread_cond_broadcast(&jobs->changed);
    mutex_unlock(&jobs->lock);
}

void release_task(uint32_t task)
{
    set(&jobs->tasks[task].is_released);
}

void release_all(void)
{
    set(&jobs->all_released);
}

int try_submit(uint32_t task)
{
    return blocking_pool_submit(&jobs->pool, &jobs->tasks[task].job);
}

void submit_tasks(uint32_t first, uint32_t task_count)
{
    for (uint32_t i = 0; i < task_count; i++) {
        assert_int_equal(try_submit(first + i), 0);
    }
}

/* ---- waiting and looking ---- */

static void await(const uint32_t *counter, uint32_t value)
{
    const uint64_t deadline = monotonic_deadline(HANG_NS);
    bool in_time = true;
    mutex_lock(&jobs->lock);
    while (*counter < value && in_time) {
        in_time = condition_wait_until(&jobs->changed, &jobs->lock, deadline);
    }
    const uint32_t reached = *counter;
    mutex_unlock(&jobs->lock);
    assert_in_range(reached, value, UINT32_MAX);
}

void await_begun(uint32_t value)
{
    await(&jobs->begun, value);
}

void await_returned(uint32_t value)
{
    await(&jobs->returned, value);
}

void await_threads(uint32_t threads, uint32_t idle)
{
    const uint64_t deadline = monotonic_deadline(HANG_NS);
    struct blocking_pool_counts counts = blocking_pool_counts(&jobs->pool);
    while ((counts.threads != threads || counts.idle != idle) && monotonic_ns() < deadline) {
        (void)sched_yield();
        counts = blocking_pool_counts(&jobs->pool);
    }
    assert_int_equal(counts.threads, threads);
    assert_int_equal(counts.idle, idle);
}

void assert_counts(uint32_t threads, uint32_t idle, uint32_t queued)
{
    const struct blocking_pool_counts counts = blocking_pool_counts(&jobs->pool);
    assert_int_equal(counts.threads, threads);
    assert_int_equal(counts.idle, idle);
    assert_int_equal(counts.queued, queued);
}

void assert_task(uint32_t task, uint32_t runs, uint32_t drops)
{
    assert_int_equal(jobs->tasks[task].runs, runs);
    assert_int_equal(jobs->tasks[task].drops, drops);
}

void assert_same_thread(uint32_t task, uint32_t other)
{
    assert_true(pthread_equal(jobs->tasks[task].thread, jobs->tasks[other].thread));
}
