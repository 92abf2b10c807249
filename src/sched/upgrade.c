/* SPDX-License-Identifier: MIT */
#include "sched/upgrade.h"

#include <stdalign.h>

#include "base/mutex.h"
#include "sched/aside.h"
#include "sched/context.h"
#include "sched/deliver.h"
#include "sched/note.h"
#include "sched/retype.h"
#include "sched/shutdown.h"
#include "sched/signal.h"
#include "sched/spawn.h"
#include "sched/worker.h"

/* Enough for thousands of reloads; fewer in models. */
#ifndef UPGRADE_BUCKETS
#define UPGRADE_BUCKETS 1024
#endif

struct upgrades {
    pthread_mutex_t lock; /* of those who add */
    atomic_ptr buckets[UPGRADE_BUCKETS];
    atomic_ptr last;
    atomic_u32 has_forks; /* a type was replaced twice, by types that lead to different ones */
};

/* ---- what was replaced ---- */

static struct upgrades *table_of(struct scheduler *sched)
{
    return load_seq_cst(&sched->upgrades); /* MO-upgrade */
}

static atomic_ptr *bucket_of(struct upgrades *upgrades, const skua_process_type *from)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)from * UINT64_C(0x9e3779b97f4a7c15);
    return &upgrades->buckets[(mixed >> 32) % UPGRADE_BUCKETS];
}

/* The last upgrade of a type, to any or to one; null: there is none. */
static struct upgrade *find(struct scheduler *sched, const skua_process_type *from,
                            const skua_process_type *to)
{
    struct upgrades *upgrades = table_of(sched);
    struct upgrade *upgrade =
        upgrades != NULL ? load_seq_cst(bucket_of(upgrades, from)) : NULL; /* MO-upgrade */
    while (upgrade != NULL && (upgrade->from != from || (to != NULL && upgrade->to != to))) {
        upgrade = upgrade->next;
    }
    return upgrade;
}

/* What an upgrade leads to, as far as somebody has seen. */
static const skua_process_type *leads_to(struct scheduler *sched, struct upgrade *upgrade)
{
    const skua_process_type *further = load_acquire(&upgrade->further);      /* MO-further */
    return further != NULL && load_seq_cst(&table_of(sched)->has_forks) == 0 /* MO-upgrade */
               ? further
               : upgrade->to;
}

const skua_process_type *upgrade_newest(struct scheduler *sched, const skua_process_type *type)
{
    struct upgrade *first = find(sched, type, NULL);
    if (first == NULL) {
        return type;
    }
    const skua_process_type *newest = leads_to(sched, first);
    struct upgrade *upgrade;
    while ((upgrade = find(sched, newest, NULL)) != NULL) {
        newest = leads_to(sched, upgrade);
        store_release(&first->further, newest); /* MO-further */
    }
    return newest;
}

const skua_process_type *upgrade_newest_with(struct scheduler *sched, const skua_process_type *type,
                                             const char *method)
{
    const skua_process_type *newest = upgrade_newest(sched, type);
    const struct upgrade *upgrade;
    if (newest == type || spawn_method_number(newest, method) < SKUA_METHODS_MAX) {
        return newest;
    }
    newest = type;
    while ((upgrade = find(sched, type, NULL)) != NULL) {
        type = upgrade->to;
        newest = spawn_method_number(type, method) < SKUA_METHODS_MAX ? type : newest;
    }
    return newest;
}

const struct upgrade *upgrade_find(struct scheduler *sched, const skua_process_type *from,
                                   const skua_process_type *to)
{
    return find(sched, from, to);
}

const struct upgrade *upgrade_last(struct scheduler *sched)
{
    struct upgrades *upgrades = table_of(sched);
    return upgrades != NULL ? load_acquire(&upgrades->last) : NULL; /* MO-upgrade */
}

skua_upgrade_progress upgrade_progress(const struct upgrade *upgrade)
{
    struct upgrade *counts = (struct upgrade *)upgrade; /* only loads */
    skua_upgrade_progress progress = {
        .migrated = load_relaxed(&counts->migrated), /* statistics, all of them */
        .failed = load_relaxed(&counts->failed),
        .gone = load_relaxed(&counts->gone),
    };
    progress.asked = load_relaxed(&counts->asked); /* last: it is never less than the others */
    return progress;
}

static struct upgrades *make_table(struct scheduler *sched)
{
    struct upgrades *made =
        allocator_alloc_zeroed(&sched->allocator, sizeof *made, alignof(struct upgrades));
    void *expected = NULL;
    if (made == NULL) {
        return NULL;
    }
    mutex_init(&made->lock);
    if (!cas_seq_cst(&sched->upgrades, &expected, made)) { /* MO-upgrade: another was faster */
        mutex_deinit(&made->lock);
        allocator_free(&sched->allocator, made, sizeof *made, alignof(struct upgrades));
        return expected;
    }
    return made;
}

static struct upgrade *add(struct scheduler *sched, const skua_process_type *from,
                           const skua_process_type *to)
{
    struct upgrades *upgrades = table_of(sched);
    upgrades = upgrades != NULL ? upgrades : make_table(sched);
    struct upgrade *upgrade =
        upgrades != NULL
            ? allocator_alloc_zeroed(&sched->allocator, sizeof *upgrade, alignof(struct upgrade))
            : NULL;
    if (upgrade == NULL) {
        return NULL;
    }
    mutex_lock(&upgrades->lock);
    if (find(sched, from, NULL) != NULL &&
        upgrade_newest(sched, from) != upgrade_newest(sched, to)) {
        store_seq_cst(&upgrades->has_forks, 1); /* MO-upgrade: before the scan */
    }
    const struct upgrade *last = load_relaxed(&upgrades->last); /* written under the lock */
    atomic_ptr *bucket = bucket_of(upgrades, from);
    upgrade->from = from;
    upgrade->to = to;
    upgrade->earlier = last;
    upgrade->number = last != NULL ? last->number + 1 : 1;
    upgrade->next = load_relaxed(bucket);    /* written under the lock */
    store_seq_cst(bucket, upgrade);          /* MO-upgrade: before the scan */
    store_release(&upgrades->last, upgrade); /* MO-upgrade */
    mutex_unlock(&upgrades->lock);
    return upgrade;
}

void upgrade_deinit(struct scheduler *sched)
{
    struct upgrades *upgrades = table_of(sched);
    if (upgrades == NULL) {
        return;
    }
    const struct upgrade *upgrade = upgrade_last(sched);
    while (upgrade != NULL) {
        const struct upgrade *earlier = upgrade->earlier;
        allocator_free(&sched->allocator, (void *)upgrade, sizeof *upgrade,
                       alignof(struct upgrade));
        upgrade = earlier;
    }
    mutex_deinit(&upgrades->lock);
    allocator_free(&sched->allocator, upgrades, sizeof *upgrades, alignof(struct upgrades));
}

/* ---- asking ---- */

/* Asks a process to change. False without memory; one that is gone is counted as that. */
static bool ask(struct scheduler *sched, struct worker *worker, struct upgrade *upgrade,
                skua_pid pid)
{
    uint32_t node;
    if (!deliver_acquire_node(sched, worker, &node)) {
        return false;
    }
    event_at(&sched->events, node)->as.request_to_become =
        (struct become_request){.type = EVENT_UPGRADE, .upgrade = upgrade};
    (void)fetch_add_relaxed(&upgrade->asked, 1); /* statistic */
    if (!signal_push_now(sched, worker, pid, node)) {
        (void)fetch_add_relaxed(&upgrade->gone, 1); /* statistic */
        deliver_release_node(sched, worker, node);
    }
    return true;
}

/* Asks all processes of the old type. */
static int ask_all(struct scheduler *sched, struct worker *worker, struct upgrade *upgrade)
{
    scheduler_see_spawned(sched);
    for (uint32_t slot = 1; object_pool_holds(&sched->table.pool, slot); slot++) {
        struct process *process = process_at(&sched->table, slot);
        const uint32_t tag = event_list_tag(load_acquire(&process->word)); /* MO-inspect */
        const bool is_old = load_seq_cst(&process->type) == upgrade->from; /* MO-upgrade */
        if (state_is_live(tag) && is_old &&
            !ask(sched, worker, upgrade,
                 process_table_pid(&sched->table, process, state_generation(tag)))) {
            return SKUA_E_NO_MEMORY;
        }
    }
    const uint64_t asked = load_relaxed(&upgrade->asked); /* statistic */
    return asked < INT32_MAX ? (int)asked : INT32_MAX;
}

static int refuse(struct scheduler *sched, const skua_process_type *from,
                  const skua_process_type *to)
{
    if (!spawn_type_is_valid(from) || !spawn_type_is_valid(to)) {
        return SKUA_E_INVALID;
    }
    /* Without `migrate` a type is for new processes only, but those are called as the old ones. */
    const bool can_replace =
        to->migrate != NULL ? retype_fits(from, to) : to->calls || !from->calls;
    if (to->version <= from->version || !can_replace) {
        return SKUA_E_VERSION;
    }
    return spawn_check_phase(sched);
}

int upgrade_start(struct scheduler *sched, struct worker *worker, const skua_process_type *from,
                  const skua_process_type *to)
{
    const int refused = refuse(sched, from, to);
    if (refused != 0) {
        return refused;
    }
    struct upgrade *upgrade = add(sched, from, to);
    if (upgrade == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    const int asked = retype_fits(from, to) ? ask_all(sched, worker, upgrade) : 0;
    store_release(&upgrade->is_scanned, 1); /* MO-upgrade */
    return asked;
}

/* Whether the request of an upgrade is in a list of events. */
static bool is_in_list(struct scheduler *sched, uint32_t index, const struct upgrade *upgrade)
{
    while (index != OBJECT_NONE) {
        const struct event_node *node = event_at(&sched->events, index);
        if (node->as.event.type == EVENT_UPGRADE && node->as.request_to_become.upgrade == upgrade) {
            return true;
        }
        index = node->next;
    }
    return false;
}

/* The list can be read where it is: only this thread takes events out of it. */
static bool is_asked(struct scheduler *sched, struct process *process,
                     const struct upgrade *upgrade)
{
    const uint64_t word = load_acquire(&process->word); /* MO-event */
    return is_in_list(sched, event_list_first(word), upgrade) ||
           is_in_list(sched, process->backlog, upgrade);
}

bool upgrade_catch_up(struct worker *worker, struct process *process, skua_pid pid)
{
    struct scheduler *sched = worker->sched;
    const skua_process_type *type = process_type(process);
    const char *method = spawn_method_name(type, process_method(process));
    struct upgrade *upgrade = find(sched, type, NULL);
    if (upgrade == NULL || !retype_fits(type, upgrade_newest_with(sched, type, method))) {
        return true;
    }
    if (load_acquire(&upgrade->is_scanned) == 0) { /* MO-upgrade */
        return false;
    }
    if (!is_asked(sched, process, upgrade) && !ask(sched, worker, upgrade, pid)) {
        NOTE_COUNT(sched, worker, upgrade_failures);
    }
    return true;
}

/* ---- changing ---- */

/* A process that has asked for it by itself is told that it cannot: on the node of its request,
 * which comes after all that has arrived. */
static void tell_failure(struct worker *worker, struct process *process, uint32_t index, int error)
{
    struct event_node *node = event_at(&worker->sched->events, index);
    event_make(&node->as.event, SKUA_EVENT_BECOME, error);
    const enum state_duty duty =
        state_push_any(process, pid_generation(worker->context->self), index, &node->next);
    SKUA_ASSERT(duty == STATE_DONE); /* it is Ready, and its token is here */
}

/* The process has asked for this type. */
static void take_own(struct worker *worker, struct process *process, uint32_t index,
                     const skua_process_type *to)
{
    const int error = retype_process(worker, process, to);
    if (error != 0) {
        tell_failure(worker, process, index, error);
    } else {
        event_release_owner(&worker->sched->events, &worker->caches.events, index);
    }
}

/* The newest type that the process can change to, or null. */
static const skua_process_type *find_possible(struct scheduler *sched, struct process *process)
{
    const skua_process_type *type = process_type(process);
    const skua_process_type *possible = upgrade_newest(sched, type);
    const struct upgrade *upgrade;
    if (possible == type || retype_is_possible(process, possible)) {
        return possible != type ? possible : NULL;
    }
    possible = NULL;
    while ((upgrade = find(sched, type, NULL)) != NULL) {
        type = upgrade->to;
        possible = retype_is_possible(process, type) ? type : possible;
    }
    return possible;
}

/* Others have asked for the newest there is. What the process has become may have been replaced
 * meanwhile, by somebody who saw its old type: MO-upgrade. */
static void take_asked(struct worker *worker, struct process *process, struct upgrade *upgrade)
{
    struct scheduler *sched = worker->sched;
    const skua_process_type *from = process_type(process);
    const skua_process_type *to = find_possible(sched, process);
    to = to != NULL ? to : upgrade_newest(sched, from); /* which says why not */
    if (from == to) {
        (void)fetch_add_relaxed(&upgrade->gone, 1); /* statistic, as are the others */
        return;
    }
    int error = retype_process(worker, process, to);
    (void)fetch_add_relaxed(error == 0 ? &upgrade->migrated : &upgrade->failed, 1);
    while (error == 0 && (to = find_possible(sched, process)) != NULL) {
        error = retype_process(worker, process, to);
    }
}

void upgrade_take(struct worker *worker, struct process *process, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    const struct become_request request = event_at(events, index)->as.request_to_become;
    if (request.upgrade == NULL) {
        take_own(worker, process, index, request.to);
        return;
    }
    event_release_owner(events, &worker->caches.events, index);
    take_asked(worker, process, request.upgrade);
}

void upgrade_drop(struct worker *worker, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct upgrade *upgrade = event_at(events, index)->as.request_to_become.upgrade;
    if (upgrade != NULL) {
        (void)fetch_add_relaxed(&upgrade->gone, 1); /* statistic */
    }
    event_release_owner(events, &worker->caches.events, index);
}

/* ---- by itself ---- */

int upgrade_become(skua_context *ctx, const skua_process_type *to)
{
    int error;
    struct yield *yield;
    uint32_t node;
    struct step_output *out = context_output(ctx, &error);
    if (error != 0) {
        return error;
    }
    if (!spawn_type_is_valid(to)) {
        return SKUA_E_INVALID;
    }
    if (!retype_is_possible(ctx->process, to)) {
        return SKUA_E_VERSION;
    }
    if (out->status == STEP_DONE) {
        return SKUA_E_DONE;
    }
    if (!event_acquire_owner(out->events, out->event_cache, &node)) {
        return SKUA_E_NO_MEMORY;
    }
    error = step_output_act(out, service_command(SERVICE_BECOME), &yield);
    if (error != 0) {
        event_release_owner(out->events, out->event_cache, node);
        return error;
    }
    event_at(out->events, node)->as.request_to_become =
        (struct become_request){.type = EVENT_UPGRADE, .to = to};
    yield->as.become = node;
    return 0;
}

static void discard_become(struct worker *worker, const struct yield *yield)
{
    event_release_owner(&worker->sched->events, &worker->caches.events, yield->as.become);
}

/* After the step. */
static int start_become(void *arg, struct worker *worker, const struct yield *yield,
                        skua_completion completion, skua_payload *result)
{
    struct process *process = worker->context->process;
    (void)arg;
    (void)completion;
    (void)result;
    if (worker->out.status == STEP_DONE) {
        discard_become(worker, yield);
    } else if (retype_is_due(process)) {
        upgrade_take(worker, process, yield->as.become);
    } else {
        aside_put(&worker->sched->events, process, yield->as.become);
    }
    return 0;
}

void upgrade_attach(struct scheduler *sched)
{
    sched->services[SERVICE_BECOME] =
        (struct service){"become", start_become, discard_become, NULL};
}
