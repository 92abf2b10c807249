/* SPDX-License-Identifier: MIT */
/* Which types have been replaced by newer ones, and the requests to processes to change.
 *
 * A request is a signal: it is taken in its place among the events of the process, by the worker
 * that runs it, with no event gathered for a step. It does not say to which type: the process
 * changes to the newest there is for the one that it has by then, so requests that overtake each
 * other do no harm. A process that calls skua_become sends the same signal to itself, with the
 * type; its node then carries the event that says that it has failed. While a call of `serve` is
 * under way, either is put aside, as an event that the call does not want.
 *
 * What has been replaced is never forgotten. It is a list for each of a few buckets, by the address
 * of the old type, newest first; there is none until the first upgrade, so a spawn looks at one
 * pointer. Versions only grow from old to new, so whoever follows them comes to an end.
 *
 * Who starts the first of a thousand versions would follow a thousand upgrades. So an upgrade keeps
 * how far somebody has come from it, and the next one goes on from there. That may be out of date,
 * but it leads to the same end: unless a type has been replaced by one, and then by another that
 * does not lead to the same. After that (has_forks) nobody takes the short way.
 *
 * MO-further: whoever finds the pointer sees the type, which somebody else has found.
 *
 * MO-upgrade: a process that is started while its type is replaced either starts as the new one, or
 * is found by the scan of upgrade_start, or finds out before its first step: the upgrade is
 * published before the scan begins, and spawn_before_step (spawn.h) says why that is enough. When
 * the scan is over, its request is in the list of whoever it has seen: so each is asked once.
 * Likewise for a process that changes to a type while that is replaced in turn: it stores its new
 * type before it looks for the next upgrade, which is published before its scan looks at the types.
 * These two are seq_cst as well. */
#ifndef SKUA_SCHED_UPGRADE_H
#define SKUA_SCHED_UPGRADE_H

#include <skua/upgrade.h>

#include "sched/scheduler.h"

/* One call of skua_runtime_upgrade. */
struct upgrade {
    struct upgrade *next;          /* of its bucket, older */
    const struct upgrade *earlier; /* of all */
    const skua_process_type *from;
    const skua_process_type *to;
    _Atomic(const skua_process_type *) further; /* a type that `to` leads to, or null */
    uint32_t number;                            /* from 1 */
    atomic_u32 is_scanned; /* the scan is over: all that it saw have been asked */
    atomic_u64 asked;
    atomic_u64 migrated;
    atomic_u64 failed;
    atomic_u64 gone;
};

void upgrade_attach(struct scheduler *sched);
void upgrade_deinit(struct scheduler *sched);

/* ---- who starts a process; `worker` is the caller's or null, throughout ---- */

/* Whether any type was replaced. */
static inline bool upgrade_is_known(struct scheduler *sched)
{
    return UNLIKELY(load_seq_cst(&sched->upgrades) != NULL); /* MO-upgrade */
}

/* The newest type for this one, or this one. */
const skua_process_type *upgrade_newest(struct scheduler *sched, const skua_process_type *type);

/* The same among those that have this method: who starts a process may know an old one only. */
const skua_process_type *upgrade_newest_with(struct scheduler *sched, const skua_process_type *type,
                                             const char *method);

/* Before the first step of a process, by who has its token: if its type has been replaced since
 * that was looked up, and the scan has missed it, it is asked to change. False while that is not
 * known yet, because the scan goes on: the step has to wait. */
NODISCARD bool upgrade_catch_up(struct worker *worker, struct process *process, skua_pid pid);

/* ---- who replaces a type ---- */

/* As skua_runtime_upgrade. */
NODISCARD int upgrade_start(struct scheduler *sched, struct worker *worker,
                            const skua_process_type *from, const skua_process_type *to);

/* The last one of these two types; null: there is none. */
const struct upgrade *upgrade_find(struct scheduler *sched, const skua_process_type *from,
                                   const skua_process_type *to);
skua_upgrade_progress upgrade_progress(const struct upgrade *upgrade);

/* The last one of all, or null. */
const struct upgrade *upgrade_last(struct scheduler *sched);

/* ---- the process ---- */

/* As skua_become. */
NODISCARD int upgrade_become(skua_context *ctx, const skua_process_type *to);

/* Takes a request, whose node is in no list; no call of the process's function is under way. */
void upgrade_take(struct worker *worker, struct process *process, uint32_t index);

/* The same for a process that ends. */
void upgrade_drop(struct worker *worker, uint32_t index);

#endif
