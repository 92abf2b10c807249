/* SPDX-License-Identifier: MIT */
/* What is put into an output comes out as one payload; words and numbers. */
#include <skua/codec.h>

#include "counting_allocator.h"
#include "test.h"

static struct counting_allocator memory;

static skua_output open_output(void)
{
    counting_allocator_init(&memory);
    return (skua_output){.alloc = counting_allocate, .alloc_arg = &memory};
}

static skua_bytes bytes_of(const char *text)
{
    return (skua_bytes){text, strlen(text)};
}

static void assert_takes(skua_output *output, const char *expected, uint16_t storage)
{
    skua_payload payload;
    assert_int_equal(skua_output_take(output, &payload), 0);
    assert_int_equal(payload.storage, storage);
    assert_int_equal(skua_payload_size(&payload), strlen(expected));
    assert_memory_equal(skua_payload_data(&payload), expected, strlen(expected));
    skua_payload_drop(&payload);
}

TEST(output_gives_what_was_put_in)
{
    skua_output output = open_output();
    skua_payload payload;
    assert_int_equal(skua_output_take(&output, &payload), 0);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    skua_output_text(&output, "$");
    skua_output_number(&output, 5);
    skua_output_put(&output, "\r\nhello!", 7);
    skua_output_put(&output, NULL, 0);
    assert_takes(&output, "$5\r\nhello", SKUA_PAYLOAD_INLINE);
    skua_output_text(&output, "a text that does not fit inside");
    assert_takes(&output, "a text that does not fit inside", SKUA_PAYLOAD_OWNED);
    skua_output_text(&output, "left behind");
    skua_output_clear(&output);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(output_grows_to_any_size)
{
    static char expected[100001];
    skua_output output = open_output();
    for (size_t i = 0; i < sizeof expected - 1; i++) {
        expected[i] = (char)('a' + i % 26);
        skua_output_put(&output, &expected[i], 1);
    }
    assert_takes(&output, expected, SKUA_PAYLOAD_OWNED);
    assert_in_range(counting_allocator_attempts(&memory), 2, 20);
    assert_true(counting_allocator_is_clean(&memory));
}

/* Whichever allocation fails: what was put in is lost as a whole, and the next answer is not. */
TEST(output_without_memory_loses_all_or_nothing)
{
    FOR_ROUNDS (n, 3) {
        skua_output output = open_output();
        skua_payload payload;
        counting_allocator_fail_once(&memory, n);
        for (int i = 0; i < 100; i++) {
            skua_output_text(&output, "ten bytes.");
        }
        assert_int_equal(skua_output_take(&output, &payload), SKUA_E_NO_MEMORY);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        skua_output_text(&output, "next");
        assert_takes(&output, "next", SKUA_PAYLOAD_INLINE);
        skua_output_clear(&output);
        assert_true(counting_allocator_is_clean(&memory));
    }
}

TEST(output_formats_as_printf_does)
{
    static char large[1000];
    skua_output output = open_output();
    memset(large, 'x', sizeof large - 1);
    skua_output_format(&output, "%d%%, %s", 100, "all");
    assert_takes(&output, "100%, all", SKUA_PAYLOAD_INLINE);
    for (size_t length = 120; length < sizeof large; length += length < 140 ? 1 : 100) {
        skua_output_format(&output, "%.*s", (int)length, large);
        skua_output_text(&output, "y");
        assert_int_equal(output.size, length + 1);
        assert_int_equal(output.data[length], 'y');
        assert_memory_equal(output.data, large, length);
        skua_output_clear(&output);
    }
    counting_allocator_fail_once(&memory, 1);
    skua_output_format(&output, "%s", large);
    skua_payload payload;
    assert_int_equal(skua_output_take(&output, &payload), SKUA_E_NO_MEMORY);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(lines_are_cut_off_bytes)
{
    skua_bytes bytes = bytes_of("*2\r\n\n\r\nrest"), line;
    assert_true(skua_bytes_cut_line(&bytes, &line));
    assert_true(skua_bytes_equal(line, bytes_of("*2")));
    assert_true(skua_bytes_cut_line(&bytes, &line));
    assert_int_equal(line.size, 0);
    assert_true(skua_bytes_cut_line(&bytes, &line));
    assert_int_equal(line.size, 0);
    assert_false(skua_bytes_cut_line(&bytes, &line));
    assert_true(skua_bytes_equal(bytes, bytes_of("rest")));
    bytes = (skua_bytes){0};
    assert_false(skua_bytes_cut_line(&bytes, &line));
}

/* Not a test of its quality: that hashes of many keys differ, and fill all of a table. */
TEST(hashes_of_bytes_differ)
{
    enum { KEYS = 4096 };
    static unsigned in_bucket[KEYS / 16];
    memset(in_bucket, 0, sizeof in_bucket);
    for (uint32_t i = 0; i < KEYS; i++) {
        const uint64_t hash = skua_bytes_hash((skua_bytes){(const char *)&i, sizeof i}, 1);
        assert_true(hash != skua_bytes_hash((skua_bytes){(const char *)&i, sizeof i}, 2));
        in_bucket[hash % COUNT_OF(in_bucket)]++;
    }
    for (size_t i = 0; i < COUNT_OF(in_bucket); i++) {
        assert_in_range(in_bucket[i], 1, 48);
    }
}

TEST(numbers_are_written_and_read)
{
    static const struct {
        int64_t number;
        const char *text;
    } rows[] = {
        {0, "0"},
        {7, "7"},
        {-1, "-1"},
        {1234567890, "1234567890"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    FOR_ROWS (row, rows) {
        skua_output output = open_output();
        int64_t number;
        skua_output_number(&output, row->number);
        assert_takes(&output, row->text, SKUA_PAYLOAD_INLINE);
        skua_output_clear(&output);
        assert_int_equal(skua_bytes_to_number(bytes_of(row->text), &number), 0);
        assert_int_equal(number, row->number);
    }
}

TEST(what_is_not_a_number_is_refused)
{
    static const char *const rows[] = {
        "",
        "-",
        "--1",
        "+1",
        "1-",
        "1 ",
        " 1",
        "0x1",
        "1.0",
        "1\xb2",
        "99999999999999999999",
        "9223372036854775808",
        "-9223372036854775809",
    };
    FOR_ROWS (row, rows) {
        int64_t number = 77;
        assert_int_equal(skua_bytes_to_number(bytes_of(*row), &number), SKUA_E_INVALID);
        assert_int_equal(number, 0);
    }
}

TEST(words_are_the_same_in_either_case)
{
    assert_true(skua_bytes_is(bytes_of("Get"), "GET"));
    assert_true(skua_bytes_is(bytes_of("GET"), "get"));
    assert_true(skua_bytes_is(bytes_of(""), ""));
    assert_false(skua_bytes_is(bytes_of("GE"), "GET"));
    assert_false(skua_bytes_is(bytes_of("GETS"), "GET"));
    assert_false(skua_bytes_is(bytes_of("G[T"), "G{T"));
    assert_false(skua_bytes_is((skua_bytes){"GET", 4}, "GET")); /* a zero is a byte */
    assert_false(skua_bytes_is((skua_bytes){0}, "GET"));
}

TEST(output_refuses_what_makes_no_sense)
{
    skua_output output = open_output();
    skua_payload payload;
    assert_int_equal(skua_output_take(NULL, &payload), SKUA_E_INVALID);
    assert_int_equal(skua_output_take(&output, NULL), SKUA_E_INVALID);
    skua_output_clear(NULL);
    skua_output_clear(&output);
}
