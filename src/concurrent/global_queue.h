/* SPDX-License-Identifier: MIT */
/* The queue that all workers share: first in, first out, any thread on either side. It takes what
 * comes from outside, what a full deque spills, and processes that had more than their share. It
 * is not on the hot path, so a mutex guards it; its length can be read without. Items are linked
 * through a field of their own, so a push cannot fail. */
#ifndef SKUA_CONCURRENT_GLOBAL_QUEUE_H
#define SKUA_CONCURRENT_GLOBAL_QUEUE_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct queue_link {
    struct queue_link *next;
};

struct global_queue {
    /* Changed with the lock held, read by everybody. seq_cst MO-global: the addition publishes the
     * items (parking.h); it comes after they are linked. */
    CACHE_ALIGNED atomic_u32 length;
    CACHE_ALIGNED pthread_mutex_t lock;
    struct queue_link *first; /* under lock */
    struct queue_link *last;  /* under lock */
};

void global_queue_init(struct global_queue *queue);
void global_queue_deinit(struct global_queue *queue);

/* Adds `count` items that are linked from first to last. */
void global_queue_push_any(struct global_queue *queue, struct queue_link *first,
                           struct queue_link *last, uint32_t count);

/* Takes up to `most` items, oldest first; returns how many. */
uint32_t global_queue_pop_any(struct global_queue *queue, struct queue_link **items, uint32_t most);

/* The length, as a hint. */
static inline uint32_t global_queue_length(struct global_queue *queue)
{
    return load_relaxed(&queue->length); /* hint: pop looks again under the lock */
}

/* The same for the re-check of the parking protocol. */
static inline uint32_t global_queue_length_recheck(struct global_queue *queue)
{
    return load_seq_cst(&queue->length); /* MO-global: pairs with global_queue_push_any */
}

#endif
