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
 * Returns: the error that has ended it: as skua_task_accept; as skua_payload_ref. */
static inline SKUA_NODISCARD int skua_task_serve(skua_context *ctx, skua_socket listener,
                                                 const skua_process_type *type,
                                                 const skua_payload *input)
{
    int error = 0;
    while (error == 0) {
        skua_spawn_options options;
        skua_payload inputs[2];
        __builtin_memset(&options, 0, sizeof options);
        options.type = type;
        error = skua_task_accept(ctx, listener, SKUA_FOREVER, &options.socket);
        if (error == SKUA_E_NO_MEMORY) {
            error = skua_task_sleep(ctx, SKUA_MILLISECOND);
            continue;
        }
        error = error != 0 ? error : skua_payload_ref(input, &inputs[0]);
        if (error == 0) {
            inputs[1] = skua_payload_u64(0, options.socket.bits);
            options.input = inputs;
            options.input_count = 2;
            if (skua_spawn_with(ctx, &options, NULL) != 0) {
                (void)skua_socket_close(ctx, options.socket);
            }
        }
    }
    return error;
}

SKUA_END_DECLS

#endif
