/* SPDX-License-Identifier: MIT */
/* The server of `make bench-net` in plain C, as the fastest way that epoll can be used: what the
 * others are compared with.
 *
 *   net_raw WORKERS
 *
 * Serves on loopback until its standard input ends. Prints `echo PORT` and `sink PORT`: one sends
 * everything back, the other reads to the end and answers with the number of bytes.
 *
 * Each worker is a thread with listeners (SO_REUSEPORT) and an epoll set of its own, so they share
 * nothing. A connection is registered once, edge-triggered, for both directions. A read that does
 * not fill the buffer has emptied the socket, so an echo is one read and one write. Data is kept
 * for a connection only while its peer does not take it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)64 * 1024)
#define EVENTS_MAX  256
#define ACCEPTS_MAX 16
#define WORKERS_MAX 256
#define BACKLOG     4096

enum kind { ECHO_LISTENER, SINK_LISTENER, ECHO, SINK };

struct connection {
    int fd;
    enum kind kind;
    uint64_t received; /* sink */
    char *rest;        /* echo: what the peer has not taken, or null */
    size_t rest_size;
};

struct worker {
    int epoll;
    struct connection listeners[2];
    char buffer[BUFFER_SIZE];
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "net_raw: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(struct worker *worker, struct connection *connection, uint32_t wanted)
{
    struct epoll_event event = {.events = wanted, .data.ptr = connection};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
        fail("epoll_ctl");
    }
}

/* ---- connections ---- */

static void end(struct connection *connection)
{
    close(connection->fd);
    free(connection->rest);
    free(connection);
}

/* Keeps what the peer has not taken. */
static void keep(struct connection *connection, const char *data, size_t size)
{
    char *rest = malloc(size);
    if (rest == NULL) {
        fail("malloc");
    }
    memcpy(rest, data, size);
    free(connection->rest);
    connection->rest = rest;
    connection->rest_size = size;
}

/* Writes, and keeps what is not taken. Returns false if the connection is broken. */
static bool put(struct connection *connection, const char *data, size_t size)
{
    const ssize_t sent = send(connection->fd, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        return false;
    }
    const size_t taken = sent > 0 ? (size_t)sent : 0;
    if (taken < size) {
        keep(connection, data + taken, size - taken);
    } else if (connection->rest != NULL) {
        free(connection->rest);
        connection->rest = NULL;
    }
    return true;
}

/* Sends back what there is. Returns false at the end. */
static bool serve_echo(struct worker *worker, struct connection *connection, bool hung_up)
{
    if (connection->rest != NULL && !put(connection, connection->rest, connection->rest_size)) {
        return false;
    }
    while (connection->rest == NULL) {
        const ssize_t size = recv(connection->fd, worker->buffer, BUFFER_SIZE, 0);
        if (size < 0) {
            return errno == EAGAIN;
        }
        if (size == 0 || !put(connection, worker->buffer, (size_t)size)) {
            return false;
        }
        if ((size_t)size < BUFFER_SIZE && !hung_up) {
            break;
        }
    }
    return true;
}

/* Reads what there is. Returns false at the end, when it has answered. */
static bool serve_sink(struct worker *worker, struct connection *connection, bool hung_up)
{
    for (;;) {
        const ssize_t size = recv(connection->fd, worker->buffer, BUFFER_SIZE, 0);
        if (size < 0) {
            return errno == EAGAIN;
        }
        if (size == 0) {
            return put(connection, (const char *)&connection->received,
                       sizeof connection->received) &&
                   connection->rest != NULL;
        }
        connection->received += (uint64_t)size;
        if ((size_t)size < BUFFER_SIZE && !hung_up) {
            return true;
        }
    }
}

/* Some of those who wait: the rest must not hold up those who are here already. */
static void accept_some(struct worker *worker, const struct connection *listener)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) { /* NOLINT(*-unix.Malloc): the epoll set has it */
        const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EAGAIN || errno == ECONNABORTED) {
                return;
            }
            fail("accept4");
        }
        struct connection *connection = calloc(1, sizeof *connection);
        if (connection == NULL) {
            fail("calloc");
        }
        connection->fd = fd;
        connection->kind = listener->kind == ECHO_LISTENER ? ECHO : SINK;
        watch(worker, connection, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    }
}

static void handle_event(struct worker *worker, const struct epoll_event *event)
{
    struct connection *connection = event->data.ptr;
    const bool hung_up = (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    switch (connection->kind) {
    case ECHO_LISTENER:
    case SINK_LISTENER:
        accept_some(worker, connection);
        break;
    case ECHO:
        /* A new connection is writable, and nothing has come: no need to ask. */
        if ((event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 || connection->rest != NULL) {
            if (!serve_echo(worker, connection, hung_up)) {
                end(connection);
            }
        }
        break;
    case SINK:
        if ((event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 &&
            !serve_sink(worker, connection, hung_up)) {
            end(connection);
        }
        break;
    }
}

/* ---- workers ---- */

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        const int count = epoll_wait(worker->epoll, events, EVENTS_MAX, -1);
        if (count < 0 && errno != EINTR) {
            fail("epoll_wait");
        }
        for (int i = 0; i < count; i++) {
            handle_event(worker, &events[i]);
        }
    }
    return NULL;
}

/* Listens on *port, or on any if that is 0, and then says which. */
static int listen_on(in_port_t *port)
{
    const int yes = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 || /* accepted ones, too */
        bind(fd, (const struct sockaddr *)&address, size) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        fail("listen");
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static void start_worker(in_port_t ports[2])
{
    pthread_t thread;
    struct worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL || (worker->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        fail("epoll_create1");
    }
    for (int i = 0; i < 2; i++) {
        worker->listeners[i] = (struct connection){.fd = listen_on(&ports[i]),
                                                   .kind = i == 0 ? ECHO_LISTENER : SINK_LISTENER};
        watch(worker, &worker->listeners[i], EPOLLIN);
    }
    if (pthread_create(&thread, NULL, work, worker) != 0) {
        fail("pthread_create");
    }
}

int main(int argc, char **argv)
{
    in_port_t ports[2] = {0};
    char byte = 0;
    const long workers = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (workers < 1 || workers > WORKERS_MAX) {
        fputs("usage: net_raw WORKERS\n", stderr);
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
