/* SPDX-License-Identifier: MIT */
/* Processes change their type while they live: by themselves, and because they are asked. */
#include "versions.h"

#include <skua/name.h>
#include <skua/upgrade.h>

static void open_either(uint64_t round)
{
    counters_reset();
    if (round == 1) {
        world_open();
    } else {
        world_open_sim(round, SIM_NO_FAULTS);
    }
}

static const struct change {
    const skua_process_type *from;
    const skua_process_type *to;
} changes[] = {
    {&counter_small_1, &counter_small_2}, {&counter_small_1, &counter_large_2},
    {&counter_large_1, &counter_small_2}, {&counter_large_1, &counter_large_2},
    {&counter_serve_1, &counter_serve_2},
};

/* ---- by itself ---- */

TEST(process_becomes_another_type_and_keeps_its_state)
{
    FOR_ROWS (row, changes) {
        open_either(1);
        const skua_pid pid = counter_start(row->from);
        counter_add(pid, 40);
        counter_order(pid, COUNTER_BECOME, row->to);
        counter_add(pid, 2);
        assert_int_equal(counter_total(pid), 42);
        assert_int_equal(counter_version(pid), 2);
        assert_int_equal(counter_told, 0);
        assert_int_equal(counter_migrations, 1);
        assert_int_equal(counter_closes, 0);
        assert_int_equal(world_stats().upgrades, 1);
        world_close();
        assert_int_equal(counter_closes, 1);
    }
}

TEST(process_may_go_back)
{
    FOR_ROUNDS (round, 2) {
        open_either(round);
        const skua_pid pid = counter_start(&counter_large_2);
        counter_add(pid, 3);
        counter_order(pid, COUNTER_BECOME, &counter_small_1);
        assert_int_equal(counter_version(pid), 1);
        counter_order(pid, COUNTER_BECOME, &counter_large_2);
        assert_int_equal(counter_version(pid), 2);
        assert_int_equal(counter_total(pid), 3);
    }
}

TEST(state_that_cannot_be_migrated_stays_as_it_was)
{
    static const skua_process_type *const types[] = {&counter_small_1, &counter_large_1};
    FOR_ROWS (type, types) {
        open_either(1);
        const skua_pid pid = counter_start(*type);
        counter_add(pid, 40);
        counter_order(pid, COUNTER_BECOME, &counter_refuses);
        counter_add(pid, 2);
        assert_int_equal(counter_total(pid), 42);
        assert_int_equal(counter_version(pid), 1);
        assert_int_equal(counter_told, COUNTER_REFUSES);
        assert_int_equal(world_stats().upgrade_failures, 1);
        assert_int_equal(world_stats().upgrades, 0);
    }
}

static int step_main(void *self, skua_context *ctx)
{
    (void)self;
    return skua_become(ctx, &counter_small_2) == SKUA_E_VERSION ? 0 : SKUA_E_USER;
}

TEST(task_with_a_main_cannot_change)
{
    static const skua_process_type type = {.name = "task", .main = step_main};
    skua_exit exit;
    world_open();
    assert_int_equal(skua_process_run(world_runtime(), &type, skua_nothing(), &exit), 0);
    assert_int_equal(exit.error, 0);
}

static int nothing_migrates(uint32_t version, const void *old_state, void *new_state,
                            skua_context *ctx)
{
    (void)version;
    (void)old_state;
    (void)new_state;
    (void)ctx;
    return 0;
}

static int step_nothing(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

TEST(unsuitable_types_are_refused_at_once)
{
    static const char *const methods[] = {"other", NULL};
    static const skua_process_type no_migrate = {.name = "a", .step = step_nothing, .calls = true};
    static const skua_process_type not_called = {
        .name = "b", .step = step_nothing, .migrate = nothing_migrates};
    static const skua_process_type no_method = {.name = "c",
                                                .step = step_nothing,
                                                .calls = true,
                                                .migrate = nothing_migrates,
                                                .methods = methods};
    static const skua_process_type invalid = {.name = "d", .migrate = nothing_migrates};
    static const struct {
        const skua_process_type *type;
        int error;
    } rows[] = {
        {&no_migrate, SKUA_E_VERSION},
        {&not_called, SKUA_E_VERSION},
        {&no_method, SKUA_E_VERSION},
        {&counter_serve_2, SKUA_E_VERSION},
        {&counter_small_1, SKUA_E_VERSION},
        {&invalid, SKUA_E_INVALID},
        {NULL, SKUA_E_INVALID},
    };
    world_open();
    const skua_pid pid = counter_start(&counter_small_1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        counter_order(pid, COUNTER_BECOME, rows[i].type);
        assert_int_equal(counter_version(pid), 1);
        assert_int_equal(counter_told, rows[i].error);
    }
    assert_int_equal(skua_become(NULL, &counter_small_2), SKUA_E_INVALID);
}

TEST(step_that_ends_the_process_ends_it_as_it_is)
{
    static const enum counter_message orders[] = {COUNTER_FAIL, COUNTER_LEAVE};
    FOR_ROWS (order, orders) {
        skua_exit exit;
        open_either(1);
        const skua_pid pid = counter_start(&counter_small_1);
        counter_order(pid, *order, &counter_large_2);
        const int error = skua_process_wait(world_runtime(), pid, SKUA_FOREVER, &exit);
        assert_true(error == 0 || error == SKUA_E_NO_PROCESS);
        world_await_live(0);
        assert_int_equal(counter_migrations, 0);
        assert_int_equal(counter_closes, 1);
    }
}

TEST(one_that_serves_changes_when_its_call_has_returned)
{
    FOR_ROUNDS (round, 2) {
        open_either(round);
        const skua_pid pid = counter_start(&counter_serve_1);
        counter_add(pid, 1);
        counter_order(pid, COUNTER_WAIT, &counter_serve_2);
        counter_add(pid, 2); /* for the new one: it comes after the change */
        if (round == 2) {
            world_settle();
            assert_int_equal(counter_migrations, 0);
            assert_int_equal(world_info(pid).type_version, 1);
        }
        counter_order(pid, COUNTER_GO, NULL);
        assert_int_equal(counter_total(pid), 3);
        assert_int_equal(counter_version(pid), 2);
        assert_int_equal(counter_migrations, 1);
    }
}

/* ---- because it is asked ---- */

TEST(all_processes_of_a_type_are_upgraded)
{
    enum { COUNT = 100 };
    FOR_ROWS (row, changes) {
        skua_pid pids[COUNT];
        open_either(1);
        const skua_pid other = counter_start(&counter_small_3);
        for (uint64_t i = 0; i < COUNT; i++) {
            pids[i] = counter_start(row->from);
            counter_add(pids[i], i);
        }
        assert_int_equal(counters_upgrade(row->from, row->to), COUNT);
        for (uint64_t i = 0; i < COUNT; i++) {
            counter_add(pids[i], 1);
            assert_int_equal(counter_total(pids[i]), i + 1);
            assert_int_equal(counter_version(pids[i]), 2);
        }
        const skua_upgrade_progress progress = counters_await(row->from, row->to);
        assert_int_equal(progress.asked, COUNT);
        assert_int_equal(progress.migrated, COUNT);
        assert_int_equal(counter_version(other), 3);
        assert_int_equal(world_stats().upgrades, COUNT);
    }
}

TEST(who_starts_the_old_type_gets_the_new_one)
{
    FOR_ROUNDS (round, 2) {
        open_either(round);
        assert_int_equal(counters_upgrade(&counter_small_1, &counter_large_2), 0);
        assert_int_equal(counter_version(counter_start(&counter_small_1)), 2);
        assert_int_equal(counters_upgrade(&counter_large_2, &counter_small_3), 1);
        assert_int_equal(counter_version(counter_start(&counter_small_1)), 3);
        assert_int_equal(counter_version(counter_start(&counter_large_2)), 3);
        assert_int_equal(counter_version(counter_start(&counter_large_1)), 1);
        assert_int_equal(counters_await(&counter_large_2, &counter_small_3).migrated, 1);
        assert_int_equal(counter_migrations, 1);
    }
}

/* Who looks for the newest type goes on from where others have come, which may be an old one. */
TEST(first_of_many_types_leads_to_the_newest)
{
    enum { COUNT = 40, BEFORE_FORK = COUNT / 2 };
    static skua_process_type types[COUNT + 1];
    for (uint32_t i = 0; i <= COUNT; i++) {
        types[i] = counter_small_2;
        types[i].version = i + 1;
    }
    world_open();
    for (uint32_t i = 0; i + 1 < COUNT; i++) {
        assert_int_equal(counters_upgrade(&types[i], &types[i + 1]), 0);
        if (i % 3 == 0) { /* otherwise nobody looks meanwhile */
            const skua_pid pid = counter_start(&types[0]);
            assert_int_equal(world_info(pid).type_version, i + 2);
            assert_int_equal(world_terminate(pid), 0);
            world_await_live(0);
        }
    }
    assert_int_equal(world_info(counter_start(&types[0])).type_version, COUNT);
    assert_int_equal(counters_upgrade(&types[BEFORE_FORK], &types[COUNT]), 0);
    assert_int_equal(world_info(counter_start(&types[0])).type_version, COUNT + 1);
    assert_int_equal(world_info(counter_start(&types[BEFORE_FORK + 1])).type_version, COUNT);
}

TEST(two_upgrades_at_once_lead_to_the_newest)
{
    open_either(2);
    const skua_pid pid = counter_start(&counter_small_1);
    counter_add(pid, 5);
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_2), 1);
    assert_int_equal(counters_upgrade(&counter_small_2, &counter_small_3), 0);
    assert_int_equal(counter_total(pid), 5);
    assert_int_equal(counter_version(pid), 3);
    assert_int_equal(counter_migrations, 1);
}

TEST(failed_migration_can_be_tried_again)
{
    FOR_ROUNDS (round, 2) {
        open_either(round);
        const skua_pid pid = counter_start(&counter_small_1);
        counter_add(pid, 7);
        assert_int_equal(counters_upgrade(&counter_small_1, &counter_refuses), 1);
        assert_int_equal(counters_await(&counter_small_1, &counter_refuses).failed, 1);
        assert_int_equal(counter_version(pid), 1);
        assert_int_equal(counter_told, 0); /* it has not asked */
        assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_3), 1);
        assert_int_equal(counters_await(&counter_small_1, &counter_small_3).migrated, 1);
        assert_int_equal(counter_version(pid), 3);
        assert_int_equal(counter_total(pid), 7);
    }
}

TEST(type_without_migrate_is_for_new_processes_only)
{
    static const skua_process_type next = {
        .name = "counter", .step = step_nothing, .calls = true, .version = 9, .mailbox_limit = 3};
    world_open();
    const skua_pid pid = counter_start(&counter_small_1);
    assert_int_equal(counters_upgrade(&counter_small_1, &next), 0);
    assert_int_equal(counter_version(pid), 1);
    assert_int_equal(world_info(counter_start(&counter_small_1)).type_version, 9);
}

TEST(new_process_is_of_the_newest_type_that_has_its_method)
{
    static const char *const both[] = {"main", "fast", NULL};
    static skua_process_type old;
    skua_pid pid;
    old = counter_small_1;
    old.methods = both;
    world_open();
    assert_int_equal(counters_upgrade(&old, &counter_small_2), 0);
    assert_int_equal(counter_version(counter_start(&old)), 2);
    const skua_spawn_options fast = {.type = &old, .method = "fast"};
    assert_int_equal(skua_process_submit_with(world_runtime(), &fast, &pid), 0);
    assert_int_equal(counter_version(pid), 1);
    assert_int_equal(world_stats().upgrade_failures, 0);
}

TEST(process_changes_to_the_newest_type_that_it_can)
{
    static const skua_process_type last = {
        .name = "counter", .step = step_nothing, .calls = true, .version = 9};
    open_either(2);
    const skua_pid pid = counter_start(&counter_small_1);
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_2), 1);
    assert_int_equal(counters_upgrade(&counter_small_2, &last), 0);
    assert_int_equal(counter_version(pid), 2);
    assert_int_equal(counters_await(&counter_small_1, &counter_small_2).migrated, 1);
}

TEST(those_that_end_first_are_gone)
{
    open_either(2);
    const skua_pid pid = counter_start(&counter_small_1);
    counter_order(pid, COUNTER_DONE, NULL);
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_2), 1);
    const skua_upgrade_progress progress = counters_await(&counter_small_1, &counter_small_2);
    assert_int_equal(progress.gone, 1);
    assert_int_equal(counter_migrations, 0);
}

TEST(bad_upgrades_are_refused)
{
    static const skua_process_type invalid = {.name = "invalid", .version = 9};
    static const skua_process_type not_called = {
        .name = "counter", .step = step_nothing, .version = 9};
    skua_upgrade_progress progress;
    assert_int_equal(skua_runtime_upgrade(NULL, &counter_small_1, &counter_small_2),
                     SKUA_E_INVALID);
    world_create((skua_runtime_config){0});
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_2), SKUA_E_NOT_STARTED);
    world_start();
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_large_1), SKUA_E_VERSION);
    assert_int_equal(counters_upgrade(&counter_small_2, &counter_small_1), SKUA_E_VERSION);
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_1), SKUA_E_VERSION);
    assert_int_equal(counters_upgrade(&counter_small_1, &not_called), SKUA_E_VERSION);
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_serve_2), SKUA_E_VERSION);
    assert_int_equal(counters_upgrade(NULL, &counter_small_1), SKUA_E_INVALID);
    assert_int_equal(counters_upgrade(&counter_small_1, NULL), SKUA_E_INVALID);
    assert_int_equal(counters_upgrade(&counter_small_1, &invalid), SKUA_E_INVALID);
    assert_int_equal(
        skua_upgrade_read(world_runtime(), &counter_small_1, &counter_small_2, &progress),
        SKUA_E_VERSION);
    assert_int_equal(skua_upgrade_read(world_runtime(), NULL, &counter_small_2, &progress),
                     SKUA_E_INVALID);
    assert_int_equal(skua_upgrade_read(world_runtime(), &counter_small_1, &counter_small_2, NULL),
                     SKUA_E_INVALID);
    world_stop();
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_small_2), SKUA_E_STOPPED);
}

/* ---- what stays ---- */

static int step_limited(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            void *own;
            assert_int_equal(skua_own_alloc(ctx, 10, &own), 0);
            assert_int_equal(skua_name_register(ctx, "limited", NULL), 0);
            assert_int_equal(skua_yield_sleep(ctx, 77, SKUA_SECOND), 0);
        } else if (events[i].type == SKUA_EVENT_COMPLETION) {
            assert_int_equal(events[i].tag, 77);
            assert_string_equal(skua_method(ctx), "second");
            return skua_done(ctx, skua_payload_u64(0, 77));
        }
    }
    return 0;
}

TEST(yields_names_memory_and_method_stay_and_the_limit_follows_the_type)
{
    static const char *const old_methods[] = {"first", "second", NULL};
    static const char *const new_methods[] = {"second", NULL};
    static const skua_process_type one = {.name = "limited",
                                          .step = step_limited,
                                          .methods = old_methods,
                                          .mailbox_limit = 5,
                                          .version = 1};
    static const skua_process_type two = {.name = "limited",
                                          .state_size = 100,
                                          .step = step_limited,
                                          .methods = new_methods,
                                          .mailbox_limit = 2,
                                          .migrate = nothing_migrates,
                                          .version = 2};
    world_open_sim(1, SIM_NO_FAULTS);
    skua_pid pid;
    skua_pid found;
    assert_int_equal(
        skua_process_submit_with(world_runtime(),
                                 &(skua_spawn_options){.type = &one, .method = "second"}, &pid),
        0);
    world_set_clock(world_now() + SKUA_MILLISECOND);
    assert_int_equal(counters_upgrade(&one, &two), 1);
    world_set_clock(world_now() + SKUA_MILLISECOND);
    assert_int_equal(world_info(pid).type_version, 2);
    assert_int_equal(skua_name_find(world_runtime(), "limited", &found), 0);
    assert_true(skua_pid_equal(found, pid));
    assert_int_equal(world_send(pid, skua_nothing()), 0);
    assert_int_equal(world_send(pid, skua_nothing()), 0);
    assert_int_equal(world_send(pid, skua_nothing()), SKUA_E_MAILBOX_FULL);
    skua_exit exit;
    assert_int_equal(skua_process_wait(world_runtime(), pid, SKUA_FOREVER, &exit), 0);
    assert_int_equal(exit.error, 0);
    assert_ptr_equal(exit.type, &two);
    assert_int_equal(skua_payload_to_u64(&exit.result), 77);
}

/* ---- the simulator ---- */

static uint64_t hash_of_a_run(uint64_t seed)
{
    open_either(2 + seed);
    const skua_pid pid = counter_start(&counter_small_1);
    counter_add(pid, 1);
    assert_int_equal(counters_upgrade(&counter_small_1, &counter_refuses), 1);
    counter_order(pid, COUNTER_BECOME, &counter_large_2);
    world_settle();
    size_t changes_seen = 0;
    for (size_t i = 0; i < world->sim.trace.count; i++) {
        changes_seen += world->sim.trace.records[i].type == SKUA_SIM_BECOME;
    }
    assert_int_equal(changes_seen, 2);
    const uint64_t hash = skua_sim_hash(world_runtime());
    world_close();
    return hash;
}

TEST(simulated_changes_are_traced_and_repeat)
{
    assert_int_equal(hash_of_a_run(1), hash_of_a_run(1));
}

/* ---- without memory ---- */

/* Once without one allocation, and then with all of it. */
TEST(upgrade_without_memory_changes_nothing_and_works_later)
{
    for (uint64_t n = 1; n < 8; n++) {
        open_either(2);
        struct counting_allocator *memory = &world->api->memory;
        const skua_pid pid = counter_start(&counter_small_1);
        counter_add(pid, 9);
        world_settle();
        counting_allocator_fail_once(memory, n);
        const int asked = counters_upgrade(&counter_small_1, &counter_large_2);
        assert_true(asked == 1 || asked == SKUA_E_NO_MEMORY);
        world_settle();
        counting_allocator_fail_never(memory);
        const bool is_new = world_info(pid).type_version == 2;
        assert_int_equal(world_stats().upgrade_failures, asked == 1 && !is_new);
        assert_int_equal(counter_total(pid), 9);
        assert_int_equal(counters_upgrade(&counter_small_1, &counter_large_2), !is_new);
        assert_int_equal(counter_total(pid), 9);
        assert_int_equal(counter_version(pid), 2);
        world_close();
    }
}

TEST(process_is_told_that_there_is_no_memory_to_become_another)
{
    open_either(2);
    const skua_pid pid = counter_start(&counter_small_1);
    counter_add(pid, 9);
    world_settle();
    counter_order(pid, COUNTER_BECOME, &counter_large_2);
    counting_allocator_fail_from(&world->api->memory, 1);
    world_settle();
    counting_allocator_fail_never(&world->api->memory);
    assert_int_equal(counter_told, SKUA_E_NO_MEMORY);
    assert_int_equal(counter_total(pid), 9);
    assert_int_equal(counter_version(pid), 1);
}
