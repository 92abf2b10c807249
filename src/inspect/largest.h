/* SPDX-License-Identifier: MIT */
/* The largest of however many numbers, each with a key that says whose it is. Memory is fixed. */
#ifndef SKUA_INSPECT_LARGEST_H
#define SKUA_INSPECT_LARGEST_H

#include <stddef.h>
#include <stdint.h>

/* Rows of a page, and of a listing. */
#define LISTING_MAX 256

struct largest_entry {
    uint64_t value;
    uint64_t key;
};

/* Initially, count is 0. */
struct largest {
    struct largest_entry entries[LISTING_MAX];
    uint32_t count;
};

/* Keeps it if it is among the largest so far. */
void largest_offer(struct largest *largest, uint64_t value, uint64_t key);

/* Sorts what was kept, largest first, by key where values are equal. No more is offered then. */
void largest_sort(struct largest *largest);

/* The same for rows of any kind that begin with a largest_entry. */
void largest_sort_rows(void *rows, size_t count, size_t row_size);

#endif
