/* SPDX-License-Identifier: MIT */
#ifndef SKUA_SCHED_MIGRATE_H
#define SKUA_SCHED_MIGRATE_H

#include "sched/scheduler.h"

/* Whether another worker than this one should run a process, in a scheduler whose tasks migrate at
 * every wait (SKUA_DEBUG=migrate): if it is a task that ran here last. Gives up if no other worker
 * takes it. */
NODISCARD bool migrate_is_due(const struct worker *worker, const struct process *process);

#endif
