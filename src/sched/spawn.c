/* SPDX-License-Identifier: MIT */
#include "sched/spawn.h"

#include <stdalign.h>
#include <string.h>

#include "base/sized.h"
#include "dispatch/call.h"
#include "process/payload.h"
#include "sched/children.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/limits.h"
#include "sched/naming.h"
#include "sched/note.h"
#include "sched/own_memory.h"
#include "sched/relate.h"
#include "sched/shutdown.h"
#include "sched/slot.h"
#include "sched/upgrade.h"
#include "sched/worker.h"

static const char *const only_main[] = {"main", NULL};

static const char *const *methods_of(const skua_process_type *type)
{
    return type->methods != NULL ? type->methods : only_main;
}

const char *spawn_method_name(const skua_process_type *type, uint32_t number)
{
    return methods_of(type)[number];
}

static ALWAYS_INLINE uint32_t find_method(const skua_process_type *type, const char *method)
{
    const char *const *names = methods_of(type);
    if (LIKELY(method == NULL)) {
        return names[0] != NULL ? 0 : SKUA_METHODS_MAX;
    }
    for (uint32_t i = 0; i < SKUA_METHODS_MAX && names[i] != NULL; i++) {
        if (names[i] == method || strcmp(names[i], method) == 0) {
            return i;
        }
    }
    return SKUA_METHODS_MAX;
}

uint32_t spawn_method_number(const skua_process_type *type, const char *method)
{
    return find_method(type, method);
}

static ALWAYS_INLINE int check_phase(struct scheduler *sched)
{
    const enum sched_phase phase = shutdown_phase(sched);
    if (LIKELY(phase == PHASE_RUNNING)) {
        return 0;
    }
    return phase == PHASE_CREATED ? SKUA_E_NOT_STARTED : SKUA_E_STOPPED;
}

int spawn_check_phase(struct scheduler *sched)
{
    return check_phase(sched);
}

/* A process is either steps or a task. */
static bool shape_is_valid(const skua_process_type *type)
{
    const int shapes = (type->step != NULL) + (type->main != NULL) + (type->serve != NULL);
    return shapes == 1 && stacks_tier(type->stack_size) < STACK_TIERS &&
           (type->step == NULL || type->stack_size == 0);
}

bool spawn_type_is_valid(const skua_process_type *type)
{
    return type != NULL && type->name != NULL && shape_is_valid(type) &&
           type->state_size <= PTRDIFF_MAX && type->mailbox_limit <= SKUA_MAILBOX_MAX &&
           type->cancel <= SKUA_CANCEL_EVENT && type->overflow <= SKUA_OVERFLOW_END &&
           reserved_are_zero(type->reserved, sizeof type->reserved);
}

/* Whether the limit of a type's mailbox is exact. */
static bool has_small_mailbox(const struct scheduler *sched, const skua_process_type *type)
{
    return spawn_mailbox_limit(sched, type) < mailbox_large(sched->capacity);
}

/* Whether a process of a valid type can be started the short way (spawn_from). */
static bool type_is_plain(const struct scheduler *sched, const skua_process_type *type)
{
    return !process_is_task(type) && type->state_size <= PROCESS_TASK_STATE &&
           process_type_flags(type) == 0 && methods_of(type)[0] != NULL &&
           !has_small_mailbox(sched, type);
}

/* A type does not change, so a worker need not check again the one that it has checked last. */
static bool check_type(struct worker *worker, const skua_process_type *type)
{
    if (worker == NULL) {
        return spawn_type_is_valid(type);
    }
    if (UNLIKELY(worker->checked_type != type || type == NULL)) {
        if (!spawn_type_is_valid(type)) {
            return false;
        }
        worker->checked_type = type;
        worker->plain_type = type_is_plain(worker->sched, type) ? type : NULL;
    }
    return true;
}

static int check_request(struct scheduler *sched, struct worker *worker,
                         const struct spawn_request *request)
{
    if (!check_type(worker, request->type) ||
        (request->input == NULL && request->input_count > 0)) {
        return SKUA_E_INVALID;
    }
    for (size_t i = 0; i < request->input_count; i++) {
        const int refused = payload_refuse(&request->input[i], sched->config.payload_limit);
        if (UNLIKELY(refused != 0)) {
            return refused;
        }
    }
    const int unrelated = UNLIKELY(request->options != NULL) ? relate_check(request) : 0;
    return unrelated != 0 ? unrelated : check_phase(sched);
}

static ALWAYS_INLINE bool prepare_state(struct scheduler *sched, struct process *process,
                                        const skua_process_type *type)
{
    memset(process->state.inline_state, 0, PROCESS_INLINE_STATE);
    if (LIKELY(process_state_is_inline(type))) {
        return true;
    }
    process->state.external =
        allocator_alloc_zeroed(&sched->allocator, type->state_size, alignof(max_align_t));
    return process->state.external != NULL;
}

void spawn_close_state(skua_context *ctx, const skua_exit *exit)
{
    struct process *process = ctx->process;
    const skua_process_type *type = process_type(process);
    if (type->close != NULL) {
        type->close(process_state(process, type), ctx, exit);
    }
}

static NOINLINE void release_wing(struct scheduler *sched, struct process *process,
                                  struct wing *wing)
{
    children_leave(sched, process); /* one that was never published */
    own_memory_free_all(sched, process);
    limits_release(sched, process);
    allocator_free(&sched->allocator, wing, sizeof *wing, alignof(struct wing));
}

static NOINLINE uint32_t release_annex(struct scheduler *sched, struct process *process)
{
    const struct annex *annex = annex_of(&sched->events, process);
    if (UNLIKELY(annex->wing != NULL)) {
        release_wing(sched, process, annex->wing);
    }
    if (UNLIKELY(annex->label != NULL)) {
        naming_free_copy(sched, annex->label);
    }
    if (UNLIKELY(annex->tags != NULL)) {
        call_drop_index_owner(&sched->allocator, &sched->events, process);
    }
    return annex_detach_owner(&sched->events, process);
}

uint32_t spawn_release_state(struct scheduler *sched, struct process *process)
{
    const skua_process_type *type = process_type(process);
    uint32_t annex = OBJECT_NONE;
    if (UNLIKELY((process_progress(process) & PROCESS_ANNEX) != 0)) {
        annex = release_annex(sched, process);
    }
    if (!process_state_is_inline(type)) {
        allocator_free(&sched->allocator, process->state.external, type->state_size,
                       alignof(max_align_t));
    }
    return annex;
}

static ALWAYS_INLINE void fill_record(struct scheduler *sched, struct process *process,
                                      const skua_process_type *type, uint32_t method,
                                      uint64_t flags)
{
    /* Published with the word. Release MO-inspect: who reads one of these by an older PID
     * finds that the word has changed. */
    store_release(&process->type, type);
    store_release(&process->mailbox_limit, spawn_mailbox_limit(sched, type));
    /* The first step needs no event. */
    store_release(&process->progress,
                  PROCESS_CONTINUES | (uint64_t)method << PROCESS_METHOD_SHIFT | flags);
    account_begin(&sched->account, process);
    process->backlog = OBJECT_NONE;
    process->calls = OBJECT_NONE;
}

static ALWAYS_INLINE int run_init(struct scheduler *sched, struct worker *worker,
                                  struct process *process, skua_pid pid, skua_payload *input,
                                  size_t input_count)
{
    const skua_process_type *type = process_type(process);
    skua_context spare;
    skua_context *context = context_open_init(sched, worker, process, pid, CONTEXT_INIT, &spare);
    const skua_context *outer = NULL;
    if (LIKELY(worker != NULL)) { /* for the report of a crash */
        outer = worker->starting;
        worker->starting = context;
    }
    const int error = type->init(process_state(process, type), context, input, input_count);
    if (LIKELY(worker != NULL)) {
        worker->starting = outer;
    }
    context_close_init(context);
    return LIKELY(error <= 0) ? error : SKUA_E_INVALID;
}

/* A child is its supervisor's to cancel. */
static bool is_asked_to_end(struct process *process, enum sched_phase phase)
{
    return phase != PHASE_RUNNING &&
           (phase != PHASE_STOPPING || (process_progress(process) & PROCESS_SUPERVISED) == 0);
}

bool spawn_catch_up(struct worker *worker, struct process *process, skua_pid pid)
{
    struct scheduler *sched = worker->sched;
    const enum sched_phase phase = shutdown_phase(sched); /* MO-stop */
    if (is_asked_to_end(process, phase)) {
        const enum state_duty duty = state_request_any(
            process, pid_generation(pid), phase == PHASE_STOPPING ? STATE_CANCEL : STATE_KILL);
        SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
    }
    if (phase == PHASE_ENDING || !upgrade_is_known(sched) || /* MO-upgrade */
        upgrade_catch_up(worker, process, pid)) {
        return true;
    }
    store_release(&worker->running, RUNNING_UNKNOWN); /* MO-monitor: it does not run, it waits */
    submit_behind_all(worker, process);
    return false;
}

/* Publishes the process, with its name if it has one, and makes it Ready. */
static int publish(struct scheduler *sched, struct worker *worker, struct process *process,
                   uint32_t generation, skua_pid pid, const struct spawn_request *request)
{
    uint32_t waiters = OBJECT_NONE; /* for its name */
    const bool is_named = request->options != NULL && request->options->name != NULL;
    if (UNLIKELY(is_named)) {
        const int refused = naming_publish(sched, worker, process, pid, request->options->name,
                                           request->pid, &waiters);
        if (refused != 0) {
            return refused;
        }
    }
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
    if (LIKELY(!is_named)) {
        state_publish_owner(process, generation);
    }
    if (UNLIKELY(request->birth != NULL)) {
        children_announce(sched, worker, process, pid, request->birth);
    }
    submit_spawned(sched, worker, process);
    if (UNLIKELY(waiters != OBJECT_NONE)) {
        naming_tell(sched, worker, pid, waiters);
    }
    return 0;
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
    const int error = publish(sched, worker, process, generation, pid, request);
    if (gated) {
        shutdown_gate_leave(sched);
    }
    return error;
}

/* Releases all that is left of a process that was never published. */
static NOINLINE void discard(struct scheduler *sched, struct worker *worker,
                             struct process *process)
{
    const uint32_t annex = spawn_release_state(sched, process);
    if (annex != OBJECT_NONE) {
        deliver_release_node(sched, worker, annex);
    }
    slot_release(sched, worker, process);
}

/* Discards a process that was never published, after its init. */
static NOINLINE void give_up(struct scheduler *sched, struct worker *worker,
                             struct process *process, skua_pid pid, int error,
                             const struct spawn_request *request)
{
    const skua_exit exit = {
        .pid = pid,
        .type = process_type(process),
        .error = error,
        .result = skua_payload_empty(0),
    };
    skua_context spare;
    skua_context *context = context_open_init(sched, worker, process, pid, CONTEXT_CLOSE, &spare);
    spawn_close_state(context, &exit);
    context_close_init(context);
    if (request->birth != NULL) {
        children_undo(sched, worker, process, request->birth);
    }
    relate_undo(sched, request, process);
    discard(sched, worker, process);
}

/* Whether there may be a quota that the process counts against. */
static ALWAYS_INLINE bool may_be_limited(const struct spawn_request *request)
{
    return request->birth != NULL ||
           (request->starter != NULL && mailbox_is_marked(request->starter->process));
}

/* Counts a process against the quota of those that its starter, or another supervisor, starts. On
 * error it is discarded. */
static NOINLINE int limit(struct scheduler *sched, struct worker *worker, struct process *process,
                          const struct spawn_request *request)
{
    const struct birth *birth = request->birth;
    struct quota *quota =
        birth != NULL && !birth->is_own ? birth->quota : limits_granted(request->starter);
    const int error = quota != NULL ? limits_enter(sched, worker, process, quota) : 0;
    if (error != 0) {
        discard(sched, worker, process);
    }
    return error;
}

/* Has all that its start needs made ready; false without memory. */
static ALWAYS_INLINE bool prepare_start(struct scheduler *sched, const struct worker *worker,
                                        struct process *process, skua_pid pid)
{
    struct observer *observer = sched->observer;
    return (LIKELY(observer == NULL) || observer->process_starts(observer, worker, pid)) &&
           prepare_state(sched, process, process_type(process));
}

static int spawn(struct scheduler *sched, struct worker *worker,
                 const struct spawn_request *request)
{
    const int refused = check_request(sched, worker, request);
    if (UNLIKELY(refused != 0)) {
        return refused;
    }
    SKUA_ASSERT(request->type != NULL); /* it was checked */
    const uint32_t method = find_method(request->type, request->method);
    if (UNLIKELY(method == SKUA_METHODS_MAX)) {
        return SKUA_E_UNKNOWN_METHOD;
    }
    struct process *process;
    const int no_slot = has_small_mailbox(sched, request->type)
                            ? slot_acquire_settled(sched, worker, &process)
                            : slot_acquire(sched, worker, &process);
    if (UNLIKELY(no_slot != 0)) {
        return no_slot;
    }
    const uint32_t generation = state_prepare_owner(process);
    fill_record(sched, process, request->type, method, process_type_flags(request->type));
    const skua_pid pid = process_table_pid(&sched->table, process, generation);
    if (UNLIKELY(!prepare_start(sched, worker, process, pid))) {
        slot_release(sched, worker, process);
        return SKUA_E_NO_MEMORY;
    }
    int error = UNLIKELY(may_be_limited(request)) ? limit(sched, worker, process, request) : 0;
    if (UNLIKELY(error != 0)) {
        return error;
    }
    if (request->type->init != NULL) {
        error = run_init(sched, worker, process, pid, request->input, request->input_count);
    }
    if (LIKELY(error == 0) && UNLIKELY(request->options != NULL)) {
        error = relate_at_spawn(sched, worker, request, process, pid);
    }
    if (LIKELY(error == 0)) {
        error = publish_unless_stopped(sched, worker, process, generation, pid, request);
    }
    if (UNLIKELY(error != 0)) {
        give_up(sched, worker, process, pid, error, request);
    }
    return error;
}

/* A request with options, or after types have been replaced, as it is carried out. */
struct special_spawn {
    struct spawn_request request;
    struct birth birth; /* if request.birth is not null */
};

/* For a process that has a supervisor. */
static int prepare_child(struct scheduler *sched, struct worker *worker,
                         struct special_spawn *special)
{
    struct spawn_request *request = &special->request;
    if (!check_type(worker, request->type)) {
        return SKUA_E_INVALID;
    }
    const uint32_t method = spawn_method_number(request->type, request->method);
    if (method == SKUA_METHODS_MAX) {
        return SKUA_E_UNKNOWN_METHOD;
    }
    const int error = children_conceive(sched, request, spawn_method_name(request->type, method),
                                        &special->birth);
    request->birth = error == 0 ? &special->birth : NULL;
    return error;
}

static ALWAYS_INLINE void discard_input(const struct spawn_request *request)
{
    if (request->input != NULL) {
        payload_discard_all(request->input, request->input_count);
    }
}

/* Prepares it and starts again. */
/* NOLINTNEXTLINE(misc-no-recursion): once, as is_prepared says. */
static NOINLINE int spawn_specially(struct scheduler *sched, struct worker *worker,
                                    const struct spawn_request *request)
{
    const skua_spawn_options *options = request->options;
    struct special_spawn special = {.request = *request};
    special.request.is_prepared = true;
    int error = 0;
    if (options != NULL && !skua_pid_is_none(options->supervisor)) {
        error = prepare_child(sched, worker, &special);
    }
    if (error == 0) {
        special.request.type = upgrade_newest_with(sched, request->type, request->method);
        error = spawn_process(sched, worker, &special.request);
    } else {
        discard_input(request);
    }
    if (special.request.birth != NULL) {
        children_forget(sched, &special.birth);
    }
    if (error != 0 && options != NULL && options->link && options->link_id != NULL) {
        *options->link_id = (skua_link_id){0};
    }
    return error;
}

/* NOLINTNEXTLINE(misc-no-recursion): once. */
int spawn_process(struct scheduler *sched, struct worker *worker,
                  const struct spawn_request *request)
{
    if (UNLIKELY(request->options != NULL || upgrade_is_known(sched)) && !request->is_prepared) {
        return spawn_specially(sched, worker, request);
    }
    const int error = spawn(sched, worker, request);
    discard_input(request);
    return error;
}

/* ---- the short way ---- */

/* The long way, which also says what is wrong. */
static NOINLINE int spawn_from_otherwise(const skua_context *starter, const skua_process_type *type,
                                         skua_payload *input, skua_pid *pid)
{
    return spawn_process(
        starter->sched, starter->worker,
        &(struct spawn_request){
            .type = type, .input = input, .input_count = 1, .pid = pid, .starter = starter});
}

/* Whether nothing needs the long way: the rest of the request is as most are. */
static ALWAYS_INLINE bool takes_short_way(const skua_context *starter,
                                          const skua_process_type *type, const skua_payload *input)
{
    struct scheduler *sched = starter->sched;
    const struct worker *worker = starter->worker;
    return LIKELY(worker != NULL) && LIKELY(type != NULL && worker->plain_type == type) &&
           LIKELY(payload_refuse(input, sched->config.payload_limit) == 0) &&
           LIKELY(check_phase(sched) == 0) && LIKELY(!upgrade_is_known(sched)) &&
           LIKELY(!mailbox_is_marked(starter->process));
}

/* The input is there until close has returned. */
static NOINLINE int give_up_plain(struct worker *worker, struct process *process, skua_pid pid,
                                  int error, skua_payload *input)
{
    give_up(worker->sched, worker, process, pid, error, &(struct spawn_request){0});
    payload_discard(input);
    return error;
}

int spawn_from(const skua_context *starter, const skua_process_type *type, skua_payload *input,
               skua_pid *pid)
{
    struct scheduler *sched = starter->sched;
    struct worker *worker = starter->worker;
    struct process *process;
    if (UNLIKELY(!takes_short_way(starter, type, input))) {
        return spawn_from_otherwise(starter, type, input, pid);
    }
    int error = slot_acquire(sched, worker, &process);
    if (UNLIKELY(error != 0)) {
        payload_discard(input);
        return error;
    }
    const uint32_t generation = state_prepare_owner(process);
    fill_record(sched, process, type, 0, 0);
    const skua_pid self = process_table_pid(&sched->table, process, generation);
    if (UNLIKELY(!prepare_start(sched, worker, process, self))) {
        slot_release(sched, worker, process);
        payload_discard(input);
        return SKUA_E_NO_MEMORY;
    }
    if (type->init != NULL) {
        error = run_init(sched, worker, process, self, input, 1);
    }
    if (LIKELY(error == 0) && UNLIKELY(shutdown_phase(sched) != PHASE_RUNNING)) {
        error = SKUA_E_STOPPED; /* meanwhile */
    }
    if (UNLIKELY(error != 0)) {
        return give_up_plain(worker, process, self, error, input);
    }
    payload_discard(input);
    if (pid != NULL) {
        *pid = self;
    }
    counter_add_owner(&worker->stats.spawned, 1);
    note_trace(sched, worker, TRACE_SPAWN, self, (uintptr_t)type, 0);
    state_publish_owner(process, generation);
    submit_spawned(sched, worker, process);
    return 0;
}
