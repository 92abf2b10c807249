/* SPDX-License-Identifier: MIT */
#include "sched/retype.h"

#include <stdalign.h>
#include <string.h>

#include "process/mailbox.h"
#include "sched/context.h"
#include "sched/limits.h"
#include "sched/log.h"
#include "sched/note.h"
#include "sched/spare.h"
#include "sched/spawn.h"
#include "sched/worker.h"

/* ---- what can become what ---- */

static bool have_same_shape(const skua_process_type *from, const skua_process_type *to)
{
    return (from->step != NULL && to->step != NULL) || (from->serve != NULL && to->serve != NULL);
}

bool retype_fits(const skua_process_type *from, const skua_process_type *to)
{
    return to->migrate != NULL && from != to && have_same_shape(from, to) &&
           (to->calls || !from->calls);
}

/* The number that the new type has for the method of a process. */
static uint32_t method_in(struct process *process, const skua_process_type *to)
{
    return spawn_method_number(to,
                               spawn_method_name(process_type(process), process_method(process)));
}

bool retype_is_possible(struct process *process, const skua_process_type *to)
{
    return retype_fits(process_type(process), to) && method_in(process, to) < SKUA_METHODS_MAX;
}

bool retype_is_due(struct process *process)
{
    return !process_is_task(process_type(process)) || process->state.of_task.task == NULL;
}

/* ---- the states ---- */

/* What a process had before it changes. */
struct former {
    alignas(max_align_t) unsigned char record[PROCESS_INLINE_STATE]; /* the state's part of it */
    size_t record_size;
    void *external; /* a large state, or null */
    const void *state;
};

static void keep_former(struct process *process, const skua_process_type *type,
                        struct former *former)
{
    former->record_size = process_is_task(type) ? PROCESS_TASK_STATE : PROCESS_INLINE_STATE;
    former->external = process_state_is_inline(type) ? NULL : process->state.external;
    memcpy(former->record, process->state.inline_state, former->record_size);
    memset(process->state.inline_state, 0, former->record_size);
    former->state = former->external != NULL ? former->external
                    : type->state_size > 0   ? former->record
                                             : NULL;
}

/* Frees the state of a process, if that is a large one. */
static void free_state(struct scheduler *sched, void *external, const skua_process_type *type)
{
    if (external != NULL) {
        allocator_free(&sched->allocator, external, type->state_size, alignof(max_align_t));
    }
}

/* Makes room for the new state; false without memory. */
static bool prepare_state(struct scheduler *sched, struct process *process,
                          const skua_process_type *type)
{
    if (process_state_is_inline(type)) {
        return true;
    }
    process->state.external =
        allocator_alloc_zeroed(&sched->allocator, type->state_size, alignof(max_align_t));
    return process->state.external != NULL;
}

static int migrate(struct worker *worker, struct process *process, const struct former *former,
                   const skua_process_type *to)
{
    skua_context *context = context_open(worker, CONTEXT_INIT);
    const int outcome = to->migrate(process_type(process)->version, former->state,
                                    process_state(process, to), context);
    context_close(worker);
    spare_return(worker); /* a blocking section ends with it */
    return outcome <= 0 ? outcome : SKUA_E_INVALID;
}

/* Gives the process the new state; on error it has the old one. */
static int change_state(struct worker *worker, struct process *process, const skua_process_type *to)
{
    struct scheduler *sched = worker->sched;
    const skua_process_type *from = process_type(process);
    struct former former;
    keep_former(process, from, &former);
    int error = SKUA_E_NO_MEMORY;
    if (prepare_state(sched, process, to)) {
        error = migrate(worker, process, &former, to);
        if (error == 0) {
            free_state(sched, former.external, from);
            return 0;
        }
        free_state(sched, process_state_is_inline(to) ? NULL : process->state.external, to);
    }
    memcpy(process->state.inline_state, former.record, former.record_size);
    return error;
}

/* ---- the change ---- */

static void change_type(struct scheduler *sched, struct process *process,
                        const skua_process_type *to)
{
    const uint64_t method = method_in(process, to);
    const uint64_t methods = (uint64_t)(SKUA_METHODS_MAX - 1) << PROCESS_METHOD_SHIFT;
    const bool is_marked = mailbox_is_marked(process);
    const uint64_t dropped = methods | (is_marked ? 0 : PROCESS_TENDED);
    const uint64_t kept = process_progress(process) & ~dropped;
    process_set_progress_owner(process,
                               kept | process_type_flags(to) | method << PROCESS_METHOD_SHIFT);
    if (!is_marked) {
        store_release(&process->mailbox_limit, spawn_mailbox_limit(sched, to)); /* MO-inspect */
    }
    store_seq_cst(&process->type, to); /* MO-become, MO-upgrade */
}

static int change(struct worker *worker, struct process *process, const skua_process_type *to)
{
    if (!retype_is_possible(process, to)) {
        return SKUA_E_VERSION;
    }
    const int error = change_state(worker, process, to);
    if (error == 0) {
        change_type(worker->sched, process, to);
    }
    return error;
}

int retype_process(struct worker *worker, struct process *process, const skua_process_type *to)
{
    struct scheduler *sched = worker->sched;
    const skua_process_type *from = process_type(process);
    const int error = change(worker, process, to);
    if (error == 0) {
        counter_add_owner(&worker->stats.upgrades, 1);
    } else {
        counter_add_owner(&worker->stats.upgrade_failures, 1);
        log_upgrade_failure(sched, worker->context->self, from, to, error);
    }
    if (UNLIKELY(sched->observer != NULL)) {
        sched->observer->process_becomes(sched->observer, worker, from, to, error);
    }
    return error;
}
