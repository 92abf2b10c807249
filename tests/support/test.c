/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>

#include "runtime_support.h"

#define WORKER_COUNTS_MAX 8
#define AT_END_MAX        8

static struct test *first_test;
static struct test **last_link = &first_test;
static size_t test_count;

static uint32_t worker_counts[WORKER_COUNTS_MAX] = {1, 2, 4};
static size_t worker_count_count = 3;

struct block {
    struct block *next;
    max_align_t bytes[];
};

/* The test that runs. */
static struct {
    uint32_t workers;
    bool asked_for_workers;
    bool complete;
    const char *name;
    void (*describe)(void); /* may be null */
    void (*at_end[AT_END_MAX])(void);
    size_t at_end_count;
    struct block *blocks;
    uint64_t round; /* 0: none */
    /* What was there before the first round, and stays. */
    size_t at_end_before;
    struct block *blocks_before;
} now;

uint64_t test_number;

void test_register(struct test *test)
{
    *last_link = test;
    last_link = &test->next;
    test_count++;
}

uint32_t test_workers(void)
{
    now.asked_for_workers = true;
    return now.workers;
}

void test_at_end(void (*function)(void))
{
    assert_in_range(now.at_end_count, 0, AT_END_MAX - 1);
    now.at_end[now.at_end_count++] = function;
}

void *test_alloc(size_t size)
{
    struct block *block = calloc(1, sizeof *block + size);
    assert_non_null(block);
    block->next = now.blocks;
    now.blocks = block;
    return block->bytes;
}

/* Ends what was begun since there were so many functions to call, and this block was the newest. */
static void end_since(size_t at_end_count, const struct block *newest)
{
    while (now.at_end_count > at_end_count) {
        now.at_end[--now.at_end_count]();
    }
    while (now.blocks != newest) {
        struct block *block = now.blocks;
        now.blocks = block->next;
        free(block);
    }
}

bool test_round(uint64_t done, uint64_t count)
{
    if (done == 0) {
        now.at_end_before = now.at_end_count;
        now.blocks_before = now.blocks;
    } else {
        end_since(now.at_end_before, now.blocks_before);
    }
    test_number++;
    watchdog_restart();
    now.round = done < count ? done + 1 : 0;
    return done < count;
}

static void run_once(const struct test *test, uint32_t workers)
{
    now.workers = workers;
    now.asked_for_workers = false;
    now.complete = false;
    now.at_end_count = 0;
    now.round = 0;
    now.name = test->name;
    now.describe = NULL;
    test_number++;
    watchdog_restart();
    test->body();
    end_since(0, NULL);
    now.complete = true;
}

static void run(void **state)
{
    const struct test *test = *state;
    for (size_t i = 0; i < worker_count_count; i++) {
        run_once(test, worker_counts[i]);
        if (!now.asked_for_workers) {
            return;
        }
    }
}

void test_describe_with(void (*function)(void))
{
    now.describe = function;
}

void test_describe(void)
{
    if (now.name == NULL || now.complete) {
        return;
    }
    (void)fprintf(stderr, "          in %s", now.name);
    if (now.asked_for_workers) {
        (void)fprintf(stderr, ", workers: %u", now.workers);
    }
    if (now.round > 0) {
        (void)fprintf(stderr, ", round %" PRIu64, now.round);
    }
    (void)fputs("\n", stderr);
    if (now.describe != NULL) {
        now.describe();
    }
}

/* What a failed test has left behind may still be in use by threads, so it stays. */
static int tell_failure(void **state)
{
    (void)state;
    if (!now.complete) {
        test_describe();
        now.blocks = NULL;
    }
    return 0;
}

static int run_all(const char *program)
{
    struct CMUnitTest *tests = calloc(test_count, sizeof *tests);
    if (tests == NULL || test_count == 0) {
        (void)fprintf(stderr, "%s: no tests\n", program);
        free(tests);
        return 1;
    }
    size_t count = 0;
    for (struct test *test = first_test; test != NULL; test = test->next) {
        tests[count++] = (struct CMUnitTest){.name = test->name,
                                             .test_func = run,
                                             .teardown_func = tell_failure,
                                             .initial_state = test};
    }
    const int failures = _cmocka_run_group_tests(program, tests, count, NULL, NULL);
    free(tests);
    return failures;
}

/* Those that match; returns how many. */
static size_t list_matching(const char *pattern, bool prints)
{
    size_t count = 0;
    for (const struct test *test = first_test; test != NULL; test = test->next) {
        if (fnmatch(pattern, test->name, 0) == 0) {
            count++;
            if (prints) {
                (void)puts(test->name);
            }
        }
    }
    return count;
}

static bool has_tasks;

bool test_has_tasks(void)
{
    return has_tasks;
}

void test_of_steps(const char *why)
{
    if (has_tasks) {
        print_message("not for tasks: %s\n", why);
        skip();
    }
}

/* "1,2,4" */
static bool read_worker_counts(const char *list)
{
    worker_count_count = 0;
    for (char *end; worker_count_count < WORKER_COUNTS_MAX; list = end + 1) {
        const unsigned long count = strtoul(list, &end, 10);
        if (count == 0 || count > UINT32_MAX || (*end != ',' && *end != '\0')) {
            return false;
        }
        worker_counts[worker_count_count++] = (uint32_t)count;
        if (*end == '\0') {
            return true;
        }
    }
    return false;
}

int test_main(int argc, char **argv)
{
    const char *pattern = "*";
    bool lists = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            lists = true;
        } else if (strcmp(argv[i], "--workers") == 0 && i + 1 < argc &&
                   read_worker_counts(argv[i + 1])) {
            i++;
        } else if (strcmp(argv[i], "--tasks") == 0) {
            has_tasks = true;
        } else if (argv[i][0] != '-') {
            pattern = argv[i];
        } else {
            const bool is_help = strcmp(argv[i], "--help") == 0;
            (void)fprintf(is_help ? stdout : stderr,
                          "usage: %s [--list] [--tasks] [--workers COUNT,...] [PATTERN]\n",
                          argv[0]);
            return is_help ? 0 : 2;
        }
    }
    if (list_matching(pattern, lists) == 0) {
        (void)fprintf(stderr, "%s: no test matches '%s'\n", argv[0], pattern);
        return 1;
    }
    if (lists) {
        return 0;
    }
    cmocka_set_test_filter(pattern);
    watchdog_start();
    return run_all(argv[0]);
}
