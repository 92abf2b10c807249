/* SPDX-License-Identifier: MIT */
/* Something to look at from outside: a root that keeps its children, or itself, busy until it is
 * cancelled, and says "ready" when all is under way. Its method says with what. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD SKUA_MILLISECOND
#define BALL   UINT32_C(4000000000) /* the type of what is played with */

/* Waits for ever. */
static int sitter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

/* Sends back what it gets, and has some memory meanwhile. */
static int pong_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    skua_free(ctx, skua_alloc(ctx, 8), 8);
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            (void)skua_send(ctx, events[i].from, skua_payload_u64(BALL, 1));
        }
    }
    return 0;
}

/* Sleeps again and again. */
static int sleeper_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_yield_sleep(ctx, 0, PERIOD);
}

/* Sends itself a message in every step, so that there is always another. */
static int spinner_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_send(ctx, skua_self(ctx), skua_payload_u64(0, 1));
}

/* Works for some microseconds, and ends. */
static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    for (volatile int i = 0; i < 20000; i++) {
    }
    return skua_done(ctx, skua_nothing());
}

/* Answers whoever calls. */
static int server_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            (void)skua_reply(ctx, events[i].request, 0, skua_nothing());
        }
    }
    return 0;
}

static const skua_process_type server_type = {.name = "server", .step = server_step, .calls = true};
static const skua_process_type sitter_type = {.name = "sitter", .step = sitter_step};
static const skua_process_type pong_type = {.name = "pong", .step = pong_step};
static const skua_process_type sleeper_type = {.name = "sleeper", .step = sleeper_step};
static const skua_process_type spinner_type = {.name = "spinner", .step = spinner_step};
static const skua_process_type child_type = {.name = "child", .step = child_step};

struct work {
    const char *method;
    const skua_process_type *type; /* of the children */
    uint64_t children;
    bool ticks; /* does something every millisecond */
};

static const struct work works[] = {
    {"sit", &sitter_type, 1, false},     /* they do nothing */
    {"play", &pong_type, 1, true},       /* a message to and fro */
    {"sleep", &sleeper_type, 50, false}, /* timers */
    {"share", &child_type, 0, true},     /* many short lives, made by one worker */
    {"flood", &spinner_type, 50, false}, /* as many messages as can be */
    {"ask", &server_type, 1, true},      /* calls to one that has a name */
};

#define WORKS (sizeof works / sizeof works[0])

struct busy {
    const struct work *work;
    uint64_t children;
    skua_pid child; /* the last one */
};

static int busy_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct busy *busy = self;
    for (size_t i = 0; i < WORKS; i++) {
        if (strcmp(skua_method(ctx), works[i].method) == 0) {
            busy->work = &works[i];
        }
    }
    busy->children = busy->work->children;
    if (input_count > 0) {
        busy->children = strtoull(skua_payload_data(&input[0]), NULL, 10);
    }
    return 0;
}

static int spawn(struct busy *busy, skua_context *ctx, uint64_t count)
{
    int error = 0;
    const bool is_server = busy->work->type == &server_type;
    const skua_spawn_options options = {.type = busy->work->type,
                                        .name = is_server ? "desk" : NULL,
                                        .label = is_server ? "open all day" : NULL};
    for (uint64_t i = 0; i < count && error == 0; i++) {
        error = skua_spawn_with(ctx, &options, &busy->child);
    }
    return error;
}

static int start(struct busy *busy, skua_context *ctx)
{
    const int error = spawn(busy, ctx, busy->children);
    printf("ready %016" PRIx64 "\n", busy->child.bits);
    fflush(stdout);
    return error != 0 || !busy->work->ticks ? error : skua_yield_ticker(ctx, 0, PERIOD);
}

/* What it does every millisecond. */
static int act(struct busy *busy, skua_context *ctx)
{
    if (busy->work->type == &child_type) {
        return spawn(busy, ctx, 64);
    }
    if (busy->work->type == &server_type) {
        return skua_yield_call(ctx, 1, busy->child, skua_nothing(), SKUA_FOREVER);
    }
    return skua_send(ctx, busy->child, skua_payload_u64(BALL, 1));
}

static int busy_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct busy *busy = self;
    const skua_event *last = &events[count - 1];
    if (last->type == SKUA_EVENT_CANCEL) {
        return skua_done(ctx, skua_payload_u64(0, 0));
    }
    if (events[0].type == SKUA_EVENT_START) {
        return start(busy, ctx);
    }
    return last->type == SKUA_EVENT_TICK ? act(busy, ctx) : 0;
}

static const char *const methods[] = {"sit", "play", "sleep", "share", "flood", "ask", NULL};
static const skua_process_type busy_type = {
    .name = "busy",
    .state_size = sizeof(struct busy),
    .methods = methods,
    .init = busy_init,
    .step = busy_step,
    .cancel = SKUA_CANCEL_EVENT,
};

SKUA_MODULE(.name = "busy", .root = &busy_type);
