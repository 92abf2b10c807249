/* SPDX-License-Identifier: MIT */
#include "telemetry/account.h"

void account_init(struct account *account, struct time_source *simulated)
{
    account->simulated = simulated;
    account->created = account_now(account);
}

void account_add_run(struct process *process, uint64_t units)
{
    const uint32_t run = load_relaxed(&process->run); /* statistic; but for a spawner, one writer */
    const uint64_t sum = run + units;
    store_relaxed(&process->run, sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX); /* statistic */
}
