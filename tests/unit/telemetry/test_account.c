/* SPDX-License-Identifier: MIT */
/* When processes began and how long they have run, with times that the test makes up in place of
 * the monitor. */
#include "telemetry/account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BORN_UNIT   (UINT64_C(1) << BORN_SHIFT)
#define RUN_UNIT    (UINT64_C(1) << RUN_SHIFT)
#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static struct account account;
static struct process process;

static int set_up(void **state)
{
    (void)state;
    account = (struct account){0};
    process = (struct process){0};
    account_init(&account, NULL);
    return 0;
}

static void set_age_of_runtime(uint64_t age)
{
    store_relaxed(&account.sampled_at, account.created + age);
}

static void account_now_is_that_of_the_monitor(void **state)
{
    (void)state;
    set_age_of_runtime(5);
    assert_int_equal(account_now(&account), account.created + 5);
}

static void account_now_is_the_clocks_while_the_monitor_sleeps(void **state)
{
    (void)state;
    const uint64_t before = monotonic_ns();
    const uint64_t now = account_now(&account);
    assert_in_range(now, before, monotonic_ns());
}

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return 12345;
}

static void account_now_is_the_simulations_if_there_is_one(void **state)
{
    (void)state;
    struct time_source clock = {.now = read_clock};
    account_init(&account, &clock);
    set_age_of_runtime(5);
    assert_int_equal(account.created, 12345);
    assert_int_equal(account_now(&account), 12345);
}

static void account_age_is_right_to_a_unit(void **state)
{
    (void)state;
    static const uint64_t births[] = {0, 1, BORN_UNIT - 1, BORN_UNIT, 1000 * BORN_UNIT + 7};
    for (size_t i = 0; i < COUNT_OF(births); i++) {
        set_age_of_runtime(births[i]);
        account_begin(&account, &process);
        const uint64_t age = account_age(&account, &process);
        assert_in_range(age, 0, BORN_UNIT - 1);
        set_age_of_runtime(births[i] + 12345678901);
        assert_int_equal(account_age(&account, &process), age + 12345678901);
    }
}

/* A look of the monitor may be older than the process. */
static void account_age_is_never_negative(void **state)
{
    (void)state;
    set_age_of_runtime(10 * BORN_UNIT);
    account_begin(&account, &process);
    set_age_of_runtime(9 * BORN_UNIT);
    assert_int_equal(account_age(&account, &process), 0);
}

/* After more than two years. */
static void account_birth_stays_at_its_largest_value(void **state)
{
    (void)state;
    set_age_of_runtime(((uint64_t)UINT32_MAX + 5) << BORN_SHIFT);
    account_begin(&account, &process);
    assert_int_equal(load_relaxed(&process.born), UINT32_MAX);
    assert_int_equal(account_age(&account, &process), 5 * BORN_UNIT);
}

static void account_of_a_new_process_begins_at_zero(void **state)
{
    (void)state;
    account_add_run(&process, 5);
    assert_int_equal(account_run(&process), 5 * RUN_UNIT);
    account_begin(&account, &process);
    assert_int_equal(account_run(&process), 0);
}

#define ACCOUNT_TEST(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ACCOUNT_TEST(account_now_is_that_of_the_monitor),
        ACCOUNT_TEST(account_now_is_the_clocks_while_the_monitor_sleeps),
        ACCOUNT_TEST(account_now_is_the_simulations_if_there_is_one),
        ACCOUNT_TEST(account_age_is_right_to_a_unit),
        ACCOUNT_TEST(account_age_is_never_negative),
        ACCOUNT_TEST(account_birth_stays_at_its_largest_value),
        ACCOUNT_TEST(account_of_a_new_process_begins_at_zero),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
