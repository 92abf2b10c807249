/* SPDX-License-Identifier: MIT */
#include "blocking_support.h"

#include <stdio.h>

#include "runtime/runtime.h"

static struct job *all_jobs; /* of the test with this number */
static uint64_t jobs_number;

/* ---- jobs ---- */

static void check_jobs(void)
{
    world_close(); /* all calls are over then */
    for (struct job *job = all_jobs; job != NULL; job = job->next) {
        assert_int_equal(job->ended, job->begun);
        assert_int_equal(job->input_drops, job->asked);
        assert_int_equal(job->result.drops, job->gives ? job->begun : 0);
    }
}

struct job *job_new(struct job behaviour)
{
    if (jobs_number != test_number) {
        jobs_number = test_number;
        all_jobs = NULL;
        test_at_end(check_jobs);
    }
    struct job *job = test_alloc(sizeof *job);
    job->waits = behaviour.waits;
    job->takes = behaviour.takes;
    job->gives = behaviour.gives;
    job->returns = behaviour.returns;
    job->result.value = all_jobs != NULL ? all_jobs->result.value + 1 : 1;
    tally_init(&job->entered);
    tally_init(&job->released);
    job->next = all_jobs;
    all_jobs = job;
    return job;
}

void job_await_begun(struct job *job)
{
    tally_wait(&job->entered, 1);
}

void job_release(struct job *job)
{
    tally_add(&job->released, 1);
}

struct seen job_end(uint64_t tag, const struct job *job, int error)
{
    struct seen end = failure(tag, error);
    if (job->gives) {
        end.payload_type = JOB_RESULT;
        end.value = job->result.value;
    }
    return end;
}

void job_run(struct job *job, const char *pool, struct seen end)
{
    struct actor *actor = actor_new(
        ACTS(runs_job(end.tag, pool, job), expects(end), finds_input_dropped(job), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, end);
}

static int work(skua_payload *input, skua_payload *result)
{
    struct job *job = input->as.owned.data;
    if (atomic_fetch_add(&job->begun, 1) == 0) {
        (void)pthread_getname_np(pthread_self(), job->thread, sizeof job->thread);
    }
    tally_add(&job->entered, 1);
    if (job->waits) {
        tally_wait(&job->released, 1);
    }
    if (job->takes) {
        skua_payload taken = skua_payload_take(input);
        skua_payload_drop(&taken);
    }
    if (job->gives) {
        *result = tracked_payload(JOB_RESULT, &job->result);
    }
    (void)atomic_fetch_add(&job->ended, 1);
    return job->returns;
}

static void drop_input(void *data, size_t size)
{
    struct job *job = data;
    (void)size;
    (void)atomic_fetch_add(&job->input_drops, 1);
}

/* ---- acts ---- */

struct call {
    const char *pool;
    skua_blocking_fn *function;
    struct job *job; /* or null: the input is the act's number */
};

static skua_payload input_of(const struct act *act)
{
    struct job *job = ((const struct call *)act->arg)->job;
    if (job == NULL) {
        return skua_payload_u64(0, act->number);
    }
    (void)atomic_fetch_add(&job->asked, 1);
    return skua_payload_pointer(0, job, drop_input);
}

static int run_on_pool(struct turn *turn, const struct act *act)
{
    const struct call *call = act->arg;
    return skua_yield_blocking(turn->ctx, act->tag, act_pool(turn, call->pool), call->function,
                               input_of(act), act_timeout(turn, act));
}

static struct act make_call(uint64_t tag, uint64_t number, struct call call)
{
    struct call *kept = test_alloc(sizeof *kept);
    *kept = call;
    return (struct act){.perform = run_on_pool, .tag = tag, .number = number, .arg = kept};
}

struct act runs_job(uint64_t tag, const char *pool, struct job *job)
{
    return make_call(tag, 0, (struct call){.pool = pool, .function = work, .job = job});
}

struct act runs(uint64_t tag, const char *pool, skua_blocking_fn *function, uint64_t number)
{
    return make_call(tag, number, (struct call){.pool = pool, .function = function});
}

static int find_input_dropped(struct turn *turn, const struct act *act)
{
    const struct job *job = act->arg;
    if (atomic_load(&job->input_drops) != 1) {
        actor_surprise(turn->actor, "the input was dropped %u times", job->input_drops);
    }
    return 0;
}

struct act finds_input_dropped(struct job *job)
{
    return does(find_input_dropped, job);
}

static int begin_blocking(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_blocking_begin(turn->ctx);
}

struct act begins_blocking(void)
{
    return does(begin_blocking, NULL);
}

static int end_blocking(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_blocking_end(turn->ctx);
}

struct act ends_blocking(void)
{
    return does(end_blocking, NULL);
}

/* ---- pools ---- */

void pool_register(skua_blocking_pool pool)
{
    assert_int_equal(skua_blocking_register(world_runtime(), &pool, NULL), 0);
}

struct blocking_pool_counts pool_counts(const char *name)
{
    struct blocking *blocking = &world_runtime()->blocking;
    for (uint32_t i = 0; i < blocking->count; i++) {
        if (strcmp(blocking->pools[i].name, name != NULL ? name : SKUA_BLOCKING_DEFAULT) == 0) {
            return blocking_pool_counts(&blocking->pools[i].pool);
        }
    }
    abort();
}
