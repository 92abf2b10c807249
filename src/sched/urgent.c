/* SPDX-License-Identifier: MIT */
#include "sched/urgent.h"

#include "sched/inbox.h"
#include "sched/worker.h"

/* Events in their order. */
struct chain {
    uint32_t first;
    uint32_t last;
};

static void append(const struct object_pool *events, struct chain *chain, uint32_t index)
{
    event_at(events, index)->next = OBJECT_NONE;
    if (chain->first == OBJECT_NONE) {
        chain->first = index;
    } else {
        event_at(events, chain->last)->next = index;
    }
    chain->last = index;
}

static void prepend(const struct object_pool *events, struct chain *chain, uint32_t index)
{
    event_at(events, index)->next = chain->first;
    chain->last = chain->first == OBJECT_NONE ? index : chain->last;
    chain->first = index;
}

/* To the front of the backlog. */
static void put_in_front(struct worker *worker, struct process *process, const struct chain *urgent)
{
    const struct object_pool *events = &worker->sched->events;
    if (urgent->first != OBJECT_NONE) {
        event_at(events, urgent->last)->next = process->backlog;
        process->backlog = urgent->first;
    }
}

static void give_way(struct worker *worker, struct process *process)
{
    if (process_is_task(process_type(process))) {
        inbox_give_way(&worker->sched->events, process);
    }
}

void urgent_sort(struct worker *worker, struct process *process)
{
    const struct object_pool *events = &worker->sched->events;
    struct chain urgent = {.first = OBJECT_NONE};
    struct chain others = {.first = OBJECT_NONE};
    give_way(worker, process);
    while (process->backlog != OBJECT_NONE) {
        const uint32_t index = process->backlog;
        struct event_node *node = event_at(events, index);
        process->backlog = node->next;
        append(events, urgent_is(node) ? &urgent : &others, index);
    }
    process->backlog = others.first;
    put_in_front(worker, process, &urgent);
}

/* ---- fetching ---- */

/* Puts events back to the list, newest first, below all that has come since it was taken. */
static void put_below(const struct object_pool *events, struct process *process, uint32_t newest)
{
    uint32_t index = state_put_back_owner(process, newest);
    if (index == OBJECT_NONE) {
        return;
    }
    while (event_at(events, index)->next != OBJECT_NONE) {
        index = event_at(events, index)->next;
    }
    event_at(events, index)->next = newest;
}

/* Several events become a bundle, if there is a node for it. */
static void put_back(struct worker *worker, struct process *process, const struct chain *others)
{
    struct object_pool *events = &worker->sched->events;
    uint32_t index;
    if (others->first == OBJECT_NONE) {
        return;
    }
    if (others->first == others->last ||
        !event_acquire_owner(events, &worker->caches.events, &index)) {
        put_below(events, process, event_reverse(events, others->first));
        return;
    }
    struct event_node *node = event_at(events, index);
    node->as.bundle = (struct event_bundle){EVENT_BUNDLE, others->first, others->last};
    node->next = OBJECT_NONE;
    put_below(events, process, index);
}

/* Adds what has come since to the bundle. */
static void put_bundle_back(const struct object_pool *events, struct process *process,
                            uint32_t index, const struct chain *others)
{
    struct event_node *node = event_at(events, index);
    if (others->first != OBJECT_NONE) {
        event_at(events, node->as.bundle.last)->next = others->first;
        node->as.bundle.last = others->last;
    }
    put_below(events, process, index);
}

void urgent_fetch(struct worker *worker, struct process *process)
{
    struct object_pool *events = &worker->sched->events;
    struct chain urgent = {.first = OBJECT_NONE};
    struct chain others = {.first = OBJECT_NONE};
    uint32_t bundle = OBJECT_NONE;
    if (urgent_is_first(events, process)) {
        return;
    }
    for (uint32_t index = state_take_list_owner(process); index != OBJECT_NONE;) {
        struct event_node *node = event_at(events, index);
        const uint32_t older = node->next;
        if (node->as.event.type == EVENT_BUNDLE) {
            SKUA_ASSERT(older == OBJECT_NONE); /* it is at the bottom */
            bundle = index;
        } else {
            prepend(events, urgent_is(node) ? &urgent : &others, index);
        }
        index = older;
    }
    if (bundle != OBJECT_NONE) {
        put_bundle_back(events, process, bundle, &others);
    } else {
        put_back(worker, process, &others);
    }
    give_way(worker, process);
    put_in_front(worker, process, &urgent);
}

bool urgent_are_more_to_come(const struct object_pool *events, struct process *process,
                             const struct event_node *node)
{
    return node->next != OBJECT_NONE && !urgent_is(event_at(events, node->next)) &&
           (state_peek(process) & STATE_URGENT) != 0;
}

void urgent_unpack(struct worker *worker, uint32_t *link)
{
    struct object_pool *events = &worker->sched->events;
    const uint32_t index = *link;
    const struct event_node *node = event_at(events, index);
    event_at(events, node->as.bundle.last)->next = node->next;
    *link = node->as.bundle.first;
    event_release_owner(events, &worker->caches.events, index);
}

void urgent_take_bundle(struct worker *worker, struct process *process, uint32_t index)
{
    event_at(&worker->sched->events, index)->next = process->backlog;
    process->backlog = index;
    urgent_unpack(worker, &process->backlog);
}
