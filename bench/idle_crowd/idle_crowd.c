/* SPDX-License-Identifier: MIT */
/* A module whose processes do nothing: a million of them, for tools/inspect_cost to look at. */
#include <skua/skua.h>

#define CROWD   1000000
#define PORTION 1000 /* started in one step */

static int cancelled(const skua_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error;
        }
    }
    return 0;
}

static int rest(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)out;
    return cancelled(events, count);
}

static const skua_process_type idler = {.name = "idler", .state_size = 64, .step = rest};

struct founder {
    uint32_t started;
};

static int found(void *self, skua_context *ctx, skua_event *events, size_t count, skua_step *out)
{
    struct founder *founder = self;
    int error = cancelled(events, count);
    for (uint32_t i = 0; i < PORTION && founder->started < CROWD && error == 0; i++) {
        error = skua_context_spawn(ctx, &idler, NULL, NULL, 0, NULL);
        founder->started++;
    }
    if (founder->started < CROWD) {
        skua_step_continue(out);
    }
    return error;
}

static const skua_process_type root = {
    .name = "founder", .state_size = sizeof(struct founder), .step = found};

SKUA_MODULE(.name = "idle_crowd", .about = "a million processes that do nothing", .root = &root);
