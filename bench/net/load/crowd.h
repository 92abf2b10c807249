/* SPDX-License-Identifier: MIT */
/* Many clients of one server, each with a connection on which it sends a message and waits for its
 * echo. */
#ifndef NET_CROWD_H
#define NET_CROWD_H

#include "load.h"

struct client {
    int fd;
    uint32_t number;    /* of the client */
    uint32_t round;     /* of its message: no two are the same */
    uint32_t received;  /* bytes of the answer */
    bool connected;     /* and has sent something */
    uint64_t waits_for; /* since when it waits for its answer, or for its connection */
};

struct crowd {
    const struct load_options *options;
    struct load_result *result;
    struct client *clients;
    uint32_t opened;   /* clients that have a socket */
    uint64_t sent;     /* messages */
    uint64_t answered; /* messages that came back as they were */
    bool timed;        /* keep latencies */
    int epoll;
};

void crowd_open(struct crowd *crowd, const struct load_options *options,
                struct load_result *result);
void crowd_close(struct crowd *crowd);

/* Connects one more client; it sends its first message as soon as it is connected. */
void crowd_connect(struct crowd *crowd);

void crowd_send(struct crowd *crowd, struct client *client);

/* Called with a client whose answer has come. */
typedef void crowd_answer_fn(struct crowd *crowd, struct client *client);

/* Handles what has happened, or waits until something does. */
void crowd_poll(struct crowd *crowd, bool wait, crowd_answer_fn *answer);

/* Handles events until so many messages have been answered, since the crowd was opened. */
void crowd_run(struct crowd *crowd, uint64_t answered, crowd_answer_fn *answer);

#endif
