/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime_config *config = ABI_FENCED(skua_runtime_config, 1);
    memset(config, 0, sizeof *config);
    config->worker_count = 3;
    config->process_limit = 1000;

    skua_runtime *runtime;
    CHECK_TAIL_REFUSED(config, skua_runtime_create(&runtime, config));
    CHECK(skua_runtime_create(&runtime, config) == 0);
    skua_runtime_config in_force;
    CHECK(skua_runtime_config_read(runtime, &in_force) == 0);
    CHECK(in_force.worker_count == 3 && in_force.process_limit == 1000);
    CHECK(skua_runtime_destroy(runtime) == 0);

    CHECK(skua_runtime_create(&runtime, NULL) == 0);
    CHECK(skua_runtime_destroy(runtime) == 0);
    return 0;
}
