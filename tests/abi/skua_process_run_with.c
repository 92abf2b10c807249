/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_spawn_options *options = ABI_FENCED(skua_spawn_options, 1);
    memset(options, 0, sizeof *options);
    options->type = &abi_type;
    skua_exit *end = ABI_FENCED(skua_exit, 1);
    CHECK_TAIL_REFUSED(options, skua_process_run_with(runtime, options, end));
    CHECK(skua_process_run_with(runtime, options, end) == 0);
    CHECK(end->error == ABI_EXIT);
    CHECK_TAIL(end);
    CHECK(skua_process_run_with(runtime, options, NULL) == 0);
    abi_stop(runtime);
    return 0;
}
