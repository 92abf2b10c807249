/* SPDX-License-Identifier: MIT */
/* Lines and frames come out of a stream as they went in, however it was split. */
#include <skua/codec.h>
#include <stdio.h>

#include "counting_allocator.h"
#include "test.h"

/* What comes out is written down as text: "(first)(second)!" - each in brackets, and at the end "!"
 * if a limit was exceeded, or "+" and the number of bytes that are left. */
#define TEXT_SIZE 512

struct reading {
    enum skua_frame format; /* 0: lines */
    size_t limit;
};

static struct counting_allocator memory;

static skua_input open_input(size_t limit)
{
    return (skua_input){.limit = limit, .alloc = counting_allocate, .alloc_arg = &memory};
}

static void drop_copy(void *data, size_t size)
{
    memset(data, '#', size); /* who still looks at it sees that */
    free(data);
}

/* A payload of its own memory, so that a sanitizer sees who reads beside it. */
static skua_payload copy_of(const void *data, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    return skua_payload_owned(0, copy, size, drop_copy);
}

static int take(skua_input *input, const struct reading *reading, skua_bytes *bytes)
{
    return reading->format != 0 ? skua_input_take_frame(input, reading->format, bytes)
                                : skua_input_take_line(input, bytes);
}

/* Takes out all that there is; whether the stream can go on. */
static bool take_all(skua_input *input, const struct reading *reading, char *text)
{
    skua_bytes bytes;
    int more;
    while ((more = take(input, reading, &bytes)) > 0) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, TEXT_SIZE - length, "(%.*s)", (int)bytes.size, bytes.data);
    }
    if (more < 0) {
        assert_int_equal(more, SKUA_E_TOO_LONG);
        strcat(text, "!");
    }
    return more == 0;
}

/* What comes out of a stream that is cut at two places, which may be the same. */
static const char *read_cut(const struct reading *reading, const char *bytes, size_t size,
                            size_t first, size_t second)
{
    static char text[TEXT_SIZE];
    const size_t cuts[] = {0, first, second, size};
    skua_input input = open_input(reading->limit);
    bool goes_on = true;
    text[0] = '\0';
    for (size_t i = 0; i + 1 < COUNT_OF(cuts) && goes_on; i++) {
        assert_int_equal(skua_input_append(&input, copy_of(bytes + cuts[i], cuts[i + 1] - cuts[i])),
                         0);
        goes_on = take_all(&input, reading, text);
        assert_in_range(counting_allocator_live_bytes(&memory), 0,
                        reading->limit + SKUA_FRAME_PREFIX_MAX);
    }
    if (goes_on && skua_input_size(&input) > 0) {
        (void)snprintf(text + strlen(text), TEXT_SIZE - strlen(text), "+%d",
                       (int)skua_input_size(&input));
    }
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
    return text;
}

static void assert_reads(const struct reading *reading, const char *bytes, size_t size,
                         const char *expected)
{
    counting_allocator_init(&memory);
    for (size_t first = 0; first <= size; first++) {
        for (size_t second = first; second <= size; second++) {
            assert_string_equal(read_cut(reading, bytes, size, first, second), expected);
        }
    }
}

TEST(lines_come_out_whole_wherever_the_stream_is_cut)
{
    static const struct {
        const char *stream, *expected;
    } rows[] = {
        {"", ""},
        {"\n", "()"},
        {"\r\n", "()"},
        {"a", "+1"},
        {"a\r", "+2"},
        {"a\n", "(a)"},
        {"a\nbc\n", "(a)(bc)"},
        {"a\r\nbc\r\nd", "(a)(bc)+1"},
        {"\n\n\r\n", "()()()"},
        {"a\rb\n", "(a\rb)"},
        {"a\r\r\n", "(a\r)"},
        {"abcdefgh\n", "(abcdefgh)"},
        {"abcdefgh\r\n", "(abcdefgh)"},
        {"abcdefgh\r", "+9"},
        {"x\nabcdefghi\ny\n", "(x)!"},
        {"abcdefghi", "!"},
        {"abcdefgh\r\r\n", "!"},
        {"GET /\r\nHost: x\n\n", "(GET /)(Host: x)()"},
    };
    const struct reading lines = {.limit = 8};
    FOR_ROWS (row, rows) {
        assert_reads(&lines, row->stream, strlen(row->stream), row->expected);
    }
}

TEST(frames_come_out_whole_wherever_the_stream_is_cut)
{
    static const struct {
        enum skua_frame format;
        const char *stream;
        size_t size;
        const char *expected;
    } rows[] = {
        {SKUA_FRAME_U8, "\3abc\0\1d", 7, "(abc)()(d)"},
        {SKUA_FRAME_U8, "\3ab", 3, "+3"},
        {SKUA_FRAME_U8, "\1a\11bcdefghij", 12, "(a)!"},
        {SKUA_FRAME_BE16, "\0\3abc\0\0\0", 8, "(abc)()+1"},
        {SKUA_FRAME_LE16, "\3\0abc\0\0\1", 8, "(abc)()+1"},
        {SKUA_FRAME_LE16, "\1\1abc", 5, "!"},
        {SKUA_FRAME_BE32, "\0\0\0\2ab\0\0\0\10abcdefgh", 18, "(ab)(abcdefgh)"},
        {SKUA_FRAME_LE32, "\2\0\0\0ab\10\0\0\0abcdefgh", 18, "(ab)(abcdefgh)"},
        {SKUA_FRAME_BE64, "\0\0\0\0\0\0\0\1x\0\0\0\0\0\0\0\0", 17, "(x)()"},
        {SKUA_FRAME_LE64, "\1\0\0\0\0\0\0\0x\0\0\0\0\0\0\0\0", 17, "(x)()"},
        {SKUA_FRAME_BE64, "\377\377\377\377\377\377\377\377abc", 11, "!"},
        {SKUA_FRAME_LE64, "\0\0\0\0\0\0\0\200abc", 11, "!"},
    };
    FOR_ROWS (row, rows) {
        const struct reading frames = {row->format, .limit = 8};
        assert_reads(&frames, row->stream, row->size, row->expected);
    }
}

TEST(line_of_one_payload_is_not_copied)
{
    static const char stream[] = "first\nsecond\nthird";
    skua_input input = {.limit = 100};
    skua_bytes line;
    assert_int_equal(skua_input_append(&input, skua_payload_static(0, stream, 18)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_ptr_equal(line.data, stream);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_ptr_equal(line.data, stream + 6);
    assert_int_equal(skua_input_take_line(&input, &line), 0);
    assert_null(line.data);
    /* The next payload completes the third, and what follows lies where it came from. */
    assert_int_equal(skua_input_append(&input, skua_payload_static(0, "\nfourth\n", 8)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_memory_equal(line.data, "third", line.size);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_memory_equal(line.data, "fourth", line.size);
    skua_input_clear(&input);
}

TEST(input_in_which_nothing_waits_holds_no_memory)
{
    skua_bytes line;
    counting_allocator_init(&memory);
    skua_input input = open_input(100);
    assert_int_equal(skua_input_append(&input, copy_of("ab", 2)), 0);
    assert_int_equal(skua_input_append(&input, copy_of("c\n", 2)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_memory_equal(line.data, "abc", 3);
    assert_int_equal(skua_input_take_line(&input, &line), 0);
    assert_true(counting_allocator_is_clean(&memory));
    assert_int_equal(input.piece.storage, SKUA_PAYLOAD_EMPTY);
}

/* A megabyte that comes byte by byte is copied a few times, not a million times; and searched
 * once, or this would not end. */
TEST(bytes_that_come_one_by_one_take_linear_time)
{
    const size_t length = 1 << 20;
    skua_bytes line;
    counting_allocator_init(&memory);
    skua_input input = open_input(length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(skua_input_append(&input, skua_payload_static(0, "x", 1)), 0);
        assert_int_equal(skua_input_take_line(&input, &line), 0);
    }
    assert_in_range(counting_allocator_attempts(&memory), 1, 20);
    assert_in_range(counting_allocator_live_bytes(&memory), length - 1, length + 8);
    assert_int_equal(skua_input_append(&input, skua_payload_static(0, "\n", 1)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_int_equal(line.size, length);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(endless_line_takes_no_more_memory_than_the_limit)
{
    skua_bytes line;
    int error = 0;
    counting_allocator_init(&memory);
    skua_input input = open_input(1000);
    for (int i = 0; i < 5000 && error == 0; i++) {
        error = skua_input_append(&input, copy_of("xyz", 3)); /* without ever looking */
    }
    assert_int_equal(error, SKUA_E_TOO_LONG);
    assert_in_range(counting_allocator_live_bytes(&memory), 0, 1008);
    assert_int_equal(skua_input_take_line(&input, &line), SKUA_E_TOO_LONG);
    assert_int_equal(skua_input_append(&input, copy_of("\n", 1)), SKUA_E_TOO_LONG);
    skua_input_clear(&input);
    assert_int_equal(skua_input_append(&input, copy_of("\n", 1)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(several_payloads_can_be_appended_at_once)
{
    const struct reading lines = {.limit = 8};
    char text[TEXT_SIZE] = "";
    counting_allocator_init(&memory);
    skua_input input = open_input(lines.limit);
    assert_int_equal(skua_input_append(&input, copy_of("a\nb\nc", 5)), 0);
    assert_int_equal(skua_input_append(&input, copy_of("d\ne\nf", 5)), 0);
    assert_int_equal(skua_input_append(&input, copy_of("g\nh\n", 4)), 0);
    assert_true(take_all(&input, &lines, text));
    assert_string_equal(text, "(a)(b)(cd)(e)(fg)(h)");
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(parser_of_ones_own_sees_all_that_waits)
{
    skua_bytes all;
    counting_allocator_init(&memory);
    skua_input input = open_input(100);
    assert_int_equal(skua_input_peek(&input, &all), 0);
    assert_int_equal(all.size, 0);
    assert_int_equal(skua_input_append(&input, copy_of("abcdef", 6)), 0);
    assert_int_equal(skua_input_peek(&input, &all), 0);
    assert_int_equal(all.size, 6);
    assert_ptr_equal(all.data, skua_payload_data(&input.piece));
    assert_int_equal(skua_input_skip(&input, 4), 0);
    assert_memory_equal(all.data, "abcdef", 6); /* until the next call */
    assert_int_equal(skua_input_append(&input, copy_of("gh", 2)), 0);
    assert_int_equal(skua_input_peek(&input, &all), 0);
    assert_int_equal(all.size, 4);
    assert_memory_equal(all.data, "efgh", 4);
    assert_int_equal(skua_input_skip(&input, 5), SKUA_E_INVALID);
    assert_int_equal(skua_input_skip(&input, 4), 0);
    assert_int_equal(skua_input_size(&input), 0);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(bytes_are_not_lost_when_there_is_no_memory_to_take_them_out)
{
    skua_bytes line;
    counting_allocator_init(&memory);
    skua_input input = open_input(1000);
    assert_int_equal(skua_input_append(&input, copy_of("ab", 2)), 0);
    assert_int_equal(skua_input_append(&input, copy_of("c\nd\n", 4)), 0);
    input.carry = counting_allocate(&memory, input.carry, input.capacity, 2, 1); /* just fits */
    input.capacity = 2;
    counting_allocator_fail_once(&memory, 1);
    assert_int_equal(skua_input_take_line(&input, &line), SKUA_E_NO_MEMORY);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_memory_equal(line.data, "abc", 3);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_memory_equal(line.data, "d", 1);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(stream_that_lost_bytes_for_lack_of_memory_has_ended)
{
    skua_bytes line;
    skua_bytes all;
    counting_allocator_init(&memory);
    skua_input input = open_input(1000);
    assert_int_equal(skua_input_append(&input, copy_of("ab", 2)), 0);
    counting_allocator_fail_once(&memory, 1);
    assert_int_equal(skua_input_append(&input, copy_of("c\n", 2)), SKUA_E_NO_MEMORY);
    assert_int_equal(skua_input_append(&input, copy_of("d\n", 2)), SKUA_E_NO_MEMORY);
    assert_int_equal(skua_input_take_line(&input, &line), SKUA_E_NO_MEMORY);
    assert_int_equal(skua_input_take_frame(&input, SKUA_FRAME_U8, &all), SKUA_E_NO_MEMORY);
    assert_int_equal(skua_input_peek(&input, &all), SKUA_E_NO_MEMORY);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(stream_that_was_given_up_has_ended)
{
    skua_bytes line;
    counting_allocator_init(&memory);
    skua_input input = open_input(1000);
    assert_int_equal(skua_input_append(&input, copy_of("ab\n", 3)), 0);
    skua_input_fail(&input, 0);
    assert_int_equal(skua_input_bytes(&input).size, 3);
    skua_input_fail(&input, SKUA_E_USER);
    skua_input_fail(&input, SKUA_E_INVALID); /* the first one stays */
    assert_int_equal(skua_input_bytes(&input).size, 0);
    assert_int_equal(skua_input_take_line(&input, &line), SKUA_E_USER);
    assert_int_equal(skua_input_append(&input, copy_of("c", 1)), SKUA_E_USER);
    skua_input_clear(&input);
    skua_input_fail(&input, 1);
    assert_int_equal(skua_input_take_line(&input, &line), SKUA_E_INVALID);
    skua_input_clear(&input);
    skua_input_fail(NULL, SKUA_E_USER);
    assert_int_equal(skua_input_bytes(NULL).size, 0);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(bytes_of_an_input_end_it_if_there_is_no_memory_for_them)
{
    skua_bytes line;
    counting_allocator_init(&memory);
    skua_input input = open_input(1000);
    assert_int_equal(skua_input_append(&input, copy_of("ab", 2)), 0);
    assert_int_equal(skua_input_append(&input, copy_of("c\n", 2)), 0);
    input.carry = counting_allocate(&memory, input.carry, input.capacity, 2, 1); /* just fits */
    input.capacity = 2;
    counting_allocator_fail_once(&memory, 1);
    assert_int_equal(skua_input_bytes(&input).size, 0);
    assert_int_equal(skua_input_take_line(&input, &line), SKUA_E_NO_MEMORY);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(input_refuses_what_makes_no_sense)
{
    skua_input input = {.limit = 10}, no_limit = {0};
    skua_bytes line;
    skua_bytes all;
    skua_payload payload = copy_of("abc", 3);
    assert_int_equal(skua_input_append(NULL, skua_payload_take(&payload)), SKUA_E_INVALID);
    assert_int_equal(skua_input_append_from(&input, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_input_append(&no_limit, skua_nothing()), SKUA_E_INVALID);
    assert_int_equal(skua_input_take_line(NULL, &line), SKUA_E_INVALID);
    assert_int_equal(skua_input_take_line(&input, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_input_take_frame(&input, SKUA_FRAME_U8, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_input_take_frame(&input, (enum skua_frame)3, &all), SKUA_E_INVALID);
    assert_int_equal(skua_input_take_frame(&input, (enum skua_frame)0x11, &all), SKUA_E_INVALID);
    assert_int_equal(skua_input_peek(&input, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_input_skip(NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_input_size(NULL), 0);
    skua_input_clear(NULL);
    assert_int_equal(skua_input_append_from(&input, &payload), SKUA_E_TAKEN);
    skua_input_clear(&input);
    payload = skua_payload_pointer(0, &input, NULL);
    assert_int_equal(skua_input_append(&input, payload), SKUA_E_PAYLOAD_TYPE);
}

TEST(prefix_says_the_length_in_its_format)
{
    static const struct {
        enum skua_frame format;
        size_t size;
        int length;
        const char *prefix;
    } rows[] = {
        {SKUA_FRAME_U8, 255, 1, "\377"},
        {SKUA_FRAME_U8, 256, SKUA_E_TOO_LONG, ""},
        {SKUA_FRAME_BE16, 0x1234, 2, "\x12\x34"},
        {SKUA_FRAME_LE16, 0x1234, 2, "\x34\x12"},
        {SKUA_FRAME_BE16, 0x10000, SKUA_E_TOO_LONG, ""},
        {SKUA_FRAME_BE32, 0x12345678, 4, "\x12\x34\x56\x78"},
        {SKUA_FRAME_LE32, 0x12345678, 4, "\x78\x56\x34\x12"},
        {SKUA_FRAME_LE32, (size_t)1 << 32, SKUA_E_TOO_LONG, ""},
        {SKUA_FRAME_BE64, 0x12345678, 8, "\0\0\0\0\x12\x34\x56\x78"},
        {SKUA_FRAME_LE64, 0x12345678, 8, "\x78\x56\x34\x12\0\0\0\0"},
        {(enum skua_frame)5, 1, SKUA_E_INVALID, ""},
    };
    FOR_ROWS (row, rows) {
        unsigned char prefix[SKUA_FRAME_PREFIX_MAX];
        const int length = skua_frame_prefix(row->format, row->size, prefix);
        assert_int_equal(length, row->length);
        assert_memory_equal(prefix, row->prefix, (size_t)(length > 0 ? length : 0));
    }
    assert_int_equal(skua_frame_prefix(SKUA_FRAME_U8, 1, NULL), SKUA_E_INVALID);
}

/* A line is before it in the memory where it is put together, and has been taken out. */
TEST(line_of_the_limit_takes_no_more_memory_behind_another)
{
    enum { LIMIT = 100, BEFORE = 40, BEGUN = 50 };
    char text[LIMIT + 1];
    skua_bytes line;
    counting_allocator_init(&memory);
    skua_input input = open_input(LIMIT);
    memset(text, 'x', LIMIT);
    text[LIMIT] = '\n';
    assert_int_equal(skua_input_append(&input, copy_of(text + LIMIT - BEFORE, BEFORE + 1)), 0);
    assert_int_equal(skua_input_append(&input, copy_of(text, BEGUN)), 0);
    assert_int_equal(skua_input_append(&input, copy_of(text + BEGUN, 1)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_int_equal(skua_input_append(&input, copy_of(text + BEGUN + 1, LIMIT - BEGUN)), 0);
    assert_int_equal(skua_input_take_line(&input, &line), 1);
    assert_int_equal(line.size, LIMIT);
    assert_in_range(counting_allocator_live_bytes(&memory), 0, LIMIT + SKUA_FRAME_PREFIX_MAX);
    skua_input_clear(&input);
    assert_true(counting_allocator_is_clean(&memory));
}
