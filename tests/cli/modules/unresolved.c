/* SPDX-License-Identifier: MIT */
/* A module that needs a function which nobody has. */
#include <skua/skua.h>

int skua_no_such_function(void);

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return skua_no_such_function();
}

static const skua_process_type root_type = {.name = "root", .step = root_step};

SKUA_MODULE(.name = "unresolved", .root = &root_type);
