/* SPDX-License-Identifier: MIT */
#include "sched/grouping.h"

#include <stdalign.h>

#include "base/assert.h"
#include "dispatch/call.h"
#include "process/annex.h"
#include "relations/groups.h"
#include "sched/deliver.h"
#include "sched/naming.h"
#include "sched/note.h"
#include "sched/signal.h"
#include "sched/worker.h"

/* ---- watches ---- */

struct group_watch *grouping_make_watch(struct scheduler *sched)
{
    return allocator_alloc_zeroed(&sched->allocator, sizeof(struct group_watch),
                                  alignof(struct group_watch));
}

void grouping_free_watch(struct scheduler *sched, struct group_watch *watch)
{
    allocator_free(&sched->allocator, watch, sizeof *watch, alignof(struct group_watch));
}

/* Of a call that was claimed. */
static struct group_watch *watch_of(const struct event_node *node)
{
    return group_watch_of_listener(node->as.call.listener);
}

static void end_watch(struct scheduler *sched, struct group_watch *watch, struct group_calls *calls)
{
    groups_unwatch_any(&sched->groups, watch, calls);
    grouping_free_watch(sched, watch);
}

/* Sends the calls that were claimed. If one of the processes has ended, its watch ends, and others
 * may be told in its place. */
static void send_calls(struct scheduler *sched, struct worker *worker, struct group_calls *calls)
{
    const skua_pid from = worker != NULL ? worker->context->self : (skua_pid){0};
    while (calls->count > 0) {
        const struct group_call call = calls->calls[--calls->count];
        struct event_node *node = event_at(&sched->events, call.node);
        node->as.event.type = EVENT_GROUP;
        note_event(sched, worker, TRACE_COMPLETE, call.owner, call.node);
        if (!signal_push(sched, worker, from, call.owner, call.node)) {
            struct group_watch *watch = watch_of(node);
            deliver_release_node(sched, worker, call.node);
            end_watch(sched, watch, calls);
        }
    }
}

/* To the worker's process, which takes it in a later turn, or later in this one. */
static void send_to_self(struct worker *worker, uint32_t index)
{
    event_at(&worker->sched->events, index)->as.event.type = EVENT_GROUP;
    note_event(worker->sched, worker, TRACE_COMPLETE, worker->context->self, index);
    const bool is_sent = signal_push_now(worker->sched, worker, worker->context->self, index);
    SKUA_ASSERT(is_sent); /* it is Ready, and its token is here */
}

static int start_watch(void *arg, struct worker *worker, const struct yield *yield,
                       skua_completion completion, skua_payload *result)
{
    (void)arg;
    (void)result;
    struct scheduler *sched = worker->sched;
    struct group_watch *watch = yield->as.group.watch;
    struct event_node *node = event_at(&sched->events, yield->node);
    watch->owner = completion.process;
    watch->node = yield->node;
    const int error = groups_watch_any(&sched->groups, yield->as.group.text, watch);
    naming_free_copy(sched, yield->as.group.text);
    if (error != 0) {
        grouping_free_watch(sched, watch);
        return error;
    }
    node->as.call.listener = group_watch_listener(watch);
    node->as.call.previous |= CALL_TELLS;
    const bool is_claimed = call_claim_any(node, call_guard(completion));
    SKUA_ASSERT(is_claimed); /* nobody else knows of it yet */
    send_to_self(worker, yield->node);
    return SKUA_PENDING;
}

static void discard_watch(struct worker *worker, const struct yield *yield)
{
    naming_free_copy(worker->sched, yield->as.group.text);
    grouping_free_watch(worker->sched, yield->as.group.watch);
}

void grouping_attach(struct scheduler *sched)
{
    sched->services[SERVICE_GROUP] =
        (struct service){.name = "group", .start = start_watch, .discard = discard_watch};
}

/* The watch ends with a completion. */
static void complete_watch(struct worker *worker, struct process *process, uint32_t index,
                           int error, skua_event *event, struct group_calls *calls)
{
    struct scheduler *sched = worker->sched;
    struct event_node *node = event_at(&sched->events, index);
    struct group_watch *watch = watch_of(node);
    event_make(event, SKUA_EVENT_COMPLETION, error);
    event->tag = node->as.event.tag;
    call_unlink_owner(&sched->events, process, node, index);
    event_release_owner(&sched->events, &worker->caches.events, index);
    end_watch(sched, watch, calls);
}

void grouping_take(struct worker *worker, struct process *process, uint32_t index,
                   skua_event *event)
{
    struct scheduler *sched = worker->sched;
    struct event_node *node = event_at(&sched->events, index);
    struct group_calls calls = {.count = 0};
    const bool ends = (node->as.call.previous & CALL_ENDS) != 0;
    bool has_more = false;
    event_make(event, SKUA_EVENT_GROUP, 0);
    event->tag = node->as.event.tag;
    node->next = call_subject(SERVICE_GROUP + 1, 0); /* it was in a list as an event */
    const int error = ends ? SKUA_E_CANCELLED
                           : groups_take_news_any(&sched->groups, watch_of(node), &event->payload,
                                                  &has_more, &calls);
    if (UNLIKELY(error != 0)) {
        complete_watch(worker, process, index, error, event, &calls);
    } else if (has_more) {
        send_to_self(worker, index);
    } /* otherwise the call is open again: somebody else may have it now */
    send_calls(sched, worker, &calls);
}

void grouping_drop(struct worker *worker, uint32_t index)
{
    struct scheduler *sched = worker->sched;
    struct group_calls calls = {.count = 0};
    struct group_watch *watch = watch_of(event_at(&sched->events, index));
    event_release_owner(&sched->events, &worker->caches.events, index);
    end_watch(sched, watch, &calls);
    send_calls(sched, worker, &calls);
}

void grouping_abandon(struct scheduler *sched, struct worker *worker, const skua_handler *listener)
{
    struct group_calls calls = {.count = 0};
    end_watch(sched, group_watch_of_listener(listener), &calls);
    send_calls(sched, worker, &calls);
}

/* ---- members ---- */

static void tell_change(struct worker *worker, const char *name, bool has_joined,
                        struct group_calls *calls)
{
    struct observer *observer = worker->sched->observer;
    if (UNLIKELY(observer != NULL)) {
        observer->group_changes(observer, worker, name, has_joined);
    }
    send_calls(worker->sched, worker, calls);
}

int grouping_join(const skua_context *ctx, const char *name)
{
    struct scheduler *sched = ctx->sched;
    struct group_calls calls = {.count = 0};
    bool is_new = false;
    int error = names_check(name);
    if (error != 0) {
        return error;
    }
    struct wing *wing = signal_wing(sched, ctx->worker, ctx->process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    error = groups_join_any(&sched->groups, name, ctx->self, &wing->groups, &is_new, &calls);
    if (error == 0 && is_new) {
        wing->group_count++;
        tell_change(ctx->worker, name, true, &calls);
    }
    return error;
}

int grouping_leave(const skua_context *ctx, const char *name)
{
    struct scheduler *sched = ctx->sched;
    struct wing *wing = annex_wing(&sched->events, ctx->process);
    struct group_calls calls = {.count = 0};
    struct membership *none = NULL;
    bool is_over = false;
    const int error = groups_leave_any(&sched->groups, name, wing != NULL ? &wing->groups : &none,
                                       &is_over, &calls);
    if (is_over) {
        wing->group_count--;
        tell_change(ctx->worker, name, false, &calls);
    }
    return error;
}

bool grouping_leave_some(struct worker *worker, struct process *process, uint32_t *budget)
{
    struct scheduler *sched = worker->sched;
    struct wing *wing = annex_wing(&sched->events, process);
    for (; wing != NULL && wing->groups != NULL && *budget > 0; --*budget) {
        struct group_calls calls = {.count = 0};
        char name[NAME_SIZE];
        memcpy(name, wing->groups->group->name, NAME_SIZE);
        groups_leave_one_any(&sched->groups, &wing->groups, &calls);
        wing->group_count--;
        tell_change(worker, name, false, &calls);
    }
    return wing == NULL || wing->groups == NULL;
}

/* Level by level, from the root. */
uint32_t grouping_list(const struct annex *annex, const char *names[DESCRIBE_GROUPS])
{
    const struct membership *found[DESCRIBE_GROUPS];
    uint32_t count = 0;
    if (annex->wing != NULL && annex->wing->groups != NULL) {
        found[count++] = annex->wing->groups;
    }
    for (uint32_t i = 0; i < count; i++) {
        names[i] = found[i]->group->name;
        for (uint32_t side = 0; side < 2; side++) {
            if (found[i]->child[side] != NULL && count < DESCRIBE_GROUPS) {
                found[count++] = found[i]->child[side];
            }
        }
    }
    return count;
}
