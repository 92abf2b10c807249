/* SPDX-License-Identifier: MIT */
/* Event nodes: the events in a mailbox, and the open calls that stand for commands under way.
 *
 * A node is one cache line of a type-stable pool. Its life is one of
 *   free -> message or cancel event, pushed to a process -> free
 *   free -> open call (dispatch/call.h) -> completion event -> free
 *   free -> annex of a process (process/annex.h) -> free
 *   free -> request of a call, pushed to a process -> owed by it (relations/request.h) -> free
 *           (or deferred by it, and owed again: sched/defer.h)
 *   free -> message that waits for room, pushed to a process (sched/admission.h) -> free
 *   free -> pushed to a process that is to be watched or linked -> filed there -> free
 *           (relations/watchers.h, relations/link.h)
 *   free -> news of a child, pushed to its supervisor (sched/children.h) -> free
 *   free -> question of the inspector, pushed to a process (sched/describe.h) -> free
 *   free -> request to change its type, pushed to a process (sched/upgrade.h) -> event, if that
 *           fails -> free
 *   free -> signal of a socket, pushed to its owner again and again (net/socket_word.h) -> free
 *   free -> write that a socket has queued (net/socket_output.c) -> free
 *   free -> bundle of events that urgent ones have overtaken (sched/urgent.h) -> free
 *   free -> note of how far the end of a process is (sched/exit.c) -> free */
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
    uint16_t wheel; /* 1 + the worker whose wheel it was armed in (dispatch/deadlines.h), or 0 */
    uint16_t place; /* 1 + its place beside that wheel, or 0 */
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

struct tag_index;
struct wing;

/* See process/annex.h. */
struct annex {
    uint32_t calls;         /* the process's open calls */
    uint32_t owed;          /* requests that it has not answered yet (relations/request.h) */
    uint32_t owed_count;    /* of them */
    uint32_t watchers;      /* the last of the ring of those that watch it (relations/watchers.h) */
    uint32_t links;         /* its halves of links (relations/link.h) */
    uint32_t names;         /* the first of its names (relations/names.h) */
    struct tag_index *tags; /* finds its calls by tag (dispatch/tag_index.h), or null */
    struct wing *wing;      /* what fewer still need (process/annex.h), or null */
    char *label; /* what it calls itself, or null; once it has failed: what it was called */
};

/* A request that its server has got and not answered yet. It begins as the event that the server
 * got, whose payload has left it. */
struct owed_request {
    uint32_t type;
    uint32_t dependents; /* calls made on its behalf, or OBJECT_NONE */
    uint64_t call;       /* the caller's completion: `call`, */
    skua_pid caller;     /* and `process` */
    uint64_t deadline;   /* when the caller stops waiting; SKUA_FOREVER: never */
    skua_pid server;
    uint32_t previous; /* in the list of the server */
    uint32_t next;
    bool is_listed; /* it is in that list */
    bool is_opened; /* the server wants to hear if nobody waits any more */
    bool is_known;  /* to the server's step */
    uint32_t since; /* when the server got it (sched/calls.c) */
};

/* A call that is made on behalf of a request. */
struct dependent_call {
    uint64_t call; /* skua_completion.call */
    uint32_t next;
};

/* What is left of the calls on behalf of a request that is over, for later turns of the process:
 * EVENT_DEPENDENTS, on the node of one that is done with. */
struct dependent_calls {
    uint32_t type;
    uint32_t last; /* of the ring; there is one at least */
    bool end;      /* they are taken back, and not only forgotten */
};

/* The rest of those that have waited for a name, for later turns of the process that has it:
 * EVENT_WAITERS, on the node of one that has been told. */
struct name_waiters {
    uint32_t type;
    uint32_t first; /* there is one at least */
};

/* Events in their order, which stand in the list as one: EVENT_BUNDLE. */
struct event_bundle {
    uint32_t type;
    uint32_t first; /* there is one at least */
    uint32_t last;
};

/* One party's half of a link. It also is the signal to the other party that this one has ended or
 * unlinked. */
struct link_half {
    uint32_t type;
    int32_t error; /* how this party ended */
    uint64_t tag;  /* of this party's EXIT event */
    skua_pid peer;
    uint32_t peer_half; /* the node of the other half, and the guard that it has while it lives */
    uint32_t peer_guard;
    uint32_t previous; /* in the list of this party */
    uint32_t next;
    uint32_t flags; /* what the end of the other means to this party */
    uint32_t spare; /* a node for the annex that the other party may lack */
    skua_pid cause; /* who failed first */
};

/* Types of nodes, never of events that a process gets. */
enum {
    /* A message that is urgent, until a step gets it or it is dropped (sched/urgent.h). */
    EVENT_URGENT = 63,
    /* The completion of a call that was taken back or has timed out, whose handler or server may
     * have to be told (sched/abandon.h). */
    EVENT_ABANDONED = 64,
    EVENT_REQUEST_OVER, /* to the server: nobody waits any more for the answer to this request */
    EVENT_MONITOR, /* `from` wants to know how this process ends; `tag` is its completion.call */
    EVENT_JOIN,    /* and what its result is */
    EVENT_NAME_WAITER,  /* `from` waits for a name; in no mailbox (relations/names.h) */
    EVENT_LINK,         /* this half of a link is this process's */
    EVENT_UNLINK,       /* the other party has taken the link back */
    EVENT_LINK_END,     /* the other party has ended */
    EVENT_GROUP,        /* the group that is watched by this call has changed (sched/grouping.h) */
    EVENT_CALL_AGAIN,   /* a request that the process has got before, and deferred */
    EVENT_DESCRIBE,     /* the inspector asks what this process waits for (sched/describe.h) */
    EVENT_DEPENDENTS,   /* the process has left them for later (sched/calls.c) */
    EVENT_WAITERS,      /* it has to tell them yet that it has a name (sched/naming.c) */
    EVENT_SOCKET,       /* one of its sockets, `tag`, may be ready (net/sockets.h) */
    EVENT_SOCKET_GIVEN, /* it has got the socket `tag` */
    EVENT_PUBLISH,      /* it has more to send of what it publishes (sched/publishing.h) */
    EVENT_CHILD,        /* somebody has started a child of this process (sched/children.h) */
    EVENT_CHILD_READY,  /* a child of it is ready */
    EVENT_ADMISSION,    /* a message that `from` waits for until it is admitted; `tag` is its
                         * completion.call (sched/admission.h) */
    EVENT_OVERFLOW,     /* its mailbox was full, and its type ends it then (sched/shedding.h) */
    EVENT_UPGRADE,      /* it is to change its type (sched/upgrade.h) */
    EVENT_BUNDLE,       /* events that urgent ones have overtaken (sched/urgent.h) */
};

struct upgrade;

/* EVENT_UPGRADE. */
struct become_request {
    uint32_t type;
    struct upgrade *upgrade;     /* who asks; or null: the process itself, */
    const skua_process_type *to; /* for this type */
};

struct description;

/* EVENT_DESCRIBE. */
struct question {
    uint32_t type;
    struct description *description; /* where the answer goes */
};

/* How far the end of a process is, if that takes a while (sched/exit.c). */
enum ending_phase {
    ENDING_LEAVES, /* it is Ready, and gives up what others can find it by or push to it */
    ENDING_DROPS,  /* it is Complete, and drops its events */
    ENDING_TELLS,  /* its close has returned, and others are told */
};

/* How a process ends. Between two slices of that it is in a node, the first of the backlog. */
struct ending {
    uint32_t phase;
    int error;
    skua_pid cause; /* who failed first; zero: nobody */
    skua_payload result;
    union {
        uint32_t unclosed; /* in the first phase: from this one on, requests that it owes are open
                            * as they were */
        uint32_t rest;     /* then: events to be dropped, besides the backlog */
    };
    uint32_t notices; /* nodes of others that must be told, and are not in the annex */
};

/* The words of a tick's payload: two for the process, and one to rearm the ticker. */
enum { TICK_COUNT, TICK_TIME, TICK_PERIOD };

struct event_node {
    uint32_t next;    /* in a mailbox or backlog */
    atomic_u32 guard; /* see dispatch/call.h; stays valid while the node is free */
    union {
        skua_event event;
        struct open_call call;
        struct annex annex;
        struct owed_request request;
        struct dependent_call dependent;
        struct dependent_calls dependents;
        struct name_waiters waiters;
        struct event_bundle bundle;
        struct link_half half;
        struct ending ending;
        struct question question;
        struct become_request request_to_become;
        struct pool_link link; /* while free */
    } as;
};

_Static_assert(sizeof(struct event_node) == CACHE_LINE, "an event is one cache line");
_Static_assert(sizeof(struct open_call) == sizeof(skua_event), "it fills the node");
_Static_assert(offsetof(struct open_call, error) == offsetof(skua_event, error), "same head");
_Static_assert(offsetof(struct open_call, tag) == offsetof(skua_event, tag), "same head");
_Static_assert(offsetof(struct open_call, previous) == offsetof(skua_event, from), "same head");
_Static_assert(offsetof(struct open_call, owner) == offsetof(skua_event, payload), "then payload");
_Static_assert(sizeof(struct annex) <= sizeof(skua_event), "it fits");
_Static_assert(sizeof(struct owed_request) <= sizeof(skua_event), "it fits");
_Static_assert(sizeof(struct ending) <= sizeof(skua_event), "it fits");
_Static_assert(sizeof(struct link_half) <= sizeof(skua_event), "it fits");
_Static_assert(sizeof(struct question) <= sizeof(skua_event), "it fits");
_Static_assert(sizeof(struct become_request) <= sizeof(skua_event), "it fits");
_Static_assert(offsetof(struct owed_request, call) == offsetof(skua_event, tag), "same head");
_Static_assert(offsetof(struct owed_request, caller) == offsetof(skua_event, from), "same head");
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

/* The same; returns the node, or null. */
NODISCARD static inline struct event_node *
event_acquire_node_owner(struct object_pool *pool, struct pool_cache *cache, uint32_t *index)
{
    return LIKELY(object_provide_owner(pool, cache) == OBJECT_POOL_OK)
               ? object_acquire_cached_owner(pool, EVENT_LAYOUT, cache, index)
               : NULL;
}

static inline void event_release_owner(struct object_pool *pool, struct pool_cache *cache,
                                       uint32_t index)
{
    object_release_owner(pool, EVENT_LAYOUT, cache, index);
}

/* An event that nobody sent. */
static inline void event_make(skua_event *event, enum skua_event_type type, int error)
{
    event->type = type;
    event->error = error;
    event->tag = 0;
    event->from = (skua_pid){0};
    event->payload = skua_payload_empty(0);
}

/* Reverses a list of nodes, from newest first to oldest first. */
static inline uint32_t event_reverse(const struct object_pool *pool, uint32_t first)
{
    return event_list_reverse(pool, EVENT_LAYOUT, first, offsetof(struct event_node, next));
}

#endif
