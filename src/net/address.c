/* SPDX-License-Identifier: MIT */
#include "net/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define UNIX_PREFIX "unix:"

/* A decimal number of 1 to 5 digits up to 65535, and nothing else; false for anything else. */
static bool parse_port(const char *text, in_port_t *port)
{
    uint32_t value = 0;
    size_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 6; digits++) {
        value = value * 10 + (uint32_t)(text[digits] - '0');
    }
    *port = htons((uint16_t)value);
    return digits > 0 && digits <= 5 && text[digits] == '\0' && value <= UINT16_MAX;
}

/* "@name" is in the abstract space: a zero in place of '@', and no zero at the end. */
static int parse_unix(const char *path, struct address *address)
{
    const size_t length = strlen(path);
    const bool is_abstract = path[0] == '@';
    struct sockaddr_un *un = &address->as.un;
    if (length < 1 + (size_t)is_abstract || length >= sizeof un->sun_path) {
        return SKUA_E_ADDRESS;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, length + 1);
    if (is_abstract) {
        un->sun_path[0] = '\0';
    }
    address->size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (is_abstract ? 0 : 1));
    return 0;
}

/* Copies what stands between the brackets, or before the colon, to `host`. */
static bool split_host(const char *text, const char *end, char host[INET6_ADDRSTRLEN])
{
    const size_t length = (size_t)(end - text);
    if (length >= INET6_ADDRSTRLEN) {
        return false;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    return true;
}

static int parse_v6(const char *text, struct address *address)
{
    char host[INET6_ADDRSTRLEN];
    const char *end = strchr(text, ']');
    struct sockaddr_in6 *v6 = &address->as.v6;
    v6->sin6_family = AF_INET6;
    address->size = sizeof *v6;
    return end != NULL && end[1] == ':' && split_host(text, end, host) &&
                   inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 &&
                   parse_port(end + 2, &v6->sin6_port)
               ? 0
               : SKUA_E_ADDRESS;
}

static int parse_v4(const char *text, struct address *address)
{
    char host[INET6_ADDRSTRLEN];
    const char *end = strchr(text, ':');
    struct sockaddr_in *v4 = &address->as.v4;
    v4->sin_family = AF_INET;
    address->size = sizeof *v4;
    return end != NULL && split_host(text, end, host) &&
                   inet_pton(AF_INET, host, &v4->sin_addr) == 1 &&
                   parse_port(end + 1, &v4->sin_port)
               ? 0
               : SKUA_E_ADDRESS;
}

int address_parse(const char *text, struct address *address)
{
    memset(address, 0, sizeof *address);
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        return parse_unix(text + strlen(UNIX_PREFIX), address);
    }
    return text[0] == '[' ? parse_v6(text + 1, address) : parse_v4(text, address);
}

static void format_unix(const struct address *address, char text[SKUA_ADDRESS_SIZE])
{
    const struct sockaddr_un *un = &address->as.un;
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    const int length = address->size > head ? (int)(address->size - head) : 0;
    if (length == 0) {
        text[0] = '\0';
    } else if (un->sun_path[0] == '\0') {
        (void)snprintf(text, SKUA_ADDRESS_SIZE, UNIX_PREFIX "@%.*s", length - 1, un->sun_path + 1);
    } else {
        (void)snprintf(text, SKUA_ADDRESS_SIZE, UNIX_PREFIX "%.*s", length, un->sun_path);
    }
}

void address_format(const struct address *address, char text[SKUA_ADDRESS_SIZE])
{
    char host[INET6_ADDRSTRLEN];
    switch (address->as.any.sa_family) {
    case AF_INET:
        (void)inet_ntop(AF_INET, &address->as.v4.sin_addr, host, sizeof host);
        (void)snprintf(text, SKUA_ADDRESS_SIZE, "%s:%u", host,
                       (unsigned)ntohs(address->as.v4.sin_port));
        break;
    case AF_INET6:
        (void)inet_ntop(AF_INET6, &address->as.v6.sin6_addr, host, sizeof host);
        (void)snprintf(text, SKUA_ADDRESS_SIZE, "[%s]:%u", host,
                       (unsigned)ntohs(address->as.v6.sin6_port));
        break;
    case AF_UNIX:
        format_unix(address, text);
        break;
    default:
        text[0] = '\0';
        break;
    }
}
