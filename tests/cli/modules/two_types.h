/* SPDX-License-Identifier: MIT */
/* Two types in two versions. The second version of `bad` cannot replace the first, since it serves.
 * The root starts one of each. */
#include <skua/skua.h>
#include <stdio.h>

static int step_quietly(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return 0;
}

#if VERSION == 2
static int serve_quietly(void *self, skua_context *ctx, skua_event *event)
{
    (void)self, (void)ctx, (void)event;
    return 0;
}
#endif

static int migrate(uint32_t version, const void *old_state, void *new_state, skua_context *ctx)
{
    (void)version, (void)old_state, (void)new_state, (void)ctx;
    return 0;
}

static const skua_process_type good = {
    .name = "good", .step = step_quietly, .migrate = migrate, .version = VERSION};

static const skua_process_type bad = {.name = "bad",
#if VERSION == 2
                                      .serve = serve_quietly,
#else
                                      .step = step_quietly,
#endif
                                      .migrate = migrate,
                                      .version = VERSION};

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)count;
    if (events[0].type != SKUA_EVENT_START) {
        return 0;
    }
    int error = skua_spawn(ctx, &good, skua_nothing(), NULL);
    error = error != 0 ? error : skua_spawn(ctx, &bad, skua_nothing(), NULL);
    printf("runs\n");
    return fflush(stdout) == 0 ? error : SKUA_E_USER;
}

static const skua_process_type root = {.name = "root", .step = root_step};
static const skua_process_type *const types[] = {&good, &bad, NULL};

SKUA_MODULE(.name = "two_types", .root = &root, .types = types);
