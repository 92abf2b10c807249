/* SPDX-License-Identifier: MIT */
/* The explorer itself: races of plain accesses. They do not need stale loads to be seen. */
#include "self_test.h"

/* ---- messages in plain memory ---- */

static union {
    uint32_t word;
    char bytes[4];
} letter;
static char letters[64];
EXPLORE_OWN static uint32_t count;

static void post_relaxed(const void *arg)
{
    (void)arg;
    letter.word = 1;
    store_relaxed(&flag, 1);
}

static void post_release(const void *arg)
{
    (void)arg;
    letter.word = 1;
    store_release(&flag, 1);
}

static void open_relaxed(const void *arg)
{
    (void)arg;
    if (load_relaxed(&flag) == 1) {
        EXPLORE_CHECK(letter.word < 3, "what was written");
    }
}

static void open_acquire(const void *arg)
{
    (void)arg;
    if (load_acquire(&flag) == 1) {
        EXPLORE_CHECK(letter.word < 3, "what was written");
    }
}

static void write_letter(const void *arg)
{
    (void)arg;
    (void)load_relaxed(&flag);
    letter.word = 2;
}

static void read_letter(const void *arg)
{
    (void)arg;
    (void)load_relaxed(&flag);
    EXPLORE_CHECK(letter.word < 3, "what was written");
}

static void copy_letters(const void *arg)
{
    (void)arg;
    (void)load_relaxed(&flag);
    memset(&letters[8], 1, 32);
}

static void write_byte(const void *second)
{
    (void)load_relaxed(&flag);
    letter.bytes[second != NULL] = 1;
}

/* Another byte of the same word is written after the release. */
static void post_byte(const void *arg)
{
    (void)arg;
    letter.bytes[0] = 1;
    store_release(&flag, 1);
    letter.bytes[1] = 1;
}

static void open_byte(const void *arg)
{
    (void)arg;
    if (load_acquire(&flag) == 1) {
        letter.bytes[0] = 2;
    }
}

static void write_x_plainly(const void *arg)
{
    (void)arg;
    (void)load_relaxed(&flag);
    *(uint32_t *)&x = 1;
}

static void count_locked(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    inside++;
    mutex_unlock(&mutex);
}

static void count_own(const void *arg)
{
    (void)arg;
    (void)load_relaxed(&flag);
    count++;
}

/* ---- what is expected ---- */

static const struct self_test tests[] = {
    FAILS("race_mp_relaxed", .threads = {ALONE(post_relaxed), ALONE(open_relaxed)}),
    FAILS("race_mp_release_relaxed", .threads = {ALONE(post_release), ALONE(open_relaxed)}),
    FAILS("race_mp_relaxed_acquire", .threads = {ALONE(post_relaxed), ALONE(open_acquire)}),
    PASSES(ANY, "no_race_mp_release_acquire",
           .threads = {ALONE(post_release), ALONE(open_acquire)}),
    PASSES(ANY, "no_race_two_readers",
           .threads = {ALONE(post_release), ALONE(open_acquire), ALONE(open_acquire)}),
    FAILS("race_two_writes", .threads = {ALONE(write_letter), ALONE(write_letter)}),
    FAILS("race_read_write", .threads = {ALONE(read_letter), ALONE(write_letter)}),
    PASSES(ANY, "no_race_two_reads", .threads = {ALONE(read_letter), ALONE(read_letter)}),
    FAILS("race_copies", .threads = {ALONE(copy_letters), ALONE(copy_letters)}),
    PASSES(ANY, "no_race_bytes", .threads = {PAIR(write_byte)}),
    FAILS("race_bytes_and_word", .threads = {PAIR(write_byte), ALONE(write_letter)}),
    PASSES(ANY, "no_race_byte_after_release", .threads = {ALONE(post_byte), ALONE(open_byte)}),
    FAILS("race_with_atomic", .threads = {ALONE(add_twice), ALONE(write_x_plainly)}),
    PASSES(ANY, "no_race_after_mutex", .threads = {ALONE(count_locked), ALONE(count_locked)}),
    PASSES(ANY, "no_race_own", .threads = {ALONE(count_own), ALONE(count_own)}),
};

static void body(void)
{
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        struct explore_model model = tests[i].model;
        run_test(&model, tests[i].fails, ANY);
        model.stale = UINT32_MAX;
        run_test(&model, tests[i].fails, ANY);
        model.mutexes_are_open = true;
        run_test(&model, tests[i].fails, ANY);
    }
}

int main(void)
{
    return run_self_test(body);
}
