/* SPDX-License-Identifier: MIT */
/* The functions of skua/serve.h. Their waits are at the place of whoever called them. */
#include <skua/serve.h>
#include <stdlib.h>

#include "sched/context.h"
#include "sched/spawn.h"

/* Bytes that are written without waiting until the system has taken those before them. */
#define UNWAITED_MAX ((size_t)128 * 1024)

/* Starts a process that has the socket; closes that if there is none. */
static int start_session(skua_context *ctx, const skua_process_type *type, skua_socket socket,
                         const skua_payload *input)
{
    skua_payload inputs[2];
    const int error = skua_payload_ref(input, &inputs[0]);
    if (error != 0) {
        return error;
    }
    inputs[1] = skua_payload_u64(0, socket.bits);
    const skua_spawn_options options = {
        .type = type, .input = inputs, .input_count = 2, .socket = socket};
    if (skua_spawn_with(ctx, &options, NULL) != 0) {
        (void)skua_socket_close(ctx, socket);
    }
    return 0;
}

int(skua_task_serve)(skua_context *ctx, skua_socket listener, const skua_process_type *type,
                     const skua_payload *input)
{
    int error = 0;
    if (!spawn_type_is_valid(type) || input == NULL) {
        return SKUA_E_INVALID;
    }
    while (error == 0) {
        skua_socket socket;
        error = (skua_task_accept)(ctx, listener, SKUA_FOREVER, &socket);
        if (error == SKUA_E_NO_MEMORY) {
            error = (skua_task_sleep)(ctx, SKUA_MILLISECOND);
        } else if (error == 0) {
            error = start_session(ctx, type, socket, input);
        }
    }
    return error;
}

/* ---- conversations ---- */

static void drop_stream(void *data, size_t size)
{
    (void)size;
    skua_stream_clear(data);
    free(data);
}

int skua_stream_payload(skua_context *ctx, skua_socket socket, size_t limit, size_t size,
                        skua_payload *payload)
{
    if (payload == NULL || size < sizeof(skua_stream)) {
        return SKUA_E_INVALID;
    }
    *payload = skua_nothing();
    const int error = context_refuse(ctx, CONTEXT_ANY);
    skua_stream *stream = error == 0 ? calloc(1, size) : NULL;
    if (stream == NULL) {
        return error != 0 ? error : SKUA_E_NO_MEMORY;
    }
    stream->socket = socket;
    stream->owner = skua_self(ctx);
    stream->input.limit = limit;
    *payload = skua_payload_pointer(SKUA_STREAM, stream, drop_stream);
    return 0;
}

void skua_stream_clear(skua_stream *stream)
{
    if (stream != NULL) {
        skua_input_clear(&stream->input);
        skua_output_clear(&stream->output);
    }
}

static int write_output(skua_context *ctx, skua_stream *stream)
{
    skua_payload payload;
    const int error = skua_output_take(&stream->output, &payload);
    const size_t size = skua_payload_size(&payload);
    if (error != 0 || size == 0) {
        return error;
    }
    stream->unwaited += size;
    if (stream->unwaited <= UNWAITED_MAX) {
        return skua_socket_write_from(ctx, stream->socket, &payload);
    }
    stream->unwaited = 0;
    return (skua_task_write)(ctx, stream->socket, payload, SKUA_FOREVER);
}

static int begin_read(skua_context *ctx, skua_stream *stream)
{
    int error = stream->input.error;
    if (error == 0 && !stream->is_reading) {
        error = skua_yield_read(ctx, SKUA_STREAM_TAG, stream->socket, SKUA_READ_MAX, SKUA_FOREVER);
        stream->is_reading = error == 0;
    }
    return error;
}

static int end_read(skua_stream *stream, skua_event *event)
{
    stream->is_reading = false;
    if (event->error != 0 || skua_payload_size(&event->payload) == 0) {
        return event->error != 0 ? event->error : SKUA_E_CLOSED;
    }
    return skua_input_append_from(&stream->input, &event->payload);
}

/* Writes, and receives something. Returns 0, and whether it was input. */
static int exchange_once(skua_context *ctx, skua_stream *stream, skua_event **event, bool *is_input)
{
    int error = write_output(ctx, stream);
    error = error != 0 ? error : begin_read(ctx, stream);
    error = error != 0 ? error : skua_task_receive_slowly(ctx, event, SKUA_FOREVER);
    *is_input =
        error == 0 && (*event)->type == SKUA_EVENT_COMPLETION && (*event)->tag == SKUA_STREAM_TAG;
    return *is_input ? end_read(stream, *event) : error;
}

/* What comes meanwhile to a task that expects messages only: they are for the peer. True, or
 * *error. */
static bool passes_on(skua_stream *stream, const skua_event *received, int *error)
{
    if (received->type == SKUA_EVENT_MESSAGE) {
        skua_output_bytes(&stream->output, skua_payload_bytes(&received->payload));
    } else if (received->type == SKUA_EVENT_CANCEL) {
        *error = received->error;
    }
    return *error == 0;
}

int(skua_task_exchange)(skua_context *ctx, skua_stream *stream, skua_event **event)
{
    skua_event *received = NULL;
    bool is_input = false;
    int error = stream != NULL ? 0 : SKUA_E_INVALID;
    do {
        error = error != 0 ? error : exchange_once(ctx, stream, &received, &is_input);
    } while (error == 0 && !is_input && event == NULL && passes_on(stream, received, &error));
    if (event != NULL) {
        *event = error != 0 || is_input ? NULL : received;
    }
    return error;
}
