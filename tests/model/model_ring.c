/* SPDX-License-Identifier: MIT */
/* concurrent/ring.h: one writer against one reader, in a ring of four places.
 *
 * INV-23: what is written is read once and in order, or counted in the record of the gap it fell
 *         into. Unless the reader discards something, written = read + lost, and no record is
 *         missing where no gap says so.
 * And the ring opens again when half of it is empty, not earlier. */
#include <stdlib.h>

#include "concurrent/ring.h"
#include "explore.h"

static struct ring ring;

/* The writer's. */
static uint64_t written; /* calls; the n-th record has the number n, from 0 */
static uint64_t refused;

/* The reader's. */
static uint64_t expected;  /* the number of the next record */
static uint64_t missing;   /* by the records of gaps */
static bool has_cleared;   /* there may have been gaps that it has not seen */
static bool may_be_behind; /* it has cleared just now: the next number may be higher */

/* ---- the writer ---- */

static struct ring_record record_of(uint64_t number)
{
    return (struct ring_record){.words = {number, ~number, number * 3, number + 7}};
}

static bool write_one(void)
{
    const struct ring_record record = record_of(written);
    const bool was_closed = load_relaxed(&ring.lost) > 0;
    const uint64_t head = explore_peek(&ring.head);
    const bool asks = written % 2 == 1; /* before it writes: both ways lead to the same */
    const bool done = !(asks && ring_refuses_owner(&ring)) && ring_write_owner(&ring, &record);
    explore_note("%s %u", done ? "wrote" : "lost", (unsigned)written);
    if (done && was_closed) {
        /* The tail may have moved on since the writer looked, but not back. */
        EXPLORE_CHECK(head - explore_peek(&ring.tail) <= RING_CAPACITY / 2,
                      "a closed ring opens when half of it is empty");
    }
    written++;
    refused += !done;
    return done;
}

static void run_writer(const void *count)
{
    for (int left = atoi(count); left > 0; left--) {
        (void)write_one();
    }
}

/* ---- the reader ---- */

/* The place where the reader goes on; if it has discarded records, it learns that only now. */
static void arrive_at(uint64_t number)
{
    if (may_be_behind) {
        EXPLORE_CHECK(number >= expected, "INV-23: nothing is read twice");
        expected = number;
        may_be_behind = false;
    }
    EXPLORE_CHECK(number == expected, "INV-23: all is read, in order, or in a gap");
}

static void account_gap(const struct ring_record *gap)
{
    explore_note("read a gap of %u", (unsigned)gap->words[2]);
    arrive_at(gap->words[0]);
    EXPLORE_CHECK(gap->words[1] == 0, "INV-23: a gap is whole");
    EXPLORE_CHECK(gap->words[2] > 0, "INV-23: no gap without a loss");
    expected += gap->words[2];
    missing += gap->words[2];
}

static void account(const struct ring_record *record)
{
    if (record->words[3] == RING_LOST) {
        account_gap(record);
        return;
    }
    const uint64_t number = record->words[0];
    explore_note("read %u", (unsigned)number);
    arrive_at(number);
    const struct ring_record whole = record_of(number);
    for (uint32_t i = 0; i < 4; i++) {
        EXPLORE_CHECK(record->words[i] == whole.words[i], "INV-23: a record is whole");
    }
    expected++;
}

static uint32_t read_some(uint32_t most)
{
    struct ring_record records[RING_CAPACITY];
    const uint32_t count = ring_read_any(&ring, records, most);
    EXPLORE_CHECK(count <= most, "as many as asked for at most");
    for (uint32_t i = 0; i < count; i++) {
        account(&records[i]);
    }
    return count;
}

/* A digit reads so many, c clears. */
static void run_reader(const void *program)
{
    for (const char *at = program; *at != '\0'; at++) {
        if (*at == 'c') {
            ring_clear_reader(&ring);
            has_cleared = true;
            may_be_behind = true;
            explore_note("cleared");
        } else {
            (void)read_some((uint32_t)(*at - '0'));
        }
    }
}

/* ---- before and after ---- */

/* A ring through which `before` records have gone, and `count` more are written. */
static void setup_with(uint32_t before, uint32_t count)
{
    ring_init(&ring);
    written = 0;
    refused = 0;
    expected = 0;
    missing = 0;
    has_cleared = false;
    may_be_behind = false;
    for (uint32_t i = 0; i < before; i++) {
        (void)write_one();
        (void)read_some(1);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)write_one();
    }
}

static void setup_empty(void)
{
    setup_with(0, 0);
}

static void setup_three(void)
{
    setup_with(0, 3);
}

/* The next record but one has the first place again. */
static void setup_at_the_end(void)
{
    setup_with(RING_CAPACITY - 1, 0);
}

static void setup_full(void)
{
    setup_with(0, RING_CAPACITY);
}

static void setup_closed(void)
{
    setup_with(1, RING_CAPACITY + 1);
}

/* Reads what is left, and then with one more record the gap that is still open. */
static void finish(void)
{
    while (read_some(RING_CAPACITY) > 0) {
    }
    EXPLORE_CHECK(write_one(), "an empty ring is open");
    while (read_some(RING_CAPACITY) > 0) {
    }
    EXPLORE_CHECK(expected == written, "INV-23: all is read, or in a gap");
    EXPLORE_CHECK(missing <= refused, "INV-23: gaps count what was lost");
    EXPLORE_CHECK(missing == refused || has_cleared, "INV-23: gaps count all that was lost");
}

#define WRITER(count)   EXPLORE_THREAD("writer", run_writer, count)
#define READER(program) EXPLORE_THREAD("reader", run_reader, program)

/* All interleavings, and any number of loads may be stale. */
#define MODEL(name_, setup_, ...)                                                                  \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_ALL, .stale = UINT32_MAX, .setup = setup_,                  \
        .threads = {__VA_ARGS__}, .finish = finish,                                                \
    }
#define RANDOM_MODEL(name_, setup_, ...)                                                           \
    {                                                                                              \
        .name = name_, .mode = EXPLORE_RANDOM, .bound = 50000, .stale = 3, .setup = setup_,        \
        .threads = {__VA_ARGS__}, .finish = finish,                                                \
    }

static const struct explore_model models[] = {
    MODEL("pass", setup_empty, WRITER("4"), READER("112")),
    MODEL("around", setup_at_the_end, WRITER("4"), READER("141")),
    MODEL("nearly_full", setup_three, WRITER("4"), READER("212")),
    MODEL("full", setup_full, WRITER("4"), READER("114")),
    MODEL("closed", setup_closed, WRITER("4"), READER("1144")),
    MODEL("closed_again", setup_closed, WRITER("6"), READER("242")),
    MODEL("clear", setup_three, WRITER("4"), READER("1c2")),
    MODEL("clear_full", setup_full, WRITER("4"), READER("c1c")),
    MODEL("clear_closed", setup_closed, WRITER("4"), READER("1c4")),
    RANDOM_MODEL("long", setup_empty, WRITER("24"), READER("1243214342131424")),
    RANDOM_MODEL("long_clear", setup_full, WRITER("24"), READER("124c2143c42c131424")),
};

EXPLORE_MAIN(models)
