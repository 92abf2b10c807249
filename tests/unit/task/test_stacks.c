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
#include "test.h"

#define KIB         ((size_t)1024)
#define CACHES      2
#define CANARY_SIZE 256

/* ---- a system that refuses ---- */

enum request { RESERVE, COMMIT, GUARD, PROTECT, DISCARD, REQUESTS };

/* What the stacks have asked for, and what they get. */
static struct {
    uint32_t made[REQUESTS];
    uint32_t refused[REQUESTS]; /* the request with this number; 0: none */
    bool refuses[REQUESTS];     /* all */
    size_t reserve_max;
    size_t reserved; /* and not unreserved */
    uint32_t mappings;
    bool has_shadow_stack;
} sys;

static bool is_granted(enum request request)
{
    return !sys.refuses[request] && ++sys.made[request] != sys.refused[request];
}

static void *reserve(size_t size)
{
    if (!is_granted(RESERVE) || size > sys.reserve_max) {
        return NULL;
    }
    void *start = stack_memory_of_system.reserve(size);
    sys.reserved += start != NULL ? size : 0;
    return start;
}

static void unreserve(void *start, size_t size)
{
    sys.reserved -= size;
    stack_memory_of_system.unreserve(start, size);
}

static bool commit(void *start, size_t size)
{
    return is_granted(COMMIT) && stack_memory_of_system.commit(start, size);
}

static bool guard(void *start, size_t size)
{
    return is_granted(GUARD) && (stack_memory_of_system.guard(start, size) ||
                                 stack_memory_of_system.protect(start, size));
}

static bool protect(void *start, size_t size)
{
    return is_granted(PROTECT) && stack_memory_of_system.protect(start, size);
}

static size_t discard(void *start, size_t size)
{
    return is_granted(DISCARD) ? stack_memory_of_system.discard(start, size) : 0;
}

static uint32_t mappings_max(void)
{
    return sys.mappings;
}

static bool has_shadow_stack(void)
{
    return sys.has_shadow_stack;
}

static const struct stack_memory memory = {.reserve = reserve,
                                           .unreserve = unreserve,
                                           .commit = commit,
                                           .guard = guard,
                                           .protect = protect,
                                           .discard = discard,
                                           .mappings_max = mappings_max,
                                           .has_shadow_stack = has_shadow_stack};

/* ---- the stacks of a test ---- */

static struct stacks stacks;
static struct stack_cache caches[CACHES];

static void close_stacks(void)
{
    for (uint32_t i = 0; i < CACHES; i++) {
        stacks_flush(&stacks, &caches[i]);
    }
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        assert_int_equal(stacks.tiers[tier].free_count, load_relaxed(&stacks.tiers[tier].used));
    }
    stacks_deinit(&stacks);
    assert_int_equal(sys.reserved, 0);
}

static void open_stacks(uint32_t limit)
{
    memset(&sys, 0, sizeof sys);
    sys.reserve_max = SIZE_MAX;
    sys.mappings = 1000;
    stacks_init(&stacks, &memory, limit);
    for (uint32_t i = 0; i < CACHES; i++) {
        stacks_init_cache(&stacks, &caches[i], 1);
    }
    test_at_end(close_stacks);
}

static struct stack *take(uint32_t cache, size_t size)
{
    struct stack *stack = NULL;
    assert_int_equal(stacks_acquire(&stacks, &caches[cache], stacks_tier(size), &stack), 0);
    return stack;
}

static int take_error(size_t size)
{
    struct stack *stack;
    return stacks_acquire(&stacks, &caches[0], stacks_tier(size), &stack);
}

static void give(uint32_t cache, struct stack *stack)
{
    stacks_release(&stacks, &caches[cache], stack);
}

/* As a task would. */
static void use(struct stack *stack)
{
    const size_t kept = stack->has_guard ? 0 : CANARY_SIZE;
    stack->peer = stack;
    memset(stack->low + kept, 0x5a, (size_t)((char *)stack - stack->low) - kept);
}

static size_t resident(const struct stack *stack)
{
    unsigned char pages[256];
    size_t bytes = 0;
    const size_t size = stacks_size(stack->tier);
    assert_int_equal(mincore(stack->low, size, pages), 0);
    for (size_t i = 0; i < size / stacks.page; i++) {
        bytes += (pages[i] & 1) * stacks.page;
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
    assert_int_equal(stacks_tier(1024 * KIB + 1), STACK_TIERS);
    assert_int_equal(stacks_tier(SIZE_MAX), STACK_TIERS);
}

TEST(stack_of_every_tier_can_be_used_from_end_to_end)
{
    open_stacks(100);
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        struct stack *stack = take(0, stacks_size(tier));
        assert_int_equal(stack->tier, tier);
        assert_ptr_equal((char *)stack + STACK_RECORD, stack->low + stacks_size(tier));
        use(stack);
        give(0, stack);
    }
}

/* ---- limits and reuse ---- */

TEST(stacks_of_all_tiers_share_one_limit)
{
    open_stacks(3);
    struct stack *small = take(0, 16 * KIB);
    struct stack *large = take(0, 1024 * KIB);
    struct stack *other = take(1, 64 * KIB);
    assert_int_equal(take_error(16 * KIB), SKUA_E_STACK_LIMIT);
    assert_int_equal(take_error(256 * KIB), SKUA_E_STACK_LIMIT);
    give(0, small);
    assert_ptr_equal(take(0, 16 * KIB), small);
    give(0, small);
    struct stack *third = take(0, 256 * KIB); /* instead of the small one, which is free */
    assert_int_equal(take_error(16 * KIB), SKUA_E_STACK_LIMIT);
    give(0, third);
    give(0, large);
    give(1, other);
}

TEST(stacks_in_caches_are_a_small_share_of_the_limit)
{
    static const struct {
        uint32_t limit;
        uint32_t count;
        uint32_t max;
    } rows[] = {{255, 1, 0}, {256, 1, 1}, {2560, 2, 5}, {1u << 20, 16, STACK_CACHED_MAX - 1}};
    FOR_ROWS (row, rows) {
        open_stacks(row->limit);
        stacks_init_cache(&stacks, &caches[0], row->count);
        assert_int_equal(caches[0].max, row->max);
    }
}

TEST(stack_that_was_released_last_is_used_next)
{
    open_stacks(100);
    struct stack *first = take(0, 64 * KIB);
    struct stack *second = take(0, 64 * KIB);
    give(0, first);
    give(0, second);
    assert_ptr_equal(take(0, 64 * KIB), second);
    assert_ptr_equal(take(0, 64 * KIB), first);
    give(0, second);
    give(0, first);
    stacks_flush(&stacks, &caches[0]);
    assert_ptr_equal(take(1, 64 * KIB), first);
    give(1, first);
}

TEST(stacks_spilled_by_one_cache_refill_another)
{
    const uint32_t count = 3 * STACK_CACHED_MAX;
    struct stack *taken[3 * STACK_CACHED_MAX];
    open_stacks(1u << 20);
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = take(0, 16 * KIB);
    }
    for (uint32_t i = 0; i < count; i++) {
        give(0, taken[i]);
        assert_true(caches[0].count[0] < STACK_CACHED_MAX);
    }
    const uint32_t spilled = count - caches[0].count[0];
    for (uint32_t i = 0; i < spilled; i++) {
        taken[i] = take(1, 16 * KIB);
    }
    assert_int_equal(load_relaxed(&stacks.tiers[0].used), count);
    for (uint32_t i = 0; i < spilled; i++) {
        give(1, taken[i]);
    }
}

TEST(stacks_do_not_overlap_and_each_is_found_by_its_addresses)
{
    enum { COUNT = 1000 }; /* more than one piece */
    struct stack *taken[COUNT];
    open_stacks(COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        taken[i] = take(0, 16 * KIB);
        taken[i]->peer = taken[i];
        assert_ptr_equal(stacks_find(&stacks, taken[i]->low - 1), taken[i]);
        assert_ptr_equal(stacks_find(&stacks, taken[i]->low), taken[i]);
        assert_ptr_equal(stacks_find(&stacks, (char *)taken[i] + STACK_RECORD - 1), taken[i]);
        assert_true(i == 0 || taken[i]->low > (char *)taken[i - 1] + STACK_RECORD);
    }
    assert_null(stacks_find(&stacks, NULL));
    assert_null(stacks_find(&stacks, &stacks));
    assert_null(stacks_find(&stacks, (char *)taken[COUNT - 1] + STACK_RECORD)); /* never used */
    for (uint32_t i = 0; i < COUNT; i++) {
        give(0, taken[i]);
    }
}

/* ---- a reservation that is refused ---- */

TEST(stacks_take_a_share_of_the_address_space_that_they_can_get)
{
    open_stacks(1u << 20);
    sys.reserve_max = (size_t)1 << 28;
    struct stack *stack = take(0, 64 * KIB);
    const size_t reserved = 64 * KIB * stacks.tiers[stack->tier].slots;
    assert_in_range(reserved, (size_t)1 << 24, (size_t)1 << 26);
    give(0, stack);
}

TEST(stacks_without_address_space_are_refused_and_can_be_tried_again)
{
    open_stacks(100);
    sys.reserve_max = 0;
    assert_int_equal(take_error(64 * KIB), SKUA_E_NO_MEMORY);
    assert_int_equal(sys.reserved, 0);
    sys.reserve_max = SIZE_MAX;
    give(0, take(0, 64 * KIB));
}

TEST(stacks_that_have_used_up_their_reservation_want_memory)
{
    struct stack *taken[1024];
    uint32_t count = 0;
    open_stacks(1u << 20);
    sys.reserve_max = (size_t)8 << 20;
    while (stacks_acquire(&stacks, &caches[0], stacks_tier(64 * KIB), &taken[count]) == 0) {
        count++;
    }
    assert_in_range(count, 50, 200);
    assert_int_equal(take_error(64 * KIB), SKUA_E_NO_MEMORY);
    while (count > 0) {
        give(0, taken[--count]);
    }
}

/* Takes `count` stacks of the smallest tier. Any may be refused once. */
static void take_in_spite(struct stack **taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int error = stacks_acquire(&stacks, &caches[0], 0, &taken[i]);
        if (error != 0) {
            assert_int_equal(error, SKUA_E_NO_MEMORY);
            error = stacks_acquire(&stacks, &caches[0], 0, &taken[i]);
        }
        assert_int_equal(error, 0);
        if (error == 0) {
            use(taken[i]);
            assert_true(stacks_is_whole(taken[i]));
        }
    }
}

static void give_all(struct stack *const *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        give(0, taken[i]);
    }
}

/* Each request to the system is refused, one in each round: errors have names, nothing is lost, and
 * what failed works when it is tried again. */
TEST(stacks_survive_every_refusal)
{
    enum { COUNT = 600, NUMBERS = 5 };
    struct stack **taken = test_alloc(COUNT * sizeof(struct stack *));
    FOR_ROUNDS (round, (uint64_t)REQUESTS * NUMBERS) {
        const enum request request = (enum request)((round - 1) / NUMBERS);
        size_t bytes;
        open_stacks(100000);
        sys.refused[request] = (uint32_t)(1 + (round - 1) % NUMBERS);
        sys.refuses[GUARD] = request == PROTECT;
        for (uint32_t i = 0; i < 2; i++) {
            take_in_spite(taken, COUNT);
            give_all(taken, COUNT);
            stacks_flush(&stacks, &caches[0]);
            assert_false(stacks_trim(&stacks, UINT32_MAX, &bytes));
        }
    }
}

TEST(stacks_are_refused_where_a_shadow_stack_is_active)
{
    open_stacks(100);
    sys.has_shadow_stack = true;
    assert_int_equal(take_error(64 * KIB), SKUA_E_SHADOW_STACK);
    assert_int_equal(take_error(16 * KIB), SKUA_E_SHADOW_STACK);
    assert_int_equal(sys.made[RESERVE], 0);
}

/* ---- guards ---- */

TEST(stack_guard_falls_back_from_pages_to_mappings_to_a_canary)
{
    open_stacks(100);
    sys.refused[GUARD] = 2;
    sys.refused[PROTECT] = 3;
    static const enum stack_guard expected[] = {STACK_GUARD_PAGE, STACK_GUARD_MAPPING,
                                                STACK_GUARD_MAPPING, STACK_GUARD_CANARY,
                                                STACK_GUARD_CANARY};
    struct stack *taken[COUNT_OF(expected)];
    assert_int_equal(load_relaxed(&stacks.guard), STACK_GUARD_UNKNOWN);
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        taken[i] = take(0, 64 * KIB);
        assert_int_equal(load_relaxed(&stacks.guard), expected[i]);
        assert_int_equal(taken[i]->has_guard, expected[i] != STACK_GUARD_CANARY);
    }
    assert_int_equal(sys.made[GUARD], 2); /* what has failed is not tried again */
    assert_int_equal(sys.made[PROTECT], 3);
    give_all(taken, COUNT_OF(expected));
}

TEST(stack_guards_use_a_quarter_of_the_mappings)
{
    struct stack *taken[16];
    open_stacks(100);
    sys.refuses[GUARD] = true;
    stacks.mappings = 40 / 4;
    for (uint32_t i = 0; i < COUNT_OF(taken); i++) {
        taken[i] = take(0, (i & 1) != 0 ? 16 * KIB : 64 * KIB);
        assert_int_equal(taken[i]->has_guard, i < 10);
    }
    give_all(taken, COUNT_OF(taken));
}

static void touch(void *address)
{
    *(volatile char *)address = 1;
}

TEST(stack_guard_is_fatal_to_touch)
{
    FOR_ROUNDS (round, 2) {
        char said[256];
        open_stacks(100);
        sys.refuses[GUARD] = round == 2;
        struct stack *below = take(0, 16 * KIB);
        struct stack *stack = take(0, 16 * KIB);
        assert_int_equal(ends_by(touch, stack->low, said, sizeof said), 0);
        assert_int_equal(ends_by(touch, stack->low - 1, said, sizeof said), SIGSEGV);
        assert_int_equal(ends_by(touch, (char *)below + STACK_RECORD, said, sizeof said), SIGSEGV);
        give(0, stack);
        give(0, below);
    }
}

TEST(stack_canary_tells_of_an_overflow)
{
    open_stacks(100);
    sys.refuses[GUARD] = sys.refuses[PROTECT] = true;
    struct stack *stack = take(0, 16 * KIB);
    use(stack);
    assert_true(stacks_is_whole(stack));
    for (size_t i = 0; i < CANARY_SIZE; i++) {
        stack->low[i] ^= 1;
        assert_false(stacks_is_whole(stack));
        stack->low[i] ^= 1;
    }
    assert_true(stacks_is_whole(stack));
    stack->peer = stack->low - 1000; /* its frames have left the canary out */
    assert_false(stacks_is_whole(stack));
    stack->peer = stack;
    give(0, stack);
}

TEST(stack_canary_is_painted_again_when_its_memory_was_given_back)
{
    size_t bytes;
    open_stacks(100);
    sys.refuses[GUARD] = sys.refuses[PROTECT] = true;
    struct stack *stack = take(0, 16 * KIB);
    use(stack);
    give(0, stack);
    stacks_flush(&stacks, &caches[0]);
    (void)stacks_trim(&stacks, UINT32_MAX, &bytes);
    assert_ptr_equal(take(0, 16 * KIB), stack);
    use(stack);
    assert_true(stacks_is_whole(stack));
    assert_int_equal(stacks_trim_below(&stacks, stack, stack), 8 * KIB);
    assert_true(stacks_is_whole(stack));
    give(0, stack);
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
    open_stacks(1u << 20);
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = take(0, 256 * KIB);
        use(taken[i]);
        assert_int_equal(resident(taken[i]), 256 * KIB);
    }
    give_all(taken, 10);
    assert_int_equal(stacks_free_bytes(&stacks), 0); /* they are in the cache */
    assert_int_equal(stacks_held_bytes(&stacks), 256 * KIB * 10);
    stacks_flush(&stacks, &caches[0]);
    assert_int_equal(stacks_free_bytes(&stacks), count * 256 * KIB);
    assert_true(stacks_trim(&stacks, 1, &bytes));
    assert_int_equal(bytes, 256 * KIB);
    assert_null(stacks_find(&stacks, (char *)taken[0] - 1)); /* nobody uses it */
    assert_false(stacks_trim(&stacks, 10, &bytes));
    assert_int_equal(bytes, (count - 1) * 256 * KIB);
    assert_int_equal(stacks_free_bytes(&stacks), 0);
    for (uint32_t i = 0; i < count; i++) {
        struct stack *stack = take(0, 256 * KIB);
        assert_ptr_equal(stack, taken[count - 1 - i]);
        assert_null(stack->peer);
        use(stack);
    }
    give_all(taken, 10);
}

TEST(stacks_are_trimmed_once_until_they_are_used_again)
{
    struct stack *taken[3] = {NULL};
    size_t bytes;
    if (IS_SANITIZED) {
        skip();
    }
    open_stacks(100);
    take_in_spite(taken, 3);
    give_all(taken, 3);
    stacks_flush(&stacks, &caches[0]);
    assert_false(stacks_trim(&stacks, UINT32_MAX, &bytes));
    (void)stacks_trim(&stacks, UINT32_MAX, &bytes);
    assert_int_equal(bytes, 0);
    assert_int_equal(sys.made[DISCARD], 3);
    struct stack *stack = take(0, 16 * KIB);
    use(stack);
    give(0, stack);
    stacks_flush(&stacks, &caches[0]);
    (void)stacks_trim(&stacks, UINT32_MAX, &bytes);
    assert_int_equal(bytes, 16 * KIB);
    assert_int_equal(sys.made[DISCARD], 4); /* the others are clean */
}

TEST(stack_gives_back_what_lies_below_its_stack_pointer)
{
    open_stacks(100);
    struct stack *stack = take(0, 64 * KIB);
    use(stack);
    char *sp = (char *)stack - 10000;
    assert_int_equal(stacks_trim_below(&stacks, stack, sp), 52 * KIB);
    assert_int_equal(resident(stack), 12 * KIB);
    assert_int_equal(*(sp - 128), 0x5a); /* and the red zone is as it was */
    assert_int_equal(*stack->low, 0);
    assert_int_equal(stacks_trim_below(&stacks, stack, stack->low + 100), 0);
    give(0, stack);
}

/* ---- many ---- */

static struct stacks many;

/* Makes and uses `count` stacks; 0 if that works, 1 if memory runs out and 2 for another error. */
static int make_many(int count)
{
    struct stack_cache cache;
    int error = 0;
    stacks_init(&many, &stack_memory_of_system, 1u << 20);
    stacks_init_cache(&many, &cache, 1);
    for (int i = 0; i < count && error == 0; i++) {
        struct stack *stack;
        error = stacks_acquire(&many, &cache, stacks_tier(16 * KIB), &stack);
        if (error == 0) {
            stack->peer = stack;
            stack->low[1000] = 1;
        }
    }
    stacks_deinit(&many);
    return error == 0 ? 0 : error == SKUA_E_NO_MEMORY ? 1 : 2;
}

TEST(stacks_may_be_more_than_half_of_the_mappings)
{
    assert_int_equal(make_many(EFFORT(40000)), 0);
}

#define ADDRESS_SPACE ((rlim_t)1 << 31)

static int make_many_with_little_address_space(int count)
{
    const struct rlimit limit = {.rlim_cur = ADDRESS_SPACE, .rlim_max = ADDRESS_SPACE};
    return setrlimit(RLIMIT_AS, &limit) != 0 ? 3 : make_many(count);
}

TEST(stacks_live_with_a_limit_of_address_space)
{
    if (IS_SANITIZED) {
        skip(); /* sanitizers do not */
    }
    assert_int_equal(child_run(make_many_with_little_address_space, 2000), 0);
    assert_int_equal(child_run(make_many_with_little_address_space, 1000000), 1);
}
