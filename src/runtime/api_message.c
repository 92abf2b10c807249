/* SPDX-License-Identifier: MIT */
/* Messages from any thread, and the payloads in the runtime's memory. */
#include "process/payload.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"

int skua_process_send(skua_runtime *runtime, skua_pid to, skua_payload payload)
{
    if (runtime == NULL) {
        skua_payload_drop(&payload);
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const skua_pid nobody = {0};
    const int error = UNLIKELY(runtime->sim != NULL)
                          ? sim_send(runtime->sim, worker, nobody, to, &payload)
                          : deliver_message(&runtime->sched, worker, nobody, to, &payload);
    caller_leave(runtime, worker);
    return error;
}

int skua_process_send_urgent(skua_runtime *runtime, skua_pid to, skua_payload payload)
{
    if (runtime == NULL) {
        skua_payload_drop(&payload);
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const skua_pid nobody = {0};
    const int error = runtime->sim != NULL
                          ? sim_send_urgent(runtime->sim, worker, nobody, to, &payload)
                          : deliver_urgent(&runtime->sched, worker, nobody, to, &payload);
    caller_leave(runtime, worker);
    return error;
}

/* 0, or the reason why a payload of these bytes cannot be made. */
static int refuse_bytes(const skua_runtime *runtime, const void *data, size_t size)
{
    if (runtime == NULL || (data == NULL && size > 0)) {
        return SKUA_E_INVALID;
    }
    return size <= runtime->sched.config.payload_limit ? 0 : SKUA_E_PAYLOAD_SIZE;
}

int skua_payload_copy(skua_runtime *runtime, uint32_t type, const void *data, size_t size,
                      skua_payload *payload)
{
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    *payload = skua_payload_empty(type);
    const int refused = refuse_bytes(runtime, data, size);
    return refused != 0 ? refused
                        : payload_copy(&runtime->sched.allocator, type, data, size, payload);
}

int skua_payload_shared(skua_runtime *runtime, uint32_t type, const void *data, size_t size,
                        skua_payload *payload)
{
    if (payload == NULL) {
        return SKUA_E_INVALID;
    }
    *payload = skua_payload_empty(type);
    const int refused = refuse_bytes(runtime, data, size);
    return refused != 0 ? refused
                        : payload_share(&runtime->sched.allocator, type, data, size, payload);
}
