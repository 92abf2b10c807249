/* SPDX-License-Identifier: MIT */
#include "relations/watchers.h"

/* Watchers are a ring, linked by `next`; the annex has the last, whose next is the first. */

#define LOOKS 2

static void append(struct object_pool *events, struct annex *annex, uint32_t index)
{
    struct event_node *node = event_at(events, index);
    if (annex->watchers == OBJECT_NONE) {
        node->next = index;
    } else {
        struct event_node *last = event_at(events, annex->watchers);
        node->next = last->next;
        last->next = index;
    }
    annex->watchers = index;
}

uint32_t watchers_take_owner(struct object_pool *events, struct annex *annex)
{
    struct event_node *last = event_at(events, annex->watchers);
    const uint32_t first = last->next;
    if (first == annex->watchers) {
        annex->watchers = OBJECT_NONE;
    } else {
        last->next = event_at(events, first)->next;
    }
    return first;
}

void watchers_add_owner(struct object_pool *events, struct pool_cache *cache, struct annex *annex,
                        uint32_t index)
{
    for (uint32_t i = 0; i < LOOKS && annex->watchers != OBJECT_NONE; i++) {
        const uint32_t first = watchers_take_owner(events, annex);
        if (watcher_waits(events, event_at(events, first))) {
            append(events, annex, first);
        } else {
            event_release_owner(events, cache, first);
        }
    }
    append(events, annex, index);
}
