/* SPDX-License-Identifier: MIT */
/* Command handlers that do nothing but return. desk.h has those that tests talk to. */
#ifndef SKUA_TESTS_HANDLERS_H
#define SKUA_TESTS_HANDLERS_H

#include <skua/skua.h>

/* Returns 0: the command is done, with an empty result. */
skua_handler_fn complete_at_once;

/* Returns SKUA_PENDING, and nobody completes the command. */
skua_handler_fn never_complete;

/* Returns an error: for commands that no process yields, or whose registration is refused. */
skua_handler_fn never_called;

#endif
