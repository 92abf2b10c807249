/* SPDX-License-Identifier: MIT */
/* What tasks receive besides messages: completions of their yields, ticks, calls, abandons and
 * exits; and calls that tasks make. */
#include <skua/task.h>

#include "errand.h"
#include "relations.h"
#include "timers.h"

/* Receives an event and notes its type and tag. */
static skua_event *note_event(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    const int error = skua_task_receive(ctx, &event, 100 * SECOND);
    CHECK(errand, error == 0);
    if (error == 0) {
        note(errand, event->type);
    }
    return event;
}

static bool match_type(void *arg, const skua_event *event)
{
    const uint32_t *type = arg;
    return event->type == *type;
}

static void note_event_of(struct errand *errand, skua_context *ctx, uint32_t type)
{
    skua_event *event;
    const int error = skua_task_receive_if(ctx, match_type, &type, &event, 100 * SECOND);
    CHECK(errand, error == 0);
    note(errand, error == 0 ? event->type : noted_error(error));
}

/* ---- select ---- */

static int selects(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_yield_sleep(ctx, 7, 30 * MILLISECOND) == 0);
    CHECK(errand, skua_yield_sleep(ctx, 8, 10 * MILLISECOND) == 0);
    CHECK(errand, skua_yield_ticker(ctx, 9, 20 * MILLISECOND) == 0);
    for (int i = 0; i < 3; i++) {
        const skua_event *event = note_event(errand, ctx);
        note(errand, event != NULL ? event->tag : 0);
    }
    CHECK(errand, skua_yield_cancel(ctx, 9) == 0);
    const skua_event *event = note_event(errand, ctx);
    CHECK(errand, event != NULL && event->tag == 9 && event->error == SKUA_E_CANCELLED);
    note(errand, receive_number(ctx, SECOND));
    return 0;
}

TEST(task_receives_completions_and_ticks_in_the_order_of_their_times)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_new(selects);
        assert_result(errand_run(errand), 0);
        assert_noted(errand, SKUA_EVENT_COMPLETION, 8, SKUA_EVENT_TICK, 9, SKUA_EVENT_COMPLETION, 7,
                     SKUA_EVENT_COMPLETION, noted_error(SKUA_E_TIMEOUT));
    }
}

static int selects_later(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_yield_sleep(ctx, 7, MILLISECOND) == 0);
    CHECK(errand, skua_yield_ticker(ctx, 9, 10 * MILLISECOND) == 0);
    CHECK(errand, skua_task_sleep(ctx, 15 * MILLISECOND) == 0);
    note_event_of(errand, ctx, SKUA_EVENT_TICK);
    const skua_event *event = note_event(errand, ctx);
    CHECK(errand, event != NULL && event->tag == 7);
    event = note_event(errand, ctx);
    CHECK(errand, event != NULL && event->tag == 9 && skua_tick_count(event) == 1);
    return 0;
}

TEST(task_receives_later_what_completed_while_it_waited)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_new(selects_later);
        assert_result(errand_run(errand), 0);
        assert_noted(errand, SKUA_EVENT_TICK, SKUA_EVENT_COMPLETION, SKUA_EVENT_TICK);
    }
}

static int continues_by_itself(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_continue(ctx) == 0);
    (void)note_event(errand, ctx);
    CHECK(errand, skua_continue(ctx) == 0);
    CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    note(errand, receive_number(ctx, 0));
    return 0;
}

TEST(task_that_continues_receives_that_unless_it_waits_for_something_else)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(continues_by_itself);
        errands_go_on(SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, SKUA_EVENT_CONTINUE, noted_error(SKUA_E_TIMEOUT));
    }
}

/* ---- calls ---- */

static int answers_twice_as_much(struct errand *errand, skua_context *ctx)
{
    for (uint64_t i = 0; i < errand->number; i++) {
        skua_event *event;
        CHECK(errand, skua_task_receive_type(ctx, 5, &event, SKUA_FOREVER) == 0);
        CHECK(errand, event->type == SKUA_EVENT_CALL);
        const uint64_t number = skua_payload_to_u64(&event->payload);
        const skua_request request = event->request;
        CHECK(errand, skua_task_sleep(ctx, MILLISECOND) == 0);
        CHECK(errand, skua_reply(ctx, request, 0, skua_payload_u64(6, 2 * number)) == 0);
    }
    return 0;
}

static int calls_three_times(struct errand *errand, skua_context *ctx)
{
    for (uint64_t i = 1; i <= 3; i++) {
        skua_payload reply;
        CHECK(errand, skua_task_call(ctx, errand->other, skua_payload_u64(5, i), SKUA_FOREVER,
                                     &reply) == 0);
        CHECK(errand, reply.type == 6);
        note(errand, skua_payload_to_u64(&reply));
        skua_payload_drop(&reply);
    }
    return 0;
}

TEST(task_calls_a_task)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *server = errand_new(answers_twice_as_much);
        server->number = 3;
        errand_submit(server);
        struct errand *client = errand_new(calls_three_times);
        client->other = server->pid;
        errand_submit(client);
        errands_go_on(SECOND);
        errands_go_on(SECOND);
        errands_go_on(SECOND);
        assert_errand_ended(client, 0);
        assert_errand_ended(server, 0);
        assert_noted(client, 2, 4, 6);
    }
}

static int calls_itself(struct errand *errand, skua_context *ctx)
{
    skua_payload reply;
    CHECK(errand, skua_task_call(ctx, skua_self(ctx), tracked_payload(5, &errand->item),
                                 SKUA_FOREVER, &reply) == SKUA_E_INVALID);
    CHECK(errand, reply.storage == SKUA_PAYLOAD_EMPTY);
    note(errand, receive_number(ctx, 0));
    return 0;
}

TEST(task_cannot_call_itself)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(calls_itself);
        errands_go_on(SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, noted_error(SKUA_E_TIMEOUT));
        world_close();
        assert_drops(&errand->item, 1, 1);
    }
}

static int calls_once(struct errand *errand, skua_context *ctx)
{
    skua_payload reply;
    note(errand, 1);
    const int error =
        skua_task_call(ctx, errand->other, tracked_payload(0, &errand->item), SKUA_FOREVER, &reply);
    note(errand, noted_error(error));
    note(errand, skua_payload_to_u64(&reply));
    skua_payload_drop(&reply);
    CHECK(errand, skua_task_shield(ctx, true) == 0);
    CHECK(errand, skua_task_sleep(ctx, SECOND) == 0);
    note(errand, receive_number(ctx, 0));
    return error;
}

static struct errand *start_caller(const struct actor *server)
{
    struct errand *errand = errand_new(calls_once);
    errand->other = server->pid;
    errand_submit(errand);
    errands_go_on(MILLISECOND);
    return errand;
}

TEST(answer_to_a_cancelled_call_is_dropped)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked answer = {0};
        world_open_driver(driver);
        struct actor *server = server_start(ACTS(expects(request(0))));
        struct errand *errand = start_caller(server);
        assert_int_equal(world_cancel(errand->pid, SKUA_E_USER), 0);
        errands_go_on(MILLISECOND);
        actor_tell(server, ACTS(refused(answers_item(0, &answer), SKUA_E_LATE)));
        errands_go_on(2 * SECOND);
        assert_errand_ended(errand, SKUA_E_USER);
        assert_noted(errand, 1, noted_error(SKUA_E_CANCELLED), 0, noted_error(SKUA_E_TIMEOUT));
        world_close();
        assert_drops(&answer, 1, 1);
        assert_drops(&errand->item, 1, 1);
    }
}

TEST(call_ends_with_its_server)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *server = server_start(ACTS(expects(request(0))));
        struct errand *errand = start_caller(server);
        actor_tell(server, ACTS(fails(SKUA_E_USER)));
        errands_go_on(2 * SECOND);
        assert_errand_ended(errand, SKUA_E_PEER_ENDED);
        assert_noted(errand, 1, noted_error(SKUA_E_PEER_ENDED), (uint64_t)SKUA_E_USER,
                     noted_error(SKUA_E_TIMEOUT));
    }
}

static int serves_by_a_call(struct errand *errand, skua_context *ctx)
{
    skua_payload reply;
    const skua_event *event = note_event(errand, ctx);
    const skua_request request = event->request;
    const int error = skua_task_call_for(ctx, request, errand->other, skua_payload_u64(0, 1),
                                         SKUA_FOREVER, &reply);
    note(errand, noted_error(error));
    note(errand, skua_payload_to_u64(&reply));
    CHECK(errand, skua_reply(ctx, request, error, reply) == (error == 0 ? 0 : SKUA_E_LATE));
    return 0;
}

TEST(task_calls_on_behalf_of_a_request)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *backend = server_start(ACTS(expects(request(1)), answers(0, 42)));
        struct errand *errand = errand_new(serves_by_a_call);
        errand->other = backend->pid;
        errand_submit(errand);
        struct actor *client = actor_start(ACTS(asks(3, stranger(errand->pid), 1)));
        errands_go_on(SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, SKUA_EVENT_CALL, 0, 42);
        assert_saw(client, completion_of(3, 0, 42));
    }
}

TEST(call_on_behalf_of_a_request_ends_with_that)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct actor *backend = server_start(ACTS(expects(request(1))));
        struct errand *errand = errand_new(serves_by_a_call);
        errand->other = backend->pid;
        errand_submit(errand);
        struct actor *client = actor_start(ACTS(asks(3, stranger(errand->pid), 1)));
        errands_go_on(MILLISECOND);
        actor_tell(client, ACTS(cancels(3)));
        errands_go_on(MILLISECOND);
        assert_errand_ended(errand, 0);
        assert_int_equal(errand->notes[1], noted_error(SKUA_E_CANCELLED));
    }
}

/* Both calls end at the same instant, so one worker has the timers of both: of two workers one
 * could see to the request before the other has fired. */
TEST(call_on_behalf_of_a_request_ends_at_its_deadline)
{
    FOR_ROUNDS (driver, DRIVERS) {
        if (driver == 1) {
            world_open_virtual_with((skua_runtime_config){.worker_count = 1});
        } else {
            world_open_sim(driver, SIM_NO_FAULTS);
        }
        struct actor *backend = server_start(ACTS(expects(request(1))));
        struct errand *errand = errand_new(serves_by_a_call);
        errand->other = backend->pid;
        errand_submit(errand);
        (void)actor_start(ACTS(within(MILLISECOND, asks(3, stranger(errand->pid), 1))));
        errands_go_on(SECOND);
        errands_go_on(SECOND);
        assert_errand_ended(errand, 0);
        assert_int_equal(errand->notes[1], noted_error(SKUA_E_TIMEOUT));
    }
}

/* ---- abandons and exits ---- */

static int hears_while_it_sleeps(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_link(ctx, errand->other, SKUA_LINK_TELL, 5, NULL) == 0);
    const skua_event *event = note_event(errand, ctx);
    const skua_request request = event->request;
    CHECK(errand, skua_task_sleep(ctx, 10 * SECOND) == 0); /* meanwhile they come */
    event = note_event(errand, ctx);
    CHECK(errand, event->request.bits == request.bits);
    event = note_event(errand, ctx);
    CHECK(errand, event->tag == 5 && event->error == SKUA_E_USER);
    CHECK(errand, event->from.bits == errand->other.bits);
    return 0;
}

static int hears_by_match(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_link(ctx, errand->other, SKUA_LINK_TELL, 5, NULL) == 0);
    (void)note_event(errand, ctx);
    note_event_of(errand, ctx, SKUA_EVENT_ABANDON);
    note_event_of(errand, ctx, SKUA_EVENT_EXIT);
    return 0;
}

static int hears_by_match_late(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_link(ctx, errand->other, SKUA_LINK_TELL, 5, NULL) == 0);
    (void)note_event(errand, ctx);
    CHECK(errand, skua_task_sleep(ctx, 10 * SECOND) == 0);
    note_event_of(errand, ctx, SKUA_EVENT_EXIT);
    note_event_of(errand, ctx, SKUA_EVENT_ABANDON);
    return 0;
}

static void play_abandon_and_exit(uint64_t driver, errand_fn *function, uint32_t second,
                                  uint32_t third)
{
    world_open_driver(driver);
    struct actor *other = actor_start(NO_ACTS);
    struct errand *errand = errand_new(function);
    errand->type.abandons = true;
    errand->other = other->pid;
    errand_submit(errand);
    struct actor *client = actor_start(ACTS(within(SECOND, asks(3, stranger(errand->pid), 1))));
    errands_go_on(2 * SECOND);
    actor_tell(other, ACTS(fails(SKUA_E_USER)));
    errands_go_on(20 * SECOND);
    assert_errand_ended(errand, 0);
    assert_noted(errand, SKUA_EVENT_CALL, second, third);
    assert_saw(client, failure(3, SKUA_E_TIMEOUT));
}

TEST(task_receives_abandons_and_exits)
{
    FOR_ROUNDS (driver, DRIVERS) {
        play_abandon_and_exit(driver, hears_by_match, SKUA_EVENT_ABANDON, SKUA_EVENT_EXIT);
    }
}

TEST(abandons_and_exits_are_put_aside)
{
    FOR_ROUNDS (driver, DRIVERS) {
        play_abandon_and_exit(driver, hears_while_it_sleeps, SKUA_EVENT_ABANDON, SKUA_EVENT_EXIT);
    }
}

TEST(abandons_and_exits_that_were_put_aside_can_be_matched)
{
    FOR_ROUNDS (driver, DRIVERS) {
        play_abandon_and_exit(driver, hears_by_match_late, SKUA_EVENT_EXIT, SKUA_EVENT_ABANDON);
    }
}

/* A call that nobody waits for any more does not hide what stands behind it. */
static int prefers_type_five(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    CHECK(errand, skua_task_sleep(ctx, 10 * SECOND) == 0);
    CHECK(errand, skua_task_receive_type(ctx, 5, &event, SECOND) == 0);
    CHECK(errand, event != NULL && event->type == SKUA_EVENT_MESSAGE);
    note(errand, receive_number(ctx, 0));
    return 0;
}

static int calls_for_a_second(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_call(ctx, errand->other, skua_payload_u64(5, 1), SECOND, NULL) ==
                      SKUA_E_TIMEOUT);
    return 0;
}

TEST(call_that_was_put_aside_and_given_up_is_passed_over)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(prefers_type_five);
        struct errand *client = errand_new(calls_for_a_second);
        client->other = errand->pid;
        errand_submit(client);
        errands_go_on(100 * MICROSECOND);
        errand_send(errand, 4, 11);
        errand_send(errand, 5, 12);
        errands_go_on(2 * SECOND);
        assert_errand_ended(client, 0); /* only now is the call given up, whichever worker had it */
        errands_go_on(20 * SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, 11);
    }
}
