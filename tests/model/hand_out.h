/* SPDX-License-Identifier: MIT */
/* Processes that are nothing but a token, for models of the ways that tokens take. These are
 * definitions, for one source of a model. */
#ifndef SKUA_MODEL_HAND_OUT_H
#define SKUA_MODEL_HAND_OUT_H

#include "explore.h"
#include "process/process.h"

#define PROCESSES_MAX 8

static struct process processes[PROCESSES_MAX];
static bool submitted[PROCESSES_MAX]; /* its token is somewhere */

/* The process with this number, which the caller submits. */
static struct process *hand_out(uint32_t number)
{
    EXPLORE_CHECK(!submitted[number], "INV-3: only who has a token submits it");
    submitted[number] = true;
    explore_note("submits %u", (unsigned)number);
    return &processes[number];
}

#endif
