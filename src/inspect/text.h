/* SPDX-License-Identifier: MIT */
/* Text in a fixed buffer, appended in pieces as by snprintf: what does not fit is counted and left
 * out. */
#ifndef SKUA_INSPECT_TEXT_H
#define SKUA_INSPECT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *at; /* may be null if size is 0 */
    size_t size;
    size_t length; /* of the whole text, without the zero at its end; may be more than fits */
};

/* Appends. If size is not 0, the text that fits is terminated by a zero. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/* Appends a string in quotes; backslashes, quotes and newlines are escaped. */
void text_add_quoted(struct text *text, const char *string);

/* Appends the beginning of a name; control characters, which could break the line, become `?`. */
#define TEXT_NAME_MAX 64
void text_add_name(struct text *text, const char *name);

/* The same for all of a string. */
void text_add_clean(struct text *text, const char *string);

/* A whole number in base 10 or 16, without signs or blanks. */
bool text_is_number(const char *word, int base, uint64_t *number);

/* Whether `text` is what a client would show for `name`. Clients also show `?` for invalid UTF-8,
 * so a `?` matches any byte. */
bool text_is_name(const char *text, const char *name);

#endif
