/* SPDX-License-Identifier: MIT */
/* System calls without the C library's functions around them.
 *
 * Those that can wait are points where a thread can be cancelled, and for that they change the
 * state of the thread twice. And after a system call the processor no longer knows where functions
 * that were called before it return to: each return is a misprediction, of 20 cycles or so. So the
 * few calls that are made for every message of a connection are inlined into their callers. */
#ifndef SKUA_BASE_SYSTEM_CALL_H
#define SKUA_BASE_SYSTEM_CALL_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

/* Returns what the system returns: a negative errno on failure. */
static ALWAYS_INLINE long system_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__) && defined(__LP64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return number;
#elif defined(__aarch64__) && defined(__LP64__)
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
#else
    const long result = syscall(number, a, b, c, d, e, f);
    return result >= 0 ? result : -errno;
#endif
}

static inline long system_call_pointer(const void *pointer)
{
    return (long)(uintptr_t)pointer;
}

#endif
