/* SPDX-License-Identifier: MIT */
/* The statistics in the text format of Prometheus. */
#ifndef SKUA_INSPECT_METRICS_H
#define SKUA_INSPECT_METRICS_H

#include "sched/scheduler.h"

/* As skua_metrics_format. */
int metrics_format(struct scheduler *sched, char *text, size_t size);

#endif
