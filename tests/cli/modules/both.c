/* SPDX-License-Identifier: MIT */
/* A module with a type that is a task and has steps, too. */
#include <skua/skua.h>

static int root_main(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    return 0;
}

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)events;
    (void)count;
    return root_main(self, ctx);
}

static const skua_process_type root_type = {.name = "root", .main = root_main, .step = root_step};

SKUA_MODULE(.name = "both", .root = &root_type);
