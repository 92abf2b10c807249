/* SPDX-License-Identifier: MIT */
#include "abi.h"

static int join(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)events, (void)count;
    return skua_group_join(ctx, "choir");
}

int main(void)
{
    static const skua_process_type type = {.name = "member", .step = join};
    skua_runtime *runtime = abi_start();
    CHECK(skua_process_submit(runtime, &type, skua_nothing(), NULL) == 0);
    CHECK(skua_sim_run(runtime, SKUA_FOREVER) >= 0);
    skua_group_snapshot *groups = ABI_FENCED(skua_group_snapshot, 2);
    CHECK(skua_group_list(runtime, groups, 2) == 1);
    CHECK(strcmp(groups[0].name, "choir") == 0);
    CHECK_TAIL(&groups[0]);
    CHECK(abi_is_untouched(&groups[1], sizeof *groups));

    /* The last one ends where the caller's memory does. */
    groups = ABI_FENCED(skua_group_snapshot, 1);
    CHECK(skua_group_list(runtime, groups, 1) == 1);
    CHECK(strcmp(groups[0].name, "choir") == 0);
    CHECK_TAIL(&groups[0]);
    abi_stop(runtime);
    return 0;
}
