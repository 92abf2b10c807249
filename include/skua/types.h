/* SPDX-License-Identifier: MIT */
/* The types that several headers share. */
#ifndef SKUA_TYPES_H
#define SKUA_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skua/export.h>

/* One runtime: workers, queues and processes. A program may have several. */
typedef struct skua_runtime skua_runtime;

/* What a process acts through. Every call of init, step and close gets it; it is valid during that
 * call, on the thread that made it. Never keep it. A function that gets one whose call is over
 * returns SKUA_E_CONTEXT, unless the same context is in use again by then; the simulator and debug
 * builds of the library use each only now and then, and also notice other threads. */
typedef struct skua_context skua_context;

/* Names one process for ever: no later process of the runtime gets the same PID. A PID knows its
 * runtime: with another one it is refused with SKUA_E_FOREIGN_PID. (Simulated runtimes share one
 * number, as do every 4094th of the others.) Zero is never a process. */
typedef struct skua_pid {
    uint64_t bits; /* keep, send and compare them; what they mean is up to Skua */
} skua_pid;

/* Whether two PIDs name the same process. */
static inline bool skua_pid_equal(skua_pid a, skua_pid b)
{
    return a.bits == b.bits;
}

/* Whether a PID is zero, which names no process. */
static inline bool skua_pid_is_none(skua_pid pid)
{
    return pid.bits == 0;
}

/* A call that a process has got and not answered yet (skua/call.h). */
typedef struct skua_request {
    uint64_t bits; /* zero is none; what they mean is up to Skua */
} skua_request;

/* One link between two processes, as the one that made it knows it (skua/watch.h). */
typedef struct skua_link_id {
    uint64_t bits; /* zero is none; what they mean is up to Skua */
} skua_link_id;

/* A socket, as the process knows it whose socket it is (skua/socket.h). */
typedef struct skua_socket {
    uint64_t bits; /* zero is none; what they mean is up to Skua */
} skua_socket;

/* Room for the text of a PID: 16 hexadecimal digits and a zero. */
#define SKUA_PID_TEXT_SIZE 17

/* Times are in nanoseconds. SKUA_FOREVER means no timeout or, as an instant, never. */
#define SKUA_FOREVER     UINT64_MAX
#define SKUA_MICROSECOND UINT64_C(1000)
#define SKUA_MILLISECOND UINT64_C(1000000)
#define SKUA_SECOND      UINT64_C(1000000000)

/* The longest duration: 292 years. A negative number, converted, is longer than that. */
#define SKUA_DURATION_MAX ((uint64_t)INT64_MAX)

/* The memory hook of a runtime: allocates (`pointer` null, `old_size` 0), frees (`new_size` 0,
 * result ignored) or resizes. `alignment` is a power of two, the same for one block throughout.
 * Returns null if there is no memory; `pointer` is then still valid.
 * Threads: any, several at once; the runtime may hold locks, so it must not call skua_ functions.
 * Blocks:  should not. */
typedef void *skua_alloc_fn(void *arg, void *pointer, size_t old_size, size_t new_size,
                            size_t alignment);

/* A memory hook for programs that cannot go on without memory: that of the C library, and abort if
 * there is none. `arg` does not matter.
 * Threads: any.      Blocks: never. */
SKUA_API void *skua_must_alloc(void *arg, void *pointer, size_t old_size, size_t new_size,
                               size_t alignment);

SKUA_BEGIN_DECLS

/* Writes a PID as `skua ps` shows it: 16 hexadecimal digits and a zero.
 * Gives:   text, which has SKUA_PID_TEXT_SIZE bytes; returned again, for use in a printf.
 * Threads: any.      Blocks: never. */
SKUA_API const char *skua_pid_format(skua_pid pid, char *text);

/* Reads a PID that skua_pid_format has written: 1 to 16 hexadecimal digits and nothing else.
 * Borrows: text.      Gives: *pid, zero on error.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, or not a PID). */
SKUA_API SKUA_NODISCARD int skua_pid_parse(const char *text, skua_pid *pid);

SKUA_END_DECLS

#endif
