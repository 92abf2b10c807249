/* SPDX-License-Identifier: MIT */
/* What stacks ask of the system. Tests put others in its place, which refuse. */
#ifndef SKUA_TASK_STACK_MEMORY_H
#define SKUA_TASK_STACK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct stack_memory {
    /* Address space without memory, or null. */
    void *(*reserve)(size_t size);
    void (*unreserve)(void *start, size_t size);
    /* Makes a part of it usable; returns whether it is. */
    bool (*commit)(void *start, size_t size);
    /* Makes a page fatal to touch; returns whether it is. The first leaves the mapping whole (Linux
     * 6.13); the second splits it, and a program may have only so many mappings. */
    bool (*guard)(void *start, size_t size);
    bool (*protect)(void *start, size_t size);
    /* Gives the memory back, which reads as zeros then. Returns how much there was; 0, too, if that
     * did not work. */
    size_t (*discard)(void *start, size_t size);
    /* How many mappings a program may have. */
    uint32_t (*mappings_max)(void);
    /* Whether the processor checks where functions of this thread return to. Then it ends the
     * program at the first switch to another stack. */
    bool (*has_shadow_stack)(void);
};

extern const struct stack_memory stack_memory_of_system;

#endif
