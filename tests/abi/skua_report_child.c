/* SPDX-License-Identifier: MIT */
#include "abi.h"

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return 0;
}

static const skua_process_type child_type = {.name = "child", .step = step};
static const skua_child child = {.name = "one", .type = &child_type};
static const skua_supervisor specification = {.name = "top", .children = &child, .child_count = 1};

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_pid pid;
    skua_payload report;
    skua_child_report *one = ABI_FENCED(skua_child_report, 1);
    CHECK(skua_process_start_supervisor(runtime, &specification, &pid) == 0);
    CHECK(skua_supervisor_report(runtime, pid, SKUA_FOREVER, &report) == 0);
    CHECK(skua_report_count(&report) == 1);
    CHECK(skua_report_child(&report, 0, one) == 0);
    CHECK(strcmp(one->name, "one") == 0 && one->type == &child_type);
    CHECK_TAIL(one);
    skua_payload_drop(&report);
    abi_stop(runtime);
    return 0;
}
