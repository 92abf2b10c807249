/* SPDX-License-Identifier: MIT */
/* The functions of skua/message.h and skua/payload.h. */
#include <skua/message.h>

#include "process/payload.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"

int skua_message_send(skua_runtime *runtime, skua_pid to, skua_payload payload)
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

int skua_payload_copy(skua_runtime *runtime, uint32_t type, const void *data, size_t size,
                      skua_payload *out)
{
    if (out == NULL) {
        return SKUA_E_INVALID;
    }
    *out = skua_payload_empty(type);
    if (runtime == NULL || (data == NULL && size > 0)) {
        return SKUA_E_INVALID;
    }
    if (size > runtime->sched.config.payload_limit) {
        return SKUA_E_PAYLOAD_SIZE;
    }
    return payload_copy(&runtime->sched.allocator, type, data, size, out);
}
