/* SPDX-License-Identifier: MIT */
/* Event nodes: the events in a mailbox, and the open calls that stand for commands under way.
 *
 * A node is one cache line of a type-stable pool. Its life is one of
 *   free -> message or cancel event, pushed to a process -> free
 *   free -> open call (dispatch/call.h) -> completion event -> free
 *   free -> annex of a process (process/annex.h) -> free */
#ifndef SKUA_PROCESS_EVENT_H
#define SKUA_PROCESS_EVENT_H

#include <skua/command.h>
#include <skua/process.h>

#include "base/assert.h"
#include "concurrent/event_list.h"
#include "concurrent/object_pool.h"
#include "concurrent/wheel.h"

/* The most nodes that there can be: 16 GiB of them. */
#define EVENT_NODES_MAX ((uint32_t)1 << 28)

/* An open call, in the memory of the event that it becomes when it is completed. The fields that
 * overlay `type` and `payload` are written before the call opens, and by the wheel under its lock;
 * completing the call overwrites them. */
struct open_call {
    uint32_t wheel; /* 1 + the worker whose wheel it was armed in (dispatch/deadlines.h), or 0 */
    int32_t error;  /* reported when its deadline passes */
    uint64_t tag;
    /* Links of the process's list of calls; only the worker that runs it uses them. They overlay
     * `from` and survive the completion. `previous` also holds CALL_FLAGS (dispatch/call.h). */
    uint32_t previous;
    uint32_t next;
    skua_pid owner;
    struct wheel_link timer;
    union {
        uint64_t period; /* of a ticker; otherwise, if it was armed with no error, 0 */
        /* If it was armed with an error, or has CALL_TELLS: the handler that wants to be told if
         * the call is abandoned, or null. It survives that, like the period of a tick. */
        const skua_handler *listener;
    };
};

struct own_block;
struct tag_index;

/* See process/annex.h. */
struct annex {
    uint32_t calls;         /* the process's open calls */
    struct tag_index *tags; /* finds them by tag (dispatch/tag_index.h), or null */
    struct own_block *own;  /* memory that belongs to the process (sched/own_memory.h) */
    size_t own_bytes;
};

/* In a node, never in an event that a process gets: the completion of a call that was taken back or
 * has timed out, whose handler may have to be told (sched/abandon.h). */
#define EVENT_ABANDONED (SKUA_EVENT_CONTINUE + 1)

/* The words of a tick's payload: two for the process, and one to rearm the ticker. */
enum { TICK_COUNT, TICK_TIME, TICK_PERIOD };

struct event_node {
    uint32_t next;    /* in a mailbox or backlog */
    atomic_u32 guard; /* see dispatch/call.h; stays valid while the node is free */
    union {
        skua_event event;
        struct open_call call;
        struct annex annex;
        struct pool_link link; /* while free */
    } as;
};

_Static_assert(sizeof(struct event_node) == CACHE_LINE, "an event is one cache line");
_Static_assert(sizeof(struct open_call) == sizeof(skua_event), "it fills the node");
_Static_assert(offsetof(struct open_call, error) == offsetof(skua_event, error), "same head");
_Static_assert(offsetof(struct open_call, tag) == offsetof(skua_event, tag), "same head");
_Static_assert(offsetof(struct open_call, previous) == offsetof(skua_event, from), "same head");
_Static_assert(offsetof(struct open_call, owner) == offsetof(skua_event, payload), "then payload");
_Static_assert(offsetof(struct open_call, period) ==
                   offsetof(skua_event, payload.as.words[TICK_PERIOD]),
               "a tick leaves the period where it was");

NODISCARD bool event_pool_init(struct object_pool *pool, const struct allocator *allocator,
                               uint32_t cache_count);

#define EVENT_LAYOUT                                                                               \
    ((struct object_layout){sizeof(struct event_node), offsetof(struct event_node, as.link)})

static inline struct event_node *event_at(const struct object_pool *pool, uint32_t index)
{
    return object_at(pool, EVENT_LAYOUT, index);
}

/* Acquires a node through the owner's cache. False if there is no memory for it. */
NODISCARD static inline bool event_acquire_owner(struct object_pool *pool, struct pool_cache *cache,
                                                 uint32_t *index)
{
    return object_acquire_owner(pool, EVENT_LAYOUT, cache, index) == OBJECT_POOL_OK;
}

static inline void event_release_owner(struct object_pool *pool, struct pool_cache *cache,
                                       uint32_t index)
{
    object_release_owner(pool, EVENT_LAYOUT, cache, index);
}

/* Reverses a list of nodes, from newest first to oldest first. */
static inline uint32_t event_reverse(const struct object_pool *pool, uint32_t first)
{
    return event_list_reverse(pool, EVENT_LAYOUT, first, offsetof(struct event_node, next));
}

#endif
