/* SPDX-License-Identifier: MIT */
#include "sched/publishing.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "process/annex.h"
#include "process/payload.h"
#include "relations/groups.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/signal.h"
#include "sched/worker.h"

/* Members that are visited in one slice; and for one event that is dropped, of which a slice of the
 * end of a process has many (exit.c). */
#define PUBLISH_SLICE WOKEN_MAX
#define DROP_SLICE    4

/* So many sends ahead the record of a receiver is fetched into the cache. */
#define PREFETCH_AHEAD 6

struct publishing {
    struct publishing *next;
    struct group *group; /* null: there is nobody to visit any more */
    struct group_cursor cursor;
    skua_payload payload;
    skua_completion completion;
    uint32_t total;
    uint32_t accepted;
    char name[NAME_SIZE];
};

static void free_record(struct scheduler *sched, struct publishing *record)
{
    skua_payload_drop(&record->payload);
    allocator_free(&sched->allocator, record, sizeof *record, alignof(struct publishing));
}

static skua_payload make_result(const struct publishing *record)
{
    skua_payload result = skua_payload_empty(0);
    result.storage = SKUA_PAYLOAD_INLINE;
    result.inline_size = sizeof(skua_published);
    result.as.words[0] = record->accepted;
    result.as.words[1] = record->total - record->accepted;
    return result;
}

/* ---- sending ---- */

/* To a member that does not wait. What a full mailbox leads to may call the program. */
static NOINLINE bool send_otherwise(struct worker *worker, skua_pid to, const skua_payload *payload)
{
    skua_payload copy = *payload;
    submit_woken(worker);
    return deliver_message(worker->sched, worker, worker->context->self, to, &copy) == 0;
}

/* Whether the simulator has taken it, to deliver it late. */
static NOINLINE bool takes_detour(struct worker *worker, skua_pid to, const skua_payload *payload,
                                  bool *is_accepted)
{
    struct detour *detour = worker->sched->detour;
    skua_payload copy = *payload;
    int error;
    if (!detour->take_message(detour, worker->context->self, to, &copy, &error)) {
        return false;
    }
    *is_accepted = error == 0;
    return true;
}

/* The worker has its token, so it may look where its annex is, which a process needs to rest. */
static void prefetch_annex(struct scheduler *sched, struct process *process)
{
    if ((process_progress(process) & PROCESS_ANNEX) != 0) {
        __builtin_prefetch(event_at(&sched->events, process->calls));
    }
}

static bool send_to(struct worker *worker, skua_pid to, const skua_payload *payload)
{
    struct scheduler *sched = worker->sched;
    bool is_accepted;
    if (UNLIKELY(sched->detour != NULL) && takes_detour(worker, to, payload, &is_accepted)) {
        return is_accepted;
    }
    struct process *woken = deliver_wake(worker, worker->context->self, to, payload);
    if (UNLIKELY(woken == NULL)) {
        return send_otherwise(worker, to, payload);
    }
    prefetch_annex(sched, woken);
    submit_later(worker, woken);
    return true;
}

/* Visits up to `most` members, PUBLISH_SLICE at most. Those that it wakes are to be submitted yet.
 * True if that was all. */
static bool send_slice(struct worker *worker, struct publishing *record, uint32_t most)
{
    struct scheduler *sched = worker->sched;
    skua_pid pids[PUBLISH_SLICE];
    if (record->group == NULL) {
        return true;
    }
    const uint32_t count =
        groups_visit_any(&sched->groups, record->group, &record->cursor, pids, most);
    if (record->cursor.at.chunk == NULL) {
        record->group = NULL;
    }
    payload_add_owners(&record->payload, count); /* each send takes one, also if it is refused */
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) {
            __builtin_prefetch(process_at(&sched->table, pid_slot(pids[i + PREFETCH_AHEAD])), 1);
        }
        record->accepted += send_to(worker, pids[i], &record->payload);
    }
    mailbox_settle_owner(&worker->tally); /* there may be no step after this */
    return record->group == NULL;
}

static void push_to_self(struct worker *worker, uint32_t index)
{
    event_at(&worker->sched->events, index)->as.event =
        (skua_event){.type = EVENT_PUBLISH, .payload = skua_payload_empty(0)};
    const bool is_sent = signal_push_now(worker->sched, worker, worker->context->self, index);
    SKUA_ASSERT(is_sent); /* it is Ready, and its token is here */
}

/* The first of the list is done with. */
static void remove_first(struct scheduler *sched, struct wing *wing)
{
    struct publishing *record = wing->publishing.first;
    wing->publishing.first = record->next;
    free_record(sched, record);
}

/* Whether a turn may have a step although it has found no event. */
static bool may_step(struct process *process)
{
    return (process_progress(process) &
            (PROCESS_CANCEL_DUE | PROCESS_CONTINUES | PROCESS_TENDED | PROCESS_DEFERS)) != 0;
}

void publishing_take(struct worker *worker, struct process *process, uint32_t index)
{
    struct scheduler *sched = worker->sched;
    struct wing *wing = annex_wing(&sched->events, process);
    struct publishing *record = wing->publishing.first;
    if (send_slice(worker, record, PUBLISH_SLICE)) {
        skua_payload result = make_result(record);
        (void)deliver_completion(sched, worker, record->completion, 0, &result);
        remove_first(sched, wing);
    }
    if (wing->publishing.first != NULL) {
        push_to_self(worker, index);
        worker->is_pressed = true; /* it goes on when they have run */
    } else {
        deliver_release_node(sched, worker, index);
    }
    if (wing->publishing.first == NULL || may_step(process)) {
        submit_woken(worker);
    }
}

void publishing_drop(struct worker *worker, struct process *process, uint32_t index)
{
    struct scheduler *sched = worker->sched;
    struct wing *wing = annex_wing(&sched->events, process);
    const bool is_done = send_slice(worker, wing->publishing.first, DROP_SLICE);
    submit_woken(worker);
    if (is_done) {
        remove_first(sched, wing);
    }
    if (wing->publishing.first != NULL) {
        event_at(&sched->events, index)->next = process->backlog;
        process->backlog = index;
    } else {
        deliver_release_node(sched, worker, index);
    }
}

/* ---- the yield ---- */

/* Puts it behind what the process publishes already; true if there is nothing of that. */
static bool append(struct wing *wing, struct publishing *record)
{
    const bool is_first = wing->publishing.first == NULL;
    if (is_first) {
        wing->publishing.first = record;
    } else {
        wing->publishing.last->next = record;
    }
    wing->publishing.last = record;
    return is_first;
}

static int start_publish(void *arg, struct worker *worker, const struct yield *yield,
                         skua_completion completion, skua_payload *result)
{
    (void)arg;
    struct scheduler *sched = worker->sched;
    struct wing *wing = annex_wing(&sched->events, worker->context->process);
    struct publishing *record = yield->as.publish.record;
    const uint32_t node = yield->as.publish.node;
    record->completion = completion;
    record->group =
        groups_open_cursor_any(&sched->groups, record->name, &record->cursor, &record->total);
    const bool is_done =
        wing->publishing.first == NULL && send_slice(worker, record, PUBLISH_SLICE);
    submit_woken(worker);
    if (is_done) {
        *result = make_result(record);
        free_record(sched, record);
        deliver_release_node(sched, worker, node);
        return 0;
    }
    if (append(wing, record)) {
        push_to_self(worker, node);
    } else {
        deliver_release_node(sched, worker, node);
    }
    return SKUA_PENDING;
}

static void discard_publish(struct worker *worker, const struct yield *yield)
{
    deliver_release_node(worker->sched, worker, yield->as.publish.node);
    free_record(worker->sched, yield->as.publish.record);
}

void publishing_attach(struct scheduler *sched)
{
    sched->services[SERVICE_PUBLISH] =
        (struct service){.name = "publish", .start = start_publish, .discard = discard_publish};
}

/* 0, or why the arguments are refused. */
static int check(const struct scheduler *sched, const char *name, const skua_payload *payload)
{
    int error = names_check(name);
    error = error != 0 ? error : payload_refuse(payload, sched->config.payload_limit);
    return error != 0 ? error : payload_refuse_sharing(payload);
}

/* Memory for all that follows; the payload is in it then. Null without memory. */
static struct publishing *make_record(const skua_context *ctx, const char *name,
                                      const skua_payload *payload, uint32_t *node)
{
    struct scheduler *sched = ctx->sched;
    struct publishing *record = NULL;
    if (signal_wing(sched, ctx->worker, ctx->process) == NULL ||
        !deliver_acquire_node(sched, ctx->worker, node)) {
        return NULL;
    }
    record = allocator_alloc_zeroed(&sched->allocator, sizeof *record, alignof(struct publishing));
    if (record == NULL) {
        deliver_release_node(sched, ctx->worker, *node);
        return NULL;
    }
    record->payload = *payload;
    memcpy(record->name, name, strlen(name) + 1); /* it was checked: it fits */
    return record;
}

int publishing_yield(skua_context *ctx, uint64_t tag, const char *name, skua_payload *payload)
{
    int error;
    uint32_t node;
    struct yield *yield;
    struct step_output *out = context_output(ctx, &error);
    error = error != 0 ? error : check(ctx->sched, name, payload);
    struct publishing *record = error == 0 ? make_record(ctx, name, payload, &node) : NULL;
    if (record == NULL) {
        payload_discard(payload);
        return error != 0 ? error : SKUA_E_NO_MEMORY;
    }
    payload_mark_taken(payload);
    error = step_output_yield(out, tag, service_command(SERVICE_PUBLISH), SKUA_FOREVER, &yield);
    if (error != 0) {
        deliver_release_node(ctx->sched, ctx->worker, node);
        free_record(ctx->sched, record);
        return error;
    }
    yield->as.publish.record = record;
    yield->as.publish.node = node;
    return 0;
}

const char *publishing_name(const struct yield *yield)
{
    return yield->as.publish.record->name;
}

const skua_payload *publishing_payload(const struct yield *yield)
{
    return &yield->as.publish.record->payload;
}
