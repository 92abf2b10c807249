/* SPDX-License-Identifier: MIT */
/* 06_pipe again, in straight-line code: the source and the echo are tasks, which wait until a pipe
 * is ready, and then read or write, as if nobody else were there. */
#include "pipes.h"

#include <skua/skua.h>

/* What a stage is started with: where to read (-1: it does not), and where to write. */
SKUA_MESSAGE(ends, 0, int input; int output;);

static int stage_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct ends *ends = self;
    (void)ctx, (void)count;
    return ends_get(&input[0], ends);
}

static void stage_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct ends *ends = self;
    skua_runtime *runtime = skua_runtime_of(ctx);
    (void)exit;
    skua_descriptor_close(runtime, ends->output); /* the next stage reads the end of file */
    skua_descriptor_close(runtime, ends->input);
}

/* Like read, but waits, and returns a negative error of Skua. */
static ssize_t read_chunk(skua_context *ctx, int fd, unsigned char *buffer)
{
    const int error = skua_task_readable(ctx, fd, 10 * SKUA_SECOND);
    const ssize_t size = error == 0 ? read(fd, buffer, CHUNK) : error;
    return size == -1 ? SKUA_E_USER - errno : size;
}

/* Waits until there is room for all of it. */
static int write_chunk(skua_context *ctx, int fd, const unsigned char *buffer, ssize_t size)
{
    const int error = skua_task_writable(ctx, fd, SKUA_FOREVER);
    return error != 0 ? error : write(fd, buffer, (size_t)size) == size ? 0 : SKUA_E_USER - errno;
}

static int source_main(void *self, skua_context *ctx)
{
    const struct ends *ends = self;
    unsigned char buffer[CHUNK];
    uint64_t made = 0;
    int error = 0;
    while (error == 0 && made < BYTES) {
        error = write_chunk(ctx, ends->output, buffer, make_bytes(buffer, &made));
    }
    return error;
}

static int echo_main(void *self, skua_context *ctx)
{
    const struct ends *ends = self;
    unsigned char buffer[CHUNK];
    ssize_t size;
    int error = 0;
    while (error == 0 && (size = read_chunk(ctx, ends->input, buffer)) != 0) {
        error = size > 0 ? write_chunk(ctx, ends->output, buffer, size) : (int)size;
    }
    return error;
}

static const skua_process_type source_type = {"source", sizeof(struct ends), .init = stage_init,
                                              .main = source_main, .close = stage_close};
static const skua_process_type echo_type = {"echo", sizeof(struct ends), .init = stage_init,
                                            .main = echo_main, .close = stage_close};

/* Starts a process between two descriptors, which it closes when it ends. */
static int start(skua_runtime *runtime, const skua_process_type *type, int input, int output)
{
    skua_payload payload;
    const int error = ends_payload(runtime, (struct ends){input, output}, &payload);
    return error != 0 ? error : skua_process_submit(runtime, type, payload, NULL);
}

int main(void)
{
    int first[2], second[2];
    skua_runtime *runtime = NULL;
    uint64_t right = 0;
    if (!open_pipes(first, second)) {
        perror("11_pipe_task");
        return 1;
    }
    int error = skua_runtime_create(&runtime, NULL);
    error = error != 0 ? error : skua_runtime_start(runtime);
    error = error != 0 ? error : start(runtime, &echo_type, first[0], second[1]);
    error = error != 0 ? error : start(runtime, &source_type, -1, first[1]);
    if (error == 0) {
        right = check_bytes(second[0]);
        printf("%" PRIu64 " of %u bytes came back\n", right, BYTES);
    } else {
        fprintf(stderr, "11_pipe_task: %s\n", skua_error_text(error));
    }
    (void)skua_runtime_stop(runtime, SKUA_SECOND);
    (void)skua_runtime_destroy(runtime);
    return right == BYTES ? 0 : 1;
}
