/* SPDX-License-Identifier: MIT */
/* A root that waits until it is cancelled, and says "ready" when it does. What it does then is its
 * method's affair. "ticks" counts seconds meanwhile. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <string.h>

struct wait {
    const char *method;
    uint64_t ticks;
    bool started;
};

static int wait_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                     size_t input_count)
{
    struct wait *wait = self;
    (void)ctx;
    (void)input;
    (void)input_count;
    wait->method = method;
    return 0;
}

static int start(struct wait *wait, skua_step *out)
{
    wait->started = true;
    printf("ready\n");
    return strcmp(wait->method, "ticks") == 0 ? skua_step_ticker(out, 0, SKUA_SECOND) : 0;
}

/* Asked to finish: may fail with that, with something else, or bring a result. */
static int finish(const struct wait *wait, int reason, skua_step *out)
{
    if (strcmp(wait->method, "fails") == 0) {
        return reason;
    }
    if (strcmp(wait->method, "breaks") == 0) {
        return SKUA_E_USER - 77;
    }
    skua_step_done(out, skua_payload_u64(0, wait->ticks));
    return 0;
}

static int wait_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct wait *wait = self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return finish(wait, events[i].error, out);
        }
        wait->ticks += events[i].type == SKUA_EVENT_TICK ? skua_tick_count(&events[i]) : 0;
    }
    return wait->started ? 0 : start(wait, out);
}

static const char *const methods[] = {"main", "fails", "breaks", "ticks", NULL};
static const skua_process_type wait_type = {
    .name = "wait",
    .state_size = sizeof(struct wait),
    .methods = methods,
    .init = wait_init,
    .step = wait_step,
};

SKUA_MODULE(.name = "wait", .root = &wait_type);
