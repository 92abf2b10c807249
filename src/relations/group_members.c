/* SPDX-License-Identifier: MIT */
#include "relations/group_members.h"

#include <stdalign.h>

static size_t chunk_size(uint32_t capacity)
{
    return sizeof(struct group_chunk) + capacity * sizeof(skua_pid);
}

_Static_assert(sizeof(struct group_chunk) + GROUP_CHUNK_MAX * sizeof(skua_pid) <= 1024,
               "as documented");

static void free_chunk(const struct allocator *allocator, struct group_chunk *chunk)
{
    allocator_free(allocator, chunk, chunk_size(chunk->capacity), alignof(struct group_chunk));
}

static uint32_t capacity_for(uint32_t count)
{
    if (count < GROUP_CHUNK_MIN) {
        return GROUP_CHUNK_MIN;
    }
    return count < GROUP_CHUNK_MAX ? count : GROUP_CHUNK_MAX;
}

static struct group_chunk *append_chunk_locked(struct group_members *members,
                                               const struct allocator *allocator)
{
    const uint32_t capacity = capacity_for(members->count);
    struct group_chunk *chunk =
        allocator_alloc(allocator, chunk_size(capacity), alignof(struct group_chunk));
    if (chunk == NULL) {
        return NULL;
    }
    *chunk = (struct group_chunk){.previous = members->last, .capacity = capacity};
    if (members->last != NULL) {
        members->last->next = chunk;
    } else {
        members->first = chunk;
    }
    members->last = chunk;
    return chunk;
}

/* If the chunk has no members and no cursor, it is freed; but the last one begins anew. */
static void release_if_empty_locked(struct group_members *members,
                                    const struct allocator *allocator, struct group_chunk *chunk)
{
    if (chunk->live > 0 || chunk->pins > 0) {
        return;
    }
    if (chunk == members->last) {
        chunk->used = 0;
        return;
    }
    if (chunk->previous != NULL) {
        chunk->previous->next = chunk->next;
    } else {
        members->first = chunk->next;
    }
    chunk->next->previous = chunk->previous;
    free_chunk(allocator, chunk);
}

bool group_members_add_locked(struct group_members *members, const struct allocator *allocator,
                              skua_pid pid, struct group_place *place)
{
    struct group_chunk *chunk = members->last;
    if (chunk == NULL || chunk->used == chunk->capacity) {
        chunk = append_chunk_locked(members, allocator);
    }
    if (chunk == NULL) {
        return false;
    }
    *place = (struct group_place){.chunk = chunk, .number = chunk->used};
    chunk->pids[chunk->used++] = pid;
    chunk->live++;
    members->count++;
    return true;
}

void group_members_remove_locked(struct group_members *members, const struct allocator *allocator,
                                 struct group_place place)
{
    place.chunk->pids[place.number] = (skua_pid){0};
    place.chunk->live--;
    members->count--;
    release_if_empty_locked(members, allocator, place.chunk);
}

void group_members_copy_locked(const struct group_members *members, skua_pid *pids, size_t capacity)
{
    size_t count = 0;
    for (const struct group_chunk *chunk = members->first; chunk != NULL; chunk = chunk->next) {
        for (uint32_t i = 0; i < chunk->used && count < capacity; i++) {
            pids[count] = chunk->pids[i];
            count += pids[count].bits != 0;
        }
    }
}

void group_members_deinit(struct group_members *members, const struct allocator *allocator)
{
    if (members->last != NULL) {
        free_chunk(allocator, members->last); /* the others went with their last members */
    }
}

/* ---- cursors ---- */

void group_cursor_open_locked(struct group_cursor *cursor, const struct group_members *members)
{
    *cursor = (struct group_cursor){.at.chunk = NULL};
    if (members->count > 0) {
        cursor->at.chunk = members->first;
        cursor->last = (struct group_place){members->last, members->last->used};
        members->first->pins++;
        members->last->pins++;
    }
}

static void unpin_locked(struct group_members *members, const struct allocator *allocator,
                         struct group_chunk *chunk)
{
    chunk->pins--;
    release_if_empty_locked(members, allocator, chunk);
}

/* It has come to the end of its chunk. */
static void go_on_locked(struct group_cursor *cursor, struct group_members *members,
                         const struct allocator *allocator)
{
    struct group_chunk *chunk = cursor->at.chunk;
    const bool was_last = chunk == cursor->last.chunk;
    cursor->at = (struct group_place){.chunk = was_last ? NULL : chunk->next};
    if (!was_last) {
        cursor->at.chunk->pins++;
    } else {
        chunk->pins--; /* as the last; the other pin goes below */
    }
    unpin_locked(members, allocator, chunk);
}

uint32_t group_cursor_visit_locked(struct group_cursor *cursor, struct group_members *members,
                                   const struct allocator *allocator, skua_pid *pids, uint32_t most)
{
    uint32_t count = 0;
    uint32_t visited = 0;
    while (cursor->at.chunk != NULL && visited < most) {
        const struct group_chunk *chunk = cursor->at.chunk;
        const uint32_t end = chunk == cursor->last.chunk ? cursor->last.number : chunk->used;
        for (; cursor->at.number < end && visited < most; visited++) {
            pids[count] = chunk->pids[cursor->at.number++];
            count += pids[count].bits != 0;
        }
        if (cursor->at.number == end) {
            go_on_locked(cursor, members, allocator);
        }
    }
    return count;
}
