/* SPDX-License-Identifier: MIT */
/* Two processes send a number back and forth, each adds one, until it reaches a limit: what a
 * message costs.
 *
 *   skua run 02_ping_pong.so [-- MESSAGES]      default: 100000
 *
 * In the simulator (--sim) time is virtual: a step takes 1000 ns there, whatever it does. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

static int pong_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            const uint64_t number = skua_payload_to_u64(&events[i].payload);
            skua_send(ctx, events[i].from, skua_payload_u64(0, number + 1));
        }
    }
    return 0;
}

static const skua_process_type pong_type = {.name = "pong", .step = pong_step};

struct ping {
    uint64_t limit;
    uint64_t began;
};

/* The input of the root process is the arguments of the command line, as strings. */
static int ping_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct ping *ping = self;
    char *end = "";
    (void)ctx;
    ping->limit = count > 0 ? strtoull(skua_payload_data(&input[0]), &end, 10) : 100000;
    if (count > 1 || ping->limit == 0 || *end != '\0') {
        fprintf(stderr, "usage: skua run 02_ping_pong.so [-- MESSAGES]\n");
        return SKUA_E_INVALID;
    }
    return 0;
}

static int serve(struct ping *ping, skua_context *ctx)
{
    skua_pid pong;
    ping->began = skua_now(ctx);
    const int error = skua_spawn(ctx, &pong_type, skua_nothing(), &pong);
    return error != 0 ? error : skua_send(ctx, pong, skua_payload_u64(0, 1));
}

static int finish(const struct ping *ping, skua_context *ctx, uint64_t messages)
{
    const double elapsed = (double)(skua_now(ctx) - ping->began);
    printf("%" PRIu64 " messages, %.0f ns each\n", messages, elapsed / (double)messages);
    return skua_done(ctx, skua_payload_u64(0, messages));
}

/* Only one number is under way, so a step never gets more than one event. */
static int ping_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct ping *ping = self;
    (void)count;
    if (events[0].type == SKUA_EVENT_START) {
        return serve(ping, ctx);
    }
    const uint64_t number = skua_payload_to_u64(&events[0].payload);
    if (number >= ping->limit) {
        return finish(ping, ctx, number);
    }
    return skua_send(ctx, events[0].from, skua_payload_u64(0, number + 1));
}

static const skua_process_type ping_type = {
    .name = "ping",
    .state_size = sizeof(struct ping),
    .init = ping_init,
    .step = ping_step,
};

static const skua_process_type *const types[] = {&pong_type, NULL};

SKUA_MODULE(.name = "ping_pong", .about = "what a message costs", .root = &ping_type,
            .types = types);
