/* SPDX-License-Identifier: MIT */
/* For the programs that test the explorer itself (model_explore_*.c): a few words of memory,
 * threads that use them, and a table of models with what is expected of each. */
#ifndef SKUA_TESTS_MODEL_SELF_TEST_H
#define SKUA_TESTS_MODEL_SELF_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "explore.h"

/* ---- memory, zero at the beginning of each schedule ---- */

static atomic_u32 x;
static atomic_u32 y;
static atomic_u32 flag;
static uint32_t seen[4];
static uint32_t inside; /* threads in the mutex */
static pthread_mutex_t mutex;
static pthread_cond_t condition;

static inline void reset(void)
{
    store_relaxed(&x, 0);
    store_relaxed(&y, 0);
    store_relaxed(&flag, 0);
    memset(seen, 0, sizeof seen);
    inside = 0;
}

/* ---- threads ---- */

/* One thread gets a null pointer and the first word, the other one the second: */
#define PAIR(run)  EXPLORE_THREAD("a", run, NULL), EXPLORE_THREAD("b", run, &y)
#define TWICE(run) EXPLORE_THREAD("a", run, NULL), EXPLORE_THREAD("b", run, NULL)
#define ALONE(run) EXPLORE_THREAD(#run, run, NULL)

static inline void add_twice(const void *second)
{
    atomic_u32 *const to = second == NULL ? &x : &y;
    (void)fetch_add_relaxed(to, 1);
    (void)fetch_add_relaxed(to, 1);
}

/* Not atomic as a whole: an update can be lost. */
static inline void increment_by_parts(const void *arg)
{
    (void)arg;
    const uint32_t before = load_relaxed(&x);
    store_relaxed(&x, before + 1);
}

static inline void increment_locked(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    EXPLORE_CHECK(inside++ == 0, "one thread inside");
    increment_by_parts(NULL);
    inside--;
    mutex_unlock(&mutex);
}

static inline void check_two(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 2, "both increments count");
}

/* Raises its flag, then reads the neighbour's: in one order of all steps one sees the other. */
static inline void raise_and_look(const void *second)
{
    store_seq_cst(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_seq_cst(second == NULL ? &y : &x);
}

static inline void check_one_saw(void)
{
    EXPLORE_CHECK(seen[0] + seen[1] >= 1, "one of them saw the other");
}

static inline void take(const void *arg)
{
    (void)arg;
    explore_take(&x);
}

/* ---- what is expected ---- */

struct self_test {
    struct explore_model model;
    bool fails;
    uint64_t schedules; /* ANY, or how many, where that can be counted on paper */
};

#define ANY 0
#define PASSES(schedules_, name_, ...)                                                             \
    {                                                                                              \
        .model = {.name = name_, .setup = reset, __VA_ARGS__}, .schedules = schedules_             \
    }
#define FAILS(name_, ...)                                                                          \
    {                                                                                              \
        .model = {.name = name_, .setup = reset, __VA_ARGS__}, .fails = true                       \
    }

static int failures;

static inline void expect_that(bool holds, const char *otherwise)
{
    if (!holds) {
        printf("NOT AS EXPECTED: %s\n", otherwise);
        failures++;
    }
}

static inline void run_test(const struct explore_model *model, bool fails, uint64_t schedules)
{
    const struct explore_result result = explore(model, fails);
    printf("%-24s %4d schedules%s\n", model->name, (int)result.schedules,
           result.failed ? ", the fault was found" : "");
    expect_that(result.failed == fails && (schedules == ANY || result.schedules == schedules),
                model->name);
}

static inline void run_tests(const struct self_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run_test(&tests[i].model, tests[i].fails, tests[i].schedules);
    }
}

/* The program: `body` runs its tests. */
static inline int run_self_test(void (*body)(void))
{
    mutex_init(&mutex);
    condition_init(&condition);
    body();
    mutex_deinit(&mutex);
    (void)pthread_cond_destroy(&condition);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
