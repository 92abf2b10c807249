/* SPDX-License-Identifier: MIT */
/* When processes began and how long they have run, with times that the test makes up in place of
 * the monitor. */
#include "telemetry/account.h"

#include "test.h"

#define BORN_UNIT (UINT64_C(1) << BORN_SHIFT)
#define RUN_UNIT  (UINT64_C(1) << RUN_SHIFT)

static struct account account;
static struct process process;

static void open_account(void)
{
    account = (struct account){0};
    process = (struct process){0};
    account_init(&account, NULL);
}

static void set_age_of_runtime(uint64_t age)
{
    store_relaxed(&account.sampled_at, account.created + age);
}

TEST(account_now_is_that_of_the_monitor)
{
    open_account();
    set_age_of_runtime(5);
    assert_int_equal(account_now(&account), account.created + 5);
}

TEST(account_now_is_the_clocks_while_the_monitor_sleeps)
{
    open_account();
    const uint64_t before = monotonic_ns();
    const uint64_t now = account_now(&account);
    assert_in_range(now, before, monotonic_ns());
}

static uint64_t read_clock(struct time_source *source)
{
    (void)source;
    return 12345;
}

TEST(account_now_is_the_simulations_if_there_is_one)
{
    struct time_source clock = {.now = read_clock};
    account_init(&account, &clock);
    set_age_of_runtime(5);
    assert_int_equal(account.created, 12345);
    assert_int_equal(account_now(&account), 12345);
}

TEST(account_age_is_right_to_a_unit)
{
    static const uint64_t births[] = {0, 1, BORN_UNIT - 1, BORN_UNIT, 1000 * BORN_UNIT + 7};
    FOR_ROWS (birth, births) {
        open_account();
        set_age_of_runtime(*birth);
        account_begin(&account, &process);
        const uint64_t age = account_age(&account, &process);
        assert_in_range(age, 0, BORN_UNIT - 1);
        set_age_of_runtime(*birth + 12345678901);
        assert_int_equal(account_age(&account, &process), age + 12345678901);
    }
}

/* A look of the monitor may be older than the process. */
TEST(account_age_is_never_negative)
{
    open_account();
    set_age_of_runtime(10 * BORN_UNIT);
    account_begin(&account, &process);
    set_age_of_runtime(9 * BORN_UNIT);
    assert_int_equal(account_age(&account, &process), 0);
}

/* After more than two years. */
TEST(account_birth_stays_at_its_largest_value)
{
    open_account();
    set_age_of_runtime(((uint64_t)UINT32_MAX + 5) << BORN_SHIFT);
    account_begin(&account, &process);
    assert_int_equal(load_relaxed(&process.born), UINT32_MAX);
    assert_int_equal(account_age(&account, &process), 5 * BORN_UNIT);
}

TEST(account_of_a_new_process_begins_at_zero)
{
    open_account();
    account_add_run(&process, 5);
    assert_int_equal(account_run(&process), 5 * RUN_UNIT);
    account_begin(&account, &process);
    assert_int_equal(account_run(&process), 0);
}
