/* SPDX-License-Identifier: MIT */
/* In place of what src/sched/step.c calls of spare.c, for models without steps that block. A
 * definition: one source of a model includes this. */
#ifndef SKUA_MODEL_NO_BLOCKING_H
#define SKUA_MODEL_NO_BLOCKING_H

#include "explore.h"
#include "sched/spare.h"

void spare_end_block(struct worker *worker)
{
    (void)worker;
    EXPLORE_CHECK(false, "no step blocks");
}

#endif
