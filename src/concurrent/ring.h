/* SPDX-License-Identifier: MIT */
/* A ring of records with one writer and one reader, for the trace of a worker. The writer never
 * waits: a record for which there is no room is lost, and counted.
 *
 *         tail                    head          limit
 *          v                       v              v
 *   . . . [a] [b] [c] [d] [e] [f] . . . . . . . . . .     a is the oldest
 *         reader ->               writer ->
 *
 * Places below tail have been read, those from tail to head are the reader's, those from head to
 * limit the writer's: limit is the tail that it saw last, plus the capacity, so that it looks at
 * the reader's cache line only when it gets there.
 *
 * A ring that has lost a record stays closed until half of it is empty; what is recorded so comes
 * in long pieces rather than with a hole between any two records. The first record after such a
 * gap is preceded by one that tells of it: words[0] is that of the first record that was lost,
 * words[2] how many were, words[3] is RING_LOST. Both are published together. So the records that
 * were written are those that were read, plus the counts of the gaps, plus what is still in the
 * ring or in a gap that is open (INV-23).
 *
 * Rejected: overwriting the oldest, which has the reader check what it has copied, and puts the gap
 * where the reader happens to be; a counter of losses that the reader looks at, which does not say
 * between which records they were.
 *
 * MO-ring: records are plain memory. The writer fills places, then stores head (release); the
 * reader loads head (acquire) and reads only what lies below it. The reader copies records, then
 * stores tail (release); the writer loads tail (acquire) and overwrites only what lies below it. So
 * each place is in one hand at a time. Each of the two words has one writer, who reads it
 * relaxed. */
#ifndef SKUA_CONCURRENT_RING_H
#define SKUA_CONCURRENT_RING_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Models use smaller ones, to fill them in few steps. */
#ifndef RING_CAPACITY
#define RING_CAPACITY 16384
#endif
_Static_assert((RING_CAPACITY & (RING_CAPACITY - 1)) == 0, "places are found by masking");
_Static_assert(RING_CAPACITY >= 4, "half of it has room for a gap and what follows");

/* words[3] of the record of a gap; no other record has it. */
#define RING_LOST UINT64_MAX

/* What is in the words is the users' affair. */
struct ring_record {
    uint64_t words[4];
};

struct ring {
    CACHE_ALIGNED atomic_u64 head; /* records ever written, with those of gaps */
    uint64_t limit;                /* where head has to stop; the writer's own */
    atomic_u64 lost;               /* since the ring was closed; 0: it is open; only the writer's */
    atomic_u64 lost_since;         /* words[0] of the first of them; likewise */
    CACHE_ALIGNED atomic_u64 tail; /* records ever read or discarded; only the reader writes */
    CACHE_ALIGNED struct ring_record records[RING_CAPACITY];
};

static inline struct ring_record *ring_place(struct ring *ring, uint64_t index)
{
    return &ring->records[index & (RING_CAPACITY - 1)];
}

/* Leaves the records as they are: a ring that is not used need not be in memory. */
void ring_init(struct ring *ring);

/* ring_write_owner, for a head that has come to the limit. */
bool ring_write_at_limit_owner(struct ring *ring, const struct ring_record *record);

/* Writes a record; false if it was lost. There is one writer at a time. */
static inline bool ring_write_owner(struct ring *ring, const struct ring_record *record)
{
    const uint64_t head = load_relaxed(&ring->head); /* owner-only writer */
    if (UNLIKELY(head == ring->limit)) {
        return ring_write_at_limit_owner(ring, record);
    }
    *ring_place(ring, head) = *record;
    store_release(&ring->head, head + 1); /* MO-ring: pairs with ring_read_any */
    return true;
}

/* Whether the ring is closed and stays so: then a record is counted as lost, without having to be
 * made. For the writer, before it makes one. */
bool ring_refuses_owner(struct ring *ring);

/* Takes up to `most` records, oldest first, into `out`; returns how many. Any thread, but one at a
 * time, each after the one before it. */
uint32_t ring_read_any(struct ring *ring, struct ring_record *out, uint32_t most);

/* How many records are missing by now behind the last one, and words[0] of the first of them; 0 if
 * none is. For the end of a trace: no record will come to be preceded by that of the gap. Any
 * thread; a snapshot. */
uint64_t ring_open_gap_owner(struct ring *ring, uint64_t *since);

/* Discards all that is in the ring, as a reader. The writer still has the gap that is open: the
 * next record is preceded by that of a gap that may have begun long ago. */
void ring_clear_reader(struct ring *ring);

#endif
