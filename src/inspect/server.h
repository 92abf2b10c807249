/* SPDX-License-Identifier: MIT */
/* The thread that answers `skua top` and the other commands (docs/inspector.md) and prints the
 * periodic lines of SKUA_DEBUG (debug.h).
 *
 * Clients get no more trust than their user has anyway, and are not expected to be well behaved.
 * The thread waits for none of them: it reads what is there, writes what fits, and closes a client
 * that does not read its answer. A client that asks too much is answered later: after a burst, all
 * answers together get SHARE of one CPU, divided evenly between clients (budget.h). So whatever
 * clients do, the workers lose no more than that, and a client that waits for its answer gets
 * it. */
#ifndef SKUA_INSPECT_SERVER_H
#define SKUA_INSPECT_SERVER_H

#include "sched/scheduler.h"

struct inspector;

struct inspector_options {
    bool listens;           /* on a socket, for clients */
    uint64_t schedtrace_ns; /* period of the printed lines; 0: none */
};

/* Opens the socket, if wanted, and starts the thread. Returns 0 and the inspector; SKUA_E_INSPECT,
 * with the reason in errno; SKUA_E_THREAD; SKUA_E_NO_MEMORY. */
NODISCARD int inspector_start(struct inspector **inspector, struct scheduler *sched,
                              struct inspector_options options);

/* Stops the thread, removes the socket and frees the inspector. */
void inspector_stop(struct inspector *inspector);

#endif
