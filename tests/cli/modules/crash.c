/* SPDX-License-Identifier: MIT */
/* A root that crashes in its second step, in the way that its method says. */
#include <skua/skua.h>
#include <stdlib.h>
#include <string.h>

struct crash {
    const char *method;
    bool started;
};

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

static int crash_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                      size_t input_count)
{
    struct crash *crash = self;
    (void)ctx;
    (void)input;
    (void)input_count;
    crash->method = method;
    return 0;
}

/* Not static, so that backtraces name it. */
int crash_step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out);
int crash_step(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    struct crash *crash = self;
    (void)ctx;
    (void)events;
    (void)count;
    if (!crash->started) {
        crash->started = true;
        skua_step_continue(out);
        return 0;
    }
    if (strcmp(crash->method, "abort") == 0) {
        abort();
    } else if (strcmp(crash->method, "overflow") == 0) {
        return (int)descend(0);
    }
    *nowhere = 1;
    return 0;
}

static const char *const methods[] = {"null", "abort", "overflow", NULL};
static const skua_process_type crash_type = {
    .name = "crash",
    .state_size = sizeof(struct crash),
    .methods = methods,
    .init = crash_init,
    .step = crash_step,
};

SKUA_MODULE(.name = "crash", .root = &crash_type);
