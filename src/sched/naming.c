/* SPDX-License-Identifier: MIT */
#include "sched/naming.h"

#include <stdalign.h>
#include <stdio.h>

#include "process/annex.h"
#include "relations/names.h"
#include "sched/deliver.h"
#include "sched/note.h"
#include "sched/signal.h"
#include "sched/worker.h"

/* Waiters that are told in one slice. */
#define WAITERS_SLICE 256

/* ---- waiters ---- */

static void release_chain(struct scheduler *sched, struct worker *worker, uint32_t index)
{
    while (index != OBJECT_NONE) {
        const uint32_t next = event_at(&sched->events, index)->next;
        deliver_release_node(sched, worker, index);
        index = next;
    }
}

/* Tells the first of a chain, and takes it off. Its node is not released. */
static uint32_t tell_first(struct scheduler *sched, struct worker *worker, skua_pid pid,
                           uint32_t *waiters)
{
    const uint32_t index = *waiters;
    const struct event_node *node = event_at(&sched->events, index);
    const skua_completion completion = {.process = node->as.event.from, .call = node->as.event.tag};
    skua_payload payload = skua_payload_u64(0, pid.bits);
    *waiters = node->next;
    (void)signal_complete(sched, worker, pid, completion, 0, &payload);
    return index;
}

/* Leaves the rest to the process that has the name, on a node that is free for it. False if that
 * process has ended. */
static bool leave_waiters(struct scheduler *sched, struct worker *worker, skua_pid pid,
                          uint32_t index, uint32_t waiters)
{
    event_at(&sched->events, index)->as.waiters =
        (struct name_waiters){.type = EVENT_WAITERS, .first = waiters};
    return signal_push_now(sched, worker, pid, index);
}

/* A million waiters would keep the worker from all else, so that only a slice is told at once. The
 * rest becomes an event of the process that has the name: they are told in its next turns, or when
 * it ends, whichever comes first. So each is told once, and in order. */
void naming_tell(struct scheduler *sched, struct worker *worker, skua_pid pid, uint32_t waiters)
{
    for (uint32_t count = 1; waiters != OBJECT_NONE; count++) {
        const uint32_t index = tell_first(sched, worker, pid, &waiters);
        if (count >= WAITERS_SLICE && waiters != OBJECT_NONE &&
            leave_waiters(sched, worker, pid, index, waiters)) {
            return;
        }
        deliver_release_node(sched, worker, index);
    }
}

void naming_take_waiters(struct worker *worker, uint32_t index)
{
    const uint32_t waiters = event_at(&worker->sched->events, index)->as.waiters.first;
    deliver_release_node(worker->sched, worker, index);
    naming_tell(worker->sched, worker, worker->context->self, waiters);
}

void naming_drop_waiter(struct worker *worker, struct process *process, uint32_t index)
{
    struct scheduler *sched = worker->sched;
    struct event_node *node = event_at(&sched->events, index);
    uint32_t *waiters = &node->as.waiters.first;
    deliver_release_node(sched, worker, tell_first(sched, worker, worker->context->self, waiters));
    if (*waiters == OBJECT_NONE) {
        deliver_release_node(sched, worker, index);
    } else {
        node->next = process->backlog;
        process->backlog = index;
    }
}

static int start_await(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result)
{
    (void)arg;
    struct scheduler *sched = worker->sched;
    const uint32_t waiter = yield->as.name.node;
    struct name_outcome outcome;
    event_at(&sched->events, waiter)->as.event = (skua_event){
        .type = EVENT_NAME_WAITER,
        .tag = completion.call,
        .from = completion.process,
        .payload = skua_payload_empty(0),
    };
    const int error = names_await_any(&sched->names, yield->as.name.text, waiter, &outcome);
    release_chain(sched, worker, outcome.stale);
    naming_free_copy(sched, yield->as.name.text);
    if (error != SKUA_PENDING) {
        deliver_release_node(sched, worker, waiter);
    }
    if (error == 0) {
        *result = skua_payload_u64(0, outcome.holder.bits);
    }
    return error;
}

static void discard_await(struct worker *worker, const struct yield *yield)
{
    deliver_release_node(worker->sched, worker, yield->as.name.node);
    naming_free_copy(worker->sched, yield->as.name.text);
}

void naming_attach(struct scheduler *sched)
{
    sched->services[SERVICE_NAME] =
        (struct service){.name = "name", .start = start_await, .discard = discard_await};
}

uint32_t naming_entry(struct scheduler *sched, const char *name)
{
    struct name_handle handle;
    return names_handle_any(&sched->names, name, &handle) == 0 ? handle.entry : 0;
}

char *naming_copy(struct scheduler *sched, const char *name)
{
    char *copy = allocator_alloc(&sched->allocator, NAME_SIZE, alignof(char));
    if (copy != NULL) {
        (void)snprintf(copy, NAME_SIZE, "%s", name); /* it was checked: it fits */
    }
    return copy;
}

void naming_free_copy(struct scheduler *sched, char *copy)
{
    allocator_free(&sched->allocator, copy, NAME_SIZE, alignof(char));
}

/* ---- names ---- */

static void give_up_name(struct scheduler *sched, struct annex *annex, uint32_t entry, skua_pid pid)
{
    struct names *names = &sched->names;
    const struct name_links links = *names_links_owner(names, entry);
    if (annex->names == entry) {
        annex->names = links.next;
    } else {
        names_links_owner(names, links.previous)->next = links.next;
    }
    const uint32_t after = links.next != OBJECT_NONE ? links.next : annex->names;
    if (after != OBJECT_NONE) {
        names_links_owner(names, after)->previous = links.previous;
    }
    (void)names_release_any(names, entry, pid);
}

/* What follows from an attempt to give a process a name. */
static void act_on_outcome(struct scheduler *sched, struct worker *worker,
                           const struct name_outcome *outcome, int error, skua_pid *holder,
                           uint32_t *waiters)
{
    release_chain(sched, worker, outcome->stale);
    if (error == SKUA_E_NAME_TAKEN && holder != NULL) {
        *holder = outcome->holder;
    }
    if (error == 0) {
        *waiters = outcome->waiters;
    }
}

static int register_name(struct names *names, const char *name, skua_pid pid, uint32_t *list,
                         struct name_outcome *outcome)
{
    const int error = names_register_any(names, name, pid, outcome);
    if (error == 0) {
        names_link_owner(names, list, outcome->entry);
    }
    return error;
}

/* As naming_publish, if the process is to be published, or naming_register. */
static int give_name(struct scheduler *sched, struct worker *worker, struct process *process,
                     skua_pid pid, const char *name, bool publishes, skua_pid *holder,
                     uint32_t *waiters)
{
    struct name_outcome outcome;
    struct annex *annex = signal_annex(sched, worker, process);
    if (annex == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    const bool is_first = annex->names == OBJECT_NONE;
    const int error =
        publishes ? names_publish_any(&sched->names, name, process, pid, &annex->names, &outcome)
                  : register_name(&sched->names, name, pid, &annex->names, &outcome);
    act_on_outcome(sched, worker, &outcome, error, holder, waiters);
    if (error == 0 && is_first) {
        note_text(sched, worker, TRACE_NAME, pid, name);
    }
    return error;
}

int naming_register(struct scheduler *sched, struct worker *worker, struct process *process,
                    skua_pid pid, const char *name, skua_pid *holder, uint32_t *waiters)
{
    return give_name(sched, worker, process, pid, name, false, holder, waiters);
}

int naming_publish(struct scheduler *sched, struct worker *worker, struct process *process,
                   skua_pid pid, const char *name, skua_pid *holder, uint32_t *waiters)
{
    return give_name(sched, worker, process, pid, name, true, holder, waiters);
}

bool naming_first(struct scheduler *sched, const struct annex *annex, char text[NAME_SIZE])
{
    if (annex->names == OBJECT_NONE) {
        return false;
    }
    const uint32_t oldest = names_links_owner(&sched->names, annex->names)->previous;
    (void)names_text(&sched->names, oldest, text);
    return true;
}

/* To a trace, if somebody traces. */
static void trace_name_and_label(struct worker *worker, const struct annex *annex)
{
    struct scheduler *sched = worker->sched;
    const skua_pid pid = worker->context->self;
    char text[NAME_SIZE];
    if (LIKELY(tracer_active(&sched->tracer) == NULL)) {
        return;
    }
    if (naming_first(sched, annex, text)) {
        note_text(sched, worker, TRACE_NAME, pid, text);
    }
    if (annex->label != NULL) {
        note_text(sched, worker, TRACE_LABEL, pid, annex->label);
    }
}

void naming_go(struct worker *worker, const struct annex *annex)
{
    struct scheduler *sched = worker->sched;
    trace_name_and_label(worker, annex);
    if (UNLIKELY(sched->observer != NULL)) {
        sched->observer->names_go(sched->observer, worker);
    }
}

void naming_keep(struct scheduler *sched, struct annex *annex)
{
    char text[NAME_SIZE];
    if (sched->config.on_log == NULL || !naming_first(sched, annex, text)) {
        return;
    }
    char *copy = naming_copy(sched, text);
    if (copy != NULL) {
        naming_free_copy(sched, annex->label);
        annex->label = copy;
    }
}

int naming_unregister(skua_context *ctx, const char *name)
{
    struct scheduler *sched = ctx->sched;
    const int refused = names_check(name);
    if (refused != 0) {
        return refused;
    }
    const uint32_t entry = names_entry_of(&sched->names, name, ctx->self);
    if (entry == OBJECT_NONE) {
        return SKUA_E_NO_PROCESS;
    }
    give_up_name(sched, annex_of(&sched->events, ctx->process), entry, ctx->self);
    return 0;
}

bool naming_release_some(struct scheduler *sched, struct process *process, skua_pid pid,
                         uint32_t *budget)
{
    struct annex *annex = annex_of(&sched->events, process);
    for (; annex->names != OBJECT_NONE && *budget > 0; --*budget) {
        give_up_name(sched, annex, annex->names, pid);
    }
    return annex->names == OBJECT_NONE;
}

/* ---- labels ---- */

int naming_label(struct scheduler *sched, struct worker *worker, struct process *process,
                 skua_pid pid, const char *label)
{
    const int refused = label != NULL ? names_check(label) : 0;
    if (refused != 0) {
        return refused;
    }
    struct annex *annex =
        label != NULL ? signal_annex(sched, worker, process) : annex_of(&sched->events, process);
    char *copy = label != NULL && annex != NULL ? naming_copy(sched, label) : NULL;
    if (label != NULL && copy == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    if (annex != NULL) {
        naming_free_copy(sched, annex->label);
        annex->label = copy;
        note_text(sched, worker, TRACE_LABEL, pid, label != NULL ? label : "");
    }
    return 0;
}
