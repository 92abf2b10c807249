/* SPDX-License-Identifier: MIT */
/* PIDs as text, there and back. */
#include <skua/error.h>
#include <skua/types.h>

#include "base/random.h"
#include "test.h"

static skua_pid parse(const char *text, int expected)
{
    skua_pid pid = {77};
    assert_int_equal(skua_pid_parse(text, &pid), expected);
    return pid;
}

TEST(pid_is_written_with_16_digits)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } rows[] = {
        {0, "0000000000000000"},
        {1, "0000000000000001"},
        {UINT64_C(0x0123456789abcdef), "0123456789abcdef"},
        {UINT64_MAX, "ffffffffffffffff"},
    };
    FOR_ROWS (row, rows) {
        char text[SKUA_PID_TEXT_SIZE + 1];
        memset(text, '?', sizeof text);
        assert_ptr_equal(skua_pid_format((skua_pid){row->bits}, text), text);
        assert_string_equal(text, row->text);
        assert_int_equal(text[SKUA_PID_TEXT_SIZE], '?'); /* not a byte more */
    }
}

TEST(pid_that_was_written_is_read_again)
{
    uint64_t random = 20260101;
    for (int i = 0; i < 1000; i++) {
        char text[SKUA_PID_TEXT_SIZE];
        const uint64_t bits = random_next(&random) >> (i % 64);
        assert_int_equal(parse(skua_pid_format((skua_pid){bits}, text), 0).bits, bits);
    }
}

TEST(pid_is_read_from_1_to_16_digits_of_either_case)
{
    assert_int_equal(parse("0", 0).bits, 0);
    assert_int_equal(parse("1f", 0).bits, 0x1f);
    assert_int_equal(parse("00000000000000ff", 0).bits, 0xff);
    assert_int_equal(parse("ABCDEFabcdef", 0).bits, UINT64_C(0xabcdefabcdef));
    assert_int_equal(parse("FFFFFFFFFFFFFFFF", 0).bits, UINT64_MAX);
}

TEST(pid_is_not_read_from_anything_else)
{
    static const char *const rows[] = {
        "",
        " 1",
        "1 ",
        "-1",
        "+1",
        "0x1",
        "g",
        "1g",
        "@",
        "`",
        "G",
        "/",
        ":",
        "1.0",
        "1\n",
        "12 34",
        "00000000000000001",
        "10000000000000000",
        "fffffffffffffffff",
        "\xc3\xa1",
        "A\x80",
    };
    FOR_ROWS (row, rows) {
        assert_true(skua_pid_is_none(parse(*row, SKUA_E_INVALID)));
    }
    assert_true(skua_pid_is_none(parse(NULL, SKUA_E_INVALID)));
    assert_int_equal(skua_pid_parse("1", NULL), SKUA_E_INVALID);
}
