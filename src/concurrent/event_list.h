/* SPDX-License-Identifier: MIT */
/* A list that many threads push to and one takes whole, kept in the upper half of a 64-bit word.
 * The lower half, the *tag*, belongs to the word's owner; a gate decides from it whether a push is
 * admitted and what the tag becomes. One compare-exchange thus checks who owns the word, links the
 * node and changes the tag, with nothing in between. The gate may also keep the node out of the
 * list and leave it to the pusher, which has then become responsible for the owner.
 *
 * Nodes are found by index in an object pool and linked newest first; the taker reverses them. A
 * push never reads another node, and a take removes all of them, so a node that returns to the list
 * between load and compare-exchange does no harm (no ABA).
 *
 * MO-event: a node's content is written before the compare-exchange of the push (release); the
 * exchange of the take acquires it. The acquire half of the push matters when the gate made the
 * pusher responsible for the owner: it then sees all that the owner did before it came to rest.
 *
 * MO-refused: a refused pusher keeps its node and may pass it on, so it must come after all that
 * the owner did with the node before it closed the word. */
#ifndef SKUA_CONCURRENT_EVENT_LIST_H
#define SKUA_CONCURRENT_EVENT_LIST_H

#include <stdbool.h>

#include "base/atomic.h"
#include "concurrent/object_pool.h"

#define EVENT_LIST_SHIFT 32

static inline uint32_t event_list_first(uint64_t word)
{
    return (uint32_t)(word >> EVENT_LIST_SHIFT);
}

static inline uint32_t event_list_tag(uint64_t word)
{
    return (uint32_t)word;
}

static inline uint64_t event_list_word(uint32_t first, uint32_t tag)
{
    return (uint64_t)first << EVENT_LIST_SHIFT | tag;
}

/* What happens to a pushed node. */
enum event_list_verdict {
    EVENT_LIST_REFUSED,
    EVENT_LIST_ADDED,  /* it is in the list */
    EVENT_LIST_CALLER, /* only the tag has changed: the caller keeps the node and must deliver it */
};

/* Decides about a push to a word with *tag, and what the tag becomes. */
typedef enum event_list_verdict event_list_gate(uint32_t *tag, uint32_t arg);

/* Pushes the node with index `index`, whose link is *next. Callers pass the gate as a constant, so
 * that it is inlined. */
static inline enum event_list_verdict event_list_push_any(atomic_u64 *word, uint32_t index,
                                                          uint32_t *next, event_list_gate *gate,
                                                          uint32_t arg)
{
    uint64_t seen = load_acquire(word); /* MO-refused */
    for (;;) {
        uint32_t tag = event_list_tag(seen);
        uint32_t first = event_list_first(seen);
        const enum event_list_verdict verdict = gate(&tag, arg);
        if (verdict == EVENT_LIST_REFUSED) {
            return verdict;
        }
        if (verdict == EVENT_LIST_ADDED) {
            *next = first;
            first = index;
        }
        /* MO-event; acquire MO-refused when it fails */
        if (cas_acq_rel_acquire(word, &seen, event_list_word(first, tag))) {
            return verdict;
        }
    }
}

/* Takes all nodes and sets the tag; returns the word as it was. */
static inline uint64_t event_list_take_owner(atomic_u64 *word, uint32_t tag)
{
    return exchange_acq_rel(word, event_list_word(OBJECT_NONE, tag)); /* MO-event */
}

/* Reverses a taken list to oldest first; `link_offset` is where a node keeps its link. */
static inline uint32_t event_list_reverse(const struct object_pool *pool,
                                          struct object_layout layout, uint32_t first,
                                          size_t link_offset)
{
    uint32_t reversed = OBJECT_NONE;
    while (first != OBJECT_NONE) {
        char *node = object_at(pool, layout, first);
        uint32_t *link = (uint32_t *)(void *)(node + link_offset);
        const uint32_t next = *link;
        *link = reversed;
        reversed = first;
        first = next;
    }
    return reversed;
}

#endif
