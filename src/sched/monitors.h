/* SPDX-License-Identifier: MIT */
/* Watching the end of a process: monitors and joins (relations/watchers.h). */
#ifndef SKUA_SCHED_MONITORS_H
#define SKUA_SCHED_MONITORS_H

#include "sched/scheduler.h"

void monitors_attach(struct scheduler *sched);

/* Files a watcher of the worker's process, which has just arrived. */
void monitors_take(struct worker *worker, struct process *process, uint32_t index);

/* Tells a watcher how the process `pid` has ended, and releases its node. A join may take the
 * result. */
void monitors_tell(struct scheduler *sched, struct worker *worker, skua_pid pid,
                   struct ending *ending, uint32_t index);

#endif
