/* SPDX-License-Identifier: MIT */
/* In place of src/sched/spawn.c, for models whose processes are made by the rig: of what a process
 * leaves behind there is only its close, and its annex. A definition: one source of a model
 * includes this. */
#ifndef SKUA_MODEL_CLOSE_ONLY_H
#define SKUA_MODEL_CLOSE_ONLY_H

#include "no_publishers.h"
#include "no_upgrades.h"
#include "process/annex.h"
#include "sched/spawn.h"

void spawn_close_state(skua_context *ctx, const skua_exit *exit)
{
    exit->type->close(process_state(ctx->process, exit->type), ctx, exit);
}

bool spawn_catch_up(struct worker *worker, struct process *process, skua_pid pid)
{
    (void)worker;
    (void)process;
    (void)pid;
    EXPLORE_CHECK(false, "no scan has missed a process");
    return true;
}

uint32_t spawn_release_state(struct scheduler *sched, struct process *process)
{
    const bool has_annex = (process_progress(process) & PROCESS_ANNEX) != 0;
    return has_annex ? annex_detach_owner(&sched->events, process) : OBJECT_NONE;
}

#endif
