/* SPDX-License-Identifier: MIT */
/* The queue that all workers share: first in, first out, any thread on either side. It receives
 * what comes from outside, what a full deque spills, and processes that have used up their share.
 *
 *   push -> inbox: newest first, lock-free     sorted: oldest first, under the lock -> pop
 *
 * Pushing links an item to the inbox by one compare-exchange, so a thread outside never waits for a
 * worker. A pop that finds nothing sorted, and now and then another, takes the whole inbox,
 * reverses it and appends it. The lock is held for long only if all workers were busy for a long
 * time while many items were pushed (24 ms for a million). Each item embeds its link, so a push
 * cannot fail. As the inbox is only taken whole, an item that comes back between load and
 * compare-exchange of a push does no harm (no ABA).
 *
 * MO-global: the compare-exchange of a push is seq_cst: it publishes the items (parking.h), and
 * global_queue_has_items_recheck pairs with it. Items that move from the inbox to the sorted list
 * must be visible in one of the two at any time, or a worker could go to sleep beside them:
 * `sorted` is set before the inbox is emptied, and the re-check reads the inbox first. */
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
    CACHE_ALIGNED atomic_u32 sorted; /* items in the list; written under lock */
    pthread_mutex_t lock;
    struct queue_link *first; /* under lock */
    struct queue_link *last;  /* under lock; valid if there is a first */
    uint32_t pops;            /* under lock; since the inbox was taken */
};

void global_queue_init(struct global_queue *queue);
void global_queue_deinit(struct global_queue *queue);

/* Adds items that are linked from the newest to the oldest. */
void global_queue_push_any(struct global_queue *queue, struct queue_link *newest,
                           struct queue_link *oldest);

/* Takes one item and the caller's share, one in `sharers`, of all, oldest first, but no more than
 * `most` in all. Returns how many. */
uint32_t global_queue_pop_any(struct global_queue *queue, struct queue_link **items, uint32_t most,
                              uint32_t sharers);

/* Whether there are items, as a hint. */
static inline bool global_queue_has_items(struct global_queue *queue)
{
    return load_relaxed(&queue->sorted) > 0 ||  /* hint: pop checks again under the lock */
           load_relaxed(&queue->inbox) != NULL; /* hint */
}

/* As deque_see_pushes_any (deque.h). All that changes the inbox is read-modify-write, so whoever
 * sees a later value sees what came before an earlier push as well. */
static inline void global_queue_see_pushes_any(struct global_queue *queue)
{
    (void)load_seq_cst(&queue->inbox); /* MO-stop */
}

/* As global_queue_has_items, for the re-check of the parking protocol. */
static inline bool global_queue_has_items_recheck(struct global_queue *queue)
{
    return load_seq_cst(&queue->inbox) != NULL || /* MO-global: this one first */
           load_seq_cst(&queue->sorted) > 0;      /* MO-global */
}

#endif
