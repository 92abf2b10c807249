/* SPDX-License-Identifier: MIT */
/* What valgrind must be told of stacks: that they are some. Otherwise it takes a switch for a large
 * step of the stack pointer, and shows only the innermost frame.
 *
 * Requests to valgrind are instructions that do nothing elsewhere. Their encoding is part of its
 * interface (valgrind.h) and does not change, so its headers are not needed. */
#ifndef SKUA_TASK_VALGRIND_H
#define SKUA_TASK_VALGRIND_H

#include <stddef.h>
#include <stdint.h>

#define VALGRIND_STACK_REGISTER UINT64_C(0x1501)
#define VALGRIND_MEM_UNDEFINED  (((uint64_t)'M' << 24 | (uint64_t)'C' << 16) + 1)

static inline void valgrind_request(uint64_t request, uint64_t first, uint64_t second)
{
    const volatile uint64_t arguments[6] = {request, first, second};
#if defined(__x86_64__)
    uint64_t result = 0;
    __asm__ volatile("rolq $3, %%rdi\n\t"
                     "rolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\t"
                     "rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(arguments)
                     : "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x3, xzr\n\t"
                     "mov x4, %0\n\t"
                     "ror x12, x12, #3\n\t"
                     "ror x12, x12, #13\n\t"
                     "ror x12, x12, #51\n\t"
                     "ror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     :
                     : "r"(arguments)
                     : "cc", "memory", "x3", "x4");
#endif
    (void)arguments;
}

/* This is a stack from now on. */
static inline void valgrind_know_stack(const void *low, const void *end)
{
    valgrind_request(VALGRIND_STACK_REGISTER, (uintptr_t)low, (uintptr_t)end);
}

/* A part of a stack that nobody uses may be written to. */
static inline void valgrind_allow(const void *start, size_t size)
{
    valgrind_request(VALGRIND_MEM_UNDEFINED, (uintptr_t)start, size);
}

#endif
