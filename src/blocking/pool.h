/* SPDX-License-Identifier: MIT */
/* Threads for functions that block in the kernel, so that workers never have to. The pool knows
 * nothing of processes.
 *
 * A job is in one of three places:
 *   assigned   in the `job` field of a thread, which runs it as soon as it gets a CPU;
 *   queued     in the queue, because every thread has a job and no more can be created;
 *   finished   run or dropped; the pool no longer knows it.
 * A job is assigned by the submitter, to the thread that became idle last or to a new one, or by a
 * thread to itself, from the queue, when its job has returned. All that happens under one lock, so
 * the following holds whenever the lock is free:
 *   BLOCKING-1: there is an idle thread only if the queue is empty;
 *   BLOCKING-2: jobs are queued only while there is a thread, which will take them;
 *   BLOCKING-3: every thread that is neither idle nor ended has a job or is about to return from
 *               one. So exactly `threads` jobs run and exactly `queue` wait, however slowly the
 *               threads wake up, and a signal cannot reach the wrong thread or none.
 *
 * A thread is free before it tells anybody that its job is done: it takes the next job or joins the
 * idle ones, and only then calls `finish`. So whoever has heard of the end of a job can submit
 * another in its place, also to a pool without a queue. A job that is assigned to the thread in
 * that moment waits for `finish` to return, which takes less time than waking another thread.
 *
 * Threads are created under the lock, too, so other submitters sometimes wait for that. Without it,
 * jobs could be queued behind a thread that then cannot be created, and nobody would run them.
 *
 * A thread that has ended is joined by a later submit or by stop: none is detached, because a
 * detached thread may still be leaving the library's code when that is unloaded. */
#ifndef SKUA_BLOCKING_POOL_H
#define SKUA_BLOCKING_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/allocator.h"
#include "base/compiler.h"
#include "base/thread.h"

/* Embedded in a struct of the caller. For each job that was accepted either `run` is called, and
 * `finish` after it, or `drop`; each once, without any lock. The last of them may free the job. */
struct blocking_job {
    struct blocking_job *next; /* the pool's */
    /* On a thread of the pool. May take as long as it likes. */
    void (*run)(struct blocking_job *job);
    /* On the same thread, which is free for another job by then. Must not block. Null: nothing. */
    void (*finish)(struct blocking_job *job);
    /* Instead of both, when the pool is stopped first: on a thread of the pool, or on the one that
     * stops it. Must not block. Null: the job is run even so. */
    void (*drop)(struct blocking_job *job);
};

/* What a thread of the pool does with a job, for whoever has no threads. */
static inline void blocking_job_carry_out(struct blocking_job *job)
{
    void (*const finish)(struct blocking_job *) = job->finish; /* if null, run may free it */
    job->run(job);
    if (finish != NULL) {
        finish(job);
    }
}

struct blocking_pool_limits {
    uint32_t threads; /* at most; not 0 */
    uint32_t queue;   /* jobs that wait while all threads are busy, at most; 0: none may wait */
    uint64_t idle_ns; /* a thread without a job ends after this time; UINT64_MAX: never */
};

struct blocking_pool_counts {
    uint32_t threads; /* that have a job or could get one: idle ones included, ended ones not */
    uint32_t idle;
    uint32_t queued;
};

struct blocking_thread;

struct blocking_pool {
    /* Written by init only. */
    struct blocking_pool_limits limits;
    const struct allocator *allocator;
    char name[THREAD_NAME_SIZE];

    /* All fields below are under lock. */
    pthread_mutex_t lock;
    pthread_cond_t thread_ended; /* for stop; signalled only while stopping */
    struct blocking_pool_counts counts;
    uint32_t finishing;            /* threads that are free but still in `finish` */
    struct blocking_thread *idle;  /* the last to become idle is the first to get a job */
    struct blocking_thread *ended; /* not joined yet */
    struct blocking_job *first;    /* of the queue */
    struct blocking_job *last;     /* valid if there is a first */
    bool stopping;
};

/* Creates no thread yet. The threads will be called "skua-" and `name`, cut to 15 characters.
 * Borrows: name, limits.      Keeps until deinit: allocator. */
void blocking_pool_init(struct blocking_pool *pool, const char *name,
                        const struct blocking_pool_limits *limits,
                        const struct allocator *allocator);

/* After a stop that returned true, or if nothing was ever submitted; no other call may be under way
 * or follow. */
void blocking_pool_deinit(struct blocking_pool *pool);

/* Jobs are assigned in the order in which they were submitted. If no thread can be created but
 * others exist, the job waits for one of those.
 * Takes:   job, if it returns 0.
 * Threads: any, those of the pool included.
 * Blocks:  while a thread is created, at most.
 * Returns: 0; SKUA_E_POOL_FULL: all threads are busy, and the queue is full;
 *          SKUA_E_THREAD, SKUA_E_NO_MEMORY: there is no thread and none could be created;
 *          SKUA_E_STOPPED. */
NODISCARD int blocking_pool_submit(struct blocking_pool *pool, struct blocking_job *job);

/* From now on no job is accepted and none is begun that can be dropped: those that have not begun
 * are. The others are run. Waits until all threads have ended and are joined, or until the
 * monotonic clock shows deadline_ns (UINT64_MAX: never) and a job is still running. A deadline in
 * the past only asks.
 * Threads: any but those of the pool, one after the other.
 * Returns: whether all threads are gone. If so, nothing but a later call will touch the pool. If
 *          not, some job has not returned yet; call again to go on waiting. */
NODISCARD bool blocking_pool_stop(struct blocking_pool *pool, uint64_t deadline_ns);

/* A snapshot. Threads: any. */
struct blocking_pool_counts blocking_pool_counts(struct blocking_pool *pool);

#endif
