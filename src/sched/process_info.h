/* SPDX-License-Identifier: MIT */
/* What can be read of a process while it runs. */
#ifndef SKUA_SCHED_PROCESS_INFO_H
#define SKUA_SCHED_PROCESS_INFO_H

#include "sched/scheduler.h"

/* As skua_process_info_read. */
NODISCARD int process_info_read(struct scheduler *sched, skua_pid pid, skua_process_snapshot *info);

/* As skua_process_list. */
NODISCARD uint32_t process_info_list(struct scheduler *sched, skua_pid after,
                                     skua_process_snapshot *infos, uint32_t capacity);

/* The name of a process's type, even while it is closing; "?" once it is gone. */
const char *process_info_type_name(struct scheduler *sched, skua_pid pid);

/* The PID of whatever process is in a slot, which must exist. */
skua_pid process_info_at(struct scheduler *sched, uint32_t slot);

#endif
