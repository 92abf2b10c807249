/* SPDX-License-Identifier: MIT */
/* The functions of skua/process.h that a process calls in init and step. */
#include <stdalign.h>

#include "base/random.h"
#include "process/payload.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/spawn.h"

skua_pid skua_context_self(const skua_context *ctx)
{
    return ctx != NULL ? ctx->self : (skua_pid){0};
}

skua_runtime *skua_context_runtime(const skua_context *ctx)
{
    return ctx != NULL ? ctx->sched->runtime : NULL;
}

uint64_t skua_context_now(skua_context *ctx)
{
    if (ctx == NULL) {
        return 0;
    }
    if (ctx->now == 0) {
        ctx->now = time_now(ctx->sched->time); /* most steps never ask, and asking takes 20 ns */
    }
    return ctx->now;
}

uint64_t skua_context_random(skua_context *ctx)
{
    if (ctx == NULL) {
        return 0;
    }
    /* The key leaves out the runtime's number, which depends on what else the program created. */
    const uint64_t process = ctx->self.bits << PID_RUNTIME_BITS;
    const uint64_t steps = process_progress(ctx->process) >> PROCESS_STEP_SHIFT;
    const uint64_t key = random_mix(ctx->sched->config.seed ^ random_mix(process));
    return random_mix(random_mix(key + steps) + RANDOM_STEP * ++ctx->random_calls);
}

int skua_context_send_from(skua_context *ctx, skua_pid to, skua_payload *payload)
{
    if (UNLIKELY(ctx == NULL || payload == NULL)) {
        payload_drop_all(payload, payload != NULL ? 1 : 0);
        return SKUA_E_INVALID;
    }
    struct sim *sim = ctx->sched->runtime->sim;
    const int error = UNLIKELY(sim != NULL)
                          ? sim_send(sim, ctx->worker, ctx->self, to, payload)
                          : deliver_message(ctx->sched, ctx->worker, ctx->self, to, payload);
    payload->storage = SKUA_PAYLOAD_EMPTY; /* sent or dropped, it is gone */
    return error;
}

int skua_context_spawn(skua_context *ctx, const skua_process_type *type, const char *method,
                       skua_payload *input, size_t input_count, skua_pid *pid)
{
    if (UNLIKELY(ctx == NULL)) {
        payload_drop_all(input, input != NULL ? input_count : 0);
        return SKUA_E_INVALID;
    }
    return spawn_process(ctx->sched, ctx->worker,
                         &(struct spawn_request){
                             .type = type,
                             .method = method,
                             .input = input,
                             .input_count = input_count,
                             .pid = pid,
                         });
}

void *skua_context_alloc(skua_context *ctx, size_t size)
{
    if (ctx == NULL || size == 0 || size > PTRDIFF_MAX) {
        return NULL;
    }
    return allocator_alloc(&ctx->sched->allocator, size, alignof(max_align_t));
}

void skua_context_free(skua_context *ctx, void *pointer, size_t size)
{
    if (ctx != NULL) {
        allocator_free(&ctx->sched->allocator, pointer, size, alignof(max_align_t));
    }
}
