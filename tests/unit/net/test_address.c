/* SPDX-License-Identifier: MIT */
#include "net/address.h"

#include "test.h"

static void assert_formats_as(const char *text, const char *expected)
{
    struct address address;
    char formatted[SKUA_ADDRESS_SIZE];
    assert_int_equal(address_parse(text, &address), 0);
    address_format(&address, formatted);
    assert_string_equal(formatted, expected);
}

TEST(address_is_written_as_it_is_read)
{
    static const char *const texts[] = {
        "127.0.0.1:80", "0.0.0.0:0",   "255.255.255.255:65535",
        "[::1]:80",     "[::]:0",      "[1:2:3:4:5:6:7:8]:9",
        "unix:/tmp/s",  "unix:s",      "unix:@name",
        "unix:@a b",    "unix:unix:x", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_formats_as(texts[i], texts[i]);
    }
}

TEST(address_is_written_in_its_shortest_form)
{
    assert_formats_as("127.0.0.1:00080", "127.0.0.1:80");
    assert_formats_as("[0:0:0:0:0:0:0:1]:80", "[::1]:80");
    assert_formats_as("[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5");
}

TEST(text_that_is_no_address_is_refused)
{
    static const char *const texts[] = {
        "",
        ":",
        ":80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:99999",
        "127.0.0.1:000080",
        "127.0.0.1:4294967376", /* 80 in 32 bits */
        "127.0.0.1:18446744073709551696",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1:0x50",
        "127.0.0.1:8o",
        "127.0.0.1: 80",
        "127.0.0.1:80 ",
        " 127.0.0.1:80",
        "127.0.0.1:80:80",
        "127.0.0.1:80/x",
        "127.0.0:80",
        "127.1:80",
        "127.0.0.1.1:80",
        "127.0.0.256:80",
        "127.0.0.01:80",
        "2130706433:80",
        "localhost:80",
        "*:80",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[::1]:",
        "[::1:80",
        "::1]:80",
        "[]:80",
        "[:::1]:80",
        "[::g]:80",
        "[1:2:3:4:5:6:7:8:9]:80",
        "[127.0.0.1]:80",
        "[fe80::1%lo]:80",
        "[::1] :80",
        "[[::1]]:80",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:80",
        "111111111111111111111111111111111111111111111111111111111111:80",
        "unix",
        "unix:",
        "unix:@",
        "UNIX:/tmp/s",
        "tcp:127.0.0.1:80",
        "http://127.0.0.1:80",
        "127.0.0.1:80\n",
    };
    struct address address;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (address_parse(texts[i], &address) != SKUA_E_ADDRESS) {
            fail_msg("\"%s\" is taken for an address", texts[i]);
        }
    }
}

/* The system's struct has room for 108 bytes, one of which ends a path. */
TEST(path_may_be_as_long_as_the_system_allows)
{
    char text[256] = "unix:";
    char *end = text + strlen(text);
    struct address address;
    memset(end, 'x', 107);
    end[0] = '/';
    assert_formats_as(text, text);
    end[0] = '@';
    assert_formats_as(text, text);
    end[107] = 'x';
    assert_int_equal(address_parse(text, &address), SKUA_E_ADDRESS);
    end[0] = '/';
    assert_int_equal(address_parse(text, &address), SKUA_E_ADDRESS);
}

TEST(address_without_a_name_is_empty)
{
    char text[SKUA_ADDRESS_SIZE] = "x";
    struct address address = {.size = sizeof(sa_family_t), .as.any.sa_family = AF_UNIX};
    address_format(&address, text);
    assert_string_equal(text, "");
    address.as.any.sa_family = AF_UNSPEC;
    text[0] = 'x';
    address_format(&address, text);
    assert_string_equal(text, "");
}
