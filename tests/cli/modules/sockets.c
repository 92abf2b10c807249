/* SPDX-License-Identifier: MIT */
/* A module whose processes talk through sockets, in the simulator from host to host. Whatever goes
 * wrong there, its root ends well. */
#include <skua/skua.h>

static int server_main(void *self, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    skua_payload data;
    (void)self;
    int error;
    while ((error = skua_listen(ctx, "0.0.0.0:7", NULL, &listener)) == SKUA_E_DESCRIPTORS) {
        if (skua_task_sleep(ctx, SKUA_SECOND) != 0) {
            return SKUA_E_CANCELLED;
        }
    }
    while (error == 0) {
        error = skua_task_accept(ctx, listener, SKUA_FOREVER, &socket);
        int gone = error;
        while (gone == 0) {
            gone = skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_SECOND, &data);
            if (gone == 0 && skua_payload_size(&data) == 0) {
                gone = SKUA_E_CLOSED;
            }
            if (gone == 0) {
                gone = skua_task_write(ctx, socket, data, SKUA_SECOND);
            }
        }
        (void)skua_socket_close(ctx, socket);
    }
    return error;
}

static const skua_process_type server_type = {.name = "server", .main = server_main};

static int root_main(void *self, skua_context *ctx)
{
    skua_socket socket;
    skua_payload data;
    (void)self;
    int error = skua_sim_host_submit(skua_runtime_of(ctx), 2, &server_type, skua_nothing(), NULL);
    for (int i = 0; error == 0 && i < 3; i++) {
        if (skua_task_sleep(ctx, SKUA_SECOND) == 0 &&
            skua_task_connect(ctx, "10.0.0.2:7", NULL, SKUA_SECOND, &socket) == 0) {
            if (skua_task_write(ctx, socket, skua_payload_u64(0, 1), SKUA_SECOND) == 0) {
                (void)!skua_task_read_exactly(ctx, socket, 8, SKUA_SECOND, &data);
                skua_payload_drop(&data);
            }
            (void)skua_socket_close(ctx, socket);
        }
    }
    return error;
}

static const skua_process_type root_type = {.name = "root", .main = root_main};

SKUA_MODULE(.name = "sockets", .about = "talks through sockets", .root = &root_type);
