/* SPDX-License-Identifier: MIT */
/* In place of src/sched/context.c, for models without worker.c, which that needs: contexts are
 * never misused. Definitions: one source of a model includes this. */
#ifndef SKUA_MODEL_PLAIN_CONTEXT_H
#define SKUA_MODEL_PLAIN_CONTEXT_H

#include "explore.h"
#include "sched/context.h"

int context_check(const skua_context *ctx, uint32_t allowed)
{
    (void)ctx;
    (void)allowed;
    EXPLORE_CHECK(false, "a context is used in its step only");
    return SKUA_E_CONTEXT;
}

void context_rotate(struct worker *worker)
{
    (void)worker;
    EXPLORE_CHECK(false, "contexts are not checked");
}

#endif
