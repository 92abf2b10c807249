/* SPDX-License-Identifier: MIT */
/* Memory. Everything that the library allocates goes through the runtime's allocator, so that users
 * can count it and tests can make it fail. */
#ifndef SKUA_BASE_ALLOCATOR_H
#define SKUA_BASE_ALLOCATOR_H

#include <skua/types.h>

#include "base/compiler.h"

struct allocator {
    skua_alloc_fn *function;
    void *arg;
};

/* The C library's memory. Blocks of 2 MiB and more ask for huge pages: a table of a million
 * processes then costs dozens of page faults, not tens of thousands. */
void *allocator_default(void *arg, void *pointer, size_t old_size, size_t new_size,
                        size_t alignment);

/* Allocates memory without clearing it; null if there is none. */
NODISCARD void *allocator_alloc(const struct allocator *allocator, size_t size, size_t alignment);

/* The same, cleared. */
NODISCARD void *allocator_alloc_zeroed(const struct allocator *allocator, size_t size,
                                       size_t alignment);

/* Returns a larger block with the old content, or null, and then the old block stays valid. */
NODISCARD void *allocator_grow(const struct allocator *allocator, void *pointer, size_t old_size,
                               size_t new_size, size_t alignment);

void allocator_free(const struct allocator *allocator, void *pointer, size_t size,
                    size_t alignment);

#endif
