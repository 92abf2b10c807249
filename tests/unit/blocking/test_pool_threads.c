/* SPDX-License-Identifier: MIT */
/* How the threads of a blocking pool come and go: idle ones end, ended ones are joined, and jobs
 * wait where no other thread can be had. */
#include <sched.h>
#include <skua/error.h>

#include "base/monotonic.h"
#include "base/mutex.h"
#include "blocking_rig.h"

/* ---- threads that have nothing to do ---- */

TEST(idle_thread_ends_and_makes_room_for_another)
{
    open_pool(.threads = 1, .idle_ns = MILLISECOND);
    release_all();
    for (uint32_t i = 0; i < 10; i++) {
        submit_tasks(i, 1);
        await_returned(i + 1);
        await_threads(0, 0);
    }
}

TEST(idle_threads_end_one_by_one_from_anywhere_in_the_list)
{
    open_pool(.threads = 8, .idle_ns = MILLISECOND);
    submit_tasks(0, 8);
    await_begun(8);
    release_all();
    await_threads(0, 0);
    submit_tasks(8, 8);
    await_returned(16);
}

TEST(thread_without_idle_time_ends_when_the_queue_is_empty)
{
    open_pool(.threads = 1, .queue = 3, .idle_ns = 0);
    submit_tasks(0, 4);
    release_all();
    await_threads(0, 0);
    assert_int_equal(jobs->returned, 4); /* and not before */
    for (uint32_t i = 1; i < 4; i++) {
        assert_same_thread(i, 0);
    }
}

/* The memory of a thread is given back when it is joined, so it tells how many are not. A thread
 * that the pool has done with may take a while to end: then another submit joins it. */
TEST(submit_joins_threads_that_have_ended)
{
    open_pool(.threads = 4, .idle_ns = 0);
    submit_tasks(0, 4);
    release_all();
    do {
        await_threads(0, 0);
        (void)sched_yield();
        submit_tasks(4, 1);
    } while (counting_allocator_live_blocks(&memory) != 1); /* the watchdog ends a hang */
}

/* ---- threads on their way out ---- */

/* A job whose thread has something to destroy at its end. */
struct slow_end {
    struct blocking_job job;
    pthread_key_t key;
};

static void set_slow_end(struct blocking_job *job)
{
    (void)pthread_setspecific(CONTAINER_OF(job, struct slow_end, job)->key, &jobs->tasks[0]);
}

/* Opens a pool whose only thread has ended, as far as the pool is concerned, but is still at it. */
static pthread_key_t open_pool_with_slow_end(void (*destroy)(void *task))
{
    struct slow_end end = {.job.run = set_slow_end};
    open_pool(.threads = 1, .idle_ns = 0);
    assert_int_equal(pthread_key_create(&end.key, destroy), 0);
    assert_int_equal(blocking_pool_submit(&jobs->pool, &end.job), 0);
    await_begun(1);
    return end.key;
}

/* Until the task is released. */
static void destroy_slowly(void *task)
{
    run_task(&((struct task *)task)->job);
}

TEST(submit_does_not_wait_for_a_thread_on_its_way_out)
{
    const pthread_key_t key = open_pool_with_slow_end(destroy_slowly);
    submit_tasks(1, 1);
    await_begun(2);
    release_all();
    stop_pool();
    assert_int_equal(jobs->returned, 2); /* but stop has waited for it */
    (void)pthread_key_delete(key);
}

/* Nobody ends the wait: a stop that does not join has returned long before it is over. */
static void destroy_late(void *task)
{
    const uint64_t deadline = monotonic_deadline(50 * MILLISECOND);
    (void)task;
    count_begun();
    mutex_lock(&jobs->lock);
    while (condition_wait_until(&jobs->changed, &jobs->lock, deadline)) {
    }
    jobs->returned++;
    mutex_unlock(&jobs->lock);
}

TEST(stop_waits_for_a_thread_on_its_way_out)
{
    const pthread_key_t key = open_pool_with_slow_end(destroy_late);
    stop_pool();
    mutex_lock(&jobs->lock);
    const uint32_t returned = jobs->returned;
    mutex_unlock(&jobs->lock);
    assert_int_equal(returned, 1);
    (void)pthread_key_delete(key);
}

/* ---- idle time that is over ---- */

/* The thread may be on its way out already. */
static void await_no_busy_thread(void)
{
    struct blocking_pool_counts counts;
    do {
        (void)sched_yield();
        counts = blocking_pool_counts(&jobs->pool);
    } while (counts.idle < counts.threads);
}

/* Keeps the pool locked until the time of its idle thread, if there is one, is over: that thread
 * then waits for the lock. */
static void let_idle_time_pass(uint64_t idle_ns)
{
    mutex_lock(&jobs->pool.lock);
    const uint64_t deadline = monotonic_deadline(2 * idle_ns);
    while (monotonic_ns() < deadline) {
        (void)sched_yield();
    }
    mutex_unlock(&jobs->pool.lock);
}

/* Of the two that want the lock the submitter nearly always gets it: it is awake. */
TEST(job_for_a_thread_whose_idle_time_is_over_is_not_lost)
{
    const uint64_t idle_ns = MILLISECOND / 5;
    open_pool(.threads = 1, .idle_ns = idle_ns);
    release_all();
    for (uint32_t round = 1; round <= 100; round++) {
        submit_tasks(0, 1);
        await_returned(2 * round - 1);
        await_no_busy_thread();
        let_idle_time_pass(idle_ns);
        submit_tasks(1, 1);
        await_returned(2 * round);
        await_threads(0, 0);
    }
    assert_task(1, 100, 0);
}

/* ---- when no thread can be made ---- */

static void forbid_memory(void)
{
    counting_allocator_fail_from(&memory, 1);
}

static void allow_memory(void)
{
    counting_allocator_fail_never(&memory);
}

static const struct {
    void (*forbid)(void);
    void (*allow)(void);
    int error;
} lacks[] = {{forbid_threads, allow_threads, SKUA_E_THREAD},
             {forbid_memory, allow_memory, SKUA_E_NO_MEMORY}};

TEST(submit_without_any_thread_says_why_none_can_be_made)
{
    FOR_ROWS (lack, lacks) {
        open_pool(.threads = 2, .queue = 2);
        lack->forbid();
        assert_int_equal(try_submit(0), lack->error);
        assert_counts(0, 0, 0);
        assert_int_equal(counting_allocator_live_blocks(&memory), 0);
        lack->allow();
        assert_task(0, 0, 0);
        submit_tasks(0, 1);
        await_begun(1);
    }
}

/* Tasks 1 and 2 wait for the thread that runs task 0, task 3 is refused. */
TEST(job_waits_for_an_existing_thread_if_no_other_can_be_made)
{
    FOR_ROWS (lack, lacks) {
        open_pool(.threads = 4, .queue = 2);
        submit_tasks(0, 1);
        lack->forbid();
        submit_tasks(1, 2);
        assert_counts(1, 0, 2);
        assert_int_equal(try_submit(3), SKUA_E_POOL_FULL);
        release_all();
        await_returned(3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_ptr_equal(jobs->begun_order[i], &jobs->tasks[i]);
            assert_same_thread(i, 0);
        }
        assert_task(3, 0, 0);
    }
}

TEST(thread_made_after_a_failure_begins_with_the_oldest_job)
{
    open_pool(.threads = 2, .queue = 1);
    submit_tasks(0, 1);
    await_begun(1);
    forbid_threads();
    submit_tasks(1, 1);
    allow_threads();
    submit_tasks(2, 1); /* although the queue is full: the new thread empties it */
    assert_counts(2, 0, 1);
    await_begun(2);
    assert_ptr_equal(jobs->begun_order[1], &jobs->tasks[1]);
    assert_int_equal(try_submit(3), SKUA_E_POOL_FULL);
}
