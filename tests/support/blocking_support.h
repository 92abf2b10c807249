/* SPDX-License-Identifier: MIT */
/* Blocking calls for tests: pools of the current world, and jobs for actors to run on them.
 *
 *   world_create((skua_runtime_config){0});
 *   pool_register((skua_blocking_pool){.name = "disk", .thread_limit = 1});
 *   world_start();
 *   struct job *job = job_new((struct job){.waits = true, .gives = true});
 *   struct actor *actor = actor_start(ACTS(runs_job(1, "disk", job)));
 *   job_await_begun(job);
 *   job_release(job);
 *   actor_await_seen(actor, 1);
 *   assert_saw(actor, job_end(1, job, 0));
 *
 * When the test ends, every job that has begun must have ended, and every input and every result
 * must have been dropped exactly once. */
#ifndef SKUA_TESTS_BLOCKING_SUPPORT_H
#define SKUA_TESTS_BLOCKING_SUPPORT_H

#include "actor.h"
#include "blocking/pool.h"

/* The type of results. */
#define JOB_RESULT UINT32_C(91)

/* A function that blocks as long as the test likes. Several calls may run the same job. */
struct job {
    /* For job_new. */
    bool waits; /* until it is released */
    bool takes; /* its input, and drops it */
    bool gives; /* a result, which is the job's own number */
    int returns;

    atomic_uint asked; /* calls whose input it was */
    atomic_uint begun;
    atomic_uint ended;
    atomic_uint input_drops;
    struct tracked result;
    char thread[16]; /* the name of the thread that ran it first */
    struct tally entered;
    struct tally released;
    struct job *next;
};

/* A job that behaves so; lives until the end of the test. */
struct job *job_new(struct job behaviour);

void job_await_begun(struct job *job);

/* Lets it go on, in all calls. */
void job_release(struct job *job);

/* What a process sees of a call that has run it and whose function has returned `error`. Of one
 * that was not carried out, or that it has given up, it sees a failure(). */
struct seen job_end(uint64_t tag, const struct job *job, int error);

/* Runs it in a process of its own, which sees this end of it, and sees it when the input is
 * gone. */
void job_run(struct job *job, const char *pool, struct seen end);

/* ---- acts ---- */

/* Calls a job, or a function with a number as its input, on a pool; null: the default one. */
struct act runs_job(uint64_t tag, const char *pool, struct job *job);
struct act runs(uint64_t tag, const char *pool, skua_blocking_fn *function, uint64_t number);

/* By now the input of the job's only call must have been dropped. */
struct act finds_input_dropped(struct job *job);

/* The step is about to block, and is no longer; blocks() does both. */
struct act begins_blocking(void);
struct act ends_blocking(void);

/* ---- pools ---- */

/* After world_create. */
void pool_register(skua_blocking_pool pool);

/* Of a pool that exists; null: the default one. Any thread. */
struct blocking_pool_counts pool_counts(const char *name);

#endif
