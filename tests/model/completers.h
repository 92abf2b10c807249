/* SPDX-License-Identifier: MIT */
/* Threads that complete the calls of a model's process, its end, and results that are dropped once.
 * These are definitions, for one source of a model. */
#ifndef SKUA_MODEL_COMPLETERS_H
#define SKUA_MODEL_COMPLETERS_H

#include "explore.h"
#include "rig.h"

static uint32_t yields;                    /* calls that the process opens in its first step */
static atomic_u32 issued[RIG_WORKERS_MAX]; /* calls that each completer may complete */

static uint32_t ended; /* processes */

/* The close of the process. */
static void count_end(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    EXPLORE_CHECK(exit->error <= 0, "a process ends with an error or without");
    ended++;
}

/* The model's: `who` completes a call, for the time `try`. */
static void complete(uint32_t who, uint32_t call, uint32_t try);

/* Drops a result, whose data is a counter. */
static void drop_result(void *data, size_t size)
{
    (void)size;
    EXPLORE_CHECK(++*(uint32_t *)data == 1, "a result is dropped once");
}

/* Completes every call of the first step, as soon as it is open. */
static void run_completer(const void *number)
{
    const uint32_t who = *(const uint32_t *)number;
    const uint32_t count = yields;
    for (uint32_t i = 0; i < count; i++) {
        explore_take(&issued[who]);
        complete(who, i, 0);
    }
}

/* Completes the first call once more than it should. */
static void run_double_completer(const void *number)
{
    const uint32_t who = *(const uint32_t *)number;
    explore_take(&issued[who]);
    complete(who, 0, 0);
    complete(who, 0, 1);
}

#endif
