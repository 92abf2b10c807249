/* SPDX-License-Identifier: MIT */
#include "concurrent/global_queue.h"

#include "base/mutex.h"

/* Pops between two sorts of the inbox while the list is not empty. Not every pop: the inbox's cache
 * line is where the pushers are. Not none at all: the inbox would grow while workers pop from the
 * list one by one, and then be reversed all at once. Models use a shorter period. */
#ifndef SORT_PERIOD
#define SORT_PERIOD 32
#endif

void global_queue_init(struct global_queue *queue)
{
    mutex_init(&queue->lock);
    store_relaxed(&queue->inbox, NULL); /* not shared yet */
    store_relaxed(&queue->sorted, 0);   /* not shared yet */
    queue->first = NULL;
    queue->pops = 0;
}

void global_queue_deinit(struct global_queue *queue)
{
    mutex_deinit(&queue->lock);
}

void global_queue_push_any(struct global_queue *queue, struct queue_link *newest,
                           struct queue_link *oldest)
{
    void *seen = load_relaxed(&queue->inbox); /* never dereferenced */
    do {
        oldest->next = seen;
    } while (!cas_seq_cst(&queue->inbox, &seen, newest)); /* MO-global */
}

static void append_locked(struct global_queue *queue, struct queue_link *oldest,
                          struct queue_link *newest)
{
    if (queue->first == NULL) {
        queue->first = oldest;
    } else {
        queue->last->next = oldest;
    }
    queue->last = newest;
}

/* Moves the inbox to the end of the list, which has `sorted` items, if it is time to. Returns the
 * new length of the list. */
static uint32_t sort_locked(struct global_queue *queue, uint32_t sorted)
{
    queue->pops++;
    if ((sorted > 0 && queue->pops < SORT_PERIOD) ||
        load_relaxed(&queue->inbox) == NULL) { /* a hint: later items are for the next pop */
        return sorted;
    }
    queue->pops = 0;
    if (sorted == 0) {
        store_relaxed(&queue->sorted, 1); /* MO-global: published by the exchange */
    }
    struct queue_link *newest = exchange_acq_rel(&queue->inbox, NULL); /* MO-global */
    struct queue_link *oldest = NULL;
    for (struct queue_link *link = newest; link != NULL; sorted++) {
        struct queue_link *older = link->next;
        link->next = oldest;
        oldest = link;
        link = older;
    }
    append_locked(queue, oldest, newest);
    return sorted;
}

uint32_t global_queue_pop_any(struct global_queue *queue, struct queue_link **items, uint32_t most,
                              uint32_t sharers)
{
    mutex_lock(&queue->lock);
    const uint32_t length = sort_locked(queue, load_relaxed(&queue->sorted)); /* under the lock */
    const uint32_t share = 1 + length / sharers;
    uint32_t count = 0;
    while (count < most && count < share && queue->first != NULL) {
        items[count++] = queue->first;
        queue->first = queue->first->next;
    }
    store_seq_cst(&queue->sorted, length - count); /* MO-global */
    mutex_unlock(&queue->lock);
    return count;
}
