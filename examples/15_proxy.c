/* SPDX-License-Identifier: MIT */
/* A proxy: what comes to a port goes to another address, and back.
 *
 *   skua run 15_proxy.so -- PORT TARGET [CONNECTIONS]      as 8080 127.0.0.1:80; 100 connections
 *
 * A relay is a task with two sockets. It reads from one only when the other has taken what it read
 * before: that bounds what is buffered in each direction, and makes the faster side wait. The end
 * of input is passed on, in each direction for itself; if one side breaks off, so does the other.
 * While there are as many relays as there may be, new connections wait to be accepted. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK   ((size_t)32 << 10) /* bytes that are buffered in each direction */
#define IDLE    (60 * SKUA_SECOND) /* without a byte in either direction: the end */
#define CONNECT (5 * SKUA_SECOND)  /* for the target to answer */

SKUA_MESSAGE(start, 0, char target[SKUA_ADDRESS_SIZE]; skua_socket socket;);

static int relay_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx, (void)count;
    return start_get(&input[0], self);
}

static int relay_main(void *self, skua_context *ctx)
{
    const struct start *start = self;
    skua_socket sides[2] = {start->socket};
    skua_event *event;
    int open = 2, error = skua_task_connect(ctx, start->target, NULL, CONNECT, &sides[1]);
    for (uint64_t side = 0; side < 2 && error == 0; side++) {
        error = skua_yield_read(ctx, side, sides[side], CHUNK, SKUA_FOREVER);
    }
    while (error == 0 && open > 0 && (error = skua_task_receive(ctx, &event, IDLE)) == 0) {
        const uint64_t side = event->tag % 2; /* where the bytes come from */
        if (event->error != 0) {
            error = event->error;
        } else if (event->tag >= 2) { /* they have been written */
            error = skua_yield_read(ctx, side, sides[side], CHUNK, SKUA_FOREVER);
        } else if (skua_payload_size(&event->payload) > 0) {
            error = skua_yield_write(ctx, side + 2, sides[1 - side],
                                     skua_payload_take(&event->payload), SKUA_FOREVER);
        } else {
            error = skua_socket_shutdown(ctx, sides[1 - side]);
            open--;
        }
    }
    return error;
}

static const skua_process_type relay_type = {"relay", sizeof(struct start), relay_init,
                                             .main = relay_main, .stack_size = 16 << 10};

/* ---- the server ---- */

enum { ACCEPTED, ENDED };

struct server {
    struct start start;
    char address[SKUA_ADDRESS_SIZE];
    long free; /* relays that may still be started */
};

static int server_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct server *server = self;
    (void)ctx;
    if (count < 2) {
        fprintf(stderr, "usage: skua run 15_proxy.so -- PORT TARGET [CONNECTIONS]\n");
        return SKUA_E_INVALID;
    }
    (void)snprintf(server->address, sizeof server->address, "127.0.0.1:%s",
                   (const char *)skua_payload_data(&input[0]));
    (void)snprintf(server->start.target, sizeof server->start.target, "%s",
                   (const char *)skua_payload_data(&input[1]));
    server->free = count > 2 ? strtol(skua_payload_data(&input[2]), NULL, 10) : 100;
    return 0;
}

static void start_relay(struct server *server, skua_context *ctx, skua_socket socket)
{
    skua_payload input;
    const skua_spawn_options options = {.type = &relay_type,
                                        .input = &input,
                                        .input_count = 1,
                                        .socket = socket,
                                        .monitor = true,
                                        .monitor_tag = ENDED};
    server->start.socket = socket;
    int error = start_payload(skua_runtime_of(ctx), server->start, &input);
    error = error != 0 ? error : skua_spawn_with(ctx, &options, NULL);
    if (error == 0) {
        server->free--;
    } else {
        skua_socket_close(ctx, socket);
    }
}

static int server_main(void *self, skua_context *ctx)
{
    struct server *server = self;
    skua_socket_snapshot snapshot;
    skua_socket listener;
    skua_event *event;
    bool accepts = false;
    int error = skua_listen(ctx, server->address, NULL, &listener);
    error = error != 0 ? error : skua_socket_info(ctx, listener, &snapshot);
    if (error == 0) {
        printf("listening at %s\n", snapshot.local);
        (void)fflush(stdout);
    }
    while (error == 0) {
        if (!accepts && server->free > 0) {
            error = skua_yield_accept(ctx, ACCEPTED, listener, SKUA_FOREVER);
            accepts = true;
        }
        error = error != 0 ? error : skua_task_receive(ctx, &event, SKUA_FOREVER);
        if (error == 0 && event->tag == ENDED) {
            server->free++;
        } else if (error == 0) {
            accepts = false;
            if (event->error == 0) {
                start_relay(server, ctx, skua_payload_to_socket(&event->payload));
            } else if (event->error != SKUA_E_NO_MEMORY) { /* without it, one connection is lost */
                error = event->error;
            }
        }
    }
    return error;
}

static const skua_process_type server_type = {"server", sizeof(struct server), server_init,
                                              .main = server_main};
static const skua_process_type *const types[] = {&relay_type, NULL};

SKUA_MODULE(.name = "proxy", .about = "passes connections on", .root = &server_type,
            .types = types);
