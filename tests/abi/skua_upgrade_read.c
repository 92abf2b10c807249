/* SPDX-License-Identifier: MIT */
#include "abi.h"

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

int main(void)
{
    static const skua_process_type one = {.name = "one", .step = step};
    static const skua_process_type two = {.name = "one", .step = step, .version = 2};
    skua_runtime *runtime = abi_start();
    skua_upgrade_progress *progress = ABI_FENCED(skua_upgrade_progress, 1);
    CHECK(skua_runtime_upgrade(runtime, &one, &two) == 0);
    CHECK(skua_upgrade_read(runtime, &one, &two, progress) == 0);
    CHECK(progress->asked == 0);
    CHECK_TAIL(progress);
    abi_stop(runtime);
    return 0;
}
