/* SPDX-License-Identifier: MIT */
/* What only a step may ask for: the functions of skua/process.h that write to its output. */
#include "process/payload.h"
#include "runtime/runtime.h"
#include "sched/context.h"

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
