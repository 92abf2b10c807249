/* SPDX-License-Identifier: MIT */
/* Watching other processes: hearing how they end, and ending together with them.
 *
 * When a process hears of the end of another, the close of that has returned, sends to it are
 * refused, and everything that it sent has arrived. */
#ifndef SKUA_WATCH_H
#define SKUA_WATCH_H

#include <skua/error.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- monitors ---- */

/* Waits for the end of a process. The completion has its exit error, and in the payload its PID, as
 * a 64-bit number. If there is nothing to wait for, or the wait ends early, the payload is empty
 * and the error SKUA_E_NO_PROCESS (it has ended before), SKUA_E_FOREIGN_PID, SKUA_E_TIMEOUT,
 * SKUA_E_CANCELLED or SKUA_E_NO_MEMORY. Watching begins after this step: a process that ends
 * earlier is SKUA_E_NO_PROCESS. To watch a new process from its first step on, start it with
 * skua_spawn_options.monitor. Mailbox limits do not apply.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield; SKUA_E_INVALID (a process cannot watch itself). */
SKUA_API SKUA_NODISCARD int skua_yield_monitor(skua_context *ctx, uint64_t tag, skua_pid pid,
                                               uint64_t timeout_ns);

/* Like skua_yield_monitor, but if the process ends without an error, the payload is its result. If
 * several wait for one process, a result that owns memory goes to one of them, and the others get
 * an empty one.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_monitor. */
SKUA_API SKUA_NODISCARD int skua_yield_join(skua_context *ctx, uint64_t tag, skua_pid pid,
                                            uint64_t timeout_ns);

/* ---- links ---- */

/* What a link does. SKUA_LINK_TELL can be added to any of the others. */
enum skua_link_flag {
    SKUA_LINK_BOTH = 0,    /* each ends if the other fails */
    SKUA_LINK_ONLY_ME = 1, /* this process ends if the other fails, and not the other way round */
    SKUA_LINK_ONLY_IT = 2, /* the other ends if this process fails, and not the other way round */
    SKUA_LINK_TELL = 4,    /* this process does not end with the other, but gets SKUA_EVENT_EXIT
                              when that ends, for whatever reason */
};

/* Links this process to another, from now until one of them ends. A process *fails* if it ends with
 * any error but SKUA_E_STOPPED and SKUA_E_CANCELLED. Then those that are linked to it end with the
 * same error, once they have handled what came before, and their skua_exit.cause is the PID of the
 * one that failed first. An orderly end takes nobody along. With SKUA_LINK_TELL this process gets
 * SKUA_EVENT_EXIT instead, with `tag`, `from`, `error`, and the cause in the payload, as a 64-bit
 * number (0 after an orderly end). Two processes may have several links, each with a life of its
 * own.
 * Gives:   *link (may be null), for skua_unlink.
 * Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT;
 *          SKUA_E_INVALID (unknown flags, or a link to oneself). */
SKUA_API SKUA_NODISCARD int skua_link(skua_context *ctx, skua_pid pid, uint32_t flags, uint64_t tag,
                                      skua_link_id *link);

/* Takes back a link that this process has made. From now on the end of one does nothing to the
 * other, not even if it is under way already.
 * Threads: worker (inside step or close).      Blocks: never.
 * Returns: 0; SKUA_E_LATE (the link has ended with the other process, and a task may yet receive
 *          that; or this process has not made it); SKUA_E_CONTEXT. */
SKUA_API int skua_unlink(skua_context *ctx, skua_link_id link);

SKUA_END_DECLS

#endif
