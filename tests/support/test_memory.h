/* SPDX-License-Identifier: MIT */
/* The memory of the current test: a counting allocator that is checked for leaks and misuse when
 * the test ends. What is opened after it is closed before that check, by test_at_end. */
#ifndef SKUA_TESTS_TEST_MEMORY_H
#define SKUA_TESTS_TEST_MEMORY_H

#include "counting_allocator.h"
#include "test.h"

extern struct counting_allocator memory;

/* Empties it. A test calls this before anything that allocates, and before the other *_open. */
void memory_open(void);

#endif
