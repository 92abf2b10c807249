/* SPDX-License-Identifier: MIT */
/* Event nodes: what waits in a mailbox, and what stands for a command while it is carried out.
 *
 * A node is one cache line of a type-stable pool. Its life is one of
 *   free -> message or cancel event, pushed to a process -> free
 *   free -> open call (dispatch/call.h) -> completion event -> free */
#ifndef SKUA_PROCESS_EVENT_H
#define SKUA_PROCESS_EVENT_H

#include <skua/process.h>

#include "base/assert.h"
#include "concurrent/object_pool.h"

/* Nodes at most; 16 GiB of them. */
#define EVENT_NODES_MAX ((uint32_t)1 << 28)

/* An open call: begins as skua_event does, because its completion turns it into one. */
struct open_call {
    uint32_t type;
    int32_t error;
    uint64_t tag;
    /* The calls of one process are a list; only the worker that runs it uses these. They overlay
     * `from` and survive the completion. */
    uint32_t previous;
    uint32_t next;
    skua_pid owner; /* overlays the payload: written before the call opens, read by its completer */
};

struct event_node {
    uint32_t next;    /* in a mailbox or backlog */
    atomic_u32 guard; /* see dispatch/call.h; stays valid while the node is free */
    union {
        skua_event event;
        struct open_call call;
        struct pool_link link; /* while free */
    } as;
};

_Static_assert(sizeof(struct event_node) == CACHE_LINE, "an event is one cache line");
_Static_assert(offsetof(struct open_call, type) == offsetof(skua_event, type), "same head");
_Static_assert(offsetof(struct open_call, tag) == offsetof(skua_event, tag), "same head");
_Static_assert(offsetof(struct open_call, previous) == offsetof(skua_event, from), "same head");
_Static_assert(offsetof(struct open_call, owner) == offsetof(skua_event, payload), "then payload");

NODISCARD bool event_pool_init(struct object_pool *pool, const struct allocator *allocator,
                               uint32_t cache_count);

static inline struct event_node *event_at(const struct object_pool *pool, uint32_t index)
{
    return object_pool_at(pool, index);
}

#endif
