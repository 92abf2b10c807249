/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <skua/call.h>
#include <skua/task.h>

#include "api_support.h"
#include "test.h"

static void pass(struct gate *gate, skua_context *ctx, skua_event *event)
{
    const uint64_t number = skua_payload_to_u64(&event->payload);
    gate->passed[gate->passed_count++ % COUNT_OF(gate->passed)] = number;
    if (event->type == SKUA_EVENT_CALL) {
        (void)skua_reply(ctx, event->request, 0, skua_payload_u64(0, number + 1));
    }
    tally_add(&gate->passes, 1);
}

static void defer(struct gate *gate, skua_context *ctx, skua_event *event)
{
    const int error = skua_defer(ctx, event);
    if (error != 0) {
        gate->defer_error = error;
        pass(gate, ctx, event); /* it is still here */
    } else {
        tally_add(&gate->defers, 1);
    }
}

/* Returns what the step has to return. */
static int take(struct gate *gate, skua_context *ctx, skua_event *event)
{
    if (event->type != SKUA_EVENT_MESSAGE && event->type != SKUA_EVENT_CALL) {
        return 0;
    }
    switch (event->payload.type) {
    case GATE_PASS:
        pass(gate, ctx, event);
        return 0;
    case GATE_OPEN:
    case GATE_OPEN_ONCE:
    case GATE_SHUT:
        gate->resumes = gate->resumes || event->payload.type != GATE_SHUT;
        gate->is_shut = gate->is_shut || event->payload.type == GATE_SHUT;
        gate->stays_shut = event->payload.type != GATE_OPEN;
        return 0;
    case GATE_DONE:
        gate->is_done = true;
        return skua_done(ctx, skua_nothing());
    case GATE_FAIL:
        return SKUA_E_USER;
    default:
        (gate->is_shut ? defer : pass)(gate, ctx, event);
        return 0;
    }
}

/* What else is in the step is deferred before the rest is resumed, or it would come first. */
static int resume(struct gate *gate, skua_context *ctx)
{
    if (!gate->resumes) {
        return 0;
    }
    gate->resumes = false;
    gate->is_shut = gate->stays_shut;
    return skua_resume(ctx);
}

static int gate_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(struct gate **)self = input[0].as.owned.data;
    return 0;
}

static int gate_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct gate *gate = *(struct gate **)self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        error = take(gate, ctx, &events[i]);
    }
    return error != 0 || gate->is_done ? error : resume(gate, ctx);
}

static int gate_main(void *self, skua_context *ctx)
{
    skua_event *event;
    int error = 0;
    while (error == 0) {
        error = skua_task_receive(ctx, &event, SKUA_FOREVER);
        error = error != 0 ? error : gate_step(self, ctx, event, 1);
    }
    return error;
}

static int gate_serve(void *self, skua_context *ctx, skua_event *event)
{
    return gate_step(self, ctx, event, 1);
}

static void gate_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct gate *gate = *(struct gate **)self;
    (void)ctx;
    gate->exit_error = exit->error;
    tally_add(&gate->closes, 1);
}

struct gate *gate_new(enum gate_shape shape, bool is_shut)
{
    struct gate *gate = test_alloc(sizeof *gate);
    tally_init(&gate->passes);
    tally_init(&gate->defers);
    tally_init(&gate->closes);
    gate->is_shut = is_shut;
    gate->type = (skua_process_type){
        .name = "gate",
        .state_size = sizeof(struct gate *),
        .init = gate_init,
        .step = shape == GATE_STEP ? gate_step : NULL,
        .main = shape == GATE_TASK ? gate_main : NULL,
        .serve = shape == GATE_SERVER ? gate_serve : NULL,
        .close = gate_close,
        .calls = true,
        .urgent = true,
    };
    return gate;
}

void gate_submit(struct gate *gate)
{
    assert_int_equal(skua_process_submit(world_runtime(), &gate->type,
                                         skua_payload_pointer(0, gate, NULL), &gate->pid),
                     0);
}

struct gate *gate_start(enum gate_shape shape, bool is_shut)
{
    struct gate *gate = gate_new(shape, is_shut);
    gate_submit(gate);
    return gate;
}

void gate_send(const struct gate *gate, uint64_t number)
{
    assert_int_equal(world_send(gate->pid, skua_payload_u64(GATE_LETTER, number)), 0);
}

void gate_set(const struct gate *gate, uint32_t what)
{
    assert_int_equal(world_send(gate->pid, skua_payload_empty(what)), 0);
}

static void await(struct tally *tally, uint64_t count)
{
    if (world->is_simulated) {
        world_settle();
    }
    tally_wait(tally, count);
}

void gate_await_passed(struct gate *gate, uint64_t count)
{
    await(&gate->passes, count);
}

void gate_await_deferred(struct gate *gate, uint64_t count)
{
    await(&gate->defers, count);
}

void gate_await_end(struct gate *gate)
{
    await(&gate->closes, 1);
}

void assert_gate_passed(struct gate *gate, const uint64_t *expected, size_t count)
{
    gate_await_passed(gate, gate->asserted + count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(gate->passed[gate->asserted + i], expected[i]);
    }
    gate->asserted += count;
}
