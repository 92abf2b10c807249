/* SPDX-License-Identifier: MIT */
/* One connection of the inspector: its request, and the part of the answer that is still unsent. */
#ifndef SKUA_INSPECT_CLIENT_H
#define SKUA_INSPECT_CLIENT_H

#include "base/own_fd.h"
#include "inspect/answers.h"

/* Room for DESCRIBE_MAX PIDs. */
#define REQUEST_MAX 1200
/* The longest answer: metrics of 320 workers. Memory that is never written costs nothing. */
#define ANSWER_SIZE ((size_t)1 << 20)
/* How long a client may take to read its answer or, if it traces, to ask for more: a trace costs
 * the program. */
#define STALL_NS (UINT64_C(5) * 1000000000)
/* A client that has asked nothing for this long makes room for another. */
#define QUIET_NS (UINT64_C(10) * 1000000000)

struct client {
    int fd;                        /* -1: none */
    struct own_fd own;             /* the same: the program may have closed it */
    char request[REQUEST_MAX + 1]; /* a line, and what was sent after it */
    size_t request_length;
    char *answer; /* ANSWER_SIZE bytes */
    size_t answer_length;
    size_t answer_sent;
    uint64_t active; /* when it was last answered, or took a part of its answer */
};

/* Whether part of an answer is unsent. */
static inline bool client_has_answer(const struct client *client)
{
    return client->answer_sent < client->answer_length;
}

/* Whether a whole request has arrived. */
bool client_has_request(const struct client *client);

/* Reads what has arrived. False if the client is gone or its line too long. */
NODISCARD bool client_receive(struct client *client);

/* Whether it has a request to answer: its earlier ones are answered and their answers sent. */
static inline bool client_is_asking(const struct client *client)
{
    return !client_has_answer(client) && client_has_request(client);
}

/* How long the client may keep the server waiting; 0: it has stalled; UINT64_MAX: the server does
 * not wait for it. Once a request has arrived it is the client that waits, however long the server
 * takes to stay within its budget. */
uint64_t client_time_left(const struct client *client, bool traces, uint64_t now);

/* Whether the client has asked nothing for so long that it makes room for another. Checks the
 * connection too: a request that has not been read yet counts. */
bool client_is_quiet(const struct client *client, uint64_t now);

/* Answers the client's first request; `number` is the client's. */
void client_answer(struct client *client, uint32_t number, struct answers *answers);

/* Sends what can be sent now. False if the client is gone. */
NODISCARD bool client_send(struct client *client, uint64_t now);

#endif
