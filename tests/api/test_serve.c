/* SPDX-License-Identifier: MIT */
/* A task that starts a process for each connection. */
#include <skua/serve.h>
#include <stdio.h>
#include <unistd.h>

#include "actor.h"

enum { ANSWER = 77, CLIENTS = 5, SERVER_ENDS = 3, E_FULL = SKUA_E_USER };

/* A session tells its client what it was started with. */
struct session {
    skua_socket socket;
    uint64_t number;
};

static int session_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct session *session = self;
    (void)ctx;
    assert_int_equal(count, 2);
    session->number = skua_payload_to_u64(&input[0]);
    session->socket = skua_payload_to_socket(&input[1]);
    return session->number == 0 ? E_FULL : 0;
}

static int session_main(void *self, skua_context *ctx)
{
    const struct session *session = self;
    return skua_task_write(ctx, session->socket, skua_payload_u64(0, session->number),
                           SKUA_FOREVER);
}

static const skua_process_type session_type = {"session", sizeof(struct session), session_init,
                                               .main = session_main};

struct server {
    skua_socket listener;
    skua_payload input;
};

static int server_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct server *server = self;
    (void)ctx, (void)count;
    server->listener = skua_payload_to_socket(&input[0]);
    server->input = skua_payload_take(&input[1]);
    return 0;
}

static int server_main(void *self, skua_context *ctx)
{
    const struct server *server = self;
    return skua_task_serve(ctx, server->listener, &session_type, &server->input);
}

static void server_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    struct server *server = self;
    (void)ctx, (void)exit;
    skua_payload_drop(&server->input);
}

static const skua_process_type server_type = {"server", sizeof(struct server), server_init,
                                              .main = server_main, .close = server_close};

/* What a client reads of the first eight bytes: 0 if there are none. */
static uint64_t ask(skua_context *ctx, const char *address)
{
    skua_socket socket;
    skua_payload data;
    uint64_t answer = 0;
    assert_int_equal(skua_task_connect(ctx, address, NULL, SKUA_FOREVER, &socket), 0);
    if (skua_task_read_exactly(ctx, socket, sizeof answer, SKUA_FOREVER, &data) == 0 &&
        skua_payload_size(&data) == sizeof answer) {
        memcpy(&answer, skua_payload_data(&data), sizeof answer);
    }
    skua_payload_drop(&data);
    skua_socket_close(ctx, socket);
    return answer;
}

static int run_server(skua_context *ctx, const char *address, skua_payload input, skua_pid *pid)
{
    skua_socket listener;
    assert_int_equal(skua_listen(ctx, address, NULL, &listener), 0);
    skua_payload inputs[] = {skua_payload_u64(0, listener.bits), input};
    const skua_spawn_options options = {.type = &server_type,
                                        .input = inputs,
                                        .input_count = 2,
                                        .socket = listener,
                                        .monitor = true,
                                        .monitor_tag = SERVER_ENDS};
    return skua_spawn_with(ctx, &options, pid);
}

/* How the server has ended, which is all that the customer hears. */
static int await_end(skua_context *ctx)
{
    skua_event *event;
    const int error = skua_task_receive(ctx, &event, SKUA_FOREVER);
    if (error != 0) {
        return error;
    }
    assert_int_equal(event->type, SKUA_EVENT_COMPLETION);
    assert_int_equal(event->tag, SERVER_ENDS);
    return event->error;
}

/* Clients are served one after the other; then the server is cancelled. */
static int customer_main(void *self, skua_context *ctx)
{
    const uint64_t *number = self;
    char address[64];
    skua_pid server;
    (void)snprintf(address, sizeof address, "unix:@skua-serve-%d", (int)getpid());
    int error = run_server(ctx, address, skua_payload_u64(0, *number), &server);
    for (int i = 0; i < CLIENTS && error == 0; i++) {
        assert_int_equal(ask(ctx, address), *number);
    }
    error = error != 0 ? error : skua_cancel(ctx, server, 0);
    return error != 0 ? error : await_end(ctx);
}

static int customer_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx, (void)count;
    *(uint64_t *)self = skua_payload_to_u64(&input[0]);
    return 0;
}

static const skua_process_type customer_type = {"customer", sizeof(uint64_t), customer_init,
                                                .main = customer_main};

static int run_customer(uint64_t number)
{
    skua_exit exit = {0};
    const skua_payload input = skua_payload_u64(0, number);
    assert_int_equal(skua_process_run(world_runtime(), &customer_type, input, &exit), 0);
    return exit.error;
}

TEST(every_connection_gets_a_process_with_the_input_and_the_socket)
{
    world_open();
    assert_int_equal(run_customer(ANSWER), SKUA_E_CANCELLED);
}

TEST(connection_without_a_process_is_closed)
{
    world_open();
    assert_int_equal(run_customer(0), SKUA_E_CANCELLED);
}
