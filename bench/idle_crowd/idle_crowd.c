/* SPDX-License-Identifier: MIT */
/* A module whose processes do nothing: a million of them, for tools/inspect_cost to look at. */
#include <skua/skua.h>

#define CROWD   1000000
#define PORTION 1000 /* started in one step */

static int rest(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

static const skua_process_type idler = {.name = "idler", .state_size = 64, .step = rest};

struct founder {
    uint32_t started;
};

static int found(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct founder *founder = self;
    int error = 0;
    (void)events;
    (void)count;
    for (uint32_t i = 0; i < PORTION && founder->started < CROWD && error == 0; i++) {
        error = skua_spawn(ctx, &idler, skua_nothing(), NULL);
        founder->started++;
    }
    if (founder->started < CROWD) {
        skua_continue(ctx);
    }
    return error;
}

static const skua_process_type root = {
    .name = "founder", .state_size = sizeof(struct founder), .step = found};

SKUA_MODULE(.name = "idle_crowd", .about = "a million processes that do nothing", .root = &root);
