/* SPDX-License-Identifier: MIT */
/* Messages that the simulator delays: what must still come in order, and mailboxes whose process
 * ends meanwhile. */
#include <skua/sim.h>

#include "api_support.h"
#include "sim_support.h"

/* Keeps the PID that is its input. */
static int sender_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    (void)ctx;
    (void)method;
    assert_int_equal(input_count, 1);
    *(skua_pid *)self = skua_payload_to_pid(&input[0]);
    return 0;
}

/* Sends one message there. */
static int sender_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    const skua_pid to = *(skua_pid *)self;
    if (count == 0) {
        assert_int_equal(skua_context_send(ctx, to, skua_payload_empty(0)), 0);
    }
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static const skua_process_type sender = {
    .name = "sender", .state_size = sizeof(skua_pid), .init = sender_init, .step = sender_step};

static int receiver_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                         skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static const skua_process_type receiver = {
    .name = "receiver", .step = receiver_step, .mailbox_limit = 1};

/* There is room for two processes, so the second receiver lives where the first one did. */
TEST(delayed_message_leaves_no_trace_in_the_next_mailbox)
{
    const skua_sim_config sim = {.faults = {.message_delay = 1000000, .delay_max_ns = SKUA_SECOND}};
    struct api api;
    api_create(&api, (skua_runtime_config){.process_limit = 2, .sim = &sim});
    api_start(&api);
    skua_pid first;
    skua_pid second;
    assert_int_equal(skua_process_submit(api.runtime, &receiver, NULL, NULL, 0, &first), 0);
    skua_payload input = skua_payload_pid(0, first);
    assert_int_equal(skua_process_submit(api.runtime, &sender, NULL, &input, 1, NULL), 0);
    while (api_stats(&api).steps < 2) { /* one each: the message is under way */
        assert_int_equal(skua_sim_step(api.runtime), 1);
    }
    assert_int_equal(skua_process_terminate(api.runtime, first), 0);
    assert_int_equal(skua_process_wait(api.runtime, first, SKUA_FOREVER, NULL), 0);

    assert_int_equal(skua_process_submit(api.runtime, &receiver, NULL, NULL, 0, &second), 0);
    skua_process_info info;
    assert_int_equal(skua_process_info_read(api.runtime, second, &info), 0);
    assert_int_equal(info.mailbox_length, 0);
    assert_int_equal(skua_message_send(api.runtime, second, skua_payload_empty(0)), 0);
    api_stop(&api);
}

/* ---- order ---- */

#define SEEDS     30
#define SENT_MAX  8
#define WAS_ASKED 99 /* in place of a number: the cancel event */

/* What arrived, in order. */
struct received {
    uint64_t numbers[SENT_MAX];
    size_t count;
};

static int receive(void *arg, const struct sim_turn *turn)
{
    struct received *received = arg;
    for (size_t i = 0; i < turn->count; i++) {
        const skua_event *event = &turn->events[i];
        assert_true(received->count < SENT_MAX);
        received->numbers[received->count++] =
            event->type == SKUA_EVENT_CANCEL ? WAS_ASKED : skua_payload_to_u64(&event->payload);
    }
    return 0;
}

static void send_number(const struct sim_turn *turn, skua_pid to, uint64_t number)
{
    assert_int_equal(skua_context_send(turn->ctx, to, skua_payload_u64(0, number)), 0);
}

static void send_number_without_name(const struct sim_turn *turn, skua_pid to, uint64_t number)
{
    skua_runtime *runtime = skua_context_runtime(turn->ctx);
    assert_int_equal(skua_message_send(runtime, to, skua_payload_u64(0, number)), 0);
}

/* All the ways in which a step reaches another process, one after the other. */
static int send_all(void *arg, const struct sim_turn *turn)
{
    const skua_pid to = *(const skua_pid *)arg;
    send_number(turn, to, 1);
    send_number_without_name(turn, to, 2);
    send_number(turn, to, 3);
    assert_int_equal(skua_process_cancel(skua_context_runtime(turn->ctx), to, -1), 0);
    send_number(turn, to, 4);
    return sim_done(turn);
}

TEST(events_of_one_step_stay_in_order_however_they_are_delayed)
{
    const uint64_t expected[] = {1, 2, 3, WAS_ASKED, 4};
    size_t delays = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        struct received received = {.count = 0};
        struct sim_actor receiving = {.function = receive, .arg = &received};
        struct sim_actor sending = {.function = send_all, .arg = &receiving.pid};
        sim_begin(&scene, seed, (skua_sim_faults){.message_delay = SIM_ALWAYS / 2});
        sim_submit(&scene, &receiving);
        sim_submit(&scene, &sending);

        sim_run_to_rest(&scene);

        assert_int_equal(received.count, 5);
        assert_memory_equal(received.numbers, expected, sizeof expected);
        delays += sim_count(&scene, SKUA_SIM_FAULT, SKUA_SIM_MESSAGE_DELAY);
        assert_int_equal(skua_process_terminate(scene.runtime, receiving.pid), 0);
        sim_end(&scene);
    }
    assert_true(delays > SEEDS / 2);
}

/* In init a process sends on the turn of the one that spawns it. */
static int child_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                      size_t input_count)
{
    (void)method;
    assert_int_equal(input_count, 1);
    *(skua_pid *)self = skua_payload_to_pid(&input[0]);
    return skua_context_send(ctx, *(skua_pid *)self, skua_payload_u64(0, 1));
}

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return skua_context_send(ctx, *(skua_pid *)self, skua_payload_u64(0, 2));
}

static const skua_process_type child = {
    .name = "child", .state_size = sizeof(skua_pid), .init = child_init, .step = child_step};

static int spawn_child(void *arg, const struct sim_turn *turn)
{
    skua_payload input = skua_payload_pid(0, *(const skua_pid *)arg);
    assert_int_equal(skua_context_spawn(turn->ctx, &child, NULL, &input, 1, NULL), 0);
    return sim_done(turn);
}

TEST(messages_of_init_stay_before_those_of_the_steps)
{
    const uint64_t expected[] = {1, 2};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_scene scene;
        struct received received = {.count = 0};
        struct sim_actor receiving = {.function = receive, .arg = &received};
        struct sim_actor spawning = {.function = spawn_child, .arg = &receiving.pid};
        sim_begin(&scene, seed, (skua_sim_faults){.message_delay = SIM_ALWAYS / 2});
        sim_submit(&scene, &receiving);
        sim_submit(&scene, &spawning);

        sim_run_to_rest(&scene);

        assert_int_equal(received.count, 2);
        assert_memory_equal(received.numbers, expected, sizeof expected);
        assert_int_equal(skua_process_terminate(scene.runtime, receiving.pid), 0);
        sim_end(&scene);
    }
}

/* ---- one simulation inside another ---- */

struct nested {
    skua_runtime *outer;
    skua_runtime *inner;
    int result;
};

static int stop_the_outer(void *arg, const struct sim_turn *turn)
{
    struct nested *nested = arg;
    nested->result = skua_runtime_stop(nested->outer, 0);
    return sim_done(turn);
}

/* Drives the inner one when the stop of the outer one asks it to finish. */
static int drive_the_inner(void *arg, const struct sim_turn *turn)
{
    const struct nested *nested = arg;
    if (turn->count == 0) {
        return 0;
    }
    assert_int_equal(skua_sim_run(nested->inner, SKUA_FOREVER), 0);
    return sim_done(turn);
}

TEST(stop_from_a_simulation_that_the_stop_drives_is_refused)
{
    struct sim_scene outer;
    struct sim_scene inner;
    sim_begin(&outer, 1, (skua_sim_faults){.message_delay = 0});
    sim_begin(&inner, 1, (skua_sim_faults){.message_delay = 0});
    struct nested nested = {.outer = outer.runtime, .inner = inner.runtime};
    struct sim_actor driving = {.function = drive_the_inner, .arg = &nested};
    struct sim_actor stopping = {.function = stop_the_outer, .arg = &nested};
    sim_submit(&outer, &driving);
    sim_submit(&inner, &stopping);
    sim_run_to_rest(&outer);

    sim_end(&outer);

    assert_int_equal(nested.result, SKUA_E_INSIDE_STEP);
    sim_end(&inner);
}
