/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_exit *end = ABI_FENCED(skua_exit, 1);
    CHECK(skua_process_run(runtime, &abi_type, skua_payload_empty(0), end) == 0);
    CHECK(end->error == ABI_EXIT);
    CHECK_TAIL(end);
    CHECK(skua_process_run(runtime, &abi_type, skua_payload_empty(0), NULL) == 0);
    abi_stop(runtime);
    return 0;
}
