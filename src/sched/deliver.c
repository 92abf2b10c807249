/* SPDX-License-Identifier: MIT */
#include "sched/deliver.h"

#include "base/mutex.h"
#include "dispatch/call.h"
#include "process/mailbox.h"
#include "process/payload.h"
#include "sched/abandon.h"
#include "sched/dead_letters.h"
#include "sched/limits.h"
#include "sched/note.h"
#include "sched/shedding.h"
#include "sched/worker.h"

bool deliver_acquire_node_outside(struct scheduler *sched, uint32_t *index)
{
    mutex_lock(&sched->outside.lock);
    const bool taken = event_acquire_owner(&sched->events, &sched->outside.caches.events, index);
    mutex_unlock(&sched->outside.lock);
    return taken;
}

void deliver_release_node_outside(struct scheduler *sched, uint32_t index)
{
    mutex_lock(&sched->outside.lock);
    event_release_owner(&sched->events, &sched->outside.caches.events, index);
    mutex_unlock(&sched->outside.lock);
}

/* An event was pushed: wakes the process if it waited. False if that is gone. */
static ALWAYS_INLINE bool finish_push(struct scheduler *sched, struct worker *worker,
                                      struct process *process, enum state_duty duty)
{
    switch (duty) {
    case STATE_ENQUEUE:
        submit_ready(sched, worker, process);
        return true;
    case STATE_DONE:
        return true;
    case STATE_CLOSED:
        break;
    }
    return false;
}

/* Pushes a filled node. False if the process is gone. */
static ALWAYS_INLINE bool push_at_once(struct scheduler *sched, struct worker *worker,
                                       const struct prepared_event *event)
{
    return finish_push(
        sched, worker, event->process,
        state_push_any(event->process, event->generation, event->index, &event->node->next));
}

static NOINLINE bool push_event(struct scheduler *sched, struct worker *worker,
                                const struct prepared_event *event)
{
    return push_at_once(sched, worker, event);
}

static NOINLINE bool push_urgent(struct scheduler *sched, struct worker *worker,
                                 const struct prepared_event *event)
{
    return finish_push(
        sched, worker, event->process,
        state_push_urgent_any(event->process, event->generation, event->index, &event->node->next));
}

/* As deliver_acquire_node; returns the node, or null. */
static ALWAYS_INLINE struct event_node *acquire_node(struct scheduler *sched, struct worker *worker,
                                                     uint32_t *index)
{
    if (LIKELY(worker != NULL)) {
        return event_acquire_node_owner(&sched->events, &worker->caches.events, index);
    }
    uint32_t taken; /* the caller keeps its own in a register */
    if (!deliver_acquire_node_outside(sched, &taken)) {
        return NULL;
    }
    *index = taken;
    return event_at(&sched->events, taken);
}

/* Builds the event of a message; reserves no place in the mailbox. Inline: sending is the one path
 * that must not pay for being split into functions. */
ALWAYS_INLINE static int make_message(struct scheduler *sched, struct worker *worker, skua_pid from,
                                      skua_pid to, const skua_payload *payload,
                                      struct prepared_event *event)
{
    const int refused = payload_refuse(payload, sched->config.payload_limit);
    if (UNLIKELY(refused != 0)) {
        return refused;
    }
    const int error = process_table_find_live(&sched->table, to, &event->process);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    event->node = acquire_node(sched, worker, &event->index);
    if (UNLIKELY(event->node == NULL)) {
        return SKUA_E_NO_MEMORY;
    }
    event->generation = pid_generation(to);
    skua_event *content = &event->node->as.event;
    content->type = SKUA_EVENT_MESSAGE;
    content->error = 0;
    content->tag = 0;
    content->from = from;
    payload_put(&content->payload, payload);
    event->is_message = true;
    return 0;
}

/* Back-pressure: a process with more waiting messages than one step takes is *crowded*. Sending to
 * it ends the sender's pick, and may hold it back (held_back.h). The mark is that low because
 * senders that are held back take turns: if a round of turns takes longer than HELD_BACK_NS, some
 * are let go early and run on other cores. */
static inline void press(struct worker *worker, struct process *process)
{
    if (worker != NULL && mailbox_length(process) > worker->events_max) {
        worker->is_pressed = true;
        worker->crowded = process;
        worker->crowded_at = load_relaxed(&worker->stats.steps); /* this thread's */
    }
}

/* Finds a place for a message to a process with a mark: in its quota, then in its mailbox. */
static int find_limited_place(struct scheduler *sched, struct worker *worker,
                              struct prepared_event *event)
{
    const int error = limits_charge(sched, event->process, event->generation, &event->quota);
    if (error != 0) {
        deliver_release_node(sched, worker, event->index);
        return error;
    }
    const uint32_t limit = limits_of_mailbox(sched, event->process);
    if (mailbox_reserve_within_any(event->process,
                                   event->is_urgent ? mailbox_urgent_limit(limit) : limit)) {
        return SHEDDING_PLACED;
    }
    const int outcome = shedding_find_place(sched, worker, event, limit);
    if (outcome != SHEDDING_PLACED) {
        limits_pushed(sched, event->quota, false);
    }
    return outcome;
}

/* The same for one that has found no place the usual way. */
static int find_other_place(struct scheduler *sched, struct worker *worker,
                            struct prepared_event *event)
{
    const uint32_t limit = load_relaxed(&event->process->mailbox_limit); /* fixed */
    return limit >= MAILBOX_MARK ? find_limited_place(sched, worker, event)
                                 : shedding_find_place(sched, worker, event, limit);
}

/* A message that has a place was pushed; or not, because the process has ended meanwhile. */
static ALWAYS_INLINE int finish_add(struct scheduler *sched, struct worker *worker,
                                    const struct prepared_event *event, bool pushed)
{
    if (UNLIKELY(!pushed)) {
        mailbox_unreserve_any(event->process);
        deliver_release_node(sched, worker, event->index);
        return SKUA_E_NO_PROCESS;
    }
    press(worker, event->process);
    return 0;
}

/* Finds a place for a message in a mailbox that is full, if its type has one, or sends it to a
 * process with a mark. The event is copied: one whose address is known elsewhere is not kept in
 * registers. */
static NOINLINE int find_place(struct scheduler *sched, struct worker *worker,
                               struct prepared_event event)
{
    event.is_urgent = false;
    event.quota = NULL;
    const int outcome = find_other_place(sched, worker, &event);
    if (outcome != SHEDDING_PLACED || event.quota == NULL) {
        return outcome;
    }
    const int error = finish_add(sched, worker, &event, push_event(sched, worker, &event));
    limits_pushed(sched, event.quota, error == 0);
    return error == 0 ? SHEDDING_SENT : error;
}

/* Takes a place for a message that is about to be pushed; false if there is none. Only what
 * processes send is counted late: nothing would settle the tally after the rest. */
static inline bool take_place(struct scheduler *sched, struct worker *worker, skua_pid from,
                              struct process *process, bool has_room)
{
    if (LIKELY(has_room) && LIKELY(from.bits != 0) && LIKELY(worker != NULL) &&
        LIKELY(mailbox_may_tally(process, mailbox_large(sched->capacity)))) {
        mailbox_tally_owner(&worker->tally, process);
        return true;
    }
    return mailbox_reserve_any(process);
}

/* Gives a message to a process that runs or is about to run. Returns 0, or an error if it has ended
 * meanwhile or its mailbox is full, or SHEDDING_DROPPED; then the node is released. */
static ALWAYS_INLINE int add_message(struct scheduler *sched, struct worker *worker, skua_pid from,
                                     const struct prepared_event *event, bool has_room)
{
    if (UNLIKELY(!take_place(sched, worker, from, event->process, has_room))) {
        const int outcome = find_place(sched, worker, *event);
        if (outcome != SHEDDING_PLACED) {
            return outcome != SHEDDING_SENT ? outcome : 0;
        }
    }
    return finish_add(sched, worker, event, push_at_once(sched, worker, event));
}

int deliver_message(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    skua_payload *payload)
{
    struct prepared_event event;
    int error = make_message(sched, worker, from, to, payload, &event);
    if (UNLIKELY(error != 0)) {
        goto refused;
    }
    note_send(sched, worker, from, to, event.index, payload->type);
    const bool has_room = mailbox_has_room(event.process);
    if (LIKELY(has_room) &&
        state_wake_any(event.process, event.generation, event.index, &event.node->next)) {
        submit_ready(sched, worker, event.process);
    } else {
        error = add_message(sched, worker, from, &event, has_room);
        if (UNLIKELY(error != 0)) {
            error = error != SHEDDING_DROPPED ? error : 0; /* none to the sender */
            goto refused;
        }
    }
    NOTE_COUNT(sched, worker, messages);
    payload_mark_taken(payload);
    return 0;

refused:
    payload_discard(payload);
    return error;
}

/* It is noted when it has been sent: nobody can take it before the receiver is submitted. */
struct process *deliver_wake(struct worker *worker, skua_pid from, skua_pid to,
                             const skua_payload *payload)
{
    struct scheduler *sched = worker->sched;
    struct prepared_event event;
    if (make_message(sched, worker, from, to, payload, &event) != 0) {
        return NULL;
    }
    if (UNLIKELY(!mailbox_has_room(event.process)) ||
        UNLIKELY(
            !state_wake_any(event.process, event.generation, event.index, &event.node->next))) {
        event_release_owner(&sched->events, &worker->caches.events, event.index);
        return NULL;
    }
    note_send(sched, worker, from, to, event.index, payload->type);
    NOTE_COUNT(sched, worker, messages);
    return event.process;
}

/* Reserves a place for a message whose sender would wait for one; false if there is none. */
static bool reserve_within(const struct prepared_event *event, uint32_t limit)
{
    return mailbox_reserve_within_any(event->process, limit) ||
           (shedding_makes_room(event) &&
            mailbox_reserve_within_any(event->process, mailbox_shedding_limit(limit)));
}

int deliver_reserve(struct scheduler *sched, struct prepared_event *event)
{
    event->quota = NULL;
    const int error = mailbox_is_marked(event->process)
                          ? limits_charge(sched, event->process, event->generation, &event->quota)
                          : 0;
    if (error != 0) {
        return error;
    }
    if (!reserve_within(event, limits_of_mailbox(sched, event->process))) {
        limits_pushed(sched, event->quota, false);
        return SKUA_E_MAILBOX_FULL;
    }
    return 0;
}

void deliver_unreserve(struct scheduler *sched, const struct prepared_event *event)
{
    mailbox_unreserve_any(event->process);
    limits_pushed(sched, event->quota, false);
}

bool deliver_reserved(struct scheduler *sched, struct worker *worker,
                      const struct prepared_event *event)
{
    if (!push_event(sched, worker, event)) {
        deliver_unreserve(sched, event);
        return false;
    }
    limits_pushed(sched, event->quota, true);
    press(worker, event->process);
    NOTE_COUNT(sched, worker, messages);
    return true;
}

int deliver_prepare(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    const skua_payload *payload, struct prepared_event *prepared)
{
    const int error = make_message(sched, worker, from, to, payload, prepared);
    if (error != 0) {
        return error;
    }
    prepared->is_urgent = false;
    prepared->quota = NULL;
    return LIKELY(mailbox_reserve_any(prepared->process))
               ? 0
               : find_other_place(sched, worker, prepared);
}

/* A message was accepted, and its receiver has ended before it came. */
static void drop_prepared(struct scheduler *sched, struct worker *worker,
                          const struct prepared_event *prepared)
{
    const skua_event *content = &prepared->node->as.event;
    dead_letters_report(sched, worker, SKUA_DEAD_UNREAD, content->from,
                        process_table_pid(&sched->table, prepared->process, prepared->generation),
                        &content->payload);
    deliver_unreserve(sched, prepared);
}

/* A place for an urgent message. */
static int find_urgent_place(struct scheduler *sched, struct worker *worker,
                             struct prepared_event *prepared)
{
    const uint32_t limit = load_relaxed(&prepared->process->mailbox_limit); /* fixed */
    const bool is_placed =
        limit < MAILBOX_MARK &&
        mailbox_reserve_within_any(prepared->process, mailbox_urgent_limit(limit));
    return is_placed ? SHEDDING_PLACED : find_other_place(sched, worker, prepared);
}

/* 0, or why the process takes no urgent messages. If its record belongs to another by now, the push
 * finds that out. */
static int refuse_urgent(struct scheduler *sched, struct process *process, skua_pid to)
{
    if (process_type_any(process)->urgent) {
        return 0;
    }
    const int gone = process_table_find_live(&sched->table, to, &process);
    return gone != 0 ? gone : SKUA_E_NOT_URGENT;
}

int deliver_prepare_urgent(struct scheduler *sched, struct worker *worker, skua_pid from,
                           skua_pid to, const skua_payload *payload,
                           struct prepared_event *prepared)
{
    int error = make_message(sched, worker, from, to, payload, prepared);
    if (error != 0) {
        return error;
    }
    error = refuse_urgent(sched, prepared->process, to);
    if (error != 0) {
        deliver_release_node(sched, worker, prepared->index);
        return error;
    }
    prepared->is_urgent = true;
    prepared->quota = NULL;
    error = find_urgent_place(sched, worker, prepared);
    if (error != SHEDDING_PLACED) {
        return error;
    }
    prepared->node->as.event.type = EVENT_URGENT;
    return 0;
}

int deliver_urgent(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                   skua_payload *payload)
{
    struct prepared_event event;
    int error = deliver_prepare_urgent(sched, worker, from, to, payload, &event);
    if (error == 0) {
        note_send(sched, worker, from, to, event.index, payload->type);
        error = finish_add(sched, worker, &event, push_urgent(sched, worker, &event));
        limits_pushed(sched, event.quota, error == 0);
    }
    if (error != 0) {
        payload_discard(payload);
        return error < 0 ? error : 0; /* one that was dropped is none to the sender */
    }
    NOTE_COUNT(sched, worker, messages);
    payload_mark_taken(payload);
    return 0;
}

bool deliver_prepared(struct scheduler *sched, struct worker *worker,
                      const struct prepared_event *prepared)
{
    const bool pushed = (prepared->is_urgent ? push_urgent : push_event)(sched, worker, prepared);
    if (!pushed) {
        if (prepared->is_message) {
            drop_prepared(sched, worker, prepared);
        }
        deliver_release_node(sched, worker, prepared->index);
    } else if (prepared->is_message) {
        limits_pushed(sched, prepared->quota, true);
        NOTE_COUNT(sched, worker, messages);
    }
    return pushed;
}

int deliver_prepare_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason,
                           struct prepared_event *prepared)
{
    const int error = process_table_find_live(&sched->table, to, &prepared->process);
    if (error != 0) {
        return error;
    }
    if (!deliver_acquire_node(sched, worker, &prepared->index)) {
        return SKUA_E_NO_MEMORY;
    }
    prepared->generation = pid_generation(to);
    prepared->node = event_at(&sched->events, prepared->index);
    prepared->node->as.event =
        (skua_event){.type = SKUA_EVENT_CANCEL, .error = reason, .payload = skua_payload_empty(0)};
    prepared->is_message = false;
    prepared->is_urgent = false;
    return 0;
}

int deliver_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason)
{
    struct prepared_event prepared;
    const int error = deliver_prepare_cancel(sched, worker, to, reason, &prepared);
    if (error != 0) {
        return error;
    }
    return deliver_prepared(sched, worker, &prepared) ? 0 : SKUA_E_NO_PROCESS;
}

int deliver_request(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t request)
{
    struct process *process;
    const int error = process_table_find(&sched->table, to, &process);
    if (error != 0) {
        return error;
    }
    switch (state_request_any(process, pid_generation(to), request)) {
    case STATE_ENQUEUE:
        submit_ready(sched, worker, process);
        return 0;
    case STATE_DONE:
        return 0;
    case STATE_CLOSED:
        break;
    }
    return SKUA_E_NO_PROCESS;
}

/* Releases the node if the process is gone. */
static enum state_duty push_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                                 uint32_t call, struct process **process)
{
    struct event_node *node = event_at(&sched->events, call);
    *process = process_at(&sched->table, pid_slot(owner));
    const enum state_duty duty = state_push_any(*process, pid_generation(owner), call, &node->next);
    if (duty == STATE_CLOSED) {
        if (UNLIKELY(node->as.event.type == EVENT_ABANDONED)) {
            abandon_refused(sched, owner, node, call);
        }
        deliver_release_node(sched, worker, call);
    }
    return duty;
}

struct process *deliver_call(struct scheduler *sched, struct worker *worker, skua_pid owner,
                             uint32_t call)
{
    struct process *process;
    return push_call(sched, worker, owner, call, &process) == STATE_ENQUEUE ? process : NULL;
}

/* Once it has claimed the call, the completion is accepted: if the process ends just then, it is
 * dropped with the process's other events, as it were. */
static int complete(struct scheduler *sched, struct worker *worker, skua_completion completion,
                    int error, skua_payload *result)
{
    const uint32_t index = call_index(completion);
    struct process *process;
    const int found = process_table_find(&sched->table, completion.process, &process);
    if (found == SKUA_E_FOREIGN_PID) {
        return found;
    }
    if (found != 0 || !object_pool_holds(&sched->events, index)) {
        return SKUA_E_LATE;
    }
    struct event_node *node = event_at(&sched->events, index);
    if (!call_claim_any(node, call_guard(completion))) {
        return SKUA_E_LATE;
    }
    /* The call knows its owner, whatever a forged completion says. */
    const skua_pid owner = node->as.call.owner;
    call_disarm_owner(&sched->deadlines, node, index);
    note_event(sched, worker, TRACE_COMPLETE, owner, index);
    call_complete_owner(node, error, result);
    const enum state_duty duty = push_call(sched, worker, owner, index, &process);
    if (duty == STATE_ENQUEUE) {
        submit_ready(sched, worker, process);
    }
    if (UNLIKELY(duty == STATE_CLOSED)) {
        skua_payload_drop(result);
    }
    return 0;
}

int deliver_completion(struct scheduler *sched, struct worker *worker, skua_completion completion,
                       int error, skua_payload *result)
{
    const int outcome = complete(sched, worker, completion, error, result);
    if (outcome != 0) {
        skua_payload_drop(result);
    }
    if (outcome == SKUA_E_LATE) {
        NOTE_COUNT(sched, worker, late_completions);
    }
    return outcome;
}
