/* SPDX-License-Identifier: MIT */
/* PIDs: packing and unpacking, finding the record, and telling wrong ones. */
#include "process/table.h"

#include "pool_support.h"
#include "process/mailbox.h"
#include "test_memory.h"

#define RUNTIME           5
#define SLOT_MAX          ((UINT32_C(1) << PID_SLOT_BITS) - 1)
#define SLOTS_PER_SEGMENT (OBJECT_POOL_SEGMENT_SIZE / sizeof(struct process))

static struct process_table table;
static struct pool_cache cache;

static void close_table(void)
{
    process_table_deinit(&table);
}

static void open_table(uint32_t runtime, uint32_t limit)
{
    memory_open();
    cache = (struct pool_cache){0};
    assert_true(process_table_init(&table, &memory.allocator, runtime, limit, 1));
    test_at_end(close_table);
}

static struct process *take(void)
{
    return object_pool_at(&table.pool, pool_take(&table.pool, &cache));
}

/* Takes a slot and makes a process there, Ready and without a token. */
static struct process *start(skua_pid *pid)
{
    struct process *process = take();
    const uint32_t generation = state_prepare_owner(process);
    *pid = process_table_pid(&table, process, generation);
    state_publish_owner(process, generation);
    return process;
}

static void end(struct process *process)
{
    (void)!state_finish_owner(process);
    assert_true(state_free_owner(process));
    pool_give(&table.pool, &cache, process->slot);
}

static void assert_found(skua_pid pid, const struct process *process)
{
    struct process *found = NULL;
    assert_int_equal(process_table_find(&table, pid, &found), 0);
    assert_ptr_equal(found, process);
}

static void assert_not_found(uint64_t bits, int error)
{
    struct process *found;
    assert_int_equal(process_table_find(&table, (skua_pid){bits}, &found), error);
}

/* The PID leads to a record, where its generation does not fit. */
static void assert_stale(skua_pid pid)
{
    struct process *found = NULL;
    uint32_t next;
    assert_int_equal(process_table_find(&table, pid, &found), 0);
    assert_int_equal(state_push_any(found, pid_generation(pid), 1, &next), STATE_CLOSED);
    assert_int_equal(state_request_any(found, pid_generation(pid), STATE_KILL), STATE_CLOSED);
}

TEST(pid_packs_and_unpacks_all_its_parts)
{
    static const uint32_t runtimes[] = {1, 2, 0xabc, PID_RUNTIME_MAX};
    static const uint32_t generations[] = {1, 2, UINT32_C(0x1345678), GENERATION_MAX};
    static const uint32_t slots[] = {1, 2, UINT32_C(0x3456789), SLOT_MAX};
    FOR_ROWS (runtime, runtimes) {
        open_table(*runtime, 10);
        for (size_t i = 0; i < COUNT_OF(generations) * COUNT_OF(slots); i++) {
            const uint32_t generation = generations[i % COUNT_OF(generations)];
            const struct process process = {.slot = slots[i / COUNT_OF(generations)]};
            const skua_pid pid = process_table_pid(&table, &process, generation);
            assert_int_equal(pid_slot(pid), process.slot);
            assert_int_equal(pid_generation(pid), generation);
            assert_int_equal(pid.bits >> (64 - PID_RUNTIME_BITS), *runtime);
        }
    }
}

TEST(table_find_leads_to_the_process)
{
    skua_pid pid;
    open_table(RUNTIME, 1000);
    for (int i = 0; i < 100; i++) {
        const struct process *process = start(&pid);
        assert_found(pid, process);
    }
    assert_not_found(0, SKUA_E_NO_PROCESS);
}

TEST(table_find_of_another_runtimes_pid_is_foreign)
{
    static const uint32_t runtimes[] = {1, PID_RUNTIME_MAX};
    FOR_ROWS (runtime, runtimes) {
        skua_pid pid;
        open_table(*runtime, 1000);
        const struct process *process = start(&pid);
        assert_found(pid, process);
        for (uint32_t bit = 64 - PID_RUNTIME_BITS; bit < 64; bit++) {
            assert_not_found(pid.bits ^ UINT64_C(1) << bit, SKUA_E_FOREIGN_PID);
        }
        const uint64_t other = PID_RUNTIME_MAX + 1 - *runtime; /* nothing else differs */
        const uint64_t rest = pid.bits << PID_RUNTIME_BITS >> PID_RUNTIME_BITS;
        assert_not_found(other << (64 - PID_RUNTIME_BITS) | rest, SKUA_E_FOREIGN_PID);
    }
}

TEST(table_find_of_a_slot_that_was_never_made_is_no_process)
{
    skua_pid pid;
    open_table(RUNTIME, 100); /* so small that slots are made one by one */
    (void)start(&pid);
    assert_int_equal(pid_slot(pid), 1);
    assert_not_found(pid.bits - 1, SKUA_E_NO_PROCESS); /* slot 0 */
    assert_not_found(pid.bits + 1, SKUA_E_NO_PROCESS);
    assert_not_found(pid.bits - 1 + 101, SKUA_E_NO_PROCESS);
    assert_not_found(pid.bits | SLOT_MAX, SKUA_E_NO_PROCESS);
}

TEST(table_stale_pid_is_refused_by_the_record)
{
    skua_pid old;
    skua_pid young;
    uint32_t next;
    open_table(RUNTIME, 100);
    struct process *process = start(&old);
    end(process);
    assert_ptr_equal(start(&young), process);
    assert_int_equal(pid_slot(old), pid_slot(young));
    assert_false(skua_pid_equal(old, young));
    assert_found(old, process);
    assert_stale(old);
    assert_int_equal(state_push_any(process, pid_generation(young), 1, &next), STATE_DONE);
}

TEST(table_never_repeats_a_pid_of_a_slot)
{
    skua_pid last = {0};
    open_table(RUNTIME, 1);
    for (int i = 0; i < 10000; i++) {
        skua_pid pid;
        struct process *process = start(&pid);
        assert_int_equal(pid_slot(pid), 1);
        assert_true(pid.bits > last.bits); /* generations only grow */
        last = pid;
        end(process);
    }
}

/* The memory below a new record holds garbage. */
TEST(table_new_record_is_free_and_has_an_empty_mailbox)
{
    open_table(RUNTIME, 100);
    struct process *process = take();
    assert_int_equal(load_relaxed(&process->word),
                     event_list_word(OBJECT_NONE, state_tag(1, STATE_FREE)));
    assert_int_equal(process->slot, 1);
    assert_int_equal(mailbox_length(process), 0);
    assert_null(process_type(process));
    assert_int_equal(process_progress(process), 0);
}

TEST(table_grows_to_several_segments)
{
    enum { COUNT = 100000 };
    uint32_t slot;
    open_table(RUNTIME, COUNT);
    bool *seen = test_alloc((COUNT + 1) * sizeof *seen);
    for (uint32_t i = 0; i < COUNT; i++) {
        skua_pid pid;
        const struct process *process = start(&pid);
        assert_found(pid, process);
        assert_in_range(pid_slot(pid), 1, COUNT);
        assert_false(seen[pid_slot(pid)]);
        seen[pid_slot(pid)] = true;
    }
    assert_int_equal(counting_allocator_live_blocks(&memory),
                     1 + COUNT / SLOTS_PER_SEGMENT + 1); /* directory and segments */
    assert_int_equal(object_acquire_owner(&table.pool, table.pool.shape.layout, &cache, &slot),
                     OBJECT_POOL_LIMIT);
}

/* Slots of trimmed pages are refused while nothing is there, and go on with new generations. */
TEST(table_never_repeats_a_pid_of_a_trimmed_slot)
{
    enum { COUNT = 8192 }; /* whole chains, so that the same slots come again */
    static struct process *processes[COUNT];
    static skua_pid pids[COUNT];
    uint32_t last_generations[COUNT + 1] = {0};
    open_table(RUNTIME, COUNT);
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            processes[i] = start(&pids[i]);
            const uint32_t slot = pid_slot(pids[i]);
            assert_in_range(slot, 1, COUNT);
            assert_int_equal(processes[i]->slot, slot);
            assert_int_equal(mailbox_length(processes[i]), 0);
            assert_true(pid_generation(pids[i]) > last_generations[slot]);
            if (slot % 100 == 0) { /* some slots are older than their neighbours */
                end(processes[i]);
                processes[i] = start(&pids[i]);
            }
            last_generations[slot] = pid_generation(pids[i]);
        }
        for (uint32_t i = 0; i < COUNT; i++) {
            end(processes[i]);
        }
        assert_true(pool_trim(&table.pool) > COUNT / 2 * sizeof(struct process));
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_stale(pids[i]);
        }
    }
}

TEST(table_without_memory_is_not_made)
{
    memory_open();
    counting_allocator_fail_from(&memory, 1);
    assert_false(process_table_init(&table, &memory.allocator, 1, 1000, 1));
}
