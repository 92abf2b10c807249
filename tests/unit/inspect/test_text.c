/* SPDX-License-Identifier: MIT */
/* Text that is cut where the buffer ends, and counted beyond. */
#include "inspect/text.h"
#include "test.h"

static char buffer[32];

static struct text open_text(void)
{
    return (struct text){.at = buffer, .size = sizeof buffer};
}

TEST(text_that_fits_is_all_there)
{
    struct text text = open_text();
    text_add(&text, "%d-", 12);
    text_add(&text, "%s", "");
    text_add(&text, "%s", "three");
    assert_string_equal(buffer, "12-three");
    assert_int_equal(text.length, 8);
}

/* Every size around each of the pieces' ends; the byte behind the buffer is not touched. */
TEST(text_that_does_not_fit_is_cut_and_counted)
{
    static const char whole[] = "one,two,three";
    for (size_t size = 1; size <= sizeof whole; size++) {
        memset(buffer, '#', sizeof buffer);
        struct text text = {.at = buffer, .size = size};
        text_add(&text, "one,");
        text_add(&text, "two,");
        text_add(&text, "three");
        assert_int_equal(text.length, sizeof whole - 1);
        assert_memory_equal(buffer, whole, size - 1);
        assert_int_equal(buffer[size - 1], '\0');
        assert_int_equal(buffer[size], '#');
    }
}

TEST(text_without_a_buffer_is_counted)
{
    struct text text = {.at = NULL, .size = 0};
    text_add(&text, "%s", "four");
    text_add(&text, "%s", "five5");
    assert_int_equal(text.length, 9);
}

TEST(text_in_quotes_is_escaped)
{
    struct text text = open_text();
    text_add(&text, "a=");
    text_add_quoted(&text, "b\\c\"d\ne\t%s");
    assert_string_equal(buffer, "a=\"b\\\\c\\\"d\\ne\t%s\"");
    assert_int_equal(text.length, strlen(buffer));
}

TEST(text_of_a_name_stays_on_its_line)
{
    struct text text = open_text();
    text_add_name(&text, "\033[2J a\nb\tc\177 \xc3\xa4 %s");
    assert_string_equal(buffer, "?[2J a?b?c? \xc3\xa4 %s");
}

/* A name would be cut after 64 bytes. */
TEST(text_of_an_address_is_all_there_and_stays_on_its_line)
{
    char path[101] = "unix:/\n";
    struct text text = {.at = NULL, .size = 0};
    memset(path + strlen(path), 'x', sizeof path - 1 - strlen(path));
    text_add_clean(&text, path);
    assert_int_equal(text.length, 100);
    text = open_text();
    text_add_clean(&text, "unix:/run/a\nb");
    assert_string_equal(buffer, "unix:/run/a?b");
}

TEST(numbers_have_digits_only_and_fit)
{
    static const struct {
        const char *word;
        int base;
        bool is_number;
        uint64_t number;
    } rows[] = {
        {"0", 10, true, 0},
        {"007", 10, true, 7},
        {"18446744073709551615", 10, true, UINT64_MAX},
        {"18446744073709551616", 10, false, 0},
        {"fF", 16, true, 255},
        {"fF", 10, false, 0},
        {"ffffffffffffffff", 16, true, UINT64_MAX},
        {"10000000000000000", 16, false, 0},
        {"", 10, false, 0},
        {"-1", 10, false, 0},
        {"+1", 10, false, 0},
        {" 1", 10, false, 0},
        {"1 ", 10, false, 0},
        {"0x1", 16, false, 0},
    };
    FOR_ROWS (row, rows) {
        uint64_t number = 0;
        assert_int_equal(text_is_number(row->word, row->base, &number), row->is_number);
        assert_true(!row->is_number || number == row->number);
    }
}
