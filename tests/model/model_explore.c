/* SPDX-License-Identifier: MIT */
/* The explorer itself: it runs as many schedules as there are, finds what is wrong in programs that
 * are wrong, and finds nothing in programs that are right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/futex.h"
#include "base/mutex.h"
#include "base/random.h"
#include "explore.h"

static atomic_u32 x;
static atomic_u32 y;
static atomic_u32 flag;
static uint32_t seen[4];
static pthread_mutex_t mutex;
static pthread_cond_t condition;
static uint32_t inside;

static void reset(void)
{
    store_relaxed(&x, 0);
    store_relaxed(&y, 0);
    store_relaxed(&flag, 0);
    memset(seen, 0, sizeof seen);
    inside = 0;
}

static void add_twice(const void *word)
{
    atomic_u32 *const to = word == NULL ? &x : &y;
    (void)fetch_add_relaxed(to, 1);
    (void)fetch_add_relaxed(to, 1);
}

static void read_twice(const void *word)
{
    (void)word;
    (void)load_relaxed(&x);
    (void)load_relaxed(&x);
}

/* Not atomic as a whole: an update can be lost. */
static void increment_by_parts(const void *arg)
{
    (void)arg;
    const uint32_t before = load_relaxed(&x);
    store_relaxed(&x, before + 1);
}

static void check_two(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 2, "both increments count");
}

/* Raises its flag, then reads the neighbour's: in one order of all steps one sees the other. */
static void raise_and_look(const void *second)
{
    store_seq_cst(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_seq_cst(second == NULL ? &y : &x);
}

static void check_one_saw(void)
{
    EXPLORE_CHECK(seen[0] + seen[1] >= 1, "one of them saw the other");
}

static void increment_locked(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    EXPLORE_CHECK(inside++ == 0, "one thread inside");
    increment_by_parts(NULL);
    inside--;
    mutex_unlock(&mutex);
}

/* Sleeps while x is 0; the check and the falling asleep are one step. */
static void sleep_rightly(const void *arg)
{
    (void)arg;
    while (load_seq_cst(&x) == 0) {
        futex_wait(&x, 0);
    }
}

/* Sleeps if x was 0 a step ago. */
static void sleep_wrongly(const void *arg)
{
    (void)arg;
    if (load_seq_cst(&x) == 0) {
        futex_wait(&y, 0);
    }
}

static void sleep_once(const void *arg)
{
    (void)arg;
    futex_wait(&x, 0);
    EXPLORE_CHECK(load_seq_cst(&x) == 1, "a futex wakes only when woken");
}

static void wake(const void *word)
{
    store_seq_cst(&x, 1);
    futex_wake_one(word == NULL ? &x : &y);
}

static void wait_rightly(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    while (load_relaxed(&x) == 0) {
        (void)condition_wait_until(&condition, &mutex, UINT64_MAX);
    }
    mutex_unlock(&mutex);
}

/* Waits if x was 0 before it had the mutex. */
static void wait_wrongly(const void *arg)
{
    (void)arg;
    const bool waits = load_relaxed(&x) == 0;
    mutex_lock(&mutex);
    if (waits) {
        (void)condition_wait_until(&condition, &mutex, UINT64_MAX);
    }
    mutex_unlock(&mutex);
}

/* Waits for a while; x counts those that were in time, y the others. */
static void wait_a_while(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    const bool in_time = condition_wait_until(&condition, &mutex, 1);
    mutex_unlock(&mutex);
    (void)fetch_add_relaxed(in_time ? &x : &y, 1);
}

static void wait_patiently(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    const bool in_time = condition_wait_until(&condition, &mutex, 1);
    mutex_unlock(&mutex);
    EXPLORE_CHECK(in_time || load_relaxed(&x) == 1, "time does not pass before the signal");
}

static void check_in_time(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 1 && load_relaxed(&y) == 0, "it was in time");
}

static void check_too_late(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 0 && load_relaxed(&y) == 1, "it was too late");
}

static void signal_one(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    store_relaxed(&x, 1);
    (void)pthread_cond_signal(&condition);
    mutex_unlock(&mutex);
}

static void signal_all(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    store_relaxed(&x, 1);
    mutex_unlock(&mutex);
    (void)pthread_cond_broadcast(&condition); /* without the mutex it is a step of its own */
}

static void join_first(const void *arg)
{
    (void)arg;
    (void)pthread_join((pthread_t)0, NULL);
    EXPLORE_CHECK(load_relaxed(&x) == 2, "it has ended");
}

static void take(const void *arg)
{
    (void)arg;
    explore_take(&x);
}

static void spin(const void *arg)
{
    (void)arg;
    while (load_relaxed(&x) == 0) {
    }
}

static void assert_two(const void *arg)
{
    add_twice(arg);
    SKUA_ASSERT(load_relaxed(&x) == 2);
}

/* ---- litmus tests: what weak memory allows, and what not ---- */

/* Store buffering, as raise_and_look: each stores to its word and reads the other's. */
static void store_load_relaxed(const void *second)
{
    store_relaxed(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_relaxed(second == NULL ? &y : &x);
}

static void store_load_acq_rel(const void *second)
{
    store_release(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_acquire(second == NULL ? &y : &x);
}

static void exchange_load_acq_rel(const void *second)
{
    (void)exchange_acq_rel(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_acquire(second == NULL ? &y : &x);
}

static void add_load_seq_cst(const void *second)
{
    (void)fetch_add_seq_cst(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_seq_cst(second == NULL ? &y : &x);
}

static void exchange_both_acq_rel(const void *second)
{
    (void)exchange_acq_rel(second == NULL ? &x : &y, 1);
    seen[second != NULL] = fetch_add_acq_rel(second == NULL ? &y : &x, 1);
}

/* Message passing: the message is x (and y), and the flag says that it is there. */
static void pass_relaxed(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    store_relaxed(&y, 1);
    store_relaxed(&flag, 1);
}

static void pass_release(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    store_release(&flag, 1);
}

static void check_message(bool passed)
{
    EXPLORE_CHECK(!passed || load_relaxed(&x) == 1, "the message is there");
}

static void receive_relaxed(const void *arg)
{
    (void)arg;
    check_message(load_relaxed(&flag) == 1);
}

static void receive_acquire(const void *arg)
{
    (void)arg;
    check_message(load_acquire(&flag) == 1);
}

/* Needs two stale loads to fail. */
static void receive_either(const void *arg)
{
    (void)arg;
    if (load_relaxed(&flag) == 1) {
        const uint32_t first = load_relaxed(&x);
        EXPLORE_CHECK(first + load_relaxed(&y) > 0, "one of two messages is there");
    }
}

/* Independent reads of independent writes: do two readers see two writers in the same order? */
static void write_release(const void *second)
{
    store_release(second == NULL ? &x : &y, 1);
}

static void write_seq_cst(const void *second)
{
    store_seq_cst(second == NULL ? &x : &y, 1);
}

static void read_both_acquire(const void *second)
{
    uint32_t *to = second == NULL ? &seen[0] : &seen[2];
    to[0] = load_acquire(second == NULL ? &x : &y);
    to[1] = load_acquire(second == NULL ? &y : &x);
}

static void read_both_seq_cst(const void *second)
{
    uint32_t *to = second == NULL ? &seen[0] : &seen[2];
    to[0] = load_seq_cst(second == NULL ? &x : &y);
    to[1] = load_seq_cst(second == NULL ? &y : &x);
}

static void check_one_order(void)
{
    EXPLORE_CHECK(!(seen[0] == 1 && seen[1] == 0 && seen[2] == 1 && seen[3] == 0),
                  "both see the same order");
}

/* Coherence: of one word nobody goes back. */
static void write_one_two(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    store_relaxed(&x, 2);
}

static void read_in_order(const void *arg)
{
    (void)arg;
    const uint32_t first = load_relaxed(&x);
    EXPLORE_CHECK(first <= load_relaxed(&x), "a word does not go back");
}

static void read_own(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    EXPLORE_CHECK(load_relaxed(&x) != 0, "its own store, or a later one");
}

/* A release sequence goes on through a read-modify-write, and ends with any other store. */
static void hand_on_by_add(const void *arg)
{
    (void)arg;
    (void)fetch_add_relaxed(&flag, 1);
}

static void hand_on_by_store(const void *arg)
{
    (void)arg;
    if (load_relaxed(&flag) == 1) {
        store_relaxed(&flag, 2);
    }
}

static void receive_two(const void *arg)
{
    (void)arg;
    check_message(load_acquire(&flag) == 2);
}

/* Of two seq_cst loads the one that sees the older value comes first; both ways are possible. */
static void read_after_flag(const void *second)
{
    if (load_relaxed(&flag) == 1) {
        seen[second != NULL] = 1 + load_seq_cst(&x);
    }
}

static void check_first_not_older(void)
{
    EXPLORE_CHECK(seen[0] != 1 || seen[1] != 2, "the first reader sees no less than the second");
}

static void check_second_not_older(void)
{
    EXPLORE_CHECK(seen[1] != 1 || seen[0] != 2, "the second reader sees no less than the first");
}

/* A compare-exchange may fail by what it sees, though what is there would let it succeed. */
static void replace_one(const void *arg)
{
    (void)arg;
    uint32_t expected = 1;
    if (load_relaxed(&flag) == 1) {
        EXPLORE_CHECK(cas_acq_rel_relaxed(&x, &expected, 2), "it sees the newest");
    }
}

static void replace_one_seq_cst(const void *arg)
{
    (void)arg;
    uint32_t expected = 1;
    if (load_relaxed(&flag) == 1) {
        EXPLORE_CHECK(cas_seq_cst(&x, &expected, 2), "it sees the newest");
    }
}

static void pass_seq_cst(const void *arg)
{
    (void)arg;
    store_seq_cst(&x, 1);
    store_relaxed(&flag, 1);
}

/* The same with a message in plain memory. */
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

static void check_four(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 4, "no addition is lost");
}

/* ---- random programs ---- */

#define PROGRAM_THREADS 3
#define PROGRAM_STEPS   3
#define OUTCOMES_MAX    2000

enum instruction {
    LOAD,
    LOAD_ACQUIRE,
    LOAD_SEQ_CST,
    STORE,
    STORE_RELEASE,
    ADD,
    COMPARE_EXCHANGE,
    COMPARE_EXCHANGE_SEQ_CST,
    TAKE,
    INSTRUCTIONS
};

static struct {
    enum instruction instruction;
    atomic_u32 *word;
    uint32_t value;
} code[PROGRAM_THREADS][PROGRAM_STEPS];

static uint32_t memory[PROGRAM_THREADS]; /* what each thread has seen, mixed together */
static uint32_t outcomes[OUTCOMES_MAX];  /* in order, each once */
static size_t outcome_count;

static void write_program(uint64_t *random)
{
    for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
        for (uint32_t j = 0; j < PROGRAM_STEPS; j++) {
            code[i][j].instruction = (enum instruction)random_below(random, INSTRUCTIONS);
            code[i][j].word = random_below(random, 2) == 0 ? &x : &y;
            code[i][j].value = random_below(random, 3);
        }
    }
}

static void run_program(const void *thread)
{
    const ptrdiff_t number = (const uint32_t *)thread - memory;
    for (uint32_t j = 0; j < PROGRAM_STEPS; j++) {
        atomic_u32 *word = code[number][j].word;
        uint32_t value = code[number][j].value;
        switch (code[number][j].instruction) {
        case LOAD:
            value = load_relaxed(word);
            break;
        case LOAD_ACQUIRE:
            value = load_acquire(word);
            break;
        case LOAD_SEQ_CST:
            value = load_seq_cst(word);
            break;
        case STORE:
            store_relaxed(word, value);
            break;
        case STORE_RELEASE:
            store_release(word, value);
            break;
        case ADD:
            value = fetch_add_relaxed(word, value);
            break;
        case COMPARE_EXCHANGE:
            (void)cas_acq_rel_relaxed(word, &value, value + 1);
            break;
        case COMPARE_EXCHANGE_SEQ_CST:
            (void)cas_seq_cst(word, &value, value + 1);
            break;
        case TAKE:
        case INSTRUCTIONS:
            explore_take(word);
            break;
        }
        memory[number] = memory[number] * 7 + value + 1;
    }
}

static void reset_program(void)
{
    reset();
    for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
        memory[i] = 0;
    }
}

static bool may_always_rest(void)
{
    return true;
}

static void note_outcome(void)
{
    uint32_t outcome = load_relaxed(&x) * 31 + load_relaxed(&y);
    for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
        outcome = outcome * 4099 + memory[i];
    }
    size_t at = 0;
    while (at < outcome_count && outcomes[at] < outcome) {
        at++;
    }
    if (at == outcome_count || outcomes[at] != outcome) {
        EXPLORE_CHECK(outcome_count < OUTCOMES_MAX, "there is room");
        memmove(&outcomes[at + 1], &outcomes[at], (outcome_count - at) * sizeof outcomes[0]);
        outcomes[at] = outcome;
        outcome_count++;
    }
}

/* ---- what is expected ---- */

static int failures;

static void expect(const struct explore_model *model, bool failed, uint64_t schedules)
{
    const struct explore_result result = explore(model, failed);
    const bool good = result.failed == failed && (schedules == 0 || result.schedules == schedules);
    printf("%-24s %4d schedules%s%s\n", model->name, (int)result.schedules,
           result.failed ? ", the fault was found" : "", good ? "" : ": NOT AS EXPECTED");
    failures += !good;
}

#define ANY 0

static const struct explore_model program = {.name = "add", .setup = reset};

/* The number of schedules, where it can be counted on paper. */
static void count_schedules(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"a", add_twice, NULL};
    model.threads[1] = (struct explore_thread){"b", add_twice, NULL};
    model.finish = NULL;
    model.name = "same_word_each";
    model.mode = EXPLORE_EACH;
    expect(&model, false, 6); /* 4! / (2! 2!) */
    model.name = "same_word_all";
    model.mode = EXPLORE_ALL;
    expect(&model, false, 6);
    model.name = "no_preemption";
    model.mode = EXPLORE_PREEMPTIONS;
    expect(&model, false, 2);
    model.name = "one_preemption";
    model.bound = 1;
    expect(&model, false, 4); /* aabb, abba, baab, bbaa */
    model.name = "random";
    model.mode = EXPLORE_RANDOM;
    model.bound = 50;
    expect(&model, false, 50);

    model.threads[1] = (struct explore_thread){"b", add_twice, &y};
    model.name = "other_word_each";
    model.mode = EXPLORE_EACH;
    expect(&model, false, 6);
    model.name = "other_word_all";
    model.mode = EXPLORE_ALL;
    expect(&model, false, 1);

    model.threads[0] = model.threads[1] = (struct explore_thread){"r", read_twice, NULL};
    model.name = "readers_all";
    expect(&model, false, 1);
    model.threads[2] = (struct explore_thread){"b", add_twice, &y};
    model.name = "readers_each";
    model.mode = EXPLORE_EACH;
    expect(&model, false, 90); /* 6! / (2! 2! 2!) */
}

static void find_lost_update(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"a", increment_by_parts, NULL};
    model.threads[1] = (struct explore_thread){"b", increment_by_parts, NULL};
    model.finish = check_two;
    model.name = "lost_update_all";
    expect(&model, true, ANY);
    model.name = "lost_update_each";
    model.mode = EXPLORE_EACH;
    expect(&model, true, ANY);
    model.name = "lost_update_random";
    model.mode = EXPLORE_RANDOM;
    model.bound = 100;
    expect(&model, true, ANY);
    model.name = "lost_update_hidden";
    model.mode = EXPLORE_PREEMPTIONS;
    model.bound = 0;
    expect(&model, false, 2);
    model.name = "lost_update_bounded";
    model.bound = 1;
    expect(&model, true, ANY);

    model.threads[0].run = model.threads[1].run = increment_locked;
    model.name = "update_with_mutex";
    model.mode = EXPLORE_EACH;
    expect(&model, false, 2);
    model.name = "update_with_open_mutex";
    model.mutexes_are_open = true;
    expect(&model, false, 2);
    model.threads[1].run = increment_by_parts;
    model.name = "update_half_locked";
    expect(&model, true, ANY);
}

static void see_one_order_of_all(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"a", raise_and_look, NULL};
    model.threads[1] = (struct explore_thread){"b", raise_and_look, &y};
    model.finish = check_one_saw;
    model.name = "store_then_load";
    expect(&model, false, 3); /* a before b, b before a, or both see both */
}

static void find_lost_wake(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"sleeper", sleep_rightly, NULL};
    model.threads[1] = (struct explore_thread){"waker", wake, NULL};
    model.name = "wake_right";
    expect(&model, false, ANY);
    model.name = "wake_lost";
    model.threads[0].run = sleep_wrongly;
    model.threads[1].arg = &y;
    expect(&model, true, ANY);

    model.threads[0].run = sleep_once;
    model.threads[1].arg = NULL;
    model.name = "wake_with_reason";
    expect(&model, false, ANY);
    model.name = "wake_without_reason";
    model.spurious_wakes = 1;
    expect(&model, true, ANY);
}

static void find_lost_signal(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"waiter", wait_rightly, NULL};
    model.threads[1] = (struct explore_thread){"signaller", signal_one, NULL};
    model.name = "signal_right";
    expect(&model, false, 2);
    model.threads[2] = model.threads[0];
    model.name = "signal_one_of_two";
    expect(&model, true, ANY);
    model.threads[1].run = signal_all;
    model.name = "signal_all";
    expect(&model, false, ANY);

    model.threads[0].run = wait_wrongly;
    model.threads[2] = (struct explore_thread){0};
    model.name = "signal_lost";
    expect(&model, true, ANY);
    model.mutexes_are_open = true;
    model.name = "signal_lost_open";
    expect(&model, true, ANY);
    model.threads[0].run = wait_rightly;
    model.threads[1].run = signal_one;
    model.name = "signal_right_open";
    expect(&model, false, ANY);
}

static void let_time_pass(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"waiter", wait_a_while, NULL};
    model.name = "time_stands_still";
    expect(&model, true, ANY);
    model.name = "time_passes";
    model.timeouts = 1;
    model.finish = check_too_late;
    expect(&model, false, 1);
    model.threads[1] = (struct explore_thread){"signaller", signal_all, NULL};
    model.name = "time_may_pass_first";
    model.finish = check_in_time;
    expect(&model, true, ANY);
    model.threads[0].run = wait_patiently;
    model.finish = NULL;
    model.name = "time_is_quick";
    expect(&model, true, ANY);
    model.name = "time_is_slow";
    model.time_is_slow = true;
    expect(&model, false, ANY);
}

static void join_only_what_has_ended(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"a", add_twice, NULL};
    model.threads[1] = (struct explore_thread){"joiner", join_first, NULL};
    model.name = "join";
    model.mode = EXPLORE_EACH;
    expect(&model, false, 1);
    model.threads[0].run = take;
    model.name = "join_without_end";
    expect(&model, true, ANY);
}

static void find_no_end(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"taker", take, NULL};
    model.threads[1] = (struct explore_thread){"giver", increment_by_parts, NULL};
    model.name = "take_one";
    expect(&model, false, ANY);
    model.threads[2] = (struct explore_thread){"taker2", take, NULL};
    model.name = "take_too_many";
    expect(&model, true, ANY);

    model = program;
    model.threads[0] = (struct explore_thread){"spinner", spin, NULL};
    model.name = "endless";
    expect(&model, true, ANY);
}

static void find_failed_assertion(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"a", assert_two, NULL};
    model.name = "assertion_holds";
    expect(&model, false, 1);
    model.threads[1] = (struct explore_thread){"b", add_twice, NULL};
    model.name = "assertion_fails";
    expect(&model, true, ANY);
}

/* ---- weak memory ---- */

struct litmus {
    const char *name;
    bool found; /* what it checks does not hold */
    struct explore_thread threads[4];
    void (*finish)(void);
};

#define PAIR(run)  EXPLORE_THREAD("a", run, NULL), EXPLORE_THREAD("b", run, &y)
#define ALONE(run) EXPLORE_THREAD(#run, run, NULL)

static const struct litmus litmus_tests[] = {
    {"sb_relaxed", true, {PAIR(store_load_relaxed)}, check_one_saw},
    {"sb_acq_rel", true, {PAIR(store_load_acq_rel)}, check_one_saw},
    {"sb_exchange_acq_rel", true, {PAIR(exchange_load_acq_rel)}, check_one_saw},
    {"sb_seq_cst", false, {PAIR(raise_and_look)}, check_one_saw},
    {"sb_add_seq_cst", false, {PAIR(add_load_seq_cst)}, check_one_saw},
    {"sb_only_rmw", false, {PAIR(exchange_both_acq_rel)}, check_one_saw},
    {"mp_relaxed", true, {ALONE(pass_relaxed), ALONE(receive_relaxed)}, NULL},
    {"mp_release_relaxed", true, {ALONE(pass_release), ALONE(receive_relaxed)}, NULL},
    {"mp_relaxed_acquire", true, {ALONE(pass_relaxed), ALONE(receive_acquire)}, NULL},
    {"mp_release_acquire", false, {ALONE(pass_release), ALONE(receive_acquire)}, NULL},
    {"iriw_acq_rel", true, {PAIR(write_release), PAIR(read_both_acquire)}, check_one_order},
    {"iriw_seq_cst", false, {PAIR(write_seq_cst), PAIR(read_both_seq_cst)}, check_one_order},
    {"iriw_seq_cst_loads", false, {PAIR(write_release), PAIR(read_both_seq_cst)}, check_one_order},
    {"coherence", false, {ALONE(write_one_two), ALONE(read_in_order)}, NULL},
    {"own_store", false, {ALONE(write_one_two), ALONE(read_own)}, NULL},
    {"sequence_by_add",
     false,
     {ALONE(pass_release), ALONE(hand_on_by_add), ALONE(receive_two)},
     NULL},
    {"sequence_by_store",
     true,
     {ALONE(pass_release), ALONE(hand_on_by_store), ALONE(receive_two)},
     NULL},
    {"seq_cst_loads_first",
     true,
     {ALONE(pass_relaxed), PAIR(read_after_flag)},
     check_first_not_older},
    {"seq_cst_loads_second",
     true,
     {ALONE(pass_relaxed), PAIR(read_after_flag)},
     check_second_not_older},
    {"cas_fails_stale", true, {ALONE(pass_relaxed), ALONE(replace_one)}, NULL},
    {"cas_fresh_seq_cst", false, {ALONE(pass_seq_cst), ALONE(replace_one_seq_cst)}, NULL},
    {"add_relaxed", false, {ALONE(add_twice), ALONE(add_twice)}, check_four},
};

/* Races do not need stale loads to be seen. */
static const struct litmus race_tests[] = {
    {"race_mp_relaxed", true, {ALONE(post_relaxed), ALONE(open_relaxed)}, NULL},
    {"race_mp_release_relaxed", true, {ALONE(post_release), ALONE(open_relaxed)}, NULL},
    {"race_mp_relaxed_acquire", true, {ALONE(post_relaxed), ALONE(open_acquire)}, NULL},
    {"no_race_mp_release_acquire", false, {ALONE(post_release), ALONE(open_acquire)}, NULL},
    {"no_race_two_readers",
     false,
     {ALONE(post_release), ALONE(open_acquire), ALONE(open_acquire)},
     NULL},
    {"race_two_writes", true, {ALONE(write_letter), ALONE(write_letter)}, NULL},
    {"race_read_write", true, {ALONE(read_letter), ALONE(write_letter)}, NULL},
    {"no_race_two_reads", false, {ALONE(read_letter), ALONE(read_letter)}, NULL},
    {"race_copies", true, {ALONE(copy_letters), ALONE(copy_letters)}, NULL},
    {"no_race_bytes", false, {PAIR(write_byte)}, NULL},
    {"race_bytes_and_word", true, {PAIR(write_byte), ALONE(write_letter)}, NULL},
    {"no_race_byte_after_release", false, {ALONE(post_byte), ALONE(open_byte)}, NULL},
    {"race_with_atomic", true, {ALONE(add_twice), ALONE(write_x_plainly)}, NULL},
    {"no_race_after_mutex", false, {ALONE(count_locked), ALONE(count_locked)}, NULL},
    {"no_race_own", false, {ALONE(count_own), ALONE(count_own)}, NULL},
};

static void see_races(void)
{
    for (size_t i = 0; i < sizeof race_tests / sizeof race_tests[0]; i++) {
        const struct litmus *test = &race_tests[i];
        struct explore_model model = program;
        model.name = test->name;
        memcpy(model.threads, test->threads, sizeof test->threads);
        expect(&model, test->found, ANY);
        model.stale = UINT32_MAX;
        expect(&model, test->found, ANY);
        model.mutexes_are_open = true;
        expect(&model, test->found, ANY);
    }
}

/* Each in all modes; without stale loads nothing is found. */
static void see_weak_memory(void)
{
    for (size_t i = 0; i < sizeof litmus_tests / sizeof litmus_tests[0]; i++) {
        const struct litmus *test = &litmus_tests[i];
        struct explore_model model = program;
        model.name = test->name;
        model.finish = test->finish;
        memcpy(model.threads, test->threads, sizeof test->threads);
        expect(&model, false, ANY);
        model.stale = UINT32_MAX;
        expect(&model, test->found, ANY);
        model.stale = 1;
        expect(&model, test->found, ANY);
        model.mode = EXPLORE_EACH;
        expect(&model, test->found, ANY);
        model.mode = EXPLORE_PREEMPTIONS;
        model.bound = 2;
        expect(&model, test->found, ANY);
        model.mode = EXPLORE_RANDOM;
        model.bound = 2000;
        expect(&model, test->found, ANY);
    }
}

static void see_no_more_stale_loads_than_allowed(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"writer", pass_relaxed, NULL};
    model.threads[1] = (struct explore_thread){"reader", receive_either, NULL};
    model.name = "one_stale";
    model.stale = 1;
    expect(&model, false, ANY);
    model.name = "two_stale";
    model.stale = 2;
    expect(&model, true, ANY);
}

static void see_what_a_mutex_hands_over(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"a", increment_locked, NULL};
    model.threads[1] = (struct explore_thread){"b", increment_locked, NULL};
    model.finish = check_two;
    model.stale = UINT32_MAX;
    model.name = "fresh_in_mutex";
    expect(&model, false, ANY);
    model.mutexes_are_open = true;
    model.name = "fresh_in_open_mutex";
    expect(&model, false, ANY);

    model.threads[0] = (struct explore_thread){"a", add_twice, NULL};
    model.threads[1] = (struct explore_thread){"joiner", join_first, NULL};
    model.finish = NULL;
    model.name = "fresh_after_join";
    expect(&model, false, ANY);
}

/* A schedule that is written down says which loads are stale. */
static void repeat_stale_loads(void)
{
    struct explore_model model = program;
    model.threads[0] = (struct explore_thread){"writer", pass_relaxed, NULL};
    model.threads[1] = (struct explore_thread){"reader", receive_relaxed, NULL};
    model.name = "repeat";
    model.stale = 1;
    const bool good = explore_repeat(&model, "00011") && !explore_repeat(&model, "00011a");
    printf("%s", good ? "" : "NOT AS EXPECTED: a schedule does not repeat\n");
    failures += !good;
}

/* Leaving out equivalent schedules must not leave out a way for a program to end. */
static void keep_all_outcomes(uint32_t stale)
{
    static uint32_t all[OUTCOMES_MAX];
    uint64_t seed = 1;
    uint64_t run = 0;
    uint64_t saved = 0;
    struct explore_model model = {.setup = reset_program,
                                  .may_rest = may_always_rest,
                                  .finish = note_outcome,
                                  .stale = stale};
    printf("random programs, seed %d, up to %u stale loads\n", (int)seed, (unsigned)stale);
    for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
        model.threads[i] = (struct explore_thread){"t", run_program, &memory[i]};
    }
    for (int i = 0; i < 100; i++) {
        write_program(&seed);
        outcome_count = 0;
        model.name = "program_each";
        model.mode = EXPLORE_EACH;
        const struct explore_result each = explore(&model, false);
        const size_t all_count = outcome_count;
        memcpy(all, outcomes, sizeof all);
        outcome_count = 0;
        model.name = "program_all";
        model.mode = EXPLORE_ALL;
        const struct explore_result fewer = explore(&model, false);
        const bool good = !each.failed && !fewer.failed && outcome_count == all_count &&
                          memcmp(all, outcomes, all_count * sizeof all[0]) == 0;
        printf("%s", good ? "" : "NOT AS EXPECTED: outcomes are missing\n");
        failures += !good;
        run += fewer.schedules;
        saved += each.schedules - fewer.schedules;
    }
    printf("%d schedules gave all outcomes, %d others gave no more\n", (int)run, (int)saved);
}

int main(void)
{
    mutex_init(&mutex);
    condition_init(&condition);
    count_schedules();
    find_lost_update();
    see_one_order_of_all();
    find_lost_wake();
    find_lost_signal();
    let_time_pass();
    join_only_what_has_ended();
    find_no_end();
    find_failed_assertion();
    see_weak_memory();
    see_no_more_stale_loads_than_allowed();
    see_races();
    see_what_a_mutex_hands_over();
    repeat_stale_loads();
    keep_all_outcomes(0);
    keep_all_outcomes(1);
    keep_all_outcomes(UINT32_MAX);
    mutex_deinit(&mutex);
    (void)pthread_cond_destroy(&condition);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
