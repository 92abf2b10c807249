/* SPDX-License-Identifier: MIT */
/* In place of what src/sched/timers.c calls of poll.c, for models without timers and deadlines. A
 * definition: one source of a model includes this. */
#ifndef SKUA_MODEL_NO_TIMERS_H
#define SKUA_MODEL_NO_TIMERS_H

#include "explore.h"
#include "sched/poll.h"

void poll_publish(struct scheduler *sched, struct worker *worker, uint64_t deadline)
{
    (void)sched;
    (void)worker;
    (void)deadline;
    EXPLORE_CHECK(false, "there are no timers");
}

#endif
