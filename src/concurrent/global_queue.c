/* SPDX-License-Identifier: MIT */
#include "concurrent/global_queue.h"

#include <stddef.h>

#include "base/mutex.h"

void global_queue_init(struct global_queue *queue)
{
    mutex_init(&queue->lock);
    store_relaxed(&queue->length, 0); /* not shared yet */
    queue->first = NULL;
    queue->last = NULL;
}

void global_queue_deinit(struct global_queue *queue)
{
    mutex_deinit(&queue->lock);
}

void global_queue_push_any(struct global_queue *queue, struct queue_link *first,
                           struct queue_link *last, uint32_t count)
{
    last->next = NULL;
    mutex_lock(&queue->lock);
    if (queue->last == NULL) {
        queue->first = first;
    } else {
        queue->last->next = first;
    }
    queue->last = last;
    (void)fetch_add_seq_cst(&queue->length, count); /* MO-global */
    mutex_unlock(&queue->lock);
}

uint32_t global_queue_pop_any(struct global_queue *queue, struct queue_link **items, uint32_t most)
{
    uint32_t count = 0;
    mutex_lock(&queue->lock);
    while (count < most && queue->first != NULL) {
        items[count++] = queue->first;
        queue->first = queue->first->next;
    }
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    (void)fetch_sub_seq_cst(&queue->length, count); /* MO-global */
    mutex_unlock(&queue->lock);
    return count;
}
