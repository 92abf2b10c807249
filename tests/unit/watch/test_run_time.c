/* SPDX-License-Identifier: MIT */
/* How long processes have run, by samples that the test makes up in place of the monitor. */
#include "watch/run_time.h"

#include "scheduler_rig.h"

#define RUN_UNIT (UINT64_C(1) << RUN_SHIFT)

static struct process *process;
static uint64_t rest;

/* A process at rest. */
static void open_scene(void)
{
    scheduler_rig_open();
    process = rig_spawn(worker(0), &rig_resting);
    rig_run_all();
    rest = 0;
}

static void add(uint64_t pid_bits, uint64_t span)
{
    run_time_add(&rig.sched, (skua_pid){pid_bits}, span, &rest);
}

/* What is less than a unit waits for the next time. */
TEST(run_time_loses_nothing)
{
    uint64_t sum = 0;
    open_scene();
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t span = i * 1234567 % (3 * RUN_UNIT);
        add(rig_pid(process).bits, span);
        sum += span;
        assert_true(rest < RUN_UNIT);
        assert_int_equal(account_run(process) + rest, sum);
    }
}

TEST(run_time_stays_at_its_largest_value)
{
    open_scene();
    store_relaxed(&process->run, UINT32_MAX - 1);
    for (uint32_t i = 0; i < 3; i++) {
        add(rig_pid(process).bits, 2 * RUN_UNIT);
        assert_int_equal(account_run(process), (uint64_t)UINT32_MAX << RUN_SHIFT);
    }
}

TEST(run_time_of_one_that_is_gone_is_nobodys)
{
    open_scene();
    const uint64_t bits = rig_pid(process).bits;
    add(bits - (UINT64_C(1) << PID_SLOT_BITS), 5 * RUN_UNIT);       /* of an earlier generation */
    add(bits | ((UINT64_C(1) << PID_SLOT_BITS) - 1), 5 * RUN_UNIT); /* which never was */
    assert_int_equal(account_run(process), 0);
}
