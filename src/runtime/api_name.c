/* SPDX-License-Identifier: MIT */
/* The functions of skua/name.h. */
#include <skua/call.h>
#include <skua/name.h>

#include "process/payload.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/naming.h"

/* ---- having a name ---- */

int skua_name_register(skua_context *ctx, const char *name, skua_pid *holder)
{
    uint32_t waiters;
    int error = context_refuse_but_step(ctx);
    if (holder != NULL) {
        *holder = (skua_pid){0};
    }
    if (error == 0) {
        error = naming_register(ctx->sched, ctx->worker, ctx->process, ctx->self, name, holder,
                                &waiters);
    }
    if (error == 0) {
        naming_tell(ctx->sched, ctx->worker, ctx->self, waiters);
    }
    return error;
}

int skua_name_unregister(skua_context *ctx, const char *name)
{
    const int refused = context_refuse(ctx, CONTEXT_ANY);
    return refused != 0 ? refused : naming_unregister(ctx, name);
}

int skua_label(skua_context *ctx, const char *label)
{
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    return refused != 0 ? refused
                        : naming_label(ctx->sched, ctx->worker, ctx->process, ctx->self, label);
}

/* ---- finding a process ---- */

int skua_name_find(skua_runtime *runtime, const char *name, skua_pid *pid)
{
    if (pid == NULL) {
        return SKUA_E_INVALID;
    }
    *pid = (skua_pid){0};
    return runtime == NULL ? SKUA_E_INVALID : names_find_any(&runtime->sched.names, name, pid);
}

static skua_name number_of(struct name_handle handle)
{
    return (skua_name){(uint64_t)handle.generation << 32 | handle.entry};
}

static struct name_handle handle_of(skua_name number)
{
    return (struct name_handle){.entry = (uint32_t)number.bits,
                                .generation = (uint32_t)(number.bits >> 32)};
}

int skua_name_of(skua_runtime *runtime, const char *name, skua_name *number)
{
    struct name_handle handle = {0};
    if (runtime == NULL || number == NULL) {
        return SKUA_E_INVALID;
    }
    const int error = names_handle_any(&runtime->sched.names, name, &handle);
    *number = error == 0 ? number_of(handle) : (skua_name){0};
    return error;
}

int skua_name_holder(skua_runtime *runtime, skua_name number, skua_pid *pid)
{
    if (pid == NULL) {
        return SKUA_E_INVALID;
    }
    *pid = (skua_pid){0};
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    return names_of_handle_any(&runtime->sched.names, handle_of(number), pid);
}

int skua_yield_await_name(skua_context *ctx, uint64_t tag, const char *name, uint64_t timeout_ns)
{
    int error;
    uint32_t node;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    error = error != 0 ? error : names_check(name);
    if (error != 0) {
        return error;
    }
    char *copy = naming_copy(ctx->sched, name);
    if (copy == NULL || !deliver_acquire_node(ctx->sched, ctx->worker, &node)) {
        naming_free_copy(ctx->sched, copy);
        return SKUA_E_NO_MEMORY;
    }
    error = step_output_yield(out, tag, service_command(SERVICE_NAME), timeout_ns, &yield);
    if (error != 0) {
        deliver_release_node(ctx->sched, ctx->worker, node);
        naming_free_copy(ctx->sched, copy);
        return error;
    }
    yield->as.name.text = copy;
    yield->as.name.node = node;
    return 0;
}

/* ---- sending and calling by name ---- */

int skua_send_name(skua_context *ctx, const char *name, skua_payload payload)
{
    skua_pid pid;
    int error = context_refuse(ctx, CONTEXT_ANY);
    error = error != 0 ? error : names_find_any(&ctx->sched->names, name, &pid);
    if (error != 0) {
        skua_payload_drop(&payload);
        return error;
    }
    return skua_send_from(ctx, pid, &payload);
}

int skua_yield_call_name(skua_context *ctx, uint64_t tag, const char *name, skua_payload payload,
                         uint64_t timeout_ns)
{
    skua_pid pid = {0};
    int error = context_refuse_but_step(ctx);
    error = error != 0 ? error : names_find_any(&ctx->sched->names, name, &pid);
    if (error != 0 && error != SKUA_E_NO_PROCESS) {
        skua_payload_drop(&payload);
        return error;
    }
    return skua_yield_call_from(ctx, tag, pid, &payload, timeout_ns);
}
