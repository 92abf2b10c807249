/* SPDX-License-Identifier: MIT */
/* Supervisors in a fuzzed program: they and their children are none of its processes, but they have
 * PIDs as these do. */
#ifndef SKUA_TESTS_FUZZ_SUPERVISION_H
#define SKUA_TESTS_FUZZ_SUPERVISION_H

#include "board.h"

/* Starts a supervisor, starts a child under some process, or checks a specification; `runtime` may
 * be null. */
void supervision_make_one(struct reader *reader, skua_runtime *runtime);

/* What a step can say of itself as a child or a supervisor. True if others can start children under
 * it from now on. */
bool supervision_say_something(struct reader *reader, skua_context *ctx);

/* Starts a supervisor in a step. */
void supervision_start(struct reader *reader, skua_context *ctx);

/* Reads a report, or what is none. */
void supervision_read_report(const skua_payload *payload);

#endif
