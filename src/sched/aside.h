/* SPDX-License-Identifier: MIT */
/* The events that a task has put aside, because it waits for others (sched/tasks.h): a list, oldest
 * first, but for the urgent ones, which are in front. Two places in it are remembered: where the
 * search for those that wait in vain has come to (task.swept), and the last urgent one
 * (task.urgent_aside). Whoever takes an event out, or drops it, sees to both.
 *
 * `previous` is the event before the one that is meant, or OBJECT_NONE: that is the first. */
#ifndef SKUA_SCHED_ASIDE_H
#define SKUA_SCHED_ASIDE_H

#include "sched/tasks.h"

/* Puts an event or a signal aside. */
static inline void aside_put(const struct object_pool *events, struct process *process,
                             uint32_t index)
{
    event_at(events, index)->next = OBJECT_NONE;
    if (process->state.of_task.aside == OBJECT_NONE) {
        process->state.of_task.aside = index;
    } else {
        event_at(events, process->state.of_task.aside_last)->next = index;
    }
    process->state.of_task.aside_last = index;
}

/* The same for an urgent message. The task has a stack: otherwise it would want it. */
void aside_put_urgent(const struct object_pool *events, struct process *process, uint32_t index);

/* Puts one where it was before. */
void aside_insert(const struct object_pool *events, struct process *process, uint32_t previous,
                  uint32_t index);

/* Events that the task had received and deferred are back, in front of all but the urgent ones. */
void aside_resume(const struct object_pool *events, struct process *process, uint32_t first,
                  uint32_t last);

/* Takes one out. */
void aside_take_out(const struct object_pool *events, struct process *process, uint32_t previous,
                    uint32_t index);

/* The same; it goes to the front of the backlog. */
void aside_put_back(const struct object_pool *events, struct process *process, uint32_t previous,
                    uint32_t index);

/* Puts all of them back to the backlog, because the process ends. */
void aside_put_all_back(const struct object_pool *events, struct process *process);

#endif
