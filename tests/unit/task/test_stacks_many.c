/* SPDX-License-Identifier: MIT */
/* Many stacks, on this very system. */
#include <skua/error.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"
#include "effort.h"
#include "mapping.h"
#include "task/stacks.h"
#include "test.h"

#define KIB ((size_t)1024)

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

/* The first byte of a stack would take two megabytes otherwise. */
TEST(stacks_have_no_huge_pages)
{
    struct stack_cache cache;
    struct stack *stack = NULL;
    char flags[512];
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
        skip();
    }
    stacks_init(&many, &stack_memory_of_system, 100);
    stacks_init_cache(&many, &cache, 1);
    for (size_t size = 16 * KIB; size <= 1024 * KIB; size *= 4) {
        assert_int_equal(stacks_acquire(&many, &cache, stacks_tier(size), &stack), 0);
        mapping_flags(stack, flags, sizeof flags);
        assert_true(flags[0] == '\0' || strstr(flags, " nh") != NULL);
        stacks_release(&many, &cache, stack);
    }
    stacks_deinit(&many);
}
