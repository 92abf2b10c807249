/* SPDX-License-Identifier: MIT */
#include "blocking/blocking.h"

#include <stdalign.h>
#include <string.h>

#include "process/payload.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/worker.h"

#define THREADS_DEFAULT 16
#define QUEUE_DEFAULT   65536
#define IDLE_DEFAULT    (UINT64_C(10) * 1000000000)

/* A function on its way to a pool: first the argument of the yield, then a job of the pool. */
struct blocking_call {
    struct blocking_job job;
    struct scheduler *sched;
    skua_pool pool;
    skua_blocking_fn *function;
    skua_payload input;
    skua_completion completion; /* set when the yield is carried out */
    /* Its step has said skua_done: the function is called whatever becomes of the process. */
    bool is_last;
    bool was_called; /* the function; with this outcome */
    int error;
    skua_payload result;
};

static void free_call(struct blocking_call *call)
{
    skua_payload_drop(&call->input);
    allocator_free(&call->sched->allocator, call, sizeof *call, alignof(struct blocking_call));
}

/* ---- in a step ---- */

/* Allocates the call before the yield is added, so that a refusal leaves nothing behind. */
static int yield_call(skua_context *ctx, struct step_output *out, uint64_t tag, skua_pool pool,
                      skua_blocking_fn *function, skua_payload *input, uint64_t timeout_ns)
{
    const int refused = payload_refuse(input, out->payload_limit);
    if (refused != 0) {
        return refused;
    }
    const struct allocator *allocator = out->allocator;
    struct blocking_call *call =
        allocator_alloc(allocator, sizeof *call, alignof(struct blocking_call));
    if (call == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    struct yield *yield;
    const int error =
        step_output_yield(out, tag, service_command(SERVICE_BLOCKING), timeout_ns, &yield);
    if (error != 0) {
        allocator_free(allocator, call, sizeof *call, alignof(struct blocking_call));
        return error;
    }
    *call = (struct blocking_call){.sched = ctx->sched,
                                   .pool = pool,
                                   .function = function,
                                   .input = skua_payload_take(input),
                                   .result = skua_payload_empty(0)};
    yield->as.call = call;
    return 0;
}

static bool has_pool(const skua_context *ctx, skua_pool pool)
{
    const struct blocking *blocking = ctx->sched->services[SERVICE_BLOCKING].arg;
    return pool.number < blocking->count;
}

int skua_yield_blocking(skua_context *ctx, uint64_t tag, skua_pool pool, skua_blocking_fn *function,
                        skua_payload input, uint64_t timeout_ns)
{
    int error;
    struct step_output *out = context_output(ctx, &error);
    if (error == 0 && function == NULL) {
        error = SKUA_E_INVALID;
    } else if (error == 0 && !has_pool(ctx, pool)) {
        error = SKUA_E_UNKNOWN_POOL;
    }
    if (error == 0) {
        error = yield_call(ctx, out, tag, pool, function, &input, timeout_ns);
    }
    skua_payload_drop(&input); /* unless it was taken */
    return error;
}

/* ---- on a thread of the pool ---- */

static struct blocking_call *job_call(struct blocking_job *job)
{
    return CONTAINER_OF(job, struct blocking_call, job);
}

static void complete(struct blocking_call *call)
{
    struct scheduler *sched = call->sched;
    (void)fetch_add_seq_cst(&sched->callers, 1); /* MO-caller: this thread is not a worker */
    (void)deliver_completion(sched, NULL, call->completion, call->error, &call->result);
    (void)fetch_sub_seq_cst(&sched->callers, 1); /* MO-caller */
}

static void run_job(struct blocking_job *job)
{
    struct blocking_call *call = job_call(job);
    if (!call->is_last && !deliver_is_open(call->sched, call->completion)) {
        return; /* it was cancelled, or its process has ended */
    }
    const struct scheduler *outer = worker_enter_callback(call->sched);
    const int error = call->function(&call->input, &call->result);
    (void)worker_enter_callback(outer); /* a simulation may run on another runtime's thread */
    skua_payload_drop(&call->input);    /* before anybody is told */
    call->error = error <= 0 ? error : SKUA_E_INVALID;
    call->was_called = true;
}

/* The thread is free by now, so that the process finds it so. */
static void finish_job(struct blocking_job *job)
{
    struct blocking_call *call = job_call(job);
    if (call->was_called) {
        complete(call);
    }
    free_call(call);
}

static void drop_job(struct blocking_job *job)
{
    free_call(job_call(job)); /* its process has ended */
}

/* ---- after the step ---- */

static int submit(struct blocking *blocking, struct named_pool *pool, struct blocking_job *job)
{
    if (UNLIKELY(blocking->simulate != NULL)) {
        return pool->sim_safe ? blocking->simulate(blocking->simulate_arg, job)
                              : SKUA_E_NOT_SIMULATED;
    }
    return blocking_pool_submit(&pool->pool, job);
}

/* The double of a simulated program carries it out instead. */
static int run_double(const struct blocking *blocking, struct blocking_call *call,
                      skua_payload *result)
{
    const int outcome = blocking->stand_in(blocking->simulate_arg, call->completion, call->pool,
                                           call->function, &call->input, result);
    free_call(call);
    return outcome;
}

static int start_call(void *arg, struct worker *worker, const struct yield *yield,
                      skua_completion completion, skua_payload *result)
{
    struct blocking *blocking = arg;
    struct blocking_call *call = yield->as.call;
    call->completion = completion;
    call->is_last = worker->out.status == STEP_DONE;
    call->job = (struct blocking_job){
        .run = run_job, .finish = finish_job, .drop = call->is_last ? NULL : drop_job};
    if (UNLIKELY(blocking->stand_in != NULL)) {
        return run_double(blocking, call, result);
    }
    /* The pool may have run and freed the call by the time submit returns 0. */
    const int error = submit(blocking, &blocking->pools[call->pool.number], &call->job);
    if (error != 0) {
        free_call(call);
    }
    return error != 0 ? error : SKUA_PENDING;
}

static void discard_call(struct worker *worker, const struct yield *yield)
{
    (void)worker;
    free_call(yield->as.call);
}

const skua_payload *blocking_input(const struct yield *yield)
{
    return &yield->as.call->input;
}

void blocking_attach(struct blocking *blocking)
{
    blocking->sched->services[SERVICE_BLOCKING] = (struct service){
        .name = "blocking", .start = start_call, .discard = discard_call, .arg = blocking};
}

/* ---- the pools ---- */

static struct named_pool *find_pool(struct blocking *blocking, const char *name)
{
    for (uint32_t i = 0; i < blocking->count; i++) {
        if (strcmp(blocking->pools[i].name, name) == 0) {
            return &blocking->pools[i];
        }
    }
    return NULL;
}

int blocking_find(struct blocking *blocking, const char *name, skua_pool *handle)
{
    const struct named_pool *pool = find_pool(blocking, name);
    if (pool == NULL) {
        *handle = (skua_pool){UINT32_MAX}; /* zero would be the default pool */
        return SKUA_E_UNKNOWN_POOL;
    }
    *handle = (skua_pool){(uint32_t)(pool - blocking->pools)};
    return 0;
}

static void init_pool(struct blocking *blocking, struct named_pool *named,
                      const skua_blocking_pool *pool)
{
    const uint32_t queue = pool->queue_limit != 0 ? pool->queue_limit : QUEUE_DEFAULT;
    const struct blocking_pool_limits limits = {
        .threads = pool->thread_limit != 0 ? pool->thread_limit : THREADS_DEFAULT,
        .queue = pool->direct ? 0 : queue,
        .idle_ns = pool->idle_ns != 0 ? pool->idle_ns : IDLE_DEFAULT,
    };
    named->name = pool->name;
    named->sim_safe = pool->sim_safe;
    blocking_pool_init(&named->pool, pool->name, &limits, &blocking->sched->allocator);
}

void blocking_init(struct blocking *blocking, struct scheduler *sched)
{
    blocking->sched = sched;
    blocking->count = 1;
    init_pool(blocking, &blocking->pools[0], &(skua_blocking_pool){.name = SKUA_BLOCKING_DEFAULT});
}

int blocking_add_locked(struct blocking *blocking, const skua_blocking_pool *pool)
{
    struct named_pool *existing = find_pool(blocking, pool->name);
    if (existing == &blocking->pools[0] && !blocking->default_is_set) {
        blocking->default_is_set = true;
        blocking_pool_deinit(&existing->pool);
        init_pool(blocking, existing, pool);
        return 0;
    }
    if (existing != NULL) {
        return SKUA_E_POOL_EXISTS;
    }
    if (blocking->count == SKUA_BLOCKING_POOLS_MAX) {
        return SKUA_E_INVALID;
    }
    init_pool(blocking, &blocking->pools[blocking->count++], pool);
    return 0;
}

bool blocking_stop_locked(struct blocking *blocking, uint64_t deadline_ns)
{
    bool stopped = true;
    for (uint32_t i = 0; i < blocking->count; i++) {
        stopped = blocking_pool_stop(&blocking->pools[i].pool, deadline_ns) && stopped;
    }
    return stopped;
}

void blocking_deinit(struct blocking *blocking)
{
    for (uint32_t i = 0; i < blocking->count; i++) {
        blocking_pool_deinit(&blocking->pools[i].pool);
    }
}
