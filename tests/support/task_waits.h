/* SPDX-License-Identifier: MIT */
/* Every wait that a task has, for something that does not come:
 *
 *   FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
 *       const struct task_wait *wait = task_waits_open(round);
 *       struct errand *errand = errand_start_for(waits_once, wait);
 *       ...
 *   }
 *
 * First each of them simulated, then each on threads, in real time. */
#ifndef SKUA_TESTS_TASK_WAITS_H
#define SKUA_TESTS_TASK_WAITS_H

#include <skua/task.h>

#include "errand.h"

struct task_wait {
    const char *name;
    int (*wait)(skua_context *ctx, uint64_t timeout_ns);
    bool has_timeout; /* otherwise a timeout means nothing to it */
    bool has_peer;    /* another process, whose end would end it */
};

#define TASK_WAITS       14
#define TASK_WAIT_ROUNDS (2 * (uint64_t)TASK_WAITS)

extern const struct task_wait task_waits[TASK_WAITS];

/* Opens a world for the wait of this round, the first is 1. */
const struct task_wait *task_waits_open(uint64_t round);

/* Lets the function on a blocking pool return: any thread. The second also closes the world. The
 * end of a test does both. */
void task_waits_release(void);
void task_waits_close(void);

/* The same, simulated, with this seed and these faults; for all of them. */
void task_waits_open_sim(uint64_t seed, skua_sim_faults faults);

/* An errand for a wait, not started yet; and one that has come to it. It notes something before. */
struct errand *errand_for(errand_fn *function, const struct task_wait *wait);
struct errand *errand_start_for(errand_fn *function, const struct task_wait *wait);
const struct task_wait *wait_of(const struct errand *errand);

/* Until an errand that has noted something, and then waits, does that. */
void errand_await_wait(struct errand *errand);

#endif
