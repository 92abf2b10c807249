/* SPDX-License-Identifier: MIT */
/* The frame of a test program: tests register themselves, and main is there.
 *
 *   #include "test.h"
 *
 *   TEST(deque_pops_the_newest_first)
 *   {
 *       assert_int_equal(...);
 *   }
 *
 * Where the number of workers may matter, a test asks for it with test_workers(); world_open()
 * does. The runner then runs it once for each count in its list: 1, 2 and 4, or what --workers
 * says.
 *
 *   test_message_order                    all tests of the program
 *   test_message_order 'batch_*'          those whose names match
 *   test_message_order --workers 8        with another number of workers
 *   test_message_order --tasks            with actors that are tasks (actor.h)
 *   test_message_order --list             their names */
#ifndef SKUA_TESTS_TEST_H
#define SKUA_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"

struct test {
    const char *name;
    void (*body)(void);
    struct test *next;
};

void test_register(struct test *test);

/* What main does (test_main.c), unless a program has one of its own. */
int test_main(int argc, char **argv);

/* Defines a test; its body follows. */
#define TEST(name_)                                                                                \
    static void name_(void);                                                                       \
    __attribute__((constructor)) static void register_##name_(void)                                \
    {                                                                                              \
        static struct test test = {.name = #name_, .body = name_};                                 \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void name_(void)

/* How many workers the current run of this test has. A test that asks is run for every count. */
uint32_t test_workers(void);

/* Whether the runner has asked for actors that are tasks (--tasks). */
bool test_has_tasks(void);

/* Skips a test that does not hold then, and says why. */
void test_of_steps(const char *why);

/* Which run of a test this is: another for each. */
extern uint64_t test_number;

/* Has `function` called after the current test, if it came to its end; last asked, first called.
 * It may assert. */
void test_at_end(void (*function)(void));

/* Has `function` called if the current test fails or hangs, to say what was going on. It is called
 * while threads may still run, so it only prints. */
void test_describe_with(void (*function)(void));

/* Says what is known of the current test, on standard error: for what ends the program. */
void test_describe(void);

/* Memory that is released after the test, zeroed. */
void *test_alloc(size_t size);

/* A loop whose body is a test of its own, for each number from 1 or for each row of a table: what
 * a round opens is closed, checked and released before the next begins, and a failure names the
 * round; what was opened before the loop stays. Not nested.
 *
 *   FOR_ROUNDS(seed, 50) {
 *       world_open_sim(seed, no_faults);
 *       ...
 *   } */
#define FOR_ROUNDS(number, count) for (uint64_t number = 1; test_round(number - 1, count); number++)
#define FOR_ROWS(row, rows)                                                                        \
    for (const __typeof__((rows)[0]) *row = (rows);                                                \
         test_round((uint64_t)(row - (rows)), COUNT_OF(rows)); row++)

/* For these: `done` rounds are over; whether there is one more. */
bool test_round(uint64_t done, uint64_t count);

#endif
