/* SPDX-License-Identifier: MIT */
/* Stopping the runtime of the current world by hand, also on threads of their own while the test
 * goes on. */
#ifndef SKUA_TESTS_STOPPER_H
#define SKUA_TESTS_STOPPER_H

#include "world.h"

/* Stops where no step is stuck. On a busy machine a worker may not get a CPU for so long that it is
 * taken for stuck; the call is then repeated, as its header says. Returns what the last one did.
 * Any thread. */
int stop_patiently(uint64_t timeout_ns);

struct stopper;

/* Does so on a thread of its own; returns when that is about to. */
struct stopper *stopper_start(uint64_t timeout_ns);

/* The same, and returns when the stop has begun: new processes are refused from then on. */
struct stopper *stopper_begin(uint64_t timeout_ns);

/* Whether the stop has not returned yet. */
bool stopper_is_busy(struct stopper *stopper);

/* Waits for its end, and returns what the stop did. */
int stopper_join(struct stopper *stopper);

#endif
