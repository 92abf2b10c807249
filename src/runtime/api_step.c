/* SPDX-License-Identifier: MIT */
/* What only a step may ask for: the functions of skua/process.h that write to its output. */
#include "dispatch/service.h"
#include "process/payload.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/defer.h"
#include "sched/deliver.h"

int skua_continue(skua_context *ctx)
{
    int error;
    struct step_output *out = context_output(ctx, &error);
    if (error == 0 && out->status == STEP_DONE) {
        error = SKUA_E_DONE;
    }
    if (error == 0) {
        out->status = STEP_CONTINUES;
    }
    return error;
}

static int refuse_deferring(const skua_context *ctx)
{
    int error;
    const struct step_output *out = context_output(ctx, &error);
    return error == 0 && out->status == STEP_DONE ? SKUA_E_DONE : error;
}

int skua_defer(skua_context *ctx, skua_event *event)
{
    const int refused = refuse_deferring(ctx);
    if (refused != 0) {
        return refused;
    }
    return event != NULL ? defer_event(ctx, event) : SKUA_E_INVALID;
}

int skua_resume(skua_context *ctx)
{
    const int refused = refuse_deferring(ctx);
    if (refused == 0) {
        defer_resume(ctx);
    }
    return refused;
}

static int finish(const skua_context *ctx, skua_payload *result)
{
    int error;
    struct step_output *out = context_output(ctx, &error);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(out->status == STEP_DONE)) {
        return SKUA_E_DONE;
    }
    if (UNLIKELY(result->storage == SKUA_PAYLOAD_TAKEN)) {
        return SKUA_E_TAKEN;
    }
    out->status = STEP_DONE;
    payload_put(&out->result, result);
    return 0;
}

int skua_done_from(skua_context *ctx, skua_payload *result)
{
    if (UNLIKELY(result == NULL)) {
        return SKUA_E_INVALID;
    }
    const int error = finish(ctx, result);
    if (UNLIKELY(error != 0)) {
        skua_payload_drop(result);
    }
    payload_mark_taken(result);
    return error;
}

static int yield_command(const skua_context *ctx, uint64_t tag, uint32_t command,
                         const skua_payload *payload, uint64_t timeout_ns)
{
    int error;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(command >= SKUA_COMMAND_RESERVED)) {
        return SKUA_E_RESERVED;
    }
    error = payload_refuse(payload, out->payload_limit);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    error = step_output_yield(out, tag, command, timeout_ns, &yield);
    if (LIKELY(error == 0)) {
        payload_put(&yield->as.payload, payload);
    }
    return error;
}

/* The node that will be the message, with its payload. */
static bool make_message(const skua_context *ctx, const skua_payload *payload, uint32_t *index)
{
    if (UNLIKELY(!deliver_acquire_node(ctx->sched, ctx->worker, index))) {
        return false;
    }
    skua_event *event = &event_at(&ctx->sched->events, *index)->as.event;
    event_make(event, SKUA_EVENT_MESSAGE, 0);
    event->from = ctx->self;
    payload_put(&event->payload, payload);
    return true;
}

static int yield_send(const skua_context *ctx, uint64_t tag, skua_pid to,
                      const skua_payload *payload, uint64_t timeout_ns)
{
    int error;
    uint32_t index;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    error = payload_refuse(payload, out->payload_limit);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (UNLIKELY(!make_message(ctx, payload, &index))) {
        return SKUA_E_NO_MEMORY;
    }
    error = step_output_yield(out, tag, service_command(SERVICE_SEND), timeout_ns, &yield);
    if (UNLIKELY(error != 0)) {
        deliver_release_node(ctx->sched, ctx->worker, index);
        return error;
    }
    yield->as.peer.pid = to;
    yield->as.peer.node = index;
    return 0;
}

int skua_yield_send_from(skua_context *ctx, uint64_t tag, skua_pid to, skua_payload *payload,
                         uint64_t timeout_ns)
{
    if (UNLIKELY(payload == NULL)) {
        return SKUA_E_INVALID;
    }
    const int error = yield_send(ctx, tag, to, payload, timeout_ns);
    if (UNLIKELY(error != 0)) {
        skua_payload_drop(payload);
    }
    payload_mark_taken(payload);
    return error;
}

int skua_yield_from(skua_context *ctx, uint64_t tag, uint32_t command, skua_payload *payload,
                    uint64_t timeout_ns)
{
    if (UNLIKELY(payload == NULL)) {
        return SKUA_E_INVALID;
    }
    const int error = yield_command(ctx, tag, command, payload, timeout_ns);
    if (UNLIKELY(error != 0)) {
        skua_payload_drop(payload);
    }
    payload_mark_taken(payload);
    return error;
}

int skua_yield_cancel(skua_context *ctx, uint64_t tag)
{
    int error;
    struct step_output *out = context_output(ctx, &error);
    return error == 0 ? step_output_cancel(out, tag) : error;
}
