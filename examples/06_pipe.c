/* SPDX-License-Identifier: MIT */
/* A writer and a reader with a pipe between them, both non-blocking: each does what it can, then
 * waits until the pipe is ready for more. Neither holds up a worker. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES (4u << 20) /* much more than a pipe holds */
#define CHUNK 4096

struct end {
    int fd;
    uint64_t done;
};

static int end_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                    size_t input_count)
{
    (void)ctx;
    (void)method;
    if (input_count != 1) {
        return SKUA_E_INVALID;
    }
    ((struct end *)self)->fd = (int)skua_payload_to_u64(&input[0]);
    return 0;
}

/* The error of a wait that has ended, or 0. */
static int wait_error(const skua_event *events, size_t count)
{
    return count > 0 && events[0].type == SKUA_EVENT_COMPLETION ? events[0].error : 0;
}

static int writer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    static const char chunk[CHUNK];
    struct end *writer = self;
    if (wait_error(events, count) != 0) {
        return events[0].error;
    }
    while (writer->done < BYTES) {
        const ssize_t written = write(writer->fd, chunk, sizeof chunk);
        if (written < 0) {
            return errno == EAGAIN ? skua_step_wait_writable(out, 1, writer->fd) : SKUA_E_USER;
        }
        writer->done += (uint64_t)written;
    }
    skua_step_done(out, skua_payload_u64(0, writer->done));
    return skua_descriptor_close(skua_context_runtime(ctx), writer->fd);
}

static int reader_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct end *reader = self;
    char chunk[CHUNK];
    if (wait_error(events, count) != 0) {
        return events[0].error; /* SKUA_E_TIMEOUT: the writer has been silent for too long */
    }
    ssize_t length;
    while ((length = read(reader->fd, chunk, sizeof chunk)) > 0) {
        reader->done += (uint64_t)length;
    }
    if (length < 0 && errno == EAGAIN) {
        const int error = skua_step_wait_readable(out, 1, reader->fd);
        return error != 0 ? error
                          : skua_step_deadline(out, skua_context_deadline(ctx, 10 * SKUA_SECOND));
    }
    skua_step_done(out, skua_payload_u64(0, reader->done)); /* the end of the file */
    (void)skua_descriptor_close(skua_context_runtime(ctx), reader->fd);
    return length < 0 ? SKUA_E_USER : 0;
}

static const skua_process_type writer_type = {
    .name = "writer", .state_size = sizeof(struct end), .init = end_init, .step = writer_step};
static const skua_process_type reader_type = {
    .name = "reader", .state_size = sizeof(struct end), .init = end_init, .step = reader_step};

static int run(skua_runtime *runtime, uint64_t *received)
{
    int fds[2];
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0) {
        return SKUA_E_USER;
    }
    skua_payload read_end = skua_payload_u64(0, (uint64_t)fds[0]);
    skua_payload write_end = skua_payload_u64(0, (uint64_t)fds[1]);
    skua_exit exit;
    int error = skua_process_submit(runtime, &writer_type, NULL, &write_end, 1, NULL);
    if (error == 0) {
        error = skua_process_run(runtime, &reader_type, NULL, &read_end, 1, &exit);
    }
    if (error == 0) {
        error = exit.error;
        *received = skua_payload_to_u64(&exit.result);
    }
    return error;
}

int main(void)
{
    skua_runtime *runtime;
    uint64_t received = 0;
    int error = skua_runtime_create(&runtime, NULL);
    if (error == 0) {
        error = skua_runtime_start(runtime);
        if (error == 0) {
            error = run(runtime, &received);
            (void)skua_runtime_stop(runtime, SKUA_SECOND);
        }
        (void)skua_runtime_destroy(runtime);
    }
    printf("%" PRIu64 " of %u bytes went through the pipe\n", received, BYTES);
    if (error != 0) {
        fprintf(stderr, "04_pipe: %s\n", skua_error_text(error));
    }
    return error == 0 && received == BYTES ? 0 : 1;
}
