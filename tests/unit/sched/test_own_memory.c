/* SPDX-License-Identifier: MIT */
/* Memory that belongs to a process: the list of its blocks, its limit, and that all of it is gone
 * when the process is. */
#include "sched/own_memory.h"

#include <stdalign.h>

#include "base/random.h"
#include "process/annex.h"
#include "sched/context.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

#define LIMIT      1000
#define BLOCKS_MAX 64

static void (*act)(skua_context *ctx); /* in the step of the current test */
static void (*act_in_close)(skua_context *ctx);

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    act(ctx);
    return 0;
}

static void close_owner(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)exit;
    if (act_in_close != NULL) {
        act_in_close(ctx);
    }
}

static const skua_process_type owner_type = {.name = "owner", .step = step, .close = close_owner};
static const skua_process_type limited_type = {.name = "limited", .step = step, .own_limit = LIMIT};

/* Spawns a process whose step does this; it lives on. */
static struct process *run_step(const skua_process_type *type, void (*function)(skua_context *))
{
    act = function;
    struct process *process = rig_spawn(worker(0), type);
    rig_run_all();
    return process;
}

static void run_in_owner(void (*function)(skua_context *))
{
    scheduler_rig_open();
    act_in_close = NULL;
    (void)run_step(&owner_type, function);
}

static unsigned char *alloc(skua_context *ctx, size_t size)
{
    void *memory_of_process = NULL;
    assert_int_equal(skua_own_alloc(ctx, size, &memory_of_process), 0);
    assert_int_equal((uintptr_t)memory_of_process % alignof(max_align_t), 0);
    unsigned char *bytes = memory_of_process;
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(bytes[i], 0);
    }
    memset(bytes, 0xa5, size);
    return bytes;
}

static void alloc_some(skua_context *ctx)
{
    static const size_t sizes[] = {1, 8, 100, 5000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        (void)alloc(ctx, sizes[i]);
    }
}

/* The rig ends the process and looks for leaks. */
TEST(memory_of_a_process_ends_with_it)
{
    run_in_owner(alloc_some);
}

static uint64_t live_blocks;

static void free_in_any_order(skua_context *ctx)
{
    static const uint32_t orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 0, 3}, {2, 0, 3, 1}};
    for (size_t order = 0; order < COUNT_OF(orders); order++) {
        unsigned char *blocks[4];
        for (uint32_t i = 0; i < 4; i++) {
            blocks[i] = alloc(ctx, 10 + i);
        }
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(skua_own_free(ctx, blocks[orders[order][i]]), 0);
        }
    }
    live_blocks = counting_allocator_live_blocks(&memory);
}

TEST(memory_is_freed_early_in_any_order)
{
    scheduler_rig_open();
    const uint64_t before = counting_allocator_live_blocks(&memory);
    (void)run_step(&owner_type, free_in_any_order);
    assert_in_range(live_blocks, before,
                    before + 3); /* segments of processes and nodes, and the wing */
}

static void misuse(skua_context *ctx)
{
    static max_align_t strange[8];
    void *pointer = strange;
    assert_int_equal(skua_own_alloc(ctx, 0, &pointer), SKUA_E_INVALID);
    assert_null(pointer);
    assert_int_equal(skua_own_alloc(ctx, 1, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_own_alloc(NULL, 1, &pointer), SKUA_E_INVALID);
    assert_int_equal(skua_own_alloc(ctx, SIZE_MAX, &pointer), SKUA_E_NO_MEMORY);
    assert_int_equal(skua_own_alloc(ctx, PTRDIFF_MAX, &pointer), SKUA_E_NO_MEMORY);
    assert_null(pointer);
    assert_int_equal(skua_own_free(ctx, NULL), 0);
    assert_int_equal(skua_own_free(ctx, &strange[4]), SKUA_E_INVALID);
}

TEST(memory_calls_that_make_no_sense_are_refused)
{
    run_in_owner(misuse);
}

static unsigned char *of_another;

static void lend(skua_context *ctx)
{
    of_another = alloc(ctx, 10);
}

static void free_of_another(skua_context *ctx)
{
    assert_int_equal(skua_own_free(ctx, of_another), SKUA_E_INVALID);
    (void)alloc(ctx, 5); /* with memory of its own, too */
    assert_int_equal(skua_own_free(ctx, of_another), SKUA_E_INVALID);
    assert_int_equal(of_another[9], 0xa5);
}

TEST(memory_of_another_process_is_not_freed)
{
    run_in_owner(lend);
    (void)run_step(&owner_type, free_of_another);
}

static void reach_the_limit(skua_context *ctx)
{
    void *pointer;
    unsigned char *first = alloc(ctx, LIMIT - 100);
    assert_int_equal(skua_own_alloc(ctx, 101, &pointer), SKUA_E_OWN_LIMIT);
    assert_null(pointer);
    assert_int_equal(skua_own_alloc(ctx, LIMIT + 1, &pointer), SKUA_E_OWN_LIMIT);
    assert_int_equal(skua_own_alloc(ctx, SIZE_MAX, &pointer), SKUA_E_OWN_LIMIT);
    (void)alloc(ctx, 100);
    assert_int_equal(skua_own_alloc(ctx, 1, &pointer), SKUA_E_OWN_LIMIT);
    assert_int_equal(skua_own_free(ctx, first), 0);
    (void)alloc(ctx, LIMIT - 100);
}

TEST(memory_is_limited_by_the_type)
{
    scheduler_rig_open();
    (void)run_step(&limited_type, reach_the_limit);
    (void)run_step(&limited_type, reach_the_limit); /* each for itself */
}

static void alloc_without_memory(skua_context *ctx)
{
    void *pointer;
    (void)alloc(ctx, 10);
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(skua_own_alloc(ctx, 10, &pointer), SKUA_E_NO_MEMORY);
    counting_allocator_fail_never(&memory);
    assert_null(pointer);
    (void)alloc(ctx, 10);
}

TEST(memory_that_there_is_not_changes_nothing)
{
    run_in_owner(alloc_without_memory);
}

static void use_in_close(skua_context *ctx)
{
    void *pointer;
    assert_int_equal(of_another[9], 0xa5); /* it is still there */
    assert_int_equal(skua_own_free(ctx, of_another), 0);
    assert_int_equal(skua_own_alloc(ctx, 1, &pointer), SKUA_E_CONTEXT);
}

TEST(memory_is_there_in_close_but_no_more_of_it)
{
    run_in_owner(lend);
    act_in_close = use_in_close;
}

/* ---- at random ---- */

static uint64_t seed;

static void use_randomly(skua_context *ctx)
{
    struct {
        unsigned char *bytes;
        size_t size;
    } blocks[BLOCKS_MAX];
    uint64_t random = random_mix(seed);
    uint32_t count = 0;
    size_t bytes = 0;
    assert_int_equal(skua_own_free(ctx, alloc(ctx, 1)), 0); /* it has an annex from now on */
    for (uint32_t i = 0; i < 2000; i++) {
        const size_t size = 1 + random_below(&random, 200);
        if (count < BLOCKS_MAX && random_below(&random, 2) == 0) {
            blocks[count].bytes = alloc(ctx, size);
            blocks[count++].size = size;
            bytes += size;
        } else if (count > 0) {
            const uint32_t at = random_below(&random, count);
            assert_int_equal(blocks[at].bytes[blocks[at].size - 1], 0xa5);
            assert_int_equal(skua_own_free(ctx, blocks[at].bytes), 0);
            bytes -= blocks[at].size;
            blocks[at] = blocks[--count];
        }
        assert_int_equal(annex_wing(&rig.sched.events, ctx->process)->own_bytes, bytes);
    }
}

TEST(memory_of_random_sizes_is_counted_and_all_freed)
{
    FOR_ROUNDS (number, 10) {
        seed = number;
        run_in_owner(use_randomly);
    }
}
