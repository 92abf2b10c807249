/* SPDX-License-Identifier: MIT */
#include "inspector/text.h"

#include <stdarg.h>
#include <stdio.h>

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
