/* SPDX-License-Identifier: MIT */
#include "relations/link.h"

#include "dispatch/call.h"

/* Of a half on a list; changes when it leaves that. It is never open (dispatch/call.h). */
static uint32_t guard_of(struct event_node *node)
{
    return load_relaxed(&node->guard); /* it only changes while the node is its owner's */
}

static void change_guard(struct event_node *node)
{
    store_relaxed(&node->guard, guard_of(node) + CALL_SERIAL_ONE); /* see guard_of */
}

static void make_half(struct object_pool *events, const struct link_party *party,
                      const struct link_party *peer)
{
    event_at(events, party->half)->as.half = (struct link_half){
        .type = EVENT_LINK,
        .tag = party->tag,
        .peer = peer->pid,
        .peer_half = peer->half,
        .peer_guard = guard_of(event_at(events, peer->half)),
        .previous = OBJECT_NONE,
        .next = OBJECT_NONE,
        .flags = party->flags,
        .spare = OBJECT_NONE,
    };
}

void link_make(struct object_pool *events, const struct link_party *one,
               const struct link_party *other)
{
    change_guard(event_at(events, one->half));
    change_guard(event_at(events, other->half));
    make_half(events, one, other);
    make_half(events, other, one);
}

void link_file_owner(struct object_pool *events, struct annex *annex, uint32_t index)
{
    struct link_half *half = &event_at(events, index)->as.half;
    half->previous = OBJECT_NONE;
    half->next = annex->links;
    if (annex->links != OBJECT_NONE) {
        event_at(events, annex->links)->as.half.previous = index;
    }
    annex->links = index;
}

void link_remove_owner(struct object_pool *events, struct annex *annex, uint32_t index)
{
    struct event_node *node = event_at(events, index);
    const struct link_half *half = &node->as.half;
    if (half->previous != OBJECT_NONE) {
        event_at(events, half->previous)->as.half.next = half->next;
    } else {
        annex->links = half->next;
    }
    if (half->next != OBJECT_NONE) {
        event_at(events, half->next)->as.half.previous = half->previous;
    }
    change_guard(node);
}

uint32_t link_find_peer_owner(const struct object_pool *events, const struct event_node *signal)
{
    const struct link_half *half = &signal->as.half;
    struct event_node *peer = event_at(events, half->peer_half);
    const bool lives = guard_of(peer) == half->peer_guard;
    return lives && peer->as.half.spare == OBJECT_NONE ? half->peer_half : OBJECT_NONE;
}

uint32_t link_take_owner(struct object_pool *events, struct annex *annex)
{
    const uint32_t index = annex->links;
    link_remove_owner(events, annex, index);
    return index;
}
