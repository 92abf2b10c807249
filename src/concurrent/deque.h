/* SPDX-License-Identifier: MIT */
/* The work-stealing deque: LIFO for the one worker that owns it, and from the other end any thief
 * takes up to half of the items with one compare-exchange. Every item that was pushed is returned
 * exactly once (INV-1).
 *
 *        top                    bottom
 *         v                        v
 *   . . . [a] [b] [c] [d] [e] [f] . . .        a is the oldest, f the newest
 *         thieves ->       <- owner
 *
 * `head` packs {version:40 | top:24} into one word; `bottom` is the owner's. The difficulty is a
 * thief that has read top and bottom, copied half of the items, and stalls: meanwhile the owner may
 * pop those same items, because pop moves only `bottom`. So pop also adds one to the version in
 * `head`. Any such thief then fails its compare-exchange, and a popped index can never lie inside
 * a batch that succeeded (INV-2).
 *
 * Rejected: the plain Chase-Lev deque with a batch steal, which returns items twice and loses
 * others (the owner's pops are invisible to the thief's compare-exchange); one compare-exchange per
 * stolen item (crossbeam), which is sound but costs a contended operation each; growing, which
 * needs the old buffers reclaimed. A push to a full deque fails, and the owner spills half of it
 * elsewhere.
 *
 * Why each order is enough (ids as in docs/memory-orders.md):
 *  MO-deque-item: the item's content is written before `bottom` is stored by push; a thief reads
 *    `bottom` with acquire and copies only indices below it; the compare-exchange that commits is
 *    acq_rel. Slots themselves are relaxed: a slot is reused only after top has passed it, and then
 *    the thief's compare-exchange fails.
 *  MO-deque-pop: pop stores the smaller `bottom`, then adds to `head` (acq_rel). A thief reads
 *    `head` first, then `bottom`, both acquire. Either it read `head` after the addition, and then
 *    sees the smaller `bottom`; or before, and then its compare-exchange fails; or that
 *    compare-exchange came first, and then the addition returns the new top and pop sees it.
 *    Pushing many writes all their slots before the one exchange,
 *    and finds room for them: top only grows, so the room that it saw is still there.
 *  MO-deque-publish: push stores `bottom` by a seq_cst exchange. It is the publishing operation of
 *    the wake protocol (parking.h); deque_has_items_any reads with seq_cst loads for the same
 *    reason. A scan of all processes reads it first (deque_see_pushes_any).
 *
 * Indices count modulo 2^24 and are compared by their signed difference. Between the two steps of a
 * pop of an empty deque, bottom is one less than top; thieves see that as empty. The version grows
 * with every pop and steal and wraps around after 2^40 of them: a thief would have to stall for
 * exactly a multiple of that. */
#ifndef SKUA_CONCURRENT_DEQUE_H
#define SKUA_CONCURRENT_DEQUE_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Large enough for the usual load of one worker: everything that spills goes through the shared
 * queue, and from there to any core. With 256, a thousand pairs of processes that talk took a third
 * longer on two workers. Models use smaller ones, to reach wrap-around and spilling in few
 * steps. */
#ifndef DEQUE_CAPACITY
#define DEQUE_CAPACITY 1024
#endif
_Static_assert((DEQUE_CAPACITY & (DEQUE_CAPACITY - 1)) == 0, "slots are found by masking");

#define DEQUE_TOP_BITS    24
#define DEQUE_TOP_MASK    ((UINT64_C(1) << DEQUE_TOP_BITS) - 1)
#define DEQUE_VERSION_ONE (UINT64_C(1) << DEQUE_TOP_BITS)

/* Returned by deque_steal_any when another thread was faster. */
#define DEQUE_LOST (-1)

struct deque {
    CACHE_ALIGNED atomic_u64 head;   /* thieves compare-exchange, the owner adds */
    CACHE_ALIGNED atomic_u32 bottom; /* only the owner writes */
    CACHE_ALIGNED atomic_ptr slots[DEQUE_CAPACITY];
};

static inline uint32_t deque_top(uint64_t head)
{
    return (uint32_t)(head & DEQUE_TOP_MASK);
}

/* How far b is ahead of a, modulo 2^24. */
static inline int32_t deque_distance(uint32_t a, uint32_t b)
{
    return (int32_t)((b - a) << (32 - DEQUE_TOP_BITS)) >> (32 - DEQUE_TOP_BITS);
}

static inline atomic_ptr *deque_slot(struct deque *deque, uint32_t index)
{
    return &deque->slots[index & (DEQUE_CAPACITY - 1)];
}

void deque_init(struct deque *deque);

/* Items in the deque, seen by its owner: exact, or too high while thieves are active. */
static inline uint32_t deque_length_owner(struct deque *deque)
{
    const uint32_t bottom = load_relaxed(&deque->bottom);       /* owner-only writer */
    const uint32_t top = deque_top(load_relaxed(&deque->head)); /* only ever grows */
    const int32_t length = deque_distance(top, bottom);
    return length > 0 ? (uint32_t)length : 0;
}

/* Where the next item goes; and how many there are from such an index on, or fewer than none. */
static inline uint32_t deque_bottom_owner(struct deque *deque)
{
    return load_relaxed(&deque->bottom); /* owner-only writer */
}
static inline int32_t deque_count_from_owner(struct deque *deque, uint32_t index)
{
    return deque_distance(index, deque_bottom_owner(deque));
}

/* Adds an item. Returns false, and does nothing, if the deque is full. */
static inline bool deque_push_owner(struct deque *deque, void *item)
{
    const uint32_t bottom = load_relaxed(&deque->bottom); /* owner-only writer */
    /* acquire MO-deque-item: the thief that moved top has finished reading the slot. */
    const uint32_t top = deque_top(load_acquire(&deque->head));
    if (UNLIKELY(deque_distance(top, bottom) >= DEQUE_CAPACITY)) {
        return false;
    }
    store_relaxed(deque_slot(deque, bottom), item);     /* published by the next line */
    (void)exchange_seq_cst(&deque->bottom, bottom + 1); /* MO-deque-item, MO-deque-publish */
    return true;
}

/* One thread stores X (seq_cst), calls this and then reads Y. The owner writes Y and pushes; then
 * the owner, or whoever took the item, reads X (seq_cst). At least one of the two sees what the
 * other wrote (MO-stop, MO-upgrade). */
static inline void deque_see_pushes_any(struct deque *deque)
{
    (void)load_seq_cst(&deque->bottom); /* MO-stop */
}

/* Adds as many of the items as there is room for, all by one publication: the last of them is the
 * newest. Returns how many. */
static inline uint32_t deque_push_many_owner(struct deque *deque, void *const *items,
                                             uint32_t count)
{
    const uint32_t bottom = load_relaxed(&deque->bottom); /* owner-only writer */
    /* acquire MO-deque-item: thieves that moved top have finished reading the slots below it. */
    const uint32_t top = deque_top(load_acquire(&deque->head));
    const uint32_t room = DEQUE_CAPACITY - (uint32_t)deque_distance(top, bottom);
    const uint32_t pushed = count < room ? count : room;
    for (uint32_t i = 0; i < pushed; i++) {
        store_relaxed(deque_slot(deque, bottom + i), items[i]); /* published below */
    }
    if (pushed > 0) {
        (void)exchange_seq_cst(&deque->bottom, bottom + pushed); /* MO-deque-item, -publish */
    }
    return pushed;
}

/* Takes the newest item; null if there is none. Wait-free. */
static inline void *deque_pop_owner(struct deque *deque)
{
    if (deque_length_owner(deque) == 0) {
        return NULL;
    }
    const uint32_t bottom = load_relaxed(&deque->bottom) - 1; /* owner-only writer */
    store_release(&deque->bottom, bottom);                    /* MO-deque-pop */
    const uint64_t head = fetch_add_acq_rel(&deque->head, DEQUE_VERSION_ONE); /* MO-deque-pop */
    if (UNLIKELY(deque_distance(deque_top(head), bottom) < 0)) {
        /* Thieves took the last item in between. */
        store_release(&deque->bottom, bottom + 1); /* MO-deque-pop */
        return NULL;
    }
    return load_relaxed(deque_slot(deque, bottom)); /* written by this thread */
}

/* Takes up to half of the items, rounded up and at most `most`, oldest first, into `items`. Returns
 * how many, 0 if there were none, or DEQUE_LOST. The owner may call it too: for its oldest item, or
 * to spill. */
int deque_steal_any(struct deque *deque, void **items, uint32_t most);

/* About how many items there are, for statistics. */
uint32_t deque_length_any(struct deque *deque);

/* Whether there is something to steal: the re-check of the parking protocol. */
bool deque_has_items_any(struct deque *deque);

#endif
