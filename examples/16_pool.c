/* SPDX-License-Identifier: MIT */
/* A pool of workers that crash at random, and a supervisor that starts them again. A job that was
 * with a worker when that crashed is asked for again, so all get done.
 *
 *   skua run 16_pool.so [-- JOBS]      default: 1000 */
#include <inttypes.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 4
#define CRASHED (SKUA_E_USER - 1)
#define TIMEOUT (10 * SKUA_SECOND)

/* ---- a worker: answers calls, and crashes at one in eight ---- */

static int worker_serve(void *self, skua_context *ctx, skua_event *event)
{
    (void)self;
    if (event->type != SKUA_EVENT_CALL) {
        return 0;
    }
    const uint64_t number = skua_payload_to_u64(&event->payload);
    if (skua_random(ctx) % 8 == 0) {
        return CRASHED;
    }
    return skua_reply(ctx, event->request, 0, skua_payload_u64(0, number * number));
}

static const skua_process_type worker_type = {
    .name = "worker", .serve = worker_serve, .calls = true};

/* A worker that crashes is registered under its name again as soon as it is back. */
#define WORKER(text)                                                                               \
    {                                                                                              \
        .name = (text), .type = &worker_type, .registered = true, .backoff = {                     \
            .first_ns = SKUA_MILLISECOND,                                                          \
            .max_ns = 5 * SKUA_MILLISECOND                                                         \
        }                                                                                          \
    }
static const skua_supervisor pool = {
    .name = "pool",
    .children = (const skua_child[]){WORKER("worker 0"), WORKER("worker 1"), WORKER("worker 2"),
                                     WORKER("worker 3")},
    .child_count = WORKERS,
};

/* ---- the boss: hands out jobs, one after the other to each worker in turn ---- */

static int ask(skua_context *ctx, uint64_t number, uint64_t *square)
{
    skua_pid pid;
    skua_payload reply;
    int error = skua_name_find(skua_runtime_of(ctx), pool.children[number % WORKERS].name, &pid);
    if (error == 0) {
        error = skua_task_call(ctx, pid, skua_payload_u64(0, number), TIMEOUT, &reply);
    }
    *square = error == 0 ? skua_payload_to_u64(&reply) : 0;
    return error;
}

static int boss_main(void *self, skua_context *ctx)
{
    const uint64_t jobs = *(const uint64_t *)self;
    uint64_t sum = 0, square = 0, crashes = 0;
    skua_pid pid;
    int error = skua_supervisor_start(ctx, &pool, &pid);
    for (uint64_t i = 1; i <= jobs && error == 0;) {
        error = ask(ctx, i, &square);
        if (error == SKUA_E_PEER_ENDED || error == SKUA_E_NO_PROCESS) {
            crashes += error == SKUA_E_PEER_ENDED;
            error = skua_task_sleep(ctx, SKUA_MILLISECOND); /* it is on its way back */
            continue;
        }
        sum += square;
        i++;
    }
    printf("%" PRIu64 " crashes, the sum of %" PRIu64 " squares is %" PRIu64 "\n", crashes, jobs,
           sum);
    (void)skua_cancel(ctx, pid, 0);
    return error;
}

static int boss_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    *(uint64_t *)self = count > 0 ? strtoull(skua_payload_data(&input[0]), NULL, 10) : 1000;
    return 0;
}

static const skua_process_type boss_type = {
    .name = "boss", .state_size = sizeof(uint64_t), .init = boss_init, .main = boss_main};

SKUA_MODULE(.name = "pool", .about = "workers that crash, and a supervisor", .root = &boss_type);
