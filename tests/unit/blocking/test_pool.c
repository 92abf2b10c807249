/* SPDX-License-Identifier: MIT */
/* The pool of threads for blocking functions: what its threads are like, its two limits, the order
 * of jobs, and who may free them. */
#include "blocking/pool.h"

#include <signal.h>
#include <skua/error.h>

#include "aborts.h"
#include "base/mutex.h"
#include "blocking_rig.h"

/* ---- without jobs ---- */

TEST(pool_never_used_has_no_threads_and_no_memory)
{
    open_pool(.threads = 4, .queue = 4);
    assert_counts(0, 0, 0);
    assert_true(stop_pool_at_once());
    assert_true(stop_pool_at_once());
    assert_int_equal(counting_allocator_attempts(&memory), 0);
}

TEST(pool_never_used_can_be_deinitialized_without_stop)
{
    open_pool(.threads = 4, .queue = 4);
    blocking_pool_deinit(&jobs->pool);
    jobs->has_pool = false;
}

static void make_pool_without_threads(void *arg)
{
    (void)arg;
    make_pool("test", (struct blocking_pool_limits){.threads = 0, .queue = 4});
}

TEST(pool_with_room_for_no_thread_is_refused)
{
    open_jobs();
    assert_true(aborts(make_pool_without_threads, NULL));
}

/* ---- a thread ---- */

TEST(submit_runs_the_job_once_on_a_thread_of_the_pool)
{
    open_pool(.threads = 1, .idle_ns = FOR_EVER);
    release_all();
    submit_tasks(0, 1);
    await_returned(1);
    stop_pool();
    assert_task(0, 1, 0);
    assert_false(pthread_equal(jobs->tasks[0].thread, pthread_self()));
}

struct thread_facts {
    struct blocking_job job;
    char name[THREAD_NAME_SIZE];
    sigset_t blocked;
};

static void record_thread_facts(struct blocking_job *job)
{
    struct thread_facts *facts = CONTAINER_OF(job, struct thread_facts, job);
    (void)pthread_getname_np(pthread_self(), facts->name, sizeof facts->name);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &facts->blocked);
}

/* What a thread of a pool of that name is like. */
static struct thread_facts get_thread_facts(const char *name)
{
    struct thread_facts facts = {.job.run = record_thread_facts};
    open_jobs();
    make_pool(name, (struct blocking_pool_limits){.threads = 1});
    assert_int_equal(blocking_pool_submit(&jobs->pool, &facts.job), 0);
    await_threads(0, 0);
    close_pool();
    return facts;
}

TEST(thread_is_named_after_the_pool_in_15_characters)
{
    static const struct {
        const char *pool;
        const char *thread;
    } rows[] = {
        {"fs", "skua-fs"},
        {"exactly-10", "skua-exactly-10"},
        {"exactly-11c", "skua-exactly-11"},
        {"much longer than any kernel keeps", "skua-much longe"},
    };
    FOR_ROWS (row, rows) {
        assert_string_equal(get_thread_facts(row->pool).name, row->thread);
    }
}

static bool reaches_every_thread(int signal)
{
    static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,
                              SIGSYS,  SIGABRT, SIGPROF, SIGKILL, SIGSTOP};
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (signal == own[i]) {
            return true;
        }
    }
    return signal > SIGSYS && signal < SIGRTMIN; /* the C library's own */
}

TEST(thread_blocks_all_signals_but_its_own_faults_and_profiling)
{
    const struct thread_facts facts = get_thread_facts("signals");
    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        assert_int_equal(sigismember(&facts.blocked, signal) == 0, reaches_every_thread(signal));
    }
}

TEST(submit_leaves_the_signals_of_the_caller_alone)
{
    sigset_t usual;
    sigset_t expected;
    sigset_t found;
    (void)sigemptyset(&expected);
    (void)sigaddset(&expected, SIGUSR1);
    (void)pthread_sigmask(SIG_SETMASK, &expected, &usual);
    (void)get_thread_facts("signals");
    (void)pthread_sigmask(SIG_SETMASK, &usual, &found);
    for (int signal = 1; signal < SIGSYS; signal++) {
        assert_int_equal(sigismember(&found, signal), signal == SIGUSR1);
    }
}

/* ---- limits ---- */

/* Fills a pool, as the jobs come and when they have begun. */
static void open_full(uint32_t threads, uint32_t queue)
{
    const uint32_t most = threads + queue;
    open_pool(.threads = threads, .queue = queue, .idle_ns = FOR_EVER);
    submit_tasks(0, most);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(try_submit(most), SKUA_E_POOL_FULL);
        assert_counts(threads, 0, queue);
        await_begun(threads);
    }
    mutex_lock(&jobs->lock);
    const uint32_t begun = jobs->begun;
    mutex_unlock(&jobs->lock);
    assert_int_equal(begun, threads);
    assert_task(most, 0, 0);
}

TEST(limits_of_a_burst_are_exact)
{
    static const uint32_t limits[][2] = {{1, 0}, {1, 1}, {2, 0}, {1, 7}, {2, 3}, {4, 8}, {9, 1}};
    FOR_ROWS (limit, limits) {
        open_full((*limit)[0], (*limit)[1]);
    }
}

TEST(job_that_returns_makes_room_for_exactly_one_more)
{
    open_full(2, 3);
    release_task(1);
    await_begun(3); /* one from the queue */
    assert_counts(2, 0, 2);
    submit_tasks(5, 1); /* the one that was refused before */
    assert_int_equal(try_submit(6), SKUA_E_POOL_FULL);
    release_all();
    await_returned(6);
    await_threads(2, 2);
    for (uint32_t i = 0; i <= 6; i++) {
        assert_task(i, i < 6, 0);
    }
}

/* An idle thread that was given a job but has not woken up yet is not idle any more. */
TEST(limits_of_a_burst_on_idle_threads_are_exact)
{
    open_pool(.threads = 3, .queue = 1, .idle_ns = FOR_EVER);
    for (uint32_t round = 1; round <= 100; round++) {
        submit_tasks(0, 4);
        assert_int_equal(try_submit(4), SKUA_E_POOL_FULL);
        assert_counts(3, 0, 1);
        for (uint32_t i = 0; i < 4; i++) {
            release_task(i);
        }
        await_returned(round * 4);
        await_threads(3, 3);
        for (uint32_t i = 0; i < 4; i++) {
            jobs->tasks[i].is_released = false; /* nobody looks at it now */
        }
    }
}

TEST(pool_without_queue_hands_over_to_an_idle_thread)
{
    open_pool(.threads = 1, .queue = 0, .idle_ns = FOR_EVER);
    release_all();
    for (uint32_t i = 0; i < TASKS; i++) {
        submit_tasks(i, 1);
        await_returned(i + 1);
        await_threads(1, 1);
        assert_same_thread(i, 0);
    }
}

/* ---- order ---- */

TEST(queued_jobs_begin_in_the_order_of_submission)
{
    open_pool(.threads = 1, .queue = TASKS);
    submit_tasks(0, TASKS);
    release_all();
    await_returned(TASKS);
    for (uint32_t i = 0; i < TASKS; i++) {
        assert_ptr_equal(jobs->begun_order[i], &jobs->tasks[i]);
    }
}

TEST(thread_that_became_idle_last_gets_the_next_job)
{
    static const uint32_t order[] = {0, 2, 1};
    open_pool(.threads = 3, .idle_ns = FOR_EVER);
    submit_tasks(0, 3);
    await_begun(3);
    for (uint32_t i = 0; i < COUNT_OF(order); i++) {
        release_task(order[i]);
        await_threads(3, i + 1);
    }
    submit_tasks(3, 1);
    await_begun(4);
    assert_same_thread(3, 1);
}

/* ---- jobs and their memory ---- */

/* A job that frees itself and then submits a successor. */
struct chain_link {
    struct blocking_job job;
    uint32_t left; /* successors to come */
};

static void run_chain_link(struct blocking_job *job);

static void free_chain_link(struct blocking_job *job)
{
    free(CONTAINER_OF(job, struct chain_link, job));
}

static int submit_chain_link(uint32_t left)
{
    struct chain_link *link = malloc(sizeof *link);
    if (link == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    *link =
        (struct chain_link){.job = {.run = run_chain_link, .drop = free_chain_link}, .left = left};
    const int error = blocking_pool_submit(&jobs->pool, &link->job);
    if (error != 0) {
        free(link);
    }
    return error;
}

static void run_chain_link(struct blocking_job *job)
{
    const uint32_t left = CONTAINER_OF(job, struct chain_link, job)->left;
    free_chain_link(job);
    if (left == 0 || submit_chain_link(left - 1) == 0) {
        count_begun();
    }
}

TEST(job_may_free_itself_and_submit_another)
{
    open_pool(.threads = 1, .queue = 1);
    assert_int_equal(submit_chain_link(99), 0);
    await_begun(100);
}

TEST(job_may_free_itself_when_it_is_dropped)
{
    open_pool(.threads = 1, .queue = 10);
    submit_tasks(0, 1);
    await_begun(1);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(submit_chain_link(0), 0);
    }
    assert_false(stop_pool_at_once()); /* the leak checker sees what is lost */
    release_all();
    stop_pool();
    assert_int_equal(jobs->begun, 1);
}

/* ---- the moment between the end of a job and its announcement ---- */

/* A job that submits a task when it says that it is done. */
struct announced {
    struct blocking_job job;
    uint32_t successor;
    int error; /* of that submit */
    struct blocking_pool_counts counts;
};

static void run_announced(struct blocking_job *job)
{
    (void)job;
    count_begun();
}

static void announce(struct blocking_job *job)
{
    struct announced *announced = CONTAINER_OF(job, struct announced, job);
    announced->counts = blocking_pool_counts(&jobs->pool);
    announced->error = try_submit(announced->successor);
    count_begun();
}

TEST(thread_is_free_when_the_end_of_its_job_is_announced)
{
    struct announced announced = {.job = {.run = run_announced, .finish = announce}, .error = 1};
    open_pool(.threads = 1, .queue = 0, .idle_ns = FOR_EVER);
    assert_int_equal(blocking_pool_submit(&jobs->pool, &announced.job), 0);
    await_begun(3); /* its begin, its end, and the task */
    assert_int_equal(announced.error, 0);
    assert_int_equal(announced.counts.threads, 1);
    assert_int_equal(announced.counts.idle, 1);
    assert_counts(1, 0, 0);
}

TEST(place_in_the_queue_is_free_when_the_end_of_a_job_is_announced)
{
    struct announced announced = {
        .job = {.run = run_announced, .finish = announce}, .successor = 2, .error = 1};
    open_pool(.threads = 1, .queue = 2, .idle_ns = FOR_EVER);
    submit_tasks(0, 1);
    await_begun(1);
    assert_int_equal(blocking_pool_submit(&jobs->pool, &announced.job), 0);
    submit_tasks(1, 1);
    assert_int_equal(try_submit(2), SKUA_E_POOL_FULL);
    release_task(0);
    await_begun(4); /* the task before it, its begin, its end, and the task behind it */
    assert_int_equal(announced.error, 0);
    assert_int_equal(announced.counts.queued, 0);
    assert_counts(1, 0, 1);
}
