/* SPDX-License-Identifier: MIT */
/* What tasks do: every wait, with right and wrong arguments, and what is deferred. In a process
 * that is no task they are refused. */
#ifndef SKUA_TESTS_FUZZ_WAITS_H
#define SKUA_TESTS_FUZZ_WAITS_H

#include "play.h"

/* One operation of a step. If the task has received something, that is its event from then on. */
void waits_perform(struct play *play);

/* The task has done what it can for now: waits for more. */
void waits_for_next(struct play *play);

/* Nothing has been deferred yet; all that was deferred has been called. */
void waits_begin(void);
void waits_check(void);

#endif
