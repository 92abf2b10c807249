/* SPDX-License-Identifier: MIT */
/* Who wants to know how a process ends: its *watchers*, each a node with the completion of a
 * process's yield. Only the worker that runs the watched process touches them.
 *
 * A watcher that has lost interest, because it took its yield back or ended, tells nobody: its node
 * is stale, and goes when somebody comes by. So each new watcher looks at the two that have waited
 * longest, drops those that are stale and sends the others to the back. In the time that it takes
 * to go round n watchers once, n/2 come, so there are never more than twice as many nodes as live
 * watchers, and a few; and no watcher ever waits for a sweep of a million. */
#ifndef SKUA_RELATIONS_WATCHERS_H
#define SKUA_RELATIONS_WATCHERS_H

#include "dispatch/call.h"
#include "process/annex.h"

/* Whether a watcher still waits; `node` is EVENT_MONITOR or EVENT_JOIN. */
static inline bool watcher_waits(const struct object_pool *events, const struct event_node *node)
{
    struct event_node *call = event_at(events, (uint32_t)(node->as.event.tag >> 32));
    return load_acquire(&call->guard) == (uint32_t)node->as.event.tag; /* MO-guard */
}

/* Adds a watcher to a process, which has an annex. Stale ones are released to `cache`. */
void watchers_add_owner(struct object_pool *events, struct pool_cache *cache, struct annex *annex,
                        uint32_t index);

/* Takes the one that has waited longest; there must be one. */
NODISCARD uint32_t watchers_take_owner(struct object_pool *events, struct annex *annex);

#endif
