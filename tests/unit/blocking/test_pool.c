/* SPDX-License-Identifier: MIT */
/* The pool of threads for blocking functions: its two limits, how threads come and go, what happens
 * when none can be had, how it stops, and that each accepted job is run or dropped exactly once. */
#include "blocking/pool.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <skua/error.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aborts.h"
#include "base/monotonic.h"
#include "base/mutex.h"
#include "counting_allocator.h"

#define MILLISECOND   UINT64_C(1000000)
#define HANG_NS       (20000 * MILLISECOND) /* whatever takes so long never comes */
#define FOR_EVER      UINT64_MAX
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* ---- jobs that wait until they are told to return ---- */

#define TASKS 32

struct rig;

struct task {
    struct blocking_job job;
    struct rig *rig;
    /* Under the rig's lock. */
    bool released; /* may return */
    uint32_t runs;
    uint32_t drops;
    pthread_t thread; /* that ran or dropped it */
};

struct rig {
    struct counting_allocator memory;
    pthread_attr_t usual_attributes; /* of new threads */
    struct blocking_pool pool;
    bool has_pool;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    bool all_released;
    uint32_t begun;
    uint32_t returned;
    uint32_t dropped;
    struct task *begun_order[TASKS];
    struct task *dropped_order[TASKS];
    struct task tasks[TASKS];
};

static struct task *task_of(struct blocking_job *job)
{
    return CONTAINER_OF(job, struct task, job);
}

static void run_task(struct blocking_job *job)
{
    struct task *task = task_of(job);
    struct rig *rig = task->rig;
    mutex_lock(&rig->lock);
    task->runs++;
    task->thread = pthread_self();
    rig->begun_order[rig->begun++ % TASKS] = task;
    (void)pthread_cond_broadcast(&rig->changed);
    while (!task->released && !rig->all_released) {
        (void)condition_wait_until(&rig->changed, &rig->lock, UINT64_MAX);
    }
    rig->returned++;
    (void)pthread_cond_broadcast(&rig->changed);
    mutex_unlock(&rig->lock);
}

static void drop_task(struct blocking_job *job)
{
    struct task *task = task_of(job);
    struct rig *rig = task->rig;
    mutex_lock(&rig->lock);
    task->drops++;
    task->thread = pthread_self();
    rig->dropped_order[rig->dropped++ % TASKS] = task;
    mutex_unlock(&rig->lock);
}

static void release(struct task *task)
{
    mutex_lock(&task->rig->lock);
    task->released = true;
    (void)pthread_cond_broadcast(&task->rig->changed);
    mutex_unlock(&task->rig->lock);
}

static void release_all(struct rig *rig)
{
    mutex_lock(&rig->lock);
    rig->all_released = true;
    (void)pthread_cond_broadcast(&rig->changed);
    mutex_unlock(&rig->lock);
}

/* Waits until a counter of the rig has reached a value; false if it never does. */
static bool await(struct rig *rig, const uint32_t *counter, uint32_t value)
{
    const uint64_t deadline = monotonic_deadline(HANG_NS);
    bool in_time = true;
    mutex_lock(&rig->lock);
    while (*counter < value && in_time) {
        in_time = condition_wait_until(&rig->changed, &rig->lock, deadline);
    }
    const bool reached = *counter >= value;
    mutex_unlock(&rig->lock);
    return reached;
}

/* Waits until the pool has so many threads in all and idle; false if that never comes. */
static bool await_threads(struct rig *rig, uint32_t threads, uint32_t idle)
{
    const uint64_t deadline = monotonic_deadline(HANG_NS);
    for (;;) {
        const struct blocking_pool_counts counts = blocking_pool_counts(&rig->pool);
        if (counts.threads == threads && counts.idle == idle) {
            return true;
        }
        if (monotonic_ns() > deadline) {
            return false;
        }
        (void)sched_yield();
    }
}

/* The same, until every thread there is, if any, is idle. */
static bool await_no_busy_thread(struct rig *rig)
{
    const uint64_t deadline = monotonic_deadline(HANG_NS);
    struct blocking_pool_counts counts = blocking_pool_counts(&rig->pool);
    while (counts.idle < counts.threads && monotonic_ns() < deadline) {
        (void)sched_yield();
        counts = blocking_pool_counts(&rig->pool);
    }
    return counts.idle == counts.threads;
}

/* ---- the frame of a test ---- */

static void allow_threads(struct rig *rig)
{
    (void)pthread_setattr_default_np(&rig->usual_attributes);
}

/* From now on pthread_create fails: there is no room for such a stack in any address space. */
static void forbid_threads(void)
{
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)1 << 60), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    (void)pthread_attr_destroy(&attributes);
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    if (rig == NULL || pthread_getattr_default_np(&rig->usual_attributes) != 0) {
        return -1;
    }
    counting_allocator_init(&rig->memory);
    mutex_init(&rig->lock);
    condition_init(&rig->changed);
    for (size_t i = 0; i < TASKS; i++) {
        rig->tasks[i].rig = rig;
        rig->tasks[i].job.run = run_task;
        rig->tasks[i].job.drop = drop_task;
    }
    *state = rig;
    return 0;
}

/* Every test ends with a pool that stops and leaves no memory behind. */
static int tear_down(void **state)
{
    struct rig *rig = *state;
    allow_threads(rig);
    release_all(rig);
    if (rig->has_pool) {
        if (!blocking_pool_stop(&rig->pool, monotonic_deadline(HANG_NS))) {
            return -1; /* its threads still use the rig */
        }
        blocking_pool_deinit(&rig->pool);
    }
    const bool clean = counting_allocator_is_clean(&rig->memory);
    (void)pthread_attr_destroy(&rig->usual_attributes);
    (void)pthread_cond_destroy(&rig->changed);
    mutex_deinit(&rig->lock);
    free(rig);
    return clean ? 0 : -1;
}

static void make_named_pool(struct rig *rig, const char *name,
                            const struct blocking_pool_limits *limits)
{
    blocking_pool_init(&rig->pool, name, limits, &rig->memory.allocator);
    rig->has_pool = true;
}

static void make_pool(struct rig *rig, const struct blocking_pool_limits *limits)
{
    make_named_pool(rig, "test", limits);
}

static int submit(struct rig *rig, uint32_t task)
{
    return blocking_pool_submit(&rig->pool, &rig->tasks[task].job);
}

static void submit_range(struct rig *rig, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(submit(rig, first + i), 0);
    }
}

static bool stop(struct rig *rig)
{
    return blocking_pool_stop(&rig->pool, monotonic_deadline(HANG_NS));
}

static void assert_counts(struct rig *rig, uint32_t threads, uint32_t idle, uint32_t queued)
{
    const struct blocking_pool_counts counts = blocking_pool_counts(&rig->pool);
    assert_int_equal(counts.threads, threads);
    assert_int_equal(counts.idle, idle);
    assert_int_equal(counts.queued, queued);
}

static void assert_untouched(const struct task *task)
{
    assert_int_equal(task->runs, 0);
    assert_int_equal(task->drops, 0);
}

/* ---- without jobs ---- */

static void pool_new_has_no_threads_and_no_memory(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .queue = 4});
    assert_counts(rig, 0, 0, 0);
    assert_int_equal(counting_allocator_attempts(&rig->memory), 0);
}

static void pool_never_used_can_be_deinitialized_without_stop(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .queue = 4});
    blocking_pool_deinit(&rig->pool);
    rig->has_pool = false;
    assert_true(counting_allocator_is_clean(&rig->memory));
}

static void pool_never_used_stops_at_once(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .queue = 4});
    assert_true(blocking_pool_stop(&rig->pool, 0));
    assert_true(blocking_pool_stop(&rig->pool, 0));
}

static void make_pool_without_threads(void *arg)
{
    make_pool(arg, &(struct blocking_pool_limits){.threads = 0, .queue = 4});
}

static void pool_with_room_for_no_thread_is_refused(void **state)
{
    assert_true(aborts(make_pool_without_threads, *state));
}

/* ---- a thread ---- */

static void submit_runs_the_job_once_on_a_thread_of_the_pool(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .idle_ns = FOR_EVER});
    release_all(rig);
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->returned, 1));
    assert_true(stop(rig));
    assert_int_equal(rig->tasks[0].runs, 1);
    assert_int_equal(rig->tasks[0].drops, 0);
    assert_false(pthread_equal(rig->tasks[0].thread, pthread_self()));
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
static void get_thread_facts(struct rig *rig, const char *name, struct thread_facts *facts)
{
    *facts = (struct thread_facts){.job.run = record_thread_facts};
    make_named_pool(rig, name, &(struct blocking_pool_limits){.threads = 1});
    assert_int_equal(blocking_pool_submit(&rig->pool, &facts->job), 0);
    assert_true(await_threads(rig, 0, 0));
    assert_true(stop(rig));
    blocking_pool_deinit(&rig->pool);
    rig->has_pool = false;
}

static void thread_is_named_after_the_pool_in_15_characters(void **state)
{
    static const char *const names[][2] = {
        {"fs", "skua-fs"},
        {"exactly-10", "skua-exactly-10"},
        {"exactly-11c", "skua-exactly-11"},
        {"much longer than any kernel keeps", "skua-much longe"},
    };
    struct thread_facts facts;
    for (size_t i = 0; i < LENGTH(names); i++) {
        get_thread_facts(*state, names[i][0], &facts);
        assert_string_equal(facts.name, names[i][1]);
    }
}

static bool reaches_every_thread(int signal)
{
    static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,
                              SIGSYS,  SIGABRT, SIGPROF, SIGKILL, SIGSTOP};
    for (size_t i = 0; i < LENGTH(own); i++) {
        if (signal == own[i]) {
            return true;
        }
    }
    return signal > SIGSYS && signal < SIGRTMIN; /* the C library's own */
}

static void thread_blocks_all_signals_but_its_own_faults_and_profiling(void **state)
{
    struct thread_facts facts;
    get_thread_facts(*state, "signals", &facts);
    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        assert_int_equal(sigismember(&facts.blocked, signal) == 0, reaches_every_thread(signal));
    }
}

static void submit_leaves_the_signals_of_the_caller_alone(void **state)
{
    sigset_t usual;
    sigset_t expected;
    sigset_t found;
    (void)sigemptyset(&expected);
    (void)sigaddset(&expected, SIGUSR1);
    (void)pthread_sigmask(SIG_SETMASK, &expected, &usual);
    struct thread_facts facts;
    get_thread_facts(*state, "signals", &facts);
    (void)pthread_sigmask(SIG_SETMASK, &usual, &found);
    for (int signal = 1; signal < SIGSYS; signal++) {
        assert_int_equal(sigismember(&found, signal), signal == SIGUSR1);
    }
}

/* ---- limits ---- */

static void check_limits(struct rig *rig, uint32_t threads, uint32_t queue)
{
    const uint32_t most = threads + queue;
    submit_range(rig, 0, most);
    assert_int_equal(submit(rig, most), SKUA_E_POOL_FULL);
    assert_counts(rig, threads, 0, queue);
    assert_true(await(rig, &rig->begun, threads));
    assert_int_equal(submit(rig, most), SKUA_E_POOL_FULL);
    assert_counts(rig, threads, 0, queue);
    mutex_lock(&rig->lock);
    const uint32_t begun = rig->begun;
    mutex_unlock(&rig->lock);
    assert_int_equal(begun, threads);
    assert_untouched(&rig->tasks[most]);
}

static void limits_of_a_burst_are_exact(void **state)
{
    static const uint32_t limits[][2] = {{1, 0}, {1, 1}, {2, 0}, {1, 7}, {2, 3}, {4, 8}, {9, 1}};
    for (size_t i = 0; i < LENGTH(limits); i++) {
        struct rig *rig;
        assert_int_equal(set_up((void **)&rig), 0);
        make_pool(rig, &(struct blocking_pool_limits){
                           .threads = limits[i][0], .queue = limits[i][1], .idle_ns = FOR_EVER});
        check_limits(rig, limits[i][0], limits[i][1]);
        assert_int_equal(tear_down((void **)&rig), 0);
    }
    (void)state;
}

static void job_that_returns_makes_room_for_exactly_one_more(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2, .queue = 3, .idle_ns = FOR_EVER});
    check_limits(rig, 2, 3);
    release(&rig->tasks[1]);
    assert_true(await(rig, &rig->begun, 3)); /* one from the queue */
    assert_counts(rig, 2, 0, 2);
    assert_int_equal(submit(rig, 5), 0); /* the one that was refused before */
    assert_int_equal(submit(rig, 6), SKUA_E_POOL_FULL);
    release_all(rig);
    assert_true(await(rig, &rig->returned, 6));
    assert_true(await_threads(rig, 2, 2));
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(rig->tasks[i].runs, 1);
    }
    assert_untouched(&rig->tasks[6]);
}

/* An idle thread that was given a job but has not woken up yet is not idle any more. */
static void limits_of_a_burst_on_idle_threads_are_exact(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 3, .queue = 1, .idle_ns = FOR_EVER});
    for (uint32_t round = 1; round <= 100; round++) {
        submit_range(rig, 0, 4);
        assert_int_equal(submit(rig, 4), SKUA_E_POOL_FULL);
        assert_counts(rig, 3, 0, 1);
        for (uint32_t i = 0; i < 4; i++) {
            release(&rig->tasks[i]);
        }
        assert_true(await(rig, &rig->returned, round * 4));
        assert_true(await_threads(rig, 3, 3));
        for (uint32_t i = 0; i < 4; i++) {
            rig->tasks[i].released = false; /* nobody looks at it now */
        }
    }
}

static void pool_without_queue_hands_over_to_an_idle_thread(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .queue = 0, .idle_ns = FOR_EVER});
    release_all(rig);
    for (uint32_t i = 0; i < TASKS; i++) {
        submit_range(rig, i, 1);
        assert_true(await(rig, &rig->returned, i + 1));
        assert_true(await_threads(rig, 1, 1));
        assert_true(pthread_equal(rig->tasks[i].thread, rig->tasks[0].thread));
    }
}

/* ---- order ---- */

static void queued_jobs_begin_in_the_order_of_submission(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .queue = TASKS});
    submit_range(rig, 0, TASKS);
    release_all(rig);
    assert_true(await(rig, &rig->returned, TASKS));
    for (uint32_t i = 0; i < TASKS; i++) {
        assert_ptr_equal(rig->begun_order[i], &rig->tasks[i]);
    }
}

static void thread_that_became_idle_last_gets_the_next_job(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 3, .idle_ns = FOR_EVER});
    submit_range(rig, 0, 3);
    assert_true(await(rig, &rig->begun, 3));
    static const uint32_t order[] = {0, 2, 1};
    for (uint32_t i = 0; i < LENGTH(order); i++) {
        release(&rig->tasks[order[i]]);
        assert_true(await_threads(rig, 3, i + 1));
    }
    submit_range(rig, 3, 1);
    assert_true(await(rig, &rig->begun, 4));
    assert_true(pthread_equal(rig->tasks[3].thread, rig->tasks[1].thread));
}

/* ---- jobs and their memory ---- */

/* A job that frees itself and then submits a successor. */
struct chain_link {
    struct blocking_job job;
    struct rig *rig;
    uint32_t left; /* successors to come */
};

static void run_chain_link(struct blocking_job *job);

static void free_chain_link(struct blocking_job *job)
{
    free(CONTAINER_OF(job, struct chain_link, job));
}

static int submit_chain_link(struct rig *rig, uint32_t left)
{
    struct chain_link *link = malloc(sizeof *link);
    assert_non_null(link);
    *link = (struct chain_link){
        .job = {.run = run_chain_link, .drop = free_chain_link}, .rig = rig, .left = left};
    const int error = blocking_pool_submit(&rig->pool, &link->job);
    if (error != 0) {
        free(link);
    }
    return error;
}

static void run_chain_link(struct blocking_job *job)
{
    struct chain_link *link = CONTAINER_OF(job, struct chain_link, job);
    struct rig *rig = link->rig;
    const uint32_t left = link->left;
    free(link);
    const bool failed = left > 0 && submit_chain_link(rig, left - 1) != 0;
    mutex_lock(&rig->lock);
    rig->begun += failed ? 0 : 1;
    (void)pthread_cond_broadcast(&rig->changed);
    mutex_unlock(&rig->lock);
}

static void job_may_free_itself_and_submit_another(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .queue = 1});
    assert_int_equal(submit_chain_link(rig, 99), 0);
    assert_true(await(rig, &rig->begun, 100));
}

static void job_may_free_itself_when_it_is_dropped(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .queue = 10});
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(submit_chain_link(rig, 0), 0);
    }
    assert_false(blocking_pool_stop(&rig->pool, 0)); /* the leak checker sees what is lost */
    release_all(rig);
    assert_true(stop(rig));
    assert_int_equal(rig->begun, 1);
}

/* ---- threads that have nothing to do ---- */

static void idle_thread_ends_and_makes_room_for_another(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .idle_ns = MILLISECOND});
    release_all(rig);
    for (uint32_t i = 0; i < 10; i++) {
        submit_range(rig, i, 1);
        assert_true(await(rig, &rig->returned, i + 1));
        assert_true(await_threads(rig, 0, 0));
    }
}

static void idle_threads_end_one_by_one_from_anywhere_in_the_list(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 8, .idle_ns = MILLISECOND});
    submit_range(rig, 0, 8);
    assert_true(await(rig, &rig->begun, 8));
    release_all(rig);
    assert_true(await_threads(rig, 0, 0));
    submit_range(rig, 8, 8);
    assert_true(await(rig, &rig->returned, 16));
}

static void thread_without_idle_time_ends_when_the_queue_is_empty(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .queue = 3, .idle_ns = 0});
    submit_range(rig, 0, 4);
    release_all(rig);
    assert_true(await_threads(rig, 0, 0));
    assert_int_equal(rig->returned, 4); /* and not before */
    for (uint32_t i = 1; i < 4; i++) {
        assert_true(pthread_equal(rig->tasks[i].thread, rig->tasks[0].thread));
    }
}

/* The memory of a thread is given back when it is joined, so it tells how many are not. */
static void submit_joins_threads_that_have_ended(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .idle_ns = 0});
    submit_range(rig, 0, 4);
    release_all(rig);
    bool all_were_joined = false;
    for (uint32_t round = 0; round < 1000 && !all_were_joined; round++) {
        assert_true(await_threads(rig, 0, 0));
        submit_range(rig, 4, 1);
        all_were_joined = counting_allocator_live_blocks(&rig->memory) == 1;
    }
    assert_true(all_were_joined);
}

/* A thread whose thread-specific data takes its time to be destroyed: until a task is released. */
static void destroy_slowly(void *task)
{
    run_task(&((struct task *)task)->job);
}

struct slow_end {
    struct blocking_job job;
    struct task *task;
    pthread_key_t key;
};

static void set_slow_end(struct blocking_job *job)
{
    struct slow_end *end = CONTAINER_OF(job, struct slow_end, job);
    (void)pthread_setspecific(end->key, end->task);
}

static void submit_does_not_wait_for_a_thread_on_its_way_out(void **state)
{
    struct rig *rig = *state;
    struct slow_end end = {.job.run = set_slow_end, .task = &rig->tasks[0]};
    assert_int_equal(pthread_key_create(&end.key, destroy_slowly), 0);
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .idle_ns = 0});
    assert_int_equal(blocking_pool_submit(&rig->pool, &end.job), 0);
    assert_true(await(rig, &rig->begun, 1)); /* has ended, as far as the pool is concerned */
    submit_range(rig, 1, 1);
    assert_true(await(rig, &rig->begun, 2));
    release_all(rig);
    assert_true(stop(rig));
    assert_int_equal(rig->returned, 2); /* but stop has waited for it */
    (void)pthread_key_delete(end.key);
}

/* Nobody ends the wait: a stop that does not join has returned long before it is over. */
static void destroy_late(void *arg)
{
    struct rig *rig = ((struct task *)arg)->rig;
    const uint64_t deadline = monotonic_deadline(50 * MILLISECOND);
    mutex_lock(&rig->lock);
    rig->begun++;
    (void)pthread_cond_broadcast(&rig->changed);
    while (condition_wait_until(&rig->changed, &rig->lock, deadline)) {
    }
    rig->returned++;
    mutex_unlock(&rig->lock);
}

static void stop_waits_for_a_thread_on_its_way_out(void **state)
{
    struct rig *rig = *state;
    struct slow_end end = {.job.run = set_slow_end, .task = &rig->tasks[0]};
    assert_int_equal(pthread_key_create(&end.key, destroy_late), 0);
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .idle_ns = 0});
    assert_int_equal(blocking_pool_submit(&rig->pool, &end.job), 0);
    assert_true(await(rig, &rig->begun, 1));
    assert_true(stop(rig));
    mutex_lock(&rig->lock);
    const uint32_t returned = rig->returned;
    mutex_unlock(&rig->lock);
    assert_int_equal(returned, 1);
    (void)pthread_key_delete(end.key);
}

/* Keeps the pool locked until the time of its idle thread, if there is one, is over: that thread
 * then waits for the lock. */
static void let_idle_time_pass(struct rig *rig, uint64_t idle_ns)
{
    mutex_lock(&rig->pool.lock);
    const uint64_t deadline = monotonic_deadline(2 * idle_ns);
    while (monotonic_ns() < deadline) {
        (void)sched_yield();
    }
    mutex_unlock(&rig->pool.lock);
}

/* Of the two that want the lock the submitter nearly always gets it: it is awake. */
static void job_for_a_thread_whose_idle_time_is_over_is_not_lost(void **state)
{
    struct rig *rig = *state;
    const uint64_t idle_ns = MILLISECOND / 5;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .idle_ns = idle_ns});
    release_all(rig);
    for (uint32_t round = 1; round <= 100; round++) {
        submit_range(rig, 0, 1);
        assert_true(await(rig, &rig->returned, 2 * round - 1));
        assert_true(await_no_busy_thread(rig));
        let_idle_time_pass(rig, idle_ns);
        submit_range(rig, 1, 1);
        assert_true(await(rig, &rig->returned, 2 * round));
        assert_true(await_threads(rig, 0, 0));
    }
    assert_int_equal(rig->tasks[1].runs, 100);
}

/* ---- when no thread can be made ---- */

static void submit_without_any_thread_reports_that_none_can_be_made(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2, .queue = 2});
    forbid_threads();
    assert_int_equal(submit(rig, 0), SKUA_E_THREAD);
    assert_counts(rig, 0, 0, 0);
    assert_int_equal(counting_allocator_live_blocks(&rig->memory), 0);
    allow_threads(rig);
    assert_untouched(&rig->tasks[0]);
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
}

static void submit_without_any_memory_reports_it(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2, .queue = 2});
    counting_allocator_fail_once(&rig->memory, 1);
    assert_int_equal(submit(rig, 0), SKUA_E_NO_MEMORY);
    assert_counts(rig, 0, 0, 0);
    assert_untouched(&rig->tasks[0]);
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
}

/* One thread runs task 0, a second cannot be made: tasks 1 and 2 wait, task 3 is refused. */
static void check_jobs_wait_for_the_only_thread(struct rig *rig)
{
    submit_range(rig, 1, 2);
    assert_counts(rig, 1, 0, 2);
    assert_int_equal(submit(rig, 3), SKUA_E_POOL_FULL);
    release_all(rig);
    assert_true(await(rig, &rig->returned, 3));
    for (uint32_t i = 0; i < 3; i++) {
        assert_ptr_equal(rig->begun_order[i], &rig->tasks[i]);
        assert_true(pthread_equal(rig->tasks[i].thread, rig->tasks[0].thread));
    }
    assert_untouched(&rig->tasks[3]);
}

static void job_waits_for_an_existing_thread_if_no_other_can_be_made(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .queue = 2});
    submit_range(rig, 0, 1);
    forbid_threads();
    check_jobs_wait_for_the_only_thread(rig);
}

static void job_waits_for_an_existing_thread_if_there_is_no_memory_for_another(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .queue = 2});
    submit_range(rig, 0, 1);
    counting_allocator_fail_from(&rig->memory, 1);
    check_jobs_wait_for_the_only_thread(rig);
}

static void thread_made_after_a_failure_begins_with_the_oldest_job(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2, .queue = 1});
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
    forbid_threads();
    submit_range(rig, 1, 1);
    allow_threads(rig);
    submit_range(rig, 2, 1); /* although the queue is full: the new thread empties it */
    assert_counts(rig, 2, 0, 1);
    assert_true(await(rig, &rig->begun, 2));
    assert_ptr_equal(rig->begun_order[1], &rig->tasks[1]);
    assert_int_equal(submit(rig, 3), SKUA_E_POOL_FULL);
}

/* ---- stopping ---- */

static void stop_wakes_and_joins_idle_threads(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 4, .idle_ns = FOR_EVER});
    submit_range(rig, 0, 4);
    release_all(rig);
    assert_true(await_threads(rig, 4, 4));
    assert_true(stop(rig));
    assert_counts(rig, 0, 0, 0);
    assert_true(counting_allocator_is_clean(&rig->memory));
    assert_true(blocking_pool_stop(&rig->pool, 0)); /* and again */
}

static void submit_after_stop_is_refused(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2, .queue = 2, .idle_ns = FOR_EVER});
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
    assert_false(blocking_pool_stop(&rig->pool, 0));
    assert_int_equal(submit(rig, 1), SKUA_E_STOPPED); /* while a job runs */
    release_all(rig);
    assert_true(stop(rig));
    assert_int_equal(submit(rig, 1), SKUA_E_STOPPED);
    assert_untouched(&rig->tasks[1]);
}

static void stop_drops_what_is_queued_in_order_and_not_what_runs(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2, .queue = 5});
    submit_range(rig, 0, 7);
    assert_true(await(rig, &rig->begun, 2));
    assert_false(blocking_pool_stop(&rig->pool, 0));
    assert_counts(rig, 2, 0, 0);
    release_all(rig);
    assert_true(stop(rig));
    assert_int_equal(rig->returned, 2);
    assert_int_equal(rig->dropped, 5);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(rig->tasks[i].runs, i < 2);
        assert_int_equal(rig->tasks[i].drops, i >= 2);
    }
    for (uint32_t i = 0; i < 5; i++) {
        assert_ptr_equal(rig->dropped_order[i], &rig->tasks[2 + i]);
    }
}

/* Uses the pool, which would never return if the pool's lock were held. */
static void drop_and_submit_again(struct blocking_job *job)
{
    struct task *task = task_of(job);
    const int error = blocking_pool_submit(&task->rig->pool, job);
    drop_task(job);
    task->released = error == SKUA_E_STOPPED;
}

static void drop_is_called_without_the_lock(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1, .queue = 1});
    rig->tasks[1].job.drop = drop_and_submit_again;
    submit_range(rig, 0, 2);
    assert_true(await(rig, &rig->begun, 1));
    assert_false(blocking_pool_stop(&rig->pool, 0));
    assert_int_equal(rig->tasks[1].drops, 1);
    assert_true(rig->tasks[1].released);
}

/* The threads are new and need a moment to begin; stop comes before at least one of them does. */
static void stop_drops_jobs_whose_thread_has_not_begun(void **state)
{
    struct rig *rig = *state;
    bool dropped_by_its_thread = false;
    release_all(rig);
    for (uint32_t round = 0; round < 1000 && !dropped_by_its_thread; round++) {
        make_pool(rig, &(struct blocking_pool_limits){.threads = 8});
        submit_range(rig, 0, 8);
        assert_true(stop(rig));
        blocking_pool_deinit(&rig->pool);
        rig->has_pool = false;
        for (uint32_t i = 0; i < 8; i++) {
            const struct task *task = &rig->tasks[i];
            assert_int_equal(task->runs + task->drops, round + 1);
            dropped_by_its_thread |=
                task->drops > 0 && !pthread_equal(task->thread, pthread_self());
        }
    }
    assert_true(dropped_by_its_thread);
}

static void stop_gives_up_at_its_deadline_and_can_be_called_again(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 2});
    submit_range(rig, 0, 2);
    assert_true(await(rig, &rig->begun, 2));
    release(&rig->tasks[0]);
    const uint64_t deadline = monotonic_deadline(5 * MILLISECOND);
    assert_false(blocking_pool_stop(&rig->pool, deadline));
    assert_true(monotonic_ns() >= deadline);
    assert_false(blocking_pool_stop(&rig->pool, 0));
    release(&rig->tasks[1]);
    assert_true(stop(rig));
    assert_int_equal(rig->returned, 2);
}

static void *stop_for_ever(void *arg)
{
    struct rig *rig = arg;
    const bool stopped = blocking_pool_stop(&rig->pool, FOR_EVER);
    return stopped ? rig : NULL;
}

/* Waits until a stop has begun. All threads are busy, so no job is accepted before that, either. */
static void await_stop(struct rig *rig)
{
    while (submit(rig, 1) != SKUA_E_STOPPED) {
        (void)sched_yield();
    }
}

static void stop_without_deadline_waits_for_the_last_job_to_return(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1});
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_for_ever, rig), 0);
    await_stop(rig);
    release_all(rig);
    void *stopped;
    assert_int_equal(pthread_join(stopper, &stopped), 0);
    assert_ptr_equal(stopped, rig);
    assert_int_equal(rig->returned, 1);
    assert_true(blocking_pool_stop(&rig->pool, 0)); /* by another thread than before */
}

static void deinit_pool(void *arg)
{
    struct rig *rig = arg;
    blocking_pool_deinit(&rig->pool);
}

static void deinit_of_a_pool_with_threads_is_refused(void **state)
{
    struct rig *rig = *state;
    make_pool(rig, &(struct blocking_pool_limits){.threads = 1});
    submit_range(rig, 0, 1);
    assert_true(await(rig, &rig->begun, 1));
    assert_true(aborts(deinit_pool, rig));
    assert_false(blocking_pool_stop(&rig->pool, 0));
    assert_true(aborts(deinit_pool, rig));
    release_all(rig);
    assert_true(stop(rig));
    assert_false(aborts(deinit_pool, rig));
}

/* ---- many submitters ---- */

#define SUBMITTERS      4
#define JOBS_PER_THREAD 300

struct crowd_job {
    struct blocking_job job;
    struct crowd *crowd;
    bool accepted; /* written by its submitter, read after that is joined */
    atomic_u32 runs;
    atomic_u32 drops;
};

struct crowd {
    struct blocking_pool *pool;
    uint32_t threads; /* the limit */
    atomic_u32 running;
    atomic_u32 too_many; /* how often more than the limit ran */
    atomic_u32 finished;
    atomic_u32 errors; /* that should not be */
    struct crowd_job jobs[SUBMITTERS][JOBS_PER_THREAD];
};

struct submitter {
    struct crowd *crowd;
    struct crowd_job *jobs;
    pthread_t thread;
};

/* All relaxed: they only count, and are compared after everything is joined. */
static void run_crowd_job(struct blocking_job *job)
{
    struct crowd_job *self = CONTAINER_OF(job, struct crowd_job, job);
    struct crowd *crowd = self->crowd;
    if (fetch_add_relaxed(&crowd->running, 1) >= crowd->threads) {
        (void)fetch_add_relaxed(&crowd->too_many, 1);
    }
    (void)sched_yield();
    (void)fetch_add_relaxed(&self->runs, 1);
    (void)fetch_add_relaxed(&crowd->finished, 1);
    (void)fetch_sub_relaxed(&crowd->running, 1);
}

static void drop_crowd_job(struct blocking_job *job)
{
    (void)fetch_add_relaxed(&CONTAINER_OF(job, struct crowd_job, job)->drops, 1);
}

static int submit_when_there_is_room(struct blocking_pool *pool, struct blocking_job *job)
{
    int error;
    while ((error = blocking_pool_submit(pool, job)) == SKUA_E_POOL_FULL) {
        (void)sched_yield();
    }
    return error;
}

static void *submit_jobs(void *arg)
{
    struct submitter *self = arg;
    for (uint32_t i = 0; i < JOBS_PER_THREAD; i++) {
        struct crowd_job *job = &self->jobs[i];
        job->crowd = self->crowd;
        job->job.run = run_crowd_job;
        job->job.drop = drop_crowd_job;
        const int error = submit_when_there_is_room(self->crowd->pool, &job->job);
        job->accepted = error == 0;
        if (error != 0) {
            (void)fetch_add_relaxed(&self->crowd->errors, error != SKUA_E_STOPPED);
            break;
        }
    }
    return NULL;
}

static void start_submitters(struct crowd *crowd, struct submitter *submitters)
{
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){.crowd = crowd, .jobs = crowd->jobs[i]};
        assert_int_equal(pthread_create(&submitters[i].thread, NULL, submit_jobs, &submitters[i]),
                         0);
    }
}

static void join_submitters(struct submitter *submitters)
{
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        (void)pthread_join(submitters[i].thread, NULL);
    }
}

/* Returns how many jobs were accepted; each of them was run or dropped, and no other. */
static uint32_t assert_each_accepted_job_was_finished_once(struct crowd *crowd)
{
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < SUBMITTERS * JOBS_PER_THREAD; i++) {
        struct crowd_job *job = &crowd->jobs[i / JOBS_PER_THREAD][i % JOBS_PER_THREAD];
        assert_int_equal(load_relaxed(&job->runs) + load_relaxed(&job->drops), job->accepted);
        accepted += job->accepted;
    }
    assert_int_equal(load_relaxed(&crowd->errors), 0);
    assert_int_equal(load_relaxed(&crowd->too_many), 0);
    return accepted;
}

/* Short idle times make threads end while jobs are on their way to them. */
static const struct blocking_pool_limits crowd_limits[] = {
    {.threads = 3, .queue = 5, .idle_ns = 0},      {.threads = 2, .queue = 0, .idle_ns = 1000},
    {.threads = 1, .queue = 1, .idle_ns = 20000},  {.threads = 4, .queue = 0, .idle_ns = FOR_EVER},
    {.threads = 8, .queue = 2, .idle_ns = 100000},
};

static bool await_finished(struct crowd *crowd, uint32_t count)
{
    const uint64_t deadline = monotonic_deadline(HANG_NS);
    while (load_relaxed(&crowd->finished) < count && monotonic_ns() < deadline) {
        (void)sched_yield();
    }
    return load_relaxed(&crowd->finished) >= count;
}

static struct crowd *make_crowd(struct rig *rig, const struct blocking_pool_limits *limits)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    crowd->pool = &rig->pool;
    crowd->threads = limits->threads;
    make_pool(rig, limits);
    return crowd;
}

static void free_crowd(struct rig *rig, struct crowd *crowd)
{
    blocking_pool_deinit(&rig->pool);
    rig->has_pool = false;
    free(crowd);
}

static void jobs_of_many_submitters_are_all_run_once_within_the_limit(void **state)
{
    struct rig *rig = *state;
    const uint32_t all = SUBMITTERS * JOBS_PER_THREAD;
    for (size_t i = 0; i < LENGTH(crowd_limits); i++) {
        struct crowd *crowd = make_crowd(rig, &crowd_limits[i]);
        struct submitter submitters[SUBMITTERS];
        start_submitters(crowd, submitters);
        join_submitters(submitters);
        assert_true(await_finished(crowd, all));
        assert_true(stop(rig));
        assert_int_equal(assert_each_accepted_job_was_finished_once(crowd), all);
        assert_int_equal(load_relaxed(&crowd->finished), all);
        free_crowd(rig, crowd);
    }
}

static void stop_in_the_middle_of_a_burst_runs_or_drops_each_accepted_job_once(void **state)
{
    struct rig *rig = *state;
    for (uint32_t round = 0; round < 40; round++) {
        struct crowd *crowd = make_crowd(rig, &crowd_limits[round % LENGTH(crowd_limits)]);
        struct submitter submitters[SUBMITTERS];
        start_submitters(crowd, submitters);
        const bool finished_some = await_finished(crowd, round * 3);
        const bool stopped = stop(rig);
        join_submitters(submitters);
        assert_true(finished_some);
        assert_true(stopped);
        assert_true(assert_each_accepted_job_was_finished_once(crowd) >= round * 3);
        free_crowd(rig, crowd);
    }
}

#define SCRATCH_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(pool_new_has_no_threads_and_no_memory),
        SCRATCH_TEST(pool_never_used_can_be_deinitialized_without_stop),
        SCRATCH_TEST(pool_never_used_stops_at_once),
        SCRATCH_TEST(pool_with_room_for_no_thread_is_refused),
        SCRATCH_TEST(submit_runs_the_job_once_on_a_thread_of_the_pool),
        SCRATCH_TEST(thread_is_named_after_the_pool_in_15_characters),
        SCRATCH_TEST(thread_blocks_all_signals_but_its_own_faults_and_profiling),
        SCRATCH_TEST(submit_leaves_the_signals_of_the_caller_alone),
        cmocka_unit_test(limits_of_a_burst_are_exact),
        SCRATCH_TEST(job_that_returns_makes_room_for_exactly_one_more),
        SCRATCH_TEST(limits_of_a_burst_on_idle_threads_are_exact),
        SCRATCH_TEST(pool_without_queue_hands_over_to_an_idle_thread),
        SCRATCH_TEST(queued_jobs_begin_in_the_order_of_submission),
        SCRATCH_TEST(thread_that_became_idle_last_gets_the_next_job),
        SCRATCH_TEST(job_may_free_itself_and_submit_another),
        SCRATCH_TEST(job_may_free_itself_when_it_is_dropped),
        SCRATCH_TEST(idle_thread_ends_and_makes_room_for_another),
        SCRATCH_TEST(idle_threads_end_one_by_one_from_anywhere_in_the_list),
        SCRATCH_TEST(thread_without_idle_time_ends_when_the_queue_is_empty),
        SCRATCH_TEST(submit_joins_threads_that_have_ended),
        SCRATCH_TEST(submit_does_not_wait_for_a_thread_on_its_way_out),
        SCRATCH_TEST(stop_waits_for_a_thread_on_its_way_out),
        SCRATCH_TEST(job_for_a_thread_whose_idle_time_is_over_is_not_lost),
        SCRATCH_TEST(submit_without_any_thread_reports_that_none_can_be_made),
        SCRATCH_TEST(submit_without_any_memory_reports_it),
        SCRATCH_TEST(job_waits_for_an_existing_thread_if_no_other_can_be_made),
        SCRATCH_TEST(job_waits_for_an_existing_thread_if_there_is_no_memory_for_another),
        SCRATCH_TEST(thread_made_after_a_failure_begins_with_the_oldest_job),
        SCRATCH_TEST(stop_wakes_and_joins_idle_threads),
        SCRATCH_TEST(submit_after_stop_is_refused),
        SCRATCH_TEST(stop_drops_what_is_queued_in_order_and_not_what_runs),
        SCRATCH_TEST(drop_is_called_without_the_lock),
        SCRATCH_TEST(stop_drops_jobs_whose_thread_has_not_begun),
        SCRATCH_TEST(stop_gives_up_at_its_deadline_and_can_be_called_again),
        SCRATCH_TEST(stop_without_deadline_waits_for_the_last_job_to_return),
        SCRATCH_TEST(deinit_of_a_pool_with_threads_is_refused),
        SCRATCH_TEST(jobs_of_many_submitters_are_all_run_once_within_the_limit),
        SCRATCH_TEST(stop_in_the_middle_of_a_burst_runs_or_drops_each_accepted_job_once),
    };
    return cmocka_run_group_tests_name("blocking.pool", tests, NULL, NULL);
}
