/* SPDX-License-Identifier: MIT */
/* What few processes need: an annex to the record, which has no room for it. It is an event node,
 * so it needs no memory of its own kind, and it costs nothing to those who have none:
 * PROCESS_ANNEX in `progress` says that `calls` is its index and that the list of open calls
 * begins in there. What fewer still need is in a wing of the annex, which is allocated when the
 * first such thing comes (signal_wing) and freed with the annex.
 *
 * As the record's other fields it belongs to whoever holds the process's token, and in init to
 * the spawner. */
#ifndef SKUA_PROCESS_ANNEX_H
#define SKUA_PROCESS_ANNEX_H

#include "process/event.h"
#include "process/process.h"

struct membership;
struct own_block;
struct publishing;
struct quota;

struct skua_supervisor;

#define LINEAGE_NAME_SIZE 64

/* A process that has a supervisor, or is one (relations/lineage.h). Guarded by locks there. */
struct lineage_member {
    skua_pid pid;                         /* whose it is; zero: it is not in the lineage */
    skua_pid supervisor;                  /* or zero */
    const struct skua_supervisor *offers; /* templates for children of others, or null */
    bool has_stopped;                     /* it offered some, and does not any more */
    bool grants;                          /* it has set this quota itself: */
    struct quota *quota;                  /* that children of others count against, or null */
    struct lineage_member *next;          /* in its bucket */
    char name[LINEAGE_NAME_SIZE];         /* or its label; may be empty */
};

struct wing {
    struct own_block *own; /* memory that belongs to the process (sched/own_memory.h) */
    size_t own_bytes;      /* of it, as the process asked for */
    struct quota *quota;   /* that it counts against, or null (sched/limits.h) */
    struct quota *granted; /* that what it starts counts against; null: the same */
    uint32_t settled;      /* what `consumed` was when messages were last refunded */
    bool is_counted;       /* as a process */
    struct lineage_member member;
    skua_pid blamed;           /* who failed first, if a step returns an error; or zero */
    struct membership *groups; /* that it is in (relations/groups.h), or null */
    uint32_t group_count;
    struct {
        struct publishing *first; /* what it has not sent to all yet (sched/publishing.h) */
        struct publishing *last;  /* if there is a first */
    } publishing;
    uint32_t deferred; /* events that it has deferred, oldest first (sched/defer.h) */
    uint32_t deferred_last;
    uint32_t deferred_count;
};

/* The annex of a process; null if it has none. */
static inline struct annex *annex_of(const struct object_pool *events, struct process *process)
{
    if (LIKELY((process_progress(process) & PROCESS_ANNEX) == 0)) {
        return NULL;
    }
    return &event_at(events, process->calls)->as.annex;
}

/* Its wing; null if it has none. */
static inline struct wing *annex_wing(const struct object_pool *events, struct process *process)
{
    const struct annex *annex = annex_of(events, process);
    return LIKELY(annex == NULL) ? NULL : annex->wing;
}

/* Where the list of its open calls begins. */
static inline uint32_t *annex_calls(const struct object_pool *events, struct process *process)
{
    struct annex *annex = annex_of(events, process);
    return LIKELY(annex == NULL) ? &process->calls : &annex->calls;
}

/* Gives a process that has none an annex on this node. */
static inline struct annex *annex_attach_owner(const struct object_pool *events,
                                               struct process *process, uint32_t node)
{
    struct annex *annex = &event_at(events, node)->as.annex;
    *annex = (struct annex){
        .calls = process->calls,
        .owed = OBJECT_NONE,
        .watchers = OBJECT_NONE,
        .links = OBJECT_NONE,
        .names = OBJECT_NONE,
    };
    process->calls = node;
    process_set_progress_owner(process, process_progress(process) | PROCESS_ANNEX);
    return annex;
}

/* Takes the annex away, which must hold nothing but calls, and returns its node. */
static inline uint32_t annex_detach_owner(const struct object_pool *events, struct process *process)
{
    const uint32_t node = process->calls;
    process->calls = annex_of(events, process)->calls;
    process_set_progress_owner(process, process_progress(process) & ~PROCESS_ANNEX);
    return node;
}

#endif
