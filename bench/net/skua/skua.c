/* SPDX-License-Identifier: MIT */
/* The server of `make bench-net` on Skua: a process for each connection.
 *
 *   net_skua WORKERS
 *
 * Serves on loopback until its standard input ends. Prints `echo PORT` and `sink PORT`: one sends
 * everything back, the other reads to the end and answers with the number of bytes. */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum tag { ACCEPTED = 1, GOT, WRITTEN, ANSWERED };

/* An echo waits for one of its answers after so many bytes: enough that short ones need not, little
 * enough that a peer that does not read is not read from. */
#define UNAWAITED_MAX ((size_t)256 * 1024)

/* ---- a connection ---- */

struct session {
    skua_socket socket;
    uint64_t received; /* sink */
    size_t unawaited;  /* echo: bytes of answers since it has waited for one */
};

static int session_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct session *session = self;
    (void)ctx, (void)count;
    session->socket = skua_payload_to_socket(&input[0]);
    return 0;
}

static int read_more(const struct session *session, skua_context *ctx)
{
    return skua_yield_read(ctx, GOT, session->socket, SKUA_READ_MAX, SKUA_FOREVER);
}

/* Peers come and go: that one has broken off is no error of this program. */
static int leave(skua_context *ctx)
{
    (void)skua_done(ctx, skua_nothing());
    return 0;
}

static int answer(struct session *session, skua_context *ctx, skua_payload *payload)
{
    session->unawaited += skua_payload_size(payload);
    if (session->unawaited > UNAWAITED_MAX) {
        session->unawaited = 0;
        return skua_yield_write_from(ctx, WRITTEN, session->socket, payload, SKUA_FOREVER);
    }
    const int error = skua_socket_write_from(ctx, session->socket, payload);
    return error != 0 ? error : read_more(session, ctx);
}

static int echo_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct session *session = self;
    (void)count; /* one yield is open at a time, and nobody sends messages */
    if (events->error != 0) {
        return leave(ctx);
    }
    if (events->type == SKUA_EVENT_START || events->tag == WRITTEN) {
        return read_more(session, ctx);
    }
    if (skua_payload_size(&events->payload) == 0) {
        return leave(ctx);
    }
    return answer(session, ctx, &events->payload);
}

static int sink_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct session *session = self;
    (void)count;
    if (events->error != 0 || events->tag == ANSWERED) {
        return leave(ctx);
    }
    const size_t size = skua_payload_size(&events->payload);
    if (events->type == SKUA_EVENT_START || size > 0) {
        session->received += size;
        return read_more(session, ctx);
    }
    return skua_yield_write(ctx, ANSWERED, session->socket, skua_payload_u64(0, session->received),
                            SKUA_FOREVER);
}

static const skua_process_type echo_type = {"echo", sizeof(struct session), .init = session_init,
                                            .step = echo_step};
static const skua_process_type sink_type = {"sink", sizeof(struct session), .init = session_init,
                                            .step = sink_step};

/* ---- who accepts them ---- */

struct acceptor {
    const skua_process_type *type; /* of its sessions */
    skua_socket listener;
};

static int acceptor_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct acceptor *acceptor = self;
    (void)ctx, (void)count;
    acceptor->type = input[0].as.owned.data;
    return 0;
}

static int open_listener(struct acceptor *acceptor, skua_context *ctx)
{
    skua_socket_snapshot snapshot;
    int error = skua_listen(ctx, "127.0.0.1:0", NULL, &acceptor->listener);
    error = error != 0 ? error : skua_socket_info(ctx, acceptor->listener, &snapshot);
    if (error == 0) {
        printf("%s %s\n", acceptor->type->name, strrchr(snapshot.local, ':') + 1);
        fflush(stdout);
    }
    return error;
}

static int acceptor_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct acceptor *acceptor = self;
    int error = events->error;
    (void)count;
    if (events->type == SKUA_EVENT_START) {
        error = open_listener(acceptor, ctx);
    } else if (error == 0) {
        const skua_socket socket = skua_payload_to_socket(&events->payload);
        error = skua_spawn_with(ctx,
                                &(skua_spawn_options){.type = acceptor->type,
                                                      .input = &events->payload,
                                                      .input_count = 1,
                                                      .socket = socket},
                                NULL);
    }
    return error != 0 ? error : skua_yield_accept(ctx, ACCEPTED, acceptor->listener, SKUA_FOREVER);
}

static const skua_process_type acceptor_type = {"acceptor", sizeof(struct acceptor),
                                                .init = acceptor_init, .step = acceptor_step};

/* ---- the program ---- */

static void print_log(void *context, const skua_log *log)
{
    (void)context;
    fprintf(stderr, "net_skua: %s\n", log->text);
}

static int start(skua_runtime *runtime, const skua_process_type *type)
{
    const skua_payload input = skua_payload_pointer(0, (void *)(uintptr_t)type, NULL);
    return skua_process_submit(runtime, &acceptor_type, input, NULL);
}

static void wait_for_end_of_input(void)
{
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

int main(int argc, char **argv)
{
    skua_runtime *runtime = NULL;
    const long workers = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (workers < 1 || workers > SKUA_WORKERS_MAX) {
        fputs("usage: net_skua WORKERS\n", stderr);
        return 2;
    }
    const skua_runtime_config config = {.worker_count = (uint32_t)workers, .on_log = print_log};
    int error = skua_runtime_create(&runtime, &config);
    error = error != 0 ? error : skua_runtime_start(runtime);
    error = error != 0 ? error : start(runtime, &echo_type);
    error = error != 0 ? error : start(runtime, &sink_type);
    if (error != 0) {
        fprintf(stderr, "net_skua: %s\n", skua_error_text(error));
        return 1;
    }
    wait_for_end_of_input();
    (void)skua_runtime_stop(runtime, SKUA_SECOND);
    (void)skua_runtime_destroy(runtime);
    return 0;
}
