/* SPDX-License-Identifier: MIT */
/* Inspecting a running program, as `skua ps`, `sockets`, `tree`, `top`, `stat`, `info`, `trace` and
 * `metrics` do, without a rebuild.
 *
 * A runtime whose configuration has `inspect` set, or any runtime of a program that was started
 * with SKUA_INSPECT=1 in its environment, listens from start to stop on a Unix socket that only its
 * user can open. SKUA_INSPECT=0 switches it off, whatever the configuration says. A simulated
 * runtime has no socket. docs/inspector.md describes the protocol.
 *
 * A thread of its own serves the socket. It never stops a worker, takes none of their locks, waits
 * for no client, and uses no more than a small part of one CPU, however many requests come.
 *
 * The environment variable SKUA_DEBUG, a list of settings separated by commas, makes any program
 * print to its standard error:
 *     schedtrace=1000   a line about every worker and queue, every 1000 ms
 *     stacks            at the end, how deep the tasks of each type have used their stacks
 *     migrate           (prints nothing) has every task go on on another worker after each wait
 *     stall=25ms        every step that runs longer than that, once, with a backtrace (taken by
 *                       SIGURG; see stall_signal in skua/runtime.h for what it may interrupt)
 */
#ifndef SKUA_INSPECT_H
#define SKUA_INSPECT_H

#include <skua/error.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* The folder of the sockets: `skua` in $XDG_RUNTIME_DIR, or, if that is unset or not a folder,
 * /tmp/skua-<user id>. A socket is called <process id of the program>.<number of the runtime in it,
 * from 1>. The folder need not exist.
 * Gives:   text, of up to `size` bytes with a zero at its end.      Threads: any.
 * Returns: the length of the path, which may be more than fits; SKUA_E_INVALID (null text). */
SKUA_API int skua_inspect_directory(char *text, size_t size);

SKUA_END_DECLS

#endif
