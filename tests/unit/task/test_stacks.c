/* SPDX-License-Identifier: MIT */
/* The stacks of tasks: tiers, limits, caches, guards, and a system that refuses. */
#include "task/stacks.h"

#include <signal.h>
#include <skua/error.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aborts.h"
#include "child.h"
#include "effort.h"
#include "stack_rig.h"
#include "test.h"
#include "threads.h"

#define KIB ((size_t)1024)

static size_t resident(const struct stack *stack)
{
    unsigned char pages[256];
    size_t bytes = 0;
    const size_t size = stacks_size(stack->tier);
    assert_int_equal(mincore(stack->low, size, pages), 0);
    for (size_t i = 0; i < size / stack_rig.stacks.page; i++) {
        bytes += (pages[i] & 1) * stack_rig.stacks.page;
    }
    return bytes;
}

/* ---- tiers ---- */

TEST(stack_has_the_smallest_tier_that_is_large_enough)
{
    static const struct {
        size_t wanted;
        size_t size;
    } rows[] = {
        {0, 16 * KIB},
        {1, 16 * KIB},
        {16 * KIB, 16 * KIB},
        {16 * KIB + 1, 64 * KIB},
        {64 * KIB, 64 * KIB},
        {64 * KIB + 1, 256 * KIB},
        {256 * KIB, 256 * KIB},
        {256 * KIB + 1, 1024 * KIB},
        {1024 * KIB, 1024 * KIB},
    };
    FOR_ROWS (row, rows) {
        assert_int_equal(stacks_size(stacks_tier(row->wanted)), row->size);
    }
    assert_int_equal(stacks_tier(STACK_SIZE_DEFAULT), STACK_TIER_DEFAULT);
    assert_int_equal(stacks_tier(1024 * KIB + 1), STACK_TIERS);
    assert_int_equal(stacks_tier(SIZE_MAX), STACK_TIERS);
}

TEST(stack_of_every_tier_can_be_used_from_end_to_end)
{
    stack_rig_open(100);
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        struct stack *stack = take_stack(0, stacks_size(tier));
        assert_int_equal(stack->tier, tier);
        assert_ptr_equal((char *)stack + STACK_RECORD, stack->low + stacks_size(tier));
        fill_stack(stack);
        give_stack(0, stack);
    }
}

/* ---- limits and reuse ---- */

TEST(stacks_of_all_tiers_share_one_limit)
{
    stack_rig_open(3);
    struct stack *small = take_stack(0, 16 * KIB);
    struct stack *large = take_stack(0, 1024 * KIB);
    struct stack *other = take_stack(1, 64 * KIB);
    assert_int_equal(take_stack_error(16 * KIB), SKUA_E_STACK_LIMIT);
    assert_int_equal(take_stack_error(256 * KIB), SKUA_E_STACK_LIMIT);
    give_stack(0, small);
    assert_ptr_equal(take_stack(0, 16 * KIB), small);
    give_stack(0, small);
    struct stack *third = take_stack(0, 256 * KIB); /* instead of the small one, which is free */
    assert_int_equal(take_stack_error(16 * KIB), SKUA_E_STACK_LIMIT);
    give_stack(0, third);
    give_stack(0, large);
    give_stack(1, other);
}

TEST(stacks_in_caches_are_a_small_share_of_the_limit)
{
    static const struct {
        uint32_t limit;
        uint32_t count;
        uint32_t max;
    } rows[] = {{255, 1, 0}, {256, 1, 1}, {2560, 2, 5}, {1u << 20, 16, STACK_CACHED_MAX - 1}};
    FOR_ROWS (row, rows) {
        stack_rig_open(row->limit);
        stacks_init_cache(&stack_rig.stacks, &stack_rig.caches[0], row->count);
        assert_int_equal(stack_rig.caches[0].max, row->max);
    }
}

TEST(stack_that_was_released_last_is_used_next)
{
    stack_rig_open(100);
    struct stack *first = take_stack(0, 64 * KIB);
    struct stack *second = take_stack(0, 64 * KIB);
    give_stack(0, first);
    give_stack(0, second);
    assert_ptr_equal(take_stack(0, 64 * KIB), second);
    assert_ptr_equal(take_stack(0, 64 * KIB), first);
    give_stack(0, second);
    give_stack(0, first);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
    assert_ptr_equal(take_stack(1, 64 * KIB), first);
    give_stack(1, first);
}

TEST(stacks_spilled_by_one_cache_refill_another)
{
    const uint32_t count = 3 * STACK_CACHED_MAX;
    struct stack *taken[3 * STACK_CACHED_MAX];
    stack_rig_open(1u << 20);
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = take_stack(0, 16 * KIB);
    }
    for (uint32_t i = 0; i < count; i++) {
        give_stack(0, taken[i]);
        assert_true(stack_rig.caches[0].count[0] < STACK_CACHED_MAX);
    }
    const uint32_t made = load_relaxed(&stack_rig.stacks.tiers[0].used);
    const uint32_t spilled = count - stack_rig.caches[0].count[0];
    for (uint32_t i = 0; i < spilled; i++) {
        taken[i] = take_stack(1, 16 * KIB);
    }
    assert_int_equal(load_relaxed(&stack_rig.stacks.tiers[0].used), made);
    for (uint32_t i = 0; i < spilled; i++) {
        give_stack(1, taken[i]);
    }
}

TEST(stacks_do_not_overlap)
{
    enum { COUNT = 1000 }; /* more than one piece */
    struct stack *taken[COUNT];
    stack_rig_open(COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        taken[i] = take_stack(0, 16 * KIB);
        taken[i]->peer = taken[i];
        assert_true(i == 0 || taken[i]->low > (char *)taken[i - 1] + STACK_RECORD);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        give_stack(0, taken[i]);
    }
}

/* ---- a reservation that is refused ---- */

TEST(stacks_take_a_share_of_the_address_space_that_they_can_get)
{
    stack_rig_open(1u << 20);
    stack_rig.reserve_max = (size_t)1 << 28;
    struct stack *stack = take_stack(0, 64 * KIB);
    const size_t reserved = 64 * KIB * stack_rig.stacks.tiers[stack->tier].slots;
    assert_in_range(reserved, (size_t)1 << 24, (size_t)1 << 26);
    give_stack(0, stack);
}

TEST(stacks_without_address_space_are_refused_and_can_be_tried_again)
{
    stack_rig_open(100);
    stack_rig.reserve_max = 0;
    assert_int_equal(take_stack_error(64 * KIB), SKUA_E_NO_MEMORY);
    assert_int_equal(stack_rig.reserved, 0);
    stack_rig.reserve_max = SIZE_MAX;
    give_stack(0, take_stack(0, 64 * KIB));
}

TEST(stacks_that_have_used_up_their_reservation_want_memory)
{
    struct stack *taken[1024];
    uint32_t count = 0;
    stack_rig_open(1u << 20);
    stack_rig.reserve_max = (size_t)8 << 20;
    while (stacks_acquire(&stack_rig.stacks, &stack_rig.caches[0], stacks_tier(64 * KIB),
                          &taken[count]) == 0) {
        count++;
    }
    assert_in_range(count, 50, 200);
    assert_int_equal(take_stack_error(64 * KIB), SKUA_E_NO_MEMORY);
    while (count > 0) {
        give_stack(0, taken[--count]);
    }
}

/* Takes `count` stacks of the smallest tier. Any may be refused once. */
static void take_in_spite(struct stack **taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int error = stacks_acquire(&stack_rig.stacks, &stack_rig.caches[0], 0, &taken[i]);
        if (error != 0) {
            assert_int_equal(error, SKUA_E_NO_MEMORY);
            error = stacks_acquire(&stack_rig.stacks, &stack_rig.caches[0], 0, &taken[i]);
        }
        assert_int_equal(error, 0);
        if (error == 0) {
            fill_stack(taken[i]);
            assert_true(stacks_is_whole(taken[i]));
        }
    }
}

/* Each request to the system is refused, one in each round: errors have names, nothing is lost, and
 * what failed works when it is tried again. */
TEST(stacks_survive_every_refusal)
{
    enum { COUNT = 600, NUMBERS = 5 };
    struct stack **taken = test_alloc(COUNT * sizeof(struct stack *));
    FOR_ROUNDS (round, (uint64_t)STACK_REQUESTS * NUMBERS) {
        const enum stack_request request = (enum stack_request)((round - 1) / NUMBERS);
        size_t bytes;
        stack_rig_open(100000);
        stack_rig.refused[request] = (uint32_t)(1 + (round - 1) % NUMBERS);
        stack_rig.refuses[GUARD] = request == PROTECT;
        for (uint32_t i = 0; i < 2; i++) {
            take_in_spite(taken, COUNT);
            give_stacks(taken, COUNT);
            stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
            assert_false(stacks_trim(&stack_rig.stacks, UINT32_MAX, &bytes));
        }
    }
}

TEST(stacks_are_refused_where_a_shadow_stack_is_active)
{
    stack_rig_open(100);
    stack_rig.has_shadow_stack = true;
    assert_int_equal(take_stack_error(64 * KIB), SKUA_E_SHADOW_STACK);
    assert_int_equal(take_stack_error(16 * KIB), SKUA_E_SHADOW_STACK);
    assert_int_equal(stack_rig.made[RESERVE], 0);
}

/* ---- guards ---- */

TEST(stack_guard_falls_back_from_pages_to_mappings_to_a_canary)
{
    stack_rig_open(100);
    stack_rig.refused[GUARD] = 2;
    stack_rig.refused[PROTECT] = 3;
    static const enum stack_guard expected[] = {STACK_GUARD_PAGE, STACK_GUARD_MAPPING,
                                                STACK_GUARD_MAPPING, STACK_GUARD_CANARY,
                                                STACK_GUARD_CANARY};
    struct stack *taken[COUNT_OF(expected)];
    assert_int_equal(load_relaxed(&stack_rig.stacks.guard), STACK_GUARD_UNKNOWN);
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        taken[i] = take_stack(0, 64 * KIB);
        assert_int_equal(load_relaxed(&stack_rig.stacks.guard), expected[i]);
        assert_int_equal(taken[i]->has_guard, expected[i] != STACK_GUARD_CANARY);
    }
    assert_int_equal(stack_rig.made[GUARD], 2); /* what has failed is not tried again */
    assert_int_equal(stack_rig.made[PROTECT], 3);
    give_stacks(taken, COUNT_OF(expected));
}

TEST(stack_guards_use_a_quarter_of_the_mappings)
{
    struct stack *taken[16];
    stack_rig_open(100);
    stack_rig.refuses[GUARD] = true;
    stack_rig.stacks.mappings = 40 / 4;
    for (uint32_t i = 0; i < COUNT_OF(taken); i++) {
        taken[i] = take_stack(0, (i & 1) != 0 ? 16 * KIB : 64 * KIB);
        assert_int_equal(taken[i]->has_guard, i < 10);
    }
    give_stacks(taken, COUNT_OF(taken));
}

static void touch(void *address)
{
    *(volatile char *)address = 1;
}

TEST(stack_guard_is_fatal_to_touch)
{
    FOR_ROUNDS (round, 2) {
        char said[256];
        stack_rig_open(100);
        stack_rig.refuses[GUARD] = round == 2;
        struct stack *below = take_stack(0, 16 * KIB);
        struct stack *stack = take_stack(0, 16 * KIB);
        assert_int_equal(ends_by(touch, stack->low, said, sizeof said), 0);
        assert_int_equal(ends_by(touch, stack->low - 1, said, sizeof said), SIGSEGV);
        assert_int_equal(ends_by(touch, (char *)below + STACK_RECORD, said, sizeof said), SIGSEGV);
        give_stack(0, stack);
        give_stack(0, below);
    }
}

TEST(stack_canary_tells_of_an_overflow)
{
    stack_rig_open(100);
    stack_rig.refuses[GUARD] = stack_rig.refuses[PROTECT] = true;
    struct stack *stack = take_stack(0, 16 * KIB);
    fill_stack(stack);
    assert_true(stacks_is_whole(stack));
    for (size_t i = 0; i < STACK_RIG_CANARY; i++) {
        stack->low[i] ^= 1;
        assert_false(stacks_is_whole(stack));
        stack->low[i] ^= 1;
    }
    assert_true(stacks_is_whole(stack));
    stack->peer = stack->low - 1000; /* its frames have left the canary out */
    assert_false(stacks_is_whole(stack));
    stack->peer = stack;
    give_stack(0, stack);
}

TEST(stack_canary_is_painted_again_when_its_memory_was_given_back)
{
    size_t bytes;
    stack_rig_open(100);
    stack_rig.refuses[GUARD] = stack_rig.refuses[PROTECT] = true;
    struct stack *stack = take_stack(0, 16 * KIB);
    fill_stack(stack);
    give_stack(0, stack);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
    (void)stacks_trim(&stack_rig.stacks, UINT32_MAX, &bytes);
    assert_ptr_equal(take_stack(0, 16 * KIB), stack);
    fill_stack(stack);
    assert_true(stacks_is_whole(stack));
    assert_int_equal(stacks_trim_below(&stack_rig.stacks, stack, stack), 8 * KIB);
    assert_true(stacks_is_whole(stack));
    give_stack(0, stack);
}

/* ---- several at once ---- */

TEST(slots_that_a_cache_takes_ahead_are_few_and_a_small_share_of_those_in_use)
{
    enum { COUNT = 1000 };
    struct stack *taken[COUNT];
    stack_rig_open(1u << 20);
    for (uint32_t i = 0; i < COUNT; i++) {
        taken[i] = take_stack(0, 16 * KIB);
        assert_in_range(stack_rig.caches[0].bare_count[0], 0, i / 16 < 16 ? i / 16 : 15);
        assert_int_equal(stack_rig.caches[0].count[0], 0); /* they have no memory */
    }
    give_stacks(taken, COUNT);
}

/* Takes stacks with the first cache until that has slots left. Returns how many. */
static uint32_t take_until_slots_are_left(struct stack **taken)
{
    uint32_t count = 0;
    while (count == 0 || stack_rig.caches[0].bare_count[0] == 0) {
        taken[count++] = take_stack(0, 16 * KIB);
    }
    return count;
}

TEST(slots_that_a_cache_has_taken_ahead_are_for_others_when_it_is_flushed)
{
    struct stack *taken[64];
    stack_rig_open(1u << 20);
    uint32_t count = take_until_slots_are_left(taken);
    const uint32_t used = load_relaxed(&stack_rig.stacks.tiers[0].used);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
    assert_int_equal(stacks_held_bytes(&stack_rig.stacks), count * 16 * KIB);
    assert_int_equal(stacks_free_bytes(&stack_rig.stacks), 0); /* they have no memory */
    while (count < used) {
        taken[count++] = take_stack(1, 16 * KIB);
    }
    assert_int_equal(load_relaxed(&stack_rig.stacks.tiers[0].used), used);
    for (uint32_t i = 0; i < used; i++) {
        fill_stack(taken[i]);
        taken[i]->peer = taken[i];
    }
    for (uint32_t i = 0; i < used; i++) {
        assert_ptr_equal(taken[i]->peer, taken[i]); /* each is one of its own */
    }
    give_stacks(taken, used);
}

TEST(cache_takes_a_stack_that_was_used_before_the_slots_that_it_has)
{
    struct stack *taken[64];
    stack_rig_open(1u << 20);
    const uint32_t count = take_until_slots_are_left(taken);
    const uint32_t slots = stack_rig.caches[0].bare_count[0];
    give_stack(1, taken[0]);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[1]);
    assert_ptr_equal(take_stack(0, 16 * KIB), taken[0]);
    assert_int_equal(stack_rig.caches[0].bare_count[0], slots);
    give_stacks(taken, count);
}

static struct stack *taken_meanwhile;

static void take_another(void)
{
    taken_meanwhile = take_stack(1, 16 * KIB);
}

TEST(stack_that_gets_no_guard_may_lie_below_one_that_has_got_its_guard_meanwhile)
{
    stack_rig_open(100);
    stack_rig.refused[GUARD] = 2;
    stack_rig.refuses[PROTECT] = true;
    stack_rig.before_guard = take_another;
    struct stack *stacks[] = {take_stack(0, 16 * KIB), taken_meanwhile};
    assert_true(stacks[0] < stacks[1]);
    FOR_ROUNDS (round, 2) { /* as made, and after their memory was given back */
        size_t bytes;
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(stacks[i]->has_guard, i == 1);
            fill_stack(stacks[i]);
            assert_true(stacks_is_whole(stacks[i]));
        }
        give_stacks(stacks, 2);
        stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
        (void)stacks_trim(&stack_rig.stacks, UINT32_MAX, &bytes);
        assert_ptr_equal(take_stack(0, 16 * KIB), stacks[1]);
        assert_ptr_equal(take_stack(0, 16 * KIB), stacks[0]);
    }
    give_stacks(stacks, 2);
}

/* A thread that takes all that it gets. */
struct taker {
    struct stacks *stacks;
    struct stack_cache cache;
    uint32_t taken;
    uint32_t taken_twice;
    int error;
};

static void take_all(void *arg)
{
    struct taker *taker = arg;
    struct stack *stack;
    for (;;) {
        taker->error = stacks_acquire(taker->stacks, &taker->cache, 0, &stack);
        if (taker->error != 0) {
            return;
        }
        taker->taken++;
        taker->taken_twice += load_relaxed(&stack->owner) != 0 || stack->peer != NULL;
        store_relaxed(&stack->owner, 1);
        fill_stack(stack);
    }
}

TEST(stacks_made_by_several_threads_are_distinct_and_as_many_as_the_limit)
{
    enum { THREADS = 4, LIMIT = 5000 };
    static struct stacks shared;
    static struct taker takers[THREADS];
    struct thread *threads[THREADS];
    uint32_t taken = 0;
    stacks_init(&shared, &stack_memory_of_system, LIMIT);
    for (uint32_t i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.stacks = &shared};
        stacks_init_cache(&shared, &takers[i].cache, THREADS);
        threads[i] = thread_start(take_all, &takers[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
        assert_int_equal(takers[i].error, SKUA_E_STACK_LIMIT);
        assert_int_equal(takers[i].taken_twice, 0);
        taken += takers[i].taken;
    }
    assert_int_equal(taken, LIMIT);
    stacks_deinit(&shared);
}

/* ---- memory ---- */

TEST(stacks_give_memory_back_and_work_again)
{
    const size_t count = 10;
    struct stack *taken[10];
    size_t bytes;
    if (IS_SANITIZED) {
        skip(); /* they keep their memory then */
    }
    stack_rig_open(1u << 20);
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = take_stack(0, 256 * KIB);
        fill_stack(taken[i]);
        assert_int_equal(resident(taken[i]), 256 * KIB);
    }
    give_stacks(taken, 10);
    assert_int_equal(stacks_free_bytes(&stack_rig.stacks), 0); /* they are in the cache */
    assert_int_equal(stacks_held_bytes(&stack_rig.stacks), 256 * KIB * 10);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
    assert_int_equal(stacks_free_bytes(&stack_rig.stacks), count * 256 * KIB);
    assert_true(stacks_trim(&stack_rig.stacks, 1, &bytes));
    assert_int_equal(bytes, 256 * KIB);
    assert_null(taken[0]->low); /* its record is gone, too */
    assert_false(stacks_trim(&stack_rig.stacks, 10, &bytes));
    assert_int_equal(bytes, (count - 1) * 256 * KIB);
    assert_int_equal(stacks_free_bytes(&stack_rig.stacks), 0);
    for (uint32_t i = 0; i < count; i++) {
        struct stack *stack = take_stack(0, 256 * KIB);
        assert_ptr_equal(stack, taken[count - 1 - i]);
        assert_null(stack->peer);
        fill_stack(stack);
    }
    give_stacks(taken, 10);
}

TEST(stacks_are_trimmed_once_until_they_are_used_again)
{
    struct stack *taken[3] = {NULL};
    size_t bytes;
    if (IS_SANITIZED) {
        skip();
    }
    stack_rig_open(100);
    take_in_spite(taken, 3);
    give_stacks(taken, 3);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
    assert_false(stacks_trim(&stack_rig.stacks, UINT32_MAX, &bytes));
    (void)stacks_trim(&stack_rig.stacks, UINT32_MAX, &bytes);
    assert_int_equal(bytes, 0);
    assert_int_equal(stack_rig.made[DISCARD], 3);
    struct stack *stack = take_stack(0, 16 * KIB);
    fill_stack(stack);
    give_stack(0, stack);
    stacks_flush(&stack_rig.stacks, &stack_rig.caches[0]);
    (void)stacks_trim(&stack_rig.stacks, UINT32_MAX, &bytes);
    assert_int_equal(bytes, 16 * KIB);
    assert_int_equal(stack_rig.made[DISCARD], 4); /* the others are clean */
}

TEST(stack_gives_back_what_lies_below_its_stack_pointer)
{
    stack_rig_open(100);
    struct stack *stack = take_stack(0, 64 * KIB);
    fill_stack(stack);
    char *sp = (char *)stack - 10000;
    assert_int_equal(stacks_trim_below(&stack_rig.stacks, stack, sp), 52 * KIB);
    assert_int_equal(resident(stack), 12 * KIB);
    assert_int_equal(*(sp - 128), 0x5a); /* and the red zone is as it was */
    assert_int_equal(*stack->low, 0);
    assert_int_equal(stacks_trim_below(&stack_rig.stacks, stack, stack->low + 100), 0);
    give_stack(0, stack);
}
