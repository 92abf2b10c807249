/* SPDX-License-Identifier: MIT */
/* Tasks that are asked to end: by a cancel, or because the runtime stops. */
#include "relations.h"
#include "task_waits.h"

#define REASON (SKUA_E_USER - 3)

/* ---- every wait ---- */

static int waits_until_cancelled(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    note(errand, 1);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_CANCELLED);
    task_waits_release();
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_CANCELLED);
    CHECK(errand, wait->wait(ctx, SKUA_SECOND) == SKUA_E_CANCELLED);
    CHECK(errand, wait->wait(ctx, 0) == SKUA_E_CANCELLED);
    CHECK(errand, skua_task_pause(ctx) == SKUA_E_CANCELLED);
    note(errand, 2);
    return SKUA_E_CANCELLED;
}

TEST(cancel_ends_every_wait)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        struct errand *errand = errand_start_for(waits_until_cancelled, task_waits_open(round));
        assert_noted(errand, 1);
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_errand_ended(errand, REASON);
        assert_noted(errand, 2);
        assert_int_equal(errand->exit_cause.bits, errand->pid.bits);
    }
}

static int watches_until_cancelled(struct errand *errand, skua_context *ctx)
{
    int exit_error = 1;
    skua_payload result;
    CHECK(errand, skua_task_monitor(ctx, errand->other, SKUA_FOREVER, &exit_error) == 0);
    note(errand, noted_error(exit_error));
    CHECK(errand, skua_task_ending(ctx) == 0);
    CHECK(errand, skua_task_join(ctx, errand->other, SKUA_FOREVER, &exit_error, &result) ==
                      SKUA_E_NO_PROCESS);
    CHECK(errand, exit_error == 0);
    const skua_pid next = {errand->number};
    CHECK(errand, skua_task_join(ctx, next, SKUA_FOREVER, &exit_error, &result) == 0);
    CHECK(errand, result.storage == SKUA_PAYLOAD_EMPTY);
    note(errand, noted_error(exit_error));
    CHECK(errand, skua_task_ending(ctx) == 0);
    CHECK(errand, skua_task_monitor(ctx, *(skua_pid *)errand->arg, SKUA_FOREVER, &exit_error) ==
                      SKUA_E_CANCELLED);
    CHECK(errand, exit_error == 0);
    CHECK(errand, skua_task_ending(ctx) == SKUA_E_CANCELLED);
    CHECK(errand, skua_task_shield(ctx, true) == 0);
    CHECK(errand, skua_task_ending(ctx) == 0);
    return SKUA_E_CANCELLED;
}

static int waits_for_anything(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    (void)errand;
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

/* Others end in the same ways. */
TEST(cancel_of_a_task_is_told_from_that_of_another)
{
    FOR_ROUNDS (seed, 10) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *others[3];
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            others[i] = errand_start(waits_for_anything);
        }
        struct errand *errand = errand_new(watches_until_cancelled);
        errand->other = others[0]->pid;
        errand->number = others[1]->pid.bits;
        errand->arg = &others[2]->pid;
        errand_submit(errand);
        world_settle();
        assert_int_equal(world_cancel(others[0]->pid, 0), 0);
        world_settle();
        assert_noted(errand, noted_error(SKUA_E_CANCELLED));
        assert_int_equal(world_terminate(others[1]->pid), 0);
        world_settle();
        assert_noted(errand, noted_error(SKUA_E_TERMINATED));
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_errand_ended(errand, REASON);
    }
}

static int waits_with_a_limit(struct errand *errand, skua_context *ctx)
{
    note(errand, 1);
    CHECK(errand, wait_of(errand)->wait(ctx, 100 * SKUA_SECOND) == SKUA_E_CANCELLED);
    return 0;
}

/* The function may take it for a success. */
TEST(cancel_ends_every_wait_that_has_a_timeout)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        struct errand *errand = errand_start_for(waits_with_a_limit, task_waits_open(round));
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_errand_ended(errand, 0);
    }
}

TEST(stop_ends_every_wait)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        const struct task_wait *wait = task_waits_open(round);
        if (wait->has_peer) {
            continue; /* which is stopped, too, perhaps before */
        }
        struct errand *errand = errand_start_for(waits_until_cancelled, wait);
        world_stop();
        assert_int_equal(errand->exit_error, SKUA_E_STOPPED);
        assert_int_equal(errand->exit_cause.bits, 0);
        assert_noted(errand, 1, 2);
    }
}

/* ---- shields ---- */

static int tidies_up(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    note(errand, 1);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_CANCELLED);
    CHECK(errand, skua_task_shield(ctx, true) == 0);
    CHECK(errand, skua_task_sleep(ctx, 1000) == 0);
    CHECK(errand, skua_task_pause(ctx) == 0);
    if (wait->has_timeout) {
        CHECK(errand, wait->wait(ctx, 1000) == SKUA_E_TIMEOUT);
    }
    note(errand, receive_number(ctx, 0));
    CHECK(errand, skua_task_shield(ctx, false) == 0);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_CANCELLED);
    return SKUA_E_CANCELLED;
}

/* Nothing is left of the wait that was cancelled: the one in the shield has its own end. */
TEST(shield_lets_waits_work_after_a_cancel)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        struct errand *errand = errand_start_for(tidies_up, task_waits_open(round));
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_errand_ended(errand, REASON);
        assert_noted(errand, 1, noted_error(SKUA_E_TIMEOUT));
    }
}

static int is_shielded(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_shield(ctx, true) == 0);
    note(errand, receive_number(ctx, SKUA_FOREVER));
    note(errand, receive_number(ctx, SKUA_FOREVER));
    CHECK(errand, skua_task_shield(ctx, false) == 0);
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return 0;
}

TEST(shield_puts_a_cancel_off)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(is_shielded);
        world_settle();
        errand_send(errand, 0, 1);
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_int_equal(world_cancel(errand->pid, REASON - 1), 0);
        world_settle();
        assert_noted(errand, 1);
        errand_send(errand, 0, 2);
        world_settle();
        assert_noted(errand, 2, noted_error(SKUA_E_CANCELLED));
        assert_errand_ended(errand, 0);
    }
}

/* ---- when it comes ---- */

static int receives_until_error(struct errand *errand, skua_context *ctx)
{
    uint64_t number;
    do {
        number = receive_number(ctx, SKUA_FOREVER);
        note(errand, number);
    } while (number != noted_error(SKUA_E_CANCELLED));
    return SKUA_E_CANCELLED;
}

TEST(cancel_comes_after_what_was_sent_before)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(receives_until_error);
        world_settle();
        errand_send(errand, 0, 1);
        errand_send(errand, 0, 2);
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        (void)world_send(errand->pid, skua_payload_u64(0, 3));
        assert_errand_ended(errand, REASON);
        assert_noted(errand, 1, 2, noted_error(SKUA_E_CANCELLED));
    }
}

TEST(cancel_before_the_first_step_is_told_by_the_first_wait)
{
    FOR_ROUNDS (seed, 10) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_start(receives_until_error);
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_errand_ended(errand, REASON);
        assert_noted(errand, noted_error(SKUA_E_CANCELLED));
    }
}

static int cancels_itself(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_cancel(ctx, skua_self(ctx), REASON) == 0);
    CHECK(errand, skua_self(ctx).bits == errand->pid.bits);
    return receives_until_error(errand, ctx);
}

TEST(cancel_of_a_task_that_runs_is_told_by_its_next_wait)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(cancels_itself);
        assert_errand_ended(errand, REASON);
        assert_noted(errand, noted_error(SKUA_E_CANCELLED));
    }
}

static int ends_otherwise(struct errand *errand, skua_context *ctx)
{
    note(errand, receive_number(ctx, SKUA_FOREVER));
    return SKUA_E_USER;
}

TEST(cancelled_task_may_end_with_an_error_of_its_own)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(ends_otherwise);
        world_settle();
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_errand_ended(errand, SKUA_E_USER);
    }
}

/* ---- types that receive it ---- */

/* Notes the types of all events, and ends with a cancel. */
static int receives_a_cancel(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    do {
        CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0); /* it comes meanwhile */
        CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
        note(errand, event->type);
    } while (event->type != SKUA_EVENT_CANCEL);
    note(errand, noted_error(event->error));
    return 0;
}

static bool match_cancel(void *arg, const skua_event *event)
{
    (void)arg;
    return event->type == SKUA_EVENT_CANCEL;
}

static int waits_for_a_cancel(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    note(errand, 1);
    CHECK(errand, skua_task_receive_if(ctx, match_cancel, NULL, &event, SKUA_FOREVER) == 0);
    note(errand, noted_error(event->error));
    note(errand, receive_number(ctx, 0));
    return 0;
}

static struct errand *start_with_events(errand_fn *function)
{
    struct errand *errand = errand_new(function);
    errand->type.cancel = SKUA_CANCEL_EVENT;
    errand_submit(errand);
    return errand;
}

TEST(cancel_is_an_event_for_types_that_say_so)
{
    FOR_ROUNDS (seed, 10) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = start_with_events(receives_a_cancel);
        struct errand *matching = start_with_events(waits_for_a_cancel);
        errands_go_on(SKUA_MILLISECOND);
        errand_send(errand, 0, 1);
        errand_send(matching, 0, 1);
        assert_int_equal(world_cancel(errand->pid, REASON), 0);
        assert_int_equal(world_cancel(matching->pid, REASON), 0);
        errands_go_on(4 * SKUA_SECOND);
        assert_noted(errand, SKUA_EVENT_MESSAGE, SKUA_EVENT_CANCEL, noted_error(REASON));
        assert_noted(matching, 1, noted_error(REASON), 1);
        assert_errand_ended(errand, 0);
        assert_errand_ended(matching, 0);
    }
}

TEST(stop_is_an_event_for_types_that_say_so)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = start_with_events(waits_for_a_cancel);
        world_settle();
        errand_send(errand, 0, 7);
        world_settle();
        world_stop();
        assert_noted(errand, 1, noted_error(SKUA_E_STOPPED), 7);
    }
}

/* The stop's event needs no memory, even if it has to wait. */
TEST(stop_waits_until_the_task_receives)
{
    FOR_ROUNDS (seed, 10) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = start_with_events(receives_a_cancel);
        errands_go_on(SKUA_MILLISECOND);
        counting_allocator_fail_from(&world->api->memory, 1);
        world_stop();
        counting_allocator_fail_never(&world->api->memory);
        assert_noted(errand, SKUA_EVENT_CANCEL, noted_error(SKUA_E_STOPPED));
    }
}
