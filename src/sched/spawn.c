/* SPDX-License-Identifier: MIT */
#include "sched/spawn.h"

#include <stdalign.h>
#include <string.h>

#include "process/payload.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/note.h"
#include "sched/shutdown.h"
#include "sched/slot.h"
#include "sched/worker.h"

#define METHOD_MAIN "main"

/* The type's own copy of the name, or null if it has no such method. */
static const char *find_method(const skua_process_type *type, const char *method)
{
    static const char *const only_main[] = {METHOD_MAIN, NULL};
    const char *const *names = type->methods != NULL ? type->methods : only_main;
    if (method == NULL) {
        return names[0];
    }
    for (; *names != NULL; names++) {
        if (*names == method || strcmp(*names, method) == 0) {
            return *names;
        }
    }
    return NULL;
}

static int check_phase(struct scheduler *sched)
{
    switch (shutdown_phase(sched)) {
    case PHASE_CREATED:
        return SKUA_E_NOT_STARTED;
    case PHASE_RUNNING:
        return 0;
    case PHASE_STOPPING:
    case PHASE_ENDING:
    case PHASE_STOPPED:
        break;
    }
    return SKUA_E_STOPPED;
}

static int check_request(struct scheduler *sched, const struct spawn_request *request)
{
    const skua_process_type *type = request->type;
    if (type == NULL || type->name == NULL || type->step == NULL ||
        type->state_size > PTRDIFF_MAX || type->mailbox_limit > SKUA_MAILBOX_MAX ||
        (request->input == NULL && request->input_count > 0)) {
        return SKUA_E_INVALID;
    }
    for (size_t i = 0; i < request->input_count; i++) {
        if (skua_payload_size(&request->input[i]) > sched->config.payload_limit) {
            return SKUA_E_PAYLOAD_SIZE;
        }
    }
    return check_phase(sched);
}

static bool prepare_state(struct scheduler *sched, struct process *process,
                          const skua_process_type *type)
{
    if (LIKELY(type->state_size <= PROCESS_INLINE_STATE)) {
        memset(process->state.inline_state, 0, PROCESS_INLINE_STATE);
        return true;
    }
    process->state.external =
        allocator_alloc_zeroed(&sched->allocator, type->state_size, alignof(max_align_t));
    return process->state.external != NULL;
}

static void release_memory(struct scheduler *sched, struct process *process,
                           const skua_process_type *type)
{
    if (type->state_size > PROCESS_INLINE_STATE) {
        allocator_free(&sched->allocator, process->state.external, type->state_size,
                       alignof(max_align_t));
    }
}

void spawn_release_state(struct scheduler *sched, struct process *process)
{
    const skua_process_type *type = process_type(process);
    if (type->close != NULL) {
        type->close(process_state(process, type));
    }
    release_memory(sched, process, type);
}

static void fill_record(struct scheduler *sched, struct process *process,
                        const skua_process_type *type)
{
    const uint32_t limit =
        type->mailbox_limit != 0 ? type->mailbox_limit : sched->config.mailbox_limit;
    /* Published by state_publish_owner. Release MO-inspect: who reads one of these by an older PID
     * finds that the word has changed. */
    store_release(&process->type, type);
    store_release(&process->mailbox_limit, limit);
    store_release(&process->progress, PROCESS_CONTINUES); /* the first step needs no event */
    account_begin(&sched->account, process);
    process->backlog = OBJECT_NONE;
    process->calls = OBJECT_NONE;
}

static int run_init(struct scheduler *sched, struct worker *worker, struct process *process,
                    skua_pid pid, const struct spawn_request *request, const char *method)
{
    if (request->type->init == NULL) {
        return 0;
    }
    skua_context context = {
        .sched = sched,
        .worker = worker,
        .process = process,
        .self = pid,
    };
    const skua_context *outer = NULL;
    if (worker != NULL) { /* for the report of a crash */
        outer = worker->starting;
        worker->starting = &context;
    }
    const int error = request->type->init(process_state(process, request->type), &context, method,
                                          request->input, request->input_count);
    if (worker != NULL) {
        worker->starting = outer;
    }
    return error < 0 ? error : 0;
}

/* Publishes the process and makes it Ready. */
static void publish(struct scheduler *sched, struct worker *worker, struct process *process,
                    uint32_t generation, skua_pid pid, const struct spawn_request *request)
{
    if (request->waiter != NULL) {
        request->waiter->pid = pid;
        exit_wait_add(sched, request->waiter);
        process_set_progress_owner(process, process_progress(process) | PROCESS_WATCHED);
    }
    if (request->pid != NULL) {
        *request->pid = pid;
    }
    NOTE_COUNT(sched, worker, spawned);
    note_trace(sched, worker, TRACE_SPAWN, pid, (uintptr_t)request->type, 0);
    state_publish_owner(process, generation);
    /* MO-stop: either the scan of the shutdown sees this process, or this sees the shutdown; a
     * cancel event that is one too many is dropped in step.c. */
    const enum sched_phase phase = shutdown_phase(sched);
    if (UNLIKELY(phase != PHASE_RUNNING)) {
        const uint32_t bit = phase == PHASE_STOPPING ? STATE_CANCEL : STATE_KILL;
        const enum state_duty duty = state_request_any(process, generation, bit);
        SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
    }
    submit_spawned(sched, worker, process);
}

/* Init may have taken a while: the runtime may have stopped meanwhile. */
static int publish_unless_stopped(struct scheduler *sched, struct worker *worker,
                                  struct process *process, uint32_t generation, skua_pid pid,
                                  const struct spawn_request *request)
{
    const bool gated = worker == NULL;
    if (gated ? !shutdown_gate_enter(sched) : shutdown_phase(sched) != PHASE_RUNNING) {
        return SKUA_E_STOPPED;
    }
    publish(sched, worker, process, generation, pid, request);
    if (gated) {
        shutdown_gate_leave(sched);
    }
    return 0;
}

/* Discards a process that was never published. */
static void give_up(struct scheduler *sched, struct worker *worker, struct process *process)
{
    spawn_release_state(sched, process);
    slot_release(sched, worker, process);
}

static int spawn(struct scheduler *sched, struct worker *worker,
                 const struct spawn_request *request)
{
    const int refused = check_request(sched, request);
    if (UNLIKELY(refused != 0)) {
        return refused;
    }
    const char *method = find_method(request->type, request->method);
    if (UNLIKELY(method == NULL)) {
        return SKUA_E_UNKNOWN_METHOD;
    }
    struct process *process;
    const int no_slot = slot_acquire(sched, worker, &process);
    if (UNLIKELY(no_slot != 0)) {
        return no_slot;
    }
    const uint32_t generation = state_prepare_owner(process);
    const skua_pid pid = process_table_pid(&sched->table, process, generation);
    fill_record(sched, process, request->type);
    if (UNLIKELY(!prepare_state(sched, process, request->type))) {
        slot_release(sched, worker, process);
        return SKUA_E_NO_MEMORY;
    }
    const int error = run_init(sched, worker, process, pid, request, method);
    if (UNLIKELY(error != 0)) {
        give_up(sched, worker, process);
        return error;
    }
    const int stopped = publish_unless_stopped(sched, worker, process, generation, pid, request);
    if (UNLIKELY(stopped != 0)) {
        give_up(sched, worker, process);
    }
    return stopped;
}

int spawn_process(struct scheduler *sched, struct worker *worker,
                  const struct spawn_request *request)
{
    const int error = spawn(sched, worker, request);
    if (request->input != NULL) {
        payload_drop_all(request->input, request->input_count);
    }
    return error;
}
