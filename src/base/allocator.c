/* SPDX-License-Identifier: MIT */
#include "base/allocator.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

static void *allocate(size_t size, size_t alignment)
{
    if (size >= HUGE_PAGE && alignment < HUGE_PAGE) {
        alignment = HUGE_PAGE;
    }
    if (alignment <= alignof(max_align_t) && size < HUGE_PAGE) {
        return malloc(size);
    }
    void *pointer;
    if (posix_memalign(&pointer, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) !=
        0) {
        return NULL;
    }
    if (size >= HUGE_PAGE) {
        /* Only a hint: without huge pages everything still works, with more page faults. */
        (void)madvise(pointer, size, MADV_HUGEPAGE);
    }
    return pointer;
}

void *allocator_default(void *arg, void *pointer, size_t old_size, size_t new_size,
                        size_t alignment)
{
    (void)arg;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    void *fresh = allocate(new_size, alignment);
    if (fresh != NULL && pointer != NULL) {
        memcpy(fresh, pointer, old_size < new_size ? old_size : new_size);
        free(pointer);
    }
    return fresh;
}

void *skua_must_alloc(void *arg, void *pointer, size_t old_size, size_t new_size, size_t alignment)
{
    void *fresh = allocator_default(arg, pointer, old_size, new_size, alignment);
    if (fresh == NULL && new_size > 0) {
        abort();
    }
    return fresh;
}

void *allocator_alloc(const struct allocator *allocator, size_t size, size_t alignment)
{
    return allocator->function(allocator->arg, NULL, 0, size, alignment);
}

void *allocator_alloc_zeroed(const struct allocator *allocator, size_t size, size_t alignment)
{
    void *pointer = allocator_alloc(allocator, size, alignment);
    if (pointer != NULL) {
        memset(pointer, 0, size);
    }
    return pointer;
}

void *allocator_grow(const struct allocator *allocator, void *pointer, size_t old_size,
                     size_t new_size, size_t alignment)
{
    return allocator->function(allocator->arg, pointer, old_size, new_size, alignment);
}

void allocator_free(const struct allocator *allocator, void *pointer, size_t size, size_t alignment)
{
    if (pointer != NULL) {
        (void)allocator->function(allocator->arg, pointer, size, 0, alignment);
    }
}
