/* SPDX-License-Identifier: MIT */
/* Text in a buffer of fixed size, as snprintf writes it, in pieces: what does not fit is counted
 * and left out. */
#ifndef SKUA_INSPECT_TEXT_H
#define SKUA_INSPECT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *at; /* may be null if size is 0 */
    size_t size;
    size_t length; /* of the whole text, without the zero at its end; may be more than fits */
};

/* Appends. If size is not 0 there is a zero at the end of what fits. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/* Appends a string in quotes; a backslash, a quote and the end of a line have a backslash before
 * them (the last as \n). */
void text_add_quoted(struct text *text, const char *string);

/* Appends the beginning of a name, which must not break a line: control characters become `?`. */
#define TEXT_NAME_MAX 64
void text_add_name(struct text *text, const char *name);

/* Whether a text is a name as it is shown. Clients also show a `?` for what is no UTF-8, so it
 * stands for any byte. */
bool text_is_name(const char *text, const char *name);

#endif
