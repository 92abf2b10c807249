/* SPDX-License-Identifier: MIT */
/* Groups: names that any number of processes share, to be found, watched and written to together.
 *
 * A group has a name, of the same form as that of a process (skua/name.h), but names of groups and
 * of processes have nothing to do with each other. It exists while it has members or is watched. A
 * process that ends leaves its groups before anybody can hear of the end. */
#ifndef SKUA_GROUP_H
#define SKUA_GROUP_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- being a member ---- */

/* Makes this process a member of a group, until it ends or has left as often as it has joined.
 * Borrows: name.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NAME; SKUA_E_NAME_LENGTH; SKUA_E_GROUP_LIMIT; SKUA_E_NO_MEMORY;
 *          SKUA_E_CONTEXT. */
SKUA_API SKUA_NODISCARD int skua_group_join(skua_context *ctx, const char *name);

/* Takes back one join of this process. One that ends has left all its groups before its close is
 * called.
 * Borrows: name.      Threads: worker (inside step or close).      Blocks: never.
 * Returns: 0; SKUA_E_NOT_MEMBER; SKUA_E_NAME; SKUA_E_NAME_LENGTH; SKUA_E_CONTEXT. */
SKUA_API int skua_group_leave(skua_context *ctx, const char *name);

/* ---- who is a member ---- */

/* Lists the members of a group at one moment, in the order in which they joined, each once. Joins
 * and leaves wait meanwhile, about half a nanosecond for each member. In a process, skua_runtime_of
 * gives the runtime.
 * Borrows: name.      Gives: pids[0] and so on, up to `capacity` (0: `pids` may be null).
 * Threads: any.      Blocks: briefly.
 * Returns: how many members there are, which may be more than `capacity`; SKUA_E_NAME;
 *          SKUA_E_NAME_LENGTH; SKUA_E_INVALID. */
SKUA_API int skua_group_members(skua_runtime *runtime, const char *name, skua_pid *pids,
                                size_t capacity);

/* A group at one moment. */
typedef struct skua_group_snapshot {
    char name[64];     /* ends with a zero byte */
    uint32_t members;  /* how many processes are in it */
    uint32_t watchers; /* and how many skua_yield_group_watch are open */
} skua_group_snapshot;

/* Like skua_group_list, with the size of the elements of the caller's array. */
SKUA_API int skua_group_list_sized(skua_runtime *runtime, skua_group_snapshot *groups,
                                   size_t capacity, size_t stride);

/* Lists the groups, in no particular order. One that exists all the time is there; one that comes
 * or goes meanwhile may be.
 * Gives:   groups[0] and so on, up to `capacity` (0: `groups` may be null).
 * Threads: any.      Blocks: briefly.
 * Returns: how many groups there are, which may be more than `capacity`; SKUA_E_INVALID. */
static inline int skua_group_list(skua_runtime *runtime, skua_group_snapshot *groups,
                                  size_t capacity)
{
    return skua_group_list_sized(runtime, groups, capacity, sizeof *groups);
}

/* ---- watching a group ---- */

/* What an event of a watched group says: the type of its payload. */
enum skua_group_news {
    SKUA_GROUP_SNAPSHOT = 1, /* these are the members: skua_group_get_members */
    SKUA_GROUP_JOINED = 2,   /* one more is: skua_payload_to_pid */
    SKUA_GROUP_LEFT = 3,     /* this one no longer is: skua_payload_to_pid */
};

/* Watches a group, until the yield is taken back (skua_yield_cancel) or the process ends. Each
 * piece of news is an event SKUA_EVENT_GROUP with `tag`: first a snapshot, then every process that
 * joins or leaves, in the order in which it happened, without a gap and nobody twice. (Repeated
 * joins are not reported.) If the watcher falls behind by more than 64 changes, and by
 * more than one for every four members, it gets a new snapshot instead of what it has missed: so
 * news that wait cost no more memory than the group itself. Mailbox limits do not apply. The
 * completion, which comes last, has the error SKUA_E_CANCELLED; SKUA_E_GROUP_LIMIT, because the
 * group would be one too many; or SKUA_E_NO_MEMORY, also if there is none for a snapshot.
 * Borrows: name.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield; SKUA_E_NAME; SKUA_E_NAME_LENGTH. */
SKUA_API SKUA_NODISCARD int skua_yield_group_watch(skua_context *ctx, uint64_t tag,
                                                   const char *name);

/* The members that a snapshot lists, in the order in which they joined; null if there are none.
 * Gives:   *count (never null), and a pointer that is valid while the payload is. */
static inline const skua_pid *skua_group_get_members(const skua_payload *payload, size_t *count)
{
    *count =
        payload->type == SKUA_GROUP_SNAPSHOT ? skua_payload_size(payload) / sizeof(skua_pid) : 0;
    return *count > 0 ? (const skua_pid *)skua_payload_data(payload) : NULL;
}

/* ---- writing to a group ---- */

/* What became of a message to a group. */
typedef struct skua_published {
    uint64_t accepted; /* members that have accepted it; skua_process_type.overflow may drop it */
    uint64_t refused;  /* those that have not: their mailbox or the quota of messages that they
                          are under was full, or there was no memory, or they have left or ended
                          before their turn came. It is not tried again: a member that must not
                          miss anything asks for what it has missed */
} skua_published;

/* Sends a message to all members of a group, this process included if it is one. The members are
 * those of the moment when the step ends; accepted and refused add up to their number. The payload
 * must be one that skua_payload_ref takes: shared, static, inside or empty. Members get it in the
 * order in which they joined, a few hundred at a time: other processes run in between, and so does
 * this one. The completion's payload is for skua_published_get.
 *
 * What a process publishes, to whichever groups, reaches each member in the order of the yields:
 * the next begins when the one before is done. So does what it sends before the yield, and what it
 * sends after the completion. What it sends between the two may overtake the message. Once begun,
 * publishing is not interrupted, not even by the end of the process: all is sent before others hear
 * of that. Taking the yield back only means that the result is dropped.
 * Borrows: name.      Takes: payload, always.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield; SKUA_E_NOT_SHARED; SKUA_E_NAME; SKUA_E_NAME_LENGTH. */
SKUA_API SKUA_NODISCARD int skua_yield_publish(skua_context *ctx, uint64_t tag, const char *name,
                                               skua_payload payload);

/* Reads the payload of the completion of skua_yield_publish; both are 0 if it is none. */
static inline skua_published skua_published_get(const skua_payload *payload)
{
    skua_published published = {0, 0};
    if (payload->storage == SKUA_PAYLOAD_INLINE && payload->inline_size == sizeof published) {
        published.accepted = payload->as.words[0];
        published.refused = payload->as.words[1];
    }
    return published;
}

SKUA_END_DECLS

#endif
