/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    const skua_pid pid = abi_submit(runtime);
    skua_quota_use *use = ABI_FENCED(skua_quota_use, 1);
    CHECK(skua_process_quota(runtime, pid, use) == 0);
    CHECK(use->limit.processes == 0 && use->limit.bytes == 0);
    CHECK_TAIL(use);
    abi_stop(runtime);
    return 0;
}
