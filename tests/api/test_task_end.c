/* SPDX-License-Identifier: MIT */
/* Tasks that have to end: they are terminated, or a linked process has failed. */
#include "relations.h"
#include "stalls.h"
#include "task_waits.h"

/* ---- every wait ---- */

static int waits_until_ended(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    note(errand, 1);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_TERMINATED);
    task_waits_release();
    CHECK(errand, skua_task_shield(ctx, true) == 0);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_TERMINATED);
    CHECK(errand, wait->wait(ctx, SKUA_SECOND) == SKUA_E_TERMINATED);
    CHECK(errand, wait->wait(ctx, 0) == SKUA_E_TERMINATED);
    CHECK(errand, skua_task_pause(ctx) == SKUA_E_TERMINATED);
    CHECK(errand, skua_task_sleep(ctx, 0) == SKUA_E_TERMINATED);
    note(errand, 2);
    return SKUA_E_USER; /* which means nothing */
}

TEST(terminate_ends_every_wait)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        struct errand *errand = errand_start_for(waits_until_ended, task_waits_open(round));
        assert_int_equal(world_terminate(errand->pid), 0);
        assert_errand_ended(errand, SKUA_E_TERMINATED);
        assert_noted(errand, 1, 2);
    }
}

/* Links itself to the other first. */
static int waits_with_a_link(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_link(ctx, errand->other, SKUA_LINK_BOTH, 0, NULL) == 0);
    return waits_until_ended(errand, ctx);
}

TEST(end_of_a_linked_process_ends_every_wait)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        const struct task_wait *wait = task_waits_open(round);
        struct actor *peer = actor_start(NO_ACTS);
        struct errand *errand = errand_for(waits_with_a_link, wait);
        errand->other = peer->pid;
        errand_submit(errand);
        errand_await_wait(errand);
        actor_tell(peer, ACTS(fails(SKUA_E_USER - 5)));
        assert_errand_ended(errand, SKUA_E_USER - 5);
        assert_int_equal(errand->exit_cause.bits, peer->pid.bits);
        assert_noted(errand, 1, 2);
    }
}

static int is_cancelled_and_waits(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    note(errand, 1);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_CANCELLED);
    CHECK(errand, skua_task_shield(ctx, true) == 0);
    note(errand, 2);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_TERMINATED);
    return SKUA_E_CANCELLED;
}

TEST(terminate_ends_waits_in_a_shield)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        struct errand *errand = errand_start_for(is_cancelled_and_waits, task_waits_open(round));
        assert_noted(errand, 1);
        assert_int_equal(world_cancel(errand->pid, SKUA_E_USER), 0);
        errand_await_wait(errand);
        assert_noted(errand, 2);
        assert_int_equal(world_terminate(errand->pid), 0);
        assert_errand_ended(errand, SKUA_E_TERMINATED);
    }
}

/* ---- when it comes ---- */

static int notes_what_it_receives(struct errand *errand, skua_context *ctx)
{
    note(errand, 100);
    for (int i = 0; i < 3; i++) {
        note(errand, receive_number(ctx, SKUA_FOREVER));
    }
    return 0;
}

TEST(terminate_before_the_first_step_leaves_nothing_to_end)
{
    FOR_ROUNDS (seed, 10) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_start(notes_what_it_receives);
        assert_int_equal(world_terminate(errand->pid), 0);
        assert_errand_ended(errand, SKUA_E_TERMINATED);
        assert_noted_nothing(errand);
    }
}

TEST(terminate_of_a_queued_task_drops_what_it_has_not_received)
{
    FOR_ROUNDS (seed, 10) {
        struct tracked items[2] = {0};
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *errand = errand_start(notes_what_it_receives);
        world_settle();
        assert_noted(errand, 100);
        for (size_t i = 0; i < COUNT_OF(items); i++) {
            assert_int_equal(world_send(errand->pid, tracked_payload(0, &items[i])), 0);
        }
        assert_int_equal(world_terminate(errand->pid), 0);
        assert_errand_ended(errand, SKUA_E_TERMINATED);
        assert_noted(errand, noted_error(SKUA_E_TERMINATED), noted_error(SKUA_E_TERMINATED),
                     noted_error(SKUA_E_TERMINATED));
        world_close();
        assert_drops(items, COUNT_OF(items), 1);
    }
}

static int terminates_itself(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_terminate(ctx, skua_self(ctx)) == 0);
    return errand->number != 0 ? 0 : notes_what_it_receives(errand, ctx);
}

TEST(terminate_of_a_task_that_runs_ends_it_at_its_next_wait_or_return)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *waiting = errand_start(terminates_itself);
        struct errand *returning = errand_new(terminates_itself);
        returning->number = 1;
        errand_submit(returning);
        assert_errand_ended(waiting, SKUA_E_TERMINATED);
        assert_errand_ended(returning, SKUA_E_TERMINATED);
        assert_noted(waiting, 100, noted_error(SKUA_E_TERMINATED), noted_error(SKUA_E_TERMINATED),
                     noted_error(SKUA_E_TERMINATED));
    }
}

TEST(stop_that_is_out_of_patience_ends_tasks)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        const struct task_wait *wait = task_waits_open(round);
        struct errand *errand = errand_for(waits_until_ended, wait);
        errand->type.cancel = SKUA_CANCEL_EVENT;
        if (wait == &task_waits[0] || wait->has_peer) {
            continue; /* it would receive the cancel; or hear of its peer's end */
        }
        errand_submit(errand);
        errand_await_wait(errand);
        world_expect_survivors();
        world_close();
        assert_noted(errand, 1, 2);
        assert_int_equal(errand->exit_error, SKUA_E_TERMINATED);
    }
}

/* ---- what works meanwhile ---- */

static int does_what_close_may_do(struct errand *errand, skua_context *ctx)
{
    struct tracked *items = errand->arg;
    skua_event *event;
    skua_pid pid;
    CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0); /* a call */
    const skua_request request = event->request;
    CHECK(errand, skua_task_sleep(ctx, SKUA_DURATION_MAX) == SKUA_E_TERMINATED);
    CHECK(errand, skua_send(ctx, errand->other, tracked_payload(0, &items[0])) == 0);
    CHECK(errand, skua_now(ctx) != 0);
    CHECK(errand, skua_self(ctx).bits == errand->pid.bits);
    CHECK(errand, skua_reply(ctx, request, 0, tracked_payload(0, &items[1])) == 0);
    CHECK(errand, skua_reply(ctx, request, 0, skua_payload_empty(0)) == SKUA_E_LATE);
    CHECK(errand, skua_yield_sleep(ctx, 1, 0) == SKUA_E_CONTEXT);
    CHECK(errand, skua_continue(ctx) == SKUA_E_CONTEXT);
    CHECK(errand, skua_done(ctx, tracked_payload(0, &items[2])) == SKUA_E_CONTEXT);
    CHECK(errand,
          skua_spawn(ctx, &api_idler, tracked_payload(0, &items[3]), &pid) == SKUA_E_CONTEXT);
    CHECK(errand, skua_task_call(ctx, errand->other, tracked_payload(0, &items[4]), SKUA_FOREVER,
                                 NULL) == SKUA_E_TERMINATED);
    return 0;
}

TEST(ended_task_may_do_what_close_may_do)
{
    FOR_ROUNDS (driver, DRIVERS) {
        struct tracked *items = test_alloc(5 * sizeof *items);
        world_open_driver(driver);
        struct actor *other = actor_start(NO_ACTS);
        struct errand *errand = errand_new(does_what_close_may_do);
        errand->arg = items;
        errand->other = other->pid;
        errand_submit(errand);
        struct actor *caller = actor_start(ACTS(asks(1, stranger(errand->pid), 2)));
        errands_go_on(SKUA_MILLISECOND);
        assert_int_equal(world_terminate(errand->pid), 0);
        assert_errand_ended(errand, SKUA_E_TERMINATED);
        errands_go_on(SKUA_MILLISECOND);
        assert_saw(other, message(0, 0));
        assert_saw(caller, completion_of(1, 0, 0));
        world_close();
        assert_drops(items, 5, 1);
    }
}

/* ---- defers ---- */

static struct errand *deferring;

static void note_deferred(void *arg)
{
    note(deferring, (uintptr_t)arg);
}

static int defers_three(struct errand *errand, skua_context *ctx)
{
    deferring = errand;
    for (uintptr_t i = 1; i <= 3; i++) {
        CHECK(errand, skua_task_defer(ctx, note_deferred, (void *)i) == 0);
    }
    note(errand, receive_number(ctx, SKUA_FOREVER));
    CHECK(errand, skua_task_defer(ctx, note_deferred, (void *)4) == 0);
    return (int)errand->number;
}

TEST(defers_run_when_the_function_returns_the_last_one_first)
{
    FOR_ROUNDS (round, 2) {
        const int returns = round == 1 ? 0 : SKUA_E_USER;
        world_open_virtual();
        struct errand *errand = errand_new(defers_three);
        errand->number = (uint64_t)(int64_t)returns;
        errand_submit(errand);
        world_settle();
        assert_noted_nothing(errand);
        errand_send(errand, 0, 7);
        assert_errand_ended(errand, returns);
        assert_noted(errand, 7, 4, 3, 2, 1);
    }
}

TEST(defers_run_when_a_task_is_ended)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(defers_three);
        world_settle();
        assert_int_equal(world_terminate(errand->pid), 0);
        assert_errand_ended(errand, SKUA_E_TERMINATED);
        assert_noted(errand, noted_error(SKUA_E_TERMINATED), 4, 3, 2, 1);
    }
}

TEST(defers_run_when_a_task_is_cancelled_or_stopped)
{
    FOR_ROUNDS (driver, DRIVERS) {
        world_open_driver(driver);
        struct errand *errand = errand_start(defers_three);
        world_settle();
        world_stop();
        assert_noted(errand, noted_error(SKUA_E_CANCELLED), 4, 3, 2, 1);
    }
}

/* ---- those that do not return ---- */

static int never_returns(struct errand *errand, skua_context *ctx)
{
    note(errand, 1);
    while (tally_count(errand->arg) == 0) {
        CHECK(errand, skua_task_sleep(ctx, SKUA_DURATION_MAX) == SKUA_E_TERMINATED);
    }
    return 0;
}

TEST(task_that_does_not_return_is_named_as_stuck)
{
    struct tally released;
    tally_init(&released);
    stalls_open((skua_runtime_config){.worker_count = 2});
    struct errand *errand = errand_new(never_returns);
    errand->type.name = "endless";
    errand->arg = &released;
    errand_submit(errand);
    errand_await_wait(errand);
    assert_int_equal(world_terminate(errand->pid), 0);
    struct actor *culprit = stranger(errand->pid);
    assert_string_equal(stall_await(culprit).stall.type_name, "endless");
    tally_add(&released, 1);
    assert_errand_ended(errand, SKUA_E_TERMINATED);
    world_close();
}
