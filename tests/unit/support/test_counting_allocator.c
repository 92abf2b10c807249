/* SPDX-License-Identifier: MIT */
/* The allocator that other tests rely on must notice what it promises to notice. */
#include "counting_allocator.h"
#include "test.h"

TEST(counting_allocator_balanced_use_is_clean)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    char *block = counting_allocate(&memory, NULL, 0, 10, 1);
    assert_non_null(block);
    memcpy(block, "123456789", 10);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    assert_int_equal(counting_allocator_live_bytes(&memory), 10);
    assert_false(counting_allocator_is_clean(&memory));

    char *grown = counting_allocate(&memory, block, 10, 1000, 1);
    assert_non_null(grown);
    assert_string_equal(grown, "123456789");
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    assert_int_equal(counting_allocator_live_bytes(&memory), 1000);

    (void)counting_allocate(&memory, grown, 1000, 0, 1);
    assert_int_equal(counting_allocator_attempts(&memory), 2);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_blocks_have_their_alignment)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    for (size_t alignment = 1; alignment <= (size_t)1 << 16; alignment *= 2) {
        void *block = counting_allocate(&memory, NULL, 0, 3, alignment);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % alignment, 0);
        (void)counting_allocate(&memory, block, 3, 0, alignment);
    }
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_wrong_size_or_alignment_is_a_fault)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    (void)counting_allocate(&memory, counting_allocate(&memory, NULL, 0, 8, 8), 9, 0, 8);
    assert_int_equal(counting_allocator_faults(&memory), 1);
    (void)counting_allocate(&memory, counting_allocate(&memory, NULL, 0, 8, 8), 8, 0, 16);
    assert_int_equal(counting_allocator_faults(&memory), 2);
    void *grown = counting_allocate(&memory, counting_allocate(&memory, NULL, 0, 8, 8), 7, 20, 8);
    assert_int_equal(counting_allocator_faults(&memory), 3);
    (void)counting_allocate(&memory, grown, 20, 0, 8);
    assert_int_equal(counting_allocator_live_blocks(&memory), 0);
    assert_false(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_request_without_sense_is_a_fault)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    assert_null(counting_allocate(&memory, NULL, 0, 0, 8));
    assert_int_equal(counting_allocator_faults(&memory), 1);
    void *block = counting_allocate(&memory, NULL, 5, 8, 8);
    assert_int_equal(counting_allocator_faults(&memory), 2);
    (void)counting_allocate(&memory, block, 8, 0, 8);
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

static bool works(struct counting_allocator *memory)
{
    void *block = counting_allocate(memory, NULL, 0, 8, 8);
    if (block != NULL) {
        (void)counting_allocate(memory, block, 8, 0, 8);
    }
    return block != NULL;
}

TEST(counting_allocator_fail_once_fails_exactly_the_nth)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    assert_true(works(&memory));
    counting_allocator_fail_once(&memory, 2);
    assert_true(works(&memory));
    assert_false(works(&memory));
    assert_true(works(&memory));
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_fail_from_fails_until_told_otherwise)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    counting_allocator_fail_from(&memory, 2);
    assert_true(works(&memory));
    assert_false(works(&memory));
    assert_false(works(&memory));
    counting_allocator_fail_never(&memory);
    assert_true(works(&memory));
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(counting_allocator_failed_growth_keeps_the_block)
{
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    char *block = counting_allocate(&memory, NULL, 0, 4, 1);
    memcpy(block, "abc", 4);
    counting_allocator_fail_once(&memory, 1);
    assert_null(counting_allocate(&memory, block, 4, 100, 1));
    assert_string_equal(block, "abc");
    assert_int_equal(counting_allocator_live_bytes(&memory), 4);
    (void)counting_allocate(&memory, block, 4, 0, 1);
    assert_true(counting_allocator_is_clean(&memory));
}
