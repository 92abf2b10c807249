/* SPDX-License-Identifier: MIT */
/* A module that brings handlers and a pool. The root's result: who has carried them out. */
#include <skua/skua.h>
#include <string.h>

#define SERVICE 7
#define LATER   300

/* Both bring one letter. */
static int real_service(void *arg, skua_command *command, skua_payload *result)
{
    (void)command;
    *result = skua_payload_u64(0, (uint64_t) * (const char *)arg);
    return 0;
}

static int double_of_service(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    *result = skua_payload_u64(0, 'd');
    return 0;
}

static int read_slowly(skua_payload *input, skua_payload *result)
{
    (void)input;
    *result = skua_payload_u64(0, 'p');
    return 0;
}

struct root {
    char letters[4]; /* by tags 0 to 2 */
    unsigned seen;
};

static int start(skua_context *ctx)
{
    skua_pool files;
    int error = skua_blocking_find(skua_runtime_of(ctx), "files", &files);
    if (error == 0) {
        error = skua_yield(ctx, 0, SERVICE, skua_payload_empty(0), SKUA_FOREVER);
    }
    if (error == 0) {
        error = skua_yield(ctx, 1, LATER, skua_payload_empty(0), SKUA_FOREVER);
    }
    return error != 0 ? error
                      : skua_yield_blocking(ctx, 2, files, read_slowly, skua_payload_empty(0),
                                            SKUA_FOREVER);
}

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct root *root = self;
    if (events[0].type == SKUA_EVENT_START) {
        return start(ctx);
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].error != 0) {
            return events[i].error;
        }
        root->letters[events[i].tag] = (char)skua_payload_to_u64(&events[i].payload);
        root->seen++;
    }
    if (root->seen < 3) {
        return 0;
    }
    skua_payload result;
    const int error = skua_payload_copy(skua_runtime_of(ctx), 0, root->letters, 3, &result);
    return error != 0 ? error : skua_done(ctx, result);
}

static const char *const methods[] = {"main", "other", NULL};
static const skua_process_type root_type = {
    .name = "root", .state_size = sizeof(struct root), .methods = methods, .step = root_step};

static const skua_module_handler handlers[] = {
    {SERVICE, {.name = "service", .run = real_service, .arg = "a", .simulate = double_of_service}},
    {LATER, {.name = "later", .run = real_service, .arg = "b", .sim_safe = true}},
    {0},
};
static const skua_blocking_pool pools[] = {
    {.name = "files", .thread_limit = 2, .sim_safe = true},
    {0},
};

SKUA_MODULE(.name = "services", .about = "brings handlers and a pool", .root = &root_type,
            .handlers = handlers, .pools = pools);
