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
    skua_bytes bytes = skua_bytes_of("*2\r\n\n\r\nrest"), line;
    assert_true(skua_bytes_cut_line(&bytes, &line));
    assert_true(skua_bytes_equal(line, skua_bytes_of("*2")));
    assert_true(skua_bytes_cut_line(&bytes, &line));
    assert_int_equal(line.size, 0);
    assert_true(skua_bytes_cut_line(&bytes, &line));
    assert_int_equal(line.size, 0);
    assert_false(skua_bytes_cut_line(&bytes, &line));
    assert_true(skua_bytes_equal(bytes, skua_bytes_of("rest")));
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

/* Of every length around the eight bytes that are taken at a time, and of every byte in them. */
TEST(hash_depends_on_every_byte_and_on_the_length)
{
    char text[34] = {0};
    for (size_t size = 0; size < sizeof text - 1; size++) {
        const uint64_t hash = skua_bytes_hash((skua_bytes){text, size}, 1);
        assert_true(hash != skua_bytes_hash((skua_bytes){text, size + 1}, 1));
        for (size_t i = 0; i < size; i++) {
            text[i] = 1;
            assert_true(hash != skua_bytes_hash((skua_bytes){text, size}, 1));
            text[i] = 0;
        }
    }
    assert_true(skua_bytes_hash(skua_bytes_of("the same on every machine"), 7) ==
                UINT64_C(0x8707b2f827ca8ced));
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
        assert_int_equal(skua_bytes_to_number(skua_bytes_of(row->text), &number), 0);
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
        assert_int_equal(skua_bytes_to_number(skua_bytes_of(*row), &number), SKUA_E_INVALID);
        assert_int_equal(number, 0);
    }
}

TEST(words_are_the_same_in_either_case)
{
    assert_true(skua_bytes_is(skua_bytes_of("Get"), "GET"));
    assert_true(skua_bytes_is(skua_bytes_of("GET"), "get"));
    assert_true(skua_bytes_is(skua_bytes_of(""), ""));
    assert_false(skua_bytes_is(skua_bytes_of("GE"), "GET"));
    assert_false(skua_bytes_is(skua_bytes_of("GETS"), "GET"));
    assert_false(skua_bytes_is(skua_bytes_of("G[T"), "G{T"));
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

/* ---- counts and chunks ---- */

static void assert_cuts(skua_bytes bytes, int more, const char *chunk, const char *rest)
{
    skua_bytes found;
    assert_int_equal(skua_bytes_cut_chunk(&bytes, '$', 10, &found), more);
    assert_true(skua_bytes_equal(found, skua_bytes_of(chunk)));
    assert_true(skua_bytes_equal(bytes, skua_bytes_of(rest)));
}

TEST(chunk_is_cut_off_when_all_of_it_has_come)
{
    const char *text = "$5\r\nhello\r\nrest";
    assert_cuts(skua_bytes_of(text), 1, "hello", "rest");
    assert_cuts(skua_bytes_of("$0\r\n\r\n"), 1, NULL, "");
    assert_cuts(skua_bytes_of("$2\n\r\n\n"), 1, "\r\n", "");
    for (size_t size = 0; size < strlen("$5\r\nhello\r\n"); size++) {
        char part[16] = {0};
        memcpy(part, text, size);
        assert_cuts(skua_bytes_of(part), 0, NULL, part);
    }
}

TEST(what_is_not_a_chunk_is_refused)
{
    static const struct {
        const char *text;
        int error;
    } rows[] = {
        {"*5\r\nhello\r\n", SKUA_E_INVALID},
        {"5\r\nhello\r\n", SKUA_E_INVALID},
        {"$\r\n\r\n", SKUA_E_INVALID},
        {"$-1\r\n", SKUA_E_INVALID},
        {"$5x", SKUA_E_INVALID},
        {"$5\rx", SKUA_E_INVALID},
        {"$5\r\nhellox", SKUA_E_INVALID},
        {"$5\r\nhello\rx", SKUA_E_INVALID},
        {"$11", SKUA_E_TOO_LONG},
        {"$99999999999999999999", SKUA_E_TOO_LONG},
        {"$00000000000000000001\r\nx\r\n", SKUA_E_INVALID}, /* zeros without end */
    };
    FOR_ROWS (row, rows) {
        assert_cuts(skua_bytes_of(row->text), row->error, NULL, row->text);
    }
}

TEST(counts_need_no_mark)
{
    skua_bytes bytes = skua_bytes_of("12\r\n*3\n*4");
    size_t count;
    assert_int_equal(skua_bytes_cut_count(&bytes, '\0', 12, &count), 1);
    assert_int_equal(count, 12);
    assert_int_equal(skua_bytes_cut_count(&bytes, '*', 3, &count), 1);
    assert_int_equal(count, 3);
    assert_int_equal(skua_bytes_cut_count(&bytes, '*', 4, &count), 0);
    assert_int_equal(count, 0);
    assert_true(skua_bytes_equal(bytes, skua_bytes_of("*4")));
}

TEST(chunks_are_cut_off_together_or_not_at_all)
{
    skua_bytes bytes = skua_bytes_of("$1\r\na\r\n$2\r\nbc\r\n$3\r\n"), chunks;
    const skua_bytes all = bytes;
    assert_int_equal(skua_bytes_cut_chunks(&bytes, '$', 9, 0, &chunks), 1);
    assert_int_equal(chunks.size, 0);
    assert_int_equal(skua_bytes_cut_chunks(&bytes, '$', 9, 3, &chunks), 0);
    assert_int_equal(chunks.size, 0);
    assert_true(skua_bytes_equal(bytes, all));
    assert_int_equal(skua_bytes_cut_chunks(&bytes, '$', 9, 2, &chunks), 1);
    assert_true(skua_bytes_equal(chunks, skua_bytes_of("$1\r\na\r\n$2\r\nbc\r\n")));
    assert_true(skua_bytes_equal(bytes, skua_bytes_of("$3\r\n")));
}

TEST(counts_and_chunks_are_put_in_as_they_are_cut_off)
{
    skua_output output = open_output();
    skua_output_count(&output, ':', INT64_MIN);
    skua_output_count(&output, '\0', 7);
    assert_takes(&output, ":-9223372036854775808\r\n7\r\n", SKUA_PAYLOAD_OWNED);
    skua_output_chunk(&output, '$', skua_bytes_of("hello"));
    skua_output_chunk(&output, '$', (skua_bytes){0});
    assert_takes(&output, "$5\r\nhello\r\n$0\r\n\r\n", SKUA_PAYLOAD_INLINE);
    skua_output_clear(&output);
    assert_true(counting_allocator_is_clean(&memory));
}

/* ---- editing ---- */

static void assert_shows(const skua_output *output, const char *expected)
{
    assert_true(skua_bytes_equal(skua_output_peek(output), skua_bytes_of(expected)));
}

TEST(text_of_an_output_can_be_edited)
{
    skua_output output = open_output();
    skua_output_replace(&output, 0, SIZE_MAX, (skua_bytes){0});
    assert_shows(&output, "");
    skua_output_replace(&output, 5, 5, skua_bytes_of("world"));
    assert_shows(&output, "world");
    skua_output_replace(&output, 0, 0, skua_bytes_of("hello, "));
    assert_shows(&output, "hello, world");
    skua_output_replace(&output, 5, 1, skua_bytes_of(""));
    assert_shows(&output, "hello world");
    skua_output_replace(&output, 6, 2,
                        skua_bytes_of("a longer text that needs more room for the wo"));
    assert_shows(&output, "hello a longer text that needs more room for the world");
    skua_output_replace(&output, 5, SIZE_MAX, skua_bytes_of("!"));
    assert_shows(&output, "hello!");
    skua_output_replace(&output, SIZE_MAX, SIZE_MAX, skua_bytes_of("!"));
    assert_takes(&output, "hello!!", SKUA_PAYLOAD_INLINE);
    skua_output_clear(&output);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(edit_without_memory_loses_all)
{
    FOR_ROUNDS (n, 2) {
        skua_output output = open_output();
        skua_payload payload;
        counting_allocator_fail_once(&memory, n);
        for (int i = 0; i < 20; i++) {
            skua_output_replace(&output, 0, 0, skua_bytes_of("ten bytes."));
        }
        assert_int_equal(skua_output_peek(&output).size, 0);
        skua_output_replace(&output, 0, 0, skua_bytes_of(""));
        assert_int_equal(skua_output_take(&output, &payload), SKUA_E_NO_MEMORY);
        skua_output_replace(&output, 0, 0, skua_bytes_of("next"));
        assert_takes(&output, "next", SKUA_PAYLOAD_INLINE);
        skua_output_clear(&output);
        assert_true(counting_allocator_is_clean(&memory));
    }
}

TEST(bytes_of_texts_and_payloads)
{
    const skua_payload number = skua_payload_u64(0, 1);
    const skua_payload text = skua_payload_static(0, "text", 4);
    int object = 0;
    const skua_payload pointer = skua_payload_pointer(0, &object, NULL);
    assert_int_equal(skua_bytes_of(NULL).size, 0);
    assert_int_equal(skua_bytes_of("text").size, 4);
    assert_true(skua_bytes_equal(skua_payload_bytes(&text), skua_bytes_of("text")));
    assert_ptr_equal(skua_payload_bytes(&number).data, number.as.bytes);
    assert_int_equal(skua_payload_bytes(&number).size, 8);
    assert_null(skua_payload_bytes(&pointer).data);
}

TEST(must_alloc_resizes_and_frees)
{
    char *text = skua_must_alloc(NULL, NULL, 0, 4, 1);
    memcpy(text, "text", 4);
    text = skua_must_alloc(NULL, text, 4, 100000, 1);
    assert_memory_equal(text, "text", 4);
    assert_null(skua_must_alloc(NULL, text, 100000, 0, 1));
}
