/* SPDX-License-Identifier: MIT */
/* The ring with its writer and reader on one thread: what comes out, when it closes and opens, and
 * what the records of gaps say. Races are the business of tests/model and tests/stress. */
#include "concurrent/ring.h"

#include "base/random.h"
#include "test.h"

#define HALF (RING_CAPACITY / 2)

static struct ring ring; /* too large for a stack, and so are these */
static struct ring_record out[RING_CAPACITY + 1];

static struct ring_record record_of(uint64_t number)
{
    return (struct ring_record){.words = {number, number + 1, number + 2, number + 3}};
}

static struct ring_record gap_of(uint64_t first, uint64_t count)
{
    return (struct ring_record){.words = {first, 0, count, RING_LOST}};
}

static bool write_number(uint64_t number)
{
    const struct ring_record record = record_of(number);
    return ring_write_owner(&ring, &record);
}

static void write_numbers(uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        assert_true(write_number(first + i));
    }
}

static void lose_numbers(uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        assert_false(write_number(first + i));
    }
}

static void assert_read(struct ring_record expected)
{
    assert_int_equal(ring_read_any(&ring, out, 1), 1);
    assert_memory_equal(&out[0], &expected, sizeof expected);
}

static void read_numbers(uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        assert_read(record_of(first + i));
    }
}

static void assert_empty(void)
{
    assert_int_equal(ring_read_any(&ring, out, RING_CAPACITY), 0);
}

/* Full, with the numbers from 0 on. */
static void init_full(void)
{
    ring_init(&ring);
    write_numbers(0, RING_CAPACITY);
}

TEST(ring_new_is_empty_and_open)
{
    memset(&ring, 0xff, sizeof ring);
    ring_init(&ring);
    assert_empty();
    write_numbers(5, 1);
    read_numbers(5, 1);
    assert_empty();
}

TEST(ring_records_come_out_in_order)
{
    ring_init(&ring);
    write_numbers(0, 10);
    read_numbers(0, 4);
    write_numbers(10, 10);
    read_numbers(4, 16);
    assert_empty();
}

TEST(ring_takes_as_many_as_its_capacity)
{
    init_full();
    lose_numbers(RING_CAPACITY, 1);
    assert_int_equal(ring_read_any(&ring, out, RING_CAPACITY + 1), RING_CAPACITY);
    for (uint64_t i = 0; i < RING_CAPACITY; i++) {
        const struct ring_record expected = record_of(i);
        assert_memory_equal(&out[i], &expected, sizeof expected);
    }
    assert_empty();
}

TEST(ring_read_takes_no_more_than_asked)
{
    ring_init(&ring);
    write_numbers(0, 10);
    memset(out, 0, sizeof out);
    assert_int_equal(ring_read_any(&ring, out, 0), 0);
    assert_int_equal(ring_read_any(&ring, out, 3), 3);
    assert_int_equal(out[2].words[0], 2);
    assert_int_equal(out[3].words[3], 0);
    assert_int_equal(ring_read_any(&ring, out, 100), 7);
    assert_int_equal(out[0].words[0], 3);
    assert_int_equal(out[6].words[0], 9);
}

/* Room that the reader makes in time keeps the ring open, at each place of it. */
TEST(ring_that_is_read_in_time_loses_nothing)
{
    init_full();
    for (uint64_t i = 0; i < 2 * RING_CAPACITY; i++) {
        read_numbers(i, 1);
        write_numbers(RING_CAPACITY + i, 1);
    }
    lose_numbers(3 * RING_CAPACITY, 1);
}

TEST(ring_stays_closed_until_half_is_read)
{
    init_full();
    lose_numbers(RING_CAPACITY, 1);
    for (uint64_t i = 0; i < HALF - 1; i++) {
        read_numbers(i, 1);
        lose_numbers(RING_CAPACITY + 1 + i, 1);
    }
    read_numbers(HALF - 1, 1);
    write_numbers(RING_CAPACITY + HALF, 1);
    read_numbers(HALF, HALF);
    assert_read(gap_of(RING_CAPACITY, HALF));
    read_numbers(RING_CAPACITY + HALF, 1);
    assert_empty();
}

TEST(ring_after_a_gap_has_room_for_the_rest_of_the_half)
{
    init_full();
    lose_numbers(RING_CAPACITY, 7);
    read_numbers(0, HALF);
    write_numbers(RING_CAPACITY + 7, HALF - 1); /* one place is the gap's */
    lose_numbers(2 * RING_CAPACITY, 1);
    read_numbers(HALF, HALF);
    assert_read(gap_of(RING_CAPACITY, 7));
    read_numbers(RING_CAPACITY + 7, HALF - 1);
    assert_empty();
}

TEST(ring_gap_counts_since_the_one_before)
{
    init_full();
    uint64_t next = RING_CAPACITY;
    for (uint64_t lost = 1; lost <= 20; lost++) {
        lose_numbers(next, lost);
        assert_int_equal(ring_read_any(&ring, out, RING_CAPACITY), RING_CAPACITY);
        write_numbers(next + lost, RING_CAPACITY - 1);
        assert_int_equal(ring_read_any(&ring, out, 1), 1);
        const struct ring_record expected = gap_of(next, lost);
        assert_memory_equal(&out[0], &expected, sizeof expected);
        next += lost + RING_CAPACITY - 1;
        write_numbers(next++, 1); /* full again */
    }
}

/* Time passes while nobody reads: the gap begins with the first that is missing. */
TEST(ring_gap_of_nobody_reading_is_one)
{
    init_full();
    lose_numbers(RING_CAPACITY, 10 * RING_CAPACITY);
    assert_int_equal(ring_read_any(&ring, out, RING_CAPACITY), RING_CAPACITY);
    assert_empty(); /* the gap is told of with the next record */
    write_numbers(11 * RING_CAPACITY, 1);
    assert_read(gap_of(RING_CAPACITY, 10 * RING_CAPACITY));
    read_numbers(11 * RING_CAPACITY, 1);
    assert_empty();
}

TEST(ring_clear_discards_all_that_is_in_it)
{
    ring_init(&ring);
    ring_clear_reader(&ring);
    write_numbers(0, 100);
    read_numbers(0, 10);
    ring_clear_reader(&ring);
    assert_empty();
    write_numbers(100, RING_CAPACITY);
    lose_numbers(0, 1);
    read_numbers(100, RING_CAPACITY);
    assert_empty();
}

TEST(ring_clear_opens_and_keeps_the_gap)
{
    init_full();
    lose_numbers(RING_CAPACITY, 3);
    ring_clear_reader(&ring);
    assert_empty();
    write_numbers(RING_CAPACITY + 3, 1);
    assert_read(gap_of(RING_CAPACITY, 3));
    read_numbers(RING_CAPACITY + 3, 1);
    assert_empty();
}

/* ---- against a plain queue ---- */

struct reference {
    struct ring_record records[RING_CAPACITY];
    uint32_t length; /* oldest first */
    uint64_t lost;
    uint64_t lost_since;
};

static void step_write(struct reference *reference, uint64_t number)
{
    const uint32_t room = RING_CAPACITY - reference->length;
    const bool fits = reference->lost > 0 ? room >= HALF : room > 0;
    assert_int_equal(write_number(number), fits);
    if (!fits) {
        if (reference->lost++ == 0) {
            reference->lost_since = number;
        }
        return;
    }
    if (reference->lost > 0) {
        reference->records[reference->length++] = gap_of(reference->lost_since, reference->lost);
        reference->lost = 0;
    }
    reference->records[reference->length++] = record_of(number);
}

static void step_read(struct reference *reference, uint32_t most)
{
    const uint32_t count = reference->length < most ? reference->length : most;
    assert_int_equal(ring_read_any(&ring, out, most), count);
    assert_memory_equal(out, reference->records, count * sizeof out[0]);
    reference->length -= count;
    memmove(reference->records, reference->records + count,
            reference->length * sizeof reference->records[0]);
}

TEST(ring_random_operations_match_a_queue)
{
    static struct reference reference;
    uint64_t random = 20240607;
    uint64_t number = 0;
    ring_init(&ring);
    for (int i = 0; i < 2000; i++) {
        const uint32_t writes = random_below(&random, RING_CAPACITY / 8);
        for (uint32_t j = 0; j < writes; j++) {
            step_write(&reference, number++);
        }
        step_read(&reference, random_below(&random, RING_CAPACITY / 8));
        if (random_below(&random, 200) == 0) {
            ring_clear_reader(&ring);
            reference.length = 0;
        }
    }
}

/* A writer that asks first loses the same records, without having to make them. */
TEST(ring_refuses_while_it_is_closed_and_no_longer)
{
    init_full();
    assert_false(ring_refuses_owner(&ring)); /* full, but not closed yet: the loss has no time */
    lose_numbers(RING_CAPACITY, 1);
    assert_true(ring_refuses_owner(&ring));
    assert_true(ring_refuses_owner(&ring));
    read_numbers(0, HALF - 1);
    assert_true(ring_refuses_owner(&ring));
    read_numbers(HALF - 1, 1);
    assert_false(ring_refuses_owner(&ring));
    write_numbers(RING_CAPACITY + 4, 1);
    read_numbers(HALF, HALF);
    assert_read(gap_of(RING_CAPACITY, 4));
    read_numbers(RING_CAPACITY + 4, 1);
    assert_empty();
}

TEST(ring_open_gap_is_what_no_record_tells_of_yet)
{
    uint64_t since;
    init_full();
    assert_int_equal(ring_open_gap_owner(&ring, &since), 0);
    lose_numbers(RING_CAPACITY, 3);
    assert_int_equal(ring_open_gap_owner(&ring, &since), 3);
    assert_int_equal(since, RING_CAPACITY);
    read_numbers(0, HALF);
    write_numbers(RING_CAPACITY + 3, 1);
    assert_int_equal(ring_open_gap_owner(&ring, &since), 0);
}
