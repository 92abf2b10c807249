/* SPDX-License-Identifier: MIT */
/* A root that starts a supervisor with a child that never ends when it is asked to, and stays. */
#include <skua/skua.h>
#include <stdio.h>

/* The ticker keeps simulations from coming to rest. */
static int porter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        printf("ready\n");
        return skua_yield_ticker(ctx, 0, SKUA_SECOND);
    }
    return 0;
}

static const skua_process_type porter_type = {
    .name = "person", .step = porter_step, .cancel = SKUA_CANCEL_EVENT};
static const skua_child porter = {.name = "porter", .type = &porter_type, .stop_ns = SKUA_FOREVER};
static const skua_supervisor house = {.name = "house", .children = &porter, .child_count = 1};

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)count;
    return events[0].type == SKUA_EVENT_START ? skua_supervisor_start(ctx, &house, NULL) : 0;
}

static const skua_process_type root = {.name = "root", .step = root_step};

SKUA_MODULE(.name = "keeper", .root = &root);
