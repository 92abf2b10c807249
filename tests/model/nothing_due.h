/* SPDX-License-Identifier: MIT */
/* What src/sched/checkpoint.c calls of poll.c and timers.c, for models without descriptors,
 * timers and senders that are held back. These are definitions, in place of those files: one source
 * of a model includes this. */
#ifndef SKUA_MODEL_NOTHING_DUE_H
#define SKUA_MODEL_NOTHING_DUE_H

#include "explore.h"
#include "nobody_held_back.h"
#include "sched/poll.h"
#include "sched/timers.h"

void poll_check(struct scheduler *all, struct worker *worker, uint64_t now)
{
    (void)all;
    (void)worker;
    (void)now;
    EXPLORE_CHECK(false, "there are no descriptors");
}

void timers_fire(struct scheduler *all, struct worker *worker, uint32_t wheel, uint64_t now)
{
    (void)all;
    (void)worker;
    (void)wheel;
    (void)now;
    EXPLORE_CHECK(false, "there are no timers");
}

#endif
