/* SPDX-License-Identifier: MIT */
/* A root that starts as many processes as its argument says and leaves them behind: it is done at
 * once, or, as "waits", it stays with them. They are told to finish; "patient" ones do, "stubborn"
 * ones say "asked" and stay, a "stuck" one never returns from its step. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int patient_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            printf("left\n");
            skua_step_done(out, skua_payload_empty(0));
        }
    }
    return 0;
}

/* The ticker keeps simulations from coming to rest, which would end them. */
static int stubborn_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    bool *started = self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            printf("asked\n");
        }
    }
    if (*started) {
        return 0;
    }
    *started = true;
    printf("ready\n");
    return skua_step_ticker(out, 0, SKUA_SECOND);
}

static int stuck_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    (void)out;
    printf("ready\n");
    while (pause() < 0) { /* as it always is, and no signal ends it */
    }
    return 0;
}

static const skua_process_type types[] = {
    {.name = "patient", .step = patient_step},
    {.name = "stubborn", .step = stubborn_step, .state_size = sizeof(bool)},
    {.name = "stuck", .step = stuck_step},
};

struct root {
    const skua_process_type *type;
    unsigned long count;
    bool stays;
};

static int root_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                     size_t input_count)
{
    struct root *root = self;
    (void)ctx;
    root->stays = strcmp(method, "waits") == 0;
    root->count = input_count > 1 ? strtoul(skua_payload_data(&input[1]), NULL, 10) : 1;
    for (size_t i = 0; input_count > 0 && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, skua_payload_data(&input[0])) == 0) {
            root->type = &types[i];
        }
    }
    return root->type != NULL ? 0 : SKUA_E_INVALID;
}

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    struct root *root = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CANCEL) {
            return events[i].error;
        }
    }
    for (; root->count > 0; root->count--) {
        const int error = skua_context_spawn(ctx, root->type, NULL, NULL, 0, NULL);
        if (error != 0) {
            return error;
        }
    }
    if (!root->stays) {
        skua_step_done(out,
                       skua_payload_owned(0, (void *)(uintptr_t) "the root is done", 17, NULL));
    }
    return 0;
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
