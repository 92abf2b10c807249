/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_runtime_config *config = ABI_FENCED(skua_runtime_config, 1);
    CHECK(skua_runtime_config_read(runtime, config) == 0);
    CHECK(config->worker_count == 1 && config->process_limit == 1 << 24);
    CHECK(config->sim != NULL);
    CHECK_TAIL(config);
    abi_stop(runtime);
    return 0;
}
