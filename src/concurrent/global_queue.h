/* SPDX-License-Identifier: MIT */
/* The queue that all workers share: first in, first out, any thread on either side. It takes what
 * comes from outside, what a full deque spills, and processes that had more than their share.
 *
 *   push -> inbox: newest first, lock-free     sorted: oldest first, under the lock -> pop
 *
 * Pushing links an item to the inbox by one compare-exchange, so a thread outside never waits for a
 * worker. A pop that finds nothing sorted, and now and then another, takes the whole inbox, turns
 * it around and appends it. The lock is held for long only if all workers were busy for long while
 * much was pushed (24 ms for a million). Items are linked through a field of their own, so a push
 * cannot fail. As all of the inbox is taken at once, an item that comes back between load and
 * compare-exchange of a push does no harm (no ABA).
 *
 * MO-global: the compare-exchange of a push is seq_cst: it publishes the items (parking.h), and
 * global_queue_has_items_recheck pairs with it. What is moved from the inbox to the sorted list
 * must be visible in one of the two at any time, or a worker could go to sleep beside it: `sorted`
 * is set before the inbox is emptied, and whoever looks reads the inbox first. */
#ifndef SKUA_CONCURRENT_GLOBAL_QUEUE_H
#define SKUA_CONCURRENT_GLOBAL_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct queue_link {
    struct queue_link *next;
};

struct global_queue {
    CACHE_ALIGNED atomic_ptr inbox;
    CACHE_ALIGNED atomic_u32 sorted; /* how many are; written under lock */
    pthread_mutex_t lock;
    struct queue_link *first; /* under lock */
    struct queue_link *last;  /* under lock; of no meaning without a first */
    uint32_t pops;            /* under lock: since the inbox was taken */
};

void global_queue_init(struct global_queue *queue);
void global_queue_deinit(struct global_queue *queue);

/* Adds items that are linked from the newest to the oldest. */
void global_queue_push_any(struct global_queue *queue, struct queue_link *newest,
                           struct queue_link *oldest);

/* Takes the oldest item, and of the others one share in `sharers`, but no more than `most` in all.
 * Returns how many. */
uint32_t global_queue_pop_any(struct global_queue *queue, struct queue_link **items, uint32_t most,
                              uint32_t sharers);

/* Whether there is something, as a hint. */
static inline bool global_queue_has_items(struct global_queue *queue)
{
    return load_relaxed(&queue->sorted) > 0 ||  /* hint: pop looks again under the lock */
           load_relaxed(&queue->inbox) != NULL; /* hint */
}

/* The same for the re-check of the parking protocol. */
static inline bool global_queue_has_items_recheck(struct global_queue *queue)
{
    return load_seq_cst(&queue->inbox) != NULL || /* MO-global: first this one */
           load_seq_cst(&queue->sorted) > 0;      /* MO-global */
}

#endif
