/* SPDX-License-Identifier: MIT */
#include "sched/shedding.h"

#include "process/mailbox.h"
#include "sched/dead_letters.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/signal.h"
#include "sched/tasks.h"
#include "sched/urgent.h"
#include "sched/worker.h"

/* Events that are looked at, and messages that are dropped, in one turn; fewer in models. */
#ifndef SHED_SLICE
#define SHED_SLICE 1024
#endif

/* ---- the sender ---- */

static skua_pid receiver_of(const struct scheduler *sched, const struct prepared_event *event)
{
    return process_table_pid(&sched->table, event->process, event->generation);
}

static int drop_new(struct scheduler *sched, struct worker *worker,
                    const struct prepared_event *event)
{
    const skua_event *content = &event->node->as.event;
    dead_letters_report(sched, worker, SKUA_DEAD_NEW, content->from, receiver_of(sched, event),
                        &content->payload);
    deliver_release_node(sched, worker, event->index);
    return SHEDDING_DROPPED;
}

static int refuse(struct scheduler *sched, struct worker *worker,
                  const struct prepared_event *event, int error)
{
    deliver_release_node(sched, worker, event->index);
    return error;
}

/* One reason is enough: if somebody has killed the process already, that is what ends it. */
static int end_receiver(struct scheduler *sched, struct worker *worker,
                        const struct prepared_event *event)
{
    const skua_pid to = receiver_of(sched, event);
    if ((state_peek(event->process) & STATE_KILL) != 0) {
        return refuse(sched, worker, event, SKUA_E_MAILBOX_FULL);
    }
    event->node->as.event.type = EVENT_OVERFLOW;
    event->node->as.event.payload = skua_payload_empty(0); /* the caller has it */
    if (!signal_push_now(sched, worker, to, event->index)) {
        return refuse(sched, worker, event, SKUA_E_NO_PROCESS);
    }
    (void)deliver_request(sched, worker, to, STATE_KILL); /* unless it has ended meanwhile */
    return SKUA_E_MAILBOX_FULL;
}

/* MO-inspect: if this is the type of a later process in the slot, the word shows that. */
static enum skua_overflow policy_of(const struct prepared_event *event)
{
    return load_acquire(&event->process->type)->overflow;
}

bool shedding_makes_room(const struct prepared_event *event)
{
    return policy_of(event) == SKUA_OVERFLOW_DROP_OLD;
}

int shedding_find_place(struct scheduler *sched, struct worker *worker,
                        const struct prepared_event *event, uint32_t limit)
{
    const enum skua_overflow policy = policy_of(event);
    if (state_generation(state_peek(event->process)) != event->generation) {
        return refuse(sched, worker, event, SKUA_E_NO_PROCESS);
    }
    switch (policy) {
    case SKUA_OVERFLOW_DROP_NEW:
        return drop_new(sched, worker, event);
    case SKUA_OVERFLOW_DROP_OLD:
        return mailbox_reserve_within_any(event->process, mailbox_shedding_limit(limit))
                   ? SHEDDING_PLACED
                   : drop_new(sched, worker, event);
    case SKUA_OVERFLOW_END:
        return end_receiver(sched, worker, event);
    case SKUA_OVERFLOW_REFUSE:
        break;
    }
    return refuse(sched, worker, event, SKUA_E_MAILBOX_FULL);
}

/* ---- the receiver ---- */

struct shedding {
    uint32_t excess; /* messages to be dropped */
    uint32_t looks;  /* events that may be looked at */
};

static void drop_old(struct worker *worker, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    dead_letters_report(worker->sched, worker, SKUA_DEAD_OLD, node->as.event.from,
                        worker->context->self, &node->as.event.payload);
    note_event(worker->sched, worker, TRACE_TAKE, worker->context->self, index);
    skua_payload_drop(&node->as.event.payload);
    event_release_owner(&worker->sched->events, &worker->caches.events, index);
    mailbox_consume_owner(process, 1);
}

/* Drops messages of a list, the oldest first, but for urgent ones and the event `kept`. Returns the
 * last event that it has looked at and left in the list, or OBJECT_NONE. */
static uint32_t shed_list(struct worker *worker, struct process *process, uint32_t *link,
                          uint32_t kept, struct shedding *shedding)
{
    uint32_t last = OBJECT_NONE;
    for (; *link != OBJECT_NONE && shedding->excess > 0 && shedding->looks > 0; shedding->looks--) {
        const uint32_t index = *link;
        struct event_node *node = event_at(&worker->sched->events, index);
        if (UNLIKELY(node->as.event.type == EVENT_BUNDLE)) {
            urgent_unpack(worker, link);
            continue;
        }
        if (node->as.event.type != SKUA_EVENT_MESSAGE || index == kept) {
            last = index;
            link = &node->next;
            continue;
        }
        *link = node->next;
        drop_old(worker, process, index);
        shedding->excess--;
    }
    return last;
}

/* What a task has put aside is older than its backlog, but for the event that it has recalled from
 * there and is about to get: it is looked at next, so nobody asks for its old place any more. */
static void shed_task(struct worker *worker, struct process *process, struct shedding *shedding)
{
    struct task *task = process->state.of_task.task;
    uint32_t recalled =
        process->state.of_task.aside != OBJECT_NONE ? process->backlog : OBJECT_NONE;
    if (task != NULL) {
        recalled = task->recalled;
        task->swept = OBJECT_NONE;
    }
    const uint32_t before_last = process->state.of_task.aside_last;
    const uint32_t last =
        shed_list(worker, process, &process->state.of_task.aside, OBJECT_NONE, shedding);
    if (last != OBJECT_NONE && event_at(&worker->sched->events, last)->next == OBJECT_NONE) {
        process->state.of_task.aside_last = last;
    } else {
        process->state.of_task.aside_last = before_last;
    }
    (void)shed_list(worker, process, &process->backlog, recalled, shedding);
}

void shedding_drop_old(struct worker *worker, struct process *process)
{
    const uint32_t limit = limits_of_mailbox(worker->sched, process);
    struct shedding shedding = {.excess = mailbox_excess_owner(process, limit),
                                .looks = SHED_SLICE};
    if (LIKELY(shedding.excess == 0) || process_type(process)->overflow != SKUA_OVERFLOW_DROP_OLD) {
        return;
    }
    if (process_is_task(process_type(process))) {
        shed_task(worker, process, &shedding);
    } else {
        (void)shed_list(worker, process, &process->backlog, OBJECT_NONE, &shedding);
    }
}
