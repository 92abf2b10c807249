/* SPDX-License-Identifier: MIT */
/* The functions of skua/process.h that are called from anywhere. */
#include "base/monotonic.h"
#include "process/payload.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/process_info.h"
#include "sched/spawn.h"

int skua_process_submit(skua_runtime *runtime, const skua_process_type *type, const char *method,
                        skua_payload *input, size_t input_count, skua_pid *pid)
{
    if (runtime == NULL) {
        payload_drop_all(input, input != NULL ? input_count : 0);
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = spawn_process(&runtime->sched, worker,
                                    &(struct spawn_request){
                                        .type = type,
                                        .method = method,
                                        .input = input,
                                        .input_count = input_count,
                                        .pid = pid,
                                    });
    caller_leave(runtime, worker);
    return error;
}

int skua_process_terminate(skua_runtime *runtime, skua_pid pid)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = deliver_request(&runtime->sched, worker, pid, STATE_KILL);
    caller_leave(runtime, worker);
    return error;
}

int skua_process_cancel(skua_runtime *runtime, skua_pid pid, int reason)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    const int error = runtime->sim != NULL && worker != NULL
                          ? sim_cancel(runtime->sim, pid, reason)
                          : deliver_cancel(&runtime->sched, worker, pid, reason);
    caller_leave(runtime, worker);
    return error;
}

/* Waits until a waiter's process has exited; in a simulation, runs it until then. */
static int wait_paused(skua_runtime *runtime, struct exit_waiter *waiter, uint64_t timeout_ns)
{
    if (runtime->sim != NULL) {
        return sim_wait(runtime->sim, waiter, timeout_ns);
    }
    const uint64_t deadline = monotonic_deadline(timeout_ns);
    caller_pause(runtime);
    const int error = exit_wait_until(&runtime->sched, waiter, deadline);
    caller_resume(runtime);
    return error;
}

static int wait_for(skua_runtime *runtime, skua_pid pid, uint64_t timeout_ns, skua_exit *exit)
{
    struct scheduler *sched = &runtime->sched;
    struct exit_waiter waiter = {.pid = pid, .exit = exit};
    exit_wait_add(sched, &waiter);
    const int error = deliver_request(sched, NULL, pid, STATE_WATCHED);
    if (error != 0) {
        exit_wait_remove(sched, &waiter);
        return error;
    }
    return wait_paused(runtime, &waiter, timeout_ns);
}

int skua_process_wait(skua_runtime *runtime, skua_pid pid, uint64_t timeout_ns, skua_exit *exit)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    struct worker *worker = caller_enter(runtime);
    if (worker != NULL) {
        return SKUA_E_INSIDE_STEP;
    }
    const int error = wait_for(runtime, pid, timeout_ns, exit);
    caller_leave(runtime, worker);
    return error;
}

static int run_and_wait(skua_runtime *runtime, const struct spawn_request *request)
{
    const int error = spawn_process(&runtime->sched, NULL, request);
    return error != 0 ? error : wait_paused(runtime, request->waiter, SKUA_FOREVER);
}

int skua_process_run(skua_runtime *runtime, const skua_process_type *type, const char *method,
                     skua_payload *input, size_t input_count, skua_exit *exit)
{
    if (runtime == NULL || worker_here(&runtime->sched) != NULL) {
        payload_drop_all(input, input != NULL ? input_count : 0);
        return runtime == NULL ? SKUA_E_INVALID : SKUA_E_INSIDE_STEP;
    }
    struct exit_waiter waiter = {.exit = exit};
    const struct spawn_request request = {.type = type,
                                          .method = method,
                                          .input = input,
                                          .input_count = input_count,
                                          .waiter = &waiter};
    struct worker *worker = caller_enter(runtime);
    const int error = run_and_wait(runtime, &request);
    caller_leave(runtime, worker);
    return error;
}

int skua_process_info_read(skua_runtime *runtime, skua_pid pid, skua_process_info *info)
{
    if (runtime == NULL || info == NULL) {
        return SKUA_E_INVALID;
    }
    return process_info_read(&runtime->sched, pid, info);
}

int skua_process_list(skua_runtime *runtime, skua_pid after, skua_process_info *infos,
                      size_t capacity)
{
    if (runtime == NULL || (infos == NULL && capacity > 0)) {
        return SKUA_E_INVALID;
    }
    struct process *process;
    if (process_table_find(&runtime->sched.table, after, &process) == SKUA_E_FOREIGN_PID) {
        return SKUA_E_FOREIGN_PID;
    }
    return (int)process_info_list(&runtime->sched, after, infos,
                                  capacity < SKUA_PROCESSES_MAX ? (uint32_t)capacity
                                                                : SKUA_PROCESSES_MAX);
}
