/* SPDX-License-Identifier: MIT */
/* Events that a process defers: when they come back, what becomes of their callers, that they keep
 * their places in the mailbox, and what is refused. */
#include "gate.h"
#include "relations.h"
#include "timers.h"

/* Each shape of process, on threads and simulated. */
#define SHAPES ((uint64_t)GATE_SHAPES * DRIVERS)

static enum gate_shape open_world_of(uint64_t round)
{
    world_open_driver(1 + (round - 1) / GATE_SHAPES);
    return (enum gate_shape)((round - 1) % GATE_SHAPES);
}

/* ---- messages ---- */

TEST(deferred_messages_come_back_in_order_before_newer_ones)
{
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_start(open_world_of(round), true);
        for (uint64_t i = 0; i < 5; i++) {
            gate_send(gate, i);
        }
        gate_await_deferred(gate, 5);
        assert_int_equal(world_info(gate->pid).mailbox_length, 5);
        gate_set(gate, GATE_OPEN);
        gate_send(gate, 5);
        assert_passed(gate, 0, 1, 2, 3, 4, 5);
        world_settle();
        assert_int_equal(world_info(gate->pid).mailbox_length, 0);
    }
}

/* What is deferred in the step that resumes stays deferred. */
TEST(events_can_be_deferred_again_and_again)
{
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_start(open_world_of(round), true);
        gate_send(gate, 1);
        gate_send(gate, 2);
        for (uint64_t i = 1; i <= 20; i++) {
            gate_await_deferred(gate, 2 * i);
            gate_set(gate, GATE_OPEN_ONCE);
        }
        gate_await_deferred(gate, 42);
        gate_set(gate, GATE_OPEN);
        assert_passed(gate, 1, 2);
        assert_int_equal(gate->defer_error, 0);
    }
}

/* Several steps of them. */
TEST(many_deferred_messages_keep_their_order)
{
    enum { MANY = 3000 };
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_start(open_world_of(round), true);
        for (uint64_t i = 0; i < MANY; i++) {
            gate_send(gate, i);
        }
        gate_await_deferred(gate, MANY);
        gate_set(gate, GATE_OPEN);
        gate_await_passed(gate, MANY);
        for (uint64_t i = 0; i < MANY; i++) {
            assert_int_equal(gate->passed[i], i);
        }
    }
}

TEST(urgent_messages_come_before_those_that_are_resumed)
{
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_start(open_world_of(round), true);
        gate_send(gate, 1);
        gate_send(gate, 2);
        gate_await_deferred(gate, 2);
        assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_OPEN)), 0);
        assert_passed(gate, 1, 2);
    }
}

/* A payload of its own travels with its message, and is dropped once. */
TEST(deferred_messages_of_a_process_that_ends_are_dropped)
{
    static const uint32_t ends[] = {GATE_DONE, GATE_FAIL, 0};
    enum { MANY = 700 }; /* in slices */
    struct tracked *items = test_alloc(MANY * sizeof *items);
    FOR_ROUNDS (round, SHAPES * COUNT_OF(ends)) {
        memset(items, 0, MANY * sizeof *items);
        const uint32_t end = ends[(round - 1) / SHAPES];
        struct gate *gate = gate_start(open_world_of((round - 1) % SHAPES + 1), true);
        for (size_t i = 0; i < MANY; i++) {
            assert_int_equal(world_send(gate->pid, tracked_payload(GATE_LETTER, &items[i])), 0);
        }
        gate_await_deferred(gate, MANY);
        if (end != 0) {
            gate_set(gate, end);
        } else {
            assert_int_equal(world_terminate(gate->pid), 0);
        }
        gate_await_end(gate);
        world_close();
        for (size_t i = 0; i < MANY; i++) {
            assert_drops(&items[i], 1, 1);
        }
    }
}

TEST(stop_of_the_runtime_ends_a_process_with_deferred_messages)
{
    FOR_ROUNDS (round, SHAPES) {
        struct tracked item = {0};
        struct gate *gate = gate_start(open_world_of(round), true);
        assert_int_equal(world_send(gate->pid, tracked_payload(GATE_LETTER, &item)), 0);
        gate_await_deferred(gate, 1);
        world_close();
        assert_drops(&item, 1, 1);
        assert_int_equal(gate->exit_error, SKUA_E_STOPPED);
    }
}

/* ---- the limit ---- */

TEST(deferred_messages_keep_their_places)
{
    enum { LIMIT = 8 };
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_new(open_world_of(round), true);
        gate->type.mailbox_limit = LIMIT;
        gate_submit(gate);
        uint64_t sent = 0;
        while (world_send(gate->pid, skua_payload_u64(GATE_LETTER, sent)) == 0) {
            sent++;
            gate_await_deferred(gate, sent);
        }
        assert_int_equal(sent, LIMIT);
        assert_int_equal(world_info(gate->pid).mailbox_length, LIMIT);
        assert_int_equal(world_send(gate->pid, skua_nothing()), SKUA_E_MAILBOX_FULL);
        assert_int_equal(world_send_urgent(gate->pid, skua_payload_empty(GATE_OPEN)), 0);
        gate_await_passed(gate, LIMIT);
        world_settle();
        assert_int_equal(world_info(gate->pid).mailbox_length, 0);
        gate_send(gate, 1);
    }
}

/* ---- calls ---- */

TEST(deferred_call_is_answered_later)
{
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_start(open_world_of(round), true);
        struct actor *caller = actor_start(ACTS(asks(1, stranger(gate->pid), 41)));
        gate_await_deferred(gate, 1);
        for (uint64_t i = 2; i < 30; i++) { /* more often than one can be forwarded */
            gate_set(gate, GATE_OPEN_ONCE);
            gate_await_deferred(gate, i);
        }
        gate_set(gate, GATE_OPEN);
        world_settle();
        assert_saw(caller, completion_of(1, 0, 42));
        assert_int_equal(world_info(gate->pid).mailbox_length, 0);
    }
}

TEST(deferred_call_that_has_timed_out_is_not_delivered_again)
{
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_start(open_world_of(round), true);
        struct actor *caller =
            actor_start(ACTS(within(SKUA_SECOND, asks(1, stranger(gate->pid), 1))));
        gate_await_deferred(gate, 1);
        world_advance(2 * SKUA_SECOND);
        world_settle();
        assert_saw(caller, failure(1, SKUA_E_TIMEOUT));
        gate_set(gate, GATE_OPEN);
        gate_send(gate, 7);
        assert_passed(gate, 7);
        world_settle();
        assert_int_equal(world_info(gate->pid).mailbox_length, 0);
    }
}

TEST(deferred_call_whose_caller_has_ended_is_not_delivered_again)
{
    FOR_ROUNDS (round, SHAPES) {
        struct gate *gate = gate_new(open_world_of(round), true);
        gate->type.abandons = round % 2 == 0;
        gate_submit(gate);
        struct actor *caller = actor_start(ACTS(asks(1, stranger(gate->pid), 1)));
        gate_await_deferred(gate, 1);
        assert_int_equal(world_terminate(caller->pid), 0);
        world_settle();
        assert_int_equal(caller->closes, 1);
        gate_set(gate, GATE_OPEN);
        gate_send(gate, 7);
        assert_passed(gate, 7);
    }
}

TEST(deferred_calls_to_a_process_that_ends_fail)
{
    enum { CALLERS = 5 };
    FOR_ROUNDS (round, SHAPES) {
        struct actor *callers[CALLERS];
        struct gate *gate = gate_start(open_world_of(round), true);
        for (size_t i = 0; i < CALLERS; i++) {
            callers[i] = actor_start(ACTS(asks(i, stranger(gate->pid), i)));
        }
        gate_await_deferred(gate, CALLERS);
        gate_set(gate, GATE_FAIL);
        gate_await_end(gate);
        world_settle();
        for (size_t i = 0; i < CALLERS; i++) {
            assert_saw(callers[i], peer_ended(i, SKUA_E_USER));
        }
    }
}

/* ---- what is refused ---- */

static skua_request last_request;

static int defer_wrongly(struct turn *turn, const struct act *act)
{
    skua_context *ctx = turn->ctx;
    skua_event *event = &turn->events[turn->count - 1];
    const bool is_call = event->type == SKUA_EVENT_CALL;
    (void)act;
    if (skua_defer(ctx, NULL) != SKUA_E_INVALID || skua_defer(NULL, event) != SKUA_E_INVALID) {
        return SKUA_E_INVALID;
    }
    if (event->type == SKUA_EVENT_START || event->type == SKUA_EVENT_COMPLETION) {
        return skua_defer(ctx, event); /* is refused */
    }
    last_request = is_call ? event->request : last_request;
    int error = skua_defer(ctx, event);
    if (error == 0 && skua_defer(ctx, event) != SKUA_E_TAKEN) {
        return SKUA_E_USER;
    }
    if (error == 0 && is_call && skua_reply(ctx, last_request, 0, skua_nothing()) != SKUA_E_LATE) {
        return SKUA_E_USER - 1; /* its token is not valid while it is deferred */
    }
    return error;
}

TEST(only_messages_and_calls_can_be_deferred_and_only_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(
            ACTS(refused(does(defer_wrongly, NULL), SKUA_E_INVALID), sleeps(1, 0),
                 expects(completion(1, 0)), refused(does(defer_wrongly, NULL), SKUA_E_INVALID),
                 expects(message(0, 1)), does(defer_wrongly, NULL), expects(message(0, 2)),
                 does(defer_wrongly, NULL), expects(request(3)), does(defer_wrongly, NULL)));
        world_settle();
        for (uint64_t i = 1; i <= 2; i++) {
            assert_int_equal(world_send(server->pid, skua_payload_u64(0, i)), 0);
            world_settle();
        }
        struct actor *caller = actor_start(ACTS(asks(1, server, 3)));
        world_settle();
        assert_int_equal(world_info(server->pid).mailbox_length, 3);
        assert_saw_nothing(caller);
        world_close();
    }
}

static int defer_a_copy(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_event copy = turn->events[turn->count - 1];
    return skua_defer(turn->ctx, &copy);
}

/* The first time, when the events of a step are in the batch of the worker or in a node; and later.
 */
TEST(copy_of_an_event_cannot_be_deferred)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(
            ACTS(expects(message(0, 1)), refused(does(defer_a_copy, NULL), SKUA_E_INVALID),
                 expects(request(2)), refused(does(defer_a_copy, NULL), SKUA_E_INVALID),
                 expects(message(0, 3)), does(defer_wrongly, NULL), expects(message(0, 4)),
                 refused(does(defer_a_copy, NULL), SKUA_E_INVALID)));
        world_settle();
        assert_int_equal(world_send(server->pid, skua_payload_u64(0, 1)), 0);
        world_settle();
        (void)actor_start(ACTS(asks(1, server, 2)));
        world_settle();
        for (uint64_t i = 3; i <= 4; i++) {
            assert_int_equal(world_send(server->pid, skua_payload_u64(0, i)), 0);
            world_settle();
        }
        assert_int_equal(world_info(server->pid).mailbox_length, 2); /* the call, and 3 */
        world_close();
    }
}

static int defer_what_was_taken(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_event *event = &turn->events[turn->count - 1];
    skua_payload payload = skua_payload_take(&event->payload);
    skua_payload_drop(&payload);
    return skua_defer(turn->ctx, event);
}

static int defer_when_done(struct turn *turn, const struct act *act)
{
    (void)act;
    (void)skua_done(turn->ctx, skua_payload_u64(0, 5));
    return skua_resume(turn->ctx) == SKUA_E_DONE
               ? skua_defer(turn->ctx, &turn->events[turn->count - 1])
               : 0;
}

TEST(event_without_its_payload_or_of_a_process_that_is_done_cannot_be_deferred)
{
    world_open();
    struct actor *actor = actor_new(
        ACTS(expects(message(0, 1)), refused(does(defer_what_was_taken, NULL), SKUA_E_TAKEN),
             expects(message(0, 2)), refused(does(defer_when_done, NULL), SKUA_E_DONE)));
    actor_submit(actor);
    assert_int_equal(world_send(actor->pid, skua_payload_u64(0, 1)), 0);
    actor_await_seen(actor, 1);
    assert_int_equal(world_send(actor->pid, skua_payload_u64(0, 2)), 0);
    actor_await_end(actor);
}

static int answer_then_defer(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_event *event = &turn->events[turn->count - 1];
    (void)skua_reply(turn->ctx, event->request, 0, skua_payload_u64(0, 9));
    return skua_defer(turn->ctx, event);
}

TEST(call_that_was_answered_cannot_be_deferred)
{
    world_open();
    struct actor *server = server_start(
        ACTS(expects(request(1)), refused(does(answer_then_defer, NULL), SKUA_E_LATE)));
    struct actor *caller =
        actor_new(ACTS(asks(1, server, 1), expects(completion_of(1, 0, 9)), finishes(0)));
    assert_result(actor_run(caller), 0);
}

/* ---- memory ---- */

/* The first time takes memory; without it the event stays where it is. From then on none is needed,
 * however many are deferred. */
TEST(deferring_takes_memory_only_once)
{
    FOR_ROUNDS (shape, (uint64_t)GATE_SHAPES) {
        world_open_with((skua_runtime_config){.worker_count = 1});
        struct gate *gate = gate_start((enum gate_shape)(shape - 1), true);
        gate_send(gate, 0);
        gate_await_deferred(gate, 1);
        gate_set(gate, GATE_SHUT);
        for (uint64_t i = 1; i < 500; i++) {
            gate_send(gate, i);
        }
        counting_allocator_fail_from(&world->api->memory, 1);
        gate_await_deferred(gate, 500);
        counting_allocator_fail_never(&world->api->memory);
        assert_int_equal(gate->defer_error, 0);
        gate_set(gate, GATE_OPEN);
        gate_await_passed(gate, 500);
        for (uint64_t i = 0; i < 500; i++) {
            assert_int_equal(gate->passed[i], i);
        }
        world_close();
    }
}

TEST(event_that_cannot_be_deferred_for_want_of_memory_stays_the_steps)
{
    FOR_ROUNDS (shape, (uint64_t)GATE_SHAPES) {
        world_open_with((skua_runtime_config){.worker_count = 1});
        struct gate *gate = gate_start((enum gate_shape)(shape - 1), false);
        gate_send(gate, 1);
        assert_passed(gate, 1);
        gate_set(gate, GATE_SHUT);
        counting_allocator_fail_from(&world->api->memory, 1);
        gate_send(gate, 2);
        assert_passed(gate, 2);
        counting_allocator_fail_never(&world->api->memory);
        assert_int_equal(gate->defer_error, SKUA_E_NO_MEMORY);
        world_close();
    }
}
