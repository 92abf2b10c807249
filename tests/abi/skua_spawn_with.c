/* SPDX-License-Identifier: MIT */
#include "abi.h"

static skua_pid child;

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)events, (void)count;
    skua_spawn_options *options = ABI_FENCED(skua_spawn_options, 1);
    memset(options, 0, sizeof *options);
    options->type = &abi_type;
    CHECK_TAIL_REFUSED(options, skua_spawn_with(ctx, options, &child));
    CHECK(skua_spawn_with(ctx, options, &child) == 0);
    return ABI_EXIT - 1;
}

static const skua_process_type parent_type = {.name = "parent", .step = step};

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_exit end;
    CHECK(skua_process_run(runtime, &parent_type, skua_payload_empty(0), &end) == 0);
    CHECK(end.error == ABI_EXIT - 1);
    CHECK(skua_process_wait(runtime, child, SKUA_FOREVER, &end) == 0 && end.error == ABI_EXIT);
    abi_stop(runtime);
    return 0;
}
