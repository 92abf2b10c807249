/* SPDX-License-Identifier: MIT */
/* In place of a part of src/sched/submit.c, for models in which nobody publishes to a group
 * (model_next.c queues what a publisher has woken). A definition: one source of a model includes
 * this. */
#ifndef SKUA_MODEL_NO_PUBLISHERS_H
#define SKUA_MODEL_NO_PUBLISHERS_H

#include "explore.h"
#include "sched/worker.h"

void submit_woken(struct worker *worker)
{
    (void)worker;
    EXPLORE_CHECK(false, "nobody publishes");
}

#endif
