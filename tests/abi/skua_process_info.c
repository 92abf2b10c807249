/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    const skua_pid pid = abi_submit(runtime);
    skua_process_snapshot *snapshot = ABI_FENCED(skua_process_snapshot, 1);
    CHECK(skua_process_info(runtime, pid, snapshot) == 0);
    CHECK(skua_pid_equal(snapshot->pid, pid) && snapshot->state == SKUA_PROCESS_READY);
    CHECK(snapshot->steps == 0 && strcmp(snapshot->type_name, "ends") == 0);
    CHECK_TAIL(snapshot);
    abi_stop(runtime);
    return 0;
}
