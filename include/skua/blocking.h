/* SPDX-License-Identifier: MIT */
/* Calls that block: reading files, resolving names, foreign libraries.
 *
 * Either hand the function to a blocking pool, whose threads are there to sleep in the kernel, and
 * get its result as a completion; or, where that is too much, say within a step that it is about to
 * block, so that a spare worker takes over meanwhile. */
#ifndef SKUA_BLOCKING_H
#define SKUA_BLOCKING_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* The pool that every runtime has. */
#define SKUA_BLOCKING_DEFAULT "default"

/* Pools at most, the default one included. */
#define SKUA_BLOCKING_POOLS_MAX 16

/* A pool and its limits. Zero means the default, in every field but the name and, if set,
 * `direct`. */
typedef struct skua_blocking_pool {
    const char *name;      /* kept until the runtime is destroyed */
    uint32_t thread_limit; /* default 16 */
    uint32_t queue_limit;  /* calls that wait for a thread; default 65536 */
    uint64_t idle_ns;      /* a thread without work ends after this long; default 10 s */
    bool direct;           /* no queue: a call that finds no free thread is refused */
    bool sim_safe;         /* the simulator may run its functions (skua/sim.h); it has no limits */
} skua_blocking_pool;

/* Adds a pool, or sets the limits of the default one.
 * Borrows: pool; keeps its name.
 * Threads: one at a time, before start.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, empty name, too many pools); SKUA_E_POOL_EXISTS;
 *          SKUA_E_FROZEN. */
SKUA_API SKUA_NODISCARD int skua_blocking_register(skua_runtime *runtime,
                                                   const skua_blocking_pool *pool);

/* A function that may block. Gets the input (may take it; what is left is dropped), writes *result
 * (empty at the call). Returns 0 or a negative error, which becomes the completion's.
 * Threads: one of the pool's. May call every skua_ function that any thread may call, except stop
 * and destroy. */
typedef int skua_blocking_fn(skua_payload *input, skua_payload *result);

/* Runs `function` on a pool; `pool` null means the default one.
 * The completion's error is what the function returned; SKUA_E_UNKNOWN_POOL; SKUA_E_POOL_FULL;
 * SKUA_E_THREAD or SKUA_E_NO_MEMORY (the pool has no thread and none can be made); SKUA_E_TIMEOUT
 * (with skua_step_deadline) or SKUA_E_CANCELLED: then the function may still be running, or, if it
 * had not begun, never runs; it keeps its place in the queue until then.
 * Takes:   input, always.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_PAYLOAD_SIZE; SKUA_E_NO_MEMORY. */
SKUA_API SKUA_NODISCARD int skua_step_blocking(skua_step *out, uint64_t tag, const char *pool,
                                               skua_blocking_fn *function, skua_payload input);

/* Says that this step is about to block. All that waits for its worker can be run by others, and a
 * spare worker keeps the parallelism until skua_blocking_end or the end of the step. On a thread
 * that is no worker (init of a process submitted from outside) both do nothing.
 * Threads: worker (inside init or step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (begun already, or not begun). */
SKUA_API int skua_blocking_begin(skua_context *ctx);
SKUA_API int skua_blocking_end(skua_context *ctx);

SKUA_END_DECLS

#endif
