/* SPDX-License-Identifier: MIT */
/* The thread of a worker that runs the one process of a model. These are definitions, for one
 * source of a model. */
#ifndef SKUA_MODEL_ONE_WORKER_H
#define SKUA_MODEL_ONE_WORKER_H

#include "explore.h"
#include "one_token.h"
#include "rig.h"
#include "sched/context.h" /* has parameters of the name below */
#include "sched/worker.h"

static struct process *process;

static void run_worker(const void *arg)
{
    (void)arg;
    for (;;) {
        explore_take(&queue);
        tokens--;
        step_run(&rig.workers[0], process);
    }
}

#define WORKER EXPLORE_THREAD("worker", run_worker, NULL)

#endif
