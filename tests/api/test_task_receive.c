/* SPDX-License-Identifier: MIT */
/* What tasks receive, in which order, and what becomes of the rest. */
#include <skua/task.h>

#include "errand.h"
#include "relations.h"
#include "timers.h"

enum { RED = 1, GREEN, BLUE };

static uint64_t number_of(const skua_event *event)
{
    return skua_payload_to_u64(&event->payload);
}

static void note_type(struct errand *errand, skua_context *ctx, uint32_t type, uint64_t timeout_ns)
{
    skua_event *event;
    const int error = skua_task_receive_type(ctx, type, &event, timeout_ns);
    CHECK(errand, (error == 0) == (event != NULL));
    note(errand, event != NULL ? number_of(event) : noted_error(error));
}

/* ---- any event ---- */

static int receives_three(struct errand *errand, skua_context *ctx)
{
    for (int i = 0; i < 3; i++) {
        note(errand, receive_number(ctx, SKUA_FOREVER));
    }
    note(errand, receive_number(ctx, 0));
    note(errand, receive_number(ctx, SKUA_MILLISECOND));
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return 0;
}

TEST(receive_gives_what_arrives_in_order)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(receives_three);
        errand_send(errand, RED, 1);
        errand_send(errand, GREEN, 2);
        errands_go_on(100 * MICROSECOND);
        errand_send(errand, RED, 3);
        errands_go_on(SKUA_SECOND);
        assert_noted(errand, 1, 2, 3, noted_error(SKUA_E_TIMEOUT), noted_error(SKUA_E_TIMEOUT));
        errand_send(errand, RED, 4);
        assert_errand_ended(errand, 0);
        assert_noted(errand, 4);
    }
}

static int receives_in_time(struct errand *errand, skua_context *ctx)
{
    for (int i = 0; i < 20; i++) {
        note(errand, receive_number(ctx, SKUA_SECOND));
    }
    return 0;
}

/* The timers of receives that got something are taken back, and none fires later. */
TEST(receive_in_time_leaves_no_timer)
{
    world_open_virtual();
    struct errand *errand = errand_start(receives_in_time);
    for (uint64_t i = 0; i < 19; i++) {
        world_settle();
        assert_int_equal(timers_armed(), 1);
        errand_send(errand, RED, i);
    }
    world_advance(2 * SKUA_SECOND);
    assert_errand_ended(errand, 0);
    assert_int_equal(timers_armed(), 0);
    assert_int_equal(errand->notes[18], 18);
    assert_int_equal(errand->notes[19], noted_error(SKUA_E_TIMEOUT));
}

static int receives_twice(struct errand *errand, skua_context *ctx)
{
    note(errand, receive_number(ctx, SKUA_SECOND));
    note(errand, receive_number(ctx, 5 * SKUA_SECOND));
    return 0;
}

/* When the task runs, it has a message and, behind that, the end of its time. */
TEST(timer_that_fires_behind_a_message_does_not_end_the_next_receive)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 1});
    struct errand *errand = errand_start(receives_twice);
    world_settle();
    struct actor *holder = actor_start(ACTS(holds(), finishes(0)));
    tally_wait(&holder->held, 1);
    errand_send(errand, RED, 1);
    world_set_clock(world_now() + 2 * SKUA_SECOND);
    actor_let_go(holder);
    world_settle();
    assert_noted(errand, 1);
    errand_send(errand, RED, 2);
    assert_errand_ended(errand, 0);
    assert_noted(errand, 2);
}

/* ---- payloads ---- */

static int takes_every_second(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    skua_payload kept = skua_payload_empty(0);
    for (int i = 0; i < 4; i++) {
        CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
        if (i % 2 == 1) {
            skua_payload_drop(&kept);
            kept = skua_payload_take(&event->payload);
        }
    }
    skua_payload_drop(&kept);
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return 0;
}

TEST(payloads_that_are_not_taken_are_dropped_once)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked items[6] = {0};
        world_open_driver(driver);
        struct errand *errand = errand_start(takes_every_second);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(world_send(errand->pid, tracked_payload(0, &items[i])), 0);
        }
        errands_go_on(100 * MICROSECOND);
        assert_drops(items, 4, 1); /* the first and third with the next receive */
        assert_int_equal(world_send(errand->pid, tracked_payload(0, &items[4])), 0);
        (void)world_send(errand->pid, tracked_payload(0, &items[5]));
        assert_errand_ended(errand, 0);
        world_close();
        assert_drops(items, 6, 1);
    }
}

/* ---- some events ---- */

static int prefers_blue(struct errand *errand, skua_context *ctx)
{
    note_type(errand, ctx, BLUE, SKUA_FOREVER);
    note_type(errand, ctx, GREEN, SKUA_FOREVER);
    note_type(errand, ctx, GREEN, 0);
    note_type(errand, ctx, GREEN, SKUA_MILLISECOND);
    note(errand, receive_number(ctx, 0));
    note(errand, receive_number(ctx, SKUA_FOREVER));
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return 0;
}

TEST(others_stay_in_order_while_a_task_waits_for_one_type)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(prefers_blue);
        errand_send(errand, RED, 1);
        errand_send(errand, GREEN, 2);
        errands_go_on(100 * MICROSECOND);
        errand_send(errand, RED, 3);
        errands_go_on(100 * MICROSECOND);
        assert_noted_nothing(errand);
        errand_send(errand, BLUE, 4);
        errand_send(errand, RED, 5);
        errands_go_on(SKUA_SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, 4, 2, noted_error(SKUA_E_TIMEOUT), noted_error(SKUA_E_TIMEOUT), 1, 3,
                     5);
    }
}

/* Accepts even numbers, and counts how often it was asked about each. */
static bool match_even(void *arg, const skua_event *event)
{
    unsigned *asked = arg;
    asked[number_of(event)]++;
    return number_of(event) % 2 == 0;
}

static int prefers_even(struct errand *errand, skua_context *ctx)
{
    unsigned asked[8] = {0};
    skua_event *event;
    note(errand, 100);
    CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
    for (uint64_t i = 2; i <= 6; i += 2) {
        CHECK(errand, skua_task_receive_if(ctx, match_even, asked, &event, SKUA_FOREVER) == 0);
        note(errand, number_of(event));
    }
    CHECK(errand, skua_task_receive_if(ctx, match_even, asked, &event, 0) == SKUA_E_TIMEOUT);
    CHECK(errand, event == NULL);
    for (size_t i = 2; i <= 6; i += 2) {
        CHECK(errand, asked[i] == 1); /* once, and then it was received */
    }
    CHECK(errand, asked[1] == 4);
    for (int i = 0; i < 4; i++) {
        note(errand, receive_number(ctx, 0));
    }
    return 0;
}

TEST(match_is_asked_once_in_each_receive)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(prefers_even);
        errands_go_on(100 * MICROSECOND);
        for (uint64_t i = 1; i < 8; i++) {
            errand_send(errand, RED, i);
        }
        errands_go_on(2 * SKUA_SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, 100, 2, 4, 6, 1, 3, 5, 7);
    }
}

/* A range of numbers. */
struct range {
    uint64_t first, last;
};

static bool match_range(void *arg, const skua_event *event)
{
    const struct range *range = arg;
    return number_of(event) >= range->first && number_of(event) <= range->last;
}

/* The argument is written where it is used. */
static int prefers_a_range(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    const int error =
        skua_task_receive_if(ctx, match_range, &(struct range){3, 5}, &event, SKUA_FOREVER);
    CHECK(errand, error == 0);
    note(errand, number_of(event));
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return 0;
}

TEST(match_may_have_an_argument_with_commas)
{
    world_open();
    struct errand *errand = errand_start(prefers_a_range);
    errand_send(errand, RED, 9);
    errand_send(errand, RED, 4);
    assert_errand_ended(errand, 0);
    assert_noted(errand, 4, 9);
}

/* ---- what is there ---- */

static int polls_for_its_own(struct errand *errand, skua_context *ctx)
{
    note(errand, receive_number(ctx, SKUA_FOREVER)); /* two more are behind */
    CHECK(errand, skua_send(ctx, skua_self(ctx), skua_payload_u64(BLUE, 9)) == 0);
    note_type(errand, ctx, BLUE, 0);
    note_type(errand, ctx, BLUE, 0);
    note(errand, receive_number(ctx, 0));
    note(errand, receive_number(ctx, 0));
    note(errand, receive_number(ctx, 0));
    return 0;
}

TEST(receive_without_time_sees_all_that_has_arrived)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_start(polls_for_its_own);
        for (uint64_t i = 1; i <= 3; i++) {
            errand_send(errand, RED, i);
        }
        assert_errand_ended(errand, 0);
        assert_noted(errand, 1, 9, noted_error(SKUA_E_TIMEOUT), 2, 3, noted_error(SKUA_E_TIMEOUT));
    }
}

enum { CROWD = 2000 };

static int polls_behind_a_crowd(struct errand *errand, skua_context *ctx)
{
    note_type(errand, ctx, BLUE, 0);
    for (uint64_t i = 0; i < CROWD; i++) {
        CHECK(errand, receive_number(ctx, 0) == i);
    }
    note(errand, receive_number(ctx, 0));
    return 0;
}

TEST(receive_without_time_looks_behind_a_crowd_of_others)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_start(polls_behind_a_crowd);
        for (uint64_t i = 0; i < CROWD; i++) {
            errand_send(errand, RED, i);
        }
        errand_send(errand, BLUE, 77);
        errands_go_on(SKUA_SECOND);
        assert_errand_ended(errand, 0);
        assert_noted(errand, 77, noted_error(SKUA_E_TIMEOUT));
    }
}

/* ---- limits ---- */

static int waits_with_a_full_mailbox(struct errand *errand, skua_context *ctx)
{
    note_type(errand, ctx, BLUE, SKUA_SECOND);
    note(errand, receive_number(ctx, 0));
    note_type(errand, ctx, BLUE, SKUA_FOREVER);
    return 0;
}

TEST(events_put_aside_keep_their_place_in_the_mailbox)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked items[5] = {0};
        world_open_driver(driver);
        struct errand *errand = errand_new(waits_with_a_full_mailbox);
        errand->type.mailbox_limit = 4;
        errand_submit(errand);
        for (size_t i = 0; i < 4; i++) {
            errands_go_on(100 * MICROSECOND);
            assert_int_equal(world_send(errand->pid, tracked_payload(RED, &items[i])), 0);
        }
        errands_go_on(100 * MICROSECOND);
        assert_int_equal(world_send(errand->pid, tracked_payload(BLUE, &items[4])),
                         SKUA_E_MAILBOX_FULL);
        assert_noted_nothing(errand);
        errands_go_on(2 * SKUA_SECOND);
        assert_int_equal(errand->notes[0], noted_error(SKUA_E_TIMEOUT));
        errand_send(errand, BLUE, 7); /* there is a place again */
        assert_errand_ended(errand, 0);
        assert_int_equal(errand->notes[2], 7);
        world_close();
        assert_drops(items, 5, 1);
    }
}

/* A task that always has to put others aside does not look at them again: this would take minutes
 * otherwise. */
static int sleeps_between_receives(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    for (uint64_t i = 0; i < errand->number; i++) {
        CHECK(errand, receive_number(ctx, SKUA_FOREVER) == i);
        CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    }
    return 0;
}

TEST(waits_do_not_look_at_what_was_put_aside_before)
{
    world_open_with((skua_runtime_config){.worker_count = 1, .mailbox_limit = 1 << 20});
    struct errand *errand = errand_new(sleeps_between_receives);
    errand->number = 100000;
    errand_submit(errand);
    for (uint64_t i = 0; i < errand->number; i++) {
        errand_send(errand, RED, i);
    }
    assert_errand_ended(errand, 0);
}
