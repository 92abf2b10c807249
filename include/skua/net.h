/* SPDX-License-Identifier: MIT */
/* Waiting for file descriptors: sockets, pipes, eventfds, terminals, anything that epoll knows.
 *
 * Make the descriptor non-blocking, read or write until the system says EAGAIN, then wait. A wait
 * ends when the descriptor is ready at that moment or becomes so, also with an error or a hang-up:
 * the next read or write tells which. Any number of processes may wait for one descriptor; all of
 * them are told, the first to read gets the data. */
#ifndef SKUA_NET_H
#define SKUA_NET_H

#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Completes when a read, an accept or the like would not block.
 * The completion's error is 0; SKUA_E_DESCRIPTOR (not open, or of a kind that is never waited for,
 * such as a regular file); SKUA_E_CLOSED (closed while it was waited for); SKUA_E_TIMEOUT;
 * SKUA_E_CANCELLED; SKUA_E_NO_MEMORY; SKUA_E_POLLER (the program has closed the descriptor that
 * Skua itself waits with, and the system has refused another).
 * With a timeout of 0 it tells whether the descriptor is ready at this moment.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_DESCRIPTOR (negative); SKUA_E_DURATION; SKUA_E_NO_MEMORY; SKUA_E_DONE;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_yield_readable(skua_context *ctx, uint64_t tag, int fd,
                                                uint64_t timeout_ns);

/* Like skua_yield_readable, for a write or a connect. */
SKUA_API SKUA_NODISCARD int skua_yield_writable(skua_context *ctx, uint64_t tag, int fd,
                                                uint64_t timeout_ns);

/* Closes a descriptor that processes may wait for: each gets SKUA_E_CLOSED at once. The system
 * tells nobody about a close(), so one that is made without this call is noticed only when somebody
 * next waits for a descriptor of that number, or by a check that runs about every ten seconds while
 * something is waited for.
 * Threads: any.      Blocks: as close() does.
 * Returns: 0; SKUA_E_INVALID; SKUA_E_DESCRIPTOR (not open). */
SKUA_API int skua_descriptor_close(skua_runtime *runtime, int fd);

SKUA_END_DECLS

#endif
