/* SPDX-License-Identifier: MIT */
/* Open calls: commands whose completion is still to come.
 *
 * Each yield has an event node from the start. While the command is carried out the node is an
 * open call, and its `guard` word decides who completes it: {serial:30 | 0 | open:1}. The
 * completion that the handler gets names the node and the guard's value; whoever clears the open
 * bit first has won and owns the node (INV-7: a second or late completion changes nothing). The
 * serial grows with every call that the node carries, so a stale completion does not match a later
 * call.
 *
 * The winner is one of
 *  - the worker, when the handler returned the result at once,
 *  - a thread that calls skua_command_complete: it turns the node into a completion event and
 *    pushes it to the process,
 *  - whoever finds that its deadline has passed (dispatch/deadlines.h),
 *  - the worker, when the process cancels it: the completion then says so,
 *  - the worker that ends the process: it releases the node, and all later completions are late.
 * A ticker is a call that reopens each time its tick is delivered, with the next serial.
 *
 * A handler may want to hear of calls that it has left pending and that end without its completion.
 * Whoever claims such a call in the handler's stead makes that known in the call's event
 * (EVENT_ABANDONED), also if the process ends; who then has the node tells the handler
 * (sched/abandon.h). That the handler has left the call pending is known to the owner alone, so it
 * is told by the owner, or by whoever finds that the owner is gone.
 *
 * A process lists its open calls. Only its worker touches the list: it adds a call when the
 * handler returns SKUA_PENDING and removes it when it delivers the completion. A process with
 * many calls that takes some back has an index of them, too (dispatch/tag_index.h).
 *
 * MO-view: the owner of a call may look at it while it is open. A completer may write meanwhile to
 * what it reads, so it looks at the guard afterwards, by a read-modify-write: if the call is still
 * open, a later claim reads from that, so that all that was read came before it; if not, what was
 * read is not used.
 *
 * MO-guard: call_open_owner releases the node's content with the guard; call_claim_any acquires
 * it. */
#ifndef SKUA_DISPATCH_CALL_H
#define SKUA_DISPATCH_CALL_H

#include <skua/command.h>

#include "dispatch/deadlines.h"
#include "process/annex.h"
#include "process/event.h"
#include "process/process.h"

/* The bit between them is for nodes that are no calls and can be open, too (relations/request.h):
 * no completion, not even one that was made up, fits those. */
#define CALL_OPEN       UINT32_C(1)
#define CALL_SERIAL_ONE UINT32_C(4)

/* In `previous`: the call has been taken back. A ticker whose tick is on its way must not
 * reopen. */
#define CALL_ENDS (UINT32_C(1) << 31)

/* The same for a call that its handler has left pending and wants to be told about. */
#define CALL_TELLS (UINT32_C(1) << 30)

#define CALL_FLAGS (CALL_ENDS | CALL_TELLS)

_Static_assert(EVENT_NODES_MAX <= CALL_TELLS, "no index has these bits");

/* What an open call is about, in `next`, which it does not need: 1 + the service or
 * CALL_SUBJECT_COMMAND, and a number: of the descriptor, the command, the slot of a process or the
 * entry of a name; or CALL_SUBJECT_UNKNOWN. */
#define CALL_SUBJECT_SHIFT   27
#define CALL_SUBJECT_COMMAND UINT32_C(0)
#define CALL_SUBJECT_UNKNOWN ((UINT32_C(1) << CALL_SUBJECT_SHIFT) - 1)
static inline uint32_t call_subject(uint32_t kind, uint32_t number)
{
    return kind << CALL_SUBJECT_SHIFT |
           (number < CALL_SUBJECT_UNKNOWN ? number : CALL_SUBJECT_UNKNOWN);
}

/* What there is to know of an open call. */
struct call_view {
    uint32_t kind; /* of its subject, and the number */
    uint32_t number;
    uint64_t tag;
    bool has_deadline;
    uint64_t deadline;            /* 0: it is just being ended */
    uint64_t period;              /* of a ticker; otherwise nothing */
    uint32_t guard;               /* that it has while it is open */
    const skua_handler *listener; /* of a call to a process: its request (relations/request.h) */
};

/* Opens a call, or reopens a ticker's, on a node whose tag is set; `owner` is the process. */
static inline skua_completion call_reopen_owner(struct event_node *node, uint32_t index,
                                                skua_pid owner)
{
    const uint32_t guard = (load_relaxed(&node->guard) + CALL_SERIAL_ONE) | CALL_OPEN;
    node->as.call.wheel = 0;
    node->as.call.owner = owner;
    store_release(&node->guard, guard); /* MO-guard */
    return (skua_completion){.process = owner, .call = (uint64_t)index << 32 | guard};
}

static inline skua_completion call_open_owner(struct event_node *node, uint32_t index,
                                              skua_pid owner)
{
    node->as.call.previous = OBJECT_NONE;
    node->as.call.next = OBJECT_NONE;
    return call_reopen_owner(node, index, owner);
}

/* Tries to claim the call; false if somebody else has. */
NODISCARD static inline bool call_claim_any(struct event_node *node, uint32_t guard)
{
    uint32_t expected = guard;
    if ((guard & CALL_OPEN) == 0) {
        return false; /* no call_open_owner ever returned this */
    }
    return cas_acq_rel_relaxed(&node->guard, &expected, guard & ~CALL_OPEN); /* MO-guard */
}

/* The right to complete a call that was open a moment ago, as its handler knows it. */
static inline skua_completion call_completion(struct event_node *node, uint32_t index,
                                              skua_pid owner)
{
    const uint32_t guard = load_relaxed(&node->guard) | CALL_OPEN; /* claimed by the caller */
    return (skua_completion){.process = owner, .call = (uint64_t)index << 32 | guard};
}

static inline uint32_t call_index(skua_completion completion)
{
    return (uint32_t)(completion.call >> 32);
}

static inline uint32_t call_guard(skua_completion completion)
{
    return (uint32_t)completion.call;
}

/* The winner must call this first: it takes the call out of its wheel. */
static inline void call_disarm_owner(struct deadlines *deadlines, struct event_node *node,
                                     uint32_t index)
{
    if (UNLIKELY(node->as.call.wheel != 0)) {
        deadlines_disarm_any(deadlines, index);
    }
}

/* Turns a claimed call that is in no wheel into its completion event. */
static inline void call_complete_owner(struct event_node *node, int error,
                                       const skua_payload *result)
{
    node->as.event.type = SKUA_EVENT_COMPLETION;
    node->as.event.error = error;
    node->as.event.payload = *result;
}

/* The call has ended without a completion, as its event says: `listener`, if there is one, may have
 * to be told of that. */
static inline void call_mark_abandoned_owner(struct event_node *node, const skua_handler *listener)
{
    if (UNLIKELY(listener != NULL)) {
        node->as.event.type = EVENT_ABANDONED;
        node->as.call.listener = listener; /* where its payload has a word that is not used */
    }
}

/* Looks at a call of the process's list. False if somebody completes it, or has. */
NODISCARD bool call_view_owner(struct event_node *node, struct call_view *view);

/* Adds a call to the list of its process. */
void call_link_owner(const struct allocator *allocator, struct object_pool *events,
                     struct process *process, uint32_t index);

/* Removes it, if it is on the list, when its completion is delivered. */
void call_unlink_owner(struct object_pool *events, struct process *process, struct event_node *node,
                       uint32_t index);

/* Goes through the open calls with one tag, to take them all back: each gets CALL_ENDS before the
 * next one is asked for, and none is unlinked meanwhile.
 *   for (index = call_first_owner(...); index != OBJECT_NONE; index = call_next_owner(...))
 * The first makes the index if there are many calls, memory for it and its node in `cache`. */
NODISCARD uint32_t call_first_owner(const struct allocator *allocator, struct object_pool *events,
                                    struct pool_cache *cache, struct process *process,
                                    uint64_t tag);
NODISCARD uint32_t call_next_owner(struct object_pool *events, struct process *process,
                                   uint32_t index, uint64_t tag);

/* Gives up the index, if there is one. */
void call_drop_index_owner(const struct allocator *allocator, struct object_pool *events,
                           struct process *process);

/* Revokes calls of a process that is ending but still Ready, and releases their nodes to `cache`.
 * Lowers `*budget` by their number; false if there are more. A call that a completer has just won
 * stays the completer's: it pushes it to the process or, not before all are revoked, finds the
 * process closed and releases the node itself. Those with CALL_TELLS are not released: they go to
 * the front of the backlog as EVENT_ABANDONED, oldest first. */
NODISCARD bool call_revoke_owner(struct object_pool *events, struct deadlines *deadlines,
                                 struct pool_cache *cache, struct process *process,
                                 uint32_t *budget);

#endif
