/* SPDX-License-Identifier: MIT */
#include "dispatch/call.h"

static void set_previous(struct event_node *node, uint32_t previous)
{
    node->as.call.previous = (node->as.call.previous & CALL_ENDS) | previous;
}

void call_link_owner(struct object_pool *events, struct process *process, uint32_t index)
{
    struct event_node *node = event_at(events, index);
    node->as.call.next = process->calls;
    if (process->calls != OBJECT_NONE) {
        set_previous(event_at(events, process->calls), index);
    }
    process->calls = index;
}

void call_unlink_owner(struct object_pool *events, struct process *process, struct event_node *node,
                       uint32_t index)
{
    const uint32_t previous = node->as.call.previous & ~CALL_ENDS;
    const uint32_t next = node->as.call.next;
    if (previous != OBJECT_NONE) {
        event_at(events, previous)->as.call.next = next;
    } else if (process->calls == index) {
        process->calls = next;
    }
    if (next != OBJECT_NONE) {
        set_previous(event_at(events, next), previous);
    }
    node->as.event.from = (skua_pid){0}; /* the links were there */
}

void call_revoke_all_owner(struct object_pool *events, struct deadlines *deadlines,
                           struct pool_cache *cache, struct process *process)
{
    uint32_t index = process->calls;
    while (index != OBJECT_NONE) {
        struct event_node *node = event_at(events, index);
        /* Read before the claim: a completer that has won owns the node from then on, although
         * while the process is Ready all that it can do is push it. */
        const uint32_t next = node->as.call.next;
        const uint32_t guard = load_relaxed(&node->guard); /* re-checked by the claim */
        if (call_claim_any(node, guard)) {
            call_disarm_owner(deadlines, node, index);
            event_release_owner(events, cache, index);
        }
        index = next;
    }
    process->calls = OBJECT_NONE;
}
