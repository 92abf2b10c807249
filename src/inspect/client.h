/* SPDX-License-Identifier: MIT */
/* One connection of the inspector: what was asked, and what of the answer is still to be sent. */
#ifndef SKUA_INSPECT_CLIENT_H
#define SKUA_INSPECT_CLIENT_H

#include "inspect/answers.h"

#define REQUEST_MAX 200
/* The longest answer: metrics of 320 workers. Memory that is not written to costs nothing. */
#define ANSWER_SIZE ((size_t)1 << 20)

struct client {
    int fd;                        /* -1: none */
    char request[REQUEST_MAX + 1]; /* a line, and what was sent after it */
    size_t request_length;
    char *answer; /* ANSWER_SIZE bytes */
    size_t answer_length;
    size_t answer_sent;
    uint64_t active; /* when it last asked, or took a part of its answer */
};

/* Whether a part of an answer is still to be sent. */
static inline bool client_has_answer(const struct client *client)
{
    return client->answer_sent < client->answer_length;
}

/* Whether a whole request has arrived. */
bool client_has_request(const struct client *client);

/* Reads what has arrived. False if the client has gone, or has sent too long a line. */
NODISCARD bool client_receive(struct client *client);

/* Makes the answer to the request that has arrived first; `number` is the client's. */
void client_answer(struct client *client, uint32_t number, struct answers *answers);

/* Sends what can be sent now. False if the client has gone. */
NODISCARD bool client_send(struct client *client, uint64_t now);

#endif
