/* SPDX-License-Identifier: MIT */
#include "blocking/blocking.h"

#include <stdalign.h>
#include <string.h>

#include "dispatch/reserved.h"
#include "process/step_output.h"
#include "sched/deliver.h"
#include "sched/worker.h"

#define THREADS_DEFAULT 16
#define QUEUE_DEFAULT   65536
#define IDLE_DEFAULT    (UINT64_C(10) * 1000000000)

/* A function on its way to a pool: first the payload of the command, then a job of the pool. */
struct call {
    struct blocking_job job;
    struct scheduler *sched; /* set by the handler */
    const struct allocator *allocator;
    skua_blocking_fn *function;
    skua_payload input;
    skua_completion completion;
    size_t size;
    char pool[]; /* its name */
};

static void free_call(struct call *call)
{
    skua_payload_drop(&call->input);
    allocator_free(call->allocator, call, call->size, alignof(struct call));
}

/* ---- in a step ---- */

static void drop_payload(void *data, size_t size)
{
    (void)size;
    free_call(data);
}

static int yield_call(skua_step *out, uint64_t tag, const char *pool, skua_blocking_fn *function,
                      const skua_payload *input)
{
    if (skua_payload_size(input) > out->payload_limit) {
        return SKUA_E_PAYLOAD_SIZE;
    }
    const char *name = pool != NULL ? pool : SKUA_BLOCKING_DEFAULT;
    const size_t size = sizeof(struct call) + strlen(name) + 1;
    struct call *call = allocator_alloc(out->allocator, size, alignof(struct call));
    if (call == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    *call = (struct call){
        .allocator = out->allocator,
        .function = function,
        .input = skua_payload_empty(0), /* until nothing can fail any more */
        .size = size,
    };
    memcpy(call->pool, name, strlen(name) + 1);
    const int error = skua_step_yield(out, reserved_id(RESERVED_BLOCKING), tag,
                                      skua_payload_pointer(0, call, drop_payload));
    if (error == 0) {
        call->input = *input;
    }
    return error;
}

int skua_step_blocking(skua_step *out, uint64_t tag, const char *pool, skua_blocking_fn *function,
                       skua_payload input)
{
    const bool valid = out != NULL && out->open && function != NULL;
    const int error = valid ? yield_call(out, tag, pool, function, &input) : SKUA_E_INVALID;
    if (error != 0) {
        step_output_refuse(out);
        skua_payload_drop(&input);
    }
    return error;
}

/* ---- on a thread of the pool ---- */

static struct call *blocking_call_of(struct blocking_job *job)
{
    return CONTAINER_OF(job, struct call, job);
}

static void complete(struct call *call, int error, skua_payload *result)
{
    struct scheduler *sched = call->sched;
    (void)fetch_add_seq_cst(&sched->callers, 1); /* MO-caller: this thread is not a worker */
    (void)deliver_completion(sched, NULL, call->completion, error, result);
    (void)fetch_sub_seq_cst(&sched->callers, 1); /* MO-caller */
}

static void run_job(struct blocking_job *job)
{
    struct call *call = blocking_call_of(job);
    if (deliver_is_open(call->sched, call->completion)) { /* it may have been cancelled */
        skua_payload result = skua_payload_empty(0);
        const struct scheduler *outer = worker_enter_callback(call->sched);
        const int error = call->function(&call->input, &result);
        (void)worker_enter_callback(outer); /* a simulation may run on another runtime's thread */
        skua_payload_drop(&call->input);    /* before anybody is told */
        complete(call, error <= 0 ? error : SKUA_E_INVALID, &result);
    }
    free_call(call);
}

static void drop_job(struct blocking_job *job)
{
    free_call(blocking_call_of(job)); /* its process has ended */
}

/* ---- the handler ---- */

static struct named_pool *find_pool(struct blocking *blocking, const char *name)
{
    for (uint32_t i = 0; i < blocking->count; i++) {
        if (strcmp(blocking->pools[i].name, name) == 0) {
            return &blocking->pools[i];
        }
    }
    return NULL;
}

static int submit(struct blocking *blocking, struct named_pool *pool, struct blocking_job *job)
{
    if (UNLIKELY(blocking->simulate != NULL)) {
        return pool->sim_safe ? blocking->simulate(blocking->simulate_arg, job)
                              : SKUA_E_NOT_SIMULATED;
    }
    return blocking_pool_submit(&pool->pool, job);
}

static int run_command(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    struct blocking *blocking = arg;
    if (command->input.storage != SKUA_PAYLOAD_POINTER ||
        command->input.as.owned.drop != drop_payload) {
        return SKUA_E_INVALID; /* the program has yielded our command itself */
    }
    struct call *call = command->input.as.owned.data;
    struct named_pool *pool = find_pool(blocking, call->pool);
    if (pool == NULL) {
        return SKUA_E_UNKNOWN_POOL;
    }
    call->sched = blocking->sched;
    call->completion = command->completion;
    call->job = (struct blocking_job){.run = run_job, .drop = drop_job};
    /* The pool may have run and freed the call by the time submit returns. */
    skua_payload owned = skua_payload_take(&command->input);
    const int error = submit(blocking, pool, &call->job);
    if (error != 0) {
        skua_payload_drop(&owned);
    }
    return error != 0 ? error : SKUA_PENDING;
}

int blocking_register(struct blocking *blocking, struct registry *registry)
{
    return registry_add_locked(
        registry, reserved_id(RESERVED_BLOCKING),
        &(skua_handler){.name = "blocking", .run = run_command, .arg = blocking});
}

/* ---- the pools ---- */

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
