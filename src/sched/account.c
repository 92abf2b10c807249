/* SPDX-License-Identifier: MIT */
#include "sched/account.h"

static void add_run(struct process *process, uint64_t units)
{
    const uint32_t run = load_relaxed(&process->run); /* statistic; but for a spawner, one writer */
    const uint64_t sum = run + units;
    store_relaxed(&process->run, sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX); /* statistic */
}

void account_add(struct scheduler *sched, struct worker *worker, skua_pid pid, uint64_t span,
                 uint64_t *rest)
{
    struct process *process;
    if (skua_pid_is_none(pid)) {
        return;
    }
    const uint64_t sum = *rest + span;
    *rest = sum & ((UINT64_C(1) << RUN_SHIFT) - 1);
    stats_add_owner(&worker->stats.busy_ns, span); /* written by the monitor alone */
    if (process_table_find(&sched->table, pid, &process) == 0 &&
        state_generation(state_peek(process)) == pid_generation(pid)) {
        add_run(process, sum >> RUN_SHIFT);
    }
}
