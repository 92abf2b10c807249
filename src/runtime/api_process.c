/* SPDX-License-Identifier: MIT */
/* The functions of skua/process.h that are called from anywhere. */
#include "base/monotonic.h"
#include "base/sized.h"
#include "process/payload.h"
#include "runtime/caller.h"
#include "runtime/runtime.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/process_info.h"
#include "sched/spawn.h"

/* By pointer: a copy would wait for the fields that were written just before. */
static int submit(skua_runtime *runtime, struct spawn_request *request)
{
    struct worker *worker = caller_enter(runtime);
    request->starter = worker != NULL ? context_of_call(worker) : NULL;
    const int error = spawn_process(&runtime->sched, worker, request);
    caller_leave(runtime, worker);
    return error;
}

int skua_process_type_check(const skua_process_type *type)
{
    return spawn_type_is_valid(type) ? 0 : SKUA_E_INVALID;
}

int skua_process_submit_from(skua_runtime *runtime, const skua_process_type *type,
                             skua_payload *payload, skua_pid *pid)
{
    if (runtime == NULL || payload == NULL) {
        payload_discard(payload);
        return SKUA_E_INVALID;
    }
    const int error = submit(
        runtime,
        &(struct spawn_request){.type = type, .input = payload, .input_count = 1, .pid = pid});
    payload_mark_taken(payload);
    return error;
}

/* Reads a caller's options. If they are refused, their payloads are dropped as far as they are
 * known. */
static int read_options(const skua_runtime *runtime, const skua_spawn_options *options, size_t size,
                        skua_spawn_options *own)
{
    if (options == NULL) {
        return SKUA_E_INVALID;
    }
    const bool known = sized_read(own, sizeof *own, options, size);
    if (runtime == NULL || !known) {
        payload_discard_all(own->input, own->input != NULL ? own->input_count : 0);
        return SKUA_E_INVALID;
    }
    return 0;
}

int skua_process_submit_with_sized(skua_runtime *runtime, const skua_spawn_options *options,
                                   skua_pid *pid, size_t options_size)
{
    skua_spawn_options own;
    const int error = read_options(runtime, options, options_size, &own);
    if (error != 0) {
        return error;
    }
    struct spawn_request request = spawn_request_of(&own, pid);
    return submit(runtime, &request);
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
    if (runtime == NULL || reason > 0) {
        return SKUA_E_INVALID;
    }
    const int why = reason != 0 ? reason : SKUA_E_CANCELLED;
    struct worker *worker = caller_enter(runtime);
    const int error = runtime->sim != NULL && worker != NULL
                          ? sim_cancel(runtime->sim, pid, why)
                          : deliver_cancel(&runtime->sched, worker, pid, why);
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
    if (error != 0 && exit_wait_remove(sched, &waiter)) {
        return error;
    }
    return wait_paused(runtime, &waiter, timeout_ns);
}

/* A program that does not know of results cannot drop one. */
static void give_exit(skua_exit *exit, size_t exit_size, skua_exit *own)
{
    sized_write(exit, exit_size, own, sizeof *own);
    if (exit_size < offsetof(skua_exit, result) + sizeof own->result) {
        skua_payload_drop(&own->result);
    }
}

int skua_process_wait_sized(skua_runtime *runtime, skua_pid pid, uint64_t timeout_ns,
                            skua_exit *exit, size_t exit_size)
{
    if (runtime == NULL) {
        return SKUA_E_INVALID;
    }
    if (timeout_ns > SKUA_DURATION_MAX && timeout_ns != SKUA_FOREVER) {
        return SKUA_E_DURATION;
    }
    struct worker *worker = caller_enter(runtime);
    if (worker != NULL) {
        return SKUA_E_INSIDE_STEP;
    }
    skua_exit own;
    const int error = wait_for(runtime, pid, timeout_ns, exit != NULL ? &own : NULL);
    caller_leave(runtime, worker);
    if (error == 0 && exit != NULL) {
        give_exit(exit, exit_size, &own);
    }
    return error;
}

/* Starts a process on a thread that is not a worker's, and waits for it. */
static int run_and_wait(skua_runtime *runtime, struct spawn_request request, skua_exit *exit,
                        size_t exit_size)
{
    skua_exit own;
    struct exit_waiter waiter = {.exit = exit != NULL ? &own : NULL};
    request.waiter = &waiter;
    struct worker *worker = caller_enter(runtime);
    int error = spawn_process(&runtime->sched, NULL, &request);
    if (error == 0) {
        error = wait_paused(runtime, &waiter, SKUA_FOREVER);
    }
    caller_leave(runtime, worker);
    if (error == 0 && exit != NULL) {
        give_exit(exit, exit_size, &own);
    }
    return error;
}

int skua_process_run_sized(skua_runtime *runtime, const skua_process_type *type,
                           skua_payload *payload, skua_exit *exit, size_t exit_size)
{
    if (runtime == NULL || payload == NULL || worker_here(&runtime->sched) != NULL) {
        payload_discard(payload);
        return runtime == NULL || payload == NULL ? SKUA_E_INVALID : SKUA_E_INSIDE_STEP;
    }
    const struct spawn_request request = {.type = type, .input = payload, .input_count = 1};
    return run_and_wait(runtime, request, exit, exit_size);
}

int skua_process_run_with_sized(skua_runtime *runtime, const skua_spawn_options *options,
                                skua_exit *exit, size_t options_size, size_t exit_size)
{
    skua_spawn_options own;
    const int error = read_options(runtime, options, options_size, &own);
    if (error != 0) {
        return error;
    }
    if (worker_here(&runtime->sched) != NULL) {
        payload_discard_all(own.input, own.input != NULL ? own.input_count : 0);
        return SKUA_E_INSIDE_STEP;
    }
    return run_and_wait(runtime, spawn_request_of(&own, NULL), exit, exit_size);
}

int skua_process_info_sized(skua_runtime *runtime, skua_pid pid, skua_process_snapshot *snapshot,
                            size_t snapshot_size)
{
    if (runtime == NULL || snapshot == NULL) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    skua_process_snapshot own;
    const int error = process_info_read(&runtime->sched, pid, &own);
    if (error == 0) {
        sized_write(snapshot, snapshot_size, &own, sizeof own);
    }
    caller_look_away(runtime, worker);
    return error;
}

/* Snapshots that are copied to the caller's array at once. */
#define LIST_PAGE 16

static int list(skua_runtime *runtime, skua_pid after, skua_process_snapshot *snapshots,
                size_t capacity, size_t stride)
{
    struct process *process;
    if (process_table_find(&runtime->sched.table, after, &process) == SKUA_E_FOREIGN_PID) {
        return SKUA_E_FOREIGN_PID;
    }
    const size_t most = capacity < SKUA_PROCESSES_MAX ? capacity : SKUA_PROCESSES_MAX;
    size_t count = 0;
    uint32_t read = LIST_PAGE;
    while (count < most && read == LIST_PAGE) {
        skua_process_snapshot page[LIST_PAGE];
        const size_t room = most - count < LIST_PAGE ? most - count : LIST_PAGE;
        read = process_info_list(&runtime->sched, after, page, (uint32_t)room);
        for (uint32_t i = 0; i < read; i++) {
            sized_write((char *)snapshots + (count + i) * stride, stride, &page[i], sizeof page[i]);
            after = page[i].pid;
        }
        count += read;
    }
    return (int)count;
}

int skua_process_list_sized(skua_runtime *runtime, skua_pid after, skua_process_snapshot *snapshots,
                            size_t capacity, size_t stride)
{
    if (runtime == NULL || (snapshots == NULL && capacity > 0) || stride == 0) {
        return SKUA_E_INVALID;
    }
    const struct worker *worker = caller_look(runtime);
    const int count = list(runtime, after, snapshots, capacity, stride);
    caller_look_away(runtime, worker);
    return count;
}
