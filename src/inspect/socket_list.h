/* SPDX-License-Identifier: MIT */
/* The sockets of a program, as lines: page by page in the order of their slots, or the largest. As
 * with processes (inspect/listing.h), finding the largest means a look at every socket, and what
 * was found is used again for a hundred times as long as that took. Only those that are shown are
 * asked for their addresses, which costs two system calls each. */
#ifndef SKUA_INSPECT_SOCKET_LIST_H
#define SKUA_INSPECT_SOCKET_LIST_H

#include "inspect/largest.h"
#include "inspect/text.h"
#include "net/sockets.h"

enum socket_order {
    SOCKETS_BY_IN,
    SOCKETS_BY_OUT,
    SOCKETS_BY_QUEUED,
    SOCKETS_BY_IDLE,
    SOCKET_ORDERS
};

struct socket_listing {
    struct largest orders[SOCKET_ORDERS];
    uint64_t made; /* as in struct listing, as is the next */
    uint64_t cost;
    struct socket_row {
        struct largest_entry entry; /* first; its key is the socket */
        skua_socket_snapshot info;
    } rows[LISTING_MAX];
};

/* Words of the request `sockets` (docs/inspector.md); null: missing. */
struct socket_request {
    const char *sort;
    const char *after;
    const char *limit;
    const char *state;
    char *rest; /* an owner, and a type, which may contain spaces */
};

/* Answers it. Returns 0 or the error to be answered. */
NODISCARD int socket_list_add(struct socket_listing *listing, struct scheduler *sched,
                              const struct socket_request *request, struct text *out);

/* A line about one socket. */
void socket_list_add_line(struct scheduler *sched, const skua_socket_snapshot *info,
                          struct text *out);

#endif
