/* SPDX-License-Identifier: MIT */
#include "blocking/pool.h"

#include <skua/error.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/monotonic.h"
#include "base/mutex.h"

struct blocking_thread {
    struct blocking_pool *pool;
    struct blocking_thread *next; /* among the idle or the ended ones */
    struct blocking_job *job;     /* assigned and not begun */
    pthread_cond_t woken;         /* an idle thread waits here: a job is assigned, or stop */
    pthread_t handle;
};

void blocking_pool_init(struct blocking_pool *pool, const char *name,
                        const struct blocking_pool_limits *limits,
                        const struct allocator *allocator)
{
    SKUA_ASSERT(limits->threads > 0);
    *pool = (struct blocking_pool){.limits = *limits, .allocator = allocator};
    (void)snprintf(pool->name, sizeof pool->name, "skua-%s", name);
    mutex_init(&pool->lock);
    condition_init(&pool->thread_ended);
}

/* Whether there is a thread that is not joined. */
static bool has_threads_locked(const struct blocking_pool *pool)
{
    return pool->counts.threads > 0 || pool->ended != NULL;
}

void blocking_pool_deinit(struct blocking_pool *pool)
{
    SKUA_ASSERT(!has_threads_locked(pool));
    (void)pthread_cond_destroy(&pool->thread_ended);
    mutex_deinit(&pool->lock);
}

struct blocking_pool_counts blocking_pool_counts(struct blocking_pool *pool)
{
    mutex_lock(&pool->lock);
    const struct blocking_pool_counts counts = pool->counts;
    mutex_unlock(&pool->lock);
    return counts;
}

/* ---- the queue ---- */

static void push_job_locked(struct blocking_pool *pool, struct blocking_job *job)
{
    job->next = NULL;
    if (pool->first == NULL) {
        pool->first = job;
    } else {
        pool->last->next = job;
    }
    pool->last = job;
    pool->counts.queued++;
}

static struct blocking_job *pop_job_locked(struct blocking_pool *pool)
{
    struct blocking_job *job = pool->first;
    pool->first = job->next;
    pool->counts.queued--;
    return job;
}

/* Takes the jobs that can be dropped, oldest first; the others stay. */
static struct blocking_job *take_droppable_jobs_locked(struct blocking_pool *pool)
{
    struct blocking_job *jobs = pool->first;
    struct blocking_job *taken = NULL;
    struct blocking_job **end = &taken;
    pool->first = NULL;
    pool->counts.queued = 0;
    while (jobs != NULL) {
        struct blocking_job *job = jobs;
        jobs = job->next;
        if (job->drop == NULL) {
            push_job_locked(pool, job);
        } else {
            *end = job;
            end = &job->next;
        }
    }
    *end = NULL;
    return taken;
}

static void drop_jobs(struct blocking_job *jobs)
{
    while (jobs != NULL) {
        struct blocking_job *job = jobs;
        jobs = job->next; /* drop may free it */
        job->drop(job);
    }
}

/* ---- the life of a thread: the lock is held except while a job runs ---- */

static void push_idle_locked(struct blocking_pool *pool, struct blocking_thread *thread)
{
    thread->next = pool->idle;
    pool->idle = thread;
    pool->counts.idle++;
}

static struct blocking_thread *pop_idle_locked(struct blocking_pool *pool)
{
    struct blocking_thread *thread = pool->idle;
    pool->idle = thread->next;
    pool->counts.idle--;
    return thread;
}

static void leave_idle_locked(struct blocking_pool *pool, struct blocking_thread *thread)
{
    struct blocking_thread **link = &pool->idle;
    while (*link != thread) {
        link = &(*link)->next;
    }
    *link = thread->next;
    pool->counts.idle--;
}

/* Its job has returned: takes the next, or is idle. */
static void become_free_locked(struct blocking_pool *pool, struct blocking_thread *self)
{
    if (pool->first != NULL) {
        self->job = pop_job_locked(pool);
    } else {
        push_idle_locked(pool, self);
    }
}

/* An idle thread waits for a job; false if none came in time, or if the pool stops. */
static bool wait_for_job_locked(struct blocking_pool *pool, struct blocking_thread *self)
{
    const uint64_t deadline = monotonic_deadline(pool->limits.idle_ns);
    bool in_time = pool->limits.idle_ns > 0;
    while (self->job == NULL && !pool->stopping && in_time) {
        in_time = condition_wait_until(&self->woken, &pool->lock, deadline);
    }
    if (self->job != NULL) { /* even if it came at the last moment */
        return true;         /* and the submitter took this thread off the idle list */
    }
    leave_idle_locked(pool, self);
    return false;
}

static void run_assigned_job_locked(struct blocking_pool *pool, struct blocking_thread *self)
{
    struct blocking_job *job = self->job;
    const bool drops = pool->stopping && job->drop != NULL;
    void (*const function)(struct blocking_job *) = drops ? job->drop : job->run;
    void (*const finish)(struct blocking_job *) = drops ? NULL : job->finish;
    self->job = NULL;
    mutex_unlock(&pool->lock);
    function(job);
    mutex_lock(&pool->lock);
    become_free_locked(pool, self);
    if (finish != NULL) {
        pool->finishing++;
        mutex_unlock(&pool->lock);
        finish(job);
        mutex_lock(&pool->lock);
        pool->finishing--;
    }
}

static void *serve_jobs(void *arg)
{
    struct blocking_thread *self = arg;
    struct blocking_pool *pool = self->pool;
    mutex_lock(&pool->lock); /* when it is free, the first job has been assigned */
    do {
        run_assigned_job_locked(pool, self);
    } while (self->job != NULL || wait_for_job_locked(pool, self));
    pool->counts.threads--;
    self->next = pool->ended;
    pool->ended = self;
    if (pool->stopping) {
        (void)pthread_cond_signal(&pool->thread_ended);
    }
    mutex_unlock(&pool->lock);
    return NULL;
}

static void free_thread(struct blocking_pool *pool, struct blocking_thread *thread)
{
    (void)pthread_cond_destroy(&thread->woken);
    allocator_free(pool->allocator, thread, sizeof *thread, _Alignof(struct blocking_thread));
}

/* Creates a thread, which will wait for the lock and then run its job. */
static int create_thread_locked(struct blocking_pool *pool, struct blocking_thread **made)
{
    struct blocking_thread *thread =
        allocator_alloc(pool->allocator, sizeof *thread, _Alignof(struct blocking_thread));
    if (thread == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    *thread = (struct blocking_thread){.pool = pool};
    condition_init(&thread->woken);
    const int error = thread_create(&thread->handle, pool->name, serve_jobs, thread);
    if (error != 0) {
        free_thread(pool, thread);
        return error;
    }
    pool->counts.threads++;
    *made = thread;
    return 0;
}

/* ---- submitting ---- */

/* Joins threads that have exited, without waiting for those that are still exiting: they may be in
 * destructors of thread-specific data, which are not the library's. */
static void join_exited_threads_locked(struct blocking_pool *pool)
{
    struct blocking_thread **link = &pool->ended;
    while (*link != NULL) {
        struct blocking_thread *thread = *link;
        if (pthread_tryjoin_np(thread->handle, NULL) == 0) {
            *link = thread->next;
            free_thread(pool, thread);
        } else {
            link = &thread->next;
        }
    }
}

/* There is room for one more thread. It takes the oldest job, which is not the new one if an
 * earlier attempt to create a thread has failed. */
static int start_thread_for_locked(struct blocking_pool *pool, struct blocking_job *job)
{
    struct blocking_thread *thread;
    const int error = create_thread_locked(pool, &thread);
    if (error == 0) {
        push_job_locked(pool, job);
        thread->job = pop_job_locked(pool);
    }
    return error;
}

static int accept_job_locked(struct blocking_pool *pool, struct blocking_job *job)
{
    if (pool->stopping) {
        return SKUA_E_STOPPED;
    }
    join_exited_threads_locked(pool);
    if (pool->idle != NULL) {
        struct blocking_thread *thread = pop_idle_locked(pool);
        thread->job = job;
        /* With the lock held: without it the thread could have ended and been freed by now. */
        (void)pthread_cond_signal(&thread->woken);
        return 0;
    }
    if (pool->counts.threads < pool->limits.threads) {
        const int error = start_thread_for_locked(pool, job);
        if (error == 0 || pool->counts.threads == 0) {
            return error;
        }
    }
    if (pool->counts.queued >= pool->limits.queue) {
        return SKUA_E_POOL_FULL;
    }
    push_job_locked(pool, job);
    return 0;
}

int blocking_pool_submit(struct blocking_pool *pool, struct blocking_job *job)
{
    mutex_lock(&pool->lock);
    const int error = accept_job_locked(pool, job);
    mutex_unlock(&pool->lock);
    return error;
}

/* ---- stopping ---- */

static void wake_idle_threads_locked(struct blocking_pool *pool)
{
    for (struct blocking_thread *thread = pool->idle; thread != NULL; thread = thread->next) {
        (void)pthread_cond_signal(&thread->woken);
    }
}

/* Joins one that has ended. Not under the lock: it may still be in destructors, see above. */
static void join_one_locked(struct blocking_pool *pool)
{
    struct blocking_thread *thread = pool->ended;
    pool->ended = thread->next;
    mutex_unlock(&pool->lock);
    (void)pthread_join(thread->handle, NULL);
    mutex_lock(&pool->lock);
    free_thread(pool, thread);
}

/* Whether a thread has a job. The others are about to end, however slow the machine is. */
static bool is_busy_locked(const struct blocking_pool *pool)
{
    return pool->counts.threads > pool->counts.idle || pool->finishing > 0;
}

bool blocking_pool_stop(struct blocking_pool *pool, uint64_t deadline_ns)
{
    mutex_lock(&pool->lock);
    pool->stopping = true;
    struct blocking_job *queued = take_droppable_jobs_locked(pool);
    wake_idle_threads_locked(pool);
    mutex_unlock(&pool->lock);
    drop_jobs(queued);

    mutex_lock(&pool->lock);
    bool in_time = true;
    while (has_threads_locked(pool) && (pool->ended != NULL || in_time || !is_busy_locked(pool))) {
        if (pool->ended != NULL) {
            join_one_locked(pool);
        } else {
            const uint64_t until = is_busy_locked(pool) ? deadline_ns : UINT64_MAX;
            in_time = condition_wait_until(&pool->thread_ended, &pool->lock, until);
        }
    }
    const bool all_gone = !has_threads_locked(pool);
    mutex_unlock(&pool->lock);
    return all_gone;
}
