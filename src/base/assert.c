/* SPDX-License-Identifier: MIT */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void assert_fail(const char *expression, const char *file, int line)
{
    fprintf(stderr, "skua: internal error: %s does not hold (%s:%d)\n", expression, file, line);
    abort();
}
