/* SPDX-License-Identifier: MIT */
/* Command handlers, and a function for blocking pools, that do nothing but return. desk.h has
 * handlers that tests talk to. */
#ifndef SKUA_TESTS_HANDLERS_H
#define SKUA_TESTS_HANDLERS_H

#include <skua/skua.h>

/* Returns 0: the command is done, with an empty result. */
skua_handler_fn complete_at_once;

/* Returns SKUA_PENDING, and nobody completes the command. */
skua_handler_fn never_complete;

/* Returns an error: for commands that no process yields, or whose registration is refused. */
skua_handler_fn never_called;

/* A function for a blocking pool that does not block: returns 0, without a result. */
skua_blocking_fn return_at_once;

#endif
