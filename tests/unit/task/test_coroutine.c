/* SPDX-License-Identifier: MIT */
/* Functions on stacks of their own: entering, leaving, and what survives that. */
#include "task/coroutine.h"

#include <execinfo.h>

#include "test.h"
#include "threads.h"

static struct stacks stacks;
static struct stack_cache cache;

static void close_stacks(void)
{
    stacks_flush(&stacks, &cache);
    stacks_deinit(&stacks);
    stacks.memory = NULL;
}

static struct stack *begin(coroutine_fn *run, size_t size)
{
    struct stack *stack = NULL;
    if (stacks.memory == NULL) {
        stacks_init(&stacks, &stack_memory_of_system, 1000);
        stacks_init_cache(&stacks, &cache, 1);
        test_at_end(close_stacks);
    }
    assert_int_equal(stacks_acquire(&stacks, &cache, stacks_tier(size), &stack), 0);
    coroutine_begin(stack, run);
    return stack;
}

static void end(struct stack *stack)
{
    stacks_release(&stacks, &cache, stack);
}

static unsigned count;

static void count_once(struct stack *stack)
{
    (void)stack;
    count++;
}

TEST(coroutine_runs_its_function_whenever_it_is_entered)
{
    struct stack *stack = begin(count_once, STACK_SIZE_DEFAULT);
    count = 0;
    for (unsigned i = 1; i <= 1000; i++) {
        coroutine_enter(stack);
        assert_int_equal(count, i);
    }
    end(stack);
}

static void count_and_leave(struct stack *stack)
{
    for (unsigned i = 0; i < 10; i++) {
        count += 1;
        coroutine_leave(stack);
    }
    count += 100;
}

TEST(coroutine_goes_on_where_it_has_left)
{
    struct stack *stack = begin(count_and_leave, STACK_SIZE_DEFAULT);
    count = 0;
    for (unsigned i = 1; i <= 10; i++) {
        coroutine_enter(stack);
        assert_int_equal(count, i);
    }
    coroutine_enter(stack);
    assert_int_equal(count, 110); /* its function has returned */
    coroutine_enter(stack);
    assert_int_equal(count, 111);
    end(stack);
}

/* Each has its own numbers in every register that it can get. */
static uint64_t mix(struct stack *stack, uint64_t seed)
{
    uint64_t a = seed * 3;
    uint64_t b = seed * 5;
    uint64_t c = seed * 7;
    uint64_t d = seed * 11;
    uint64_t e = seed * 13;
    uint64_t f = seed * 17;
    double x = (double)seed * 1.5;
    double y = (double)seed * 2.5;
    for (unsigned i = 0; i < 100; i++) {
        if (stack != NULL) {
            coroutine_leave(stack);
        }
        a += b ^ i;
        b += c ^ d;
        c += d + e;
        d ^= e + f;
        e += a;
        f ^= b + c;
        x += y * 0.5;
        y += 1 / (x + 1);
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ (uint64_t)(x * 1e6) ^ (uint64_t)(y * 1e6);
}

#define MANY 50

static uint64_t mixed[MANY];
static struct stack *mixers[MANY];

static void mix_own(struct stack *stack)
{
    unsigned number = 0;
    while (mixers[number] != stack) {
        number++;
    }
    mixed[number] = mix(stack, number + 1);
}

TEST(coroutines_keep_their_values_while_others_run)
{
    for (unsigned i = 0; i < MANY; i++) {
        mixers[i] = begin(mix_own, 16384);
    }
    for (unsigned turn = 0; turn <= 100; turn++) {
        for (unsigned i = 0; i < MANY; i++) {
            coroutine_enter(mixers[i]);
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(mixed[i], mix(NULL, i + 1));
        end(mixers[i]);
    }
}

static struct stack *inner;

static void enter_inner(struct stack *stack)
{
    for (unsigned i = 0; i < 3; i++) {
        coroutine_enter(inner);
        coroutine_leave(stack);
    }
}

TEST(coroutine_may_be_the_host_of_another)
{
    struct stack *outer = begin(enter_inner, STACK_SIZE_DEFAULT);
    inner = begin(count_and_leave, 16384);
    count = 0;
    for (unsigned i = 1; i <= 3; i++) {
        coroutine_enter(outer);
        assert_int_equal(count, i);
    }
    end(inner);
    end(outer);
}

static void enter(void *stack)
{
    coroutine_enter(stack);
}

TEST(coroutine_goes_on_on_another_thread)
{
    struct stack *stack = begin(count_and_leave, STACK_SIZE_DEFAULT);
    count = 0;
    for (unsigned i = 1; i <= 11; i++) {
        thread_run(enter, stack);
        assert_int_equal(count, i <= 10 ? i : 110);
    }
    end(stack);
}

static int depth;

static void look_back(struct stack *stack)
{
    void *frames[32];
    (void)stack;
    depth = backtrace(frames, 32);
}

TEST(coroutine_backtrace_ends_where_its_stack_begins)
{
    struct stack *stack = begin(look_back, STACK_SIZE_DEFAULT);
    coroutine_enter(stack);
    assert_in_range(depth, 2, 6);
    end(stack);
}

TEST(coroutine_begins_again_when_its_memory_was_given_back)
{
    size_t bytes;
    if (IS_SANITIZED) {
        skip(); /* they keep their memory then */
    }
    struct stack *stack = begin(count_once, STACK_SIZE_DEFAULT);
    count = 0;
    coroutine_enter(stack);
    end(stack);
    stacks_flush(&stacks, &cache);
    (void)stacks_trim(&stacks, 1, &bytes);
    assert_in_range(bytes, stacks.page, 16384);
    assert_int_equal(stacks_acquire(&stacks, &cache, stacks_tier(STACK_SIZE_DEFAULT), &stack), 0);
    assert_null(stack->peer);
    coroutine_begin(stack, count_once);
    coroutine_enter(stack);
    assert_int_equal(count, 2);
    end(stack);
}
