/* SPDX-License-Identifier: MIT */
/* An echo between two pipes, in a program with its own main. One process fills the first pipe, the
 * echo copies from it into the second. Each does what it can without blocking, then waits until a
 * pipe is ready for more; no worker is held up. main reads what comes out. */
#include "pipes.h"

#include <skua/skua.h>

/* What a stage is started with: where to read (-1: make the bytes up), and where to write. */
SKUA_MESSAGE(ends, 0, int input; int output;);

struct stage {
    struct ends ends;
    uint64_t made;          /* bytes that the source has put into its buffer so far */
    size_t filled, emptied; /* of the buffer */
    unsigned char buffer[CHUNK];
};

static int stage_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct stage *stage = self;
    (void)ctx, (void)count;
    return ends_get(&input[0], &stage->ends);
}

static void stage_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    const struct stage *stage = self;
    skua_runtime *runtime = skua_runtime_of(ctx);
    (void)exit;
    skua_descriptor_close(runtime, stage->ends.output); /* the next stage reads the end of file */
    skua_descriptor_close(runtime, stage->ends.input);
}

/* Makes the next bytes, or reads them. Returns how many, as read does: 0 at the end. */
static ssize_t fill(struct stage *stage)
{
    return stage->ends.input >= 0 ? read(stage->ends.input, stage->buffer, CHUNK)
                                  : make_bytes(stage->buffer, &stage->made);
}

static int stage_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct stage *stage = self;
    (void)count;
    if (events[0].error != 0) {
        return events[0].error; /* SKUA_E_TIMEOUT: nothing has come for too long */
    }
    for (;;) {
        if (stage->emptied == stage->filled) {
            const ssize_t size = fill(stage);
            if (size < 0 && errno == EAGAIN) {
                return skua_yield_readable(ctx, 0, stage->ends.input, 10 * SKUA_SECOND);
            }
            if (size <= 0) {
                return size == 0 ? skua_done(ctx, skua_nothing()) : SKUA_E_USER - errno;
            }
            stage->filled = (size_t)size;
            stage->emptied = 0;
        }
        const ssize_t size = write(stage->ends.output, stage->buffer + stage->emptied,
                                   stage->filled - stage->emptied);
        if (size < 0) {
            return errno == EAGAIN ? skua_yield_writable(ctx, 0, stage->ends.output, SKUA_FOREVER)
                                   : SKUA_E_USER - errno;
        }
        stage->emptied += (size_t)size;
    }
}

static const skua_process_type source_type = {"source", sizeof(struct stage), .init = stage_init,
                                              .step = stage_step, .close = stage_close};
static const skua_process_type echo_type = {"echo", sizeof(struct stage), .init = stage_init,
                                            .step = stage_step, .close = stage_close};

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
        perror("06_pipe");
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
        fprintf(stderr, "06_pipe: %s\n", skua_error_text(error));
    }
    (void)skua_runtime_stop(runtime, SKUA_SECOND);
    (void)skua_runtime_destroy(runtime);
    return right == BYTES ? 0 : 1;
}
