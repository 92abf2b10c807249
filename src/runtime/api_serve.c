/* SPDX-License-Identifier: MIT */
/* The function of skua/serve.h. Its waits are at the place of whoever called it. */
#include <skua/serve.h>

/* Starts a process that has the socket; closes that if there is none. */
static int start_session(skua_context *ctx, const skua_process_type *type, skua_socket socket,
                         const skua_payload *input)
{
    skua_payload inputs[2];
    const int error = skua_payload_ref(input, &inputs[0]);
    if (error != 0) {
        return error;
    }
    inputs[1] = skua_payload_u64(0, socket.bits);
    const skua_spawn_options options = {
        .type = type, .input = inputs, .input_count = 2, .socket = socket};
    if (skua_spawn_with(ctx, &options, NULL) != 0) {
        (void)skua_socket_close(ctx, socket);
    }
    return 0;
}

int(skua_task_serve)(skua_context *ctx, skua_socket listener, const skua_process_type *type,
                     const skua_payload *input)
{
    int error = 0;
    if (type == NULL || input == NULL) {
        return SKUA_E_INVALID;
    }
    while (error == 0) {
        skua_socket socket;
        error = (skua_task_accept)(ctx, listener, SKUA_FOREVER, &socket);
        if (error == SKUA_E_NO_MEMORY) {
            error = (skua_task_sleep)(ctx, SKUA_MILLISECOND);
        } else if (error == 0) {
            error = start_session(ctx, type, socket, input);
        }
    }
    return error;
}
