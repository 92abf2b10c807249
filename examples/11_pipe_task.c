/* SPDX-License-Identifier: MIT */
/* 06_pipe again, in straight-line code: the source and the echo are tasks, which read and write as
 * programs with blocking descriptors do. Where such a program would block, a task waits. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <unistd.h>

#define BYTES (4u << 20) /* much more than a pipe holds */
#define CHUNK 4096

/* What the byte at an offset has to be. */
static unsigned char pattern(uint64_t offset)
{
    return (unsigned char)(offset % 251);
}

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

/* Like read, but returns a negative error of Skua. */
static ssize_t read_some(skua_context *ctx, int fd, unsigned char *buffer)
{
    ssize_t size;
    while ((size = read(fd, buffer, CHUNK)) < 0) {
        const int error =
            errno == EAGAIN ? skua_task_readable(ctx, fd, 10 * SKUA_SECOND) : SKUA_E_USER - errno;
        if (error != 0) {
            return error;
        }
    }
    return size;
}

static int write_all(skua_context *ctx, int fd, const unsigned char *buffer, ssize_t size)
{
    for (ssize_t written; size > 0; buffer += written, size -= written) {
        while ((written = write(fd, buffer, (size_t)size)) < 0) {
            const int error =
                errno == EAGAIN ? skua_task_writable(ctx, fd, SKUA_FOREVER) : SKUA_E_USER - errno;
            if (error != 0) {
                return error;
            }
        }
    }
    return 0;
}

static int source_main(void *self, skua_context *ctx)
{
    const struct ends *ends = self;
    unsigned char buffer[CHUNK];
    int error = 0;
    for (uint64_t made = 0; made < BYTES && error == 0;) {
        for (size_t i = 0; i < CHUNK; i++) {
            buffer[i] = pattern(made++);
        }
        error = write_all(ctx, ends->output, buffer, CHUNK);
    }
    return error;
}

static int echo_main(void *self, skua_context *ctx)
{
    const struct ends *ends = self;
    unsigned char buffer[CHUNK];
    ssize_t size;
    int error = 0;
    while (error == 0 && (size = read_some(ctx, ends->input, buffer)) != 0) {
        error = size > 0 ? write_all(ctx, ends->output, buffer, size) : (int)size;
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

/* Plain C: reads to the end, and counts the bytes that are as they should be. */
static uint64_t check(int input)
{
    unsigned char buffer[CHUNK];
    uint64_t total = 0, right = 0;
    for (ssize_t size; (size = read(input, buffer, sizeof buffer)) > 0;) {
        for (ssize_t i = 0; i < size; i++) {
            right += buffer[i] == pattern(total++);
        }
    }
    return right;
}

int main(void)
{
    int first[2], second[2]; /* all ends but the last, which is for main, never block */
    skua_runtime *runtime = NULL;
    uint64_t right = 0;
    if (pipe2(first, O_NONBLOCK | O_CLOEXEC) != 0 || pipe2(second, O_CLOEXEC) != 0 ||
        fcntl(second[1], F_SETFL, O_NONBLOCK) != 0) {
        perror("11_pipe_task");
        return 1;
    }
    int error = skua_runtime_create(&runtime, NULL);
    error = error != 0 ? error : skua_runtime_start(runtime);
    error = error != 0 ? error : start(runtime, &echo_type, first[0], second[1]);
    error = error != 0 ? error : start(runtime, &source_type, -1, first[1]);
    if (error == 0) {
        right = check(second[0]);
        printf("%" PRIu64 " of %u bytes came back\n", right, BYTES);
    } else {
        fprintf(stderr, "11_pipe_task: %s\n", skua_error_text(error));
    }
    (void)skua_runtime_stop(runtime, SKUA_SECOND);
    (void)skua_runtime_destroy(runtime);
    return right == BYTES ? 0 : 1;
}
