/* SPDX-License-Identifier: MIT */
/* Requests: calls as the called process, the *server*, has them.
 *
 * A call is two nodes. The caller has an open call, as for any yield; whoever answers completes it
 * (dispatch/call.h). The other node is the *request*: an event that travels to the server. When it
 * is delivered, its payload goes to the step, and what is left stays on the server's list of
 * requests that it *owes* an answer to. Only the worker that runs the server touches that list, so
 * a server that ends knows what it owes, and nothing else has to be told of a call.
 *
 * The guard of a request's node is {serial:26 | hop:4 | open:1 | 0}. The serial is new for every
 * request, the hop counts how often it was forwarded. A `skua_request` names the node and is a
 * check of guard and server, so that a token that was used, forwarded, or is another process's does
 * not match. A request is *open* if the server wants to hear that nobody waits for the answer any
 * more: then whoever ends the caller's side claims it, and pushes it to the server as an event. The
 * server claims it, too, before it answers, forwards or ends.
 *
 * MO-request. The server opens a request and then looks whether the caller still waits; whoever
 * ends the caller's side claims the open call and then looks whether the request is open. The look
 * of the server is a read-modify-write of the call's guard: if it comes first, the claim reads from
 * it, and the claimer sees the request open; if the claim comes first, the server sees that. So one
 * of them knows. */
#ifndef SKUA_RELATIONS_REQUEST_H
#define SKUA_RELATIONS_REQUEST_H

#include "base/assert.h"
#include "base/random.h"
#include "dispatch/call.h"
#include "process/annex.h"

#define REQUEST_OPEN     UINT32_C(2) /* not the bit of open calls, or a completion might fit it */
#define REQUEST_HOP_ONE  CALL_SERIAL_ONE
#define REQUEST_HOPS_MAX 14
#define REQUEST_WINDOW   ((REQUEST_HOPS_MAX + 2) * REQUEST_HOP_ONE)

/* ---- names of requests ---- */

/* What the caller's open call knows of its request: where, and which. It stands in the place of a
 * handler that wants to be told of the end of the call, and is no pointer: those are even. */
static inline const skua_handler *request_listener(const struct event_node *node, uint32_t index)
{
    const uint64_t serial = load_relaxed(&node->guard) / REQUEST_WINDOW; /* not shared yet */
    return (const skua_handler *)(uintptr_t)((uint64_t)index << 32 | serial << 1 | 1);
}

static inline bool request_is_listener(const skua_handler *listener)
{
    return ((uintptr_t)listener & 1) != 0;
}

static inline uint32_t request_of_listener(const skua_handler *listener, uint32_t *base)
{
    const uint64_t bits = (uintptr_t)listener;
    *base = (uint32_t)((uint32_t)bits >> 1) * REQUEST_WINDOW;
    return (uint32_t)(bits >> 32);
}

#define REQUEST_CHECK_BITS 36
_Static_assert(EVENT_NODES_MAX <= UINT64_C(1) << (64 - REQUEST_CHECK_BITS), "a token has any node");

/* The token of something that `owner` has in this node, as of its guard. */
static inline uint64_t request_token(uint32_t index, uint32_t guard, skua_pid owner)
{
    const uint64_t check = random_mix(owner.bits ^ (guard & ~REQUEST_OPEN) * RANDOM_STEP);
    return (uint64_t)index << REQUEST_CHECK_BITS |
           (check & ((UINT64_C(1) << REQUEST_CHECK_BITS) - 1));
}

/* The node of a token that `owner` was given and that is still valid; or OBJECT_NONE. */
static inline uint32_t request_node(struct object_pool *events, uint64_t token, skua_pid owner)
{
    const uint32_t index = (uint32_t)(token >> REQUEST_CHECK_BITS);
    if (UNLIKELY(index == OBJECT_NONE || !object_pool_holds(events, index))) {
        return OBJECT_NONE;
    }
    const uint32_t guard =
        load_relaxed(&event_at(events, index)->guard); /* the owner's, if it fits */
    return LIKELY(request_token(index, guard, owner) == token) ? index : OBJECT_NONE;
}

/* ---- deadlines ---- */

/* A queued request has 32 bits for the deadline of its caller: how many units after some instant,
 * and which unit, so that it is early by a microsecond if it is a few minutes ahead, and by a
 * millionth of that otherwise. 0: there is none, or it is years ahead. It is unpacked while the
 * caller waits, or not long after. */
uint32_t request_pack_deadline(uint64_t deadline, uint64_t now);
uint64_t request_unpack_deadline(uint32_t packed, uint64_t now);

/* ---- their lives ---- */

/* Begins a request on a node that nobody knows yet. */
static inline void request_begin_owner(struct event_node *node)
{
    const uint32_t guard = load_relaxed(&node->guard) | (REQUEST_WINDOW - 1);
    store_relaxed(&node->guard, guard + 1); /* published with the node */
}

/* What was a request, closed, is none any more: its token does not match from now on. */
static inline void request_end_owner(struct event_node *node)
{
    const uint32_t guard = load_relaxed(&node->guard) | (REQUEST_WINDOW - 1);
    store_relaxed(&node->guard, guard - (REQUEST_HOP_ONE - 1)); /* the last hop: no request's */
}

/* A request that its server has deferred is closed and on its way again: tokens do not match until
 * it has arrived. Its hop is the last one meanwhile, and what it was is kept in `tag`, whose
 * highest bits no node needs. */
#define REQUEST_HIDDEN    ((REQUEST_HOPS_MAX + 1) * REQUEST_HOP_ONE)
#define REQUEST_HOP_SHIFT 60
_Static_assert(EVENT_NODES_MAX <= UINT64_C(1) << (REQUEST_HOP_SHIFT - 32), "the hop fits above");

static inline void request_hide_owner(struct event_node *node)
{
    const uint32_t guard = load_relaxed(&node->guard); /* closed: its own */
    node->as.event.type = EVENT_CALL_AGAIN;
    node->as.event.tag |= (uint64_t)(guard % REQUEST_WINDOW / REQUEST_HOP_ONE) << REQUEST_HOP_SHIFT;
    store_relaxed(&node->guard, guard | REQUEST_HIDDEN); /* closed: its own */
}

static inline void request_show_owner(struct event_node *node)
{
    const uint32_t hop = (uint32_t)(node->as.event.tag >> REQUEST_HOP_SHIFT);
    const uint32_t guard = load_relaxed(&node->guard) & ~REQUEST_HIDDEN; /* closed: its own */
    node->as.event.type = SKUA_EVENT_CALL;
    node->as.event.tag &= (UINT64_C(1) << REQUEST_HOP_SHIFT) - 1;
    store_relaxed(&node->guard, guard | hop * REQUEST_HOP_ONE); /* closed: its own */
}

static inline skua_completion request_completion(const struct event_node *node)
{
    return (skua_completion){.process = node->as.request.caller, .call = node->as.request.call};
}

/* Whether the caller still waits. */
static inline bool request_is_awaited(const struct object_pool *events, struct event_node *node)
{
    const skua_completion completion = request_completion(node);
    struct event_node *call = event_at(events, call_index(completion));
    return load_acquire(&call->guard) == call_guard(completion); /* MO-guard */
}

/* Makes a request that was delivered one that the server owes; the server has an annex. */
void request_owe_owner(struct object_pool *events, struct process *process, skua_pid server,
                       uint32_t index, uint64_t deadline);

/* Takes it off the list, which is in that annex. */
static inline void request_remove_owner(const struct object_pool *events, struct annex *annex,
                                        uint32_t index)
{
    struct owed_request *request = &event_at(events, index)->as.request;
    request->is_listed = false;
    annex->owed_count--;
    if (UNLIKELY(request->previous != OBJECT_NONE)) {
        event_at(events, request->previous)->as.request.next = request->next;
    } else {
        SKUA_ASSERT(annex->owed == index);
        annex->owed = request->next;
    }
    if (UNLIKELY(request->next != OBJECT_NONE)) {
        event_at(events, request->next)->as.request.previous = request->previous;
    }
}

static inline void request_settle_owner(const struct object_pool *events, struct process *process,
                                        uint32_t index)
{
    request_remove_owner(events, annex_of(events, process), index);
}

/* Takes one off the list of a process that has ended; there must be one. */
NODISCARD uint32_t request_take_owner(struct object_pool *events, struct annex *annex);

/* Opens a request that the server owes. False if the caller has given up: then the request is
 * closed again, or on its way to the server as an event. */
NODISCARD bool request_open_owner(const struct object_pool *events, struct event_node *node);

/* Tries to close a request that was open with this guard. Acquires what its server wrote before. */
NODISCARD static inline bool request_shut_any(struct event_node *node, uint32_t guard)
{
    uint32_t expected = guard;
    return cas_acq_rel_relaxed(&node->guard, &expected, guard & ~REQUEST_OPEN); /* MO-request */
}

/* Closes it, so that it is the server's alone. False if it is on its way as an event. */
NODISCARD static inline bool request_close_owner(struct event_node *node)
{
    if (LIKELY(!node->as.request.is_opened)) {
        return true;
    }
    const uint32_t guard = load_relaxed(&node->guard) | REQUEST_OPEN; /* unless it was claimed */
    if (!request_shut_any(node, guard)) {
        return false;
    }
    node->as.request.is_opened = false;
    return true;
}

/* Claims an open request for whoever has ended the caller's side; false if it is not open. */
NODISCARD bool request_claim_any(struct event_node *node, uint32_t base);

/* What the caller can see of its request, while the call is open: how often it was forwarded, and
 * perhaps who has it now. That is a guess, because it may be on its way, or be moving at this
 * moment: only that process can tell whether it is true. */
NODISCARD uint32_t request_peek_any(const struct object_pool *events, const skua_handler *listener,
                                    skua_pid *guess);

/* ---- calls on behalf of a request: a ring, of which the request has the last ---- */

/* Adds one, on the node `dependent`. It looks at the two that have waited longest, as a watcher
 * does (relations/watchers.h), and releases the nodes of those that are over to `cache`. */
void request_add_dependent_owner(struct object_pool *events, struct pool_cache *cache,
                                 struct event_node *node, uint32_t dependent,
                                 skua_completion completion);

/* Takes the one that has waited longest; there must be one. */
NODISCARD uint32_t request_take_dependent_owner(const struct object_pool *events, uint32_t *last);

#endif
