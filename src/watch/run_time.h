/* SPDX-License-Identifier: MIT */
/* How long processes have run, by samples of what the workers do (telemetry/account.h). */
#ifndef SKUA_WATCH_RUN_TIME_H
#define SKUA_WATCH_RUN_TIME_H

#include "sched/scheduler.h"

/* For the monitor: charges `span` to the process `pid`, or none, in which it found a worker. The
 * part below one unit stays in *remainder for the next time. */
void run_time_add(struct scheduler *sched, skua_pid pid, uint64_t span, uint64_t *remainder);

#endif
