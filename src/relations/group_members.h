/* SPDX-License-Identifier: MIT */
/* The members of a group, in the order in which they joined: a list of chunks of PIDs. All of it is
 * under the lock of the group's shard.
 *
 * A new member goes to the end of the last chunk; one that leaves leaves a hole, which is not used
 * again. A chunk that is all holes is freed. So joining and leaving take constant time, and a
 * member never moves: it knows its place. A chunk is as large as the group was when it was needed,
 * within limits, so that small groups are small. At worst a chunk is kept for one member: that
 * takes 1 KiB.
 *
 * A cursor visits those that are members when it is opened, a few at a time, with the lock free in
 * between. It remembers where the last of them is, and stops there: who joins later comes behind.
 * Who has left before it comes by is a hole. It keeps the chunk that it stands in, and the last
 * one, from being freed (`pins`), and holes are not filled, so both places stay what they are. */
#ifndef SKUA_RELATIONS_GROUP_MEMBERS_H
#define SKUA_RELATIONS_GROUP_MEMBERS_H

#include <skua/types.h>

#include "base/allocator.h"

#define GROUP_CHUNK_MIN 4
#define GROUP_CHUNK_MAX 123 /* with the rest of a chunk: 1 KiB */

struct group_chunk {
    struct group_chunk *previous;
    struct group_chunk *next;
    uint32_t capacity;
    uint32_t used; /* places, with those of members that have left */
    uint32_t live; /* members */
    uint32_t pins; /* by cursors */
    skua_pid pids[];
};

struct group_members {
    struct group_chunk *first;
    struct group_chunk *last;
    uint32_t count;
};

/* Where a member is. */
struct group_place {
    struct group_chunk *chunk;
    uint32_t number;
};

/* Who is yet to be visited. */
struct group_cursor {
    struct group_place at;   /* chunk null: nobody */
    struct group_place last; /* the end: not visited any more */
};

/* Adds a member. False if there is no memory. */
NODISCARD bool group_members_add_locked(struct group_members *members,
                                        const struct allocator *allocator, skua_pid pid,
                                        struct group_place *place);
void group_members_remove_locked(struct group_members *members, const struct allocator *allocator,
                                 struct group_place place);

/* Copies the first `capacity` of them. */
void group_members_copy_locked(const struct group_members *members, skua_pid *pids,
                               size_t capacity);

/* Frees what is left of a group without members and cursors. */
void group_members_deinit(struct group_members *members, const struct allocator *allocator);

void group_cursor_open_locked(struct group_cursor *cursor, const struct group_members *members);

/* Visits up to `most` places; returns how many of them have members, which are in `pids`. When
 * cursor->at.chunk is null, that was all. */
NODISCARD uint32_t group_cursor_visit_locked(struct group_cursor *cursor,
                                             struct group_members *members,
                                             const struct allocator *allocator, skua_pid *pids,
                                             uint32_t most);

#endif
