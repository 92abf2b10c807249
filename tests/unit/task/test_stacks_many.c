/* SPDX-License-Identifier: MIT */
/* Many stacks, on this very system. */
#include <skua/error.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"
#include "deep_task.h"
#include "effort.h"
#include "mapping.h"
#include "task/stacks.h"
#include "test.h"

#define KIB ((size_t)1024)

static struct stacks many;

/* Makes and uses `count` stacks; 0 if that works, 1 if memory runs out and 2 for another error. */
static int make_many_of(const struct stack_memory *memory, int count)
{
    struct stack_cache cache;
    int error = 0;
    stacks_init(&many, memory, 1u << 20);
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

static int make_many(int count)
{
    return make_many_of(&stack_memory_of_system, count);
}

TEST(stacks_may_be_more_than_half_of_the_mappings)
{
    assert_int_equal(make_many(EFFORT(40000)), 0);
}

static void limit_to(unsigned resource, rlim_t size)
{
    const struct rlimit limit = {.rlim_cur = size, .rlim_max = size};
    if (setrlimit(resource, &limit) != 0) {
        _exit(3);
    }
}

static int make_many_with_little_address_space(int count)
{
    limit_to(RLIMIT_AS, (rlim_t)1 << 31);
    return make_many(count);
}

TEST(stacks_live_with_a_limit_of_address_space)
{
    if (IS_SANITIZED) {
        skip(); /* sanitizers do not */
    }
    assert_int_equal(child_run(make_many_with_little_address_space, 2000), 0);
    assert_int_equal(child_run(make_many_with_little_address_space, 1000000), 1);
}

/* The reservation is granted, but to make parts of it usable is not: as where the system does not
 * promise more memory than it has (vm.overcommit_memory=2). */
static int make_many_with_little_memory(int count)
{
    limit_to(RLIMIT_DATA, (rlim_t)1 << 28);
    return make_many(count);
}

TEST(stacks_live_with_a_limit_of_memory)
{
    if (IS_SANITIZED) {
        skip(); /* sanitizers do not */
    }
    assert_int_equal(child_run(make_many_with_little_memory, 2000), 0);
    assert_int_equal(child_run(make_many_with_little_memory, 1000000), 1);
}

/* Takes all mappings that a program may have but a few. */
static void use_up_mappings(size_t left)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t pages = (size_t)2 * stack_memory_of_system.mappings_max();
    char *start =
        mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t used = 0;
    if (start == MAP_FAILED) {
        _exit(3);
    }
    while (used < pages && mprotect(start + used * page, page, PROT_READ) == 0) {
        used += 2;
    }
    (void)munmap(start, left * page); /* each page is one */
}

static int make_many_without_mappings(int count)
{
    struct stack_memory memory = stack_memory_of_system;
    memory.guard = refuse_to_stacks;
    use_up_mappings(100);
    const int outcome = make_many_of(&memory, count);
    return outcome != 0 || load_relaxed(&many.guard) == STACK_GUARD_CANARY ? outcome : 4;
}

/* Nor guards that leave a mapping whole: the first ones have a guard, the others a canary. */
TEST(stacks_live_without_mappings)
{
    if (IS_SANITIZED || stack_memory_of_system.mappings_max() > 1000000) {
        skip(); /* sanitizers need some */
    }
    assert_int_equal(child_run(make_many_without_mappings, 2000), 0);
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
