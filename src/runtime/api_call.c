/* SPDX-License-Identifier: MIT */
/* The functions of skua/call.h that a process calls. */
#include <skua/call.h>

#include "process/payload.h"
#include "relations/request.h"
#include "runtime/runtime.h"
#include "sched/calls.h"
#include "sched/context.h"
#include "sched/deliver.h"

/* ---- asking ---- */

/* The node that will be the request, with its payload. */
static bool make_request(const skua_context *ctx, const skua_payload *payload, uint32_t *index)
{
    if (UNLIKELY(!deliver_acquire_node(ctx->sched, ctx->worker, index))) {
        return false;
    }
    struct event_node *node = event_at(&ctx->sched->events, *index);
    request_begin_owner(node);
    node->as.event.type = SKUA_EVENT_CALL;
    node->as.event.from = ctx->self;
    payload_put(&node->as.event.payload, payload);
    return true;
}

/* What a call is made on behalf of. */
struct behalf {
    skua_request request; /* zero: of nobody */
    uint32_t dependent;   /* a node for it */
    uint64_t deadline;    /* of the request */
};
static const struct behalf of_nobody = {.dependent = OBJECT_NONE, .deadline = SKUA_FOREVER};

static int yield_call(const skua_context *ctx, uint64_t tag, const struct behalf *behalf,
                      skua_pid to, const skua_payload *payload, uint64_t timeout_ns)
{
    int error;
    uint32_t index;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    error = payload_refuse(payload, out->payload_limit);
    if (UNLIKELY(error != 0 || skua_pid_equal(to, ctx->self))) {
        return error != 0 ? error : SKUA_E_INVALID;
    }
    if (UNLIKELY(!make_request(ctx, payload, &index))) {
        return SKUA_E_NO_MEMORY;
    }
    error = step_output_yield(out, tag, service_command(SERVICE_CALL), timeout_ns, &yield);
    if (UNLIKELY(error != 0)) {
        deliver_release_node(ctx->sched, ctx->worker, index);
        return error;
    }
    yield->as.peer.pid = to;
    yield->as.peer.node = index;
    yield->as.peer.dependent = behalf->dependent;
    yield->as.peer.request = behalf->request;
    yield->as.peer.deadline = behalf->deadline;
    return 0;
}

int skua_yield_call_from(skua_context *ctx, uint64_t tag, skua_pid to, skua_payload *payload,
                         uint64_t timeout_ns)
{
    if (UNLIKELY(payload == NULL)) {
        return SKUA_E_INVALID;
    }
    const int error = yield_call(ctx, tag, &of_nobody, to, payload, timeout_ns);
    if (UNLIKELY(error != 0)) {
        skua_payload_drop(payload);
    }
    payload_mark_taken(payload);
    return error;
}

/* What is left of the time that the caller of a request waits, at most `timeout_ns`. */
static uint64_t time_left(skua_context *ctx, uint64_t deadline, uint64_t timeout_ns)
{
    if (deadline == SKUA_FOREVER ||
        (timeout_ns > SKUA_DURATION_MAX && timeout_ns != SKUA_FOREVER)) {
        return timeout_ns;
    }
    const uint64_t now = time_now(ctx->sched->time);
    const uint64_t left = deadline > now ? deadline - now : 0;
    return left < timeout_ns ? left : timeout_ns;
}

static int yield_call_for(skua_context *ctx, uint64_t tag, skua_request request, skua_pid to,
                          const skua_payload *payload, uint64_t timeout_ns)
{
    struct behalf behalf = {.request = request};
    int error = context_refuse_but_step(ctx);
    if (error == 0) {
        error = calls_depend(ctx, request, &behalf.deadline);
    }
    if (error != 0) {
        return error;
    }
    if (!deliver_acquire_node(ctx->sched, ctx->worker, &behalf.dependent)) {
        return SKUA_E_NO_MEMORY;
    }
    error = yield_call(ctx, tag, &behalf, to, payload, time_left(ctx, behalf.deadline, timeout_ns));
    if (error != 0) {
        deliver_release_node(ctx->sched, ctx->worker, behalf.dependent);
    }
    return error;
}

int skua_yield_call_for_from(skua_context *ctx, uint64_t tag, skua_request request, skua_pid to,
                             skua_payload *payload, uint64_t timeout_ns)
{
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    const int error = yield_call_for(ctx, tag, request, to, payload, timeout_ns);
    if (error != 0) {
        skua_payload_drop(payload);
    }
    payload_mark_taken(payload);
    return error;
}

/* ---- answering ---- */

int skua_reply_from(skua_context *ctx, skua_request request, int error, skua_payload *payload)
{
    if (UNLIKELY(payload == NULL)) {
        return SKUA_E_INVALID;
    }
    int refused = context_refuse(ctx, CONTEXT_ANY);
    if (LIKELY(refused == 0)) {
        refused = payload_refuse(payload, ctx->sched->config.payload_limit);
    }
    if (UNLIKELY(refused != 0 || error > 0)) {
        payload_discard(payload);
        return refused != 0 ? refused : SKUA_E_INVALID;
    }
    const int outcome = calls_reply(ctx, request, error, payload);
    payload_mark_taken(payload);
    return outcome;
}

int skua_forward_from(skua_context *ctx, skua_request request, skua_pid to, skua_payload *payload)
{
    int refused;
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    refused = context_refuse_but_step(ctx);
    if (refused == 0 && skua_pid_equal(to, ctx->self)) {
        refused = SKUA_E_INVALID;
    }
    if (refused != 0) {
        payload_discard(payload);
        return refused;
    }
    return calls_forward(ctx, request, to, payload);
}

uint64_t skua_request_deadline(skua_context *ctx, skua_request request)
{
    return context_refuse(ctx, CONTEXT_ANY) == 0 ? calls_deadline(ctx, request) : 0;
}
