/* SPDX-License-Identifier: MIT */
/* The run queue of models with a single process: a counter, with a check that there is at most one
 * token in it. These are definitions, for one source of a model. */
#ifndef SKUA_MODEL_ONE_TOKEN_H
#define SKUA_MODEL_ONE_TOKEN_H

#include "explore.h"
#include "rig.h"

/* A model in which threads count in no order defines this as EXPLORE_OWN. In the others each of
 * them sees what the one before it has done, and the explorer checks that. */
#ifndef TOKENS_MARK
#define TOKENS_MARK
#endif

static atomic_u32 queue;            /* tokens to be taken */
TOKENS_MARK static uint32_t tokens; /* not yet used to begin */

static void enqueue(void)
{
    EXPLORE_CHECK(++tokens == 1, "INV-3: at most one token");
    (void)fetch_add_seq_cst(&queue, 1);
}

static bool all_is_done(void)
{
    return load_relaxed(&queue) == 0;
}

#endif
