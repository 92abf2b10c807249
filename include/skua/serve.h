/* SPDX-License-Identifier: MIT */
/* The life of a task that does nothing but accept connections. */
#ifndef SKUA_SERVE_H
#define SKUA_SERVE_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/socket.h>
#include <skua/task.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Accepts connections for ever, and starts a process for each, which has the socket. Its init gets
 * two inputs: one more of `input`, and the socket, for skua_payload_to_socket. A connection for
 * which no process can be started is closed; if there is no memory to accept one, the task waits a
 * moment.
 * Borrows: input (shared, inside, static or empty, as skua_payload_ref wants it).
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: the error that has ended it: as skua_task_accept; as skua_payload_ref;
 *          SKUA_E_INVALID (null). */
SKUA_API SKUA_NODISCARD int skua_task_serve(skua_context *ctx, skua_socket listener,
                                            const skua_process_type *type,
                                            const skua_payload *input);
#define skua_task_serve(ctx, ...) SKUA_WAIT_(skua_task_serve, SKUA_AT_(ctx), __VA_ARGS__)

SKUA_END_DECLS

#endif
