/* SPDX-License-Identifier: MIT */
/* Stress of concurrent/ring.h: a writer that writes bursts, some larger than the ring, against a
 * reader that takes batches of all sizes, pauses, and now and then discards what is there. Each
 * round has a new reader.
 *  - Every record comes out whole, once and in order, or is counted in a gap that begins with it.
 *  - Where nothing was discarded nothing is missing beyond that; in rounds without discards the
 *    gaps count exactly what the writer was refused. */
#include <inttypes.h>
#include <sched.h>

#include "concurrent/ring.h"
#include "stress_support.h"

#define BATCH_MAX   1000
#define ROUNDS      8
#define DEFAULT_OPS 30000000

static struct stress stress;
static struct ring ring;
static atomic_u32 over;

struct writer {
    CACHE_ALIGNED uint64_t random;
    uint64_t next; /* the number of the next record */
    uint64_t refused;
};

struct reader {
    CACHE_ALIGNED uint64_t random;
    uint64_t expected;  /* the number of the next record */
    uint64_t missing;   /* by the records of gaps */
    bool may_clear;     /* in this round */
    bool may_be_behind; /* it has cleared: the next number may be higher */
};

static struct ring_record record_of(uint64_t number)
{
    return (struct ring_record){
        .words = {number, random_mix(number), ~number, number},
    };
}

/* ---- the writer ---- */

static bool write_one(struct writer *writer)
{
    const struct ring_record record = record_of(writer->next++);
    const bool done = !ring_refuses_owner(&ring) && ring_write_owner(&ring, &record);
    writer->refused += !done;
    return done;
}

static void write_burst(struct writer *writer)
{
    const uint32_t most = random_below(&writer->random, 16) == 0 ? 2 * RING_CAPACITY : 256;
    const uint32_t count = 1 + random_below(&writer->random, most);
    uint32_t written = 0; /* what is refused is not counted, or the reader would have no part */
    for (uint32_t i = 0; i < count; i++) {
        const bool done = write_one(writer);
        written += done;
        stress_pause(&writer->random, done ? 4096 : 256); /* who is refused gives way */
    }
    stress_count(&stress, 0, written);
}

static void run_writer(struct writer *writer, uint64_t ops)
{
    while (stress_goes_on(&stress, ops)) {
        write_burst(writer);
        stress_pause(&writer->random, 4);
    }
}

/* ---- the reader ---- */

static void arrive_at(struct reader *reader, uint64_t number)
{
    if (number < reader->expected) {
        stress_fault(&stress, STRESS_DOUBLED, "number %" PRIu64 " instead of %" PRIu64, number,
                     reader->expected);
    } else if (number > reader->expected && !reader->may_be_behind) {
        stress_fault(&stress, STRESS_LOST, "number %" PRIu64 " instead of %" PRIu64, number,
                     reader->expected);
    }
    reader->expected = number;
    reader->may_be_behind = false;
}

static void account_gap(struct reader *reader, const struct ring_record *gap)
{
    const uint64_t count = gap->words[2];
    if (gap->words[1] != 0 || count == 0) {
        stress_fault(&stress, STRESS_CORRUPT, "a gap of %" PRIu64, count);
    }
    arrive_at(reader, gap->words[0]);
    reader->expected += count;
    reader->missing += count;
}

static void account(struct reader *reader, const struct ring_record *record)
{
    if (record->words[3] == RING_LOST) {
        account_gap(reader, record);
        return;
    }
    const struct ring_record whole = record_of(record->words[0]);
    for (uint32_t i = 0; i < 4; i++) {
        if (record->words[i] != whole.words[i]) {
            stress_fault(&stress, STRESS_CORRUPT, "word %" PRIu32 " of number %" PRIu64, i,
                         whole.words[0]);
        }
    }
    arrive_at(reader, record->words[0]);
    reader->expected++;
}

static uint32_t read_batch(struct reader *reader)
{
    struct ring_record records[BATCH_MAX];
    const uint32_t most = 1 + random_below(&reader->random, BATCH_MAX);
    const uint32_t count = ring_read_any(&ring, records, most);
    if (count > most) {
        stress_fault(&stress, STRESS_BROKEN, "%" PRIu32 " records, %" PRIu32 " asked for", count,
                     most);
    }
    for (uint32_t i = 0; i < count && i < most; i++) {
        account(reader, &records[i]);
    }
    stress_count(&stress, 1, count);
    return count;
}

static void clear(struct reader *reader)
{
    ring_clear_reader(&ring);
    reader->may_be_behind = true;
}

static void *run_reader(void *arg)
{
    struct reader *reader = arg;
    while (load_acquire(&over) == 0) { /* ends the round */
        if (read_batch(reader) == 0) {
            (void)sched_yield(); /* or it would take the CPU from the writer */
        }
        if (reader->may_clear && random_below(&reader->random, 64) == 0) {
            clear(reader);
        }
        stress_pause(&reader->random, 4);
    }
    return NULL;
}

/* ---- rounds ---- */

/* Nobody else is at work: reads what is left, and the gap that may still be open. */
static void settle(struct writer *writer, struct reader *reader)
{
    while (read_batch(reader) > 0) {
    }
    if (!write_one(writer)) {
        stress_fault(&stress, STRESS_BROKEN, "an empty ring is closed");
    }
    while (read_batch(reader) > 0) {
    }
    if (reader->expected != writer->next) {
        stress_fault(&stress, STRESS_LOST, "read up to %" PRIu64 " of %" PRIu64, reader->expected,
                     writer->next);
    }
    if (reader->missing > writer->refused ||
        (reader->missing != writer->refused && !reader->may_clear)) {
        stress_fault(&stress, STRESS_LOST, "gaps count %" PRIu64 ", %" PRIu64 " were refused",
                     reader->missing, writer->refused);
    }
}

/* One round, until `ops` operations are done in all. */
static void run_round(struct writer *writer, uint32_t number, uint64_t ops)
{
    struct reader reader = {
        .random = stress_stream(&stress, 1 + number),
        .expected = writer->next,
        .may_clear = number % 2 == 1,
    };
    writer->refused = 0;
    store_relaxed(&over, 0); /* no reader yet */
    const pthread_t thread = stress_start_thread(run_reader, &reader);
    run_writer(writer, ops);
    store_release(&over, 1); /* ends the round */
    (void)pthread_join(thread, NULL);
    settle(writer, &reader);
}

int main(int argc, char **argv)
{
    stress_begin(&stress, argc, argv, DEFAULT_OPS);
    static struct writer writer;
    writer.random = stress_stream(&stress, 0);
    ring_init(&ring);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        run_round(&writer, i, stress.ops * (i + 1) / ROUNDS);
    }
    return stress_end(&stress);
}
