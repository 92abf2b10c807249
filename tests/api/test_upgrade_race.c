/* SPDX-License-Identifier: MIT */
/* Upgrades while the processes are called, looked at, started, ended and cancelled; and without
 * memory. */
#include "threads.h"
#include "versions.h"

#include <skua/upgrade.h>

#define COUNTERS 200

static skua_pid counters[COUNTERS];
static atomic_bool over;

static void start_counters(const skua_process_type *type)
{
    atomic_store(&over, false);
    counters_reset();
    for (uint32_t i = 0; i < COUNTERS; i++) {
        counters[i] = counter_start(type);
    }
}

/* Calls all of them, in rounds. */
static void call_all(void *arg)
{
    uint64_t *calls = arg;
    while (!atomic_load(&over)) {
        for (uint32_t i = 0; i < COUNTERS; i++) {
            counter_add(counters[i], 1);
            (void)counter_total(counters[i]);
        }
        ++*calls;
    }
}

/* Finds a valid type, whatever happens. */
static void look_at_all(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        skua_process_snapshot snapshots[16];
        skua_pid after = {0};
        int count;
        do {
            count = skua_process_list(world_runtime(), after, snapshots, COUNT_OF(snapshots));
            for (int i = 0; i < count; i++) {
                if (strcmp(snapshots[i].type_name, "counter") == 0) {
                    assert_in_range(snapshots[i].type_version, 1, 3);
                }
                after = snapshots[i].pid;
            }
        } while (count == (int)COUNT_OF(snapshots));
    }
}

TEST(no_call_is_lost_while_processes_are_upgraded)
{
    static const skua_process_type *const types[][2] = {
        {&counter_small_1, &counter_large_2},
        {&counter_large_1, &counter_small_2},
        {&counter_serve_1, &counter_serve_2},
    };
    FOR_ROWS (row, types) {
        uint64_t calls = 0;
        world_open();
        start_counters((*row)[0]);
        struct thread *caller = thread_start(call_all, &calls);
        struct thread *looker = thread_start(look_at_all, NULL);
        assert_int_equal(counters_upgrade((*row)[0], (*row)[1]), COUNTERS);
        assert_int_equal(counters_await((*row)[0], (*row)[1]).migrated, COUNTERS);
        atomic_store(&over, true);
        thread_join(caller);
        thread_join(looker);
        for (uint32_t i = 0; i < COUNTERS; i++) {
            assert_int_equal(counter_total(counters[i]), calls);
            assert_int_equal(counter_version(counters[i]), 2);
        }
    }
}

/* ---- ends ---- */

static void end_all(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < COUNTERS; i++) {
        if (i % 3 == 0) {
            (void)world_terminate(counters[i]);
        } else if (i % 3 == 1) {
            (void)world_cancel(counters[i], 0);
        } else {
            counter_order(counters[i], COUNTER_DONE, NULL);
        }
    }
}

TEST(processes_that_end_meanwhile_close_the_state_that_they_have)
{
    FOR_ROUNDS (round, 10) {
        world_open();
        start_counters(&counter_large_1);
        struct thread *killer = thread_start(end_all, NULL);
        const int asked = counters_upgrade(&counter_large_1, &counter_large_2);
        assert_in_range(asked, 0, COUNTERS);
        thread_join(killer);
        world_await_live(0);
        const skua_upgrade_progress progress = counters_await(&counter_large_1, &counter_large_2);
        assert_int_equal(progress.asked, progress.migrated + progress.gone);
        assert_int_equal(progress.migrated, counter_migrations);
        assert_int_equal(counter_closes, COUNTERS);
    }
}

/* ---- starts ---- */

static void start_more(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < COUNTERS; i++) {
        counters[i] = counter_start(&counter_small_1);
    }
}

TEST(process_that_starts_meanwhile_is_not_missed)
{
    FOR_ROUNDS (round, 10) {
        world_open();
        counters_reset();
        struct thread *starter = thread_start(start_more, NULL);
        assert_true(counters_upgrade(&counter_small_1, &counter_small_2) >= 0);
        thread_join(starter);
        for (uint32_t i = 0; i < COUNTERS; i++) {
            assert_int_equal(counter_version(counters[i]), 2);
        }
    }
}

/* ---- several at once ---- */

static void upgrade_to_3(void *arg)
{
    (void)arg;
    assert_true(counters_upgrade(&counter_small_2, &counter_small_3) >= 0);
    assert_true(counters_upgrade(&counter_small_1, &counter_small_3) >= 0);
}

TEST(upgrades_from_several_threads_lead_to_the_newest)
{
    FOR_ROUNDS (round, 10) {
        world_open();
        start_counters(&counter_small_1);
        struct thread *other = thread_start(upgrade_to_3, NULL);
        assert_true(counters_upgrade(&counter_small_1, &counter_small_2) >= 0);
        thread_join(other);
        for (uint32_t i = 0; i < COUNTERS; i++) {
            counter_add(counters[i], i);
            assert_int_equal(counter_version(counters[i]), 3);
            assert_int_equal(counter_total(counters[i]), i);
        }
    }
}

static struct tally migrating;
static struct tally released;

static int migrate_slowly(uint32_t version, const void *old_state, void *new_state,
                          skua_context *ctx)
{
    tally_add(&migrating, 1);
    tally_wait(&released, 1);
    return counter_small_2.migrate(version, old_state, new_state, ctx);
}

/* Whoever replaces it sees that the process has the type before, and does not ask. */
TEST(process_does_not_stay_with_a_type_that_is_replaced_while_it_changes_to_it)
{
    static skua_process_type slow;
    slow = counter_small_2;
    slow.migrate = migrate_slowly;
    tally_init(&migrating);
    tally_init(&released);
    counters_reset();
    world_open();
    const skua_pid pid = counter_start(&counter_small_1);
    counter_add(pid, 5);
    assert_int_equal(counters_upgrade(&counter_small_1, &slow), 1);
    tally_wait(&migrating, 1);
    assert_int_equal(counters_upgrade(&slow, &counter_small_3), 0);
    tally_add(&released, 1);
    assert_int_equal(counter_version(pid), 3);
    assert_int_equal(counter_total(pid), 5);
    assert_int_equal(counters_await(&counter_small_1, &slow).migrated, 1);
    assert_int_equal(counter_migrations, 2);
    assert_int_equal(world_stats().upgrades, 2);
}
