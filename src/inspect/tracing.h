/* SPDX-License-Identifier: MIT */
/* The reading side of a trace (telemetry/tracer.h). */
#ifndef SKUA_INSPECT_TRACING_H
#define SKUA_INSPECT_TRACING_H

#include "inspect/text.h"
#include "net/sockets.h"

/* Peers of sockets that are remembered, since asking for an address takes a system call. */
#define TRACING_PEERS 128

struct tracing_peer {
    uint64_t socket; /* 0: none */
    char address[SKUA_ADDRESS_SIZE];
};

struct tracing {
    uint64_t since; /* when the current trace began */
    uint32_t next;  /* the ring to read first the next time */
    struct tracing_peer peers[TRACING_PEERS];
};

/* Begins to record; false if there is no memory. */
NODISCARD bool tracing_start(struct tracing *tracing, struct scheduler *sched);

/* Records in one answer. */
#define TRACING_MAX 1000

/* Writes up to `most` records as lines of docs/inspector.md. */
void tracing_read(struct tracing *tracing, struct scheduler *sched, uint32_t most,
                  struct text *out);

/* Reports what is missing at the end of a stopped trace: rings that were full. */
void tracing_read_end(const struct tracing *tracing, struct scheduler *sched, struct text *out);

#endif
