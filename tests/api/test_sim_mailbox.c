/* SPDX-License-Identifier: MIT */
/* Messages that the simulator delays, and mailboxes whose process ends meanwhile. */
#include <setjmp.h>
#include <skua/sim.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_support.h"

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
static void delayed_message_leaves_no_trace_in_the_next_mailbox(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delayed_message_leaves_no_trace_in_the_next_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
