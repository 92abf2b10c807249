/* SPDX-License-Identifier: MIT */
/* The functions of skua/command.h. */
#include <skua/command.h>

#include "base/mutex.h"
#include "base/sized.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/shutdown.h"

int skua_command_register(skua_runtime *runtime, uint32_t id, const skua_handler *handler)
{
    if (runtime == NULL || handler == NULL || handler->run == NULL ||
        !reserved_are_zero(handler->reserved, sizeof handler->reserved)) {
        return SKUA_E_INVALID;
    }
    if (id >= SKUA_COMMAND_RESERVED) {
        return SKUA_E_RESERVED;
    }
    if (shutdown_phase(&runtime->sched) != PHASE_CREATED) {
        return SKUA_E_FROZEN; /* without waiting for a stop in progress */
    }
    mutex_lock(&runtime->sched.control); /* start freezes the registry */
    const int error = runtime->sim != NULL ? sim_register(runtime->sim, id, handler)
                                           : registry_add_locked(&runtime->registry, id, handler);
    mutex_unlock(&runtime->sched.control);
    return error;
}

int skua_command_complete(skua_runtime *runtime, skua_completion completion, int error,
                          skua_payload result)
{
    if (runtime == NULL || error > 0) {
        skua_payload_drop(&result);
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int outcome = deliver_completion(&runtime->sched, worker, completion, error, &result);
    caller_leave(runtime, worker);
    return outcome;
}
