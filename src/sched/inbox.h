/* SPDX-License-Identifier: MIT */
/* What a task receives: an event that its wait wants. The others are put aside (sched/tasks.h). */
#ifndef SKUA_SCHED_INBOX_H
#define SKUA_SCHED_INBOX_H

#include "sched/tasks.h"

/* What the next step of a task gets: an event that it wants, or nothing. */
void inbox_gather(struct worker *worker, struct process *process, struct delivery *delivery);

/* The task is about to wait for an event, or one was put back and came to nothing: the oldest that
 * it wants of those put aside is next. So nothing that it wants stays there. `task` is null if it
 * has no stack; it wants everything then. */
void inbox_recall(struct worker *worker, struct process *process, struct task *task);

/* Urgent messages are about to come to the front of the backlog: what is recalled there goes back
 * to where it was, until they have been looked at. */
void inbox_give_way(const struct object_pool *events, struct process *process);

/* Whether a completion is that of a wait, not of a yield of the program's. */
static inline bool inbox_is_own(uint64_t tag)
{
    return tag >= SKUA_TASK_TAGS;
}

/* Whether a task goes on with its next turn. */
static inline bool inbox_awaits_turn(const struct task *task)
{
    return task != NULL && (task->context.wait.kind == SKUA_WAIT_TURN_ || task->polls);
}

#endif
