/* SPDX-License-Identifier: MIT */
#include "abi.h"

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    skua_runtime_config config;
    (void)self, (void)events, (void)count;
    CHECK(skua_runtime_config_read(skua_runtime_of(ctx), &config) == 0);
    CHECK(config.worker_count == 3 && config.process_limit == 1000);
    return skua_done(ctx, skua_nothing());
}

int main(void)
{
    const skua_process_type type = {.name = "quick", .step = step};
    skua_runtime_config *config = ABI_FENCED(skua_runtime_config, 1);
    memset(config, 0, sizeof *config);
    config->worker_count = 3;
    config->process_limit = 1000;
    CHECK(skua_run(config, &type, skua_nothing()) == 0);
    CHECK(skua_run(NULL, &abi_type, skua_nothing()) == 1);
    return 0;
}
