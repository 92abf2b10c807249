/* SPDX-License-Identifier: MIT */
#include "stack_rig.h"

#include <string.h>

#include "test.h"

struct stack_rig stack_rig;

/* ---- the system ---- */

static bool is_granted(enum stack_request request)
{
    return !stack_rig.refuses[request] && ++stack_rig.made[request] != stack_rig.refused[request];
}

static void *reserve(size_t size)
{
    if (!is_granted(RESERVE) || size > stack_rig.reserve_max) {
        return NULL;
    }
    void *start = stack_memory_of_system.reserve(size);
    stack_rig.reserved += start != NULL ? size : 0;
    return start;
}

static void unreserve(void *start, size_t size)
{
    stack_rig.reserved -= size;
    stack_memory_of_system.unreserve(start, size);
}

static bool commit(void *start, size_t size)
{
    return is_granted(COMMIT) && stack_memory_of_system.commit(start, size);
}

static void call_before_guard(void)
{
    void (*function)(void) = stack_rig.before_guard;
    stack_rig.before_guard = NULL;
    if (function != NULL) {
        function();
    }
}

static bool guard(void *start, size_t size)
{
    call_before_guard();
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
    return stack_rig.mappings;
}

static bool has_shadow_stack(void)
{
    return stack_rig.has_shadow_stack;
}

static const struct stack_memory memory = {.reserve = reserve,
                                           .unreserve = unreserve,
                                           .commit = commit,
                                           .guard = guard,
                                           .protect = protect,
                                           .discard = discard,
                                           .mappings_max = mappings_max,
                                           .has_shadow_stack = has_shadow_stack};

/* ---- stacks ---- */

static void close_rig(void)
{
    struct stacks *stacks = &stack_rig.stacks;
    for (uint32_t i = 0; i < STACK_RIG_CACHES; i++) {
        stacks_flush(stacks, &stack_rig.caches[i]);
    }
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        assert_int_equal(stacks->tiers[tier].free_count, load_relaxed(&stacks->tiers[tier].used));
    }
    stacks_deinit(stacks);
    assert_int_equal(stack_rig.reserved, 0);
}

void stack_rig_open(uint32_t limit)
{
    memset(&stack_rig, 0, sizeof stack_rig);
    stack_rig.reserve_max = SIZE_MAX;
    stack_rig.mappings = 1000;
    stacks_init(&stack_rig.stacks, &memory, limit);
    for (uint32_t i = 0; i < STACK_RIG_CACHES; i++) {
        stacks_init_cache(&stack_rig.stacks, &stack_rig.caches[i], 1);
    }
    test_at_end(close_rig);
}

struct stack *take_stack(uint32_t cache, size_t size)
{
    struct stack *stack = NULL;
    const uint32_t tier = stacks_tier(size);
    assert_int_equal(stacks_acquire(&stack_rig.stacks, &stack_rig.caches[cache], tier, &stack), 0);
    return stack;
}

int take_stack_error(size_t size)
{
    struct stack *stack;
    return stacks_acquire(&stack_rig.stacks, &stack_rig.caches[0], stacks_tier(size), &stack);
}

void give_stack(uint32_t cache, struct stack *stack)
{
    stacks_release(&stack_rig.stacks, &stack_rig.caches[cache], stack);
}

void give_stacks(struct stack *const *taken, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        give_stack(0, taken[i]);
    }
}

void fill_stack(struct stack *stack)
{
    const size_t kept = stack->has_guard ? 0 : STACK_RIG_CANARY;
    stack->peer = stack;
    memset(stack->low + kept, 0x5a, (size_t)((char *)stack - stack->low) - kept);
}
