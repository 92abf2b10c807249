/* SPDX-License-Identifier: MIT */
/* A look at a process from outside. */
#ifndef SKUA_SCHED_INSPECT_H
#define SKUA_SCHED_INSPECT_H

#include "sched/scheduler.h"

/* As skua_process_info_read. */
NODISCARD int inspect_process(struct scheduler *sched, skua_pid pid, skua_process_info *info);

#endif
