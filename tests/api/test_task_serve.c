/* SPDX-License-Identifier: MIT */
/* Tasks that serve: a function for each event, with a stack only while that runs. */
#include <skua/task.h>

#include "errand.h"
#include "relations.h"
#include "runtime/runtime.h"
#include "timers.h"

static uint64_t number_of(const skua_event *event)
{
    return skua_payload_to_u64(&event->payload);
}

/* Whether a process has a stack now: it does not run. */
static bool has_stack(const struct errand *errand)
{
    struct process *process = process_at(&world_runtime()->sched.table, pid_slot(errand->pid));
    return process->state.of_task.task != NULL;
}

/* ---- events ---- */

static int serves_numbers(struct errand *errand, skua_context *ctx, skua_event *event)
{
    (void)ctx;
    CHECK(errand, event->type == SKUA_EVENT_MESSAGE);
    note(errand, number_of(event));
    return 0;
}

TEST(serve_is_called_for_each_message)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start_server(serves_numbers);
        world_settle();
        assert_false(has_stack(errand));
        assert_noted_nothing(errand); /* its start is not an event for it */
        for (uint64_t i = 1; i <= 3; i++) {
            errand_send(errand, 0, i);
        }
        world_settle();
        assert_noted(errand, 1, 2, 3);
        assert_false(has_stack(errand));
        assert_int_equal(world_cancel(errand->pid, SKUA_E_USER), 0);
        assert_errand_ended(errand, SKUA_E_USER);
    }
}

static int serves_types(struct errand *errand, skua_context *ctx, skua_event *event)
{
    note(errand, event->type);
    if (event->type == SKUA_EVENT_MESSAGE) {
        CHECK(errand, skua_link(ctx, event->from, SKUA_LINK_TELL, 5, NULL) == 0);
        CHECK(errand, skua_yield_sleep(ctx, 6, MILLISECOND) == 0);
        CHECK(errand, skua_yield_ticker(ctx, 7, 3 * MILLISECOND) == 0);
    } else if (event->type == SKUA_EVENT_TICK) {
        CHECK(errand, skua_yield_cancel(ctx, 7) == 0);
        CHECK(errand, skua_continue(ctx) == 0);
    } else if (event->type == SKUA_EVENT_CANCEL) {
        CHECK(errand, skua_done(ctx, skua_payload_empty(0)) == 0);
    }
    return 0;
}

TEST(serve_is_called_for_each_kind_of_event)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_new_server(serves_types);
        errand->type.abandons = true;
        errand->type.cancel = SKUA_CANCEL_EVENT;
        errand_submit(errand);
        struct actor *me = stranger(errand->pid);
        struct actor *client = actor_start(ACTS(
            sends(me, 0, 1), sleeps(1, 10 * MILLISECOND), expects(completion(1, 0)),
            within(MILLISECOND, asks(2, me, 1)), expects(failure(2, SKUA_E_TIMEOUT)), finishes(0)));
        world_settle();
        assert_noted(errand, SKUA_EVENT_MESSAGE, SKUA_EVENT_COMPLETION, SKUA_EVENT_TICK,
                     SKUA_EVENT_COMPLETION, SKUA_EVENT_CONTINUE, SKUA_EVENT_CALL,
                     SKUA_EVENT_ABANDON, SKUA_EVENT_EXIT);
        assert_int_equal(client->exit_error, 0);
        world_stop();
        assert_noted(errand, SKUA_EVENT_CANCEL);
        assert_int_equal(errand->exit_error, 0);
    }
}

/* ---- while it waits ---- */

/* A message of type 1 opens a conversation: the next of type 2 belongs to it. */
static int converses(struct errand *errand, skua_context *ctx, skua_event *event)
{
    skua_event *next;
    note(errand, number_of(event));
    if (event->payload.type != 1) {
        return 0;
    }
    CHECK(errand, skua_task_receive_type(ctx, 2, &next, SKUA_FOREVER) == 0);
    note(errand, 100 + number_of(next));
    CHECK(errand, event->type == SKUA_EVENT_MESSAGE && event->payload.type == 1);
    note(errand, number_of(event)); /* it is still there */
    return 0;
}

TEST(serve_is_called_later_with_what_its_waits_did_not_want)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start_server(converses);
        errand_send(errand, 1, 1);
        errand_send(errand, 3, 2);
        errand_send(errand, 1, 3);
        world_settle();
        assert_true(has_stack(errand));
        assert_noted(errand, 1);
        errand_send(errand, 2, 4);
        world_settle();
        assert_noted(errand, 104, 1, 2, 3);
        errand_send(errand, 2, 5);
        world_settle();
        assert_noted(errand, 105, 3);
        assert_false(has_stack(errand));
    }
}

static int keeps_its_event(struct errand *errand, skua_context *ctx, skua_event *event)
{
    skua_event *next;
    for (int i = 0; i < 3; i++) {
        CHECK(errand, skua_task_receive(ctx, &next, SKUA_FOREVER) == 0);
    }
    CHECK(errand, tracked_value(&event->payload) == 4711);
    note(errand, atomic_load(&errand->item.drops));
    return 0;
}

TEST(event_of_serve_is_dropped_when_that_returns)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked others[3] = {0};
        world_open_driver(driver);
        struct errand *errand = errand_start_server(keeps_its_event);
        errand->item.value = 4711;
        assert_int_equal(world_send(errand->pid, tracked_payload(0, &errand->item)), 0);
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            assert_int_equal(world_send(errand->pid, tracked_payload(0, &others[i])), 0);
        }
        world_settle();
        assert_noted(errand, 0);
        assert_drops(&errand->item, 1, 1);
        assert_drops(others, COUNT_OF(others), 1);
    }
}

enum { LETTERS = 50000 };

static int sleeps_for_each(struct errand *errand, skua_context *ctx, skua_event *event)
{
    CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    CHECK(errand, number_of(event) == errand->number);
    errand->number++;
    return errand->number == LETTERS ? skua_done(ctx, skua_payload_u64(0, errand->number)) : 0;
}

/* It does not look at all that waits each time: this would take minutes otherwise. */
TEST(serve_that_waits_copes_with_a_full_mailbox)
{
    world_open_with((skua_runtime_config){.worker_count = 1, .mailbox_limit = 1 << 20});
    struct errand *errand = errand_start_server(sleeps_for_each);
    for (uint64_t i = 0; i < LETTERS; i++) {
        errand_send(errand, 0, i);
    }
    assert_errand_ended(errand, 0);
}

/* ---- answering ---- */

static int asks_and_answers(struct errand *errand, skua_context *ctx, skua_event *event)
{
    skua_payload reply;
    CHECK(errand, event->type == SKUA_EVENT_CALL);
    const int error = skua_task_call(ctx, errand->other, skua_payload_take(&event->payload),
                                     SKUA_FOREVER, &reply);
    CHECK(errand, skua_reply(ctx, event->request, error, reply) == 0);
    return 0;
}

TEST(serve_answers_calls_by_asking_others)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *backend = server_start(ACTS(answers_all()));
        struct errand *errand = errand_new_server(asks_and_answers);
        errand->other = backend->pid;
        errand_submit(errand);
        struct actor *me = stranger(errand->pid);
        struct actor *client = actor_start(ACTS(asks(1, me, 10), asks(2, me, 20), asks(3, me, 30)));
        errands_go_on(SECOND);
        assert_saw(client, completion_of(1, 0, 11), completion_of(2, 0, 21),
                   completion_of(3, 0, 31));
    }
}

/* ---- ends ---- */

static int does_as_told(struct errand *errand, skua_context *ctx, skua_event *event)
{
    const uint64_t what = number_of(event);
    if (what == 0) {
        CHECK(errand, skua_done(ctx, skua_payload_u64(0, 9)) == 0);
        return 0;
    }
    return what == 1 ? SKUA_E_USER : 1;
}

TEST(serve_ends_its_process_when_it_is_done_or_fails)
{
    FOR_ROUNDS (round, 3) {
        world_open_virtual();
        struct errand *errand = errand_start_server(does_as_told);
        errand_send(errand, 0, round - 1);
        assert_errand_ended(errand, round == 1 ? 0 : round == 2 ? SKUA_E_USER : SKUA_E_INVALID);
    }
}

static int serves_and_waits(struct errand *errand, skua_context *ctx, skua_event *event)
{
    (void)event;
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return 0;
}

/* Otherwise it would serve on. */
TEST(serve_that_was_cancelled_is_not_called_again)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start_server(serves_and_waits);
        errand_send(errand, 0, 1);
        world_settle();
        assert_int_equal(world_cancel(errand->pid, SKUA_E_USER), 0);
        (void)world_send(errand->pid, skua_payload_u64(0, 2));
        assert_errand_ended(errand, SKUA_E_USER);
        assert_noted(errand, noted_error(SKUA_E_CANCELLED));
    }
}

TEST(serve_is_ended_while_it_waits_or_not)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *waiting = errand_start_server(serves_and_waits);
        struct errand *idle = errand_start_server(serves_and_waits);
        errand_send(waiting, 0, 1);
        world_settle();
        assert_int_equal(world_terminate(waiting->pid), 0);
        assert_int_equal(world_terminate(idle->pid), 0);
        assert_errand_ended(waiting, SKUA_E_TERMINATED);
        assert_errand_ended(idle, SKUA_E_TERMINATED);
        assert_noted(waiting, noted_error(SKUA_E_TERMINATED));
        assert_noted_nothing(idle);
    }
}

/* ---- stacks ---- */

TEST(idle_servers_share_stacks)
{
    struct errand *servers[20];
    world_open_with((skua_runtime_config){.worker_count = 1, .stack_limit = 1});
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        servers[i] = errand_start_server(serves_numbers);
    }
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        errand_send(servers[i], 0, i);
        tally_wait(&servers[i]->noted, 1);
    }
}

TEST(task_that_gets_no_stack_ends)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked item = {0};
        skua_sim_config sim = {0};
        world_open_with((skua_runtime_config){
            .worker_count = 1, .stack_limit = 1, .sim = driver == 1 ? NULL : &sim});
        struct errand *first = errand_start_server(serves_and_waits);
        struct errand *second = errand_start_server(serves_and_waits);
        errand_send(first, 0, 1);
        if (driver == 1) {
            api_wait_steps(world->api, first->pid, 2);
        } else {
            world_settle();
        }
        assert_int_equal(world_send(second->pid, tracked_payload(0, &item)), 0);
        assert_errand_ended(second, SKUA_E_STACK_LIMIT);
        assert_drops(&item, 1, 1);
        errand_send(first, 0, 2);
    }
}

/* ---- one wait after the other ---- */

/* The timer of a receive is taken back, and what is left of that comes to the next call. */
static int receives_and_sleeps(struct errand *errand, skua_context *ctx, skua_event *event)
{
    skua_event *next;
    const uint64_t start = skua_now(ctx);
    if (event->payload.type == 1) {
        CHECK(errand, skua_task_receive(ctx, &next, SECOND) == 0);
        return 0;
    }
    const int error = skua_task_sleep(ctx, 10 * SECOND);
    CHECK(errand, error == 0);
    CHECK(errand, skua_now(ctx) >= start + 10 * SECOND);
    note(errand, noted_error(error));
    return 0;
}

TEST(wait_is_not_ended_by_what_is_left_of_another)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_start_server(receives_and_sleeps);
        errand_send(errand, 1, 0);
        errands_go_on(MILLISECOND);
        errand_send(errand, 1, 0);
        errand_send(errand, 2, 0);
        world_settle();
        assert_noted(errand, 0);
    }
}
