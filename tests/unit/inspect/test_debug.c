/* SPDX-License-Identifier: MIT */
/* The settings of SKUA_DEBUG, right and wrong ones, and what is printed where nobody reads. */
#include "inspect/debug.h"

#include <fcntl.h>
#include <skua/clock.h>
#include <stdio.h>
#include <unistd.h>

#include "capture.h"
#include "test.h"

static struct capture capture;

/* What the list means; *said is what is printed about it. */
static struct debug_settings parse(const char *list, const char **said)
{
    capture_begin(&capture);
    const struct debug_settings settings = debug_parse(list);
    *said = capture_end(&capture);
    return settings;
}

TEST(right_settings_are_taken_without_a_word)
{
    static const struct {
        const char *list;
        struct debug_settings settings;
    } cases[] = {
        {NULL, {.stall_ns = 0}},
        {"", {.stall_ns = 0}},
        {"schedtrace=1", {.schedtrace_ns = SKUA_MILLISECOND}},
        {"schedtrace=1000", {.schedtrace_ns = SKUA_SECOND}},
        {"schedtrace=3600000", {.schedtrace_ns = 3600 * SKUA_SECOND}},
        {"stall=1ms", {.stall_ns = SKUA_MILLISECOND}},
        {"stall=1000us", {.stall_ns = SKUA_MILLISECOND}},
        {"stall=1500us", {.stall_ns = 1500 * SKUA_MICROSECOND}},
        {"stall=2s", {.stall_ns = 2 * SKUA_SECOND}},
        {"stall=9223372036854775us", {.stall_ns = UINT64_C(9223372036854775000)}},
        {"schedtrace=1000,stall=25ms",
         {.schedtrace_ns = SKUA_SECOND, .stall_ns = 25 * SKUA_MILLISECOND}},
        {"stall=25ms,schedtrace=1000",
         {.schedtrace_ns = SKUA_SECOND, .stall_ns = 25 * SKUA_MILLISECOND}},
        {"stall=1s,stall=2s", {.stall_ns = 2 * SKUA_SECOND}},
        {"stacks", {.stacks = true}},
        {"migrate,stacks", {.stacks = true, .migrate = true}},
    };
    FOR_ROWS (row, cases) {
        const char *said;
        const struct debug_settings settings = parse(row->list, &said);
        assert_string_equal(said, "");
        assert_int_equal(settings.schedtrace_ns, row->settings.schedtrace_ns);
        assert_int_equal(settings.stall_ns, row->settings.stall_ns);
        assert_int_equal(settings.stacks, row->settings.stacks);
        assert_int_equal(settings.migrate, row->settings.migrate);
    }
}

TEST(wrong_settings_are_named_and_left_out)
{
    static const char *const wrong[] = {
        "schedtrace",
        "schedtrace=",
        "schedtrace=0",
        "schedtrace=3600001",
        "schedtrace=18446744073709551617",
        "schedtrace=-1",
        "schedtrace= 1",
        "schedtrace=1ms",
        "schedtrace=1=2",
        "stall",
        "stall=",
        "stall=25",
        "stall=ms",
        "stall=999us",
        "stall=0s",
        "stall=1.5ms",
        "stall=25msx",
        "stall=1m",
        "stall=9223372036854776us",
        "stall=99999999999999999999s",
        "stall=+1ms",
        "Stall=25ms",
        " stall=25ms",
        "stal=25ms",
        "=25ms",
        "nonsense",
    };
    FOR_ROWS (setting, wrong) {
        const char *said;
        const struct debug_settings settings = parse(*setting, &said);
        char begin[100];
        (void)snprintf(begin, sizeof begin, "skua: SKUA_DEBUG: '%s': ", *setting);
        assert_memory_equal(said, begin, strlen(begin));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
        assert_int_equal(settings.schedtrace_ns, 0);
        assert_int_equal(settings.stall_ns, 0);
    }
}

TEST(wrong_settings_leave_the_others_as_they_are)
{
    const char *said;
    const struct debug_settings settings =
        parse("stall=25ms,,nonsense=1,stall=26,schedtrace=7,", &said);
    assert_string_equal(said,
                        "skua: SKUA_DEBUG: '': an empty setting\n"
                        "skua: SKUA_DEBUG: 'nonsense=1': unknown setting; known are migrate, "
                        "schedtrace, stacks and stall\n"
                        "skua: SKUA_DEBUG: 'stall=26': not a duration of at least 1ms, such as "
                        "25ms, 5000us or 1s\n"
                        "skua: SKUA_DEBUG: '': an empty setting\n");
    assert_int_equal(settings.schedtrace_ns, 7 * SKUA_MILLISECOND);
    assert_int_equal(settings.stall_ns, 25 * SKUA_MILLISECOND);
}

/* Nothing in the environment may fill a screen, or tell a terminal what to do. */
TEST(wrong_settings_are_shown_in_part_and_without_control_characters)
{
    char list[1000];
    const char *said;
    memset(list, 'x', sizeof list - 1);
    memcpy(list, "\033[2J\n\t", 6);
    list[sizeof list - 1] = '\0';
    (void)parse(list, &said);
    assert_memory_equal(said, "skua: SKUA_DEBUG: '?[2J??xxx", 28);
    assert_non_null(strstr(said, "xxx...': unknown setting"));
    assert_in_range(strlen(said), 1, 160);
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

/* Fills a pipe to the last byte. */
static void fill(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (write(fd, "x", 1) == 1) {
    }
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
}

/* The threads that print look after stuck workers: they must not wait for who reads. */
TEST(lines_that_nobody_reads_are_left_out)
{
    int ends[2];
    void *const frames[] = {(void *)(uintptr_t)fill};
    const skua_stall stall = {.type_name = "slow", .frame_count = 1, .frames = frames};
    struct debug_stall nobody = {0};
    const int saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    fill(ends[1]);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)alarm(60); /* only ends a hang */
    debug_print_stall(&nobody, &stall);
    (void)alarm(0);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    (void)close(saved);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
