/* SPDX-License-Identifier: MIT */
/* In place of submit_ending of src/sched/submit.c, for models in which a process has too little to
 * drop or to tell for an end in slices. A definition: one source of a model includes this. */
#ifndef SKUA_MODEL_SHORT_ENDS_H
#define SKUA_MODEL_SHORT_ENDS_H

#include "explore.h"
#include "sched/worker.h"

void submit_ending(struct worker *worker, struct process *process)
{
    (void)worker;
    (void)process;
    EXPLORE_CHECK(false, "the end takes one slice");
}

#endif
