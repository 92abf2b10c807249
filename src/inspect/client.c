/* SPDX-License-Identifier: MIT */
#include "inspect/client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

bool client_has_request(const struct client *client)
{
    return memchr(client->request, '\n', client->request_length) != NULL;
}

bool client_receive(struct client *client)
{
    char *free = client->request + client->request_length;
    const ssize_t count =
        recv(client->fd, free, sizeof client->request - client->request_length, 0);
    if (count <= 0) {
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    }
    client->request_length += (size_t)count;
    return client_has_request(client) || client->request_length <= REQUEST_MAX;
}

uint64_t client_time_left(const struct client *client, bool traces, uint64_t now)
{
    const bool is_awaited = client_has_answer(client) || (traces && !client_has_request(client));
    if (!is_awaited) {
        return UINT64_MAX;
    }
    const uint64_t waited = now - client->active;
    return waited < STALL_NS ? STALL_NS - waited : 0;
}

static bool has_sent_more(const struct client *client)
{
    char byte;
    return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool client_is_quiet(const struct client *client, uint64_t now)
{
    return now - client->active >= QUIET_NS && !client_has_request(client) &&
           !has_sent_more(client);
}

void client_answer(struct client *client, uint32_t number, struct answers *answers)
{
    char *end = memchr(client->request, '\n', client->request_length);
    const size_t taken = (size_t)(end - client->request) + 1;
    struct text out = {client->answer, ANSWER_SIZE, 0};
    const bool is_text = memchr(client->request, '\0', taken) == NULL;
    *end = '\0';
    if (is_text) {
        answers_write(answers, number, client->request, &out);
    } else {
        answers_refuse(&out, SKUA_E_INVALID);
    }
    if (out.length >= ANSWER_SIZE) {
        answers_refuse(&out, SKUA_E_NO_MEMORY);
    }
    client->answer_length = out.length;
    client->answer_sent = 0;
    client->request_length -= taken;
    memmove(client->request, end + 1, client->request_length);
}

bool client_send(struct client *client, uint64_t now)
{
    const ssize_t count =
        send(client->fd, client->answer + client->answer_sent,
             client->answer_length - client->answer_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    client->answer_sent += (size_t)count;
    client->active = now;
    return true;
}
