/* SPDX-License-Identifier: MIT */
/* A module with a handler that no runtime takes: the id is Skua's own. */
#include <skua/skua.h>

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_done(ctx, skua_nothing());
}

static int handle(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

static const skua_process_type root_type = {.name = "root", .step = root_step};
static const skua_module_handler handlers[] = {
    {SKUA_COMMAND_RESERVED, {.name = "reserved", .run = handle}},
    {0},
};

SKUA_MODULE(.name = "refused", .root = &root_type, .handlers = handlers);
