/* SPDX-License-Identifier: MIT */
/* Processes that wait for all sorts of things, for those who look from outside. The root says
 * "ready" and the PID of the server when it has started all of them. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>

#define HOUR (3600 * SKUA_SECOND)

/* ---- has names, and answers nobody ---- */

static int server_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    return events[0].type == SKUA_EVENT_START ? skua_name_register(ctx, "another", NULL) : 0;
}

static const skua_process_type server_type = {.name = "server", .step = server_step, .calls = true};

/* ---- is linked to it, monitors it and calls it ---- */

static int client_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    return skua_payload_get_pid(&input[0], 0, self);
}

static int client_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const skua_pid server = *(const skua_pid *)self;
    (void)count;
    if (events[0].type != SKUA_EVENT_START) {
        return 0;
    }
    int error = skua_link(ctx, server, SKUA_LINK_ONLY_ME, 0, NULL);
    error = error != 0 ? error : skua_yield_monitor(ctx, 2, server, SKUA_FOREVER);
    return error != 0 ? error : skua_yield_call(ctx, 3, server, skua_nothing(), HOUR);
}

static const skua_process_type client_type = {
    .name = "client", .state_size = sizeof(skua_pid), .init = client_init, .step = client_step};

/* ---- calls one that forwards the call to it ---- */

static int router_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const skua_pid server = *(const skua_pid *)self;
    const skua_event *last = &events[count - 1]; /* the first one may be the start */
    return last->type == SKUA_EVENT_CALL ? skua_forward(ctx, last->request, server, skua_nothing())
                                         : 0;
}

static int guest_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const skua_pid router = *(const skua_pid *)self;
    (void)count;
    return events[0].type == SKUA_EVENT_START
               ? skua_yield_call(ctx, 1, router, skua_nothing(), SKUA_FOREVER)
               : 0;
}

static const skua_process_type router_type = {.name = "router",
                                              .state_size = sizeof(skua_pid),
                                              .init = client_init,
                                              .step = router_step,
                                              .calls = true};
static const skua_process_type guest_type = {
    .name = "guest", .state_size = sizeof(skua_pid), .init = client_init, .step = guest_step};

/* ---- ticks; waits for a name; for many timers ---- */

static int ticker_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    return events[0].type == SKUA_EVENT_START ? skua_yield_ticker(ctx, 1, HOUR) : 0;
}

static int seeker_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    return events[0].type == SKUA_EVENT_START
               ? skua_yield_await_name(ctx, 1, "nobody's", SKUA_FOREVER)
               : 0;
}

static int sleeper_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    int error = 0;
    for (uint64_t i = 1; i <= 25 && error == 0 && events[0].type == SKUA_EVENT_START; i++) {
        error = skua_yield_sleep(ctx, i, HOUR);
    }
    return error;
}

static const skua_process_type ticker_type = {.name = "ticker", .step = ticker_step};
static const skua_process_type seeker_type = {.name = "seeker", .step = seeker_step};
static const skua_process_type sleeper_type = {.name = "sleeper", .step = sleeper_step};

/* ---- a task ---- */

static int receiver_main(void *self, skua_context *ctx)
{
    skua_event *event;
    int error;
    (void)self;
    do {
        error = skua_task_receive_type(ctx, 7, &event, HOUR);
    } while (error == 0);
    return error;
}

static const skua_process_type receiver_type = {.name = "receiver", .main = receiver_main};

/* ---- the root ---- */

static int start(skua_context *ctx)
{
    static const skua_process_type *const others[] = {&ticker_type, &seeker_type, &sleeper_type,
                                                      &receiver_type};
    const skua_spawn_options options = {.type = &server_type, .name = "the one", .label = "west"};
    skua_pid server;
    skua_pid router = {0};
    int error = skua_spawn_with(ctx, &options, &server);
    error =
        error != 0 ? error : skua_spawn(ctx, &router_type, skua_payload_pid(0, server), &router);
    error = error != 0 ? error : skua_spawn(ctx, &guest_type, skua_payload_pid(0, router), NULL);
    error = error != 0 ? error : skua_spawn(ctx, &client_type, skua_payload_pid(0, server), NULL);
    for (size_t i = 0; i < sizeof others / sizeof others[0] && error == 0; i++) {
        error = skua_spawn(ctx, others[i], skua_nothing(), NULL);
    }
    printf("ready %016" PRIx64 "\n", server.bits);
    fflush(stdout);
    return error;
}

static int root_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    if (events[count - 1].type == SKUA_EVENT_CANCEL) {
        return skua_done(ctx, skua_payload_u64(0, 0));
    }
    return events[0].type == SKUA_EVENT_START ? start(ctx) : 0;
}

static const char *const methods[] = {"wait", NULL};
static const skua_process_type root_type = {
    .name = "root", .methods = methods, .step = root_step, .cancel = SKUA_CANCEL_EVENT};

SKUA_MODULE(.name = "waiting", .root = &root_type);
