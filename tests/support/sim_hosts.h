/* SPDX-License-Identifier: MIT */
/* Errands on simulated hosts that talk through sockets: servers that echo, clients that count what
 * they have sent and what came back. */
#ifndef SKUA_TESTS_SIM_HOSTS_H
#define SKUA_TESTS_SIM_HOSTS_H

#include <skua/socket.h>

#include "errand.h"
#include "sim_trace.h"

#define SIM_SOMETIMES (SIM_ALWAYS / 3)

/* The n-th byte of whatever is sent. */
unsigned char sim_byte(uint64_t n);

/* Starts a function on a host. */
struct errand *host_start(uint32_t host, errand_fn *function);

/* As host_start, with an argument. */
struct errand *host_start_with(uint32_t host, errand_fn *function, void *arg);

/* An errand: listens on 0.0.0.0:80, and has a child on its host echo each connection to its end.
 * It notes nothing, and ends when it is cancelled. */
int serves_echoes(struct errand *errand, skua_context *ctx);

/* Connects, again and again as long as it is refused or there are no descriptors. */
int connect_anyhow(skua_context *ctx, const char *address, skua_socket *socket);

/* Writes bytes number *from to *from + size; says how many the transport has taken. */
int write_numbers(skua_context *ctx, skua_socket socket, uint64_t *from, size_t size,
                  uint64_t timeout_ns);

/* Reads until `size` bytes have come, or less at an end or error; they must be the bytes from
 * *from on. */
int read_numbers(struct errand *errand, skua_context *ctx, skua_socket socket, uint64_t *from,
                 size_t size, uint64_t timeout_ns);

/* Runs the simulation until it ends, with this error. */
void assert_ends(struct errand *errand, int error);

#endif
