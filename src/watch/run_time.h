/* SPDX-License-Identifier: MIT */
/* How long processes have run, by samples of what the workers do (telemetry/account.h). */
#ifndef SKUA_WATCH_RUN_TIME_H
#define SKUA_WATCH_RUN_TIME_H

#include "sched/scheduler.h"

/* For the monitor: a worker was found in the process `pid`, or in none, and `span` goes to it. What
 * is less than one unit stays in *rest for the next time. */
void run_time_add(struct scheduler *sched, struct worker *worker, skua_pid pid, uint64_t span,
                  uint64_t *rest);

#endif
