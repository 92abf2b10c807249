/* SPDX-License-Identifier: MIT */
/* Calls: a process asks another one and waits for the answer, for as long as it likes.
 *
 * A call is a yield. The process that is called, the server, is of a type that sets `.calls`. It
 * gets SKUA_EVENT_CALL and answers with skua_reply, in the same step or in a later one. The caller
 * gets one completion: the answer, or the reason why there is none. A caller never waits for a
 * server that has ended, and an answer that comes too late is dropped.
 *
 *     static int cache_step(void *self, skua_context *ctx, skua_event *events, size_t count)
 *     {
 *         for (size_t i = 0; i < count; i++) {
 *             if (events[i].type == SKUA_EVENT_CALL) {
 *                 (void)skua_reply(ctx, events[i].request, 0, look_up(self, &events[i].payload));
 *             }
 *         }
 *         return 0;
 *     } */
#ifndef SKUA_CALL_H
#define SKUA_CALL_H

#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* ---- asking ---- */

/* Like skua_yield_call, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_yield_call_from(skua_context *ctx, uint64_t tag, skua_pid to,
                                                 skua_payload *payload, uint64_t timeout_ns);

/* Calls a process. The completion has the error and the payload of the reply. If there is none, the
 * payload is empty and the error is SKUA_E_TIMEOUT, SKUA_E_CANCELLED (by skua_yield_cancel),
 * SKUA_E_NO_PROCESS, SKUA_E_FOREIGN_PID, SKUA_E_NOT_CALLABLE, SKUA_E_MAILBOX_FULL,
 * SKUA_E_MESSAGE_QUOTA or SKUA_E_NO_MEMORY; or it is SKUA_E_PEER_ENDED, and the payload is the exit
 * error of the server, as a 64-bit number. A call that ends before the server's step gets it is
 * never handed to it.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield; SKUA_E_INVALID (a process cannot call itself). */
static inline SKUA_NODISCARD int skua_yield_call(skua_context *ctx, uint64_t tag, skua_pid to,
                                                 skua_payload payload, uint64_t timeout_ns)
{
    return skua_yield_call_from(ctx, tag, to, &payload, timeout_ns);
}

/* Like skua_yield_call_for, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_yield_call_for_from(skua_context *ctx, uint64_t tag,
                                                     skua_request request, skua_pid to,
                                                     skua_payload *payload, uint64_t timeout_ns);

/* Calls a process in order to answer `request`. The call has no more time than the caller of that
 * has left, and `timeout_ns` may make it less. If that caller gives up or ends first, the call
 * completes with SKUA_E_CANCELLED; and so do the calls that the other process makes for it in
 * turn.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: as skua_yield_call; SKUA_E_LATE (this process owes no answer to `request`). */
static inline SKUA_NODISCARD int skua_yield_call_for(skua_context *ctx, uint64_t tag,
                                                     skua_request request, skua_pid to,
                                                     skua_payload payload, uint64_t timeout_ns)
{
    return skua_yield_call_for_from(ctx, tag, request, to, &payload, timeout_ns);
}

/* Calls a process from a thread, and waits for the answer. A small process makes the call for the
 * thread: it is the `from` of the call.
 * Takes:   payload, always.      Gives: *reply (may be null): drop it; empty if there is no reply.
 * Threads: any but a worker's.      Blocks: yes.
 * Returns: the error of the reply, mostly 0; an error of skua_yield_call or of its completion;
 *          SKUA_E_PROCESS_LIMIT; SKUA_E_NOT_STARTED; SKUA_E_STOPPED; SKUA_E_INSIDE_STEP; in a
 *          simulation also SKUA_E_BUSY and SKUA_E_AT_REST. */
SKUA_API SKUA_NODISCARD int skua_process_call(skua_runtime *runtime, skua_pid to,
                                              skua_payload payload, uint64_t timeout_ns,
                                              skua_payload *reply);

/* ---- answering ---- */

/* Like skua_reply, with a pointer to the payload. */
SKUA_API int skua_reply_from(skua_context *ctx, skua_request request, int error,
                             skua_payload *payload);

/* Answers a call, once, with an error (0 or negative) and a payload. The mailbox limit of the
 * caller does not apply to an answer. But until it is answered, a call keeps its place in the
 * mailbox of this process. If the process ends first, the call completes with SKUA_E_PEER_ENDED.
 * Takes:   payload, always.      Threads: worker (inside step or close).      Blocks: never.
 * Returns: 0; SKUA_E_LATE (nobody waits for it: the caller has given up or ended, the request was
 *          answered or forwarded before, or it is not one of this process); SKUA_E_PAYLOAD_SIZE;
 *          SKUA_E_TAKEN; SKUA_E_CONTEXT; SKUA_E_INVALID (positive error). */
static inline int skua_reply(skua_context *ctx, skua_request request, int error,
                             skua_payload payload)
{
    return skua_reply_from(ctx, request, error, &payload);
}

/* Like skua_forward, with a pointer to the payload. */
SKUA_API SKUA_NODISCARD int skua_forward_from(skua_context *ctx, skua_request request, skua_pid to,
                                              skua_payload *payload);

/* Passes a call on: another process gets it, with `payload`, as if it had been called in the first
 * place, and has to answer it. On any error but SKUA_E_LATE it stays with this process. A call can
 * be forwarded 14 times.
 * Takes:   payload, always.      Threads: worker (inside step).      Blocks: never.
 * Returns: 0; SKUA_E_LATE, as skua_reply; SKUA_E_NO_PROCESS; SKUA_E_FOREIGN_PID;
 *          SKUA_E_NOT_CALLABLE; SKUA_E_MAILBOX_FULL; SKUA_E_MESSAGE_QUOTA; SKUA_E_FORWARDED;
 *          SKUA_E_PAYLOAD_SIZE; SKUA_E_TAKEN; SKUA_E_CONTEXT; SKUA_E_INVALID (to itself). */
static inline SKUA_NODISCARD int skua_forward(skua_context *ctx, skua_request request, skua_pid to,
                                              skua_payload payload)
{
    return skua_forward_from(ctx, request, to, &payload);
}

/* When the caller stops waiting: an instant of skua_now's clock, perhaps early by a microsecond, or
 * by a millionth of the timeout; SKUA_FOREVER if it has set none; 0 if this process owes no answer
 * to `request`.
 * Threads: worker (inside step or close).      Blocks: never. */
SKUA_API uint64_t skua_request_deadline(skua_context *ctx, skua_request request);

SKUA_END_DECLS

#endif
