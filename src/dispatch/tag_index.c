/* SPDX-License-Identifier: MIT */
#include "dispatch/tag_index.h"

#include <stdalign.h>

#include "base/random.h"

#define CAPACITY_MIN UINT32_C(64)

static size_t index_size(uint32_t capacity)
{
    return sizeof(struct tag_index) + capacity * sizeof(struct tag_entry);
}

static uint32_t hash_of(uint64_t tag)
{
    return (uint32_t)random_mix(tag);
}

/* At most half full, so that probes stay short. */
static bool is_full(const struct tag_index *index)
{
    return index->count > index->mask / 2;
}

struct tag_index *tag_index_create(const struct allocator *allocator, uint32_t calls)
{
    uint32_t capacity = CAPACITY_MIN;
    while (capacity / 4 < calls) {
        capacity *= 2;
    }
    struct tag_index *index =
        allocator_alloc_zeroed(allocator, index_size(capacity), alignof(struct tag_index));
    if (index != NULL) {
        index->mask = capacity - 1;
    }
    return index;
}

void tag_index_destroy(const struct allocator *allocator, struct tag_index *index)
{
    if (index != NULL) {
        allocator_free(allocator, index, index_size(index->mask + 1), alignof(struct tag_index));
    }
}

static void insert(struct tag_index *index, struct tag_entry entry)
{
    uint32_t at = entry.hash & index->mask;
    while (index->entries[at].call != OBJECT_NONE) {
        at = (at + 1) & index->mask;
    }
    index->entries[at] = entry;
    index->count++;
}

static bool grow(const struct allocator *allocator, struct tag_index **index)
{
    struct tag_index *old = *index;
    struct tag_index *larger = tag_index_create(allocator, old->count);
    if (larger == NULL) {
        return false;
    }
    for (uint32_t i = 0; i <= old->mask; i++) {
        if (old->entries[i].call != OBJECT_NONE) {
            insert(larger, old->entries[i]);
        }
    }
    tag_index_destroy(allocator, old);
    *index = larger;
    return true;
}

bool tag_index_add(const struct allocator *allocator, struct tag_index **index, uint64_t tag,
                   uint32_t call)
{
    if (UNLIKELY(is_full(*index)) && !grow(allocator, index)) {
        return false;
    }
    insert(*index, (struct tag_entry){.call = call, .hash = hash_of(tag)});
    return true;
}

struct tag_entry *tag_index_find(struct tag_index *index, const struct object_pool *events,
                                 uint64_t tag)
{
    const uint32_t hash = hash_of(tag);
    for (uint32_t at = hash & index->mask; index->entries[at].call != OBJECT_NONE;
         at = (at + 1) & index->mask) {
        struct tag_entry *entry = &index->entries[at];
        if (entry->hash == hash && event_at(events, entry->call)->as.call.tag == tag) {
            return entry;
        }
    }
    return NULL;
}

/* Moves up the entries behind it that it kept from their place. */
void tag_index_remove(struct tag_index *index, struct tag_entry *entry)
{
    uint32_t hole = (uint32_t)(entry - index->entries);
    for (uint32_t next = (hole + 1) & index->mask; index->entries[next].call != OBJECT_NONE;
         next = (next + 1) & index->mask) {
        const uint32_t wanted = index->entries[next].hash & index->mask;
        const uint32_t from_wanted = (next - wanted) & index->mask;
        const uint32_t from_hole = (next - hole) & index->mask;
        if (from_wanted >= from_hole) {
            index->entries[hole] = index->entries[next];
            hole = next;
        }
    }
    index->entries[hole].call = OBJECT_NONE;
    index->count--;
}
