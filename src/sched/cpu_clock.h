/* SPDX-License-Identifier: MIT */
/* The CPU time of workers. The kernel counts it anyway and lets any thread read it, so it costs
 * nothing until somebody asks. */
#ifndef SKUA_SCHED_CPU_CLOCK_H
#define SKUA_SCHED_CPU_CLOCK_H

#include "sched/scheduler.h"

/* The worker's thread begins and ends. */
void cpu_clock_open(struct worker *worker);
void cpu_clock_close(struct worker *worker);

/* Brings the counter cpu_ns of a worker up to date, for whoever reads it next. */
void cpu_clock_update(struct worker *whose);

#endif
