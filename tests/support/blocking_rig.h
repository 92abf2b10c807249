/* SPDX-License-Identifier: MIT */
/* A pool of threads for blocking functions, and tasks to give it that wait until they are told to
 * return:
 *
 *   open_pool(.threads = 1, .queue = 1);
 *   submit_tasks(0, 2);
 *   await_begun(1);
 *   ...
 *   release_task(0);
 *   await_begun(2);
 *
 * Every wait fails the test if what it is for never comes. */
#ifndef SKUA_TESTS_BLOCKING_RIG_H
#define SKUA_TESTS_BLOCKING_RIG_H

#include <pthread.h>

#include "blocking/pool.h"
#include "test_memory.h"

#define TASKS       32
#define MILLISECOND UINT64_C(1000000)
#define FOR_EVER    UINT64_MAX

struct task {
    struct blocking_job job;
    /* Under the lock of the jobs. */
    bool is_released; /* may return */
    uint32_t runs;
    uint32_t drops;
    pthread_t thread; /* that ran or dropped it */
};

struct jobs {
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

/* Those of the current test. */
extern struct jobs *jobs;

/* The memory, the tasks, and no pool yet. When the test ends, all tasks are released, and the pool,
 * if there is one, has to stop. */
void open_jobs(void);

/* A pool; there is one at a time. */
void make_pool(const char *name, struct blocking_pool_limits limits);

/* Both, with the limits that follow. */
#define open_pool(...) open_pool_with((struct blocking_pool_limits){__VA_ARGS__})
void open_pool_with(struct blocking_pool_limits limits);

/* Waits for all tasks to return and joins their threads. */
void stop_pool(void);

/* Does not wait, and says whether there is nothing to wait for. */
bool stop_pool_at_once(void);

/* Stops it and takes it apart. */
void close_pool(void);

/* Has pthread_create fail, until it is allowed again or the test ends. */
void forbid_threads(void);
void allow_threads(void);

/* ---- tasks ---- */

/* What the pool says. */
int try_submit(uint32_t task);

/* So many, from `first` on, which it has to accept. */
void submit_tasks(uint32_t first, uint32_t count);

void release_task(uint32_t task);
void release_all(void);

/* Of a task: for jobs that do more. */
void run_task(struct blocking_job *job);
void drop_task(struct blocking_job *job);

/* A job has begun that is not one of the tasks. */
void count_begun(void);

/* ---- waiting and looking ---- */

void await_begun(uint32_t count);
void await_returned(uint32_t count);

/* Until the pool has so many threads, of which so many are idle. */
void await_threads(uint32_t threads, uint32_t idle);

void assert_counts(uint32_t threads, uint32_t idle, uint32_t queued);

/* How often the task was run and dropped. */
void assert_task(uint32_t task, uint32_t runs, uint32_t drops);

void assert_same_thread(uint32_t task, uint32_t other);

#endif
