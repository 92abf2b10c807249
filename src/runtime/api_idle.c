/* SPDX-License-Identifier: MIT */
/* The functions of skua/net.h and skua/blocking.h, but for the yields. */
#include <skua/net.h>

#include "base/mutex.h"
#include "base/sized.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/shutdown.h"
#include "sched/spare.h"

int skua_descriptor_close(skua_runtime *runtime, int fd)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = net_close_descriptor(&runtime->net, worker, fd);
    caller_leave(runtime, worker);
    return error;
}

int skua_blocking_register(skua_runtime *runtime, const skua_blocking_pool *pool, skua_pool *handle)
{
    if (runtime == NULL || pool == NULL || pool->name == NULL || pool->name[0] == '\0' ||
        !reserved_are_zero(pool->reserved, sizeof pool->reserved)) {
        return SKUA_E_INVALID;
    }
    if (shutdown_phase(&runtime->sched) != PHASE_CREATED) {
        return SKUA_E_FROZEN; /* without waiting for a stop in progress */
    }
    mutex_lock(&runtime->sched.control);
    const bool created = shutdown_phase(&runtime->sched) == PHASE_CREATED;
    const int error = created ? blocking_add_locked(&runtime->blocking, pool) : SKUA_E_FROZEN;
    mutex_unlock(&runtime->sched.control);
    return error != 0 || handle == NULL ? error
                                        : blocking_find(&runtime->blocking, pool->name, handle);
}

int skua_blocking_find(skua_runtime *runtime, const char *name, skua_pool *handle)
{
    if (runtime == NULL || name == NULL || handle == NULL) {
        return SKUA_E_INVALID;
    }
    return blocking_find(&runtime->blocking, name, handle);
}

int skua_blocking_begin(skua_context *ctx)
{
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    if (refused != 0 || ctx->worker == NULL) {
        return refused;
    }
    if (ctx->worker->blocks) {
        return SKUA_E_INVALID;
    }
    spare_begin_block(ctx->worker);
    return 0;
}

int skua_blocking_end(skua_context *ctx)
{
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    if (refused != 0 || ctx->worker == NULL) {
        return refused;
    }
    if (!ctx->worker->blocks) {
        return SKUA_E_INVALID;
    }
    spare_end_block(ctx->worker);
    return 0;
}
