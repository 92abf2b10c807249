/* SPDX-License-Identifier: MIT */
#include "command/support.h"

#include <inttypes.h>
#include <skua/clock.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- complaints ---- */

static void complain(const char *command, const char *format, va_list arguments)
{
    fprintf(stderr, "skua %s: ", command);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

int usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
    return STATUS_USAGE;
}

int failure(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    complain(command, format, arguments);
    va_end(arguments);
    return STATUS_FAILURE;
}

/* ---- numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits and moves *text behind them; false if there are none or the number is too large. */
static bool read_digits(const char **text, uint64_t *value)
{
    if (!is_digit(**text)) {
        return false;
    }
    for (*value = 0; is_digit(**text); (*text)++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(**text - '0'), value)) {
            return false;
        }
    }
    return true;
}

uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SKUA_SECOND + (uint64_t)now.tv_nsec;
}

bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    uint64_t number;
    if (!read_digits(&text, &number) || *text != '\0' || number < least || number > most) {
        return false;
    }
    *value = number;
    return true;
}

/* ---- durations ---- */

static uint64_t unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"ns", 1},          {"us", SKUA_MICROSECOND}, {"ms", SKUA_MILLISECOND},
        {"s", SKUA_SECOND}, {"m", 60 * SKUA_SECOND},  {"h", 3600 * SKUA_SECOND},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            return units[i].ns;
        }
    }
    return 0;
}

/* What the digits after the point add up to: each is worth a tenth of the one before it. */
static uint64_t fraction_ns(const char *digits, uint64_t unit)
{
    uint64_t sum = 0;
    for (uint64_t worth = unit / 10; is_digit(*digits); digits++, worth /= 10) {
        sum += worth * (uint64_t)(*digits - '0');
    }
    return sum;
}

bool parse_duration(const char *text, uint64_t *duration_ns)
{
    uint64_t whole;
    uint64_t sum;
    if (!read_digits(&text, &whole)) {
        return false;
    }
    const char *fraction = NULL;
    if (*text == '.') {
        fraction = text + 1;
        text = fraction + strspn(fraction, "0123456789");
        if (text == fraction) {
            return false;
        }
    }
    const uint64_t unit = unit_ns(text);
    if (unit == 0 || __builtin_mul_overflow(whole, unit, &sum) || sum > SKUA_DURATION_MAX) {
        return false;
    }
    sum += fraction != NULL ? fraction_ns(fraction, unit) : 0;
    if (sum > SKUA_DURATION_MAX) {
        return false;
    }
    *duration_ns = sum;
    return true;
}

/* ---- options ---- */

/* How much of the text is the option's name. */
static int name_length(const char *option)
{
    return (int)(strncmp(option, "--", 2) == 0 ? strcspn(option, "=") : strlen(option));
}

bool is_valued(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return (size_t)name_length(text) == length && strncmp(text, name, length) == 0;
}

/* The value of the option argv[*i]; null if there is none. Moves *i to where it is. */
static const char *value_of(char **argv, int *i)
{
    const char *behind = argv[*i] + name_length(argv[*i]);
    if (*behind == '=') {
        return behind + 1;
    }
    return argv[*i + 1] != NULL ? argv[++*i] : NULL;
}

bool option_text(const char *command, char **argv, int *i, const char **text)
{
    const char *option = argv[*i];
    *text = value_of(argv, i);
    if (*text == NULL) {
        usage_error(command, "%s needs a value", option);
        return false;
    }
    return true;
}

bool option_number(const char *command, char **argv, int *i, uint64_t least, uint64_t most,
                   uint64_t *value)
{
    const char *option = argv[*i];
    const char *text = value_of(argv, i);
    if (text == NULL || !parse_number(text, least, most, value)) {
        usage_error(command, "%.*s needs a number from %" PRIu64 " to %" PRIu64,
                    name_length(option), option, least, most);
        return false;
    }
    return true;
}

bool option_duration(const char *command, char **argv, int *i, uint64_t *duration_ns)
{
    const char *option = argv[*i];
    const char *text = value_of(argv, i);
    if (text == NULL || !parse_duration(text, duration_ns)) {
        usage_error(command, "%.*s needs a duration, such as 500us, 100ms, 5s, 2m or 1h",
                    name_length(option), option);
        return false;
    }
    return true;
}
