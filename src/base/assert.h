/* SPDX-License-Identifier: MIT */
/* Assertions. They stay in release builds: a scheduler that has gone wrong must stop, not limp. */
#ifndef SKUA_BASE_ASSERT_H
#define SKUA_BASE_ASSERT_H

#include "base/compiler.h"

_Noreturn void assert_fail(const char *expression, const char *file, int line);

#define SKUA_ASSERT(expression)                                                                    \
    (LIKELY(expression) ? (void)0 : assert_fail(#expression, __FILE__, __LINE__))

#endif
