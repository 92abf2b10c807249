/* SPDX-License-Identifier: MIT */
/* What a process has from its start on: a label; and relations to the one that starts it,
 * which watches it or is linked to it. */
#ifndef SKUA_SCHED_RELATE_H
#define SKUA_SCHED_RELATE_H

#include "sched/spawn.h"

/* Fills in the services of this layer: calls, monitors, joins, waits for a name. */
void relate_attach(struct scheduler *sched);

/* Whether whoever starts a process may have the relations to it that the options ask for: 0, or
 * SKUA_E_CONTEXT. */
NODISCARD int relate_check(const struct spawn_request *request);

/* Gives a process whose init has returned, and that nobody knows yet, what its options ask for, but
 * no name: that publishes it, and comes last. Returns 0, an error of skua_label or SKUA_E_INVALID;
 * then relate_undo takes back what there is already, as it does for one that cannot be started. */
NODISCARD int relate_at_spawn(struct scheduler *sched, struct worker *worker,
                              const struct spawn_request *request, struct process *process,
                              skua_pid pid);
void relate_undo(struct scheduler *sched, const struct spawn_request *request,
                 struct process *process);

#endif
