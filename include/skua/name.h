/* SPDX-License-Identifier: MIT */
/* Names, by which processes find each other, and labels, by which people tell them apart.
 *
 * A name is 1 to 63 bytes without control characters. Only one process has it at a time, but a
 * process may have several. When you hear that a process has ended, its names are free again. */
#ifndef SKUA_NAME_H
#define SKUA_NAME_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- having a name ---- */

/* Gives this process a name, until it ends or gives the name up. To start a process that has one
 * from the beginning, use skua_spawn_options.name.
 * Borrows: name.      Gives: *holder (may be null): who has it, if it is taken; otherwise zero.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NAME_TAKEN (perhaps by this process); SKUA_E_NAME; SKUA_E_NAME_LENGTH;
 *          SKUA_E_NAME_LIMIT; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT. */
SKUA_API SKUA_NODISCARD int skua_name_register(skua_context *ctx, const char *name,
                                               skua_pid *holder);

/* Gives up a name of this process. One that ends has given up all its names before its close is
 * called.
 * Borrows: name.      Threads: worker (inside step or close).      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS (this process does not have it); SKUA_E_NAME; SKUA_E_NAME_LENGTH;
 *          SKUA_E_CONTEXT. */
SKUA_API int skua_name_unregister(skua_context *ctx, const char *name);

/* Gives this process a label, in place of the one it had: 1 to 63 bytes that `skua ps` and its like
 * show. Several processes may have the same one. Null takes it away.
 * Borrows: label.      Threads: worker (inside init or step).      Blocks: never.
 * Returns: 0; SKUA_E_NAME (control characters, or empty); SKUA_E_NAME_LENGTH; SKUA_E_NO_MEMORY;
 *          SKUA_E_CONTEXT. */
SKUA_API int skua_label(skua_context *ctx, const char *label);

/* ---- finding a process ---- */

/* Finds the process that has a name. It may end at any moment, even before this returns. Takes no
 * lock, unless changes of other names overtake it again and again.
 * Borrows: name.      Gives: *pid, zero on an error.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS (nobody has it); SKUA_E_NAME; SKUA_E_NAME_LENGTH;
 *          SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_name_find(skua_runtime *runtime, const char *name, skua_pid *pid);

/* A name as a number: looking that up is faster than reading the text each time. */
typedef struct skua_name {
    uint64_t bits; /* what they mean is up to Skua */
} skua_name;

/* Turns a name into its number, whether or not a process has it.
 * Borrows: name.      Gives: *number.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_NAME; SKUA_E_NAME_LENGTH; SKUA_E_NO_MEMORY; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_name_of(skua_runtime *runtime, const char *name,
                                         skua_name *number);

/* Finds the process that has a name, by the number of the name. Takes no lock.
 * Gives:   *pid, zero on an error.      Threads: any.      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS (nobody has it); SKUA_E_LATE (nobody has had it for so long that
 *          the number has expired: get a new one from skua_name_of); SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_name_holder(skua_runtime *runtime, skua_name number,
                                             skua_pid *pid);

/* Waits until a process has a name; if one has it already, that completes at once. The payload of
 * the completion is the PID, as a 64-bit number; or the error is SKUA_E_TIMEOUT, SKUA_E_CANCELLED,
 * SKUA_E_NAME_LIMIT or SKUA_E_NO_MEMORY.
 * Borrows: name.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield; SKUA_E_NAME; SKUA_E_NAME_LENGTH. */
SKUA_API SKUA_NODISCARD int skua_yield_await_name(skua_context *ctx, uint64_t tag, const char *name,
                                                  uint64_t timeout_ns);

/* ---- sending and calling by name ---- */

/* Sends a message to the process that has a name.
 * Borrows: name.      Takes: payload, always.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: as skua_send; SKUA_E_NAME; SKUA_E_NAME_LENGTH. */
SKUA_API int skua_send_name(skua_context *ctx, const char *name, skua_payload payload);

/* Calls the process that has a name at this moment (skua/call.h). If nobody has it, the call
 * completes with SKUA_E_NO_PROCESS.
 * Borrows: name.      Takes: payload, always.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_call; SKUA_E_NAME; SKUA_E_NAME_LENGTH. */
SKUA_API SKUA_NODISCARD int skua_yield_call_name(skua_context *ctx, uint64_t tag, const char *name,
                                                 skua_payload payload, uint64_t timeout_ns);

SKUA_END_DECLS

#endif
