/* SPDX-License-Identifier: MIT */
/* In place of worker.c, for models whose threads are not workers' own: who calls a handler does not
 * matter. A definition: one source of a model includes this. */
#ifndef SKUA_MODEL_NO_CALLERS_H
#define SKUA_MODEL_NO_CALLERS_H

#include "sched/worker.h"

struct worker *worker_of_thread(void)
{
    return NULL;
}

struct worker *worker_here(const struct scheduler *sched)
{
    (void)sched;
    return NULL;
}

void worker_set_current(struct worker *worker)
{
    (void)worker;
}

const struct scheduler *worker_enter_callback(const struct scheduler *sched)
{
    return sched;
}

#endif
