/* SPDX-License-Identifier: MIT */
/* Processes that nobody disturbs, so that what they begin must come to its end: players, two with a
 * ball, and echoes, which end in one step with their input as result. */
#ifndef SKUA_TESTS_STRESS_PLAYERS_H
#define SKUA_TESTS_STRESS_PLAYERS_H

#include "stress_load.h"

/* Starts a game and waits until it is over, for up to so long. */
void watch_game(uint64_t *random, uint64_t hang_ns);

/* Runs an echo. */
void run_echo(uint64_t *random);

#endif
