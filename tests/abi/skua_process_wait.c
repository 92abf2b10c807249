/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    const skua_pid pid = abi_submit(runtime);
    skua_exit *end = ABI_FENCED(skua_exit, 1);
    CHECK(skua_process_wait(runtime, pid, SKUA_FOREVER, end) == 0);
    CHECK(skua_pid_equal(end->pid, pid) && end->error == ABI_EXIT);
    CHECK_TAIL(end);
    CHECK(skua_process_wait(runtime, abi_submit(runtime), SKUA_FOREVER, NULL) == 0);
    abi_stop(runtime);
    return 0;
}
