/* SPDX-License-Identifier: MIT */
/* A root that crashes in its second step, in the way that its method says. */
#include <skua/skua.h>
#include <stdlib.h>
#include <string.h>

/* What a null pointer to a struct leads to. The sanitizers would notice a null pointer itself. */
static char *volatile nowhere = (char *)16;

static volatile unsigned bottom = 1;

/* Needs ever more stack. */
static unsigned descend(unsigned depth)
{
    volatile char room[1000];
    room[depth % sizeof room] = 1;
    return bottom != 0 ? descend(depth + 1) + (unsigned)room[0] : depth;
}

/* Not static, so that backtraces name it. */
int crash_step(void *self, skua_context *ctx, skua_event *events, size_t count);
int crash_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        return skua_continue(ctx);
    }
    if (strcmp(skua_method(ctx), "abort") == 0) {
        abort();
    } else if (strcmp(skua_method(ctx), "overflow") == 0) {
        return (int)descend(0);
    }
    *nowhere = 1;
    return 0;
}

static const char *const methods[] = {"null", "abort", "overflow", NULL};
static const skua_process_type crash_type = {
    .name = "crash",
    .methods = methods,
    .step = crash_step,
};

SKUA_MODULE(.name = "crash", .root = &crash_type);
