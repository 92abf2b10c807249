/* SPDX-License-Identifier: MIT */
/* A pool of workers that nobody can flood. A producer hands out jobs at a limited rate: each costs
 * a token, and a ticker refills the bucket. Each worker lets only a few jobs wait in its mailbox:
 * when all are full the producer backs off, twice as long each time, and tries again.
 *
 *   skua run 04_worker_pool.so [-- JOBS]      default: 500 */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS  3
#define MAILBOX  4 /* jobs that may wait for one worker */
#define PERIOD   (10 * SKUA_MILLISECOND)
#define TOKENS   20 /* per period: 2000 jobs a second */
#define BUCKET   40 /* tokens at most, so jobs in a burst */
#define BACK_OFF (100 * SKUA_MICROSECOND)

enum { TAG_TICK, TAG_BACK_OFF };

/* The work: the length of the Collatz sequence from a number down to 1. */
static uint64_t collatz(uint64_t number)
{
    uint64_t steps = 0;
    for (; number > 1; steps++) {
        number = number % 2 == 0 ? number / 2 : number * 3 + 1;
    }
    return steps;
}

static int worker_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE) {
            const uint64_t result = collatz(skua_payload_to_u64(&events[i].payload));
            skua_send(ctx, events[i].from, skua_payload_u64(0, result));
        }
    }
    return 0;
}

static const skua_process_type worker_type = {
    .name = "worker", .step = worker_step, .mailbox_limit = MAILBOX};

struct producer {
    skua_pid workers[WORKERS];
    uint64_t jobs, sent, finished; /* numbers 1 to `jobs` */
    uint64_t sum, tokens, refusals, delay;
    bool backs_off;
};

static int producer_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct producer *producer = self;
    char *end = "";
    (void)ctx;
    producer->jobs = count > 0 ? strtoull(skua_payload_data(&input[0]), &end, 10) : 500;
    if (count > 1 || producer->jobs == 0 || *end != '\0') {
        fprintf(stderr, "usage: skua run 04_worker_pool.so [-- JOBS]\n");
        return SKUA_E_INVALID;
    }
    return 0;
}

static int start(struct producer *producer, skua_context *ctx)
{
    int error = skua_yield_ticker(ctx, TAG_TICK, PERIOD);
    for (int i = 0; i < WORKERS && error == 0; i++) {
        error = skua_spawn(ctx, &worker_type, skua_nothing(), &producer->workers[i]);
    }
    producer->tokens = BUCKET;
    return error;
}

/* Sends the next job to a worker that has room for it. */
static int send_job(struct producer *producer, skua_context *ctx)
{
    int error = SKUA_E_MAILBOX_FULL;
    for (int i = 0; i < WORKERS && error == SKUA_E_MAILBOX_FULL; i++) {
        const skua_pid worker = producer->workers[(producer->sent + (uint64_t)i) % WORKERS];
        error = skua_send(ctx, worker, skua_payload_u64(0, producer->sent + 1));
    }
    return error;
}

static int hand_out(struct producer *producer, skua_context *ctx)
{
    while (producer->tokens > 0 && producer->sent < producer->jobs && !producer->backs_off) {
        const int error = send_job(producer, ctx);
        if (error == SKUA_E_MAILBOX_FULL) {
            producer->refusals++;
            producer->backs_off = true;
            producer->delay = producer->delay == 0 ? BACK_OFF : producer->delay * 2;
            return skua_yield_sleep(ctx, TAG_BACK_OFF, producer->delay);
        }
        if (error != 0) {
            return error;
        }
        producer->delay = 0;
        producer->tokens--;
        producer->sent++;
    }
    return 0;
}

static int producer_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct producer *producer = self;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        switch (events[i].type) {
        case SKUA_EVENT_START:
            error = start(producer, ctx);
            break;
        case SKUA_EVENT_MESSAGE:
            producer->finished++;
            producer->sum += skua_payload_to_u64(&events[i].payload);
            break;
        case SKUA_EVENT_TICK: {
            const uint64_t tokens = producer->tokens + TOKENS * skua_tick_count(&events[i]);
            producer->tokens = tokens < BUCKET ? tokens : BUCKET;
            break;
        }
        default: /* the back-off is over */
            producer->backs_off = false;
        }
    }
    if (producer->finished == producer->jobs) {
        printf("%" PRIu64 " jobs done, all mailboxes were full %" PRIu64 " times\n", producer->jobs,
               producer->refusals);
        return skua_done(ctx, skua_payload_u64(0, producer->sum));
    }
    return error != 0 ? error : hand_out(producer, ctx);
}

static const skua_process_type producer_type = {.name = "producer",
                                                .state_size = sizeof(struct producer),
                                                .init = producer_init,
                                                .step = producer_step};

static const skua_process_type *const types[] = {&worker_type, NULL};

SKUA_MODULE(.name = "worker_pool", .about = "a limited rate, bounded mailboxes",
            .root = &producer_type, .types = types);
