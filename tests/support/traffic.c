/* SPDX-License-Identifier: MIT */
#include "traffic.h"

static int answer_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct traffic *traffic = api_world(self);
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue; /* the PIDs are not known yet */
        }
        const bool is_first = skua_pid_equal(skua_self(ctx), traffic->pids[0]);
        (void)atomic_fetch_add(&traffic->messages, 1);
        if (traffic->left > 0) {
            (void)atomic_fetch_sub(&traffic->left, 1);
            (void)skua_send(ctx, traffic->pids[is_first], skua_payload_empty(0));
        }
    }
    return 0;
}

static const skua_process_type answerer = {
    .name = "answerer", .state_size = sizeof(void *), .init = api_init_world, .step = answer_step};

struct traffic *traffic_start(void)
{
    struct traffic *traffic = test_alloc(sizeof *traffic);
    for (size_t i = 0; i < 2; i++) {
        traffic->pids[i] = api_submit(world->api, &answerer, traffic);
    }
    traffic_await_rest(traffic);
    return traffic;
}

void traffic_begin(struct traffic *traffic, uint64_t more)
{
    traffic->left = more;
    assert_int_equal(world_send(traffic->pids[0], skua_payload_empty(0)), 0);
}

struct milestone {
    struct traffic *traffic;
    uint64_t messages;
};

static bool has_come(void *arg)
{
    const struct milestone *milestone = arg;
    return milestone->traffic->messages >= milestone->messages;
}

void traffic_await(struct traffic *traffic, uint64_t messages)
{
    wait_until(has_come, &(struct milestone){traffic, messages}, "messages between processes");
}

void traffic_await_rest(const struct traffic *traffic)
{
    for (size_t i = 0; i < 2; i++) {
        api_wait_state(world->api, traffic->pids[i], SKUA_PROCESS_IDLE);
    }
}
