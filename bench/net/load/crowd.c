/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 256

void crowd_open(struct crowd *crowd, const struct load_options *options, struct load_result *result)
{
    *crowd = (struct crowd){.options = options, .result = result};
    crowd->clients = allocate(options->connections, sizeof *crowd->clients);
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (crowd->epoll < 0) {
        fail("epoll_create1");
    }
}

void crowd_close(struct crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->opened; i++) {
        close(crowd->clients[i].fd);
    }
    close(crowd->epoll);
    free(crowd->clients);
}

void crowd_connect(struct crowd *crowd)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(crowd->options->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client *client = &crowd->clients[crowd->opened];
    *client = (struct client){.number = crowd->opened++, .waits_for = now_ns()};
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) {
        fail("socket");
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client};
    if (connect(client->fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
        errno != EINPROGRESS) {
        fail("connect");
    }
    if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0) {
        fail("epoll_ctl");
    }
}

/* The message of a client in its round. */
static void compose(const struct client *client, char *message, size_t size)
{
    const uint32_t words[2] = {client->number, client->round};
    memset(message, 'a' + (int)(client->round % 26), size);
    memcpy(message, words, size < sizeof words ? size : sizeof words);
}

static void send_message(struct crowd *crowd, struct client *client)
{
    char message[MESSAGE_MAX];
    const size_t size = crowd->options->size;
    client->round++;
    client->received = 0;
    compose(client, message, size);
    const ssize_t sent = send(client->fd, message, size, MSG_NOSIGNAL);
    if (sent < 0) {
        fail("send");
    }
    expect_right((size_t)sent == size, "a short message was cut");
    crowd->sent++;
}

void crowd_send(struct crowd *crowd, struct client *client)
{
    client->waits_for = now_ns();
    send_message(crowd, client);
}

static void note_latency(struct crowd *crowd, const struct client *client)
{
    struct load_result *result = crowd->result;
    if (crowd->timed && result->latency_count < result->latency_capacity) {
        result->latencies_ns[result->latency_count++] = now_ns() - client->waits_for;
    }
}

/* Reads what is there of the answer. Returns whether it is complete. */
static bool receive(struct crowd *crowd, struct client *client)
{
    char answer[MESSAGE_MAX + 1], message[MESSAGE_MAX];
    const size_t size = crowd->options->size;
    while (client->received < size) {
        /* One byte more than is due, to notice it. */
        const ssize_t count = recv(client->fd, answer, size - client->received + 1, 0);
        if (count < 0 && errno == EAGAIN) {
            return false;
        }
        if (count < 0) {
            fail("recv");
        }
        expect_right(count > 0, "the server has closed a connection");
        expect_right((size_t)count <= size - client->received, "the server answers too much");
        compose(client, message, size);
        expect_right(memcmp(answer, message + client->received, (size_t)count) == 0,
                     "an answer is not what was sent");
        client->received += (uint32_t)count;
    }
    return true;
}

static void handle_event(struct crowd *crowd, const struct epoll_event *event,
                         crowd_answer_fn *answer)
{
    struct client *client = event->data.ptr;
    int error = 0;
    socklen_t size = sizeof error;
    if ((event->events & EPOLLERR) != 0 &&
        getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0) {
        errno = error;
        fail("a connection");
    }
    if (!client->connected) {
        client->connected = true;
        send_message(crowd, client);
    } else if ((event->events & EPOLLIN) != 0 && client->received < crowd->options->size &&
               receive(crowd, client)) {
        note_latency(crowd, client);
        crowd->answered++;
        if (answer != NULL) {
            answer(crowd, client);
        }
    }
}

void crowd_poll(struct crowd *crowd, bool wait, crowd_answer_fn *answer)
{
    struct epoll_event events[EVENTS_MAX];
    const int count = epoll_wait(crowd->epoll, events, EVENTS_MAX, wait ? -1 : 0);
    if (count < 0 && errno != EINTR) {
        fail("epoll_wait");
    }
    for (int i = 0; i < count; i++) {
        handle_event(crowd, &events[i], answer);
    }
}

void crowd_run(struct crowd *crowd, uint64_t answered, crowd_answer_fn *answer)
{
    while (crowd->answered < answered) {
        crowd_poll(crowd, true, answer);
    }
}
