/* SPDX-License-Identifier: MIT */
/* The functions of skua/watch.h. */
#include <skua/watch.h>

#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/links.h"

static int yield_watch(const skua_context *ctx, uint64_t tag, enum service_id service, skua_pid pid,
                       uint64_t timeout_ns)
{
    int error;
    uint32_t index;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(skua_pid_equal(pid, ctx->self))) {
        return SKUA_E_INVALID;
    }
    if (UNLIKELY(!deliver_acquire_node(ctx->sched, ctx->worker, &index))) {
        return SKUA_E_NO_MEMORY;
    }
    error = step_output_yield(out, tag, service_command(service), timeout_ns, &yield);
    if (UNLIKELY(error != 0)) {
        deliver_release_node(ctx->sched, ctx->worker, index);
        return error;
    }
    yield->as.peer.pid = pid;
    yield->as.peer.node = index;
    return 0;
}

int skua_yield_monitor(skua_context *ctx, uint64_t tag, skua_pid pid, uint64_t timeout_ns)
{
    return yield_watch(ctx, tag, SERVICE_MONITOR, pid, timeout_ns);
}

int skua_yield_join(skua_context *ctx, uint64_t tag, skua_pid pid, uint64_t timeout_ns)
{
    return yield_watch(ctx, tag, SERVICE_JOIN, pid, timeout_ns);
}

int skua_link(skua_context *ctx, skua_pid pid, uint32_t flags, uint64_t tag, skua_link_id *link)
{
    int error;
    error = context_refuse_but_step(ctx);
    if (link != NULL) {
        *link = (skua_link_id){0};
    }
    return error != 0 ? error : links_make(ctx, pid, flags, tag, link);
}

int skua_unlink(skua_context *ctx, skua_link_id link)
{
    const int refused = context_refuse(ctx, CONTEXT_ANY);
    return refused != 0 ? refused : links_unmake(ctx, link);
}
