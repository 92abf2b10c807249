/* SPDX-License-Identifier: MIT */
/* The end of a process: take back, close, report, free. */
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "sched/exit_wait.h"
#include "sched/note.h"
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
        messages += node->as.event.type == SKUA_EVENT_MESSAGE;
        skua_payload_drop(&node->as.event.payload);
        event_release_owner(events, &worker->caches.events, first);
        first = next;
    }
    mailbox_consume_owner(process, messages);
}

/* Tells everyone who asked. */
static NOINLINE void report(struct scheduler *sched, skua_exit *exit, bool watched)
{
    if (sched->observer != NULL) {
        sched->observer->process_ends(sched->observer, exit);
    }
    if (sched->config.on_exit != NULL) {
        sched->config.on_exit(sched->config.on_exit_arg, exit);
    }
    if (watched) {
        exit_wait_report(sched, exit);
    }
    skua_payload_drop(&exit->result);
}

void exit_process(struct worker *worker, struct process *process, int error, skua_payload *result)
{
    struct scheduler *sched = worker->sched;
    const skua_process_type *type = process_type(process);
    /* Before Complete: until then a completer that has claimed a call can still push it
     * (call.h). */
    call_revoke_all_owner(&sched->events, &sched->deadlines, &worker->caches.events, process);
    const uint64_t before = state_finish_owner(process);
    drop_events(worker, process, process->backlog);
    drop_events(worker, process, event_list_first(before));
    spawn_release_state(sched, process);
    const bool watched = (process_progress(process) & PROCESS_WATCHED) != 0 ||
                         (event_list_tag(before) & STATE_WATCHED) != 0;
    note_trace(sched, worker, TRACE_EXIT, worker->context.self, (uintptr_t)type, (uint32_t)error);
    /* Before anyone hears of the exit: they find the slot free. */
    slot_release(sched, worker, process);
    if (UNLIKELY(watched || sched->config.on_exit != NULL || sched->observer != NULL)) {
        skua_exit exit = {
            .pid = worker->context.self,
            .type = type,
            .error = error,
            .result = result != NULL ? skua_payload_take(result) : skua_payload_empty(0),
        };
        report(sched, &exit, watched);
    } else if (result != NULL) {
        skua_payload_drop(result);
    }
    /* Last: the shutdown counts the process as gone from here on. MO-finished. */
    store_release(&worker->stats.finished, load_relaxed(&worker->stats.finished) + 1);
}
