/* SPDX-License-Identifier: MIT */
/* Structs of callers that are shorter or longer than the library's: what is copied, what becomes
 * zero, what is refused, and that no byte behind either is touched. */
#include "base/sized.h"
#include "test.h"

enum { ROOM = 16, GUARD = 0xa5 };

/* Fills bytes with first, first + 1, ... up to `size`, and with guard bytes from there on. */
static void fill(unsigned char bytes[ROOM], size_t size, unsigned char first)
{
    memset(bytes, GUARD, ROOM);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(first + i);
    }
}

/* `bytes` has `copied` bytes from `first` on, then zeros up to `size`, then untouched guards. */
static void assert_bytes(const unsigned char bytes[ROOM], size_t copied, unsigned char first,
                         size_t size)
{
    for (size_t i = 0; i < ROOM; i++) {
        const size_t wanted = i < copied ? first + i : i < size ? 0 : GUARD;
        assert_int_equal(bytes[i], wanted);
    }
}

static const struct {
    size_t own;
    size_t given;
    size_t common;
} sizes[] = {{8, 8, 8}, {8, 5, 5}, {8, 0, 0}, {0, 0, 0}, {1, 8, 1}, {5, 8, 5}};

TEST(reading_copies_what_both_know_and_zeroes_the_rest)
{
    FOR_ROWS (row, sizes) {
        unsigned char own[ROOM];
        unsigned char given[ROOM];
        fill(own, row->own, 0x40);
        fill(given, row->common, 1);
        memset(given + row->common, 0, row->given - row->common);
        assert_true(sized_read(own, row->own, given, row->given));
        assert_bytes(own, row->common, 1, row->own);
    }
}

TEST(reading_nothing_gives_zeros)
{
    unsigned char own[ROOM];
    fill(own, 8, 0x40);
    assert_true(sized_read(own, 8, NULL, 8));
    assert_bytes(own, 0, 0, 8);
    fill(own, 8, 0x40);
    assert_true(sized_read(own, 8, NULL, ROOM));
    assert_bytes(own, 0, 0, 8);
}

TEST(reading_refuses_a_field_that_only_the_caller_knows)
{
    for (size_t set = 5; set < 9; set++) {
        unsigned char own[ROOM];
        unsigned char given[ROOM] = {1, 2, 3, 4, 5};
        fill(own, 5, 0x40);
        given[set] = 1;
        assert_int_equal(sized_read(own, 5, given, 9), false);
        assert_true(
            sized_read(own, 5, given, set)); /* what is behind the caller's struct is not read */
    }
}

TEST(writing_stays_within_the_callers_struct_and_zeroes_what_only_it_knows)
{
    FOR_ROWS (row, sizes) {
        unsigned char own[ROOM];
        unsigned char given[ROOM];
        fill(own, row->own, 1);
        fill(given, row->given, 0x40);
        sized_write(given, row->given, own, row->own);
        assert_bytes(given, row->common, 1, row->given);
    }
}
