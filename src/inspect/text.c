/* SPDX-License-Identifier: MIT */
#include "inspect/text.h"

#include <errno.h>
#include <skua/socket.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void text_add(struct text *text, const char *format, ...)
{
    const size_t used = text->length < text->size ? text->length : text->size;
    va_list args;
    va_start(args, format);
    const int added =
        vsnprintf(used < text->size ? text->at + used : NULL, text->size - used, format, args);
    va_end(args);
    SKUA_ASSERT(added >= 0); /* no wide characters, nothing as long as INT_MAX */
    text->length += (size_t)added;
}

void text_add_quoted(struct text *text, const char *string)
{
    text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '\n') {
            text_add(text, "\\n");
        } else {
            text_add(text, *c == '\\' || *c == '"' ? "\\%c" : "%c", *c);
        }
    }
    text_add(text, "\"");
}

/* Returns how many bytes it has appended: TEXT_NAME_MAX if there may be more. */
static size_t add_clean(struct text *text, const char *from)
{
    char shown[TEXT_NAME_MAX + 1];
    size_t length = 0;
    for (; length < TEXT_NAME_MAX && from[length] != '\0'; length++) {
        const unsigned char byte = (unsigned char)from[length];
        shown[length] = (char)(byte < ' ' || byte == 0x7f ? '?' : byte);
    }
    shown[length] = '\0';
    text_add(text, "%s", shown);
    return length;
}

void text_add_name(struct text *text, const char *name)
{
    (void)add_clean(text, name);
}

void text_add_clean(struct text *text, const char *string)
{
    while (add_clean(text, string) == TEXT_NAME_MAX) {
        string += TEXT_NAME_MAX;
    }
}

bool text_is_number(const char *word, int base, uint64_t *number)
{
    const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
    if (word[0] == '\0' || word[strspn(word, digits)] != '\0') {
        return false;
    }
    errno = 0;
    *number = strtoull(word, NULL, base);
    return errno == 0;
}

bool text_is_name(const char *text, const char *name)
{
    size_t length = 0;
    while (length < TEXT_NAME_MAX && name[length] != '\0' &&
           (text[length] == name[length] || text[length] == '?')) {
        length++;
    }
    return text[length] == '\0' && (length == TEXT_NAME_MAX || name[length] == '\0');
}
