/* SPDX-License-Identifier: MIT */
/* The allocator that other tests rely on must notice what it promises to notice. */
#include "counting_allocator.h"
#include "test.h"

static struct counting_allocator memory;

static void *resize(void *block, size_t old_size, size_t new_size, size_t alignment)
{
    return counting_allocate(&memory, block, old_size, new_size, alignment);
}

TEST(counting_allocator_balanced_use_is_clean)
{
    counting_allocator_init(&memory);
    char *block = resize(NULL, 0, 10, 1);
    assert_non_null(block);
    memcpy(block, "123456789", 10);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    assert_int_equal(counting_allocator_live_bytes(&memory), 10);
    assert_false(counting_allocator_is_clean(&memory));

    char *grown = resize(block, 10, 1000, 1);
    assert_non_null(grown);
    assert_string_equal(grown, "123456789");
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    assert_int_equal(counting_allocator_live_bytes(&memory), 1000);

    (void)resize(grown, 1000, 0, 1);
    assert_int_equal(counting_allocator_attempts(&memory), 2);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_blocks_have_their_alignment)
{
    counting_allocator_init(&memory);
    for (size_t alignment = 1; alignment <= (size_t)1 << 16; alignment *= 2) {
        void *block = resize(NULL, 0, 3, alignment);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % alignment, 0);
        (void)resize(block, 3, 0, alignment);
    }
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_wrong_size_or_alignment_is_a_fault)
{
    counting_allocator_init(&memory);
    (void)resize(resize(NULL, 0, 8, 8), 9, 0, 8);
    assert_int_equal(counting_allocator_faults(&memory), 1);
    (void)resize(resize(NULL, 0, 8, 8), 8, 0, 16);
    assert_int_equal(counting_allocator_faults(&memory), 2);
    void *grown = resize(resize(NULL, 0, 8, 8), 7, 20, 8);
    assert_int_equal(counting_allocator_faults(&memory), 3);
    (void)resize(grown, 20, 0, 8);
    assert_int_equal(counting_allocator_live_blocks(&memory), 0);
    assert_false(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_request_without_sense_is_a_fault)
{
    counting_allocator_init(&memory);
    assert_null(resize(NULL, 0, 0, 8));
    assert_int_equal(counting_allocator_faults(&memory), 1);
    void *block = resize(NULL, 5, 8, 8);
    assert_int_equal(counting_allocator_faults(&memory), 2);
    (void)resize(block, 8, 0, 8);
    assert_int_equal(counting_allocator_faults(&memory), 2);
}

TEST(counting_allocator_foreign_block_is_a_fault)
{
    struct counting_allocator mine;
    struct counting_allocator other;
    counting_allocator_init(&mine);
    counting_allocator_init(&other);
    void *block = counting_allocate(&mine, NULL, 0, 8, 8);
    (void)counting_allocate(&other, block, 8, 0, 8);
    assert_int_equal(counting_allocator_faults(&other), 1);
    assert_int_equal(counting_allocator_faults(&mine), 0);
    assert_int_equal(counting_allocator_live_blocks(&mine), 0);
    assert_int_equal(counting_allocator_live_blocks(&other), 0);
}

static bool works(void)
{
    void *block = resize(NULL, 0, 8, 8);
    if (block != NULL) {
        (void)resize(block, 8, 0, 8);
    }
    return block != NULL;
}

TEST(counting_allocator_fail_once_fails_exactly_the_nth)
{
    counting_allocator_init(&memory);
    assert_true(works());
    counting_allocator_fail_once(&memory, 2);
    assert_true(works());
    assert_false(works());
    assert_true(works());
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_fail_from_fails_until_told_otherwise)
{
    counting_allocator_init(&memory);
    counting_allocator_fail_from(&memory, 2);
    assert_true(works());
    assert_false(works());
    assert_false(works());
    counting_allocator_fail_never(&memory);
    assert_true(works());
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_failed_growth_keeps_the_block)
{
    counting_allocator_init(&memory);
    char *block = resize(NULL, 0, 4, 1);
    memcpy(block, "abc", 4);
    counting_allocator_fail_once(&memory, 1);
    assert_null(resize(block, 4, 100, 1));
    assert_string_equal(block, "abc");
    assert_int_equal(counting_allocator_live_bytes(&memory), 4);
    (void)resize(block, 4, 0, 1);
    assert_true(counting_allocator_is_clean(&memory));
}
