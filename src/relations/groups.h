/* SPDX-License-Identifier: MIT */
/* Groups of processes: who is a member of which, who watches one, and what has changed.
 *
 * Groups are spread over shards by the hash of their names. All of a group is under the lock of its
 * shard, and nothing else is: no process, no mailbox, no queue. The lock is held for as long as it
 * takes to find the group and change a few words; to copy a slice of members; or, for a snapshot,
 * all of them. Under it nothing is called but the allocator, and no other lock is taken. That is
 * why a lock will do: whatever a thread reads of a group in one critical section is a state that
 * the group had, and those follow each other in one order, which the log below has.
 *
 * A membership belongs to the process: it is written by the holder of the process's token only. It
 * keeps its group alive, so the owner may read the group's name, which never changes. The
 * memberships of a process are a digital search tree by the hash: constant memory, logarithmic
 * time, nothing to rebuild.
 *
 * A group is there while it has members, watches or cursors. The limit counts groups.
 *
 * Watching. A group that is watched logs its changes in a ring, which is as large as a quarter of
 * the group, but not smaller than GROUP_LOG_MIN. A watch knows how many changes it has been told of
 * (`seen`). If those that it lacks are no longer in the ring, it is told who is a member now. So a
 * watch that is far behind costs no memory, and joining and leaving never need any because of it.
 *
 * A watch is an open call of its process, like a ticker (dispatch/call.h), and at any time one of
 *   armed: it has been told everything. The call is open, the watch in `armed`, oldest news first;
 *   sent: its node is on the way to the process, or there, as EVENT_GROUP. The call is not open.
 *         When the process takes it, the next piece of news is drawn up under the lock: a gap or a
 *         double would need a change between reading the log and noting `seen`;
 *   ended by its process: the call is claimed; groups_unwatch_any follows.
 * Whoever changes a group claims up to GROUP_TELLS armed calls, which then are sent, and sends the
 * nodes outside of the lock. Whoever takes or drops one does the same for others that are behind.
 * So a change takes constant time, and all of a million watches hear of it: while an armed watch is
 * behind, some node of this group is on its way (or about to be sent), and who takes or drops that
 * goes on. A watch whose call somebody else has claimed is about to end, and counts for nothing. */
#ifndef SKUA_RELATIONS_GROUPS_H
#define SKUA_RELATIONS_GROUPS_H

#include <pthread.h>
#include <skua/group.h>

#include "base/atomic.h"
#include "process/event.h"
#include "relations/group_members.h"
#include "relations/name_key.h"

#define GROUPS_SHARD_BITS 6
#define GROUPS_SHARDS     (1 << GROUPS_SHARD_BITS)

/* Both are smaller in models. */
#ifndef GROUP_LOG_MIN
#define GROUP_LOG_MIN 64 /* a power of two */
#endif
#ifndef GROUP_TELLS
#define GROUP_TELLS 16
#endif

/* `seen` of a watch that has not been told anything. */
#define GROUP_UNSEEN UINT64_MAX

struct group_change {
    skua_pid pid;
    bool has_joined;
};

struct group_watch {
    struct group_watch *previous; /* in one of the lists below */
    struct group_watch *next;
    struct group *group;
    uint64_t seen;
    skua_pid owner;
    uint32_t node;  /* of the call */
    uint32_t guard; /* that it has while it is open */
    bool is_armed;
};

struct group_watches {
    struct group_watch *first;
    struct group_watch *last;
};

struct group {
    struct group *next; /* in a chain of the shard's table */
    uint64_t hash;
    char name[NAME_SIZE];
    struct group_members members;
    uint32_t cursors;
    uint32_t watch_count;
    struct group_watches armed;
    struct group_watches sent;
    struct group_change *log; /* null until somebody watches */
    uint32_t log_size;        /* a power of two */
    uint64_t changes;         /* since then; the last is at (changes - 1) % log_size */
    uint64_t logged_from;     /* the number of the first that the log still has */
};

struct group_shard {
    CACHE_ALIGNED pthread_mutex_t lock;
    struct group **heads; /* null until there is a group */
    uint32_t size;        /* of that: a power of two */
    uint32_t count;       /* groups */
};

struct groups {
    const struct allocator *allocator;
    const struct object_pool *events;
    uint64_t seed;
    uint32_t limit;
    atomic_u32 count; /* groups, in all shards */
    struct group_shard shards[GROUPS_SHARDS];
};

/* That a process is a member. */
struct membership {
    struct membership *child[2];
    struct group *group;
    struct group_place place;
    uint64_t joins; /* not taken back */
};

/* Calls of watches that the caller has claimed and must send, outside of the lock. */
struct group_calls {
    uint32_t count;
    struct group_call {
        uint32_t node;
        skua_pid owner;
    } calls[GROUP_TELLS];
};

/* Keeps `allocator`, and `events`, the pool of the calls, until groups_deinit. */
void groups_init(struct groups *groups, const struct allocator *allocator,
                 const struct object_pool *events, uint32_t limit, uint64_t seed);

/* No thread uses it, and all processes have ended. */
void groups_deinit(struct groups *groups);

/* ---- members: `root` is the caller's process's own ---- */

/* Returns 0, and whether it is a member only now; SKUA_E_GROUP_LIMIT, SKUA_E_NO_MEMORY, or an error
 * of name_key_make. Adds to `calls`, here and below. */
NODISCARD int groups_join_any(struct groups *groups, const char *text, skua_pid pid,
                              struct membership **root, bool *is_new, struct group_calls *calls);

/* Returns 0, and whether it is no member any more; SKUA_E_NOT_MEMBER, or an error of
 * name_key_make. */
NODISCARD int groups_leave_any(struct groups *groups, const char *text, struct membership **root,
                               bool *is_over, struct group_calls *calls);

/* Ends one of the memberships, however often the process has joined; there must be one. */
void groups_leave_one_any(struct groups *groups, struct membership **root,
                          struct group_calls *calls);

/* ---- who is there ---- */

/* Returns the number of members, or an error of name_key_make. */
NODISCARD int groups_members_any(struct groups *groups, const char *text, skua_pid *pids,
                                 size_t capacity);

/* Shows each group to `show`, under its lock. */
void groups_show_any(struct groups *groups, void (*show)(void *arg, const struct group *group),
                     void *arg);

/* ---- cursors ---- */

/* Gives the group, or null if there is none, and the number of its members. The text is valid. */
NODISCARD struct group *groups_open_cursor_any(struct groups *groups, const char *text,
                                               struct group_cursor *cursor, uint32_t *count);

/* As group_cursor_visit_locked. When it has come to the end, the group may be gone. */
NODISCARD uint32_t groups_visit_any(struct groups *groups, struct group *group,
                                    struct group_cursor *cursor, skua_pid *pids, uint32_t most);

/* ---- watches ---- */

/* Adds a watch, whose owner and node are set, as one that is sent. The text is valid. Returns 0,
 * SKUA_E_GROUP_LIMIT or SKUA_E_NO_MEMORY. */
NODISCARD int groups_watch_any(struct groups *groups, const char *text, struct group_watch *watch);

/* The owner takes what it is told next: gives *news. If that is all, arms the watch, whose call is
 * then open; otherwise *has_more. Returns 0, or SKUA_E_NO_MEMORY: the watch is as it was. */
NODISCARD int groups_take_news_any(struct groups *groups, struct group_watch *watch,
                                   skua_payload *news, bool *has_more, struct group_calls *calls);

/* Removes a watch whose call is claimed; the caller frees it. */
void groups_unwatch_any(struct groups *groups, struct group_watch *watch,
                        struct group_calls *calls);

/* What an open call knows of its watch, in the place of a handler that wants to be told of the end
 * of the call: neither that nor a request (relations/request.h) has these lowest bits. */
static inline const skua_handler *group_watch_listener(const struct group_watch *watch)
{
    return (const skua_handler *)(uintptr_t)((uintptr_t)watch | 2);
}

static inline bool group_watch_is_listener(const skua_handler *listener)
{
    return ((uintptr_t)listener & 3) == 2;
}

static inline struct group_watch *group_watch_of_listener(const skua_handler *listener)
{
    return (struct group_watch *)((uintptr_t)listener & ~(uintptr_t)3);
}

#endif
