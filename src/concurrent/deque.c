/* SPDX-License-Identifier: MIT */
#include "concurrent/deque.h"

#include <stddef.h>

void deque_init(struct deque *deque)
{
    store_relaxed(&deque->head, 0); /* not shared yet, nor are the next ones */
    store_relaxed(&deque->bottom, 0);
    for (uint32_t i = 0; i < DEQUE_CAPACITY; i++) {
        store_relaxed(&deque->slots[i], NULL);
    }
}

int deque_steal_any(struct deque *deque, void **items, uint32_t most)
{
    uint64_t head = load_acquire(&deque->head);           /* MO-deque-pop: before bottom */
    const uint32_t bottom = load_acquire(&deque->bottom); /* MO-deque-item, MO-deque-pop */
    const uint32_t top = deque_top(head);
    const int32_t length = deque_distance(top, bottom);
    if (length <= 0) {
        return 0;
    }
    if (length > DEQUE_CAPACITY) {
        return DEQUE_LOST; /* head was read long before bottom */
    }
    uint32_t count = ((uint32_t)length + 1) / 2;
    if (count > most) {
        count = most;
    }
    for (uint32_t i = 0; i < count; i++) {
        items[i] = load_relaxed(deque_slot(deque, top + i)); /* valid only if the CAS succeeds */
    }
    const uint64_t version = (head & ~DEQUE_TOP_MASK) + DEQUE_VERSION_ONE;
    const uint64_t taken = version | ((top + count) & DEQUE_TOP_MASK);
    /* acq_rel MO-deque-item, MO-deque-pop: pairs with push's and pop's operation on head. */
    if (!cas_acq_rel_relaxed(&deque->head, &head, taken)) {
        return DEQUE_LOST;
    }
    return (int)count;
}

uint32_t deque_length_any(struct deque *deque)
{
    const uint32_t top = deque_top(load_relaxed(&deque->head));               /* a snapshot */
    const int32_t length = deque_distance(top, load_relaxed(&deque->bottom)); /* a snapshot */
    if (length < 0) {
        return 0;
    }
    return length < DEQUE_CAPACITY ? (uint32_t)length : DEQUE_CAPACITY;
}

bool deque_has_items_any(struct deque *deque)
{
    /* seq_cst MO-deque-publish: pairs with the exchange of deque_push_owner. */
    const uint32_t top = deque_top(load_seq_cst(&deque->head));
    return deque_distance(top, load_seq_cst(&deque->bottom)) > 0;
}
