/* SPDX-License-Identifier: MIT */
/* A ring of records with one writer and one reader, for the trace of a worker. The writer never
 * waits: a record for which there is no room is lost, and counted.
 *
 *         tail                    head          limit
 *          v                       v              v
 *   . . . [a] [b] [c] [d] [e] [f] . . . . . . . . . .     a is the oldest
 *         reader ->               writer ->
 *
 * Entries below tail have been read, those from tail to head are the reader's, those from head to
 * limit the writer's: limit is the tail that the writer saw last, plus the capacity, so that it
 * reads the reader's cache line only when it gets there.
 *
 * A ring that has lost a record stays closed until half of it is empty; the trace thus comes in
 * long pieces rather than with a gap between any two records. The first record after a gap is
 * preceded by a gap record: words[0] is that of the first lost record, words[2] the number of lost
 * records, words[3] is RING_LOST. Both are published together. So the records that were written are
 * those that were read, plus the counts of the gaps, plus what is still in the ring or in a gap
 * that is open (INV-23).
 *
 * Rejected: overwriting the oldest, which makes the reader check what it has copied, and puts the
 * gap where the reader happens to be; a counter of losses for the reader, which does not say
 * between which records they were.
 *
 * MO-ring: records are plain memory. The writer fills entries, then stores head (release); the
 * reader loads head (acquire) and reads only what lies below it. The reader copies records, then
 * stores tail (release); the writer loads tail (acquire) and overwrites only what lies below it. So
 * each entry belongs to one side at a time. Each of the two words has one writer, which reads it
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
_Static_assert((RING_CAPACITY & (RING_CAPACITY - 1)) == 0, "entries are found by masking");
_Static_assert(RING_CAPACITY >= 4, "half of it has room for a gap and what follows");

/* words[3] of a gap record; no other record has it. */
#define RING_LOST UINT64_MAX

/* The users of a ring define what the words mean. */
struct ring_record {
    uint64_t words[4];
};

struct ring {
    CACHE_ALIGNED atomic_u64 head; /* records ever written, gap records included */
    uint64_t limit;                /* where head has to stop; the writer's own */
    atomic_u64 lost;               /* since the ring was closed; 0: open; only the writer writes */
    atomic_u64 lost_since;         /* words[0] of the first of them; likewise */
    CACHE_ALIGNED atomic_u64 tail; /* records ever read or discarded; only the reader writes */
    CACHE_ALIGNED struct ring_record records[RING_CAPACITY];
};

static inline struct ring_record *ring_entry(struct ring *ring, uint64_t index)
{
    return &ring->records[index & (RING_CAPACITY - 1)];
}

/* Does not touch the records: an unused ring takes up no memory. */
void ring_init(struct ring *ring);

/* ring_write_owner, for a head that has reached the limit. */
bool ring_write_at_limit_owner(struct ring *ring, const struct ring_record *record);

/* Writes a record; false if it was lost. There is one writer at a time. */
static inline bool ring_write_owner(struct ring *ring, const struct ring_record *record)
{
    const uint64_t head = load_relaxed(&ring->head); /* owner-only writer */
    if (UNLIKELY(head == ring->limit)) {
        return ring_write_at_limit_owner(ring, record);
    }
    *ring_entry(ring, head) = *record;
    store_release(&ring->head, head + 1); /* MO-ring: pairs with ring_read_any */
    return true;
}

/* Whether the ring is closed and stays so: then it counts a lost record, which need not be built.
 * For the writer, before it builds one. */
bool ring_refuses_owner(struct ring *ring);

/* Takes up to `most` records, oldest first, into `out`; returns how many. Any thread, but one at a
 * time, each after the one before it. */
uint32_t ring_read_any(struct ring *ring, struct ring_record *out, uint32_t most);

/* How many records are missing so far after the last one, and words[0] of the first of them; 0 if
 * none is. For the end of a trace: no record will follow that a gap record could precede. Any
 * thread; a snapshot. */
uint64_t ring_open_gap_owner(struct ring *ring, uint64_t *since);

/* Discards all that is in the ring, as a reader. An open gap stays open: the next record may be
 * preceded by a gap that began long ago. */
void ring_clear_reader(struct ring *ring);

#endif
