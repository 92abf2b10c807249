/* SPDX-License-Identifier: MIT */
/* Processes that change their type while a thread calls them. */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

struct old_counter {
    uint64_t count;
};

struct new_counter {
    uint64_t spare[4];
    uint64_t count;
};

static void answer(skua_context *ctx, const skua_event *events, size_t count, uint64_t *total)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_CALL) {
            (void)skua_reply(ctx, events[i].request, 0, skua_payload_u64(0, ++*total));
        }
    }
}

static int old_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    answer(ctx, events, count, &((struct old_counter *)self)->count);
    return 0;
}

static int new_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    answer(ctx, events, count, &((struct new_counter *)self)->count);
    return 0;
}

static int migrate(uint32_t version, const void *old_state, void *new_state, skua_context *ctx)
{
    (void)version;
    (void)ctx;
    ((struct new_counter *)new_state)->count = ((const struct old_counter *)old_state)->count;
    return 0;
}

static const skua_process_type old_type = {.name = "counter",
                                           .state_size = sizeof(struct old_counter),
                                           .step = old_step,
                                           .calls = true,
                                           .version = 1};
static const skua_process_type new_type = {.name = "counter",
                                           .state_size = sizeof(struct new_counter),
                                           .step = new_step,
                                           .calls = true,
                                           .migrate = migrate,
                                           .version = 2};

/* Calls one after the other, each of them time and again. */
struct caller {
    skua_runtime *runtime;
    const skua_pid *pids;
    uint32_t count;
    atomic_bool is_over;
    uint64_t calls;
};

static void *call_all(void *arg)
{
    struct caller *caller = arg;
    while (!atomic_load(&caller->is_over)) {
        skua_payload reply;
        const uint64_t round = caller->calls / caller->count;
        const skua_pid pid = caller->pids[caller->calls++ % caller->count];
        expect_ok(skua_process_call(caller->runtime, pid, skua_nothing(), SKUA_FOREVER, &reply),
                  "a call");
        expect_right(skua_payload_to_u64(&reply) == round + 1, "no call is lost");
    }
    return NULL;
}

static uint64_t upgrade_all(skua_runtime *runtime, uint32_t size)
{
    skua_upgrade_progress progress = {0};
    const uint64_t start = now_ns();
    const int asked = skua_runtime_upgrade(runtime, &old_type, &new_type);
    expect_right(asked == (int)size, "all are asked");
    while (progress.migrated < size) {
        expect_ok(skua_upgrade_read(runtime, &old_type, &new_type, &progress), "progress");
        bench_sleep(50000);
    }
    return now_ns() - start;
}

struct measurement bench_upgrade(uint32_t workers, uint32_t size)
{
    pthread_t thread;
    skua_runtime *runtime = bench_start(workers);
    skua_pid *pids = calloc(size, sizeof pids[0]);
    expect_right(pids != NULL, "memory");
    for (uint32_t i = 0; i < size; i++) {
        expect_ok(skua_process_submit(runtime, &old_type, skua_nothing(), &pids[i]), "a start");
    }
    struct caller caller = {.runtime = runtime, .pids = pids, .count = size};
    expect_ok(pthread_create(&thread, NULL, call_all, &caller), "a thread");
    const uint64_t elapsed = upgrade_all(runtime, size);
    atomic_store(&caller.is_over, true);
    (void)pthread_join(thread, NULL);
    struct measurement measured = bench_finish(runtime, size, elapsed);
    measured.value = (double)elapsed / 1e9;
    free(pids);
    return measured;
}
