/* SPDX-License-Identifier: MIT */
/* The limit on waiting messages, and its counters. */
#include "process/mailbox.h"
#include "test.h"

/* A process whose counters stand at `counted`, as if so many messages had gone through its slot. */
static struct process process_with(uint32_t limit, uint32_t counted)
{
    return (struct process){.reserved = counted, .consumed = counted, .mailbox_limit = limit};
}

static void reserve_count(struct process *process, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(mailbox_reserve_any(process));
    }
}

static void assert_full(struct process *process, uint32_t length)
{
    assert_false(mailbox_reserve_any(process));
    assert_int_equal(mailbox_length(process), length);
}

static void check_limit(uint32_t limit, uint32_t counted)
{
    struct process process = process_with(limit, counted);
    assert_int_equal(mailbox_length(&process), 0);
    reserve_count(&process, limit);
    assert_int_equal(mailbox_length(&process), limit);
    assert_full(&process, limit);
    mailbox_consume_owner(&process, limit);
    assert_int_equal(mailbox_length(&process), 0);
    reserve_count(&process, limit);
    assert_full(&process, limit);
}

TEST(mailbox_admits_exactly_its_limit)
{
    check_limit(0, 0);
    check_limit(1, 0);
    check_limit(2, 0);
    check_limit(1000, 0);
    check_limit(1000, 123456);
}

TEST(mailbox_refused_senders_leave_no_trace)
{
    struct process process = process_with(3, 0);
    reserve_count(&process, 3);
    for (int i = 0; i < 1000; i++) {
        assert_false(mailbox_reserve_any(&process));
    }
    assert_int_equal(mailbox_length(&process), 3);
    mailbox_consume_owner(&process, 1);
    assert_true(mailbox_reserve_any(&process));
    assert_false(mailbox_reserve_any(&process));
}

TEST(mailbox_unreserved_place_can_be_used_again)
{
    struct process process = process_with(2, 0);
    reserve_count(&process, 2);
    mailbox_unreserve_any(&process);
    assert_int_equal(mailbox_length(&process), 1);
    assert_true(mailbox_reserve_any(&process));
    assert_false(mailbox_reserve_any(&process));
}

TEST(mailbox_consumed_places_can_be_used_again)
{
    struct process process = process_with(10, 0);
    reserve_count(&process, 10);
    mailbox_consume_owner(&process, 0);
    assert_int_equal(mailbox_length(&process), 10);
    mailbox_consume_owner(&process, 4);
    assert_int_equal(mailbox_length(&process), 6);
    reserve_count(&process, 4);
    assert_false(mailbox_reserve_any(&process));
}

TEST(mailbox_counters_may_wrap_at_every_point)
{
    for (uint32_t before = 0; before <= 8; before++) {
        check_limit(4, UINT32_MAX - before);
    }
}

TEST(mailbox_refusal_and_unreserve_work_across_the_wrap)
{
    struct process process = process_with(1, UINT32_MAX);
    assert_true(mailbox_reserve_any(&process)); /* reserved is 0 now */
    assert_false(mailbox_reserve_any(&process));
    assert_int_equal(mailbox_length(&process), 1);
    mailbox_unreserve_any(&process); /* and UINT32_MAX again */
    assert_int_equal(mailbox_length(&process), 0);
    assert_true(mailbox_reserve_any(&process));
}

/* A sender that stalls between its two loads sees later messages than its own consumed. */
TEST(mailbox_overtaken_sender_is_admitted)
{
    static const uint32_t reserved[] = {5, UINT32_MAX - 1, UINT32_MAX};
    FOR_ROWS (row, reserved) {
        struct process process = process_with(1, *row);
        mailbox_consume_owner(&process, 3);
        assert_true(mailbox_reserve_any(&process));
        assert_int_equal(load_relaxed(&process.reserved), *row + 1);
    }
}

TEST(mailbox_length_is_never_negative)
{
    struct process process = process_with(10, UINT32_MAX);
    mailbox_consume_owner(&process, 2);
    assert_int_equal(mailbox_length(&process), 0);
}

TEST(mailbox_of_the_largest_limit_admits_exactly_that)
{
    struct process process = process_with(SKUA_MAILBOX_MAX, UINT32_MAX - 10);
    store_relaxed(&process.reserved, UINT32_MAX - 10 + SKUA_MAILBOX_MAX - 1);
    assert_true(mailbox_reserve_any(&process));
    assert_int_equal(mailbox_length(&process), SKUA_MAILBOX_MAX);
    assert_false(mailbox_reserve_any(&process));
    assert_int_equal(mailbox_length(&process), SKUA_MAILBOX_MAX);
}

/* Nothing is reserved for the message that wakes a process; from then on it is like any other. */
TEST(mailbox_message_that_wakes_takes_a_place)
{
    static const uint32_t counted[] = {0, 1, 7, UINT32_MAX};
    FOR_ROWS (row, counted) {
        struct process process = process_with(3, *row);
        mailbox_count_waking_owner(&process);
        assert_int_equal(load_relaxed(&process.reserved), *row);
        assert_int_equal(mailbox_length(&process), 1);
        reserve_count(&process, 2);
        assert_false(mailbox_reserve_any(&process));
        mailbox_consume_owner(&process, 3);
        assert_int_equal(mailbox_length(&process), 0);
        reserve_count(&process, 3);
        assert_false(mailbox_reserve_any(&process));
    }
}

/* ---- large mailboxes, where senders count late ---- */

#define LARGE mailbox_large(1)

TEST(mailbox_of_a_large_limit_is_counted_late)
{
    struct process process = process_with(LARGE, 0);
    struct mailbox_tally tally = {0};
    assert_true(mailbox_may_tally(&process, LARGE));
    for (uint32_t i = 1; i < MAILBOX_TALLY_MAX; i++) {
        mailbox_tally_owner(&tally, &process);
    }
    assert_int_equal(mailbox_length(&process), 0);
    mailbox_tally_owner(&tally, &process);
    assert_int_equal(mailbox_length(&process), MAILBOX_TALLY_MAX);
    mailbox_tally_owner(&tally, &process);
    mailbox_settle_owner(&tally);
    mailbox_settle_owner(&tally);
    assert_int_equal(mailbox_length(&process), MAILBOX_TALLY_MAX + 1);
}

TEST(mailbox_messages_consumed_before_they_are_counted_leave_no_trace)
{
    struct process process = process_with(LARGE, 123456);
    struct mailbox_tally tally = {0};
    mailbox_tally_owner(&tally, &process);
    mailbox_consume_owner(&process, 1);
    assert_int_equal(mailbox_length(&process), 0);
    assert_true(mailbox_has_room(&process) && mailbox_may_tally(&process, LARGE));
    mailbox_settle_owner(&tally);
    assert_int_equal(mailbox_length(&process), 0);
    reserve_count(&process, LARGE);
    assert_full(&process, LARGE);
}

TEST(mailbox_tally_is_settled_before_it_counts_for_another)
{
    struct process first = process_with(LARGE, 0);
    struct process second = process_with(LARGE, 0);
    struct mailbox_tally tally = {0};
    mailbox_tally_owner(&tally, &first);
    mailbox_tally_owner(&tally, &second);
    assert_int_equal(mailbox_length(&first), 1);
    assert_int_equal(mailbox_length(&second), 0);
    mailbox_settle_owner(&tally);
    assert_int_equal(mailbox_length(&first), 1);
    assert_int_equal(mailbox_length(&second), 1);
}

TEST(mailbox_that_is_small_or_metered_is_never_counted_late)
{
    struct process process = process_with(LARGE - 1, 0);
    assert_false(mailbox_may_tally(&process, LARGE));
    process = process_with(mailbox_marked(7), 0);
    assert_false(mailbox_may_tally(&process, LARGE));
}
