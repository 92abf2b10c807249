/* SPDX-License-Identifier: MIT */
/* What a script may do in a step: the input says which operation comes next. Those that have to do
 * with other processes are in verbs.c. */
#ifndef SKUA_TESTS_FUZZ_OPERATIONS_H
#define SKUA_TESTS_FUZZ_OPERATIONS_H

#include "play.h"

/* Performs operations until one ends the step, or the input is at its end. */
void operations_perform(struct play *play);

/* Two of them, which an init may do, too: starts another process; begins or ends a section that
 * blocks. */
void operations_spawn(skua_context *ctx, struct reader *reader);
void operations_block(skua_context *ctx, struct reader *reader);

#endif
