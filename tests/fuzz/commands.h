/* SPDX-License-Identifier: MIT */
/* Handlers and blocking functions of all kinds, well-behaved or not, for fuzzed programs. */
#ifndef SKUA_TESTS_FUZZ_COMMANDS_H
#define SKUA_TESTS_FUZZ_COMMANDS_H

#include "board.h"

/* Registers the handlers, each under its own id. */
void commands_register(skua_runtime *runtime);

/* Registers one more handler or pool, perhaps where it is refused. */
void commands_register_one(struct reader *reader, skua_runtime *runtime);

/* The id of a handler, of none, or of one of Skua's own. */
uint32_t choose_command(struct reader *reader);

/* The handle of a pool, or of none. */
skua_pool choose_pool(struct reader *reader);

/* Null, rarely. */
skua_blocking_fn *choose_blocking_function(struct reader *reader);

#endif
