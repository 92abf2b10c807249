/* SPDX-License-Identifier: MIT */
/* In place of src/sched/spawn.c, for models whose processes are made by the rig: of what a process
 * leaves behind there is only its close. A definition: one source of a model includes this. */
#ifndef SKUA_MODEL_CLOSE_ONLY_H
#define SKUA_MODEL_CLOSE_ONLY_H

#include "process/process.h"
#include "sched/spawn.h"

void spawn_release_state(skua_context *ctx, const skua_exit *exit)
{
    exit->type->close(process_state(ctx->process, exit->type), ctx, exit);
}

#endif
