/* SPDX-License-Identifier: MIT */
/* Calls that block: functions on the threads of a pool, with its limits and whoever owns the
 * payloads; and steps that say that they block, for which spare workers step in. What blocks does
 * so until the test permits it to go on. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "dispatch/reserved.h"
#include "runtime/runtime.h"
#include "runtime_support.h"
#include "sched/spare.h"

/* Long enough for a slow machine; ends a hang. */
#define HANG_NS (120 * SKUA_SECOND)

/* ---- a function that blocks ---- */

/* What the function does, and what has become of it. Outlives the runtime. It is the input: its
 * drops are counted, and those of the result. */
struct job {
    bool waits; /* until it is released */
    bool takes; /* the input, and drops it itself */
    bool gives; /* a result */
    int returns;
    atomic_uint begun;
    atomic_uint ended;
    atomic_uint input_drops;
    struct tracked result;
    struct tally entered;
    struct tally released;
    bool asks_for_name;
    char thread[32]; /* the name of the thread it ran on, if it asks for it */
};

static void job_init(struct job *job)
{
    *job = (struct job){0};
    tally_init(&job->entered);
    tally_init(&job->released);
}

static void drop_input(void *data, size_t size)
{
    struct job *job = data;
    (void)size;
    (void)atomic_fetch_add(&job->input_drops, 1);
}

static skua_payload job_payload(struct job *job)
{
    return skua_payload_pointer(0, job, drop_input);
}

static int work(skua_payload *input, skua_payload *result)
{
    struct job *job = input->as.owned.data;
    (void)atomic_fetch_add(&job->begun, 1);
    if (job->asks_for_name) {
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
        *result = tracked_payload(3, &job->result);
    }
    (void)atomic_fetch_add(&job->ended, 1);
    return job->returns;
}

static void job_release(struct job *job)
{
    tally_add(&job->released, 1);
}

/* Its function has run, or not; nothing was lost or dropped twice. */
static void assert_job(struct job *job, unsigned runs)
{
    assert_int_equal(atomic_load(&job->begun), runs);
    assert_int_equal(atomic_load(&job->ended), runs);
    assert_int_equal(atomic_load(&job->input_drops), 1);
    assert_int_equal(atomic_load(&job->result.drops), job->gives ? runs : 0);
}

/* ---- a process that calls it ---- */

#define TAG_CALL         UINT64_C(55)
#define REASON_TAKE_BACK (SKUA_E_USER - 1)

/* Asks for the function in its first step and notes its end; ends when the runtime stops. */
struct caller {
    struct job *job;
    const char *pool;
    uint64_t timeout_ns; /* or 0: none; 1: it has passed when the step returns */
    int yield_error;
    struct tally ended;
    atomic_int error;
    atomic_bool has_result;    /* the completion brought the job's result, and only that */
    atomic_bool input_is_gone; /* when the completion came */
    skua_pid pid;
};

static void caller_init(struct caller *caller, struct job *job, const char *pool)
{
    *caller = (struct caller){.job = job, .pool = pool, .yield_error = 1};
    tally_init(&caller->ended);
    atomic_init(&caller->error, 1);
}

static int call(struct caller *caller, skua_context *ctx, skua_step *out)
{
    char name[64]; /* nobody needs it after this */
    (void)snprintf(name, sizeof name, "%s", caller->pool != NULL ? caller->pool : "");
    caller->yield_error = skua_step_blocking(out, TAG_CALL, caller->pool != NULL ? name : NULL,
                                             work, job_payload(caller->job));
    (void)memset(name, '?', sizeof name);
    if (caller->yield_error == 0 && caller->timeout_ns > 0) {
        caller->yield_error = skua_step_deadline(
            out, caller->timeout_ns == 1 ? 1 : skua_context_deadline(ctx, caller->timeout_ns));
    }
    return caller->yield_error;
}

static void note_end(struct caller *caller, const skua_event *event)
{
    const struct tracked *result = &caller->job->result;
    atomic_store(&caller->error, event->error);
    atomic_store(&caller->has_result,
                 event->tag == TAG_CALL && skua_payload_data(&event->payload) == result);
    atomic_store(&caller->input_is_gone, atomic_load(&caller->job->input_drops) == 1);
    tally_add(&caller->ended, 1);
}

static int caller_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct caller *caller = api_world(self);
    if (count == 0) {
        return call(caller, ctx, out);
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_COMPLETION) {
            note_end(caller, &events[i]);
        } else if (events[i].error == REASON_TAKE_BACK) {
            return skua_step_cancel(out, TAG_CALL);
        } else {
            skua_step_done(out, skua_payload_empty(0));
        }
    }
    return 0;
}

static const skua_process_type caller_type = {
    .name = "caller", .state_size = sizeof(void *), .init = api_init_world, .step = caller_step};

static void caller_submit(struct caller *caller, const struct api *api)
{
    caller->pid = api_submit(api, &caller_type, caller);
}

/* Returns when the function has been handed to its pool, where it stays. */
static void caller_start(struct caller *caller, const struct api *api)
{
    caller_submit(caller, api);
    api_wait_state(api, caller->pid, SKUA_PROCESS_BLOCKED);
}

static void expect_end(struct caller *caller, int error)
{
    tally_wait(&caller->ended, 1);
    assert_int_equal(tally_count(&caller->ended), 1);
    assert_int_equal(atomic_load(&caller->error), error);
}

static void take_back(const struct caller *caller, const struct api *api)
{
    assert_int_equal(skua_process_cancel(api->runtime, caller->pid, REASON_TAKE_BACK), 0);
}

/* One call on its own. */
static void expect_call(const struct api *api, struct job *job, const char *pool, int error)
{
    struct caller caller;
    caller_init(&caller, job, pool);
    caller_submit(&caller, api);
    expect_end(&caller, error);
    assert_true(atomic_load(&caller.input_is_gone));
    assert_true(atomic_load(&caller.has_result) == (job->gives && atomic_load(&job->begun) == 1));
    assert_int_equal(skua_process_cancel(api->runtime, caller.pid, SKUA_E_STOPPED), 0);
    api_wait_end(api, caller.pid);
}

static struct blocking_pool *pool_at(const struct api *api, uint32_t number)
{
    return &api->runtime->blocking.pools[number].pool;
}

/* ---- what comes back ---- */

TEST(blocking_call_completes_with_what_the_function_returns)
{
    static const struct {
        int returned;
        int expected;
    } cases[] = {
        {0, 0},
        {SKUA_E_TIMEOUT, SKUA_E_TIMEOUT},
        {SKUA_E_USER - 7, SKUA_E_USER - 7},
        {INT32_MIN, INT32_MIN},
        {1, SKUA_E_INVALID},
        {INT32_MAX, SKUA_E_INVALID},
    };
    const uint32_t workers = test_workers();
    struct job jobs[COUNT_OF(cases)][4];
    struct api api;
    api_run(&api, workers);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (unsigned kind = 0; kind < 4; kind++) {
            struct job *job = &jobs[i][kind];
            job_init(job);
            job->returns = cases[i].returned;
            job->gives = (kind & 1) != 0;
            job->takes = (kind & 2) != 0;
            expect_call(&api, job, NULL, cases[i].expected);
        }
    }
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (unsigned kind = 0; kind < 4; kind++) {
            assert_job(&jobs[i][kind], 1);
        }
    }
}

TEST(blocking_call_runs_on_a_thread_with_the_name_of_its_pool)
{
    static const struct {
        const char *pool;
        const char *thread;
    } cases[] = {
        {NULL, "skua-default"},
        {SKUA_BLOCKING_DEFAULT, "skua-default"},
        {"disk", "skua-disk"},
        {"a name of some length", "skua-a name of "},
    };
    struct job jobs[COUNT_OF(cases)];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    for (size_t i = 2; i < COUNT_OF(cases); i++) {
        const skua_blocking_pool pool = {.name = cases[i].pool};
        assert_int_equal(skua_blocking_register(api.runtime, &pool), 0);
    }
    api_start(&api);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        job_init(&jobs[i]);
        jobs[i].asks_for_name = true;
        expect_call(&api, &jobs[i], cases[i].pool, 0);
        assert_string_equal(jobs[i].thread, cases[i].thread);
    }
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_job(&jobs[i], 1);
    }
}

TEST(blocking_call_on_an_unknown_pool_is_refused)
{
    static const char *const unknown[] = {"", "disc", "disk ", "defaul", "default2"};
    struct job jobs[COUNT_OF(unknown)];
    struct api api;
    const skua_blocking_pool pool = {.name = "disk"};
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    assert_int_equal(skua_blocking_register(api.runtime, &pool), 0);
    api_start(&api);
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        job_init(&jobs[i]);
        jobs[i].gives = true;
        expect_call(&api, &jobs[i], unknown[i], SKUA_E_UNKNOWN_POOL);
    }
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        assert_job(&jobs[i], 0);
    }
}

/* ---- bad input ---- */

#define PAYLOAD_LIMIT 100

struct misuse {
    struct tracked items[4];
    char large[PAYLOAD_LIMIT + 1];
    atomic_uint large_drops;
    int errors[4];
    skua_step *kept;
};

static struct misuse *misuse_of_large; /* a drop function has no other way */

static void drop_large(void *data, size_t size)
{
    (void)data;
    (void)atomic_fetch_add(&misuse_of_large->large_drops, size == PAYLOAD_LIMIT + 1);
}

static void call_wrongly(void *arg, skua_context *ctx, skua_step *out)
{
    struct misuse *misuse = arg;
    (void)ctx;
    misuse->errors[0] =
        skua_step_blocking(NULL, 0, NULL, work, tracked_payload(0, &misuse->items[0]));
    misuse->errors[1] =
        skua_step_blocking(out, 0, NULL, NULL, tracked_payload(0, &misuse->items[1]));
    misuse->errors[2] = skua_step_blocking(
        out, 0, NULL, work, skua_payload_owned(0, misuse->large, sizeof misuse->large, drop_large));
    misuse->kept = out;
}

TEST(blocking_call_with_bad_arguments_is_refused_and_takes_its_input)
{
    struct misuse misuse = {0};
    struct api api;
    misuse_of_large = &misuse;
    api_create(&api, (skua_runtime_config){.worker_count = 1, .payload_limit = PAYLOAD_LIMIT});
    api_start(&api);
    api_in_step(&api, call_wrongly, &misuse);
    misuse.errors[3] =
        skua_step_blocking(misuse.kept, 0, NULL, work, tracked_payload(0, &misuse.items[3]));
    assert_int_equal(misuse.errors[0], SKUA_E_INVALID);
    assert_int_equal(misuse.errors[1], SKUA_E_INVALID);
    assert_int_equal(misuse.errors[2], SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(misuse.errors[3], SKUA_E_INVALID); /* the step is over */
    assert_drops(misuse.items, 2, 1);
    assert_drops(&misuse.items[3], 1, 1);
    assert_int_equal(atomic_load(&misuse.large_drops), 1);
    api_stop(&api);
}

/* Yields the number of the command itself. */
static int forger_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct caller *caller = api_world(self);
    (void)ctx;
    if (count == 0) {
        return skua_step_yield(out, reserved_id(RESERVED_BLOCKING), TAG_CALL,
                               job_payload(caller->job));
    }
    note_end(caller, &events[0]);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type forger_type = {
    .name = "forger", .state_size = sizeof(void *), .init = api_init_world, .step = forger_step};

TEST(blocking_command_that_is_yielded_by_number_is_refused)
{
    struct job job;
    struct caller caller;
    struct api api;
    api_run(&api, 1);
    job_init(&job);
    caller_init(&caller, &job, NULL);
    (void)api_run_process(&api, &forger_type, &caller);
    expect_end(&caller, SKUA_E_INVALID);
    api_stop(&api);
    assert_job(&job, 0);
}

/* ---- the limits of a pool ---- */

#define CALLS_MAX 32

/* Calls that stay where they are until they are released. */
struct crowd {
    struct job jobs[CALLS_MAX];
    struct caller callers[CALLS_MAX];
    size_t count;
};

static struct caller *crowd_add(struct crowd *crowd, const struct api *api, const char *pool)
{
    assert_true(crowd->count < CALLS_MAX);
    struct job *job = &crowd->jobs[crowd->count];
    struct caller *caller = &crowd->callers[crowd->count++];
    job_init(job);
    job->waits = true;
    job->gives = true;
    caller_init(caller, job, pool);
    caller_submit(caller, api);
    return caller;
}

/* One that is accepted. */
static void crowd_accept(struct crowd *crowd, const struct api *api, const char *pool)
{
    const struct caller *caller = crowd_add(crowd, api, pool);
    api_wait_state(api, caller->pid, SKUA_PROCESS_BLOCKED);
}

static void crowd_release(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++) {
        job_release(&crowd->jobs[i]);
    }
}

/* `threads` and `queue` calls are accepted and not one more; then `threads` run. */
static void expect_limits(const struct api *api, uint32_t number, const char *name,
                          uint32_t threads, uint32_t queue)
{
    struct crowd crowd = {.count = 0};
    for (uint32_t i = 0; i < threads + queue; i++) {
        crowd_accept(&crowd, api, name);
    }
    for (uint32_t i = 0; i < threads; i++) {
        tally_wait(&crowd.jobs[i].entered, 1); /* the oldest ones */
    }
    const struct blocking_pool_counts counts = blocking_pool_counts(pool_at(api, number));
    assert_int_equal(counts.threads, threads);
    assert_int_equal(counts.idle, 0);
    assert_int_equal(counts.queued, queue);
    for (int i = 0; i < 3; i++) {
        struct caller *refused = crowd_add(&crowd, api, name);
        expect_end(refused, SKUA_E_POOL_FULL);
        assert_true(atomic_load(&refused->input_is_gone));
    }
    crowd_release(&crowd);
    for (uint32_t i = 0; i < crowd.count; i++) {
        const bool accepted = i < threads + queue;
        expect_end(&crowd.callers[i], accepted ? 0 : SKUA_E_POOL_FULL);
        assert_int_equal(atomic_load(&crowd.jobs[i].begun), accepted);
        assert_int_equal(skua_process_cancel(api->runtime, crowd.callers[i].pid, SKUA_E_STOPPED),
                         0);
        api_wait_end(api, crowd.callers[i].pid);
        assert_job(&crowd.jobs[i], accepted);
    }
    /* A thread whose call has ended is free a moment later; until then a pool without a queue would
     * refuse the next call. */
    while (blocking_pool_counts(pool_at(api, number)).idle < threads) {
        (void)sched_yield();
    }
}

TEST(blocking_pool_accepts_exactly_as_many_calls_as_its_limits_say)
{
    static const skua_blocking_pool pools[] = {
        {.name = "1+1", .thread_limit = 1, .queue_limit = 1},
        {.name = "1+7", .thread_limit = 1, .queue_limit = 7},
        {.name = "4+3", .thread_limit = 4, .queue_limit = 3},
        {.name = "1+0", .thread_limit = 1, .direct = true},
        {.name = "5+0", .thread_limit = 5, .queue_limit = 9, .direct = true},
    };
    const uint32_t workers = test_workers();
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = workers});
    for (size_t i = 0; i < COUNT_OF(pools); i++) {
        assert_int_equal(skua_blocking_register(api.runtime, &pools[i]), 0);
    }
    api_start(&api);
    for (int round = 0; round < 2; round++) { /* with new threads, then with idle ones */
        for (uint32_t i = 0; i < COUNT_OF(pools); i++) {
            expect_limits(&api, 1 + i, pools[i].name, pools[i].thread_limit,
                          pools[i].direct ? 0 : pools[i].queue_limit);
        }
    }
    api_stop(&api);
}

TEST(blocking_pools_do_not_wait_for_each_other)
{
    static const skua_blocking_pool full = {.name = "full", .thread_limit = 1, .queue_limit = 1};
    static const skua_blocking_pool other = {.name = "other", .thread_limit = 1, .queue_limit = 1};
    struct crowd crowd = {.count = 0};
    struct job jobs[2];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_blocking_register(api.runtime, &full), 0);
    assert_int_equal(skua_blocking_register(api.runtime, &other), 0);
    api_start(&api);
    crowd_accept(&crowd, &api, "full");
    crowd_accept(&crowd, &api, "full");
    expect_end(crowd_add(&crowd, &api, "full"), SKUA_E_POOL_FULL);

    job_init(&jobs[0]);
    job_init(&jobs[1]);
    expect_call(&api, &jobs[0], "other", 0);
    expect_call(&api, &jobs[1], NULL, 0);

    crowd_release(&crowd);
    api_stop(&api);
    assert_job(&jobs[0], 1);
    assert_job(&jobs[1], 1);
}

TEST(blocking_register_sets_the_limits_of_the_default_pool_once)
{
    const skua_blocking_pool limits = {
        .name = SKUA_BLOCKING_DEFAULT, .thread_limit = 2, .queue_limit = 3};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 2});
    assert_int_equal(skua_blocking_register(api.runtime, &limits), 0);
    assert_int_equal(skua_blocking_register(api.runtime, &limits), SKUA_E_POOL_EXISTS);
    api_start(&api);
    expect_limits(&api, 0, NULL, 2, 3);
    api_stop(&api);
}

#define DEFAULT_THREADS 16
#define DEFAULT_QUEUE   65536

/* Asks for more than fits into the default pool, all in one step. */
struct flood {
    struct job job; /* of all calls */
    uint32_t full;
    uint32_t other_errors;
    struct tally ended;
};

static int flood_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct flood *flood = api_world(self);
    (void)ctx;
    for (uint32_t i = 0; count == 0 && i < DEFAULT_THREADS + DEFAULT_QUEUE + 2; i++) {
        const int error =
            skua_step_blocking(out, i, NULL, work, skua_payload_pointer(0, &flood->job, NULL));
        if (error != 0) {
            return error;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            skua_step_done(out, skua_payload_empty(0));
            return 0;
        }
        flood->full += events[i].error == SKUA_E_POOL_FULL;
        flood->other_errors += events[i].error != 0 && events[i].error != SKUA_E_POOL_FULL;
    }
    tally_add(&flood->ended, count);
    return 0;
}

static const skua_process_type flood_type = {
    .name = "flood", .state_size = sizeof(void *), .init = api_init_world, .step = flood_step};

TEST(blocking_default_pool_has_the_documented_limits)
{
    struct flood flood = {0};
    struct api api;
    api_run(&api, 2);
    job_init(&flood.job);
    tally_init(&flood.ended);
    flood.job.waits = true;
    (void)api_submit(&api, &flood_type, &flood);
    tally_wait(&flood.ended, 2); /* those that did not fit */
    tally_wait(&flood.job.entered, DEFAULT_THREADS);
    const struct blocking_pool_counts counts = blocking_pool_counts(pool_at(&api, 0));
    assert_int_equal(counts.threads, DEFAULT_THREADS);
    assert_int_equal(counts.queued, DEFAULT_QUEUE);
    assert_int_equal(tally_count(&flood.ended), 2);

    job_release(&flood.job);
    tally_wait(&flood.ended, DEFAULT_THREADS + DEFAULT_QUEUE + 2);

    api_stop(&api);
    assert_int_equal(flood.full, 2);
    assert_int_equal(flood.other_errors, 0);
    assert_int_equal(atomic_load(&flood.job.ended), DEFAULT_THREADS + DEFAULT_QUEUE);
}

TEST(blocking_register_refuses_what_it_cannot_keep)
{
    static const char *const names[] = {"1", "2",  "3",  "4",  "5",  "6",  "7", "8",
                                        "9", "10", "11", "12", "13", "14", "15"};
    _Static_assert(COUNT_OF(names) + 1 == SKUA_BLOCKING_POOLS_MAX, "with the default one, all");
    struct job jobs[COUNT_OF(names)];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_blocking_register(NULL, &(skua_blocking_pool){.name = "x"}),
                     SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(api.runtime, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(api.runtime, &(skua_blocking_pool){0}), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_register(api.runtime, &(skua_blocking_pool){.name = ""}),
                     SKUA_E_INVALID);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const skua_blocking_pool pool = {.name = names[i], .thread_limit = 1};
        assert_int_equal(skua_blocking_register(api.runtime, &pool), 0);
        assert_int_equal(skua_blocking_register(api.runtime, &pool), SKUA_E_POOL_EXISTS);
    }
    const skua_blocking_pool one_more = {.name = "16"};
    assert_int_equal(skua_blocking_register(api.runtime, &one_more), SKUA_E_INVALID);
    const skua_blocking_pool standard = {.name = SKUA_BLOCKING_DEFAULT};
    assert_int_equal(skua_blocking_register(api.runtime, &standard), 0); /* it exists already */

    api_start(&api);
    assert_int_equal(skua_blocking_register(api.runtime, &one_more), SKUA_E_FROZEN);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        job_init(&jobs[i]);
        expect_call(&api, &jobs[i], names[i], 0);
    }
    assert_int_equal(skua_runtime_stop(api.runtime, SKUA_FOREVER), 0);
    assert_int_equal(skua_blocking_register(api.runtime, &one_more), SKUA_E_FROZEN);
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_job(&jobs[i], 1);
    }
}

TEST(blocking_pools_of_a_runtime_that_never_starts_are_released)
{
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_blocking_register(api.runtime, &(skua_blocking_pool){.name = "x"}), 0);
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

static bool has_no_thread(void *arg)
{
    return blocking_pool_counts(arg).threads == 0;
}

TEST(blocking_threads_without_work_end_and_come_again)
{
    const skua_blocking_pool pool = {.name = "brief", .idle_ns = SKUA_MILLISECOND};
    struct job jobs[5];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_blocking_register(api.runtime, &pool), 0);
    api_start(&api);
    const uint32_t threads = os_thread_count();
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        job_init(&jobs[i]);
        expect_call(&api, &jobs[i], "brief", 0);
        wait_until(has_no_thread, pool_at(&api, 1), "the pool's thread to end");
        os_wait_threads(threads);
    }
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        assert_job(&jobs[i], 1);
    }
}

/* ---- calls that nobody waits for any more ---- */

static const skua_blocking_pool narrow = {.name = "narrow", .thread_limit = 1};

/* A runtime with a pool of one thread, and two calls on it: one that runs, one that has not begun.
 */
struct pair {
    struct api api;
    struct job jobs[2];
    struct caller callers[2];
};

static void pair_begin(struct pair *pair, uint64_t second_timeout_ns)
{
    api_create(&pair->api, (skua_runtime_config){.worker_count = 2});
    assert_int_equal(skua_blocking_register(pair->api.runtime, &narrow), 0);
    api_start(&pair->api);
    for (size_t i = 0; i < 2; i++) {
        job_init(&pair->jobs[i]);
        pair->jobs[i].waits = i == 0;
        pair->jobs[i].gives = true;
        caller_init(&pair->callers[i], &pair->jobs[i], narrow.name);
        pair->callers[i].timeout_ns = i == 0 ? 0 : second_timeout_ns;
        caller_submit(&pair->callers[i], &pair->api);
        if (i == 0) {
            tally_wait(&pair->jobs[i].entered, 1);
        }
    }
}

/* Nobody hears of the results; what was not begun is not begun any more. */
static void pair_end(struct pair *pair, int error)
{
    struct job after;
    for (size_t i = 0; i < 2; i++) {
        expect_end(&pair->callers[i], error);
        assert_false(atomic_load(&pair->callers[i].has_result));
        assert_int_equal(atomic_load(&pair->jobs[i].ended), 0);
    }
    job_release(&pair->jobs[0]);
    job_init(&after);
    expect_call(&pair->api, &after, narrow.name, 0); /* behind the two */
    assert_int_equal(api_stats(&pair->api).late_completions, 1);
    assert_job(&pair->jobs[0], 1);
    assert_job(&pair->jobs[1], 0);
    api_stop(&pair->api);
    assert_job(&after, 1);
    assert_int_equal(tally_count(&pair->callers[0].ended), 1);
    assert_int_equal(tally_count(&pair->callers[1].ended), 1);
}

TEST(blocking_call_that_is_taken_back_ends_at_once_and_its_result_is_dropped)
{
    struct pair pair;
    pair_begin(&pair, 0);
    for (size_t i = 0; i < 2; i++) {
        api_wait_state(&pair.api, pair.callers[i].pid, SKUA_PROCESS_BLOCKED);
        take_back(&pair.callers[i], &pair.api);
    }
    pair_end(&pair, SKUA_E_CANCELLED);
}

/* One call with a deadline; returns whether its function had begun by then. */
static bool call_until_deadline(uint64_t timeout_ns)
{
    struct job job;
    struct caller caller;
    struct api api;
    api_run(&api, 1);
    job_init(&job);
    job.waits = true;
    job.gives = true;
    caller_init(&caller, &job, NULL);
    caller.timeout_ns = timeout_ns;
    caller_submit(&caller, &api);
    expect_end(&caller, SKUA_E_TIMEOUT);
    assert_false(atomic_load(&caller.has_result));
    const bool begun = tally_count(&job.entered) == 1;
    assert_int_equal(atomic_load(&job.ended), 0);
    job_release(&job);
    api_stop(&api);
    assert_int_equal(tally_count(&caller.ended), 1);
    assert_job(&job, atomic_load(&job.begun));
    return begun;
}

TEST(blocking_call_that_runs_at_its_deadline_goes_on_and_its_result_is_dropped)
{
    uint64_t timeout_ns = 5 * SKUA_MILLISECOND;
    while (!call_until_deadline(timeout_ns)) { /* a slow machine needs more */
        timeout_ns *= 2;
    }
}

TEST(blocking_call_that_waits_at_its_deadline_never_runs)
{
    struct pair pair;
    struct job after;
    pair_begin(&pair, SKUA_MILLISECOND);
    expect_end(&pair.callers[1], SKUA_E_TIMEOUT);
    job_release(&pair.jobs[0]);
    expect_end(&pair.callers[0], 0);
    job_init(&after);
    expect_call(&pair.api, &after, narrow.name, 0);
    api_stop(&pair.api);
    assert_job(&pair.jobs[0], 1);
    assert_job(&pair.jobs[1], 0);
    assert_job(&after, 1);
}

TEST(blocking_call_whose_deadline_has_passed_is_not_begun)
{
    struct job job;
    struct caller caller;
    struct api api;
    api_run(&api, 1);
    job_init(&job);
    caller_init(&caller, &job, NULL);
    caller.timeout_ns = 1;
    caller_submit(&caller, &api);
    expect_end(&caller, SKUA_E_TIMEOUT);
    assert_true(atomic_load(&caller.input_is_gone));
    api_stop(&api);
    assert_job(&job, 0);
}

TEST(blocking_call_of_a_process_that_is_ended_is_dropped_or_its_result_is)
{
    struct pair pair;
    struct job after;
    pair_begin(&pair, 0);
    for (size_t i = 0; i < 2; i++) {
        api_wait_state(&pair.api, pair.callers[i].pid, SKUA_PROCESS_BLOCKED);
        assert_int_equal(skua_process_terminate(pair.api.runtime, pair.callers[i].pid), 0);
        api_wait_end(&pair.api, pair.callers[i].pid);
    }
    assert_int_equal(atomic_load(&pair.jobs[0].ended), 0); /* it is still running */

    job_release(&pair.jobs[0]);
    job_init(&after);
    expect_call(&pair.api, &after, narrow.name, 0);

    assert_job(&pair.jobs[0], 1);
    assert_job(&pair.jobs[1], 0);
    assert_int_equal(api_stats(&pair.api).late_completions, 1);
    assert_int_equal(tally_count(&pair.callers[0].ended), 0);
    assert_int_equal(tally_count(&pair.callers[1].ended), 0);
    api_stop(&pair.api);
    assert_job(&after, 1);
}

/* Asks for the function in its only step. */
struct parting {
    struct caller caller;
    int returns;
};

static int parting_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct parting *parting = api_world(self);
    (void)events;
    (void)count;
    const int error = call(&parting->caller, ctx, out);
    skua_step_done(out, skua_payload_empty(0));
    return error != 0 ? error : parting->returns;
}

static const skua_process_type parting_type = {
    .name = "parting", .state_size = sizeof(void *), .init = api_init_world, .step = parting_step};

TEST(blocking_call_of_a_last_step_is_dropped_with_it_or_nobody_hears_of_it)
{
    for (int fails = 0; fails < 2; fails++) {
        struct job jobs[2];
        struct parting parting = {.returns = fails == 1 ? SKUA_E_USER : 0};
        struct api api;
        api_create(&api, (skua_runtime_config){.worker_count = 1});
        assert_int_equal(skua_blocking_register(api.runtime, &narrow), 0);
        api_start(&api);
        job_init(&jobs[0]);
        job_init(&jobs[1]);
        jobs[0].gives = true;
        caller_init(&parting.caller, &jobs[0], narrow.name);
        const skua_exit exit = api_run_process(&api, &parting_type, &parting);
        assert_int_equal(exit.error, parting.returns);
        expect_call(&api, &jobs[1], narrow.name, 0); /* behind the other, if there is one */
        api_stop(&api);
        /* It was carried out if it began before the process had ended. */
        assert_true(fails == 0 || atomic_load(&jobs[0].begun) == 0);
        assert_job(&jobs[0], atomic_load(&jobs[0].begun));
        assert_job(&jobs[1], 1);
    }
}

/* ---- many ---- */

#define THREADS   4
#define PROCESSES 100
#define BATCH     10
#define ROUNDS    10
#define CALLS     (PROCESSES * BATCH * ROUNDS)

static const skua_blocking_pool four = {.name = "four", .thread_limit = THREADS};

/* What all the functions share. */
struct meter {
    atomic_uint running;
    atomic_uint most;
    atomic_uint calls;
    atomic_uint completions;
    atomic_uint wrong;
};

static skua_payload meter_payload(struct meter *meter, uint64_t number)
{
    skua_payload payload = skua_payload_u64(0, (uint64_t)(uintptr_t)meter);
    payload.as.words[1] = number;
    payload.inline_size = 2 * sizeof(uint64_t);
    return payload;
}

static int measure(skua_payload *input, skua_payload *result)
{
    struct meter *meter = (struct meter *)(uintptr_t)input->as.words[0];
    const unsigned running = atomic_fetch_add(&meter->running, 1) + 1;
    unsigned most = atomic_load(&meter->most);
    while (running > most && !atomic_compare_exchange_weak(&meter->most, &most, running)) {
    }
    (void)atomic_fetch_add(&meter->calls, 1);
    *result = skua_payload_u64(0, 2 * input->as.words[1]);
    (void)atomic_fetch_sub(&meter->running, 1);
    return 0;
}

struct customer {
    struct meter *meter;
    uint64_t asked;
    uint64_t got;
};

static int customer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    struct customer *customer = self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        const bool right = events[i].type == SKUA_EVENT_COMPLETION && events[i].error == 0 &&
                           skua_payload_to_u64(&events[i].payload) == 2 * events[i].tag;
        (void)atomic_fetch_add(&customer->meter->wrong, !right);
    }
    customer->got += count;
    (void)atomic_fetch_add(&customer->meter->completions, (unsigned)count);
    if (customer->got < customer->asked) {
        return 0;
    }
    if (customer->asked == BATCH * ROUNDS) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    int error = 0;
    for (int i = 0; i < BATCH && error == 0; i++) {
        error = skua_step_blocking(out, customer->asked, four.name, measure,
                                   meter_payload(customer->meter, customer->asked));
        customer->asked++;
    }
    return error;
}

static const skua_process_type customer_type = {.name = "customer",
                                                .state_size = sizeof(struct customer),
                                                .init = api_init_world,
                                                .step = customer_step};

TEST(blocking_pool_of_four_serves_ten_thousand_calls_four_at_a_time)
{
    const uint32_t workers = test_workers();
    struct meter meter = {0};
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = workers});
    assert_int_equal(skua_blocking_register(api.runtime, &four), 0);
    api_start(&api);
    for (int i = 0; i < PROCESSES; i++) {
        (void)api_submit(&api, &customer_type, &meter);
    }
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_int_equal(atomic_load(&meter.calls), CALLS);
    assert_int_equal(atomic_load(&meter.completions), CALLS);
    assert_int_equal(atomic_load(&meter.wrong), 0);
    assert_in_range(atomic_load(&meter.most), 1, THREADS);
    assert_int_equal(atomic_load(&meter.running), 0);
}

/* ---- what a function may do ---- */

struct agent {
    skua_runtime *runtime;
    skua_pid listener;
    struct probe probe;
    int send;
    int submit;
    int wait;
    int stop;
    int destroy;
};

static int act(skua_payload *input, skua_payload *result)
{
    struct agent *agent = input->as.owned.data;
    (void)result;
    agent->send = skua_message_send(agent->runtime, agent->listener, skua_payload_empty(0));
    agent->submit = probe_submit(agent->runtime, &agent->probe, NULL);
    agent->wait = skua_process_wait(agent->runtime, agent->listener, 0, NULL);
    agent->stop = skua_runtime_stop(agent->runtime, SKUA_FOREVER);
    agent->destroy = skua_runtime_destroy(agent->runtime);
    return 0;
}

static int agent_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct agent *agent = api_world(self);
    (void)ctx;
    (void)events;
    if (count > 0) {
        skua_step_done(out, skua_payload_empty(0));
        return 0;
    }
    return skua_step_blocking(out, 0, NULL, act, skua_payload_pointer(0, agent, NULL));
}

static const skua_process_type agent_type = {
    .name = "agent", .state_size = sizeof(void *), .init = api_init_world, .step = agent_step};

TEST(blocking_function_may_call_the_runtime_but_not_stop_it)
{
    struct probe listener = {.habit = PROBE_OBEYS};
    struct agent agent = {.probe = {.habit = PROBE_ENDS}, .send = 1};
    struct api api;
    api_run(&api, 2);
    agent.runtime = api.runtime;
    agent.listener = api_submit(&api, &probe_type, &listener);
    const skua_exit exit = api_run_process(&api, &agent_type, &agent);
    assert_int_equal(exit.error, 0);
    assert_int_equal(agent.send, 0);
    assert_int_equal(agent.submit, 0);
    assert_int_equal(agent.wait, SKUA_E_TIMEOUT);
    assert_int_equal(agent.stop, SKUA_E_INSIDE_STEP);
    assert_int_equal(agent.destroy, SKUA_E_BUSY);
    api_stop(&api);
    assert_int_equal(atomic_load(&listener.messages), 1);
    assert_int_equal(atomic_load(&agent.probe.closes), 1);
}

/* ---- stopping ---- */

#define QUEUED 3

/* One call that runs and some that wait behind it, of processes that end when they are asked to. */
struct busy_pool {
    struct api api;
    struct job jobs[1 + QUEUED];
    struct caller callers[1 + QUEUED];
};

static void busy_pool_begin(struct busy_pool *busy)
{
    api_create(&busy->api, (skua_runtime_config){.worker_count = 2});
    assert_int_equal(skua_blocking_register(busy->api.runtime, &narrow), 0);
    api_start(&busy->api);
    for (size_t i = 0; i < COUNT_OF(busy->jobs); i++) {
        job_init(&busy->jobs[i]);
        busy->jobs[i].waits = true;
        busy->jobs[i].gives = true;
        caller_init(&busy->callers[i], &busy->jobs[i], narrow.name);
        caller_start(&busy->callers[i], &busy->api);
    }
    tally_wait(&busy->jobs[0].entered, 1);
}

/* After a stop that returned 0 or SKUA_E_TIMEOUT. */
static void busy_pool_end(struct busy_pool *busy)
{
    assert_job(&busy->jobs[0], 1);
    for (size_t i = 0; i < COUNT_OF(busy->jobs); i++) {
        assert_job(&busy->jobs[i], i == 0);
        assert_int_equal(tally_count(&busy->callers[i].ended), 0);
    }
    api_stop(&busy->api);
}

TEST(blocking_function_that_does_not_return_makes_the_stop_stuck)
{
    struct busy_pool busy;
    const uint32_t threads = os_wait_alone();
    busy_pool_begin(&busy);

    assert_int_equal(skua_runtime_stop(busy.api.runtime, 50 * SKUA_MILLISECOND), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(busy.api.runtime), SKUA_E_BUSY);
    assert_int_equal(skua_runtime_stop(busy.api.runtime, 0), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(busy.api.runtime), SKUA_E_BUSY);
    assert_int_equal(atomic_load(&busy.jobs[0].ended), 0);
    assert_int_equal(skua_runtime_start(busy.api.runtime), SKUA_E_STOPPED);

    job_release(&busy.jobs[0]);
    const int stopped = skua_runtime_stop(busy.api.runtime, HANG_NS);
    /* A slow machine may not have ended the processes the first time. */
    assert_true(stopped == 0 || stopped == SKUA_E_TIMEOUT);
    assert_int_equal(os_wait_alone(), threads);
    busy_pool_end(&busy);
}

static bool has_no_process(void *arg)
{
    return api_stats(arg).live == 0;
}

struct stopper {
    const struct api *api;
    int result;
};

static void stop_without_limit(void *arg)
{
    struct stopper *stopper = arg;
    stopper->result = skua_runtime_stop(stopper->api->runtime, SKUA_FOREVER);
}

static void *stop_in_thread(void *arg)
{
    stop_without_limit(arg);
    return NULL;
}

static void *release_when_alone(void *arg)
{
    struct busy_pool *busy = arg;
    wait_until(has_no_process, &busy->api, "the processes to end");
    job_release(&busy->jobs[0]);
    return NULL;
}

TEST(blocking_function_is_waited_for_by_every_stop)
{
    for (size_t stops = 1; stops <= 3; stops++) {
        struct busy_pool busy;
        struct stopper stoppers[3];
        pthread_t releaser;
        busy_pool_begin(&busy);
        for (size_t i = 0; i < stops; i++) {
            stoppers[i] = (struct stopper){.api = &busy.api, .result = 1};
        }
        assert_int_equal(pthread_create(&releaser, NULL, release_when_alone, &busy), 0);

        api_in_threads(stops, stop_without_limit, stoppers, sizeof stoppers[0]);

        assert_int_equal(pthread_join(releaser, NULL), 0);
        for (size_t i = 0; i < stops; i++) {
            assert_int_equal(stoppers[i].result, 0);
        }
        busy_pool_end(&busy);
    }
}

TEST(blocking_threads_that_are_idle_do_not_hold_up_the_stop)
{
    const skua_blocking_pool pool = {.name = "lasting", .idle_ns = SKUA_FOREVER};
    const uint32_t threads = os_wait_alone();
    struct job jobs[2];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_blocking_register(api.runtime, &pool), 0);
    api_start(&api);
    job_init(&jobs[0]);
    job_init(&jobs[1]);
    expect_call(&api, &jobs[0], NULL, 0);
    expect_call(&api, &jobs[1], "lasting", 0);
    assert_int_equal(os_thread_count(), threads + 1 + 1 + 2); /* worker, monitor, pools */
    api_stop(&api);
    assert_int_equal(os_wait_alone(), threads);
    assert_job(&jobs[0], 1);
    assert_job(&jobs[1], 1);
}

/* ---- memory ---- */

/* Asks for the function while the n-th allocation fails, and then, whatever came of it, again. */
struct short_of_memory {
    struct counting_allocator *memory;
    uint64_t n;
    struct job jobs[2];
    int yield_error;
    int error;
    int second_error;
    struct tally ended;
};

static int ask_again(struct short_of_memory *world, skua_step *out)
{
    counting_allocator_fail_never(world->memory);
    return skua_step_blocking(out, 2, NULL, work, job_payload(&world->jobs[1]));
}

static int short_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct short_of_memory *world = api_world(self);
    (void)ctx;
    if (count == 0) {
        counting_allocator_fail_once(world->memory, world->n);
        world->yield_error = skua_step_blocking(out, 1, NULL, work, job_payload(&world->jobs[0]));
        return world->yield_error != 0 ? ask_again(world, out) : 0;
    }
    if (events[0].tag == 1) {
        world->error = events[0].error;
        return ask_again(world, out);
    }
    world->second_error = events[0].error;
    tally_add(&world->ended, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type short_type = {
    .name = "short", .state_size = sizeof(void *), .init = api_init_world, .step = short_step};

enum outcome { REFUSED_IN_STEP, REFUSED_LATER, NOT_REFUSED };

static enum outcome call_with_failure(uint64_t n)
{
    struct short_of_memory world = {.n = n, .second_error = 1};
    struct api api;
    api_run(&api, 1);
    world.memory = &api.memory;
    job_init(&world.jobs[0]);
    job_init(&world.jobs[1]);
    tally_init(&world.ended);
    const skua_pid pid = api_submit(&api, &short_type, &world);
    tally_wait(&world.ended, 1);
    api_wait_end(&api, pid);
    api_stop(&api);
    const bool refused = world.yield_error != 0 || world.error != 0;
    assert_true(world.yield_error == 0 || world.yield_error == SKUA_E_NO_MEMORY);
    assert_true(world.error == 0 || world.error == SKUA_E_NO_MEMORY);
    assert_int_equal(world.second_error, 0);
    assert_job(&world.jobs[0], refused ? 0 : 1);
    assert_job(&world.jobs[1], 1);
    if (world.yield_error != 0) {
        return REFUSED_IN_STEP;
    }
    return refused ? REFUSED_LATER : NOT_REFUSED;
}

TEST(blocking_failure_of_any_allocation_is_reported_and_harmless)
{
    unsigned outcomes[3] = {0};
    for (uint64_t n = 1; outcomes[NOT_REFUSED] == 0; n++) {
        outcomes[call_with_failure(n)]++;
    }
    assert_true(outcomes[REFUSED_IN_STEP] >= 2);  /* at least the call and its place */
    assert_int_equal(outcomes[REFUSED_LATER], 1); /* the thread */
}

/* ---- steps that block ---- */

/* No step counts as stuck, so that only the calls themselves bring spare workers. */
static void run_unwatched(struct api *api, uint32_t workers, uint32_t spares)
{
    api_create(api, (skua_runtime_config){.worker_count = workers,
                                          .spare_limit = spares,
                                          .stall_limit_ns = API_NEVER_STUCK});
    api_start(api);
}

static struct scheduler *sched_of(const struct api *api)
{
    return &api->runtime->sched;
}

/* A step that blocks until it is released. */
struct stretch {
    bool forgets; /* to say that it is over */
    struct tally entered;
    struct tally released;
    struct tally left;
    int begin;
    int end;
    skua_pid pid;
};

static int stretch_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct stretch *stretch = api_world(self);
    (void)events;
    (void)count;
    stretch->begin = skua_blocking_begin(ctx);
    tally_add(&stretch->entered, 1);
    tally_wait(&stretch->released, 1);
    stretch->end = stretch->forgets ? 0 : skua_blocking_end(ctx);
    tally_add(&stretch->left, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type stretch_type = {
    .name = "stretch", .state_size = sizeof(void *), .init = api_init_world, .step = stretch_step};

static void stretch_submit(struct stretch *stretch, const struct api *api)
{
    *stretch = (struct stretch){.begin = 1, .end = 1};
    tally_init(&stretch->entered);
    tally_init(&stretch->released);
    tally_init(&stretch->left);
    stretch->pid = api_submit(api, &stretch_type, stretch);
}

static void stretch_end(struct stretch *stretch, const struct api *api)
{
    tally_add(&stretch->released, 1);
    api_wait_end(api, stretch->pid);
    assert_int_equal(stretch->begin, 0);
    assert_int_equal(stretch->end, 0);
}

/* Says that it has run. */
static int announcer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct tally *ran = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(ran, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type announcer_type = {.name = "announcer",
                                                 .state_size = sizeof(void *),
                                                 .init = api_init_world,
                                                 .step = announcer_step};

TEST(blocking_step_leaves_the_only_worker_to_others)
{
    struct stretch stretch;
    struct tally ran;
    struct api api;
    run_unwatched(&api, 1, 0);
    tally_init(&ran);
    stretch_submit(&stretch, &api);
    tally_wait(&stretch.entered, 1);
    for (uint64_t i = 1; i <= 100; i++) {
        (void)api_submit(&api, &announcer_type, &ran);
        tally_wait(&ran, i);
    }
    /* One spare worker, or two if the monitor saw the step at the moment of its call. */
    assert_in_range(skua_stats_read(api.runtime, NULL, NULL, 0), 2, 3);
    assert_in_range(api_stats(&api).spares, 1, 2);
    assert_int_equal(api_stats(&api).stalls, 0);
    stretch_end(&stretch, &api);
    api_stop(&api);
}

/* Spawns others, blocks, and comes back when they have run: before the call they are in the
 * worker's next slot and its deque, and some of them in the global queue. */
#define SPAWNED 1000

struct hoarder {
    uint32_t before; /* spawned before the call */
    uint32_t after;  /* and after it */
    struct tally ran;
    atomic_uint failures;
    atomic_bool others_sleep;
};

static bool all_others_sleep(void *arg)
{
    struct scheduler *sched = arg;
    return parking_asleep(&sched->parking) + load_seq_cst(&sched->spare.resting) + 1 ==
           scheduler_threads(sched);
}

static void spawn_announcers(struct hoarder *hoarder, skua_context *ctx, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        skua_payload input = api_world_payload(&hoarder->ran);
        (void)atomic_fetch_add(&hoarder->failures, skua_context_spawn(ctx, &announcer_type, NULL,
                                                                      &input, 1, NULL) != 0);
    }
}

static void spawn_and_block(void *arg, skua_context *ctx, skua_step *out)
{
    struct hoarder *hoarder = arg;
    (void)out;
    spawn_announcers(hoarder, ctx, hoarder->before);
    (void)atomic_fetch_add(&hoarder->failures, skua_blocking_begin(ctx) != 0);
    tally_wait(&hoarder->ran, hoarder->before);
    if (hoarder->after > 0) {
        /* Nobody is left who searches and would come across them. */
        wait_until(all_others_sleep, &skua_context_runtime(ctx)->sched, "the others to sleep");
        spawn_announcers(hoarder, ctx, hoarder->after);
        tally_wait(&hoarder->ran, hoarder->before + hoarder->after);
    }
    (void)atomic_fetch_add(&hoarder->failures, skua_blocking_end(ctx) != 0);
}

TEST(blocking_step_holds_up_nothing_that_it_has_readied)
{
    static const struct {
        uint32_t before;
        uint32_t after;
    } cases[] = {{1, 0}, {2, 0}, {SPAWNED, 0}, {0, 1}, {1, 1}, {0, 2}, {SPAWNED, SPAWNED}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        FOR_WORKER_COUNTS(workers)
        {
            struct hoarder hoarder = {.before = cases[i].before, .after = cases[i].after};
            struct api api;
            run_unwatched(&api, workers, 0);
            tally_init(&hoarder.ran);
            api_in_step(&api, spawn_and_block, &hoarder);
            assert_int_equal(tally_count(&hoarder.ran), hoarder.before + hoarder.after);
            assert_int_equal(atomic_load(&hoarder.failures), 0);
            api_stop(&api);
        }
    }
}

/* Waits for one thing, notes that it has come, and ends. */
struct waiter {
    uint64_t duration_ns; /* to sleep, or 0 */
    int fd;               /* to read from, if there is no duration */
    struct tally served;
    atomic_int error;
};

static int waiter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct waiter *waiter = api_world(self);
    (void)ctx;
    if (count == 0) {
        return waiter->duration_ns > 0 ? skua_step_sleep(out, 1, waiter->duration_ns)
                                       : skua_step_wait_readable(out, 1, waiter->fd);
    }
    atomic_store(&waiter->error, events[0].error);
    tally_add(&waiter->served, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type waiter_type = {
    .name = "waiter", .state_size = sizeof(void *), .init = api_init_world, .step = waiter_step};

/* They were begun on the worker that then blocks. */
TEST(blocking_step_holds_up_no_timer_and_no_descriptor)
{
    int ends[2];
    struct waiter waiters[2] = {{.duration_ns = 20 * SKUA_MILLISECOND}, {.duration_ns = 0}};
    struct stretch stretch;
    struct api api;
    run_unwatched(&api, 1, 0);
    assert_int_equal(pipe(ends), 0);
    waiters[1].fd = ends[0];
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        tally_init(&waiters[i].served);
        const skua_pid pid = api_submit(&api, &waiter_type, &waiters[i]);
        if (i == 1) {
            api_wait_state(&api, pid, SKUA_PROCESS_BLOCKED);
        }
    }
    stretch_submit(&stretch, &api);
    tally_wait(&stretch.entered, 1);
    assert_int_equal(write(ends[1], "x", 1), 1);
    for (size_t i = 0; i < COUNT_OF(waiters); i++) {
        tally_wait(&waiters[i].served, 1);
        assert_int_equal(atomic_load(&waiters[i].error), 0);
    }
    stretch_end(&stretch, &api);
    api_stop(&api);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

/* ---- how many at once ---- */

#define SPARES 4

TEST(blocking_steps_run_at_once_up_to_the_limit_of_spares)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct stretch stretches[2 + SPARES + 1];
        const size_t most = workers + SPARES;
        struct api api;
        run_unwatched(&api, workers, SPARES);
        for (size_t i = 0; i < most; i++) {
            stretch_submit(&stretches[i], &api);
            tally_wait(&stretches[i].entered, 1);
        }
        assert_int_equal(skua_stats_read(api.runtime, NULL, NULL, 0), most);
        /* Now every thread there may be is in a step, and one more finds nobody. */
        stretch_submit(&stretches[most], &api);
        assert_int_equal(skua_stats_read(api.runtime, NULL, NULL, 0), most);
        assert_int_equal(tally_count(&stretches[most].entered), 0);

        stretch_end(&stretches[0], &api);
        tally_wait(&stretches[most].entered, 1);

        for (size_t i = 1; i <= most; i++) {
            stretch_end(&stretches[i], &api);
        }
        assert_int_equal(skua_stats_read(api.runtime, NULL, NULL, 0), most);
        api_stop(&api);
    }
}

/* Returns when as many of these are in their steps at the same time as belong together. */
struct meeting {
    struct tally arrived;
    uint64_t size;
};

static int meeting_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct meeting *meeting = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(&meeting->arrived, 1);
    tally_wait(&meeting->arrived, meeting->size);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type meeting_type = {
    .name = "meeting", .state_size = sizeof(void *), .init = api_init_world, .step = meeting_step};

/* Two workers and one spare. The second to block finds no spare; when the first is back, its spare
 * is not one too many but makes up for the second. The monitor sees to that. */
TEST(blocking_step_that_found_no_spare_gets_one_later)
{
    struct stretch stretches[2];
    struct api api;
    run_unwatched(&api, 2, 1);
    for (size_t i = 0; i < 2; i++) {
        stretch_submit(&stretches[i], &api);
        tally_wait(&stretches[i].entered, 1);
    }
    stretch_end(&stretches[0], &api);

    for (int round = 0; round < 5; round++) { /* after the first it would rest, if it were */
        struct meeting meeting = {.size = 2};
        tally_init(&meeting.arrived);
        (void)api_submit(&api, &meeting_type, &meeting);
        (void)api_submit(&api, &meeting_type, &meeting);
        api_wait_live(&api, 1);
        assert_int_equal(tally_count(&meeting.arrived), 2);
    }

    assert_int_equal(tally_count(&stretches[1].left), 0);
    stretch_end(&stretches[1], &api);
    assert_int_equal(skua_stats_read(api.runtime, NULL, NULL, 0), 3);
    api_stop(&api);
}

/* Blocks again and again, each time after the spare worker has gone to sleep: it is the one that
 * there is, and nobody else has to be woken or made. */
struct repeater {
    atomic_uint failures;
};

static void block_repeatedly(void *arg, skua_context *ctx, skua_step *out)
{
    struct repeater *repeater = arg;
    (void)out;
    for (int i = 0; i < 100; i++) {
        (void)atomic_fetch_add(&repeater->failures, skua_blocking_begin(ctx) != 0);
        wait_until(all_others_sleep, &skua_context_runtime(ctx)->sched, "the others to sleep");
        (void)atomic_fetch_add(&repeater->failures, skua_blocking_end(ctx) != 0);
    }
}

TEST(blocking_uses_the_spare_that_is_there_already)
{
    struct repeater repeater = {0};
    struct api api;
    run_unwatched(&api, 1, 0);
    api_in_step(&api, block_repeatedly, &repeater);
    assert_int_equal(atomic_load(&repeater.failures), 0);
    assert_in_range(skua_stats_read(api.runtime, NULL, NULL, 0), 2, 5); /* see above */
    api_stop(&api);
}

/* Runs on the spare worker until the other one is back and sleeps; then it readies one more process
 * and ends, which makes the spare worker one too many. */
struct last_act {
    struct tally entered;
    struct tally permitted;
    struct tally ran;
    int spawned;
};

static int last_act_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    struct last_act *act = api_world(self);
    skua_payload input = api_world_payload(&act->ran);
    (void)events;
    (void)count;
    tally_add(&act->entered, 1);
    tally_wait(&act->permitted, 1);
    wait_until(all_others_sleep, &skua_context_runtime(ctx)->sched, "the others to sleep");
    act->spawned = skua_context_spawn(ctx, &announcer_type, NULL, &input, 1, NULL);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type last_act_type = {.name = "last act",
                                                .state_size = sizeof(void *),
                                                .init = api_init_world,
                                                .step = last_act_step};

TEST(blocking_spare_that_rests_leaves_what_it_has_to_others)
{
    struct stretch stretch;
    struct last_act act = {.spawned = 1};
    struct api api;
    run_unwatched(&api, 1, 1);
    tally_init(&act.entered);
    tally_init(&act.permitted);
    tally_init(&act.ran);
    stretch_submit(&stretch, &api);
    tally_wait(&stretch.entered, 1);
    (void)api_submit(&api, &last_act_type, &act);
    tally_wait(&act.entered, 1);
    stretch_end(&stretch, &api);
    tally_add(&act.permitted, 1);

    tally_wait(&act.ran, 1);

    api_wait_live(&api, 0);
    assert_int_equal(act.spawned, 0);
    api_stop(&api);
}

/* ---- calls that do not match ---- */

struct calls {
    int results[8];
};

static void call_out_of_order(void *arg, skua_context *ctx, skua_step *out)
{
    struct calls *calls = arg;
    (void)out;
    calls->results[0] = skua_blocking_end(ctx);
    calls->results[1] = skua_blocking_begin(ctx);
    calls->results[2] = skua_blocking_begin(ctx);
    calls->results[3] = skua_blocking_end(ctx);
    calls->results[4] = skua_blocking_end(ctx);
    calls->results[5] = skua_blocking_begin(ctx);
    calls->results[6] = skua_blocking_begin(NULL);
    calls->results[7] = skua_blocking_end(NULL);
}

TEST(blocking_calls_that_do_not_match_are_refused)
{
    static const int expected[] = {SKUA_E_INVALID, 0, SKUA_E_INVALID, 0,
                                   SKUA_E_INVALID, 0, SKUA_E_INVALID, SKUA_E_INVALID};
    struct api api;
    run_unwatched(&api, 1, 0);
    for (int round = 0; round < 3; round++) { /* the last call of each is for the step to end */
        struct calls calls;
        api_in_step(&api, call_out_of_order, &calls);
        for (size_t i = 0; i < COUNT_OF(expected); i++) {
            assert_int_equal(calls.results[i], expected[i]);
        }
    }
    api_stop(&api);
}

/* Four steps, which follow each other without a pause: what one forgets to end is over in the
 * next. */
struct forgetful {
    uint32_t steps;
    int begins[4];
    int ends[4];
    struct tally done;
};

static int forgetful_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    struct forgetful *forgetful = api_world(self);
    const uint32_t step = forgetful->steps++;
    (void)events;
    (void)count;
    if (step % 2 == 0) {
        forgetful->begins[step] = skua_blocking_begin(ctx);
    } else {
        forgetful->ends[step] = skua_blocking_end(ctx);
    }
    if (step == 3) {
        tally_add(&forgetful->done, 1);
        skua_step_done(out, skua_payload_empty(0));
    } else {
        skua_step_continue(out);
    }
    return 0;
}

static const skua_process_type forgetful_type = {.name = "forgetful",
                                                 .state_size = sizeof(void *),
                                                 .init = api_init_world,
                                                 .step = forgetful_step};

TEST(blocking_that_is_not_ended_ends_with_the_step)
{
    struct forgetful forgetful = {0};
    struct api api;
    run_unwatched(&api, 1, 0);
    tally_init(&forgetful.done);
    (void)api_run_process(&api, &forgetful_type, &forgetful);
    assert_int_equal(tally_count(&forgetful.done), 1);
    assert_int_equal(forgetful.begins[0], 0);
    assert_int_equal(forgetful.ends[1], SKUA_E_INVALID);
    assert_int_equal(forgetful.begins[2], 0);
    assert_int_equal(forgetful.ends[3], SKUA_E_INVALID);
    api_stop(&api);
}

/* ---- in init ---- */

static int init_calling(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    const int error = api_init_world(self, ctx, method, input, input_count);
    if (error == 0) {
        struct calls *calls = api_world(self);
        calls->results[0] = skua_blocking_begin(ctx);
        calls->results[1] = skua_blocking_begin(ctx);
        calls->results[2] = skua_blocking_end(ctx);
        calls->results[3] = skua_blocking_end(ctx);
    }
    return error;
}

static int ending_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type init_type = {
    .name = "init", .state_size = sizeof(void *), .init = init_calling, .step = ending_step};

static void spawn_init(void *arg, skua_context *ctx, skua_step *out)
{
    struct calls *calls = arg;
    skua_payload input = api_world_payload(calls);
    (void)out;
    calls->results[4] = skua_context_spawn(ctx, &init_type, NULL, &input, 1, NULL);
}

TEST(blocking_in_init_counts_on_a_worker_and_does_nothing_elsewhere)
{
    struct calls outside = {{1, 1, 1, 1}};
    struct calls inside = {{1, 1, 1, 1, 1}};
    struct api api;
    run_unwatched(&api, 1, 0);
    api_wait_end(&api, api_submit(&api, &init_type, &outside));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(outside.results[i], 0);
    }
    assert_int_equal(api_stats(&api).spares, 0);

    api_in_step(&api, spawn_init, &inside);
    assert_int_equal(inside.results[0], 0);
    assert_int_equal(inside.results[1], SKUA_E_INVALID);
    assert_int_equal(inside.results[2], 0);
    assert_int_equal(inside.results[3], SKUA_E_INVALID);
    assert_int_equal(inside.results[4], 0);
    assert_true(api_stats(&api).spares >= 1);
    api_stop(&api);
}

/* ---- afterwards ---- */

static bool spares_rest(struct scheduler *sched)
{
    return load_seq_cst(&sched->spare.resting) + sched->worker_count == scheduler_threads(sched);
}

static bool all_sleep(void *arg)
{
    struct scheduler *sched = arg;
    return parking_asleep(&sched->parking) + load_seq_cst(&sched->spare.resting) ==
           scheduler_threads(sched);
}

/* A spare worker that is one too many rests when it has run something, so it is given something to
 * run: processes that need one worker more than there should be. */
static void let_spares_rest(const struct api *api)
{
    struct scheduler *sched = sched_of(api);
    wait_until(all_sleep, sched, "all workers to sleep");
    while (!spares_rest(sched)) {
        struct meeting meeting = {.size = sched->worker_count + 1};
        tally_init(&meeting.arrived);
        for (uint64_t i = 0; i < meeting.size; i++) {
            (void)api_submit(api, &meeting_type, &meeting);
        }
        api_wait_live(api, 0);
        wait_until(all_sleep, sched, "all workers to sleep");
    }
}

/* Surplus and absences are all settled (INV-18). */
static void assert_settled(const struct api *api)
{
    struct scheduler *sched = sched_of(api);
    assert_int_equal(load_seq_cst(&sched->spare.surplus), 0);
    for (uint32_t i = 0; i < scheduler_threads(sched); i++) {
        assert_int_equal(load_seq_cst(&sched->workers[i].absence), 0);
    }
}

/* Notes how many of its kind run at the same time. */
static int crowded_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct meter *meter = api_world(self);
    skua_payload input = meter_payload(meter, 0);
    skua_payload result;
    (void)ctx;
    (void)events;
    (void)count;
    (void)measure(&input, &result);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type crowded_type = {
    .name = "crowded", .state_size = sizeof(void *), .init = api_init_world, .step = crowded_step};

static void expect_parallelism(const struct api *api, uint32_t workers)
{
    struct meter meter = {0};
    for (int i = 0; i < 5000; i++) {
        (void)api_submit(api, &crowded_type, &meter);
    }
    api_wait_live(api, 0);
    assert_int_equal(atomic_load(&meter.calls), 5000);
    assert_in_range(atomic_load(&meter.most), 1, workers);
    struct meeting meeting = {.size = workers};
    tally_init(&meeting.arrived);
    for (uint32_t i = 0; i < workers; i++) {
        (void)api_submit(api, &meeting_type, &meeting); /* and so many do run at once */
    }
    api_wait_live(api, 0);
}

TEST(blocking_leaves_as_many_workers_as_there_were)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct api api;
        run_unwatched(&api, workers, SPARES);
        for (int round = 0; round < 5; round++) {
            struct stretch stretches[SPARES];
            for (size_t i = 0; i < SPARES; i++) {
                stretch_submit(&stretches[i], &api);
                stretches[i].forgets = i % 2 == 1;
                tally_wait(&stretches[i].entered, 1);
            }
            for (size_t i = 0; i < SPARES; i++) {
                stretch_end(&stretches[i], &api);
            }
            api_wait_live(&api, 0);
            let_spares_rest(&api);
            assert_settled(&api);
            assert_in_range(skua_stats_read(api.runtime, NULL, NULL, 0), workers + 1,
                            workers + SPARES);
            expect_parallelism(&api, workers);
        }
        api_stop(&api);
    }
}

/* Many short stretches, one after the other and several at a time. */
struct stutter {
    atomic_uint failures;
    struct tally done;
};

static int stutter_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    struct stutter *stutter = api_world(self);
    (void)events;
    (void)count;
    for (int i = 0; i < 100; i++) {
        (void)atomic_fetch_add(&stutter->failures, skua_blocking_begin(ctx) != 0);
        (void)atomic_fetch_add(&stutter->failures, skua_blocking_end(ctx) != 0);
    }
    (void)atomic_fetch_add(&stutter->failures, skua_blocking_begin(ctx) != 0);
    tally_add(&stutter->done, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type stutter_type = {
    .name = "stutter", .state_size = sizeof(void *), .init = api_init_world, .step = stutter_step};

TEST(blocking_again_and_again_leaves_as_many_workers_as_there_were)
{
    const uint32_t workers = test_workers();
    struct stutter stutter = {0};
    struct api api;
    run_unwatched(&api, workers, SPARES);
    tally_init(&stutter.done);
    for (int i = 0; i < 200; i++) {
        (void)api_submit(&api, &stutter_type, &stutter);
    }
    tally_wait(&stutter.done, 200);
    api_wait_live(&api, 0);
    assert_int_equal(atomic_load(&stutter.failures), 0);
    let_spares_rest(&api);
    assert_settled(&api);
    expect_parallelism(&api, workers);
    api_stop(&api);
}

/* ---- the monitor and the stop ---- */

struct culprits {
    pthread_mutex_t lock;
    skua_pid pids[16];
    uint32_t count;
};

static void note_culprit(void *arg, const skua_stall *stall)
{
    struct culprits *culprits = arg;
    (void)pthread_mutex_lock(&culprits->lock);
    if (culprits->count < COUNT_OF(culprits->pids)) {
        culprits->pids[culprits->count++] = stall->pid;
    }
    (void)pthread_mutex_unlock(&culprits->lock);
}

static bool is_culprit(struct culprits *culprits, skua_pid pid)
{
    bool found = false;
    (void)pthread_mutex_lock(&culprits->lock);
    for (uint32_t i = 0; i < culprits->count; i++) {
        found = found || skua_pid_equal(culprits->pids[i], pid);
    }
    (void)pthread_mutex_unlock(&culprits->lock);
    return found;
}

struct suspicion {
    struct culprits *culprits;
    skua_pid pid;
};

static bool is_confirmed(void *arg)
{
    const struct suspicion *suspicion = arg;
    return is_culprit(suspicion->culprits, suspicion->pid);
}

/* By the time that a step which began later is found stuck, this one would have been, too. */
TEST(blocking_step_is_no_stall)
{
    struct culprits culprits = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct stretch stretch;
    struct blocker blocker;
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1,
                                           .stall_limit_ns = 10 * SKUA_MILLISECOND,
                                           .on_stall = note_culprit,
                                           .on_stall_arg = &culprits});
    api_start(&api);
    stretch_submit(&stretch, &api);
    tally_wait(&stretch.entered, 1);
    for (int i = 0; i < 3; i++) {
        blocker_start(&blocker, &api);
        struct suspicion suspicion = {&culprits, blocker.pid};
        wait_until(is_confirmed, &suspicion, "the stall to be reported");
        blocker_release(&blocker);
        api_wait_end(&api, blocker.pid);
    }
    assert_false(is_culprit(&culprits, stretch.pid));
    stretch_end(&stretch, &api);
    api_stop(&api);
}

TEST(blocking_step_that_does_not_return_makes_the_stop_stuck)
{
    struct stretch stretch;
    struct api api;
    run_unwatched(&api, 1, 0);
    stretch_submit(&stretch, &api);
    tally_wait(&stretch.entered, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, 0), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(api.runtime), SKUA_E_BUSY);
    tally_add(&stretch.released, 1);
    assert_int_equal(skua_runtime_stop(api.runtime, HANG_NS), SKUA_E_TIMEOUT);
    assert_int_equal(stretch.end, 0);
    api_stop(&api);
}

/* While the stop waits for one step, others that are spare workers' own go on to their end. */
TEST(blocking_step_does_not_keep_others_from_ending)
{
    struct stretch stretch;
    struct probe probes[50] = {{0}};
    struct api api;
    run_unwatched(&api, 1, 0);
    stretch_submit(&stretch, &api);
    tally_wait(&stretch.entered, 1);
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        (void)api_submit(&api, &probe_type, &probes[i]);
    }
    struct stopper stopper = {.api = &api};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_in_thread, &stopper), 0);
    api_wait_live(&api, 1); /* all but the one that blocks */
    for (size_t i = 0; i < COUNT_OF(probes); i++) {
        assert_probe_stopped_once(&probes[i]);
    }
    tally_add(&stretch.released, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(stopper.result, 0);
    api_stop(&api);
}
