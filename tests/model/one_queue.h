/* SPDX-License-Identifier: MIT */
/* In place of what src/sched/idle.c calls of find_work.c and steal.c, for models in which all work
 * lies in the global queue. These are definitions: one source of a model includes this. */
#ifndef SKUA_MODEL_ONE_QUEUE_H
#define SKUA_MODEL_ONE_QUEUE_H

#include "no_next_slots.h"
#include "rig.h"
#include "sched/worker.h"

/* How many threads search; a model may say otherwise. */
#ifndef SEARCHERS
#define SEARCHERS(sched) ((sched)->worker_count)
#endif

static bool has_looked[RIG_WORKERS_MAX]; /* in this search */

/* The model's: takes a process from the queue; null if there is none. */
static struct process *take_work(struct scheduler *sched);

struct process *find_shared(struct worker *worker)
{
    if (has_looked[worker->index]) {
        return NULL;
    }
    has_looked[worker->index] = SEARCHERS(worker->sched) > 1; /* a single one looks once anyway */
    return take_work(worker->sched);
}

void steal_begin(struct worker *worker)
{
    has_looked[worker->index] = false;
}

struct process *steal(struct worker *worker, bool last_pass)
{
    (void)worker;
    (void)last_pass;
    return NULL;
}

#endif
