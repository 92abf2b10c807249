/* SPDX-License-Identifier: MIT */
#include "sched/farewell.h"

#include "relations/link.h"
#include "relations/request.h"
#include "relations/watchers.h"
#include "sched/admission.h"
#include "sched/calls.h"
#include "sched/grouping.h"
#include "sched/links.h"
#include "sched/monitors.h"
#include "sched/naming.h"
#include "sched/own_memory.h"
#include "sched/signal.h"
#include "sched/socket_hooks.h"
#include "sched/worker.h"

/* More notices and blocks of memory than this are given or freed in slices; fewer in models. */
#ifndef NOTICES_MANY
#define NOTICES_MANY 1024
#endif

/* So many watchers are looked at for one that still waits, so many links for one that tells. */
#define LOOKS_MAX 64

static bool leave_sockets(struct worker *worker, struct process *process, int error,
                          uint32_t *budget)
{
    struct socket_hooks *sockets = worker->sched->sockets;
    return LIKELY((process_progress(process) & PROCESS_SOCKETS) == 0) ||
           sockets->leave(sockets, worker, process, error, budget);
}

bool farewell_leave(struct worker *worker, struct process *process, struct ending *ending,
                    uint32_t *budget)
{
    struct scheduler *sched = worker->sched;
    const struct annex *annex = annex_of(&sched->events, process);
    const bool has_annex = annex != NULL;
    if (has_annex && UNLIKELY(annex->names != OBJECT_NONE) &&
        !naming_release_some(sched, process, worker->context->self, budget)) {
        return false;
    }
    if (has_annex && UNLIKELY(annex->wing != NULL) &&
        !grouping_leave_some(worker, process, budget)) {
        return false;
    }
    return call_revoke_owner(&sched->events, &sched->deadlines, &worker->caches.events, process,
                             budget) &&
           (!has_annex || calls_close_owed(worker, process, &ending->unclosed, budget)) &&
           leave_sockets(worker, process, ending->error, budget);
}

/* ---- who there is ---- */

static bool anybody_watches(struct scheduler *sched, uint32_t last)
{
    uint32_t index = last;
    for (uint32_t i = 0; i < LOOKS_MAX && index != OBJECT_NONE; i++) {
        const struct event_node *node = event_at(&sched->events, index);
        if (watcher_waits(&sched->events, node)) {
            return true;
        }
        index = node->next;
        if (index == last) {
            return false; /* the ring is closed */
        }
    }
    return index != OBJECT_NONE;
}

/* Of very many links not all are looked at: better a line too many than a failure unheard. */
static bool anybody_linked_hears(struct scheduler *sched, uint32_t first)
{
    uint32_t index = first;
    for (uint32_t i = 0; i < LOOKS_MAX && index != OBJECT_NONE; i++) {
        const struct event_node *node = event_at(&sched->events, index);
        if (links_is_heard(sched, node)) {
            return true;
        }
        index = node->as.half.next;
    }
    return false;
}

/* Of one whose signal had not been taken yet. */
static bool late_comer_hears(struct scheduler *sched, const struct event_node *node)
{
    switch (node->as.event.type) {
    case SKUA_EVENT_CALL:
    case EVENT_ADMISSION:
        return false;
    case EVENT_LINK:
        return links_is_heard(sched, node);
    default:
        return true;
    }
}

bool farewell_is_watched(struct scheduler *sched, struct process *process,
                         const struct ending *ending)
{
    const struct annex *annex = annex_of(&sched->events, process);
    if (annex != NULL &&
        (anybody_watches(sched, annex->watchers) || anybody_linked_hears(sched, annex->links))) {
        return true;
    }
    for (uint32_t index = ending->notices; index != OBJECT_NONE;) {
        const struct event_node *node = event_at(&sched->events, index);
        if (late_comer_hears(sched, node)) {
            return true;
        }
        index = node->next;
    }
    return false;
}

/* ---- telling ---- */

/* The call of a request that was not answered fails. */
static void tell_caller(struct worker *worker, const struct ending *ending, uint32_t index)
{
    struct object_pool *events = &worker->sched->events;
    struct event_node *node = event_at(events, index);
    const skua_completion completion = request_completion(node);
    skua_payload payload = skua_payload_u64(0, (uint64_t)(int64_t)ending->error);
    request_end_owner(node);
    event_release_owner(events, &worker->caches.events, index);
    (void)signal_complete(worker->sched, worker, worker->context->self, completion,
                          SKUA_E_PEER_ENDED, &payload);
}

static void tell(struct worker *worker, struct ending *ending, uint32_t index)
{
    struct scheduler *sched = worker->sched;
    const skua_pid self = worker->context->self;
    counter_add_owner(&worker->stats.notices, 1);
    switch (event_at(&sched->events, index)->as.event.type) {
    case EVENT_MONITOR:
    case EVENT_JOIN:
        monitors_tell(sched, worker, self, ending, index);
        break;
    case SKUA_EVENT_CALL:
        tell_caller(worker, ending, index);
        break;
    case EVENT_ADMISSION:
        admission_tell(sched, worker, self, index);
        break;
    default:
        links_tell(sched, worker, self, ending, index);
        break;
    }
}

static uint32_t next_in_annex(struct object_pool *events, struct annex *annex)
{
    if (annex->owed != OBJECT_NONE) {
        return request_take_owner(events, annex);
    }
    if (annex->watchers != OBJECT_NONE) {
        return watchers_take_owner(events, annex);
    }
    return annex->links != OBJECT_NONE ? link_take_owner(events, annex) : OBJECT_NONE;
}

bool farewell_tell(struct worker *worker, struct annex *annex, struct ending *ending)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t index = ending->notices;
    if (index != OBJECT_NONE) {
        ending->notices = event_at(events, index)->next;
    } else if (annex != NULL) {
        index = next_in_annex(events, annex);
    }
    if (index == OBJECT_NONE) {
        return false;
    }
    tell(worker, ending, index);
    return true;
}

/* ---- how many ---- */

static uint32_t count_watchers(const struct object_pool *events, const struct annex *annex)
{
    uint32_t count = 0;
    uint32_t index = annex->watchers;
    while (index != OBJECT_NONE && count <= NOTICES_MANY) {
        index = event_at(events, index)->next;
        count++;
        if (index == annex->watchers) {
            break;
        }
    }
    return count;
}

/* Counts until it is enough. */
static uint32_t count_in_annex(const struct object_pool *events, const struct annex *annex)
{
    uint32_t count = annex->owed_count + count_watchers(events, annex);
    count += own_memory_count(annex->wing, NOTICES_MANY + 1);
    for (uint32_t index = annex->links; index != OBJECT_NONE && count <= NOTICES_MANY; count++) {
        index = event_at(events, index)->as.half.next;
    }
    return count;
}

bool farewell_is_long(struct scheduler *sched, struct process *process, const struct ending *ending)
{
    const struct annex *annex = annex_of(&sched->events, process);
    uint32_t count = annex != NULL ? count_in_annex(&sched->events, annex) : 0;
    for (uint32_t index = ending->notices; index != OBJECT_NONE && count <= NOTICES_MANY; count++) {
        index = event_at(&sched->events, index)->next;
    }
    return count > NOTICES_MANY;
}
