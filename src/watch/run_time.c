/* SPDX-License-Identifier: MIT */
#include "watch/run_time.h"

void run_time_add(struct scheduler *sched, skua_pid pid, uint64_t span, uint64_t *remainder)
{
    struct process *process;
    if (skua_pid_is_none(pid)) {
        return;
    }
    const uint64_t sum = *remainder + span;
    *remainder = sum & ((UINT64_C(1) << RUN_SHIFT) - 1);
    if (process_table_find(&sched->table, pid, &process) == 0 &&
        state_generation(state_peek(process)) == pid_generation(pid)) {
        account_add_run(process, sum >> RUN_SHIFT);
    }
}
