/* SPDX-License-Identifier: MIT */
#include "concurrent/ring.h"

void ring_init(struct ring *ring)
{
    store_relaxed(&ring->head, 0); /* not shared yet, nor is the tail */
    store_relaxed(&ring->tail, 0);
    ring->limit = RING_CAPACITY;
    store_relaxed(&ring->lost, 0);
    store_relaxed(&ring->lost_since, 0);
}

static void lose(struct ring *ring, const struct ring_record *record)
{
    const uint64_t lost = load_relaxed(&ring->lost); /* owner-only writer, as in the following */
    if (lost == 0) {
        store_relaxed(&ring->lost_since, record->words[0]); /* statistic */
    }
    store_relaxed(&ring->lost, lost + 1); /* statistic */
}

/* Opens the ring again. Returns the new head, which is not published yet. */
static uint64_t write_gap(struct ring *ring, uint64_t head)
{
    *ring_entry(ring, head) = (struct ring_record){
        .words = {[0] = load_relaxed(&ring->lost_since), /* owner-only writer */
                  [2] = load_relaxed(&ring->lost),       /* owner-only writer */
                  [3] = RING_LOST},
    };
    store_relaxed(&ring->lost, 0); /* statistic */
    return head + 1;
}

bool ring_write_at_limit_owner(struct ring *ring, const struct ring_record *record)
{
    uint64_t head = load_relaxed(&ring->head);         /* owner-only writer */
    const uint64_t tail = load_acquire(&ring->tail);   /* MO-ring: pairs with ring_read_any */
    const bool closed = load_relaxed(&ring->lost) > 0; /* owner-only writer */
    const uint64_t room = RING_CAPACITY - (head - tail);
    if (room < (closed ? RING_CAPACITY / 2 : 1)) {
        lose(ring, record);
        return false;
    }
    ring->limit = tail + RING_CAPACITY;
    if (closed) {
        head = write_gap(ring, head);
    }
    *ring_entry(ring, head) = *record;
    store_release(&ring->head, head + 1); /* MO-ring: pairs with ring_read_any */
    return true;
}

bool ring_refuses_owner(struct ring *ring)
{
    const uint64_t lost = load_relaxed(&ring->lost); /* owner-only writer */
    if (lost == 0) {
        return false;
    }
    const uint64_t tail = load_relaxed(&ring->tail);             /* a hint: a write checks again */
    if (load_relaxed(&ring->head) - tail <= RING_CAPACITY / 2) { /* owner-only writer */
        return false;
    }
    store_relaxed(&ring->lost, lost + 1); /* statistic */
    return true;
}

uint32_t ring_read_any(struct ring *ring, struct ring_record *out, uint32_t most)
{
    const uint64_t tail = load_relaxed(&ring->tail); /* reader-only writer */
    const uint64_t head = load_acquire(&ring->head); /* MO-ring: pairs with ring_write_owner */
    const uint64_t length = head - tail;
    const uint32_t count = length < most ? (uint32_t)length : most;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = *ring_entry(ring, tail + i);
    }
    store_release(&ring->tail, tail + count); /* MO-ring: pairs with ring_write_at_limit_owner */
    return count;
}

uint64_t ring_open_gap_owner(struct ring *ring, uint64_t *since)
{
    *since = load_relaxed(&ring->lost_since); /* a snapshot */
    return load_relaxed(&ring->lost);         /* a snapshot */
}

void ring_clear_reader(struct ring *ring)
{
    const uint64_t head = load_relaxed(&ring->head); /* nothing is read below it */
    /* MO-ring: pairs with ring_write_at_limit_owner; entries that were read before are below it,
     * too. */
    store_release(&ring->tail, head);
}
