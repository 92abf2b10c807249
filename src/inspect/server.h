/* SPDX-License-Identifier: MIT */
/* The thread that answers `skua top` and its like (docs/inspector.md), and prints what SKUA_DEBUG
 * asks for every so often (debug.h).
 *
 * Clients are not trusted with more than their user could do anyway, and not expected to be well
 * written. The thread waits for none of them: it reads what is there, writes what fits, and closes
 * the connection of a client that does not take its answer. A client that asks too much is answered
 * later: after a burst, all answers together have SHARE of one CPU, which clients share evenly
 * (budget.h). So whatever clients do, the workers lose no more than that, and a client that waits
 * for its answer gets it. */
#ifndef SKUA_INSPECT_SERVER_H
#define SKUA_INSPECT_SERVER_H

#include "sched/scheduler.h"

struct inspector;

struct inspector_options {
    bool listens;           /* on a socket, for clients */
    uint64_t schedtrace_ns; /* prints a line so often; 0: never */
};

/* Opens the socket, if there is to be one, and starts the thread. Returns 0 and the inspector;
 * SKUA_E_INSPECT, with the reason in errno; SKUA_E_THREAD; SKUA_E_NO_MEMORY. */
NODISCARD int inspector_start(struct inspector **inspector, struct scheduler *sched,
                              struct inspector_options options);

/* Ends the thread, takes away the socket and frees the inspector. */
void inspector_stop(struct inspector *inspector);

#endif
