/* SPDX-License-Identifier: MIT */
/* The explorer itself: it runs as many schedules as there are, finds what is wrong in programs that
 * are wrong, finds nothing in programs that are right, and leaves out no way for one to end. */
#include "base/assert.h"
#include "base/random.h"
#include "self_test.h"

static void read_twice(const void *word)
{
    (void)word;
    (void)load_relaxed(&x);
    (void)load_relaxed(&x);
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

static const struct self_test tests[] = {
    /* 4! / (2! 2!) */
    PASSES(6, "same_word_each", .mode = EXPLORE_EACH, .threads = {TWICE(add_twice)}),
    PASSES(6, "same_word_all", .mode = EXPLORE_ALL, .threads = {TWICE(add_twice)}),
    PASSES(2, "no_preemption", .mode = EXPLORE_PREEMPTIONS, .threads = {TWICE(add_twice)}),
    /* aabb, abba, baab, bbaa */
    PASSES(4, "one_preemption", .mode = EXPLORE_PREEMPTIONS, .bound = 1,
           .threads = {TWICE(add_twice)}),
    /* aabb and bbaa: in abba the second a might as well have been made before the first b */
    PASSES(2, "needless_preemption", .mode = EXPLORE_PREEMPTIONS, .bound = 1,
           .threads = {PAIR(add_twice)}),
    PASSES(50, "random", .mode = EXPLORE_RANDOM, .bound = 50, .threads = {TWICE(add_twice)}),
    PASSES(6, "other_word_each", .mode = EXPLORE_EACH, .threads = {PAIR(add_twice)}),
    PASSES(1, "other_word_all", .threads = {PAIR(add_twice)}),
    PASSES(1, "readers_all", .threads = {TWICE(read_twice)}),
    /* 6! / (2! 2! 2!) */
    PASSES(90, "readers_each", .mode = EXPLORE_EACH,
           .threads = {TWICE(read_twice), EXPLORE_THREAD("c", add_twice, &y)}),

    FAILS("lost_update_all", .threads = {TWICE(increment_by_parts)}, .finish = check_two),
    FAILS("lost_update_each", .mode = EXPLORE_EACH, .threads = {TWICE(increment_by_parts)},
          .finish = check_two),
    FAILS("lost_update_random", .mode = EXPLORE_RANDOM, .bound = 100,
          .threads = {TWICE(increment_by_parts)}, .finish = check_two),
    PASSES(2, "lost_update_hidden", .mode = EXPLORE_PREEMPTIONS,
           .threads = {TWICE(increment_by_parts)}, .finish = check_two),
    FAILS("lost_update_bounded", .mode = EXPLORE_PREEMPTIONS, .bound = 1,
          .threads = {TWICE(increment_by_parts)}, .finish = check_two),

    /* a before b, b before a, or both see both */
    PASSES(3, "store_then_load", .threads = {PAIR(raise_and_look)}, .finish = check_one_saw),

    PASSES(ANY, "take_one", .threads = {ALONE(take), ALONE(increment_by_parts)}),
    FAILS("take_too_many", .threads = {ALONE(take), ALONE(increment_by_parts), ALONE(take)}),
    FAILS("endless", .threads = {ALONE(spin)}),
    PASSES(1, "assertion_holds", .threads = {ALONE(assert_two)}),
    FAILS("assertion_fails", .threads = {ALONE(assert_two), ALONE(add_twice)}),
};

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
    INSTRUCTIONS_OF_ONE_STEP,
    ADD_LOCKED = INSTRUCTIONS_OF_ONE_STEP,
    ADD_AND_SIGNAL,
    WAIT_FOR_SIGNAL,
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

static void write_program(uint64_t *random, uint32_t instructions)
{
    for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
        for (uint32_t j = 0; j < PROGRAM_STEPS; j++) {
            code[i][j].instruction = (enum instruction)random_below(random, instructions);
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
            explore_take(word);
            break;
        case ADD_LOCKED:
            mutex_lock(&mutex);
            value = fetch_add_relaxed(word, value);
            mutex_unlock(&mutex);
            break;
        case ADD_AND_SIGNAL:
            value = fetch_add_relaxed(word, value);
            (void)pthread_cond_signal(&condition);
            break;
        case WAIT_FOR_SIGNAL:
        case INSTRUCTIONS:
            mutex_lock(&mutex);
            value = load_relaxed(word);
            if (value == 0) {
                (void)pthread_cond_wait(&condition, &mutex);
            }
            mutex_unlock(&mutex);
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

/* Runs the program that has been written and notes its outcomes. */
static uint64_t collect_outcomes(enum explore_mode mode, uint32_t bound, uint32_t stale,
                                 bool mutexes_are_open)
{
    struct explore_model model = {.name = "program",
                                  .mode = mode,
                                  .bound = bound,
                                  .stale = stale,
                                  .mutexes_are_open = mutexes_are_open,
                                  .setup = reset_program,
                                  .may_rest = may_always_rest,
                                  .finish = note_outcome};
    for (uint32_t i = 0; i < PROGRAM_THREADS; i++) {
        model.threads[i] = (struct explore_thread){"t", run_program, &memory[i]};
    }
    outcome_count = 0;
    const struct explore_result result = explore(&model, false);
    expect_that(!result.failed, "a program without checks fails");
    return result.schedules;
}

/* Leaving out equivalent schedules must not leave out a way for a program to end. A bound of 0:
 * any number of preemptions. */
static void keep_all_outcomes(uint32_t bound, uint32_t stale)
{
    static uint32_t all[OUTCOMES_MAX];
    uint64_t seed = 1;
    uint64_t run = 0;
    uint64_t saved = 0;
    printf("random programs, seed %d, up to %u stale loads", (int)seed, (unsigned)stale);
    if (bound > 0) {
        printf(", up to %u preemptions", (unsigned)bound);
    }
    for (int i = 0; i < 100; i++) {
        write_program(&seed, bound > 0 ? INSTRUCTIONS : INSTRUCTIONS_OF_ONE_STEP);
        const bool open = i % 2 == 0;
        const uint64_t each = collect_outcomes(EXPLORE_EACH, bound, stale, open);
        const size_t all_count = outcome_count;
        memcpy(all, outcomes, sizeof all);
        const uint64_t fewer =
            collect_outcomes(bound > 0 ? EXPLORE_PREEMPTIONS : EXPLORE_ALL, bound, stale, open);
        expect_that(outcome_count == all_count &&
                        memcmp(all, outcomes, all_count * sizeof all[0]) == 0,
                    "outcomes are missing");
        run += fewer;
        saved += each - fewer;
    }
    printf("\n%d schedules gave all outcomes, %d others gave no more\n", (int)run, (int)saved);
}

static void body(void)
{
    run_tests(tests, COUNT_OF(tests));
    keep_all_outcomes(0, 0);
    keep_all_outcomes(0, 1);
    keep_all_outcomes(0, UINT32_MAX);
    for (uint32_t bound = 1; bound <= 3; bound++) {
        keep_all_outcomes(bound, 0);
        keep_all_outcomes(bound, 1);
    }
}

int main(void)
{
    return run_self_test(body);
}
