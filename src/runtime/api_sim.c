/* SPDX-License-Identifier: MIT */
/* The functions of skua/sim.h, but for skua_sim_record_format. */
#include <skua/sim.h>

#include "process/payload.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/spawn.h"

/* 0, or the reason why this thread cannot drive the simulation. */
static int refuse(skua_runtime *runtime)
{
    if (runtime == NULL || runtime->sim == NULL) {
        return SKUA_E_INVALID;
    }
    return worker_is_in_callback(&runtime->sched) ? SKUA_E_INSIDE_STEP : 0;
}

int skua_sim_run(skua_runtime *runtime, uint64_t until_ns)
{
    const int refused = refuse(runtime);
    if (refused != 0) {
        return refused;
    }
    struct worker *worker = caller_enter(runtime);
    const int result = sim_run(runtime->sim, until_ns);
    caller_leave(runtime, worker);
    return result;
}

int skua_sim_step(skua_runtime *runtime)
{
    const int refused = refuse(runtime);
    if (refused != 0) {
        return refused;
    }
    struct worker *worker = caller_enter(runtime);
    const int result = sim_step(runtime->sim);
    caller_leave(runtime, worker);
    return result;
}

uint64_t skua_sim_now(skua_runtime *runtime)
{
    return runtime != NULL && runtime->sim != NULL ? sim_now(runtime->sim) : 0;
}

uint64_t skua_sim_hash(skua_runtime *runtime)
{
    return runtime != NULL && runtime->sim != NULL ? runtime->sim->hash : 0;
}

int skua_sim_faults_set(skua_runtime *runtime, const skua_sim_faults *faults)
{
    if (runtime == NULL || runtime->sim == NULL || faults == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int result = sim_set_faults(runtime->sim, faults);
    caller_leave(runtime, worker);
    return result;
}

int skua_sim_host_submit_from(skua_runtime *runtime, uint32_t host, const skua_process_type *type,
                              skua_payload *payload, skua_pid *pid)
{
    if (runtime == NULL || runtime->sim == NULL || payload == NULL) {
        payload_discard(payload);
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = sim_host_submit(
        runtime->sim, worker, host,
        &(struct spawn_request){.type = type,
                                .input = payload,
                                .input_count = 1,
                                .pid = pid,
                                .starter = worker != NULL ? context_of_call(worker) : NULL});
    caller_leave(runtime, worker);
    payload_mark_taken(payload);
    return error;
}

int skua_sim_partition(skua_runtime *runtime, uint32_t a, uint32_t b, bool both_ways)
{
    if (runtime == NULL || runtime->sim == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = sim_partition(runtime->sim, a, b, both_ways);
    caller_leave(runtime, worker);
    return error;
}

int skua_sim_heal(skua_runtime *runtime, uint32_t a, uint32_t b)
{
    if (runtime == NULL || runtime->sim == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = sim_heal(runtime->sim, a, b);
    caller_leave(runtime, worker);
    return error;
}

int skua_sim_latency_set(skua_runtime *runtime, uint32_t a, uint32_t b, uint64_t latency_ns)
{
    if (runtime == NULL || runtime->sim == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = sim_set_latency(runtime->sim, a, b, latency_ns);
    caller_leave(runtime, worker);
    return error;
}

int skua_sim_complete_after(skua_runtime *runtime, skua_completion completion, uint64_t delay_ns,
                            int error, skua_payload result)
{
    if (runtime == NULL || runtime->sim == NULL) {
        skua_payload_drop(&result);
        return SKUA_E_INVALID;
    }
    return sim_complete_after(runtime->sim, completion, delay_ns, error, &result);
}
