/* SPDX-License-Identifier: MIT */
/* What src/sched/idle.c and spare.c call of poll.c and chores.c, for models without timers,
 * descriptors and chores (model_poll.c has them). These are definitions, in place of those files:
 * one source of a model includes this. */
#ifndef SKUA_MODEL_NO_SOURCES_H
#define SKUA_MODEL_NO_SOURCES_H

#include "explore.h"
#include "sched/chores.h"
#include "sched/poll.h"

bool poll_is_unattended(struct scheduler *sched)
{
    (void)sched;
    return false;
}

void poll_hand_over(struct scheduler *sched, struct worker *worker)
{
    (void)sched;
    (void)worker;
}

bool poll_try_take(struct scheduler *sched, struct worker *worker)
{
    (void)sched;
    (void)worker;
    return false;
}

void poll_sleep(struct worker *worker)
{
    (void)worker;
    EXPLORE_CHECK(false, "nobody has the poller's role");
}

bool chores_are_due(struct scheduler *sched)
{
    (void)sched;
    return false;
}

void chores_do(struct worker *worker)
{
    (void)worker;
    EXPLORE_CHECK(false, "no chore is due");
}

void chores_consider_trim(struct worker *worker)
{
    (void)worker;
}

#endif
