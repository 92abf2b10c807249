/* SPDX-License-Identifier: MIT */
/* Every wait of a task: its timeout, and where it is refused. */
#include "task_waits.h"

/* ---- timeouts ---- */

static int waits_for_a_while(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    CHECK(errand, wait->wait(ctx, 0) == SKUA_E_TIMEOUT);
    CHECK(errand, wait->wait(ctx, SKUA_MILLISECOND) == SKUA_E_TIMEOUT);
    CHECK(errand, wait->wait(ctx, 0) == SKUA_E_TIMEOUT);
    return 0;
}

TEST(wait_ends_when_its_time_is_up)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        const struct task_wait *wait = task_waits_open(round);
        if (wait->has_timeout) {
            assert_result(errand_run(errand_for(waits_for_a_while, wait)), 0);
        }
    }
}

static int waits_too_long(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    CHECK(errand, wait->wait(ctx, SKUA_DURATION_MAX + 1) == SKUA_E_DURATION);
    CHECK(errand, skua_task_sleep(ctx, SKUA_DURATION_MAX + 1) == SKUA_E_DURATION);
    return 0;
}

TEST(wait_of_an_impossible_duration_is_refused)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        const struct task_wait *wait = task_waits_open(round);
        if (wait->has_timeout) {
            assert_result(errand_run(errand_for(waits_too_long, wait)), 0);
        }
    }
}

/* ---- where nobody can wait ---- */

static int is_done_and_waits(struct errand *errand, skua_context *ctx)
{
    const struct task_wait *wait = wait_of(errand);
    CHECK(errand, skua_done(ctx, skua_payload_u64(0, 5)) == 0);
    CHECK(errand, wait->wait(ctx, 0) == SKUA_E_DONE);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_DONE);
    CHECK(errand, wait->wait(ctx, SKUA_FOREVER) == SKUA_E_DONE);
    CHECK(errand, skua_task_pause(ctx) == SKUA_E_DONE);
    return 0;
}

TEST(wait_of_a_task_that_is_done_is_refused)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        const struct task_wait *wait = task_waits_open(round);
        assert_result(errand_run(errand_for(is_done_and_waits, wait)), 5);
    }
}

static int wait_in_step(struct turn *turn, const struct act *act)
{
    const struct task_wait *wait = act->arg;
    const int error = wait->wait(turn->ctx, SKUA_FOREVER);
    return error == SKUA_E_NOT_TASK ? wait->wait(turn->ctx, 0) : error;
}

static int wait_elsewhere(struct turn *turn, const struct act *act)
{
    const struct task_wait *wait = act->arg;
    return wait->wait(turn->ctx, SKUA_FOREVER);
}

static int pause_in_step(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_task_pause(turn->ctx);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static int defer_in_step(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_task_defer(turn->ctx, do_nothing, NULL);
}

static int shield_in_step(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_task_shield(turn->ctx, true);
}

TEST(wait_of_a_process_that_is_no_task_is_refused)
{
    if (test_has_tasks()) {
        return; /* actors are tasks then */
    }
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        void *wait = (void *)(uintptr_t)task_waits_open(round);
        struct actor *actor =
            actor_new(ACTS(refused(does(wait_in_step, wait), SKUA_E_NOT_TASK),
                           refused(does(pause_in_step, NULL), SKUA_E_NOT_TASK),
                           refused(does(defer_in_step, NULL), SKUA_E_NOT_TASK),
                           refused(does(shield_in_step, NULL), SKUA_E_NOT_TASK), finishes(0)));
        assert_result(actor_run(actor), 0);
    }
}

TEST(wait_in_init_or_close_is_refused)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        void *wait = (void *)(uintptr_t)task_waits_open(round);
        const struct act refusal = refused(does(wait_elsewhere, wait), SKUA_E_CONTEXT);
        struct actor *actor = actor_new(ACTS(finishes(0)));
        actor->in_init = ACTS(refusal);
        actor->in_close = ACTS(refusal);
        assert_result(actor_run(actor), 0);
    }
}

TEST(wait_without_a_context_is_refused)
{
    for (size_t i = 0; i < TASK_WAITS; i++) {
        assert_int_equal(task_waits[i].wait(NULL, SKUA_FOREVER), SKUA_E_INVALID);
    }
    assert_int_equal(skua_task_pause(NULL), SKUA_E_INVALID);
    assert_int_equal(skua_task_defer(NULL, do_nothing, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_task_shield(NULL, true), SKUA_E_INVALID);
}

static int gives_its_context_away(struct errand *errand, skua_context *ctx)
{
    *(skua_context **)errand->arg = ctx;
    note(errand, 1);
    return skua_task_sleep(ctx, SKUA_DURATION_MAX);
}

/* The thread of the test stands for any other. */
TEST(wait_with_the_context_of_a_task_that_waits_is_refused)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        skua_context *ctx = NULL;
        const struct task_wait *wait = task_waits_open(round);
        struct errand *errand = errand_new(gives_its_context_away);
        errand->arg = &ctx;
        errand_submit(errand);
        errand_await_wait(errand);
        assert_int_equal(wait->wait(ctx, SKUA_FOREVER), SKUA_E_CONTEXT);
        task_waits_close();
    }
}

/* ---- arguments ---- */

static int has_bad_arguments(struct errand *errand, skua_context *ctx)
{
    skua_event *event;
    uint64_t next = 0;
    struct tracked *items = errand->arg;
    const skua_pid me = skua_self(ctx);
    CHECK(errand, skua_task_receive(ctx, NULL, 0) == SKUA_E_INVALID);
    CHECK(errand, skua_task_receive(ctx, NULL, SKUA_FOREVER) == SKUA_E_INVALID);
    CHECK(errand, skua_task_receive_type(ctx, 1, NULL, SKUA_FOREVER) == SKUA_E_INVALID);
    CHECK(errand, skua_task_receive_if(ctx, NULL, NULL, &event, SKUA_FOREVER) == SKUA_E_INVALID);
    CHECK(errand, skua_task_ticker(ctx, 0, &next, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_task_ticker(ctx, 1, NULL, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_task_ticker(ctx, SKUA_FOREVER, &next, NULL) == SKUA_E_DURATION);
    CHECK(errand, skua_task_call_from(ctx, me, NULL, 0, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_task_call(ctx, (skua_pid){0}, tracked_payload(0, &items[0]), SKUA_FOREVER,
                                 NULL) == SKUA_E_NO_PROCESS);
    CHECK(errand, skua_task_call_name(ctx, NULL, tracked_payload(0, &items[1]), SKUA_FOREVER,
                                      NULL) == SKUA_E_NAME);
    CHECK(errand, skua_task_call_name(ctx, "nobody", tracked_payload(0, &items[2]), SKUA_FOREVER,
                                      NULL) == SKUA_E_NO_PROCESS);
    CHECK(errand, skua_task_call_for(ctx, (skua_request){0}, me, tracked_payload(0, &items[3]),
                                     SKUA_FOREVER, NULL) == SKUA_E_LATE);
    CHECK(errand, skua_task_monitor(ctx, (skua_pid){0}, SKUA_FOREVER, NULL) == SKUA_E_NO_PROCESS);
    CHECK(errand,
          skua_task_join(ctx, (skua_pid){0}, SKUA_FOREVER, NULL, NULL) == SKUA_E_NO_PROCESS);
    CHECK(errand, skua_task_await_name(ctx, "", SKUA_FOREVER, NULL) == SKUA_E_NAME);
    CHECK(errand, skua_task_readable(ctx, -1, SKUA_FOREVER) == SKUA_E_DESCRIPTOR);
    CHECK(errand, skua_task_writable(ctx, -1, SKUA_FOREVER) == SKUA_E_DESCRIPTOR);
    CHECK(errand, skua_task_blocking(ctx, (skua_pool){0}, NULL, tracked_payload(0, &items[4]),
                                     SKUA_FOREVER, NULL) == SKUA_E_INVALID);
    CHECK(errand, skua_task_yield(ctx, 99, tracked_payload(0, &items[5]), SKUA_FOREVER, NULL) ==
                      SKUA_E_UNKNOWN_COMMAND);
    CHECK(errand, skua_task_defer(ctx, NULL, NULL) == SKUA_E_INVALID);
    note(errand, receive_number(ctx, 0));
    return 0;
}

TEST(wait_with_bad_arguments_is_refused_and_takes_its_payload)
{
    FOR_ROUNDS (round, TASK_WAIT_ROUNDS) {
        struct tracked items[6] = {0};
        (void)task_waits_open(round);
        struct errand *errand = errand_new(has_bad_arguments);
        errand->arg = items;
        assert_result(errand_run(errand), 0);
        assert_noted(errand, noted_error(SKUA_E_TIMEOUT));
        task_waits_close();
        assert_drops(items, COUNT_OF(items), 1);
    }
}

/* ---- time ---- */

static int keeps_time(struct errand *errand, skua_context *ctx)
{
    uint64_t next = 0;
    uint64_t count = 0;
    const uint64_t start = skua_now(ctx);
    CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    CHECK(errand, skua_now(ctx) < start + SKUA_SECOND);
    CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND) == 0);
    CHECK(errand, skua_now(ctx) >= start + SKUA_SECOND);
    const uint64_t begin = skua_now(ctx);
    for (uint64_t i = 1; i <= 5; i++) {
        CHECK(errand, skua_task_ticker(ctx, SKUA_SECOND, &next, &count) == 0);
        CHECK(errand, count == 1);
        CHECK(errand, next == begin + (i + 1) * SKUA_SECOND);
        CHECK(errand, skua_task_sleep(ctx, SKUA_SECOND / 2) == 0);
    }
    CHECK(errand, skua_task_sleep(ctx, 3 * SKUA_SECOND) == 0); /* the sixth to eighth pass unseen */
    CHECK(errand, skua_task_ticker(ctx, SKUA_SECOND, &next, &count) == 0);
    CHECK(errand, count == 3);
    CHECK(errand, next == begin + 9 * SKUA_SECOND);
    CHECK(errand, skua_task_ticker(ctx, SKUA_SECOND, &next, NULL) == 0);
    return 0;
}

TEST(sleep_and_ticker_keep_time)
{
    FOR_ROUNDS (seed, 10) {
        world_open_sim(seed, SIM_NO_FAULTS);
        assert_result(errand_run(errand_new(keeps_time)), 0);
    }
}

static int pauses(struct errand *errand, skua_context *ctx)
{
    for (int i = 0; i < 1000; i++) {
        CHECK(errand, skua_task_pause(ctx) == 0);
    }
    note(errand, receive_number(ctx, 0));
    note(errand, receive_number(ctx, 0));
    return 0;
}

static int sends_and_pauses(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_send(ctx, skua_self(ctx), skua_payload_u64(0, 4)) == 0);
    return pauses(errand, ctx);
}

TEST(pause_lets_others_run_and_keeps_what_arrives)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct errand *other = errand_start(pauses);
    struct errand *errand = errand_new(sends_and_pauses);
    assert_result(errand_run(errand), 0);
    assert_errand_ended(other, 0);
    assert_noted(errand, 4, noted_error(SKUA_E_TIMEOUT));
    assert_noted(other, noted_error(SKUA_E_TIMEOUT), noted_error(SKUA_E_TIMEOUT));
}

/* Always has a message, until the other has run. */
static int sends_to_itself(struct errand *errand, skua_context *ctx)
{
    const struct errand *other = errand->arg;
    skua_event *event;
    CHECK(errand, skua_send(ctx, skua_self(ctx), skua_payload_empty(0)) == 0);
    while (atomic_load(&other->closes) == 0) {
        CHECK(errand, skua_send(ctx, skua_self(ctx), skua_payload_empty(0)) == 0);
        CHECK(errand, skua_task_receive(ctx, &event, SKUA_FOREVER) == 0);
    }
    return 0;
}

TEST(task_that_always_has_messages_lets_others_run)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct errand *other = errand_new(pauses);
    struct errand *errand = errand_new(sends_to_itself);
    errand->arg = other;
    errand_submit(errand);
    assert_result(errand_run(other), 0);
    assert_errand_ended(errand, 0);
}
