/* SPDX-License-Identifier: MIT */
/* Slots of the process table, from the worker's cache or, if `worker` is null, from the one that
 * outside threads share. */
#ifndef SKUA_SCHED_SLOT_H
#define SKUA_SCHED_SLOT_H

#include "sched/scheduler.h"

/* For outside threads: takes the lock of their cache. */
NODISCARD enum object_pool_result slot_acquire_outside(struct scheduler *sched,
                                                       struct process **process);
void slot_release_outside(struct scheduler *sched, uint32_t slot);

/* Acquires a free record. Returns 0, SKUA_E_PROCESS_LIMIT or SKUA_E_NO_MEMORY. */
NODISCARD static inline int slot_acquire(struct scheduler *sched, struct worker *worker,
                                         struct process **process)
{
    uint32_t slot;
    const enum object_pool_result result =
        LIKELY(worker != NULL) ? object_provide_owner(&sched->table.pool, &worker->caches.processes)
                               : slot_acquire_outside(sched, process);
    if (UNLIKELY(result != OBJECT_POOL_OK)) {
        return result == OBJECT_POOL_LIMIT ? SKUA_E_PROCESS_LIMIT : SKUA_E_NO_MEMORY;
    }
    if (LIKELY(worker != NULL)) {
        *process = object_acquire_cached_owner(&sched->table.pool, PROCESS_LAYOUT,
                                               &worker->caches.processes, &slot);
    }
    return 0;
}

/* The same for a process with a small mailbox: one whose slot is settled (process/mailbox.h), if
 * there is one. */
NODISCARD int slot_acquire_settled(struct scheduler *sched, struct worker *worker,
                                   struct process **process);

/* Complete or Init -> Free; the slot can be used again. */
static inline void slot_release(struct scheduler *sched, struct worker *worker,
                                struct process *process)
{
    const uint32_t slot = process->slot;
    if (UNLIKELY(!state_free_owner(process))) {
        object_pool_retire_any(&sched->table.pool);
    } else if (LIKELY(worker != NULL)) {
        object_return_owner(&sched->table.pool, PROCESS_LAYOUT, &worker->caches.processes, process,
                            slot);
    } else {
        slot_release_outside(sched, slot);
    }
}

#endif
