/* SPDX-License-Identifier: MIT */
/* Slots of the process table, from the worker's cache or, if `worker` is null, from the one that
 * outside threads share. */
#ifndef SKUA_SCHED_SLOT_H
#define SKUA_SCHED_SLOT_H

#include "sched/scheduler.h"

/* Acquires a free record. Returns 0, SKUA_E_PROCESS_LIMIT or SKUA_E_NO_MEMORY. */
NODISCARD int slot_acquire(struct scheduler *sched, struct worker *worker,
                           struct process **process);

/* Complete or Init -> Free; the slot can be used again. */
void slot_release(struct scheduler *sched, struct worker *worker, struct process *process);

#endif
