/* SPDX-License-Identifier: MIT */
/* Processes of the current world that do nothing until they are cancelled: api_idler, for tests
 * that need many, or whose processes do not matter. */
#ifndef SKUA_TESTS_IDLERS_H
#define SKUA_TESTS_IDLERS_H

#include "world.h"

/* Starts one; returns when it rests. */
skua_pid idler_start(void);

/* So many; the memory lives until the end of the test. */
skua_pid *idlers_start(size_t count);

/* Sends one a message for each of so many further steps; returns when it rests again. */
void idler_make_steps(skua_pid pid, uint64_t count);

/* Ends one. */
void idler_end(skua_pid pid);

#endif
