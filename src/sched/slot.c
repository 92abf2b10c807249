/* SPDX-License-Identifier: MIT */
#include "sched/slot.h"

#include "base/mutex.h"

enum object_pool_result slot_acquire_outside(struct scheduler *sched, struct process **process)
{
    uint32_t slot;
    mutex_lock(&sched->outside.lock);
    const enum object_pool_result result = object_acquire_owner(
        &sched->table.pool, PROCESS_LAYOUT, &sched->outside.caches.processes, &slot);
    mutex_unlock(&sched->outside.lock);
    if (result == OBJECT_POOL_OK) {
        *process = process_at(&sched->table, slot);
    }
    return result;
}

void slot_release_outside(struct scheduler *sched, uint32_t slot)
{
    mutex_lock(&sched->outside.lock);
    object_release_owner(&sched->table.pool, PROCESS_LAYOUT, &sched->outside.caches.processes,
                         slot);
    mutex_unlock(&sched->outside.lock);
}
