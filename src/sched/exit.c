/* SPDX-License-Identifier: MIT */
/* The end of a process, in this order:
 *  1. its names and its place in the tree are given up, its groups left, its open calls revoked,
 *     and the requests that it owes closed: from then on no caller pushes one of these to it;
 *  2. its event list is closed: nothing is admitted any more (state_finish_owner);
 *  3. events that it has not handled are dropped, and what it publishes is sent to the rest;
 *  4. its close is called, and its memory released;
 *  5. its slot is freed;
 *  6. everyone who must know is told: on_exit, the log, those whose calls it has not answered,
 *     those that watch it, those that are linked to it, threads that wait for it.
 * So whoever hears of the end finds that sends are refused, that close has returned and, unless
 * more than NOTICES_MANY must be told, that the slot is free.
 *
 * Revoking a million calls, dropping a million messages, freeing a million blocks of memory, or
 * telling a million watchers would keep the worker from all else. So it is done in slices.
 * Between two of them the token of the process waits in the queue behind, as that of a process
 * that continues would. Until step 1 is done the process is Ready: what arrives is admitted, as
 * if it had come before the end, and dropped in step 3; a kill becomes the reason of the end.
 * From then on it is Complete. How it ended is kept in an event node, which comes first in its
 * backlog: that of an event that was dropped, or another one. Without memory for that, it is all
 * done at once. */
#include "process/annex.h"
#include "process/mailbox.h"
#include "process/payload.h"
#include "sched/abandon.h"
#include "sched/children.h"
#include "sched/context.h"
#include "sched/dead_letters.h"
#include "sched/defer.h"
#include "sched/deliver.h"
#include "sched/exit_wait.h"
#include "sched/farewell.h"
#include "sched/limits.h"
#include "sched/log.h"
#include "sched/naming.h"
#include "sched/note.h"
#include "sched/own_memory.h"
#include "sched/shutdown.h"
#include "sched/signal.h"
#include "sched/slot.h"
#include "sched/spawn.h"
#include "sched/tasks.h"
#include "sched/worker.h"

/* What is given up, events that are dropped, or notices given in one slice; fewer in models. */
#ifndef EXIT_SLICE
#define EXIT_SLICE 256
#endif

/* ---- telling ---- */

/* MO-finished: the shutdown counts the process as gone from here on, unless it is being
 * reported. */
static void count_finished(struct worker *worker)
{
    store_release(&worker->stats.finished, load_relaxed(&worker->stats.finished) + 1);
}

static skua_exit make_exit(const struct worker *worker, const skua_process_type *type,
                           const struct ending *ending)
{
    return (skua_exit){
        .pid = worker->context->self,
        .type = type,
        .error = ending->error,
        .result = ending->result,
        .cause = ending->cause,
    };
}

/* Who must be told, besides those that farewell.h is about. */
struct audience {
    const skua_process_type *type;
    bool waits;   /* a thread does */
    bool watches; /* a process does */
    struct log_about about;
};

static void tell_log(struct scheduler *sched, const struct audience *audience,
                     const skua_exit *exit)
{
    const bool is_heard_of = audience->waits || audience->watches;
    if (!is_heard_of && !log_is_orderly(exit->error) && shutdown_phase(sched) < PHASE_ENDING) {
        log_failure(sched, exit, &audience->about);
    }
}

static void tell_program(struct worker *worker, const struct audience *audience, skua_exit *exit)
{
    struct scheduler *sched = worker->sched;
    if (sched->observer != NULL) {
        sched->observer->process_ends(sched->observer, exit);
    }
    if (sched->config.on_exit != NULL) {
        sched->config.on_exit(sched->config.on_exit_arg, exit);
    }
    tell_log(sched, audience, exit);
}

/* Tells everyone who asked; the last resort is the log. The process is counted before anybody hears
 * of its end. But the shutdown must not believe yet that nothing is left: on_exit may still start a
 * process, and the result is not dropped. `reporting` holds it up (stats_left). Threads that wait
 * return last, when nothing of the process is left. `annex` is what was that of the process, or
 * null. */
static NOINLINE void report(struct worker *worker, const struct audience *audience,
                            struct ending *ending, struct annex *annex)
{
    struct scheduler *sched = worker->sched;
    store_relaxed(&worker->reporting, 1); /* published with the count */
    count_finished(worker);
    skua_exit exit = make_exit(worker, audience->type, ending);
    tell_program(worker, audience, &exit);
    ending->result = exit.result;
    while (farewell_tell(worker, annex, ending)) {
    }
    exit.result = ending->result;
    if (audience->waits) {
        exit_wait_tell(sched, &exit);
    }
    skua_payload_drop(&exit.result);
    store_release(&worker->reporting, 0); /* MO-finished */
    if (audience->waits) {
        exit_wait_release(sched, exit.pid);
    }
}

/* ---- slices ---- */

/* The rest of the end comes later. `node` is for that. */
static void go_on_later(struct worker *worker, struct process *process, const struct ending *ending,
                        uint32_t node)
{
    struct event_node *note = event_at(&worker->sched->events, node);
    limits_settle_if_marked(worker->sched, process);
    note->as.ending = *ending;
    note->next = process->backlog;
    process->backlog = node;
    process_set_progress_owner(process, (process_progress(process) & ~PROCESS_RUNS) | PROCESS_ENDS);
    submit_behind_all(worker, process);
}

static void release_spare(struct worker *worker, uint32_t spare)
{
    if (spare != OBJECT_NONE) {
        event_release_owner(&worker->sched->events, &worker->caches.events, spare);
    }
}

/* Gives up a slice of what others can find the process by, or push to it; false if there is more.
 * `spare` is a free node or OBJECT_NONE. */
static NOINLINE bool leave(struct worker *worker, struct process *process, struct ending *ending,
                           uint32_t spare)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t budget = EXIT_SLICE;
    while (!farewell_leave(worker, process, ending, &budget)) {
        if (spare != OBJECT_NONE || event_acquire_owner(events, &worker->caches.events, &spare)) {
            go_on_later(worker, process, ending, spare);
            return false;
        }
        budget = EXIT_SLICE;
    }
    release_spare(worker, spare);
    return true;
}

/* Drops an event that nobody will see. Returns whether its node is free now; it is not released. */
static bool drop_event(struct worker *worker, struct process *process, struct event_node *node,
                       uint32_t index, struct ending *ending)
{
    const uint32_t type = node->as.event.type;
    if (UNLIKELY(type == EVENT_OVERFLOW)) { /* it was killed for that (shedding.h) */
        ending->error = ending->error == SKUA_E_TERMINATED ? SKUA_E_OVERFLOW : ending->error;
        return true;
    }
    if (UNLIKELY(type == SKUA_EVENT_CALL || type > EVENT_ABANDONED)) {
        if (signal_drop(worker, process, index)) {
            node->next = ending->notices;
            ending->notices = index;
        }
        return false;
    }
    if (UNLIKELY(type == EVENT_ABANDONED)) {
        abandon_take(worker, node, index);
    }
    if (type == SKUA_EVENT_MESSAGE || type == EVENT_URGENT) {
        mailbox_consume_owner(process, 1);
        dead_letters_report(worker->sched, worker, SKUA_DEAD_UNREAD, node->as.event.from,
                            worker->context->self, &node->as.event.payload);
    }
    skua_payload_drop(&node->as.event.payload);
    return true;
}

/* Drops a slice of the events; false if there are more. `spare` is a free node or OBJECT_NONE. */
static NOINLINE bool drop_events(struct worker *worker, struct process *process,
                                 struct ending *ending, uint32_t spare)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t budget = EXIT_SLICE;
    while (process->backlog != OBJECT_NONE || ending->rest != OBJECT_NONE) {
        if (process->backlog == OBJECT_NONE) {
            process->backlog = ending->rest;
            ending->rest = OBJECT_NONE;
        }
        if (budget == 0 &&
            (spare != OBJECT_NONE || event_acquire_owner(events, &worker->caches.events, &spare))) {
            go_on_later(worker, process, ending, spare);
            return false;
        }
        budget -= budget > 0;
        const uint32_t index = process->backlog;
        struct event_node *node = event_at(events, index);
        process->backlog = node->next;
        if (drop_event(worker, process, node, index, ending)) {
            release_spare(worker, spare);
            spare = index;
        }
    }
    release_spare(worker, spare);
    return true;
}

/* ---- the steps of the end ---- */

/* Calls close, which may still answer calls. */
static NOINLINE void close_state(struct worker *worker, const skua_process_type *type,
                                 const struct ending *ending)
{
    const skua_exit exit = make_exit(worker, type, ending);
    skua_context *context = context_open(worker, CONTEXT_CLOSE);
    spawn_close_state(context, &exit);
    context_close(worker);
}

static void drop_result(struct ending *ending)
{
    skua_payload_drop(&ending->result);
    ending->result = skua_payload_empty(0);
}

/* Before anyone hears of the exit: they find the slot free. */
static ALWAYS_INLINE void free_slot(struct worker *worker, struct process *process,
                                    const skua_process_type *type, int error)
{
    note_trace(worker->sched, worker, TRACE_EXIT, worker->context->self, (uintptr_t)type,
               (uint32_t)error);
    slot_release(worker->sched, worker, process);
}

static struct audience find_audience(struct scheduler *sched, struct process *process,
                                     const struct ending *ending)
{
    const struct annex *annex = annex_of(&sched->events, process);
    const uint64_t progress = process_progress(process);
    struct audience audience = {
        .type = process_type(process),
        .waits = (progress & PROCESS_WATCHED) != 0,
        .watches =
            (progress & PROCESS_HEARD_OF) != 0 || farewell_is_watched(sched, process, ending),
        .about = {.steps = progress >> PROCESS_STEP_SHIFT},
    };
    if (annex != NULL && annex->label != NULL) {
        memcpy(audience.about.name, annex->label, NAME_SIZE); /* both have so many */
    }
    return audience;
}

/* Frees the slot and tells everyone, once nothing else is left of the process. */
static void free_and_report(struct worker *worker, struct process *process, struct ending *ending)
{
    struct scheduler *sched = worker->sched;
    const struct audience audience = find_audience(sched, process, ending);
    const uint32_t node = spawn_release_state(sched, process);
    struct annex *annex = node != OBJECT_NONE ? &event_at(&sched->events, node)->as.annex : NULL;
    free_slot(worker, process, audience.type, ending->error);
    if (UNLIKELY(audience.waits || ending->error != 0 || annex != NULL ||
                 ending->notices != OBJECT_NONE || sched->config.on_exit != NULL ||
                 sched->observer != NULL)) {
        report(worker, &audience, ending, annex);
    } else {
        skua_payload_drop(&ending->result);
        count_finished(worker);
    }
    if (UNLIKELY(node != OBJECT_NONE)) {
        event_release_owner(&sched->events, &worker->caches.events, node);
    }
}

/* If very many must be told, they are told in slices, before the slot is free. Very many blocks of
 * memory are freed so before that. */
static void tell_slice(struct worker *worker, struct process *process, struct ending *ending,
                       uint32_t spare)
{
    struct annex *annex = annex_of(&worker->sched->events, process);
    struct wing *wing = annex_wing(&worker->sched->events, process);
    for (uint32_t i = 0; i < EXIT_SLICE; i++) {
        if (!own_memory_free_first(worker->sched, wing) && !farewell_tell(worker, annex, ending)) {
            event_release_owner(&worker->sched->events, &worker->caches.events, spare);
            free_and_report(worker, process, ending);
            return;
        }
    }
    go_on_later(worker, process, ending, spare);
}

/* Begins with that if it is necessary, and if there is a node for it. */
static NOINLINE bool tells_in_slices(struct worker *worker, struct process *process,
                                     struct ending *ending)
{
    struct object_pool *events = &worker->sched->events;
    const struct annex *annex = annex_of(events, process);
    uint32_t spare;
    if (annex != NULL) {
        mailbox_consume_owner(process, annex->owed_count); /* what it has not answered */
        if (UNLIKELY(annex->wing != NULL)) {
            limits_leave(worker->sched, process);
        }
    }
    if (!farewell_is_long(worker->sched, process, ending) ||
        !event_acquire_owner(events, &worker->caches.events, &spare)) {
        return false;
    }
    /* The line comes before those of the processes that end with this one. */
    const struct audience audience = find_audience(worker->sched, process, ending);
    const skua_exit exit = make_exit(worker, audience.type, ending);
    tell_log(worker->sched, &audience, &exit);
    process_set_progress_owner(process, process_progress(process) | PROCESS_HEARD_OF);
    ending->phase = ENDING_TELLS;
    tell_slice(worker, process, ending, spare);
    return true;
}

/* All events are dropped. */
static void finish(struct worker *worker, struct process *process, struct ending *ending)
{
    const skua_process_type *type = process_type(process);
    if (UNLIKELY(process_is_task(type))) {
        tasks_unwind(worker, process);
    }
    if (type->close != NULL) {
        close_state(worker, type, ending);
    }
    if (LIKELY(process->calls == OBJECT_NONE && ending->notices == OBJECT_NONE) ||
        !tells_in_slices(worker, process, ending)) {
        free_and_report(worker, process, ending);
    }
}

/* What the simulator has put off is as if it had arrived: whoever asked before the end is told how
 * that was. */
static NOINLINE void fetch_signals(struct worker *worker, struct ending *ending)
{
    struct detour *detour = worker->sched->detour;
    uint32_t node;
    while (detour->give_back(detour, worker->context->self, &node)) {
        event_at(&worker->sched->events, node)->next = ending->rest;
        ending->rest = node;
    }
}

/* Whether nothing is left of a process without calls but its record, and nobody wants to hear of
 * its end: so most end. `before` is what its event list was when it was closed. */
static ALWAYS_INLINE bool ends_quietly(const struct scheduler *sched, struct process *process,
                                       uint64_t before)
{
    const skua_process_type *type = process_type(process);
    return process->backlog == OBJECT_NONE && event_list_first(before) == OBJECT_NONE &&
           (event_list_tag(before) & (STATE_KILL | STATE_WATCHED)) == 0 &&
           (process_progress(process) & PROCESS_WATCHED) == 0 && type->close == NULL &&
           process_state_is_inline(type) && sched->config.on_exit == NULL &&
           sched->observer == NULL;
}

/* Its event list, which was `before`, is closed. */
static NOINLINE void end_process(struct worker *worker, struct process *process,
                                 struct ending *ending, uint64_t before)
{
    const uint32_t tag = event_list_tag(before);
    if (UNLIKELY((tag & STATE_KILL) != 0 && ending->error != SKUA_E_OVERFLOW)) {
        /* It came after the last take and was accepted, so that is what ends the process; unless it
         * belongs to an overflow whose reason was taken already (shedding.h). */
        ending->error = SKUA_E_TERMINATED;
        ending->cause = worker->context->self;
        drop_result(ending);
    }
    if (UNLIKELY((tag & STATE_WATCHED) != 0)) {
        process_set_progress_owner(process, process_progress(process) | PROCESS_WATCHED);
    }
    ending->phase = ENDING_DROPS;
    ending->rest = event_list_first(before);
    if (UNLIKELY(worker->sched->detour != NULL)) {
        fetch_signals(worker, ending);
    }
    if (UNLIKELY(process->backlog != OBJECT_NONE || ending->rest != OBJECT_NONE) &&
        !drop_events(worker, process, ending, OBJECT_NONE)) {
        return;
    }
    finish(worker, process, ending);
}

/* Others can reach it without being asked: it leaves before its event list is closed. Until then a
 * completer that has claimed a call can still push it (call.h). */
static void leave_and_end(struct worker *worker, struct process *process, struct ending *ending,
                          uint32_t spare)
{
    if (leave(worker, process, ending, spare)) {
        const uint64_t before = state_finish_owner(process);
        if (UNLIKELY(annex_wing(&worker->sched->events, process) != NULL)) {
            children_leave(worker->sched, process);
        }
        end_process(worker, process, ending, before);
    }
}

static struct ending make_ending(int error, skua_pid cause, const skua_payload *result)
{
    return (struct ending){
        .error = error,
        .cause = log_is_orderly(error) ? (skua_pid){0} : cause,
        .result = result != NULL ? *result : skua_payload_empty(0),
    };
}

static NOINLINE void begin_to_leave(struct worker *worker, struct process *process, int error,
                                    skua_pid cause, const skua_payload *result)
{
    struct annex *annex = annex_of(&worker->sched->events, process);
    struct ending ending = make_ending(error, cause, result);
    ending.phase = ENDING_LEAVES;
    ending.unclosed = OBJECT_NONE;
    if (annex != NULL) {
        ending.unclosed = annex->owed;
        naming_go(worker, annex);
        if (UNLIKELY(annex->wing != NULL)) {
            defer_end(&worker->sched->events, process);
            children_stop(worker->sched, process);
        }
        if (!log_is_orderly(error)) {
            naming_keep(worker->sched, annex);
        }
    }
    leave_and_end(worker, process, &ending, OBJECT_NONE);
}

/* The same for one that others notice. */
static NOINLINE void end_noticeably(struct worker *worker, struct process *process, int error,
                                    skua_pid cause, const skua_payload *result, uint64_t before)
{
    struct ending ending = make_ending(error, cause, result);
    end_process(worker, process, &ending, before);
}

void exit_process(struct worker *worker, struct process *process, int error, skua_pid cause,
                  skua_payload *result)
{
    if (UNLIKELY(process_is_task(process_type(process)))) {
        tasks_end(worker, process);
    }
    if (UNLIKELY(process->calls != OBJECT_NONE ||
                 (process_progress(process) & PROCESS_SOCKETS) != 0)) {
        begin_to_leave(worker, process, error, cause, result);
        return;
    }
    const uint64_t before = state_finish_owner(process);
    if (LIKELY(error == 0 && ends_quietly(worker->sched, process, before))) {
        free_slot(worker, process, process_type(process), 0);
        if (result != NULL) {
            payload_drop_last(result);
        }
        count_finished(worker);
        return;
    }
    end_noticeably(worker, process, error, cause, result, before);
}

void exit_go_on(struct worker *worker, struct process *process)
{
    const uint32_t node = process->backlog;
    struct event_node *note = event_at(&worker->sched->events, node);
    struct ending ending = note->as.ending;
    process->backlog = note->next;
    switch ((enum ending_phase)ending.phase) {
    case ENDING_LEAVES:
        leave_and_end(worker, process, &ending, node);
        break;
    case ENDING_DROPS:
        if (drop_events(worker, process, &ending, node)) {
            finish(worker, process, &ending);
        }
        break;
    case ENDING_TELLS:
        tell_slice(worker, process, &ending, node);
        break;
    }
}
