/* SPDX-License-Identifier: MIT */
/* What a process does at once: the functions of skua/process.h that take a context, but for those
 * of a step alone (api_step.c). */
#include <stdalign.h>
#include <string.h>

#include "base/random.h"
#include "base/sized.h"
#include "process/payload.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/own_memory.h"
#include "sched/spawn.h"

skua_pid skua_self(const skua_context *ctx)
{
    return context_refuse(ctx, CONTEXT_ANY) == 0 ? ctx->self : (skua_pid){0};
}

skua_runtime *skua_runtime_of(const skua_context *ctx)
{
    return context_refuse(ctx, CONTEXT_ANY) == 0 ? ctx->sched->runtime : NULL;
}

const char *skua_method(const skua_context *ctx)
{
    if (context_refuse(ctx, CONTEXT_ANY) != 0) {
        return NULL;
    }
    return spawn_method_name(process_type(ctx->process), process_method(ctx->process));
}

int skua_init_bytes(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    const int error = context_refuse(ctx, CONTEXT_ANY);
    if (error != 0) {
        return error;
    }
    size_t room = process_type(ctx->process)->state_size;
    unsigned char *at = self;
    for (size_t i = 0; i < count; i++) {
        const size_t size = skua_payload_size(&input[i]);
        if (input[i].storage == SKUA_PAYLOAD_POINTER) {
            return SKUA_E_PAYLOAD_TYPE;
        }
        if (size > room) {
            return SKUA_E_PAYLOAD_SIZE;
        }
        if (size > 0) {
            memcpy(at, skua_payload_data(&input[i]), size);
            at += size;
            room -= size;
        }
    }
    return 0;
}

uint64_t skua_now(skua_context *ctx)
{
    if (context_refuse(ctx, CONTEXT_ANY) != 0) {
        return 0;
    }
    if (ctx->now == 0) {
        ctx->now = time_now(ctx->sched->time); /* most steps never ask, and asking takes 20 ns */
    }
    return ctx->now;
}

uint64_t skua_random(skua_context *ctx)
{
    if (context_refuse(ctx, CONTEXT_ANY) != 0) {
        return 0;
    }
    /* The key leaves out the runtime's number, which depends on what else the program created. */
    const uint64_t process = ctx->self.bits << PID_RUNTIME_BITS;
    const uint64_t key = random_mix(ctx->sched->config.seed ^ random_mix(process));
    return random_mix(random_mix(key + process_steps(ctx->process)) +
                      RANDOM_STEP * ++ctx->random_calls);
}

/* ---- messages ---- */

/* For contexts that are closed, checked or simulated. */
static NOINLINE int send_checked(skua_context *ctx, skua_pid to, skua_payload *payload)
{
    const int refused = context_check(ctx, CONTEXT_ANY);
    if (refused != 0) {
        payload_discard(payload);
        return refused;
    }
    struct sim *sim = ctx->sched->runtime->sim;
    return sim != NULL ? sim_send(sim, ctx->worker, ctx->self, to, payload)
                       : deliver_message(ctx->sched, ctx->worker, ctx->self, to, payload);
}

int skua_send_from(skua_context *ctx, skua_pid to, skua_payload *payload)
{
    if (UNLIKELY(ctx == NULL || payload == NULL)) {
        payload_discard(payload);
        return SKUA_E_INVALID;
    }
    return LIKELY(context_is_plain(ctx))
               ? deliver_message(ctx->sched, ctx->worker, ctx->self, to, payload)
               : send_checked(ctx, to, payload);
}

int skua_send_urgent_from(skua_context *ctx, skua_pid to, skua_payload *payload)
{
    const int refused = payload != NULL ? context_refuse(ctx, CONTEXT_ANY) : SKUA_E_INVALID;
    if (refused != 0) {
        payload_discard(payload);
        return refused;
    }
    struct sim *sim = ctx->sched->runtime->sim;
    return sim != NULL ? sim_send_urgent(sim, ctx->worker, ctx->self, to, payload)
                       : deliver_urgent(ctx->sched, ctx->worker, ctx->self, to, payload);
}

int skua_cancel(skua_context *ctx, skua_pid pid, int reason)
{
    const int refused = context_refuse(ctx, CONTEXT_ANY);
    if (refused != 0 || reason > 0) {
        return refused != 0 ? refused : SKUA_E_INVALID;
    }
    const int error = reason != 0 ? reason : SKUA_E_CANCELLED;
    struct sim *sim = ctx->sched->runtime->sim;
    return sim != NULL && ctx->worker != NULL ? sim_cancel(sim, pid, error)
                                              : deliver_cancel(ctx->sched, ctx->worker, pid, error);
}

int skua_terminate(skua_context *ctx, skua_pid pid)
{
    const int refused = context_refuse(ctx, CONTEXT_ANY);
    return refused != 0 ? refused : deliver_request(ctx->sched, ctx->worker, pid, STATE_KILL);
}

/* ---- processes ---- */

/* Off the path of a spawn. */
static NOINLINE int refuse_spawn(skua_payload *payload, int error)
{
    payload_discard(payload);
    return error;
}

int skua_spawn_from(skua_context *ctx, const skua_process_type *type, skua_payload *payload,
                    skua_pid *pid)
{
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    if (UNLIKELY(refused != 0 || payload == NULL)) {
        return refuse_spawn(payload, refused != 0 ? refused : SKUA_E_INVALID);
    }
    return spawn_from(ctx, type, payload, pid);
}

/* For options of another size, and for what is refused. */
static NOINLINE int start_otherwise(skua_context *ctx, const skua_spawn_options *options,
                                    skua_pid *pid, size_t options_size)
{
    skua_spawn_options own;
    int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    if (options == NULL) {
        return SKUA_E_INVALID;
    }
    if (!sized_read(&own, sizeof own, options, options_size)) {
        refused = SKUA_E_INVALID;
    }
    if (refused != 0) {
        payload_discard_all(own.input, own.input != NULL ? own.input_count : 0);
        return refused;
    }
    struct spawn_request request = spawn_request_of(&own, pid);
    request.parent = ctx;
    request.starter = ctx;
    return spawn_process(ctx->sched, ctx->worker, &request);
}

int skua_spawn_with_sized(skua_context *ctx, const skua_spawn_options *options, skua_pid *pid,
                          size_t options_size)
{
    if (UNLIKELY(options == NULL || options_size != sizeof *options ||
                 context_refuse(ctx, CONTEXT_SPAWNS) != 0)) {
        return start_otherwise(ctx, options, pid, options_size);
    }
    struct spawn_request request = spawn_request_of(options, pid);
    request.parent = ctx;
    request.starter = ctx;
    return spawn_process(ctx->sched, ctx->worker, &request);
}

/* ---- memory ---- */

void *skua_alloc(skua_context *ctx, size_t size)
{
    if (context_refuse(ctx, CONTEXT_ANY) != 0 || size == 0 || size > PTRDIFF_MAX) {
        return NULL;
    }
    return allocator_alloc(&ctx->sched->allocator, size, alignof(max_align_t));
}

void skua_free(skua_context *ctx, void *pointer, size_t size)
{
    if (context_refuse(ctx, CONTEXT_ANY) == 0) {
        allocator_free(&ctx->sched->allocator, pointer, size, alignof(max_align_t));
    }
}

int skua_own_alloc(skua_context *ctx, size_t size, void **pointer)
{
    if (pointer == NULL) {
        return SKUA_E_INVALID;
    }
    *pointer = NULL;
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    if (refused != 0 || size == 0) {
        return refused != 0 ? refused : SKUA_E_INVALID;
    }
    return own_memory_alloc(ctx, size, pointer);
}

int skua_own_free(skua_context *ctx, void *pointer)
{
    const int refused = context_refuse(ctx, CONTEXT_ANY);
    if (refused != 0 || pointer == NULL) {
        return refused;
    }
    return own_memory_free(ctx, pointer);
}

int skua_payload_alloc(skua_context *ctx, uint32_t type, size_t size, void **data,
                       skua_payload *payload)
{
    if (data == NULL || payload == NULL) {
        return SKUA_E_INVALID;
    }
    *data = NULL;
    *payload = skua_payload_empty(type);
    int error = context_refuse(ctx, CONTEXT_ANY);
    if (error == 0 && size == 0) {
        error = SKUA_E_INVALID;
    } else if (error == 0 && size > ctx->sched->config.payload_limit) {
        error = SKUA_E_PAYLOAD_SIZE;
    }
    if (error == 0) {
        error = payload_alloc(&ctx->sched->allocator, type, size, payload);
    }
    *data = payload->as.owned.data; /* null on error: it overlays words[0] */
    return error;
}
