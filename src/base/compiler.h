/* SPDX-License-Identifier: MIT */
/* Compiler extensions. */
#ifndef SKUA_BASE_COMPILER_H
#define SKUA_BASE_COMPILER_H

#include <stddef.h>

#define LIKELY(x)     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define NODISCARD     __attribute__((warn_unused_result))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE      __attribute__((noinline))
/* A function that may read what another thread writes, and whose caller finds out. */
#define RACY __attribute__((noinline, no_sanitize("thread")))

/* Data written by different threads is kept this far apart. */
#define CACHE_LINE    64
#define CACHE_ALIGNED _Alignas(CACHE_LINE)

#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
