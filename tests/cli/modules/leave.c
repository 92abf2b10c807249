/* SPDX-License-Identifier: MIT */
/* A root that starts as many processes as its argument says and leaves them behind: it is done at
 * once, or, as "waits", it stays with them. They are told to finish; "patient" ones do, "stubborn"
 * ones say "asked" and stay, a "stuck" one never returns from its step. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int patient_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    if (events[count - 1].type != SKUA_EVENT_CANCEL) {
        return 0;
    }
    printf("left\n");
    return skua_done(ctx, skua_nothing());
}

/* The ticker keeps simulations from coming to rest, which would end them. */
static int stubborn_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            printf("asked\n");
        }
    }
    if (events[0].type != SKUA_EVENT_START) {
        return 0;
    }
    printf("ready\n");
    return skua_yield_ticker(ctx, 0, SKUA_SECOND);
}

static int stuck_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    printf("ready\n");
    while (pause() < 0) { /* as it always is, and no signal ends it */
    }
    return 0;
}

static const skua_process_type types[] = {
    {.name = "patient", .step = patient_step, .cancel = SKUA_CANCEL_EVENT},
    {.name = "stubborn", .step = stubborn_step, .cancel = SKUA_CANCEL_EVENT},
    {.name = "stuck", .step = stuck_step},
};

struct root {
    const skua_process_type *type;
    unsigned long count;
    bool stays;
};

static int root_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct root *root = self;
    root->stays = strcmp(skua_method(ctx), "waits") == 0;
    root->count = input_count > 1 ? strtoul(skua_payload_data(&input[1]), NULL, 10) : 1;
    for (size_t i = 0; input_count > 0 && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, skua_payload_data(&input[0])) == 0) {
            root->type = &types[i];
        }
    }
    return root->type != NULL ? 0 : SKUA_E_INVALID;
}

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct root *root = self;
    (void)events;
    (void)count;
    for (; root->count > 0; root->count--) {
        const int error = skua_spawn(ctx, root->type, skua_nothing(), NULL);
        if (error != 0) {
            return error;
        }
    }
    return root->stays ? 0 : skua_done(ctx, skua_payload_static(0, "the root is done", 17));
}

static const char *const methods[] = {"main", "waits", NULL};
static const skua_process_type root_type = {
    .name = "root",
    .state_size = sizeof(struct root),
    .methods = methods,
    .init = root_init,
    .step = root_step,
};

static const skua_process_type *const others[] = {&types[0], &types[1], &types[2], NULL};

SKUA_MODULE(.name = "leave", .root = &root_type, .types = others);
