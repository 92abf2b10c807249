/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_spawn_options *options = ABI_FENCED(skua_spawn_options, 1);
    memset(options, 0, sizeof *options);
    options->type = &abi_type;
    skua_pid pid;
    CHECK_TAIL_REFUSED(options, skua_process_submit_with(runtime, options, &pid));
    CHECK(skua_process_submit_with(runtime, options, &pid) == 0);
    skua_exit end;
    CHECK(skua_process_wait(runtime, pid, SKUA_FOREVER, &end) == 0);
    CHECK(end.error == ABI_EXIT);
    abi_stop(runtime);
    return 0;
}
