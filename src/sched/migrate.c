/* SPDX-License-Identifier: MIT */
#include "sched/migrate.h"

#include <sched.h>

#include "sched/tasks.h"

/* How often a task is left to other workers, until it stays. */
#define MOVES_MAX 1000

bool migrate_is_due(const struct worker *worker, const struct process *process)
{
    struct task *task =
        process_is_task(load_relaxed(&process->type)) ? process->state.of_task.task : NULL;
    if (task == NULL || scheduler_threads(worker->sched) == 1) {
        return false;
    }
    const bool moves = task->context.worker == worker && task->moves < MOVES_MAX;
    if (moves && task->moves > 0) {
        (void)sched_yield(); /* the other worker may want this CPU */
    }
    task->moves = moves ? task->moves + 1 : 0;
    return moves;
}
