/* SPDX-License-Identifier: MIT */
/* 04_worker_pool again, in straight-line code: the producer is a task, and a worker serves its
 * jobs. What the producer's state remembers there, from one step to the next, are local variables
 * here, and backing off is a line.
 *
 *   skua run 10_worker_pool_task.so [-- JOBS]      default: 500 */
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

/* The work: the length of the Collatz sequence from a number down to 1. */
static uint64_t collatz(uint64_t number)
{
    uint64_t steps = 0;
    for (; number > 1; steps++) {
        number = number % 2 == 0 ? number / 2 : number * 3 + 1;
    }
    return steps;
}

static int worker_serve(void *self, skua_context *ctx, skua_event *job)
{
    const uint64_t result = collatz(skua_payload_to_u64(&job->payload));
    (void)self;
    skua_send(ctx, job->from, skua_payload_u64(0, result));
    return 0;
}

static const skua_process_type worker_type = {
    .name = "worker", .serve = worker_serve, .mailbox_limit = MAILBOX};

struct producer {
    skua_pid workers[WORKERS];
    uint64_t jobs; /* numbers 1 to this */
};

static int producer_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    struct producer *producer = self;
    char *end = "";
    (void)ctx;
    producer->jobs = count > 0 ? strtoull(skua_payload_data(&input[0]), &end, 10) : 500;
    if (count > 1 || producer->jobs == 0 || *end != '\0') {
        fprintf(stderr, "usage: skua run 10_worker_pool_task.so [-- JOBS]\n");
        return SKUA_E_INVALID;
    }
    return 0;
}

/* Sends a job to a worker that has room for it. As long as none has, waits, twice as long each
 * time. */
static int send_job(struct producer *producer, skua_context *ctx, uint64_t job, uint64_t *refusals)
{
    for (uint64_t delay = BACK_OFF;; delay *= 2) {
        int error = SKUA_E_MAILBOX_FULL;
        for (uint64_t i = 0; i < WORKERS && error == SKUA_E_MAILBOX_FULL; i++) {
            error =
                skua_send(ctx, producer->workers[(job + i) % WORKERS], skua_payload_u64(0, job));
        }
        if (error == SKUA_E_MAILBOX_FULL) {
            ++*refusals;
            error = skua_task_sleep(ctx, delay); /* results and ticks wait in the mailbox */
        } else {
            return error;
        }
        if (error != 0) {
            return error;
        }
    }
}

static int producer_main(void *self, skua_context *ctx)
{
    struct producer *producer = self;
    uint64_t sent = 0, finished = 0, sum = 0, tokens = BUCKET, refusals = 0;
    int error = skua_yield_ticker(ctx, 0, PERIOD);
    for (int i = 0; i < WORKERS && error == 0; i++) {
        error = skua_spawn(ctx, &worker_type, skua_nothing(), &producer->workers[i]);
    }
    while (error == 0 && finished < producer->jobs) {
        skua_event *event;
        if (tokens > 0 && sent < producer->jobs) {
            error = send_job(producer, ctx, ++sent, &refusals);
            tokens--;
        } else if ((error = skua_task_receive(ctx, &event, SKUA_FOREVER)) != 0) {
            break;
        } else if (event->type == SKUA_EVENT_TICK) {
            tokens += TOKENS * skua_tick_count(event);
            tokens = tokens < BUCKET ? tokens : BUCKET;
        } else {
            finished++;
            sum += skua_payload_to_u64(&event->payload);
        }
    }
    if (error == 0) {
        printf("%" PRIu64 " jobs done, all mailboxes were full %" PRIu64 " times\n", producer->jobs,
               refusals);
        error = skua_done(ctx, skua_payload_u64(0, sum));
    }
    return error;
}

static const skua_process_type producer_type = {.name = "producer",
                                                .state_size = sizeof(struct producer),
                                                .init = producer_init,
                                                .main = producer_main};

static const skua_process_type *const types[] = {&worker_type, NULL};

SKUA_MODULE(.name = "worker_pool_task", .about = "a limited rate, bounded mailboxes, as tasks",
            .root = &producer_type, .types = types);
