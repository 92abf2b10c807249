/* SPDX-License-Identifier: MIT */
#include "test_memory.h"

struct counting_allocator memory;

static void close_memory(void)
{
    assert_true(counting_allocator_is_clean(&memory));
}

void memory_open(void)
{
    counting_allocator_init(&memory);
    test_at_end(close_memory);
}
