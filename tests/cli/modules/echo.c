/* SPDX-License-Identifier: MIT */
/* A root whose result is what its method says: every kind of result there is. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct echo {
    skua_payload result;
};

/* The arguments, separated by spaces, in memory of their own. */
static skua_payload join(const skua_payload *input, size_t count)
{
    size_t size = 1;
    for (size_t i = 0; i < count; i++) {
        size += skua_payload_size(&input[i]);
    }
    char *text = calloc(1, size);
    for (size_t i = 0; i < count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, skua_payload_data(&input[i]));
    }
    return skua_payload_owned(0, text, strlen(text) + 1, skua_drop_free);
}

static int echo_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct echo *echo = self;
    const char *method = skua_method(ctx);
    if (strcmp(method, "main") == 0) {
        echo->result = join(input, input_count);
    } else if (strcmp(method, "first") == 0 && input_count > 0) {
        echo->result = skua_payload_take(&input[0]);
    } else if (strcmp(method, "number") == 0 && input_count > 0) {
        echo->result = skua_payload_u64(0, strtoull(skua_payload_data(&input[0]), NULL, 10));
    } else if (strcmp(method, "random") == 0) {
        echo->result = skua_payload_u64(0, skua_random(ctx) >> 20);
    } else if (strcmp(method, "bytes") == 0) {
        return skua_payload_copy(skua_runtime_of(ctx), 0, "\1\2\377", 3, &echo->result);
    } else if (strcmp(method, "pointer") == 0) {
        echo->result = skua_payload_pointer(0, calloc(1, 100), skua_drop_free);
    } else if (strcmp(method, "now") == 0) {
        echo->result = skua_payload_u64(0, skua_now(ctx));
    }
    return 0;
}

static int echo_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct echo *echo = self;
    (void)events;
    (void)count;
    return skua_done_from(ctx, &echo->result);
}

static void echo_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct echo *echo = self;
    (void)ctx;
    (void)exit;
    skua_payload_drop(&echo->result);
}

static const char *const methods[] = {"main",  "first",   "number", "random",
                                      "bytes", "pointer", "now",    NULL};
static const skua_process_type echo_type = {
    .name = "echo",
    .state_size = sizeof(struct echo),
    .methods = methods,
    .init = echo_init,
    .step = echo_step,
    .close = echo_close,
};

SKUA_MODULE(.name = "echo", .about = "says what it was told", .root = &echo_type);
