/* SPDX-License-Identifier: MIT */
/* What tasks with sockets do over and over: accept connections; write what they have to say, and
 * read on. */
#ifndef SKUA_SERVE_H
#define SKUA_SERVE_H

#include <skua/codec.h>
#include <skua/error.h>
#include <skua/payload.h>
#include <skua/process.h>
#include <skua/socket.h>
#include <skua/task.h>
#include <skua/types.h>

SKUA_BEGIN_DECLS

/* Accepts connections for ever, and starts a process for each, which has the socket. Its init gets
 * two inputs: a reference to `input`, and the socket, for skua_payload_to_socket. A connection for
 * which no process can be started is closed; if there is no memory to accept one, the task waits a
 * moment.
 * Borrows: input (shared, inside, static or empty, as skua_payload_ref wants it).
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: the error that has ended it: as skua_task_accept; as skua_payload_ref;
 *          SKUA_E_INVALID (null, or a type that cannot run). */
SKUA_API SKUA_NODISCARD int skua_task_serve(skua_context *ctx, skua_socket listener,
                                            const skua_process_type *type,
                                            const skua_payload *input);
#define skua_task_serve(ctx, ...) SKUA_WAIT_(skua_task_serve, SKUA_AT_(ctx), __VA_ARGS__)

/* A connection: what it has sent, and what it is to be sent. */
typedef struct skua_stream {
    skua_socket socket; /* whose stream it is */
    skua_pid owner;     /* the process that has the socket: send the stream back to it */
    skua_input input;   /* what has come; set its limit */
    skua_output output; /* what is to be written */
    /* What follows is up to Skua. */
    bool is_reading;       /* a read is open */
    size_t unwaited;       /* bytes that were written without waiting */
    uintptr_t reserved[4]; /* zero */
} skua_stream;

/* The type of the payload of a stream. */
#define SKUA_STREAM UINT32_MAX

/* Makes a stream that can be sent to other processes, to be answered there, and back again: a
 * pointer payload with `size` zeroed bytes, for a struct of yours that begins with a skua_stream.
 * This process is the owner. Whoever drops the payload frees all of it.
 * Gives:   *payload, empty on error.
 * Threads: worker (inside init, step or close).      Blocks: never.
 * Returns: 0; SKUA_E_NO_MEMORY; SKUA_E_CONTEXT; SKUA_E_INVALID (null, or less than a stream). */
SKUA_API SKUA_NODISCARD int skua_stream_payload(skua_context *ctx, skua_socket socket, size_t limit,
                                                size_t size, skua_payload *payload);

/* Frees what a stream holds. Null is ignored. The socket stays open.
 * Threads: the owner's.      Blocks: never. */
SKUA_API void skua_stream_clear(skua_stream *stream);

/* One round of a conversation: writes the output, reads, and appends what has come to the input.
 * Whatever else there is to receive ends the round, too. If `event` is null, messages are written
 * to the peer instead, byte by byte as they are; SKUA_EVENT_CANCEL ends the call with its reason;
 * and other events are dropped. A whole server:
 *
 *     skua_stream stream = {.socket = socket, .input = {.limit = 4096}};
 *     while ((error = skua_task_exchange(ctx, &stream, NULL)) == 0) {
 *         while (skua_input_take_line(&stream.input, &line) > 0) {
 *             skua_output_text(&stream.output, "an answer\n");
 *         }
 *     }
 *     skua_stream_clear(&stream);
 *
 * A peer that does not read its answers is not read from, but for 128 KiB of them. If the input has
 * failed (skua_input_fail), the output is still written. A task has one such conversation; it
 * does not yield with the tag SKUA_STREAM_TAG.
 * Gives:   *event (may be null), as skua_task_receive; null: the input has more now.
 * Threads: worker (inside a task).      Blocks: the task.
 * Returns: 0; SKUA_E_CLOSED (the peer writes no more); as skua_output_take; as skua_input_append;
 *          as skua_task_read, skua_task_write and skua_task_receive. */
SKUA_API SKUA_NODISCARD int skua_task_exchange(skua_context *ctx, skua_stream *stream,
                                               skua_event **event);
#define skua_task_exchange(ctx, ...) SKUA_WAIT_(skua_task_exchange, SKUA_AT_(ctx), __VA_ARGS__)

/* The tag of the read of skua_task_exchange. */
#define SKUA_STREAM_TAG (SKUA_TASK_TAGS - 1)

SKUA_END_DECLS

#endif
