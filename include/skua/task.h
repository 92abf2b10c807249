/* SPDX-License-Identifier: MIT */
/* Tasks: processes that are plain functions. Where a step would yield and return, a task waits:
 *
 *     static int session(void *self, skua_context *ctx)
 *     {
 *         skua_event *event;
 *         while (skua_task_receive(ctx, &event, 30 * SKUA_SECOND) == 0) {
 *             ...
 *             int error = skua_task_call(ctx, backend, question, SKUA_SECOND, &answer);
 *         }
 *         return 0;
 *     }
 *     static const skua_process_type session_type = {.name = "session", .main = session};
 *
 * Everything else is as in other processes, and `ctx` is the same for the life of a task. Yields
 * with tags may be made, too; their completions are received.
 *
 * A task runs on a small stack of its own. While it waits, its worker runs others, and it may wake
 * on another worker. So do not hold a lock over a wait, and do not keep the address of anything
 * that is thread-local; errno is fresh after a wait, in files that include this header.
 *
 * In C++, a task may throw, catch, and wait in a catch block, if the wait is called from C++. An
 * exception that leaves its function ends the program. A task may longjmp to where it was, also
 * over a wait, but not out of its function.
 *
 * A wait ends with SKUA_E_CANCELLED if the process is cancelled, now or before; what it waited for
 * is taken back. Then tidy up and return; skua_task_shield lets waits work meanwhile. If you return
 * SKUA_E_CANCELLED, the reason of the cancel becomes the exit error. (A type with
 * SKUA_CANCEL_EVENT receives the cancel as an event instead, and its waits do not end.) A wait ends
 * with SKUA_E_TERMINATED if the process is terminated, or ends because of a link: from then on only
 * what close may do works.
 *
 * The stack has a guard: a task that uses it up is killed by SIGSEGV, and with .crash_report named.
 * A frame larger than the guard, a page, can jump over it; compile with -fstack-clash-protection,
 * which touches every page of a frame. Where the system has no guards to give, there is only a
 * canary, looked at when the task waits, and the program ends by abort.
 *
 * The waits return, besides what is said there: SKUA_E_DONE (after skua_done); SKUA_E_NOT_TASK (the
 * process is not a task); SKUA_E_CONTEXT; SKUA_E_NO_MEMORY; SKUA_E_DURATION; SKUA_E_INVALID. */
#ifndef SKUA_TASK_H
#define SKUA_TASK_H

#include <errno.h>

#include <skua/blocking.h>
#include <skua/caught.h>
#include <skua/error.h>
#include <skua/group.h>
#include <skua/process.h>
#include <skua/switch.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Tags from here on belong to the waits of a task: do not yield with one in a task. */
#define SKUA_TASK_TAGS UINT64_C(0xffff000000000000)

/* ---- receiving ---- */

/* Like skua_task_receive, and never inline. */
SKUA_API SKUA_NODISCARD int skua_task_receive_slowly(skua_context *ctx, skua_event **event,
                                                     uint64_t timeout_ns);

/* Receives the next event: a message, a call, the completion of a yield that has a tag, a tick or
 * an exit.
 * Gives:   *event, valid until the next receive; take out its payload to keep that.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_TIMEOUT (of 0: there is no event now); SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
static inline SKUA_NODISCARD int skua_task_receive(skua_context *ctx, skua_event **event,
                                                   uint64_t timeout_ns)
{
#if SKUA_SWITCH_IS_INLINE
    struct skua_wait_ *wait = (struct skua_wait_ *)(void *)ctx;
    if (wait != NULL && wait->peer != NULL && event != NULL && timeout_ns == SKUA_FOREVER) {
        wait->kind = SKUA_WAIT_EVENT_;
        skua_switch_(wait->peer);
        *event = wait->event;
        return wait->result;
    }
#endif
    return skua_task_receive_slowly(ctx, event, timeout_ns);
}

/* Receives the next message or call whose payload has this type. Other events stay, in order, and
 * messages and calls count against the mailbox limit as before.
 * Gives:   *event, as skua_task_receive.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_TIMEOUT; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_receive_type(skua_context *ctx, uint32_t type,
                                                   skua_event **event, uint64_t timeout_ns);

/* Returns whether a task wants to receive this event. It is not the task's yet: a request cannot be
 * answered, a payload not be taken out. */
typedef bool skua_match_fn(void *arg, const skua_event *event);

/* Receives the next event that `match` accepts. Others stay, as with skua_task_receive_type.
 * Gives:   *event, as skua_task_receive.
 * Threads: worker (inside a task).      Blocks: the task; calls match on the worker's stack.
 * Returns: 0; SKUA_E_TIMEOUT; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_receive_if(skua_context *ctx, skua_match_fn *match, void *arg,
                                                 skua_event **event, uint64_t timeout_ns);

/* ---- time ---- */

/* Waits for a while.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API int skua_task_sleep(skua_context *ctx, uint64_t duration_ns);

/* Waits until the instant *next, and moves that on by a period; so what the task does in between
 * takes nothing from the next wait. Zero in *next starts: the first tick is one period from now.
 * Instants that have passed unseen are skipped.
 * Gives:   *count, how many periods have passed: 1, or more if the task was late; may be null.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API int skua_task_ticker(skua_context *ctx, uint64_t period_ns, uint64_t *next,
                              uint64_t *count);

/* Lets others run: for a task that computes.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API int skua_task_pause(skua_context *ctx);

/* ---- other processes ---- */

/* Like skua_task_call, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_task_call_from(skua_context *ctx, skua_pid to,
                                                skua_payload *payload, uint64_t timeout_ns,
                                                skua_payload *reply);

/* Calls a process and waits for its answer: skua_yield_call.
 * Takes:   payload, always.      Gives: *reply (may be null): drop it; empty on error, but for
 *          SKUA_E_PEER_ENDED.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; the error of the answer; as the completion of skua_yield_call; SKUA_E_CANCELLED;
 *          SKUA_E_TERMINATED. */
static inline SKUA_NODISCARD int skua_task_call(skua_context *ctx, skua_pid to,
                                                skua_payload payload, uint64_t timeout_ns,
                                                skua_payload *reply)
{
    return skua_task_call_from(ctx, to, &payload, timeout_ns, reply);
}

/* Like skua_task_send, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_task_send_from(skua_context *ctx, skua_pid to,
                                                skua_payload *payload, uint64_t timeout_ns);

/* Sends a message and waits until it is admitted: skua_yield_send. On error it is not delivered.
 * Takes:   payload, always.      Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; as skua_yield_send and its completion; SKUA_E_CANCELLED; SKUA_E_TERMINATED;
 *          SKUA_E_INVALID (to itself: it might wait for ever). */
static inline SKUA_NODISCARD int skua_task_send(skua_context *ctx, skua_pid to,
                                                skua_payload payload, uint64_t timeout_ns)
{
    return skua_task_send_from(ctx, to, &payload, timeout_ns);
}

/* Calls the process that has this name: skua_yield_call_name.
 * Takes:   payload, always.      Gives: *reply, as skua_task_call.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as skua_task_call and skua_yield_call_name; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_call_name(skua_context *ctx, const char *name,
                                                skua_payload payload, uint64_t timeout_ns,
                                                skua_payload *reply);

/* Calls a process on behalf of a request that this one serves: skua_yield_call_for.
 * Takes:   payload, always.      Gives: *reply, as skua_task_call.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as skua_task_call and skua_yield_call_for; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_call_for(skua_context *ctx, skua_request request, skua_pid to,
                                               skua_payload payload, uint64_t timeout_ns,
                                               skua_payload *reply);

/* Waits until a process has ended: skua_yield_monitor.
 * Gives:   *exit_error (may be null), how that ended; 0 on error.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0 (it has ended, however); SKUA_E_NO_PROCESS (it had ended before); SKUA_E_FOREIGN_PID;
 *          SKUA_E_TIMEOUT; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_monitor(skua_context *ctx, skua_pid pid, uint64_t timeout_ns,
                                              int *exit_error);

/* Waits until a process has ended, for its result: skua_yield_join.
 * Gives:   *exit_error, as skua_task_monitor; *result (may be null): drop it; empty on error, and
 *          if the process has ended with one.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as skua_task_monitor; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_join(skua_context *ctx, skua_pid pid, uint64_t timeout_ns,
                                           int *exit_error, skua_payload *result);

/* Waits until a process has this name: skua_yield_await_name.
 * Gives:   *pid (may be null), zero on error.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_TIMEOUT; as skua_yield_await_name; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_await_name(skua_context *ctx, const char *name,
                                                 uint64_t timeout_ns, skua_pid *pid);

/* Sends a message to all members of a group, and waits until that is done: skua_yield_publish.
 * Takes:   payload, always.      Gives: *published (may be null), zero on error.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; as skua_yield_publish; SKUA_E_CANCELLED (publishing goes on); SKUA_E_TERMINATED. */
SKUA_API int skua_task_publish(skua_context *ctx, const char *name, skua_payload payload,
                               skua_published *published);

/* ---- the rest of the world ---- */

/* Waits until a descriptor can be read or written: skua_yield_readable, skua_yield_writable.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as the completions of those; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_readable(skua_context *ctx, int fd, uint64_t timeout_ns);
SKUA_API SKUA_NODISCARD int skua_task_writable(skua_context *ctx, int fd, uint64_t timeout_ns);

/* Waits for the next connection: skua_yield_accept.
 * Gives:   *socket, zero on error.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as skua_yield_accept and its completion. */
SKUA_API SKUA_NODISCARD int skua_task_accept(skua_context *ctx, skua_socket listener,
                                             uint64_t timeout_ns, skua_socket *socket);

/* Connects to an address: skua_yield_connect.
 * Gives:   *socket, zero on error.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as skua_yield_connect and its completion. */
SKUA_API SKUA_NODISCARD int skua_task_connect(skua_context *ctx, const char *address,
                                              const char *source, uint64_t timeout_ns,
                                              skua_socket *socket);

/* Reads what there is, at most `most` bytes: skua_yield_read; exactly `size` bytes:
 * skua_yield_read_exactly; or up to and with a delimiter: skua_yield_read_until.
 * Gives:   *data: drop it; empty at the end of input and on error.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as those and their completions. */
SKUA_API SKUA_NODISCARD int skua_task_read(skua_context *ctx, skua_socket socket, size_t most,
                                           uint64_t timeout_ns, skua_payload *data);
SKUA_API SKUA_NODISCARD int skua_task_read_exactly(skua_context *ctx, skua_socket socket,
                                                   size_t size, uint64_t timeout_ns,
                                                   skua_payload *data);
SKUA_API SKUA_NODISCARD int skua_task_read_until(skua_context *ctx, skua_socket socket,
                                                 const char *delimiter, size_t limit,
                                                 uint64_t timeout_ns, skua_payload *data);

/* Writes the bytes of a payload: skua_yield_write.
 * Takes:   payload, always.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as that and its completion. */
SKUA_API SKUA_NODISCARD int skua_task_write(skua_context *ctx, skua_socket socket,
                                            skua_payload payload, uint64_t timeout_ns);

/* Waits until the peer has said that it writes no more, or is gone: skua_yield_hangup.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as that and its completion. */
SKUA_API SKUA_NODISCARD int skua_task_hangup(skua_context *ctx, skua_socket socket,
                                             uint64_t timeout_ns);

/* Runs a function on a thread of a blocking pool: skua_yield_blocking.
 * Gives:   *result (may be null): drop it.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as the completion of that; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_blocking(skua_context *ctx, skua_pool pool,
                                               skua_blocking_fn *function, skua_payload input,
                                               uint64_t timeout_ns, skua_payload *result);

/* Carries out a command: skua_yield.
 * Takes:   payload, always.      Gives: *result (may be null): drop it.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: as the completion of that; SKUA_E_CANCELLED; SKUA_E_TERMINATED. */
SKUA_API SKUA_NODISCARD int skua_task_yield(skua_context *ctx, uint32_t command,
                                            skua_payload payload, uint64_t timeout_ns,
                                            skua_payload *result);

/* ---- ending ---- */

/* Calls a function with `arg`, which cannot be in the frame of the task's function, when that has
 * returned, however that comes; the last one first. In a task that serves, when serve returns.
 * Threads: worker (inside a task).      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY; SKUA_E_NOT_TASK; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API SKUA_NODISCARD int skua_task_defer(skua_context *ctx, void (*function)(void *arg),
                                            void *arg);

/* Why the waits of this task end at once. What a call, a command or a function on a pool returns is
 * for others to choose, and may look the same.
 * Threads: worker (inside a task).      Blocks: never.
 * Returns: 0 (they do not); SKUA_E_CANCELLED; SKUA_E_TERMINATED; SKUA_E_DONE; SKUA_E_NOT_TASK;
 *          SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_task_ending(skua_context *ctx);

/* Begins or ends a part whose waits do not end because of a cancel: for clean-up that waits. A
 * termination ends them even so.
 * Threads: worker (inside a task).      Blocks: never.
 * Returns: 0; SKUA_E_NOT_TASK; SKUA_E_CONTEXT; SKUA_E_INVALID. */
SKUA_API int skua_task_shield(skua_context *ctx, bool on);

/* ---- places ---- */

/* errno of the thread that calls this: not of the one that the compiler has seen last. This header
 * redefines errno as what it points to.
 * Threads: any.      Blocks: never. */
SKUA_API int *skua_errno(void);
#undef errno
#define errno (*skua_errno())

/* Remembers where a task waits, for `skua info`: internal. */
static inline skua_context *skua_at_(skua_context *ctx, const char *where)
{
    if (ctx != NULL) {
        ((struct skua_wait_ *)(void *)ctx)->where = where;
    }
    return ctx;
}
#define SKUA_TEXT_(x)  #x
#define SKUA_LINE_(x)  SKUA_TEXT_(x)
#define SKUA_HERE_     __FILE__ ":" SKUA_LINE_(__LINE__)
#define SKUA_AT_(ctx_) skua_at_(ctx_, SKUA_HERE_)

/* Arguments may be literals with commas in them. */
#define skua_task_receive(ctx, ...) SKUA_WAIT_(skua_task_receive, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_receive_type(ctx, ...)                                                           \
    SKUA_WAIT_(skua_task_receive_type, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_receive_if(ctx, ...) SKUA_WAIT_(skua_task_receive_if, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_sleep(ctx, ...)      SKUA_REST_(skua_task_sleep, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_ticker(ctx, ...)     SKUA_REST_(skua_task_ticker, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_pause(ctx)           SKUA_REST_(skua_task_pause, SKUA_AT_(ctx))
#define skua_task_call(ctx, ...)       SKUA_WAIT_(skua_task_call, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_send(ctx, ...)       SKUA_WAIT_(skua_task_send, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_call_name(ctx, ...)  SKUA_WAIT_(skua_task_call_name, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_call_for(ctx, ...)   SKUA_WAIT_(skua_task_call_for, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_monitor(ctx, ...)    SKUA_WAIT_(skua_task_monitor, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_join(ctx, ...)       SKUA_WAIT_(skua_task_join, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_await_name(ctx, ...) SKUA_WAIT_(skua_task_await_name, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_publish(ctx, ...)    SKUA_REST_(skua_task_publish, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_readable(ctx, ...)   SKUA_WAIT_(skua_task_readable, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_writable(ctx, ...)   SKUA_WAIT_(skua_task_writable, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_accept(ctx, ...)     SKUA_WAIT_(skua_task_accept, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_connect(ctx, ...)    SKUA_WAIT_(skua_task_connect, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_read(ctx, ...)       SKUA_WAIT_(skua_task_read, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_read_exactly(ctx, ...)                                                           \
    SKUA_WAIT_(skua_task_read_exactly, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_read_until(ctx, ...) SKUA_WAIT_(skua_task_read_until, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_write(ctx, ...)      SKUA_WAIT_(skua_task_write, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_hangup(ctx, ...)     SKUA_WAIT_(skua_task_hangup, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_blocking(ctx, ...)   SKUA_WAIT_(skua_task_blocking, SKUA_AT_(ctx), __VA_ARGS__)
#define skua_task_yield(ctx, ...)      SKUA_WAIT_(skua_task_yield, SKUA_AT_(ctx), __VA_ARGS__)

SKUA_END_DECLS

#endif
