/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "channels.h"
#include "yields.h"

#define PRIVATE_MAX 600 /* or a few more */

/* ---- channels ---- */

/* Either end, in either direction: some are ready at once, some never. */
static int wait_for_channel(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    const uint32_t channel = random_below(random, CHANNELS);
    const uint32_t end = random_below(random, 2);
    const int fd = channel_fd(channel, end);
    const bool reads = (end == 0) != once_in(random, 4);
    /* Only the closing of a proper channel is sure to come. */
    yield->is_endless = !channel_is_proper(channel);
    return reads ? skua_yield_readable(ctx, yield->tag, fd, yield->timeout)
                 : skua_yield_writable(ctx, yield->tag, fd, yield->timeout);
}

static bool shared_may_end(const struct open_yield *yield, skua_context *ctx,
                           const skua_event *event)
{
    (void)ctx;
    const int error = event->error;
    stress_tally(error == 0 ? TALLY_READY : TALLY_CLOSED_UNDER);
    return error == 0 || error == SKUA_E_CLOSED ||
           (error == SKUA_E_DESCRIPTOR && yield->kind == &yield_channel);
}

const struct yield_kind yield_channel = {
    .name = "wait for a channel", .make = wait_for_channel, .may_end = shared_may_end};

/* ---- pipes of one's own, for one wait each ---- */

static atomic_u32 private_count; /* either end of such a pipe */

static void uncount_private(uint32_t ends)
{
    (void)fetch_sub_relaxed(&private_count, ends); /* counter */
}

void check_descriptors(void)
{
    const uint32_t left = load_relaxed(&private_count); /* no thread */
    stress_expect_equal(STRESS_BROKEN, "descriptors of pipes", left, 0);
}

static void drop_end(void *data, size_t size)
{
    const struct stress_load *end = data;
    close_bare(end->fd);
    uncount_private(1);
    stress_load_drop(data, size);
}

void serve_pipe(uint64_t *random, struct stress_load *end)
{
    if (once_in(random, 4)) {
        /* closing it is enough */
    } else if (end->writes) {
        (void)write_bytes(end->fd, &end->token, sizeof end->token);
    } else {
        drain(end->fd);
    }
    drop_end(end, 0);
    stress_operation();
}

/* Gives the other end of a pipe to the thread that does jobs or to another process; if it never
 * gets there, it is closed. */
static void give_away(struct stress_load *end, skua_context *ctx, uint64_t *random)
{
    if (once_in(random, 2)) {
        const struct stress_job job = {.load = end, .run = serve_pipe};
        if (!stress_defer(&job)) {
            drop_end(end, 0);
        }
        return;
    }
    const skua_payload payload = skua_payload_pointer(PAYLOAD_PIPE_END, end, drop_end);
    stress_sent(skua_send(ctx, stress_random_pid(random), payload));
}

/* False if there are enough pipes. */
static bool open_own(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    struct stress_load *end = stress_load_take(random);
    if (end == NULL) {
        return false;
    }
    int fds[2];
    if (fetch_add_relaxed(&private_count, 2) >= PRIVATE_MAX || /* counter */
        !make_pair(random, fds)) {
        uncount_private(2);
        stress_load_drop(end, 0);
        return false;
    }
    const bool reads = yield->kind == &yield_read;
    yield->fd = fds[reads ? 0 : 1];
    if (!reads) {
        fill(yield->fd);
    }
    end->fd = fds[reads ? 1 : 0];
    end->writes = reads;
    end->token = token_of(yield, ctx);
    give_away(end, ctx, random);
    return true;
}

/* Properly, or behind the runtime's back. */
static void close_own(struct open_yield *yield, uint64_t *random)
{
    if (once_in(random, 2)) {
        const int error = skua_descriptor_close(current.runtime, yield->fd);
        stress_expect(error == 0, "closing a descriptor", error);
    } else {
        close_bare(yield->fd);
    }
    uncount_private(1);
}

static int wait_readable(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    (void)random;
    return skua_yield_readable(ctx, yield->tag, yield->fd, yield->timeout);
}

static int wait_writable(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    (void)random;
    return skua_yield_writable(ctx, yield->tag, yield->fd, yield->timeout);
}

/* Nobody else reads from or writes to it, so it is as ready as it was when the wait ended. */
static bool write_may_end(const struct open_yield *yield, skua_context *ctx,
                          const skua_event *event)
{
    (void)ctx;
    if (event->error == 0) {
        stress_tally(TALLY_READY);
        const long written = write_bytes(yield->fd, "", 1);
        stress_expect(written == 1 || errno == EPIPE || errno == ECONNRESET, "writing", errno);
    }
    return event->error == 0;
}

static bool read_may_end(const struct open_yield *yield, skua_context *ctx, const skua_event *event)
{
    if (event->error == 0) {
        stress_tally(TALLY_READY);
        uint64_t token = 0;
        const long size = read_bytes(yield->fd, &token, sizeof token);
        stress_expect(size >= 0, "reading", errno);
        if (size > 0 && token != token_of(yield, ctx)) {
            stress_fault(&stress, STRESS_CORRUPT, "what came through a pipe");
        }
    }
    return event->error == 0;
}

/* Waits for the same descriptor in the other direction, too: mostly that is ready at once, and the
 * first wait must outlive it. */
static int wait_also(struct open_yield *yield, skua_context *ctx, uint64_t *random)
{
    yield->is_endless = true; /* if the first wait ends first, and the descriptor with it */
    return wait_writable(yield, ctx, random);
}

static const struct yield_kind yield_also = {
    .name = "second wait", .make = wait_also, .may_end = shared_may_end};
const struct yield_kind yield_read = {
    .name = "wait to read",
    .prepare = open_own,
    .make = wait_readable,
    .may_end = read_may_end,
    .release = close_own,
    .brings_too = &yield_also,
};
const struct yield_kind yield_write = {
    .name = "wait to write",
    .prepare = open_own,
    .make = wait_writable,
    .may_end = write_may_end,
    .release = close_own,
};
