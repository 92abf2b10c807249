/* SPDX-License-Identifier: MIT */
/* What the clients do. */
#include "crowd.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNANSWERED_MAX 64 /* clients that connect side by side where a rush is not the point */
#define RUSH           16 /* clients that act before answers are looked for, where it is */
#define BULK_PIECE     ((size_t)256 * 1024)

/* Connects everybody, gently. All have had an answer at the end. */
static void gather(struct crowd *crowd)
{
    while (crowd->answered < crowd->options->connections) {
        while (crowd->opened < crowd->options->connections &&
               crowd->opened - crowd->answered < UNANSWERED_MAX) {
            crowd_connect(crowd);
        }
        crowd_poll(crowd, true, NULL);
    }
}

static void start_clock(struct crowd *crowd)
{
    crowd->timed = true;
    crowd->result->cpu_ns = server_cpu_ns(crowd->options->server);
    crowd->result->wall_ns = now_ns();
}

static void stop_clock(struct crowd *crowd)
{
    crowd->timed = false;
    crowd->result->wall_ns = now_ns() - crowd->result->wall_ns;
    crowd->result->cpu_ns = server_cpu_ns(crowd->options->server) - crowd->result->cpu_ns;
}

static void send_from_all(struct crowd *crowd, crowd_answer_fn *answer)
{
    for (uint32_t i = 0; i < crowd->opened; i++) {
        crowd_send(crowd, &crowd->clients[i]);
        if (i % RUSH == RUSH - 1) {
            crowd_poll(crowd, false, answer);
        }
    }
}

/* ---- echo: each client sends its next message when it has the answer to the last ---- */

void load_echo(const struct load_options *options, struct load_result *result)
{
    struct crowd crowd;
    crowd_open(&crowd, options, result);
    gather(&crowd);
    send_from_all(&crowd, crowd_send);
    crowd_run(&crowd, crowd.answered + options->count / 5, crowd_send); /* to warm up */

    const uint64_t before = crowd.answered;
    start_clock(&crowd);
    crowd_run(&crowd, before + options->count, crowd_send);
    stop_clock(&crowd);
    result->answered = crowd.answered - before;
    crowd_run(&crowd, crowd.sent, NULL); /* nobody is left without an answer */
    result->total = crowd.answered;
    crowd_close(&crowd);
}

/* ---- idle: memory of connections that had an echo each; then all wake at once ---- */

static void say_hello(const struct load_options *options, struct load_result *result)
{
    struct load_options one = *options;
    struct crowd crowd;
    one.connections = 1;
    crowd_open(&crowd, &one, result);
    gather(&crowd);
    crowd_close(&crowd);
}

/* What each connection takes beyond what the server had before. */
static double memory_of_each(const struct load_options *options, uint64_t before)
{
    const double more = (double)server_memory_bytes(options->server) - (double)before;
    return more / options->connections;
}

void load_idle(const struct load_options *options, struct load_result *result)
{
    struct crowd crowd;
    say_hello(options, result); /* what the first connection needs is not counted */
    const uint64_t before = server_memory_bytes(options->server);
    crowd_open(&crowd, options, result);
    gather(&crowd);
    result->bytes = memory_of_each(options, before);

    start_clock(&crowd);
    send_from_all(&crowd, NULL);
    crowd_run(&crowd, crowd.sent, NULL);
    stop_clock(&crowd);
    result->answered = options->connections;
    result->total = crowd.answered;
    result->bytes_after = memory_of_each(options, before);
    crowd_close(&crowd);
}

/* ---- storm: all connect as fast as they can, send, and stay ---- */

void load_storm(const struct load_options *options, struct load_result *result)
{
    struct crowd crowd;
    say_hello(options, result);
    crowd_open(&crowd, options, result);
    start_clock(&crowd);
    while (crowd.opened < options->connections) {
        for (int i = 0; i < RUSH && crowd.opened < options->connections; i++) {
            crowd_connect(&crowd);
        }
        crowd_poll(&crowd, false, NULL);
    }
    crowd_run(&crowd, options->connections, NULL);
    stop_clock(&crowd);
    result->answered = crowd.answered;
    result->total = crowd.answered;
    crowd_close(&crowd);
}

/* ---- bulk: one connection, one direction; the server answers with the number of bytes ---- */

static int connect_blocking(const struct load_options *options)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(options->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        fail("connect");
    }
    return fd;
}

static void pour(int fd, uint64_t bytes)
{
    static char piece[BULK_PIECE];
    memset(piece, 'x', sizeof piece);
    while (bytes > 0) {
        const size_t size = bytes < sizeof piece ? (size_t)bytes : sizeof piece;
        const ssize_t sent = send(fd, piece, size, MSG_NOSIGNAL);
        if (sent < 0) {
            fail("send");
        }
        bytes -= (uint64_t)sent;
    }
    if (shutdown(fd, SHUT_WR) != 0) {
        fail("shutdown");
    }
}

void load_bulk(const struct load_options *options, struct load_result *result)
{
    const int fd = connect_blocking(options);
    result->cpu_ns = server_cpu_ns(options->server);
    result->wall_ns = now_ns();
    pour(fd, options->bytes);
    const ssize_t size = recv(fd, &result->answered, sizeof result->answered, MSG_WAITALL);
    result->wall_ns = now_ns() - result->wall_ns;
    result->cpu_ns = server_cpu_ns(options->server) - result->cpu_ns;
    expect_right(size == sizeof result->answered, "the server does not say how much has come");
    expect_right(result->answered == options->bytes, "bytes are missing");
    close(fd);
}
