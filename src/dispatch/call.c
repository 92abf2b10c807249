/* SPDX-License-Identifier: MIT */
#include "dispatch/call.h"

#include "dispatch/tag_index.h"

/* From this many calls on, an index finds one sooner than a walk through the list. */
#define INDEX_FROM 32

static void set_previous(struct event_node *node, uint32_t previous)
{
    node->as.call.previous = (node->as.call.previous & CALL_FLAGS) | previous;
}

void call_drop_index_owner(const struct allocator *allocator, struct object_pool *events,
                           struct process *process)
{
    struct annex *annex = annex_of(events, process);
    if (annex != NULL) {
        tag_index_destroy(allocator, annex->tags);
        annex->tags = NULL;
    }
}

static struct tag_index *index_of(const struct object_pool *events, struct process *process)
{
    const struct annex *annex = annex_of(events, process);
    return LIKELY(annex == NULL) ? NULL : annex->tags;
}

/* ---- the list ---- */

static void put_first(struct object_pool *events, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(events, index);
    uint32_t *first = annex_calls(events, process);
    node->as.call.next = *first;
    if (*first != OBJECT_NONE) {
        set_previous(event_at(events, *first), index);
    }
    *first = index;
}

static void put_behind(struct object_pool *events, uint32_t other, uint32_t index)
{
    struct event_node *node = event_at(events, index);
    const uint32_t next = event_at(events, other)->as.call.next;
    node->as.call.next = next;
    set_previous(node, other);
    event_at(events, other)->as.call.next = index;
    if (next != OBJECT_NONE) {
        set_previous(event_at(events, next), index);
    }
}

static ALWAYS_INLINE void unlink_call(struct object_pool *events, struct process *process,
                                      const struct event_node *node, uint32_t index)
{
    const uint32_t previous = node->as.call.previous & ~CALL_FLAGS;
    const uint32_t next = node->as.call.next;
    if (previous != OBJECT_NONE) {
        event_at(events, previous)->as.call.next = next;
    } else {
        uint32_t *first = annex_calls(events, process);
        if (*first == index) {
            *first = next;
        }
    }
    if (next != OBJECT_NONE) {
        set_previous(event_at(events, next), previous);
    }
}

/* ---- the list with an index: calls with one tag are neighbours; it has the first ---- */

/* The call behind this one if that has the same tag and was not taken back; or OBJECT_NONE. */
static uint32_t next_alike(const struct object_pool *events, const struct event_node *node)
{
    const uint32_t next = node->as.call.next;
    if (next == OBJECT_NONE) {
        return OBJECT_NONE;
    }
    const struct event_node *other = event_at(events, next);
    const bool alike =
        other->as.call.tag == node->as.call.tag && (other->as.call.previous & CALL_ENDS) == 0;
    return alike ? next : OBJECT_NONE;
}

/* Without memory for a larger index there is none: the list has all calls. */
static NOINLINE void put_indexed(const struct allocator *allocator, struct object_pool *events,
                                 struct process *process, uint32_t index)
{
    struct annex *annex = annex_of(events, process);
    const uint64_t tag = event_at(events, index)->as.call.tag;
    const struct tag_entry *entry = tag_index_find(annex->tags, events, tag);
    if (entry != NULL) {
        put_behind(events, entry->call, index);
        return;
    }
    put_first(events, process, index);
    if (!tag_index_add(allocator, &annex->tags, tag, index)) {
        call_drop_index_owner(allocator, events, process);
    }
}

static NOINLINE void remove_from_index(struct tag_index *tags, const struct object_pool *events,
                                       const struct event_node *node, uint32_t index)
{
    struct tag_entry *entry = tag_index_find(tags, events, node->as.call.tag);
    if (entry == NULL || entry->call != index) {
        return;
    }
    const uint32_t next = next_alike(events, node);
    if (next != OBJECT_NONE) {
        entry->call = next;
    } else {
        tag_index_remove(tags, entry);
    }
}

void call_link_owner(const struct allocator *allocator, struct object_pool *events,
                     struct process *process, uint32_t index)
{
    if (UNLIKELY(index_of(events, process) != NULL)) {
        put_indexed(allocator, events, process, index);
    } else {
        put_first(events, process, index);
    }
}

void call_unlink_owner(struct object_pool *events, struct process *process, struct event_node *node,
                       uint32_t index)
{
    struct tag_index *tags = index_of(events, process);
    if (UNLIKELY(tags != NULL)) {
        remove_from_index(tags, events, node, index);
    }
    unlink_call(events, process, node, index);
    node->as.event.from = (skua_pid){0}; /* the links were there */
}

/* ---- looking at one ---- */

/* A completer may be writing to this: then nobody uses the copy (MO-view), so the race does no
 * harm, and the thread sanitizer need not know. */
static RACY void copy_call(const volatile struct event_node *node, struct call_view *view)
{
    const uint32_t subject = node->next;
    view->kind = subject >> CALL_SUBJECT_SHIFT;
    view->number = subject & CALL_SUBJECT_UNKNOWN;
    view->has_deadline = node->as.call.wheel != 0;
    view->deadline = node->as.call.timer.when;
    view->period = view->has_deadline && node->as.call.error == 0 ? node->as.call.period : 0;
    view->listener = node->as.call.listener;
}

bool call_view_owner(struct event_node *node, struct call_view *view)
{
    const uint32_t guard = load_acquire(&node->guard); /* MO-guard */
    if ((guard & CALL_OPEN) == 0) {
        return false;
    }
    view->tag = node->as.call.tag;
    view->guard = guard;
    copy_call(node, view);
    return fetch_add_acq_rel(&node->guard, 0) == guard; /* MO-view */
}

/* ---- by tag ---- */

/* The first call from `index` on that has this tag. */
static uint32_t find_in_list(const struct object_pool *events, uint32_t index, uint64_t tag)
{
    while (index != OBJECT_NONE && event_at(events, index)->as.call.tag != tag) {
        index = event_at(events, index)->as.call.next;
    }
    return index;
}

static bool list_is_long(const struct object_pool *events, uint32_t index)
{
    uint32_t count = 0;
    while (index != OBJECT_NONE && count < INDEX_FROM) {
        index = event_at(events, index)->as.call.next;
        count++;
    }
    return count == INDEX_FROM;
}

/* Adds all calls of the list to an index that is large enough. Those that were taken back and only
 * wait to be delivered stay out of it. */
static void fill_index(const struct allocator *allocator, struct object_pool *events,
                       struct process *process, struct annex *annex)
{
    uint32_t next;
    for (uint32_t i = annex->calls; i != OBJECT_NONE; i = next) {
        struct event_node *node = event_at(events, i);
        const struct tag_entry *entry = tag_index_find(annex->tags, events, node->as.call.tag);
        next = node->as.call.next;
        if ((node->as.call.previous & CALL_ENDS) != 0) {
            continue;
        }
        if (entry != NULL) {
            unlink_call(events, process, node, i);
            put_behind(events, entry->call, i);
            continue;
        }
        const bool added = tag_index_add(allocator, &annex->tags, node->as.call.tag, i);
        SKUA_ASSERT(added);
    }
}

/* Makes an index of all calls, if there is memory for that. */
static bool make_index(const struct allocator *allocator, struct object_pool *events,
                       struct pool_cache *cache, struct process *process)
{
    uint32_t node;
    uint32_t count = 0;
    struct annex *annex = annex_of(events, process);
    for (uint32_t i = *annex_calls(events, process); i != OBJECT_NONE; count++) {
        i = event_at(events, i)->as.call.next;
    }
    struct tag_index *tags = tag_index_create(allocator, count);
    if (tags == NULL || (annex == NULL && !event_acquire_owner(events, cache, &node))) {
        tag_index_destroy(allocator, tags);
        return false;
    }
    annex = annex != NULL ? annex : annex_attach_owner(events, process, node);
    annex->tags = tags;
    fill_index(allocator, events, process, annex);
    return true;
}

/* Those with the tag are out of the index from now on: all of them are being taken back. */
static uint32_t take_from_index(struct tag_index *tags, const struct object_pool *events,
                                uint64_t tag)
{
    struct tag_entry *entry = tag_index_find(tags, events, tag);
    if (entry == NULL) {
        return OBJECT_NONE;
    }
    const uint32_t call = entry->call;
    tag_index_remove(tags, entry);
    return call;
}

uint32_t call_first_owner(const struct allocator *allocator, struct object_pool *events,
                          struct pool_cache *cache, struct process *process, uint64_t tag)
{
    const uint32_t first = *annex_calls(events, process);
    const bool has_index =
        index_of(events, process) != NULL ||
        (list_is_long(events, first) && make_index(allocator, events, cache, process));
    return has_index ? take_from_index(index_of(events, process), events, tag)
                     : find_in_list(events, first, tag);
}

uint32_t call_next_owner(struct object_pool *events, struct process *process, uint32_t index,
                         uint64_t tag)
{
    const struct event_node *node = event_at(events, index);
    return index_of(events, process) != NULL ? next_alike(events, node)
                                             : find_in_list(events, node->as.call.next, tag);
}

/* Ends a call that this worker has claimed and that no step will hear of. */
static void end_revoked(struct object_pool *events, struct pool_cache *cache,
                        struct process *process, uint32_t index)
{
    struct event_node *node = event_at(events, index);
    if (LIKELY((node->as.call.previous & CALL_TELLS) == 0)) {
        event_release_owner(events, cache, index);
        return;
    }
    call_mark_abandoned_owner(node, node->as.call.listener);
    node->next = process->backlog;
    process->backlog = index;
}

bool call_revoke_owner(struct object_pool *events, struct deadlines *deadlines,
                       struct pool_cache *cache, struct process *process, uint32_t *budget)
{
    uint32_t *first = annex_calls(events, process);
    uint32_t index = *first;
    for (; index != OBJECT_NONE && *budget > 0; --*budget) {
        struct event_node *node = event_at(events, index);
        /* Read before the claim: a completer that has won owns the node from then on, although
         * while the process is Ready all that it can do is push it. */
        const uint32_t next = node->as.call.next;
        const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
        if (call_claim_any(node, guard)) {
            call_disarm_owner(deadlines, node, index);
            end_revoked(events, cache, process, index);
        }
        index = next;
    }
    *first = index;
    if (index != OBJECT_NONE) {
        set_previous(event_at(events, index), OBJECT_NONE);
    }
    return index == OBJECT_NONE;
}
