/* SPDX-License-Identifier: MIT */
/* What few processes need: an annex to the record, which has no room for it. It is an event node,
 * so it needs no memory of its own kind, and it costs nothing to those who have none:
 * PROCESS_ANNEX in `progress` says that `calls` is its index and that the list of open calls
 * begins in there.
 *
 * As the record's other fields it belongs to whoever holds the process's token, and in init to
 * the spawner. */
#ifndef SKUA_PROCESS_ANNEX_H
#define SKUA_PROCESS_ANNEX_H

#include "process/event.h"
#include "process/process.h"

/* The annex of a process; null if it has none. */
static inline struct annex *annex_of(const struct object_pool *events, struct process *process)
{
    if (LIKELY((process_progress(process) & PROCESS_ANNEX) == 0)) {
        return NULL;
    }
    return &event_at(events, process->calls)->as.annex;
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
