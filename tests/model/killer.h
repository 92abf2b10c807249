/* SPDX-License-Identifier: MIT */
/* A thread that kills the one process of a model, which stores its PID here. These are definitions,
 * for one source of a model. */
#ifndef SKUA_MODEL_KILLER_H
#define SKUA_MODEL_KILLER_H

#include "explore.h"
#include "rig.h"
#include "sched/deliver.h"

static skua_pid its_pid;

static void run_killer(const void *arg)
{
    (void)arg;
    (void)deliver_request(&rig, NULL, its_pid, STATE_KILL);
}

#define KILLER EXPLORE_THREAD("killer", run_killer, NULL)

#endif
