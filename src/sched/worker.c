/* SPDX-License-Identifier: MIT */
#include "sched/worker.h"

static _Thread_local struct worker *current;

struct worker *worker_here(const struct scheduler *sched)
{
    return current != NULL && current->sched == sched ? current : NULL;
}

void *worker_main(void *arg)
{
    struct worker *worker = arg;
    current = worker;
    for (;;) {
        struct process *process = find_work(worker);
        if (process == NULL) {
            process = idle_find(worker);
        }
        if (process == NULL) {
            break;
        }
        step_run(worker, process);
    }
    return NULL;
}
