/* SPDX-License-Identifier: MIT */
/* Calls that block: reading files, resolving names, foreign libraries.
 *
 * Either hand the function to a blocking pool, whose threads may sleep in the kernel, and get its
 * result as a completion; or, where that is too much trouble, declare within a step that it is
 * about to block, so that a spare worker takes over meanwhile. */
#ifndef SKUA_BLOCKING_H
#define SKUA_BLOCKING_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* The name of the pool that every runtime has. */
#define SKUA_BLOCKING_DEFAULT "default"

/* The most pools, including the default one. */
#define SKUA_BLOCKING_POOLS_MAX 16

/* A pool of one runtime. The zero handle is the default pool. */
typedef struct skua_pool {
    uint32_t number; /* what it means is up to Skua */
} skua_pool;

/* A pool and its limits. Zero means the default, in every field but the name. */
typedef struct skua_blocking_pool {
    const char *name;      /* kept until the runtime is destroyed */
    uint32_t thread_limit; /* default 16 */
    uint32_t queue_limit;  /* calls that wait for a thread; default 65536 */
    uint64_t idle_ns;      /* a thread without work ends after this long; default 10 s */
    bool direct;           /* no queue: a call that finds no free thread is refused; the thread of
                              a call whose completion has come is free */
    bool sim_safe;         /* the simulator may run its functions (skua/sim.h); it has no limits */
    uintptr_t reserved[4]; /* zero */
} skua_blocking_pool;

/* Adds a pool, or sets the limits of the default one.
 * Borrows: pool; keeps its name.      Gives: *handle, for skua_yield_blocking (may be null).
 * Threads: one at a time, before start.      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (null, empty name, too many pools); SKUA_E_POOL_EXISTS;
 *          SKUA_E_FROZEN. */
SKUA_API SKUA_NODISCARD int
skua_blocking_register(skua_runtime *runtime, const skua_blocking_pool *pool, skua_pool *handle);

/* The handle of a pool by its name: for processes of modules (skua/module.h), in their init.
 * Borrows: name.      Gives: *handle, on error that of no pool.      Threads: any.
 * Blocks:  never.
 * Returns: 0; SKUA_E_UNKNOWN_POOL; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_blocking_find(skua_runtime *runtime, const char *name,
                                               skua_pool *handle);

/* A function that may block. Gets the input (may take it; what is left is dropped), writes *result
 * (empty at the call). Returns 0 or a negative error, which becomes the completion's; a positive
 * number becomes SKUA_E_INVALID.
 * Threads: one of the pool's. May call every skua_ function that any thread may call, except stop
 * and destroy. */
typedef int skua_blocking_fn(skua_payload *input, skua_payload *result);

/* Runs `function` on a pool.
 * The completion's error is what the function returned; SKUA_E_POOL_FULL; SKUA_E_THREAD or
 * SKUA_E_NO_MEMORY (the pool has no thread and none can be made); SKUA_E_TIMEOUT or
 * SKUA_E_CANCELLED: the function may then still be running or, if it had not begun, never runs; it
 * keeps its place in the queue until a thread gets to it. Likewise when the process ends. Only a
 * function yielded in the step that says skua_done runs in any case, unless the pool refuses it; a
 * stop of the runtime waits for it. Its result is dropped.
 * Takes:   input, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_UNKNOWN_POOL; SKUA_E_PAYLOAD_SIZE; SKUA_E_DURATION; SKUA_E_NO_MEMORY;
 *          SKUA_E_DONE; SKUA_E_TAKEN; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_blocking(skua_context *ctx, uint64_t tag, skua_pool pool,
                                                skua_blocking_fn *function, skua_payload input,
                                                uint64_t timeout_ns);

/* Declares that this step is about to block. Others may run what waits for its worker, and a spare
 * worker steps in until skua_blocking_end or the end of the step. On a thread
 * that is not a worker (init of a process submitted from outside) both do nothing.
 * Threads: worker (inside init or step).      Blocks: never.
 * Returns: 0; SKUA_E_INVALID (begun already, or not begun); SKUA_E_CONTEXT. */
SKUA_API int skua_blocking_begin(skua_context *ctx);
SKUA_API int skua_blocking_end(skua_context *ctx);

SKUA_END_DECLS

#endif
