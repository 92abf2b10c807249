/* SPDX-License-Identifier: MIT */
/* The names of functions: those of the program, static ones, those of libraries, and none. */
#include "inspect/symbol.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

static char buffer[300];

static const char *describe(uintptr_t address, bool is_return)
{
    struct text text = {.at = buffer, .size = sizeof buffer};
    symbol_add(&text, (const void *)address, is_return);
    assert_in_range(text.length, 1, sizeof buffer - 1);
    return buffer;
}

/* What is expected of a function of this program. */
static const char *in_program(const char *place)
{
    static char expected[300];
    (void)snprintf(expected, sizeof expected, "%s (%s)", place, program_invocation_short_name);
    return expected;
}

__attribute__((noinline)) static void known_to_nobody_else(void)
{
    __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
}

TEST(symbol_of_a_static_function)
{
    const uintptr_t begin = (uintptr_t)known_to_nobody_else;
    known_to_nobody_else();
    assert_string_equal(describe(begin, false), in_program("known_to_nobody_else+0x0"));
    assert_string_equal(describe(begin + 4, false), in_program("known_to_nobody_else+0x4"));
    assert_string_equal(describe(begin + 4, true), in_program("known_to_nobody_else+0x4"));
}

/* The byte before the address belongs to another function, or to none. */
TEST(symbol_of_a_return_address_is_the_callers)
{
    const char *said = describe((uintptr_t)known_to_nobody_else, true);
    assert_null(strstr(said, "known_to_nobody_else+"));
}

/* It has a name with underscores as well. */
TEST(symbol_of_a_function_of_a_library)
{
    static const char expected[] = "sched_yield+0x1 (libc";
    assert_memory_equal(describe((uintptr_t)sched_yield + 1, false), expected, strlen(expected));
}

/* Data of the program: the place in its file can still be told. */
TEST(symbol_that_is_no_function_is_a_place)
{
    unsigned long place;
    char object[200];
    assert_int_equal(sscanf(describe((uintptr_t)buffer, false), "0x%lx (%199[^)])", &place, object),
                     2);
    assert_string_equal(object, program_invocation_short_name);
}

TEST(symbol_of_memory_in_no_object_is_its_address)
{
    void *block = malloc(64);
    char expected[40];
    (void)snprintf(expected, sizeof expected, "%p", block);
    assert_string_equal(describe((uintptr_t)block, false), expected);
    free(block);
    assert_string_equal(describe(0, false), "0x0");
}
