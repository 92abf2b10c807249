/* SPDX-License-Identifier: MIT */
/* The counters of all workers and of the outside, added up. */
#ifndef SKUA_SCHED_STATS_H
#define SKUA_SCHED_STATS_H

#include "sched/scheduler.h"

void stats_read_total(struct scheduler *sched, skua_stats *out);

/* Brings the cpu_ns of all workers up to date, for whoever reads their counters next. */
void stats_update_cpu(struct scheduler *sched);

/* How many workers have counters: all but the spare ones that have never been started. */
uint32_t stats_worker_count(struct scheduler *sched);

/* Processes alive: exact once the workers are quiet, never negative. */
uint64_t stats_live(struct scheduler *sched);

/* Those, and the processes whose end somebody is being told. If it is zero while nobody outside can
 * start processes, none will run any more. */
uint64_t stats_left(struct scheduler *sched);

#endif
