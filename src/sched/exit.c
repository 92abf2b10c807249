/* SPDX-License-Identifier: MIT */
/* The end of a process: take back, close, report, free. */
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "sched/abandon.h"
#include "sched/context.h"
#include "sched/exit_wait.h"
#include "sched/log.h"
#include "sched/note.h"
#include "sched/shutdown.h"
#include "sched/slot.h"
#include "sched/spawn.h"
#include "sched/worker.h"

/* Drops events that nobody will see. Most processes exit with none. */
static void drop_events(struct worker *worker, struct process *process, uint32_t first)
{
    if (LIKELY(first == OBJECT_NONE)) {
        return;
    }
    struct object_pool *events = &worker->sched->events;
    uint32_t messages = 0;
    while (first != OBJECT_NONE) {
        struct event_node *node = event_at(events, first);
        const uint32_t next = node->next;
        if (UNLIKELY(node->as.event.type == EVENT_ABANDONED)) {
            abandon_take(worker, node, first);
        }
        messages += node->as.event.type == SKUA_EVENT_MESSAGE;
        skua_payload_drop(&node->as.event.payload);
        event_release_owner(events, &worker->caches.events, first);
        first = next;
    }
    mailbox_consume_owner(process, messages);
}

/* MO-finished: the shutdown counts the process as gone from here on, unless it is being
 * reported. */
static void count_finished(struct worker *worker)
{
    store_release(&worker->stats.finished, load_relaxed(&worker->stats.finished) + 1);
}

/* Tells everyone who asked; the last resort is the log. The process is counted before anybody hears
 * of its end. But the shutdown must not believe yet that nothing is left: on_exit may still start a
 * process, and the result is not dropped. `reporting` holds it up (stats_left). Threads that wait
 * return last, when nothing of the process is left. */
static NOINLINE void report(struct worker *worker, skua_exit *exit, bool watched, uint64_t steps)
{
    struct scheduler *sched = worker->sched;
    store_relaxed(&worker->reporting, 1); /* published with the count */
    count_finished(worker);
    if (sched->observer != NULL) {
        sched->observer->process_ends(sched->observer, exit);
    }
    if (sched->config.on_exit != NULL) {
        sched->config.on_exit(sched->config.on_exit_arg, exit);
    }
    if (!watched && !log_is_orderly(exit->error) && shutdown_phase(sched) < PHASE_ENDING) {
        log_failure(sched, exit, steps);
    }
    if (watched) {
        exit_wait_tell(sched, exit);
    }
    skua_payload_drop(&exit->result);
    store_release(&worker->reporting, 0); /* MO-finished */
    if (watched) {
        exit_wait_release(sched, exit->pid);
    }
}

static skua_exit make_exit(const struct worker *worker, const skua_process_type *type, int error,
                           const skua_payload *result)
{
    return (skua_exit){
        .pid = worker->context->self,
        .type = type,
        .error = error,
        .result = result != NULL ? *result : skua_payload_empty(0),
    };
}

/* Calls close and releases what belongs to the process. Small ones without a close have nothing. */
static NOINLINE void close_state(struct worker *worker, const skua_process_type *type, int error,
                                 const skua_payload *result)
{
    const skua_exit exit = make_exit(worker, type, error, result);
    skua_context *context = context_open(worker, CONTEXT_CLOSE);
    spawn_release_state(context, &exit);
    context_close(context);
}

static void drop_result(skua_payload **result)
{
    if (*result != NULL) {
        skua_payload_drop(*result);
        *result = NULL;
    }
}

void exit_process(struct worker *worker, struct process *process, int error, skua_payload *result)
{
    struct scheduler *sched = worker->sched;
    const skua_process_type *type = process_type(process);
    uint32_t revoked = OBJECT_NONE;
    /* Before Complete: until then a completer that has claimed a call can still push it
     * (call.h). */
    if (UNLIKELY(process->calls != OBJECT_NONE)) {
        revoked = call_revoke_all_owner(&sched->events, &sched->deadlines, &worker->caches.events,
                                        process);
    }
    const uint64_t before = state_finish_owner(process);
    if (UNLIKELY(revoked != OBJECT_NONE)) {
        abandon_revoked(worker, revoked);
    }
    if (UNLIKELY((event_list_tag(before) & STATE_KILL) != 0)) {
        /* It came after the last take and was accepted, so that is what ends the process. */
        error = SKUA_E_TERMINATED;
        drop_result(&result);
    }
    drop_events(worker, process, process->backlog);
    drop_events(worker, process, event_list_first(before));
    if (type->close != NULL || type->state_size > PROCESS_INLINE_STATE ||
        UNLIKELY(process->calls != OBJECT_NONE)) {
        close_state(worker, type, error, result);
    }
    const uint64_t progress = process_progress(process);
    const bool watched =
        (progress & PROCESS_WATCHED) != 0 || (event_list_tag(before) & STATE_WATCHED) != 0;
    note_trace(sched, worker, TRACE_EXIT, worker->context->self, (uintptr_t)type, (uint32_t)error);
    /* Before anyone hears of the exit: they find the slot free. */
    slot_release(sched, worker, process);
    if (UNLIKELY(watched || error != 0 || sched->config.on_exit != NULL ||
                 sched->observer != NULL)) {
        skua_exit exit = make_exit(worker, type, error, result);
        report(worker, &exit, watched, progress >> PROCESS_STEP_SHIFT);
        return;
    }
    drop_result(&result);
    count_finished(worker);
}
