/* SPDX-License-Identifier: MIT */
/* A root that waits until it is cancelled, and says "ready" when it does. What it does then is its
 * method's affair. "ticks" counts seconds meanwhile. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <string.h>

struct wait {
    uint64_t ticks;
};

static bool has_method(const skua_context *ctx, const char *method)
{
    return strcmp(skua_method(ctx), method) == 0;
}

static int start(skua_context *ctx)
{
    printf("ready\n");
    return has_method(ctx, "ticks") ? skua_yield_ticker(ctx, 0, SKUA_SECOND) : 0;
}

/* Asked to finish: may fail with that, with something else, or bring a result. */
static int finish(const struct wait *wait, skua_context *ctx, int reason)
{
    if (has_method(ctx, "fails")) {
        return reason;
    }
    if (has_method(ctx, "breaks")) {
        return SKUA_E_USER - 77;
    }
    return skua_done(ctx, skua_payload_u64(0, wait->ticks));
}

static int wait_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct wait *wait = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return finish(wait, ctx, events[i].error);
        }
        wait->ticks += events[i].type == SKUA_EVENT_TICK ? skua_tick_count(&events[i]) : 0;
    }
    return events[0].type == SKUA_EVENT_START ? start(ctx) : 0;
}

static const char *const methods[] = {"main", "fails", "breaks", "ticks", NULL};
static const skua_process_type wait_type = {
    .name = "wait",
    .state_size = sizeof(struct wait),
    .methods = methods,
    .step = wait_step,
    .cancel = SKUA_CANCEL_EVENT,
};

SKUA_MODULE(.name = "wait", .root = &wait_type);
