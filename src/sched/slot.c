/* SPDX-License-Identifier: MIT */
#include "sched/slot.h"

#include "base/mutex.h"
#include "process/mailbox.h"

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

/* As many as may be in a row: a worker leaves one slot unsettled at most. */
#define UNSETTLED_MAX 8

/* Puts back a record that is still Free. */
static void put_back(struct scheduler *sched, struct worker *worker, struct process *process)
{
    if (worker != NULL) {
        object_release_owner(&sched->table.pool, PROCESS_LAYOUT, &worker->caches.processes,
                             process->slot);
    } else {
        slot_release_outside(sched, process->slot);
    }
}

int slot_acquire_settled(struct scheduler *sched, struct worker *worker, struct process **process)
{
    struct process *unsettled[UNSETTLED_MAX];
    uint32_t count = 0;
    int error = slot_acquire(sched, worker, process);
    while (error == 0 && !mailbox_is_settled(*process) && count < UNSETTLED_MAX) {
        unsettled[count++] = *process;
        error = slot_acquire(sched, worker, process);
    }
    if (error != 0 && count > 0) { /* there is no other */
        *process = unsettled[--count];
        error = 0;
    }
    while (count > 0) {
        put_back(sched, worker, unsettled[--count]);
    }
    return error;
}

void slot_release_outside(struct scheduler *sched, uint32_t slot)
{
    mutex_lock(&sched->outside.lock);
    object_release_owner(&sched->table.pool, PROCESS_LAYOUT, &sched->outside.caches.processes,
                         slot);
    mutex_unlock(&sched->outside.lock);
}
