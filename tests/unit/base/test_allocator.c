/* SPDX-License-Identifier: MIT */
/* The default allocator, and what the alloc_ functions ask of any allocator. */
#include "base/allocator.h"

#include "test_memory.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* More than there is. The sanitizers stop a program that asks for it, unless told not to. */
#define TOO_MUCH ((size_t)1 << 60)
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void *take(size_t size, size_t alignment)
{
    return allocator_default(NULL, NULL, 0, size, alignment);
}

static void give(void *pointer, size_t size, size_t alignment)
{
    (void)allocator_default(NULL, pointer, size, 0, alignment);
}

static void fill(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(i * 7 + 1);
    }
}

static bool is_filled(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (unsigned char)(i * 7 + 1)) {
            return false;
        }
    }
    return true;
}

/* ---- allocator_default ---- */

TEST(default_block_has_its_alignment_and_can_be_written)
{
    static const size_t sizes[] = {1, 24, 4096, HUGE_PAGE + 1};
    for (size_t alignment = 1; alignment <= 4 * HUGE_PAGE; alignment *= 2) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            unsigned char *block = take(sizes[i], alignment);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % alignment, 0);
            block[0] = block[sizes[i] - 1] = 1;
            give(block, sizes[i], alignment);
        }
    }
}

TEST(default_large_block_begins_a_huge_page)
{
    void *block = take(HUGE_PAGE, 64);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % HUGE_PAGE, 0);
    give(block, HUGE_PAGE, 64);
}

TEST(default_growing_keeps_content_and_alignment)
{
    unsigned char *block = take(100, 128);
    fill(block, 100);
    size_t size = 100;
    while (size < 2 * HUGE_PAGE) {
        block = allocator_default(NULL, block, size, 3 * size, 128);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 128, 0);
        assert_true(is_filled(block, size));
        size *= 3;
        fill(block, size);
    }
    give(block, size, 128);
}

TEST(default_shrinking_keeps_what_fits)
{
    unsigned char *block = take(1000, 8);
    fill(block, 1000);
    block = allocator_default(NULL, block, 1000, 10, 8);
    assert_non_null(block);
    assert_true(is_filled(block, 10));
    give(block, 10, 8);
}

TEST(default_without_memory_gives_null_and_keeps_the_old_block)
{
    assert_null(take(TOO_MUCH, 8));
    unsigned char *block = take(100, 8);
    fill(block, 100);
    assert_null(allocator_default(NULL, block, 100, TOO_MUCH, 8));
    assert_true(is_filled(block, 100));
    give(block, 100, 8);
}

/* ---- allocator_alloc and its relatives; the counting allocator checks their arguments ---- */

TEST(take_and_give_pass_size_and_alignment)
{
    memory_open();
    void *block = allocator_alloc(&memory.allocator, 300, 256);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 256, 0);
    assert_int_equal(counting_allocator_live_bytes(&memory), 300);
    allocator_free(&memory.allocator, block, 300, 256);
}

TEST(take_zeroed_clears_every_byte)
{
    memory_open();
    unsigned char *block = allocator_alloc_zeroed(&memory.allocator, 1000, 64);
    assert_non_null(block);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(block[i], 0);
    }
    allocator_free(&memory.allocator, block, 1000, 64);
}

TEST(take_without_memory_is_null)
{
    memory_open();
    counting_allocator_fail_from(&memory, 1);
    assert_null(allocator_alloc(&memory.allocator, 10, 8));
    assert_null(allocator_alloc_zeroed(&memory.allocator, 10, 8));
    assert_null(allocator_grow(&memory.allocator, NULL, 0, 10, 8));
    assert_int_equal(counting_allocator_attempts(&memory), 3);
}

TEST(grow_from_nothing_allocates)
{
    memory_open();
    void *block = allocator_grow(&memory.allocator, NULL, 0, 10, 8);
    assert_non_null(block);
    allocator_free(&memory.allocator, block, 10, 8);
}

TEST(grow_replaces_the_block_and_keeps_its_content)
{
    memory_open();
    unsigned char *block = allocator_alloc(&memory.allocator, 50, 32);
    fill(block, 50);
    block = allocator_grow(&memory.allocator, block, 50, 5000, 32);
    assert_non_null(block);
    assert_true(is_filled(block, 50));
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    assert_int_equal(counting_allocator_live_bytes(&memory), 5000);
    allocator_free(&memory.allocator, block, 5000, 32);
}

TEST(grow_without_memory_keeps_the_old_block)
{
    memory_open();
    unsigned char *block = allocator_alloc(&memory.allocator, 50, 32);
    fill(block, 50);
    counting_allocator_fail_once(&memory, 1);
    assert_null(allocator_grow(&memory.allocator, block, 50, 5000, 32));
    assert_true(is_filled(block, 50));
    allocator_free(&memory.allocator, block, 50, 32);
}

TEST(give_of_null_does_not_reach_the_allocator)
{
    memory_open();
    allocator_free(&memory.allocator, NULL, 10, 8); /* would be a fault */
}
