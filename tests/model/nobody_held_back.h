/* SPDX-License-Identifier: MIT */
/* In place of src/sched/held_back.c, for models in which no sender is held back. These are
 * definitions: one source of a model includes this. */
#ifndef SKUA_MODEL_NOBODY_HELD_BACK_H
#define SKUA_MODEL_NOBODY_HELD_BACK_H

#include "sched/held_back.h"

bool held_back_try(struct worker *worker, struct process *process)
{
    (void)worker;
    (void)process;
    return false;
}

struct process *held_back_take(struct worker *worker)
{
    (void)worker;
    return NULL;
}

void held_back_check(struct worker *worker)
{
    (void)worker;
}

void held_back_release(struct scheduler *sched, uint64_t now)
{
    (void)sched;
    (void)now;
}

#endif
