/* SPDX-License-Identifier: MIT */
/* What src/sched/idle.c calls of steal.c for next slots, for models in which these are empty. These
 * are definitions: one source of a model includes this. */
#ifndef SKUA_MODEL_NO_NEXT_SLOTS_H
#define SKUA_MODEL_NO_NEXT_SLOTS_H

#include "sched/worker.h"

bool steal_is_tempting(struct worker *worker)
{
    (void)worker;
    return false;
}

struct process *steal_from_next_slots(struct worker *worker)
{
    (void)worker;
    return NULL;
}

#endif
