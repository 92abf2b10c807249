/* SPDX-License-Identifier: MIT */
/* Addresses of simulated hosts: what they lead to, and who has them. */
#include <errno.h>
#include <string.h>

#include "sim/sim.h"

/* 10.0.0.0; the number of a host is the last part. */
#define HOSTS_NETWORK UINT32_C(0x0a000000)
#define HOSTS_MASK    UINT32_C(0xffffff00)
#define LOOPBACK_BITS 24 /* 127.x.x.x */

#define PORTS_TRIED 16384 /* all that connects use */

static sa_family_t family_of(const struct address *address)
{
    return address->as.any.sa_family;
}

static bool is_unix(const struct address *address)
{
    return family_of(address) == AF_UNIX;
}

static in_port_t *port_of(struct address *address)
{
    return family_of(address) == AF_INET ? &address->as.v4.sin_port : &address->as.v6.sin6_port;
}

static bool has_port(const struct address *address, in_port_t port)
{
    const in_port_t own =
        family_of(address) == AF_INET ? address->as.v4.sin_port : address->as.v6.sin6_port;
    return own == port;
}

/* ---- what an address means ---- */

/* Of 0.0.0.0 and [::]. */
static bool means_any(const struct address *address)
{
    return family_of(address) == AF_INET ? address->as.v4.sin_addr.s_addr == htonl(INADDR_ANY)
                                         : family_of(address) == AF_INET6 &&
                                               IN6_IS_ADDR_UNSPECIFIED(&address->as.v6.sin6_addr);
}

static bool means_loopback(const struct address *address)
{
    return family_of(address) == AF_INET
               ? ntohl(address->as.v4.sin_addr.s_addr) >> LOOPBACK_BITS == IN_LOOPBACKNET
               : family_of(address) == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->as.v6.sin6_addr);
}

/* The number of the host, 0 if it is not one's address. */
static uint32_t host_of(const struct address *address)
{
    if (family_of(address) != AF_INET) {
        return 0;
    }
    const uint32_t bits = ntohl(address->as.v4.sin_addr.s_addr);
    const uint32_t host = bits & ~HOSTS_MASK;
    return (bits & HOSTS_MASK) == HOSTS_NETWORK && host <= SKUA_SIM_HOSTS_MAX ? host : 0;
}

/* Whether it is this host's own. */
static bool is_own(const struct address *address, uint32_t host)
{
    return is_unix(address) || means_any(address) || means_loopback(address) ||
           host_of(address) == host;
}

static void set_loopback(struct address *address)
{
    if (family_of(address) == AF_INET) {
        address->as.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
        address->as.v6.sin6_addr = in6addr_loopback;
    }
}

static void set_any(struct address *address)
{
    if (family_of(address) == AF_INET) {
        address->as.v4.sin_addr.s_addr = htonl(INADDR_ANY);
    } else {
        address->as.v6.sin6_addr = in6addr_any;
    }
}

int bindings_resolve(const struct network *network, uint32_t host, struct address *address)
{
    if (means_any(address)) {
        set_loopback(address); /* as Linux does */
    }
    if (is_own(address, host)) {
        return (int)host;
    }
    const uint32_t target = host_of(address);
    if (target == 0) {
        return -ENETUNREACH;
    }
    return paths_has_host(network, target) ? (int)target : -EHOSTUNREACH;
}

/* ---- who has it ---- */

static bool is_same_name(const struct address *a, const struct address *b)
{
    return a->size == b->size && memcmp(&a->as.un, &b->as.un, a->size) == 0;
}

static bool is_same_ip(const struct address *a, const struct address *b)
{
    return family_of(a) == AF_INET
               ? a->as.v4.sin_addr.s_addr == b->as.v4.sin_addr.s_addr
               : memcmp(&a->as.v6.sin6_addr, &b->as.v6.sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool bindings_cover(const struct address *bound, const struct address *address)
{
    if (family_of(bound) != family_of(address)) {
        return false;
    }
    if (is_unix(bound)) {
        return is_same_name(bound, address);
    }
    struct address copy = *address;
    return has_port(bound, *port_of(&copy)) && (means_any(bound) || is_same_ip(bound, address));
}

/* Whether one of them would get what is meant for the other. */
static bool overlap(const struct address *a, const struct address *b)
{
    return bindings_cover(a, b) || bindings_cover(b, a);
}

/* Whether some endpoint of a host has the address. What was accepted does not count: it shares that
 * of its listener. */
static bool is_taken(const struct network *network, uint32_t host, const struct address *address,
                     bool reuseport)
{
    for (uint32_t i = 0; i < network->count; i++) {
        const struct endpoint *other = network->endpoints[i];
        if (other != NULL && other->host == host && !other->is_closed &&
            (other->is_client || (other->is_listener && !(reuseport && other->reuseport))) &&
            overlap(&other->local, address)) {
            return true;
        }
    }
    return false;
}

int bindings_claim(struct network *network, uint32_t host, struct address *address, bool reuseport)
{
    if (!is_own(address, host)) {
        return -EADDRNOTAVAIL;
    }
    if (is_unix(address) || !has_port(address, 0)) {
        return is_taken(network, host, address, reuseport) ? -EADDRINUSE : 0;
    }
    for (uint32_t i = 0; i < PORTS_TRIED; i++) {
        *port_of(address) = htons(paths_next_port(network, host));
        if (!is_taken(network, host, address, false)) {
            return 0;
        }
    }
    return -EADDRINUSE;
}

/* A name of the own side for a connection to that address, without a port yet. */
static struct address default_source(const struct address *address)
{
    if (is_unix(address)) { /* it has none */
        struct address source = {.size = offsetof(struct sockaddr_un, sun_path)};
        source.as.un.sun_family = AF_UNIX;
        return source;
    }
    struct address source = *address;
    *port_of(&source) = 0;
    set_any(&source);
    return source;
}

int bindings_choose(struct network *network, uint32_t host, const struct address *address,
                    const struct address *wanted, struct address *source)
{
    *source = wanted != NULL ? *wanted : default_source(address);
    if (family_of(source) != family_of(address)) {
        return -EINVAL;
    }
    if (means_any(source)) {
        if (means_loopback(address)) {
            set_loopback(source);
        } else {
            source->as.v4.sin_addr.s_addr = htonl(HOSTS_NETWORK | host);
        }
    }
    const bool has_name = !is_unix(source) || source->size > offsetof(struct sockaddr_un, sun_path);
    return has_name ? bindings_claim(network, host, source, false) : 0;
}
