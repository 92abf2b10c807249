/* SPDX-License-Identifier: MIT */
/* `run WORKERS`: the server of `make bench-net` on libuv. Serves on loopback until its standard
 * input ends. Prints `echo PORT` and `sink PORT`: one sends everything back, the other reads to the
 * end and answers with the number of bytes.
 *
 * Each worker is a thread with a loop and listeners of its own (SO_REUSEPORT). A loop has one
 * buffer for all its reads; an echo is tried at once (uv_try_write), and only what is not taken is
 * copied and queued, while the connection stops reading. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

#define BUFFER_SIZE ((size_t)64 * 1024)
#define WORKERS_MAX 256
#define BACKLOG     4096

struct worker {
    uv_loop_t loop;
    uv_tcp_t listeners[2]; /* echo, sink */
    char buffer[BUFFER_SIZE];
};

struct connection {
    uv_tcp_t tcp;
    uint64_t received; /* sink */
};

struct rest {
    uv_write_t request;
    char data[];
};

static void expect_ok(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "libuv: %s\n", what);
        exit(1);
    }
}

/* ---- connections ---- */

static void free_connection(uv_handle_t *handle)
{
    free(handle);
}

static void end(uv_stream_t *stream)
{
    if (!uv_is_closing((uv_handle_t *)stream)) {
        uv_close((uv_handle_t *)stream, free_connection);
    }
}

static void lend_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct worker *worker = handle->loop->data;
    (void)suggested;
    *buffer = uv_buf_init(worker->buffer, BUFFER_SIZE);
}

static void on_echo(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer);

static void on_rest_written(uv_write_t *request, int error)
{
    uv_stream_t *stream = request->handle;
    free(request);
    if (error != 0 || uv_read_start(stream, lend_buffer, on_echo) != 0) {
        end(stream);
    }
}

/* The peer is slow: queue what it has not taken, and read on when it has. */
static void queue_rest(uv_stream_t *stream, const char *data, size_t size)
{
    struct rest *rest = malloc(sizeof *rest + size);
    expect_ok(rest != NULL, "out of memory");
    memcpy(rest->data, data, size);
    const uv_buf_t buffer = uv_buf_init(rest->data, (unsigned)size);
    uv_read_stop(stream);
    if (uv_write(&rest->request, stream, &buffer, 1, on_rest_written) != 0) {
        free(rest);
        end(stream);
    }
}

static void on_echo(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    if (size <= 0) {
        if (size < 0) { /* the end of input, too */
            end(stream);
        }
        return;
    }
    const uv_buf_t answer = uv_buf_init(buffer->base, (unsigned)size);
    const int written = uv_try_write(stream, &answer, 1);
    if (written < 0 && written != UV_EAGAIN) {
        end(stream);
    } else if (written < size) {
        const size_t taken = written > 0 ? (size_t)written : 0;
        queue_rest(stream, buffer->base + taken, (size_t)size - taken);
    }
}

static void on_sink(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct connection *connection = (struct connection *)stream;
    (void)buffer;
    if (size >= 0) {
        connection->received += (uint64_t)size;
        return;
    }
    if (size == UV_EOF) {
        const uv_buf_t answer =
            uv_buf_init((char *)&connection->received, sizeof connection->received);
        (void)uv_try_write(stream, &answer, 1); /* there is room: it is the first */
    }
    end(stream);
}

static void on_connection(uv_stream_t *listener, int error)
{
    struct worker *worker = listener->loop->data;
    expect_ok(error == 0, "a connection cannot be accepted");
    struct connection *connection = calloc(1, sizeof *connection);
    expect_ok(connection != NULL, "out of memory");
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    expect_ok(uv_tcp_init(&worker->loop, &connection->tcp) == 0, "uv_tcp_init");
    const bool is_echo = listener == (uv_stream_t *)&worker->listeners[0];
    if (uv_accept(listener, stream) != 0 ||
        uv_read_start(stream, lend_buffer, is_echo ? on_echo : on_sink) != 0) {
        end(stream);
    }
}

/* ---- workers ---- */

/* Listens on *port, or on any if that is 0, and then says which. */
static void listen_on(struct worker *worker, uv_tcp_t *listener, in_port_t *port)
{
    const int yes = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    expect_ok(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) == 0 &&
                  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 &&
                  bind(fd, (const struct sockaddr *)&address, size) == 0 &&
                  getsockname(fd, (struct sockaddr *)&address, &size) == 0,
              "bind");
    *port = ntohs(address.sin_port);
    expect_ok(uv_tcp_init(&worker->loop, listener) == 0 && uv_tcp_open(listener, fd) == 0 &&
                  uv_listen((uv_stream_t *)listener, BACKLOG, on_connection) == 0,
              "uv_listen");
}

static void work(void *arg)
{
    struct worker *worker = arg;
    uv_run(&worker->loop, UV_RUN_DEFAULT);
}

static void start_worker(in_port_t ports[2])
{
    uv_thread_t thread;
    struct worker *worker = calloc(1, sizeof *worker);
    expect_ok(worker != NULL && uv_loop_init(&worker->loop) == 0, "uv_loop_init");
    worker->loop.data = worker;
    for (int i = 0; i < 2; i++) {
        listen_on(worker, &worker->listeners[i], &ports[i]);
    }
    expect_ok(uv_thread_create(&thread, work, worker) == 0, "uv_thread_create");
}

int main(int argc, char **argv)
{
    in_port_t ports[2] = {0};
    char byte = 0;
    const long workers = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (workers < 1 || workers > WORKERS_MAX) {
        fputs("usage: run WORKERS\n", stderr);
        return 2;
    }
    for (long i = 0; i < workers; i++) {
        start_worker(ports);
    }
    printf("echo %d\nsink %d\n", ports[0], ports[1]);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    _exit(0);
}
