/* SPDX-License-Identifier: MIT */
/* A look at processes from outside. */
#ifndef SKUA_SCHED_INSPECT_H
#define SKUA_SCHED_INSPECT_H

#include "sched/scheduler.h"

/* As skua_process_info_read. */
NODISCARD int inspect_process(struct scheduler *sched, skua_pid pid, skua_process_info *info);

/* As skua_process_list. */
NODISCARD uint32_t inspect_list(struct scheduler *sched, skua_pid after, skua_process_info *infos,
                                uint32_t capacity);

/* The name of a process's type, also while it is being closed; "?" once it is gone. */
const char *inspect_type_name(struct scheduler *sched, skua_pid pid);

#endif
