/* SPDX-License-Identifier: MIT */
/* Places in the table of processes, from the cache of a worker or, where `worker` is null, from
 * that of the outside. */
#ifndef SKUA_SCHED_SLOT_H
#define SKUA_SCHED_SLOT_H

#include "sched/scheduler.h"

/* Takes a free record. Returns 0, SKUA_E_PROCESS_LIMIT or SKUA_E_NO_MEMORY. */
NODISCARD int slot_acquire(struct scheduler *sched, struct worker *worker,
                           struct process **process);

/* Complete or Init -> Free, and the place can be used again. */
void slot_release(struct scheduler *sched, struct worker *worker, struct process *process);

#endif
