/* SPDX-License-Identifier: MIT */
/* The types that several headers share. */
#ifndef SKUA_TYPES_H
#define SKUA_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skua/export.h>

/* One runtime: workers, queues and processes. Any number may live in one program. */
typedef struct skua_runtime skua_runtime;

/* What a process may use during init and step. Valid only during that call, on its thread. */
typedef struct skua_context skua_context;

/* Where a step writes what it wants next. Valid only during that step. */
typedef struct skua_step skua_step;

/* Names one process, for ever: no later process of the same runtime gets the same PID. A PID
 * also knows its runtime, so using it with another one is an error (SKUA_E_FOREIGN_PID; among
 * simulated runtimes, and among more than 4094 others, created by one program that check may miss).
 * Zero is never a process. */
typedef struct skua_pid {
    uint64_t bits; /* may be kept, sent and compared; what they mean is Skua's affair */
} skua_pid;

/* Whether two PIDs name the same process. */
static inline bool skua_pid_equal(skua_pid a, skua_pid b)
{
    return a.bits == b.bits;
}

/* Whether a PID is zero: no process has that one. */
static inline bool skua_pid_is_none(skua_pid pid)
{
    return pid.bits == 0;
}

/* Time is counted in nanoseconds, as uint64_t. A deadline of SKUA_FOREVER never comes. */
#define SKUA_FOREVER     UINT64_MAX
#define SKUA_MICROSECOND UINT64_C(1000)
#define SKUA_MILLISECOND UINT64_C(1000000)
#define SKUA_SECOND      UINT64_C(1000000000)

/* The memory hook of a runtime: allocates (`pointer` null, `old_size` 0), frees (`new_size` 0,
 * result ignored) or resizes. `alignment` is a power of two, the same for one block throughout.
 * Returns null when there is no memory; then `pointer` is still valid.
 * Threads: any, several at once; locks of the runtime may be held, so it must not call skua_
 *          functions.      Blocks: should not. */
typedef void *skua_alloc_fn(void *arg, void *pointer, size_t old_size, size_t new_size,
                            size_t alignment);

#endif
