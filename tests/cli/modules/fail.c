/* SPDX-License-Identifier: MIT */
/* A root that fails with the error in its argument: in its step, or in its init, or "sometimes", in
 * about one of four seeds. */
#include <skua/skua.h>
#include <stdlib.h>
#include <string.h>

struct fail {
    int error;
};

static int fail_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct fail *fail = self;
    fail->error = input_count > 0 ? atoi(skua_payload_data(&input[0])) : SKUA_E_USER;
    if (strcmp(skua_method(ctx), "sometimes") == 0 && skua_random(ctx) % 4 != 0) {
        fail->error = 0;
    }
    return strcmp(skua_method(ctx), "init") == 0 ? fail->error : 0;
}

static int fail_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const struct fail *fail = self;
    (void)events;
    (void)count;
    return fail->error != 0 ? fail->error : skua_done(ctx, skua_payload_u64(0, 0));
}

static const char *const methods[] = {"main", "init", "sometimes", NULL};
static const skua_process_type fail_type = {
    .name = "fail",
    .state_size = sizeof(struct fail),
    .methods = methods,
    .init = fail_init,
    .step = fail_step,
};

SKUA_MODULE(.name = "fail", .root = &fail_type);
