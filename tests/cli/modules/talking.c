/* SPDX-License-Identifier: MIT */
/* A server for those who look at its sockets from outside: it listens on a port of 127.0.0.1, and
 * has a session for each connection, which echoes what comes. A caller is connected to it, too. The
 * root says "ready" and the PID of the listener when all of them are there. */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>

static char address[SKUA_ADDRESS_SIZE]; /* written once, before the caller starts */

/* ---- a session ---- */

static int session_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(skua_socket *)self = skua_payload_to_socket(&input[0]);
    return 0;
}

static int session_main(void *self, skua_context *ctx)
{
    const skua_socket socket = *(const skua_socket *)self;
    skua_payload data;
    int error = skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
    while (error == 0 && skua_payload_size(&data) > 0) {
        error = skua_task_write(ctx, socket, data, SKUA_FOREVER);
        error =
            error != 0 ? error : skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
    }
    return error == SKUA_E_RESET ? 0 : error;
}

static const skua_process_type session_type = {.name = "session",
                                               .state_size = sizeof(skua_socket),
                                               .init = session_init,
                                               .main = session_main};

/* ---- the one who calls: it says something, and waits for more than will come ---- */

static int caller_main(void *self, skua_context *ctx)
{
    const skua_pid root = *(const skua_pid *)self;
    skua_socket socket;
    skua_payload data;
    int error = skua_task_connect(ctx, address, NULL, SKUA_FOREVER, &socket);
    error = error != 0 ? error : skua_task_write(ctx, socket, skua_payload_u64(0, 7), SKUA_FOREVER);
    error = error != 0 ? error : skua_task_read_exactly(ctx, socket, 8, SKUA_FOREVER, &data);
    error = error != 0 ? error : skua_send(ctx, root, skua_nothing());
    error = error != 0 ? error : skua_task_read(ctx, socket, 1, SKUA_FOREVER, &data);
    return error;
}

static int caller_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    return skua_payload_get_pid(&input[0], 0, self);
}

static const skua_process_type caller_type = {
    .name = "caller", .state_size = sizeof(skua_pid), .init = caller_init, .main = caller_main};

/* ---- the listener ---- */

static int start_session(skua_context *ctx, skua_socket socket)
{
    skua_payload input = skua_payload_u64(0, socket.bits);
    const skua_spawn_options options = {
        .type = &session_type, .socket = socket, .input = &input, .input_count = 1};
    return skua_spawn_with(ctx, &options, NULL);
}

static int listener_main(void *self, skua_context *ctx)
{
    const skua_pid root = *(const skua_pid *)self;
    skua_socket listener;
    skua_socket socket;
    skua_socket_snapshot snapshot;
    int error = skua_listen(ctx, "127.0.0.1:0", NULL, &listener);
    error = error != 0 ? error : skua_socket_info(ctx, listener, &snapshot);
    if (error == 0) {
        snprintf(address, sizeof address, "%s", snapshot.local);
        error = skua_spawn(ctx, &caller_type, skua_payload_pid(0, root), NULL);
    }
    while (error == 0) {
        error = skua_task_accept(ctx, listener, SKUA_FOREVER, &socket);
        error = error != 0 ? error : start_session(ctx, socket);
    }
    return error;
}

static const skua_process_type listener_type = {
    .name = "listener", .state_size = sizeof(skua_pid), .init = caller_init, .main = listener_main};

/* ---- the root ---- */

static int root_main(void *self, skua_context *ctx)
{
    skua_event *event;
    skua_pid listener;
    skua_payload input = skua_payload_pid(0, skua_self(ctx));
    const skua_spawn_options options = {
        .type = &listener_type, .name = "door", .input = &input, .input_count = 1};
    (void)self;
    int error = skua_spawn_with(ctx, &options, &listener);
    error = error != 0 ? error : skua_task_receive(ctx, &event, SKUA_FOREVER);
    if (error == 0) {
        printf("ready %016" PRIx64 "\n", listener.bits);
        fflush(stdout);
        error = skua_task_receive(ctx, &event, SKUA_FOREVER);
    }
    return error == SKUA_E_CANCELLED ? 0 : error;
}

static const char *const methods[] = {"talk", NULL};
static const skua_process_type root_type = {.name = "root", .methods = methods, .main = root_main};

SKUA_MODULE(.name = "talking", .root = &root_type);
