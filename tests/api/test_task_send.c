/* SPDX-License-Identifier: MIT */
/* skua_task_send: a task sends a message and waits until it is admitted. */
#include <skua/task.h>

#include "errand.h"
#include "letters.h"
#include "relations.h"
#include "timers.h"

/* ---- readers, with room for one message ---- */

/* Looks into its mailbox after a second. */
static int reads_late(struct errand *errand, skua_context *ctx)
{
    const int error = skua_task_sleep(ctx, SECOND);
    while (error == 0 && errand->number-- > 0) {
        note(errand, receive_number(ctx, SKUA_FOREVER));
    }
    return error;
}

static struct errand *reader_start(uint64_t messages)
{
    struct errand *reader = errand_new(reads_late);
    reader->type.mailbox_limit = 1;
    reader->number = messages;
    errand_submit(reader);
    return reader;
}

static struct errand *sender_start(errand_fn *function, const struct errand *reader)
{
    struct errand *sender = errand_new(function);
    sender->other = reader->pid;
    errand_submit(sender);
    return sender;
}

/* ---- admitted ---- */

static int sends_one(struct errand *errand, skua_context *ctx)
{
    const int error = skua_task_send(ctx, errand->other, skua_payload_u64(0, 5), 0);
    note(errand, noted_error(error));
    return 0;
}

TEST(message_is_admitted_at_once_if_there_is_room)
{
    world_open_sim(1, SIM_NO_FAULTS);
    struct errand *reader = reader_start(1);
    struct errand *sender = sender_start(sends_one, reader);
    errands_go_on(MILLISECOND);
    assert_noted(sender, 0);
    errands_go_on(2 * SECOND);
    assert_noted(reader, 5);
    assert_int_equal(world_stats().messages, 1);
}

static int sends_three(struct errand *errand, skua_context *ctx)
{
    const uint64_t start = skua_now(ctx);
    for (uint64_t i = 1; i <= 3; i++) {
        CHECK(errand,
              skua_task_send(ctx, errand->other, skua_payload_u64(0, i), SKUA_FOREVER) == 0);
        note(errand, skua_now(ctx) - start >= SECOND);
    }
    return 0;
}

TEST(task_waits_until_the_receiver_gets_to_its_message)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *reader = reader_start(3);
        struct errand *sender = sender_start(sends_three, reader);
        errands_go_on(SECOND / 2);
        assert_noted(sender, false);
        errands_go_on(SECOND);
        assert_noted(sender, true, true);
        assert_noted(reader, 1, 2, 3);
        assert_errand_ended(sender, 0);
    }
}

/* ---- on threads ---- */

#define SENDERS 33

static int reads_on(struct errand *errand, skua_context *ctx)
{
    for (; errand->number > 0; errand->number--) {
        const uint64_t number = receive_number(ctx, SKUA_FOREVER);
        CHECK(errand, number >= 1 && number <= 3);
    }
    return 0;
}

TEST(tasks_on_threads_wait_for_room_in_one_mailbox)
{
    struct errand *senders[SENDERS];
    world_open_with((skua_runtime_config){.worker_count = 2});
    struct errand *reader = errand_new(reads_on);
    reader->type.mailbox_limit = 1;
    reader->number = 3 * SENDERS;
    errand_submit(reader);
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i] = sender_start(sends_three, reader);
    }
    for (size_t i = 0; i < SENDERS; i++) {
        assert_errand_ended(senders[i], 0);
    }
    assert_errand_ended(reader, 0);
    assert_int_equal(world_stats().messages, 3 * SENDERS);
}

/* ---- not admitted ---- */

/* The first fills the mailbox; the second is tracked. Notes how that ends. */
static int sends_too_much(struct errand *errand, skua_context *ctx)
{
    const int first = skua_task_send(ctx, errand->other, skua_payload_u64(0, 1), SKUA_FOREVER);
    CHECK(errand, first == 0);
    const int error = skua_task_send(ctx, errand->other, tracked_payload(0, &errand->item),
                                     errand->number == 0 ? SKUA_FOREVER : errand->number - 1);
    note(errand, noted_error(error));
    return error;
}

static struct errand *sends_too_much_within(const struct errand *reader, uint64_t timeout)
{
    struct errand *sender = errand_new(sends_too_much);
    sender->other = reader->pid;
    sender->number = timeout == SKUA_FOREVER ? 0 : timeout + 1;
    errand_submit(sender);
    return sender;
}

TEST(message_whose_time_is_up_is_not_delivered)
{
    FOR_ROUNDS (way, 2) {
        world_open_sim(way, SIM_NO_FAULTS);
        struct errand *reader = reader_start(1);
        struct errand *sender = sends_too_much_within(reader, way == 1 ? 0 : MILLISECOND);
        errands_go_on(SECOND / 2);
        assert_noted(sender, noted_error(SKUA_E_TIMEOUT));
        assert_errand_ended(sender, SKUA_E_TIMEOUT);
        errands_go_on(SECOND);
        assert_noted(reader, 1);
        assert_errand_ended(reader, 0);
        assert_drops(&sender->item, 1, 1);
        assert_int_equal(world_stats().messages, 1);
    }
}

TEST(message_of_a_task_that_is_ended_is_not_delivered)
{
    FOR_ROUNDS (way, 2) {
        const int error = way == 1 ? SKUA_E_CANCELLED : SKUA_E_TERMINATED;
        world_open_sim(way, SIM_NO_FAULTS);
        struct errand *reader = reader_start(1);
        struct errand *sender = sends_too_much_within(reader, SKUA_FOREVER);
        errands_go_on(SECOND / 2);
        assert_noted_nothing(sender);
        assert_int_equal(way == 1 ? world_cancel(sender->pid, SKUA_E_CANCELLED)
                                  : world_terminate(sender->pid),
                         0);
        errands_go_on(MILLISECOND);
        assert_noted(sender, noted_error(error));
        assert_errand_ended(sender, error);
        errands_go_on(SECOND);
        assert_noted(reader, 1);
        assert_drops(&sender->item, 1, 1);
        assert_int_equal(world_stats().messages, 1);
    }
}

TEST(receiver_that_ends_ends_the_wait)
{
    FOR_ROUNDS (way, 2) {
        letters_open_sim();
        struct errand *reader = reader_start(0); /* ends without having read anything */
        struct errand *sender = sends_too_much_within(reader, SKUA_FOREVER);
        errands_go_on(SECOND / 2);
        assert_noted_nothing(sender);
        if (way == 1) {
            assert_int_equal(world_terminate(reader->pid), 0);
        }
        errands_go_on(SECOND);
        assert_errand_ended(reader, way == 1 ? SKUA_E_TERMINATED : 0);
        assert_noted(sender, noted_error(SKUA_E_NO_PROCESS));
        assert_drops(&sender->item, 1, 1);
        assert_dead(SKUA_DEAD_UNREAD, 1, 1); /* the one that was admitted */
    }
}

/* ---- what is refused ---- */

static int sends_badly(struct errand *errand, skua_context *ctx)
{
    struct tracked *items = errand->arg;
    const skua_pid self = skua_self(ctx);
    skua_payload taken = skua_payload_u64(0, 1);
    (void)skua_payload_take(&taken);
    CHECK(errand, skua_task_send_from(ctx, errand->other, NULL, 0) == SKUA_E_INVALID);
    CHECK(errand, skua_task_send_from(ctx, errand->other, &taken, 0) == SKUA_E_TAKEN);
    CHECK(errand, skua_task_send(NULL, self, tracked_payload(0, &items[0]), 0) == SKUA_E_INVALID);
    CHECK(errand, skua_task_send(ctx, self, tracked_payload(0, &items[1]), 0) == SKUA_E_INVALID);
    CHECK(errand, skua_task_send(ctx, errand->other, tracked_payload(0, &items[2]),
                                 SKUA_DURATION_MAX + 1) == SKUA_E_DURATION);
    CHECK(errand, skua_task_send(ctx, errand->other, tracked_oversized(100, &items[3]), 0) ==
                      SKUA_E_PAYLOAD_SIZE);
    CHECK(errand, skua_task_send(ctx, (skua_pid){0}, tracked_payload(0, &items[4]), 0) ==
                      SKUA_E_NO_PROCESS);
    CHECK(errand, skua_task_send(ctx, foreigner()->pid, tracked_payload(0, &items[5]), 0) ==
                      SKUA_E_FOREIGN_PID);
    return 0;
}

static int sends_from_a_step(struct turn *turn, const struct act *act)
{
    struct tracked *item = act->arg;
    assert_int_equal(skua_task_send(turn->ctx, skua_self(turn->ctx), tracked_payload(0, item), 0),
                     SKUA_E_NOT_TASK);
    return 0;
}

TEST(bad_input_is_refused_and_its_payload_dropped)
{
    struct tracked items[7] = {0};
    world_open_with((skua_runtime_config){.payload_limit = 100});
    (void)foreigner(); /* here, not in the task */
    struct errand *sender = errand_new(sends_badly);
    struct actor *idle = actor_start(NO_ACTS);
    sender->other = idle->pid;
    sender->arg = items;
    assert_result(errand_run(sender), 0);
    assert_result(actor_run(actor_new(ACTS(does(sends_from_a_step, &items[6]), finishes(0)))), 0);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(world_stats().messages, 0);
    assert_int_equal(idle->seen_count, 0);
}
