/* SPDX-License-Identifier: MIT */
/* PIDs: packing and unpacking, finding the record, and telling wrong ones. */
#include "process/table.h"

#include "counting_allocator.h"
#include "process/mailbox.h"
#include "test.h"

#define SLOT_MAX          ((UINT32_C(1) << PID_SLOT_BITS) - 1)
#define SLOTS_PER_SEGMENT (OBJECT_POOL_SEGMENT_SIZE / sizeof(struct process))

struct fixture {
    struct counting_allocator memory;
    struct process_table table;
    struct pool_cache cache;
};

static void fixture_init(struct fixture *fixture, uint32_t runtime, uint32_t limit)
{
    *fixture = (struct fixture){0};
    counting_allocator_init(&fixture->memory);
    assert_true(process_table_init(&fixture->table, &fixture->memory.allocator, runtime, limit, 1));
}

static void fixture_deinit(struct fixture *fixture)
{
    process_table_deinit(&fixture->table);
    assert_true(counting_allocator_is_clean(&fixture->memory));
}

static struct process *take(struct fixture *fixture)
{
    uint32_t slot = OBJECT_NONE;
    assert_int_equal(object_acquire_owner(&fixture->table.pool, fixture->table.pool.shape.layout,
                                          &fixture->cache, &slot),
                     OBJECT_POOL_OK);
    return object_pool_at(&fixture->table.pool, slot);
}

/* Takes a slot and makes a process there, Ready and without a token. */
static struct process *start(struct fixture *fixture, skua_pid *pid)
{
    struct process *process = take(fixture);
    const uint32_t generation = state_prepare_owner(process);
    *pid = process_table_pid(&fixture->table, process, generation);
    state_publish_owner(process, generation);
    return process;
}

static void end(struct fixture *fixture, struct process *process)
{
    (void)!state_finish_owner(process);
    assert_true(state_free_owner(process));
    object_release_owner(&fixture->table.pool, fixture->table.pool.shape.layout, &fixture->cache,
                         process->slot);
}

static int find(struct fixture *fixture, uint64_t bits)
{
    struct process *process;
    return process_table_find(&fixture->table, (skua_pid){bits}, &process);
}

TEST(pid_packs_and_unpacks_all_its_parts)
{
    static const uint32_t runtimes[] = {1, 2, 0xabc, PID_RUNTIME_MAX};
    static const uint32_t generations[] = {1, 2, UINT32_C(0x2345678), GENERATION_MAX};
    static const uint32_t slots[] = {1, 2, UINT32_C(0x3456789), SLOT_MAX};
    for (size_t r = 0; r < 4; r++) {
        struct fixture fixture;
        fixture_init(&fixture, runtimes[r], 10);
        for (size_t g = 0; g < 4; g++) {
            for (size_t s = 0; s < 4; s++) {
                const struct process process = {.slot = slots[s]};
                const skua_pid pid = process_table_pid(&fixture.table, &process, generations[g]);
                assert_int_equal(pid_slot(pid), slots[s]);
                assert_int_equal(pid_generation(pid), generations[g]);
                assert_int_equal(pid.bits >> (64 - PID_RUNTIME_BITS), runtimes[r]);
            }
        }
        fixture_deinit(&fixture);
    }
}

TEST(table_find_leads_to_the_process)
{
    struct fixture fixture;
    fixture_init(&fixture, 5, 1000);
    for (int i = 0; i < 100; i++) {
        skua_pid pid;
        struct process *process = start(&fixture, &pid);
        struct process *found = NULL;
        assert_int_equal(process_table_find(&fixture.table, pid, &found), 0);
        assert_ptr_equal(found, process);
    }
    fixture_deinit(&fixture);
}

TEST(table_find_of_the_zero_pid_is_no_process)
{
    struct fixture fixture;
    fixture_init(&fixture, 5, 1000);
    skua_pid pid;
    (void)start(&fixture, &pid);
    assert_int_equal(find(&fixture, 0), SKUA_E_NO_PROCESS);
    fixture_deinit(&fixture);
}

TEST(table_find_of_another_runtimes_pid_is_foreign)
{
    struct fixture mine;
    struct fixture other;
    skua_pid my_pid;
    skua_pid other_pid;
    fixture_init(&mine, 1, 1000);
    fixture_init(&other, PID_RUNTIME_MAX, 1000);
    (void)start(&mine, &my_pid);
    (void)start(&other, &other_pid);
    assert_int_equal(pid_slot(my_pid), pid_slot(other_pid)); /* nothing else differs */
    assert_int_equal(find(&mine, my_pid.bits), 0);
    assert_int_equal(find(&mine, other_pid.bits), SKUA_E_FOREIGN_PID);
    assert_int_equal(find(&other, my_pid.bits), SKUA_E_FOREIGN_PID);
    for (uint32_t bit = 64 - PID_RUNTIME_BITS; bit < 64; bit++) {
        assert_int_equal(find(&mine, my_pid.bits ^ UINT64_C(1) << bit), SKUA_E_FOREIGN_PID);
    }
    fixture_deinit(&mine);
    fixture_deinit(&other);
}

TEST(table_find_of_a_slot_that_was_never_made_is_no_process)
{
    struct fixture fixture;
    fixture_init(&fixture, 5, 100); /* so small that slots are made one by one */
    skua_pid pid;
    (void)start(&fixture, &pid);
    assert_int_equal(pid_slot(pid), 1);
    assert_int_equal(find(&fixture, pid.bits - 1), SKUA_E_NO_PROCESS); /* slot 0 */
    assert_int_equal(find(&fixture, pid.bits + 1), SKUA_E_NO_PROCESS);
    assert_int_equal(find(&fixture, pid.bits - 1 + 101), SKUA_E_NO_PROCESS);
    assert_int_equal(find(&fixture, pid.bits | SLOT_MAX), SKUA_E_NO_PROCESS);
    fixture_deinit(&fixture);
}

/* A stale PID leads to the record, where its generation does not fit. */
TEST(table_stale_pid_is_refused_by_the_record)
{
    struct fixture fixture;
    fixture_init(&fixture, 5, 100);
    skua_pid old;
    skua_pid young;
    struct process *process = start(&fixture, &old);
    end(&fixture, process);
    assert_ptr_equal(start(&fixture, &young), process);
    assert_int_equal(pid_slot(old), pid_slot(young));
    assert_false(skua_pid_equal(old, young));
    struct process *found = NULL;
    assert_int_equal(process_table_find(&fixture.table, old, &found), 0);
    assert_ptr_equal(found, process);
    uint32_t next;
    assert_int_equal(state_push_any(found, pid_generation(old), 1, &next), STATE_CLOSED);
    assert_int_equal(state_request_any(found, pid_generation(old), STATE_KILL), STATE_CLOSED);
    assert_int_equal(state_push_any(found, pid_generation(young), 1, &next), STATE_DONE);
    fixture_deinit(&fixture);
}

TEST(table_never_repeats_a_pid_of_a_slot)
{
    struct fixture fixture;
    fixture_init(&fixture, 5, 1);
    skua_pid last = {0};
    for (int i = 0; i < 10000; i++) {
        skua_pid pid;
        struct process *process = start(&fixture, &pid);
        assert_int_equal(pid_slot(pid), 1);
        assert_true(pid.bits > last.bits); /* generations only grow */
        last = pid;
        end(&fixture, process);
    }
    fixture_deinit(&fixture);
}

/* The memory below a new record holds garbage. */
TEST(table_new_record_is_free_and_has_an_empty_mailbox)
{
    struct fixture fixture;
    fixture_init(&fixture, 5, 100);
    struct process *process = take(&fixture);
    assert_int_equal(load_relaxed(&process->word),
                     event_list_word(OBJECT_NONE, state_tag(1, STATE_FREE)));
    assert_int_equal(process->slot, 1);
    assert_int_equal(mailbox_length(process), 0);
    assert_null(process_type(process));
    assert_int_equal(process_progress(process), 0);
    fixture_deinit(&fixture);
}

TEST(table_grows_to_several_segments)
{
    enum { COUNT = 100000 };
    struct fixture fixture;
    fixture_init(&fixture, 5, COUNT);
    bool *seen = calloc(COUNT + 1, sizeof *seen);
    assert_non_null(seen);
    for (uint32_t i = 0; i < COUNT; i++) {
        skua_pid pid;
        struct process *process = start(&fixture, &pid);
        struct process *found = NULL;
        assert_int_equal(process_table_find(&fixture.table, pid, &found), 0);
        assert_ptr_equal(found, process);
        assert_in_range(pid_slot(pid), 1, COUNT);
        assert_false(seen[pid_slot(pid)]);
        seen[pid_slot(pid)] = true;
    }
    free(seen);
    assert_int_equal(counting_allocator_live_blocks(&fixture.memory),
                     1 + COUNT / SLOTS_PER_SEGMENT + 1); /* directory and segments */
    uint32_t slot;
    assert_int_equal(object_acquire_owner(&fixture.table.pool, fixture.table.pool.shape.layout,
                                          &fixture.cache, &slot),
                     OBJECT_POOL_LIMIT);
    fixture_deinit(&fixture);
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static void expect_refused(struct fixture *fixture, skua_pid pid)
{
    struct process *found = NULL;
    uint32_t next;
    assert_int_equal(process_table_find(&fixture->table, pid, &found), 0);
    assert_int_equal(state_push_any(found, pid_generation(pid), 1, &next), STATE_CLOSED);
    assert_int_equal(state_request_any(found, pid_generation(pid), STATE_KILL), STATE_CLOSED);
}

/* Slots of trimmed pages are refused while nothing is there, and go on with new generations. */
TEST(table_never_repeats_a_pid_of_a_trimmed_slot)
{
    enum { COUNT = 8192 }; /* whole chains, so that the same slots come again */
    struct fixture fixture;
    static struct process *processes[COUNT];
    static skua_pid pids[COUNT];
    static uint32_t last_generations[COUNT + 1];
    fixture_init(&fixture, 5, COUNT);
    memset(last_generations, 0, sizeof last_generations);
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            processes[i] = start(&fixture, &pids[i]);
            const uint32_t slot = pid_slot(pids[i]);
            assert_in_range(slot, 1, COUNT);
            assert_int_equal(processes[i]->slot, slot);
            assert_int_equal(mailbox_length(processes[i]), 0);
            assert_true(pid_generation(pids[i]) > last_generations[slot]);
            last_generations[slot] = pid_generation(pids[i]);
            if (slot % 100 == 0) { /* some slots are older than their neighbours */
                end(&fixture, processes[i]);
                processes[i] = start(&fixture, &pids[i]);
                last_generations[slot] = pid_generation(pids[i]);
            }
        }
        for (uint32_t i = 0; i < COUNT; i++) {
            end(&fixture, processes[i]);
        }
        assert_true(object_pool_trim_any(&fixture.table.pool, always, NULL) >
                    COUNT / 2 * sizeof(struct process));
        for (uint32_t i = 0; i < COUNT; i++) {
            expect_refused(&fixture, pids[i]);
        }
    }
    fixture_deinit(&fixture);
}

TEST(table_without_memory_is_not_made)
{
    struct counting_allocator memory;
    struct process_table table;
    counting_allocator_init(&memory);
    counting_allocator_fail_from(&memory, 1);
    assert_false(process_table_init(&table, &memory.allocator, 1, 1000, 1));
    assert_true(counting_allocator_is_clean(&memory));
}
