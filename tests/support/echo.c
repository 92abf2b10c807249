/* SPDX-License-Identifier: MIT */
#include "echo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64

static struct {
    char address[SKUA_ADDRESS_SIZE];
    int fds[CONNECTIONS_MAX]; /* of the test; -1: closed */
    size_t count;
    atomic_bool is_listening; /* the address is there */
    atomic_bool has_dialed;
} echo;

/* ---- the processes ---- */

static int echoer_main(void *self, skua_context *ctx)
{
    const skua_socket socket = *(const skua_socket *)self;
    skua_payload data;
    int error = skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
    while (error == 0 && skua_payload_size(&data) > 0) {
        error = skua_task_write(ctx, socket, data, SKUA_FOREVER);
        if (error == 0) {
            error = skua_task_read(ctx, socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
        }
    }
    return error == SKUA_E_RESET ? 0 : error;
}

static int take_socket(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(skua_socket *)self = skua_payload_to_socket(&input[0]);
    return 0;
}

static const skua_process_type echoer_type = {
    .name = "echoer", .state_size = sizeof(skua_socket), .init = take_socket, .main = echoer_main};

static int start_echoer(skua_context *ctx, skua_socket socket)
{
    skua_payload input = skua_payload_u64(0, socket.bits);
    const skua_spawn_options options = {
        .type = &echoer_type, .socket = socket, .input = &input, .input_count = 1};
    return skua_spawn_with(ctx, &options, NULL);
}

static int server_main(void *self, skua_context *ctx)
{
    skua_socket listener;
    skua_socket socket;
    skua_socket_snapshot snapshot;
    (void)self;
    int error = skua_listen(ctx, "127.0.0.1:0", NULL, &listener);
    error = error != 0 ? error : skua_socket_info(ctx, listener, &snapshot);
    if (error == 0) {
        memcpy(echo.address, snapshot.local, sizeof echo.address);
        atomic_store(&echo.is_listening, true);
    }
    while (error == 0) {
        error = skua_task_accept(ctx, listener, SKUA_FOREVER, &socket);
        error = error != 0 ? error : start_echoer(ctx, socket);
    }
    return error;
}

static int dialer_main(void *self, skua_context *ctx)
{
    skua_socket socket;
    skua_payload data = skua_nothing();
    (void)self;
    int error = skua_task_connect(ctx, echo.address, NULL, SKUA_FOREVER, &socket);
    error = error != 0 ? error : skua_task_write(ctx, socket, skua_payload_u64(0, 1), SKUA_FOREVER);
    error = error != 0 ? error
                       : skua_task_read_exactly(ctx, socket, sizeof(uint64_t), SKUA_FOREVER, &data);
    skua_payload_drop(&data);
    atomic_store(&echo.has_dialed, error == 0);
    error = error != 0 ? error : skua_task_read(ctx, socket, 1, SKUA_FOREVER, &data);
    skua_payload_drop(&data);
    return error;
}

/* ---- the test's thread ---- */

static void close_connections(void)
{
    for (size_t i = 0; i < echo.count; i++) {
        if (echo.fds[i] >= 0) {
            assert_int_equal(close(echo.fds[i]), 0);
        }
    }
    echo.count = 0;
}

static bool is_set(void *flag)
{
    return atomic_load((atomic_bool *)flag);
}

static skua_pid submit(const skua_process_type *type)
{
    skua_pid pid;
    assert_int_equal(skua_process_submit(world_runtime(), type, skua_nothing(), &pid), 0);
    return pid;
}

skua_pid echo_start(void)
{
    static const skua_process_type server_type = {.name = "server", .main = server_main};
    atomic_store(&echo.is_listening, false);
    atomic_store(&echo.has_dialed, false);
    echo.count = 0;
    test_at_end(close_connections);
    const skua_pid pid = submit(&server_type);
    wait_until(is_set, &echo.is_listening, "the server listens");
    return pid;
}

skua_pid echo_dial(void)
{
    static const skua_process_type dialer_type = {.name = "dialer", .main = dialer_main};
    const skua_pid pid = submit(&dialer_type);
    wait_until(is_set, &echo.has_dialed, "the dialer has got its answer");
    return pid;
}

const char *echo_address(void)
{
    return echo.address;
}

int echo_connect(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && echo.count < CONNECTIONS_MAX);
    to.sin_port = htons((uint16_t)strtoul(strchr(echo.address, ':') + 1, NULL, 10));
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    echo.fds[echo.count++] = fd;
    echo_exchange(fd, 1);
    return fd;
}

void echo_close(int fd)
{
    for (size_t i = 0; i < echo.count; i++) {
        if (echo.fds[i] == fd) {
            echo.fds[i] = -1;
        }
    }
    assert_int_equal(close(fd), 0);
}

void echo_own_address(int fd, char text[SKUA_ADDRESS_SIZE])
{
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    (void)snprintf(text, SKUA_ADDRESS_SIZE, "127.0.0.1:%u", ntohs(own.sin_port));
}

void echo_exchange(int fd, size_t count)
{
    unsigned char *sent = test_alloc(count);
    unsigned char *got = test_alloc(count);
    memset(sent, 'x', count);
    assert_int_equal(send(fd, sent, count, MSG_NOSIGNAL), count);
    assert_int_equal(recv(fd, got, count, MSG_WAITALL), count);
    assert_memory_equal(sent, got, count);
}
