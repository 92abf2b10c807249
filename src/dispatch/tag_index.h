/* SPDX-License-Identifier: MIT */
/* Finds the open calls of one process by their tags. Most processes have few calls or never take
 * one back, and need no index: it is made when a process with many calls first takes one back
 * (dispatch/call.c), and then kept up to date.
 *
 * A hash table with linear probing and one entry for each tag: the first of its calls, which are
 * neighbours in the process's list, so that many calls with one tag are no burden. An entry holds
 * the hash of the tag, so that moving entries does not touch the calls. */
#ifndef SKUA_DISPATCH_TAG_INDEX_H
#define SKUA_DISPATCH_TAG_INDEX_H

#include "base/allocator.h"
#include "process/event.h"

struct tag_entry {
    uint32_t call; /* OBJECT_NONE: free */
    uint32_t hash;
};

struct tag_index {
    uint32_t count;
    uint32_t mask; /* capacity - 1 */
    struct tag_entry entries[];
};

/* An empty index for this many calls and some more; null if there is no memory. */
NODISCARD struct tag_index *tag_index_create(const struct allocator *allocator, uint32_t calls);
void tag_index_destroy(const struct allocator *allocator, struct tag_index *index);

/* Adds the first call with its tag. False if it is full and there is no memory for a larger one. */
NODISCARD bool tag_index_add(const struct allocator *allocator, struct tag_index **index,
                             uint64_t tag, uint32_t call);

/* The entry of a tag, until the index is changed; null if there is none. */
NODISCARD struct tag_entry *tag_index_find(struct tag_index *index,
                                           const struct object_pool *events, uint64_t tag);

/* Removes an entry. */
void tag_index_remove(struct tag_index *index, struct tag_entry *entry);

#endif
