/* SPDX-License-Identifier: MIT */
#include "command/format.h"

#include <inttypes.h>
#include <skua/types.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/* One decimal while that is worth something. */
static struct formatted format_unit(double value, const char *unit)
{
    struct formatted out;
    snprintf(out.text, sizeof out.text, value < 99.95 ? "%.1f%s" : "%.0f%s", value, unit);
    return out;
}

/* Two units, of which the smaller one is left out if it is zero. */
static struct formatted format_units(uint64_t large, const char *large_unit, uint64_t small,
                                     const char *small_unit)
{
    struct formatted out;
    if (small == 0) {
        snprintf(out.text, sizeof out.text, "%" PRIu64 "%s", large, large_unit);
    } else {
        snprintf(out.text, sizeof out.text, "%" PRIu64 "%s%" PRIu64 "%s", large, large_unit, small,
                 small_unit);
    }
    return out;
}

struct formatted format_time(uint64_t ns)
{
    struct formatted out;
    const uint64_t minutes = ns / (60 * SKUA_SECOND);
    if (ns == 0) {
        strcpy(out.text, "0");
    } else if (ns < SKUA_MICROSECOND) {
        snprintf(out.text, sizeof out.text, "%" PRIu64 "ns", ns);
    } else if (ns < SKUA_MILLISECOND - 500) {
        out = format_unit((double)ns / 1e3, "us");
    } else if (ns < SKUA_SECOND - 500 * SKUA_MICROSECOND) {
        out = format_unit((double)ns / 1e6, "ms");
    } else if (minutes < 1) {
        out = format_unit((double)ns / 1e9, "s");
    } else if (minutes < 60) {
        out = format_units(minutes, "m", ns / SKUA_SECOND % 60, "s");
    } else if (minutes / 60 < 24) {
        out = format_units(minutes / 60, "h", minutes % 60, "m");
    } else {
        out = format_units(minutes / 60 / 24, "d", minutes / 60 % 24, "h");
    }
    return out;
}

struct formatted format_count(double count)
{
    static const char *const units[] = {"k", "M", "G", "T", "P", "E"};
    struct formatted out;
    if (count < 9999.5) {
        const int decimals = count < 9.95 && count != (double)(int)count ? 1 : 0;
        snprintf(out.text, sizeof out.text, "%.*f", decimals, count);
        return out;
    }
    size_t unit = 0;
    for (count /= 1000; count >= 999.5 && unit < sizeof units / sizeof units[0] - 1; unit++) {
        count /= 1000;
    }
    return format_unit(count, units[unit]);
}

struct formatted format_percent(double part)
{
    struct formatted out;
    const double percent = 100 * part;
    const int decimals = percent > 0.05 && percent < 9.95 ? 1 : 0;
    snprintf(out.text, sizeof out.text, "%.*f%%", decimals, percent < 9999 ? percent : 9999);
    return out;
}

/* ---- text ---- */

/* Marks that turn the direction of what follows could make one row look like another. */
static bool turns_direction(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

size_t character_size(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] < 0x80) {
        return bytes[0] >= 0x20 && bytes[0] != 0x7f;
    }
    const size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc0 || bytes[0] > 0xf7 || length > size) {
        return 0;
    }
    uint32_t code = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (bytes[i] & 0x3f);
    }
    /* Too long a form, the control characters behind ASCII, halves of UTF-16, beyond Unicode. */
    static const uint32_t least[] = {0xa0, 0x800, 0x10000};
    if (code < least[length - 2] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) {
        return 0;
    }
    return turns_direction(code) ? 0 : length;
}

void make_printable(char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        const size_t size = character_size(text, left);
        if (size == 0) {
            *text = '?';
        }
        text += size > 0 ? size : 1;
        left -= size > 0 ? size : 1;
    }
}

static int continues_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

void copy_text(char *to, size_t size, const char *from)
{
    size_t length = strlen(from);
    if (length >= size) {
        for (length = size - 1; length > 0 && continues_character(from[length]); length--) {
        }
    }
    memcpy(to, from, length);
    to[length] = '\0';
}

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (; *text != '\0'; text++) {
        columns += !continues_character(*text);
    }
    return columns;
}

int text_width(const char *text, size_t columns)
{
    return (int)(columns + strlen(text) - text_columns(text));
}
