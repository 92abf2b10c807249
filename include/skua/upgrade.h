/* SPDX-License-Identifier: MIT */
/* Upgrades: processes change to a newer type while they live.
 *
 * A type has a version, and a function that makes its state from that of an older version
 * (skua_process_type.version, .migrate). Between two steps a process changes to it: it keeps its
 * PID, its mailbox, its open yields, what it owes and is owed, its links, monitors, names, sockets
 * and own memory. Its next event is for the new code. Tags, methods and payloads are what the two
 * versions have to agree on.
 *
 * If the state cannot be migrated, the process goes on as it was; that is counted
 * (skua_stats.upgrade_failures) and logged.
 *
 * A type can replace another if it has `migrate` and is of the same shape: steps for steps, `serve`
 * for `serve`. A task that has `main` cannot change, since its function runs for all its life; one
 * that has `serve` changes when that has returned. The new type must have the method that the
 * process was started with, and answer calls if the old one does. Everything else follows the new
 * type, from the next event on: its mailbox limit, its cancel mode, its own_limit.
 *
 * Types are never unloaded, nor are modules: code of the old version may run for as long as it
 * takes. `skua reload` loads a new module into a program that `skua run` runs. */
#ifndef SKUA_UPGRADE_H
#define SKUA_UPGRADE_H

#include <skua/process.h>

SKUA_BEGIN_DECLS

/* Changes this process to another type after this step, or after this call of `serve`; yields are
 * started in the order of the calls, as is this. A step that fails or says skua_done ends the
 * process as it is. If the state cannot be migrated, the process gets SKUA_EVENT_BECOME with the
 * error, which is what `migrate` returned, SKUA_E_NO_MEMORY, or SKUA_E_VERSION if it has changed to
 * another type meanwhile. The version need not be higher.
 * Borrows: type, until the runtime is destroyed.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_VERSION (the type cannot replace that of this process); SKUA_E_NO_MEMORY;
 *          SKUA_E_DONE; SKUA_E_CONTEXT; SKUA_E_INVALID. On error nothing changes. */
SKUA_API SKUA_NODISCARD int skua_become(skua_context *ctx, const skua_process_type *type);

/* Replaces a type by one with a higher version: from now on, starting the old type starts the new
 * one, if that has the method; and every process of the old type is asked to change, if the new one
 * has `migrate`. Each does so between two steps, after the events that have come before. One that
 * cannot goes on as it was. If the new type is replaced in turn, before a process has changed, it
 * changes to the newest at once: so `migrate` may meet any lower version, and should refuse what it
 * does not know (SKUA_E_VERSION).
 * A process of the old type that has not run yet takes its first step when all others have been
 * asked.
 * May be called again, for those that could not change.
 * Borrows: old_type and new_type, until the runtime is destroyed.
 * Threads: any.      Blocks: never; takes about 50 ns for each slot, 300 for each process asked.
 * Returns: how many processes were asked; SKUA_E_VERSION (no higher version, or not a type that can
 *          replace the old one); SKUA_E_INVALID; SKUA_E_NOT_STARTED; SKUA_E_STOPPED;
 *          SKUA_E_NO_MEMORY (some may have been asked). */
SKUA_API int skua_runtime_upgrade(skua_runtime *runtime, const skua_process_type *old_type,
                                  const skua_process_type *new_type);

/* How far an upgrade is. */
typedef struct skua_upgrade_progress {
    uint64_t asked;    /* processes; that many have changed, failed or gone when it is over */
    uint64_t migrated; /* have changed */
    uint64_t failed;   /* could not */
    uint64_t gone;     /* have ended, or changed to another type, before they could */
} skua_upgrade_progress;

/* Like skua_upgrade_read, with the size of the caller's struct. */
SKUA_API int skua_upgrade_read_sized(skua_runtime *runtime, const skua_process_type *old_type,
                                     const skua_process_type *new_type,
                                     skua_upgrade_progress *progress, size_t progress_size);

/* How far the last skua_runtime_upgrade with these two types is. A process in a long step, or a
 * call of `serve` that waits, is still asked.
 * Gives:   *progress.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_VERSION (there was none); SKUA_E_INVALID. */
static inline int skua_upgrade_read(skua_runtime *runtime, const skua_process_type *old_type,
                                    const skua_process_type *new_type,
                                    skua_upgrade_progress *progress)
{
    return skua_upgrade_read_sized(runtime, old_type, new_type, progress, sizeof *progress);
}

SKUA_END_DECLS

#endif
