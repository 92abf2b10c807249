/* SPDX-License-Identifier: MIT */
/* In place of src/sched/upgrade.c, for models in which no process changes its type (model_upgrade.c
 * has them). These are definitions: one source of a model includes this. */
#ifndef SKUA_MODEL_NO_UPGRADES_H
#define SKUA_MODEL_NO_UPGRADES_H

#include "explore.h"
#include "sched/upgrade.h"

void upgrade_deinit(struct scheduler *sched)
{
    (void)sched;
}

const skua_process_type *upgrade_newest(struct scheduler *sched, const skua_process_type *type)
{
    (void)sched;
    return type;
}

void upgrade_take(struct worker *worker, struct process *process, uint32_t index)
{
    (void)worker;
    (void)process;
    (void)index;
    EXPLORE_CHECK(false, "nobody asks for another type");
}

void upgrade_drop(struct worker *worker, uint32_t index)
{
    (void)worker;
    (void)index;
    EXPLORE_CHECK(false, "nobody asks for another type");
}

#endif
