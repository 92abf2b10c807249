/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_sim_faults *faults = ABI_FENCED(skua_sim_faults, 1);
    memset(faults, 0, sizeof *faults);
    CHECK_TAIL_REFUSED(faults, skua_sim_faults_set(runtime, faults));
    faults->process_kill = 1000000; /* always */
    CHECK(skua_sim_faults_set(runtime, faults) == 0);
    skua_exit end;
    CHECK(skua_process_wait(runtime, abi_submit(runtime), SKUA_FOREVER, &end) == 0);
    CHECK(end.error == SKUA_E_TERMINATED);
    abi_stop(runtime);
    return 0;
}
