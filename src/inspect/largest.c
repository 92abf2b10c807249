/* SPDX-License-Identifier: MIT */
#include "inspect/largest.h"

#include <stdlib.h>

/* The entries are a min-heap: the first is the smallest, which a larger one replaces. */
static void sink(struct largest_entry *heap, uint32_t count, struct largest_entry entry)
{
    uint32_t place = 0;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && heap[child + 1].value < heap[child].value) {
            child++;
        }
        if (entry.value <= heap[child].value) {
            break;
        }
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = entry;
}

static void rise(struct largest_entry *heap, uint32_t place, struct largest_entry entry)
{
    while (place > 0 && entry.value < heap[(place - 1) / 2].value) {
        heap[place] = heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap[place] = entry;
}

void largest_offer(struct largest *largest, uint64_t value, uint64_t key)
{
    const struct largest_entry entry = {value, key};
    if (largest->count < LISTING_MAX) {
        rise(largest->entries, largest->count++, entry);
    } else if (value > largest->entries[0].value) {
        sink(largest->entries, LISTING_MAX, entry);
    }
}

static int larger_first(const void *a, const void *b)
{
    const struct largest_entry *left = a;
    const struct largest_entry *right = b;
    if (left->value != right->value) {
        return left->value > right->value ? -1 : 1;
    }
    /* Ties are broken by key, so that equal ones keep their places from one listing to the next. */
    return (left->key > right->key) - (left->key < right->key);
}

void largest_sort_rows(void *rows, size_t count, size_t row_size)
{
    qsort(rows, count, row_size, larger_first);
}

void largest_sort(struct largest *largest)
{
    largest_sort_rows(largest->entries, largest->count, sizeof largest->entries[0]);
}
