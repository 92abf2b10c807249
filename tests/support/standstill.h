/* SPDX-License-Identifier: MIT */
/* Times at which nothing runs: a process in every worker of the world, which does not return. What
 * the test does between the two calls happens, for all processes, at one moment. */
#ifndef SKUA_TESTS_STANDSTILL_H
#define SKUA_TESTS_STANDSTILL_H

/* Returns when every worker stands still. */
void standstill_begin(void);

/* Lets them go on; the processes that held them finish. */
void standstill_end(void);

#endif
