/* SPDX-License-Identifier: MIT */
/* A workload of groups: one message to very many. */
#include <stdio.h>

#include "bench.h"

#define GROUP   "members"
#define NEWS    1
#define LOOK_NS 100000l /* from one look whether all have it to the next */

static atomic_uint joined;

static int member_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    if (bench_starts(events)) {
        expect_ok(skua_group_join(ctx, GROUP), "join");
        atomic_fetch_add(&joined, 1);
    }
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_MESSAGE && events[i].payload.type == NEWS) {
            tally_add();
        }
    }
    return 0;
}

static const skua_process_type member_type = {.name = "member", .step = member_step};

struct publisher {
    uint64_t size;
    uint64_t left;
};

static int publisher_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    struct publisher *publisher = self;
    (void)ctx;
    (void)input_count;
    publisher->size = skua_payload_to_u64(&input[0]);
    publisher->left = bench_rounds((uint32_t)publisher->size);
    return 0;
}

/* 64 bytes: too large to be copied, so they are shared. */
static int publish(skua_context *ctx)
{
    static const char news[64] = "what is new";
    skua_payload payload;
    const int error = skua_payload_shared(skua_runtime_of(ctx), NEWS, news, sizeof news, &payload);
    return error != 0 ? error : skua_yield_publish(ctx, 1, GROUP, payload);
}

static int publisher_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct publisher *publisher = self;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue; /* the next message begins it */
        }
        if (events[i].type == SKUA_EVENT_COMPLETION) {
            const skua_published published = skua_published_get(&events[i].payload);
            expect_right(published.accepted == publisher->size && published.refused == 0,
                         "publish: how many have it");
            publisher->left--;
        }
        if (publisher->left == 0) {
            return skua_done(ctx, skua_nothing());
        }
        expect_ok(publish(ctx), "publish");
    }
    return 0;
}

static const skua_process_type publisher_type = {.name = "publisher",
                                                 .state_size = sizeof(struct publisher),
                                                 .init = publisher_init,
                                                 .step = publisher_step};

struct measurement bench_publish(uint32_t workers, uint32_t size)
{
    skua_pid publisher;
    skua_runtime *runtime = bench_start(workers);
    const uint64_t messages = (uint64_t)size * bench_rounds(size);
    tally_clear();
    atomic_store(&joined, 0);
    for (uint32_t i = 0; i < size; i++) {
        bench_submit_one(runtime, &member_type);
    }
    bench_wait_for(&joined, size);
    expect_ok(skua_process_submit(runtime, &publisher_type, skua_payload_u64(0, size), &publisher),
              "submit");
    heart_start(runtime);
    const uint64_t begin = now_ns();
    const double cpu_s = cpu_seconds();
    expect_ok(skua_process_send(runtime, publisher, skua_nothing()), "send");
    while (tally_sum() < messages) {
        bench_sleep(LOOK_NS);
    }
    const uint64_t elapsed = now_ns() - begin;
    const double used_s = cpu_seconds() - cpu_s;
    const double late = heart_stop();
    expect_right(tally_sum() == messages, "publish: how many messages arrived");
    struct measurement result = bench_finish(runtime, messages, elapsed);
    result.cpu_s = used_s;
    result.max_ms = late;
    snprintf(result.note, sizeof result.note,
             "%.1f ns of CPU time for each; a heartbeat is at most %.2f ms late",
             used_s * 1e9 / (double)messages, late);
    return result;
}
