/* SPDX-License-Identifier: MIT */
/* Addresses of sockets: text for people, a sockaddr for the system. */
#ifndef SKUA_NET_ADDRESS_H
#define SKUA_NET_ADDRESS_H

#include <netinet/in.h>
#include <skua/socket.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"

struct address {
    socklen_t size; /* of what is used of `as` */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
    } as;
};

/* Reads "1.2.3.4:5", "[::1]:5", "unix:/path" or "unix:@name". Returns 0 or SKUA_E_ADDRESS. */
NODISCARD int address_parse(const char *text, struct address *address);

/* Writes it the same way; empty if it has no name, as the other side of a Unix socket. */
void address_format(const struct address *address, char text[SKUA_ADDRESS_SIZE]);

#endif
