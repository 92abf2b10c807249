/* SPDX-License-Identifier: MIT */
/* The groups of processes, and those who watch them (relations/groups.h). */
#ifndef SKUA_SCHED_GROUPING_H
#define SKUA_SCHED_GROUPING_H

#include "process/event.h"
#include "sched/describe.h"
#include "sched/scheduler.h"

void grouping_attach(struct scheduler *sched);

/* As skua_group_join and skua_group_leave, for the process of a context. */
NODISCARD int grouping_join(const skua_context *ctx, const char *name);
NODISCARD int grouping_leave(const skua_context *ctx, const char *name);

/* The worker's process, which has an annex, ends: leaves groups. Lowers `*budget` by their number;
 * false if there are more. */
NODISCARD bool grouping_leave_some(struct worker *worker, struct process *process,
                                   uint32_t *budget);

/* Some of the groups of a process, for those who inspect it; returns how many. */
uint32_t grouping_list(const struct annex *annex, const char *names[DESCRIBE_GROUPS]);

/* Memory for a watch; null if there is none. */
NODISCARD struct group_watch *grouping_make_watch(struct scheduler *sched);
void grouping_free_watch(struct scheduler *sched, struct group_watch *watch);

/* The worker's process takes EVENT_GROUP out of its backlog: gives *event, the next piece of news
 * or the completion of the watch. Or, if it is ending, drops it. */
void grouping_take(struct worker *worker, struct process *process, uint32_t index,
                   skua_event *event);
void grouping_drop(struct worker *worker, uint32_t index);

/* The process has ended the call of a watch. `worker` is the caller's or null. */
void grouping_abandon(struct scheduler *sched, struct worker *worker, const skua_handler *listener);

#endif
