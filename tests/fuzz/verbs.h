/* SPDX-License-Identifier: MIT */
/* What a process does about others, by calls, monitors, links and names: with right arguments, and
 * with those of others, of the past, and of nobody. */
#ifndef SKUA_TESTS_FUZZ_VERBS_H
#define SKUA_TESTS_FUZZ_VERBS_H

#include "play.h"
#include "script.h"

/* One operation of a step. */
void verbs_perform(struct play *play);

/* One of those that are about a call, for a step that has just got one. */
void verbs_answer_one(struct play *play);

/* Answers all that the process owes, with nothing: it will not do so by itself any more. */
void verbs_answer_all(struct play *play);

/* What init may not do, and what little it may. */
void verbs_try_in_init(skua_context *ctx, struct reader *reader);

/* The same for close, which may still answer calls and take back links. */
void verbs_try_in_close(skua_context *ctx, struct relations *relations);

#endif
