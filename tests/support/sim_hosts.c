/* SPDX-License-Identifier: MIT */
#include "sim_hosts.h"

#include <skua/task.h>

unsigned char sim_byte(uint64_t n)
{
    return (unsigned char)(n % 251);
}

struct errand *host_start_with(uint32_t host, errand_fn *function, void *arg)
{
    struct errand *errand = errand_new(function);
    errand->host = host;
    errand->arg = arg;
    errand_submit(errand);
    return errand;
}

struct errand *host_start(uint32_t host, errand_fn *function)
{
    return host_start_with(host, function, NULL);
}

void assert_ends(struct errand *errand, int error)
{
    while (errand->closes < errand->inits && skua_sim_step(world_runtime()) == 1) {
    }
    assert_int_equal(errand->closes, errand->inits);
    assert_int_equal(errand->exit_error, error);
}

/* ---- the server ---- */

static int keep_socket(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    skua_socket *socket = self;
    *socket = count > 0 ? skua_payload_to_socket(&input[0]) : (skua_socket){0};
    return 0;
}

/* To the end of input, or until something fails. */
static int echo(void *self, skua_context *ctx)
{
    const skua_socket *socket = self;
    skua_payload data;
    int error = skua_task_read(ctx, *socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
    while (error == 0 && skua_payload_size(&data) > 0) {
        error = skua_task_write(ctx, *socket, data, SKUA_FOREVER);
        if (error == 0) {
            error = skua_task_read(ctx, *socket, SKUA_READ_MAX, SKUA_FOREVER, &data);
        }
    }
    if (error == 0) {
        skua_payload_drop(&data);
    }
    return error;
}

static const skua_process_type echo_type = {
    .name = "echo", .state_size = sizeof(skua_socket), .init = keep_socket, .main = echo};

static int start_echo(skua_context *ctx, skua_socket socket)
{
    skua_payload input = skua_payload_u64(0, socket.bits);
    const int error = skua_spawn_with(
        ctx,
        &(skua_spawn_options){
            .type = &echo_type, .input = &input, .input_count = 1, .socket = socket},
        NULL);
    if (error != 0) {
        (void)skua_socket_close(ctx, socket);
    }
    return error;
}

int serves_echoes(struct errand *errand, skua_context *ctx)
{
    (void)errand;
    skua_socket listener;
    skua_socket socket;
    int error;
    while ((error = skua_listen(ctx, "0.0.0.0:80", NULL, &listener)) == SKUA_E_DESCRIPTORS) {
    }
    while (error == 0 || error == SKUA_E_NO_MEMORY) {
        error = skua_task_accept(ctx, listener, SKUA_FOREVER, &socket);
        if (error == 0) {
            (void)start_echo(ctx, socket);
        }
    }
    return error;
}

/* ---- clients ---- */

int connect_anyhow(skua_context *ctx, const char *address, skua_socket *socket)
{
    int error;
    do {
        error = skua_task_connect(ctx, address, NULL, SKUA_FOREVER, socket);
    } while (error == SKUA_E_REFUSED || error == SKUA_E_DESCRIPTORS || error == SKUA_E_UNREACHABLE);
    return error;
}

int write_numbers(skua_context *ctx, skua_socket socket, uint64_t *from, size_t size,
                  uint64_t timeout_ns)
{
    unsigned char *bytes;
    skua_payload payload;
    int error = skua_payload_alloc(ctx, 0, size, (void **)&bytes, &payload);
    if (error != 0) {
        return error;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = sim_byte(*from + i);
    }
    error = skua_task_write(ctx, socket, payload, timeout_ns);
    *from += error == 0 ? size : 0;
    return error;
}

int read_numbers(struct errand *errand, skua_context *ctx, skua_socket socket, uint64_t *from,
                 size_t size, uint64_t timeout_ns)
{
    const uint64_t end = *from + size;
    while (*from < end) {
        skua_payload data;
        const int error = skua_task_read(ctx, socket, (size_t)(end - *from), timeout_ns, &data);
        if (error != 0) {
            return error;
        }
        const unsigned char *bytes = skua_payload_data(&data);
        const size_t got = skua_payload_size(&data);
        for (size_t i = 0; i < got; i++) {
            CHECK(errand, bytes[i] == sim_byte(*from + i));
        }
        *from += got;
        skua_payload_drop(&data);
        if (got == 0) {
            break;
        }
    }
    return 0;
}
