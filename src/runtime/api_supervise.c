/* SPDX-License-Identifier: MIT */
/* The functions of skua/supervisor.h that a supervisor and its children need; the supervisor itself
 * is a program on the public interface (supervise/). */
#include <skua/supervisor.h>
#include <stdio.h>

#include "base/sized.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/children.h"
#include "sched/context.h"
#include "sched/limits.h"
#include "sched/worker.h"

/* The end of a text, in so many bytes. */
static void copy_end(char *to, size_t size, const char *text)
{
    const size_t length = strlen(text);
    (void)snprintf(to, size, "%s", length < size ? text : text + length - (size - 1));
}

int skua_process_path(skua_runtime *runtime, skua_pid pid, char *path, size_t size)
{
    if (runtime == NULL || path == NULL || size == 0) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    struct scheduler *sched = &runtime->sched;
    struct process *process;
    struct lineage_view view;
    char whole[LINEAGE_PATH_SIZE] = "";
    const int error = process_table_find_live(&sched->table, pid, &process);
    if (error == 0 && lineage_read_any(&sched->lineage, pid, &view)) {
        lineage_path_any(&sched->lineage, pid, whole);
    }
    caller_look_away(runtime, worker);
    copy_end(path, size, whole);
    return error;
}

int skua_ready(skua_context *ctx)
{
    const int refused = context_refuse_but_step(ctx);
    return refused != 0 ? refused : children_ready(ctx);
}

int skua_supervise(skua_context *ctx, const skua_supervisor *specification)
{
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    return refused != 0 ? refused : children_supervise(ctx, specification);
}

int skua_blame(skua_context *ctx, skua_pid cause)
{
    const int refused = context_refuse_but_step(ctx);
    return refused != 0 ? refused : children_blame(ctx, cause);
}

int skua_count(skua_context *ctx, enum skua_counted what)
{
    const int refused = context_refuse_but_step(ctx);
    if (refused != 0) {
        return refused;
    }
    switch (what) {
    case SKUA_COUNT_RESTART:
        counter_add_owner(&ctx->worker->stats.restarts, 1);
        return 0;
    case SKUA_COUNT_GIVE_UP:
        counter_add_owner(&ctx->worker->stats.give_ups, 1);
        return 0;
    }
    return SKUA_E_INVALID;
}

int skua_limit(skua_context *ctx, skua_quota quota)
{
    const int refused = context_refuse(ctx, CONTEXT_SPAWNS);
    const bool limits = quota.processes != 0 || quota.messages != 0 || quota.bytes != 0;
    if (refused != 0 || !limits) {
        return refused != 0 ? refused : SKUA_E_INVALID;
    }
    return limits_set(ctx, &quota);
}

int skua_process_quota_sized(skua_runtime *runtime, skua_pid pid, skua_quota_use *use,
                             size_t use_size)
{
    if (runtime == NULL || use == NULL) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    skua_quota_use own;
    const int error = limits_read(&runtime->sched, pid, &own);
    if (error == 0) {
        sized_write(use, use_size, &own, sizeof own);
    }
    caller_look_away(runtime, worker);
    return error;
}
