/* SPDX-License-Identifier: MIT */
#include "sched/slot.h"

#include "base/mutex.h"

int slot_acquire(struct scheduler *sched, struct worker *worker, struct process **process)
{
    struct object_pool *pool = &sched->table.pool;
    enum object_pool_result result;
    uint32_t slot;
    if (worker != NULL) {
        result = object_acquire_owner(pool, PROCESS_LAYOUT, &worker->caches.processes, &slot);
    } else {
        mutex_lock(&sched->outside.lock);
        result =
            object_acquire_owner(pool, PROCESS_LAYOUT, &sched->outside.caches.processes, &slot);
        mutex_unlock(&sched->outside.lock);
    }
    if (UNLIKELY(result != OBJECT_POOL_OK)) {
        return result == OBJECT_POOL_LIMIT ? SKUA_E_PROCESS_LIMIT : SKUA_E_NO_MEMORY;
    }
    *process = process_at(&sched->table, slot);
    return 0;
}

void slot_release(struct scheduler *sched, struct worker *worker, struct process *process)
{
    struct object_pool *pool = &sched->table.pool;
    const uint32_t slot = process->slot;
    if (UNLIKELY(!state_free_owner(process))) {
        object_pool_retire_any(pool);
        return;
    }
    if (worker != NULL) {
        object_release_owner(pool, PROCESS_LAYOUT, &worker->caches.processes, slot);
    } else {
        mutex_lock(&sched->outside.lock);
        object_release_owner(pool, PROCESS_LAYOUT, &sched->outside.caches.processes, slot);
        mutex_unlock(&sched->outside.lock);
    }
}
