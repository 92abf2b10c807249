/* SPDX-License-Identifier: MIT */
/* Workloads of what a runtime costs when it has nothing to run: memory, wake-ups, and what is left
 * of a burst. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

#define MIB ((double)(1 << 20))

/* ---- idle processes: what they cost in memory and in wake-ups ---- */

struct idler {
    unsigned char bytes[64];
};

static int idler_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)ctx;
    (void)events;
    (void)count;
    memset(((struct idler *)self)->bytes, 1, sizeof(struct idler));
    return 0;
}

static const skua_process_type idler_type = {
    .name = "idler", .state_size = sizeof(struct idler), .step = idler_step};

/* Starts idle processes and waits until each has had its first step and all workers sleep. */
static void start_idlers(skua_runtime *runtime, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        expect_ok(skua_process_submit(runtime, &idler_type, skua_nothing(), NULL), "submit");
    }
    skua_stats stats;
    uint64_t parks = 0;
    do {
        bench_sleep(10000000);
        (void)skua_stats_read(runtime, &stats, NULL, 0);
        if (stats.steps == count && stats.parks == parks) {
            break;
        }
        parks = stats.parks;
    } while (true);
}

/* Memory is what counts here: the time contains waiting until all is quiet. */
struct measurement bench_idle_memory(uint32_t workers, uint32_t size)
{
    skua_runtime *runtime = bench_start(workers);
    const double before = (double)bench_resident_bytes();
    const uint64_t begin = now_ns();
    start_idlers(runtime, size);
    const uint64_t elapsed = now_ns() - begin;
    const double bytes = ((double)bench_resident_bytes() - before) / size;
    struct measurement result = bench_finish(runtime, size, elapsed);
    result.value = result.bytes_per_process = bytes;
    return result;
}

/* How often anything wakes in five seconds, once all has come to rest. */
static struct measurement count_wakeups(skua_runtime *runtime, uint64_t waiting)
{
    bench_sleep(500000000); /* until the monitor sleeps, too */
    const uint64_t begin = now_ns();
    const uint64_t before = bench_context_switches();
    bench_sleep(5000000000);
    const uint64_t wakeups = bench_context_switches() - before;
    struct measurement result = bench_finish(runtime, waiting, now_ns() - begin);
    result.value = (double)wakeups;
    result.counts_wakeups = true;
    return result;
}

struct measurement bench_idle_cpu(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    start_idlers(runtime, 10000);
    return count_wakeups(runtime, 10000);
}

/* ---- idle-sources: many timers and descriptors, and nothing happens ---- */

#define FAR_TIMERS  10000
#define DESCRIPTORS 1000

#define WAITER_FD 1 /* the type of a payload with a descriptor */

static atomic_uint waiting; /* processes */

static int waiter_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    const int *fd = self;
    (void)events;
    (void)count;
    atomic_fetch_add(&waiting, 1);
    return *fd >= 0 ? skua_yield_readable(ctx, 1, *fd, SKUA_FOREVER)
                    : skua_yield_sleep(ctx, 1, 3600 * SKUA_SECOND);
}

static int waiter_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    uint64_t fd;
    (void)ctx;
    (void)input_count;
    *(int *)self = skua_payload_get_u64(&input[0], WAITER_FD, &fd) == 0 ? (int)fd : -1;
    return 0;
}

static const skua_process_type waiter_type = {
    .name = "waiter", .state_size = sizeof(int), .init = waiter_init, .step = waiter_step};

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS + 100) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct measurement bench_idle_sources(uint32_t workers)
{
    static int fds[DESCRIPTORS];
    skua_runtime *runtime = bench_create(workers);
    raise_descriptor_limit();
    atomic_store(&waiting, 0);
    expect_ok(skua_runtime_start(runtime), "start");
    for (uint32_t i = 0; i < DESCRIPTORS; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        expect_ok(fds[i] >= 0 ? 0 : SKUA_E_DESCRIPTOR, "eventfd");
        skua_payload input = skua_payload_u64(WAITER_FD, (uint64_t)fds[i]);
        expect_ok(skua_process_submit(runtime, &waiter_type, input, NULL), "submit");
    }
    for (uint32_t i = 0; i < FAR_TIMERS; i++) {
        bench_submit_one(runtime, &waiter_type);
    }
    bench_wait_for(&waiting, DESCRIPTORS + FAR_TIMERS);
    struct measurement result = count_wakeups(runtime, DESCRIPTORS + FAR_TIMERS);
    for (uint32_t i = 0; i < DESCRIPTORS; i++) {
        close(fds[i]);
    }
    return result;
}

/* ---- after-burst: a million processes have lived at once, then ended ---- */

/* Lives until it gets a message. */
static int mayfly_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    return bench_count(events, count) > 0 ? skua_done(ctx, skua_nothing()) : 0;
}

static const skua_process_type mayfly_type = {
    .name = "mayfly", .state_size = 64, .step = mayfly_step};

static skua_pid *mayflies;

static int start_mayflies(skua_context *ctx)
{
    int error = 0;
    for (uint32_t i = 0; i < MILLION && error == 0; i++) {
        error = skua_spawn(ctx, &mayfly_type, skua_nothing(), &mayflies[i]);
    }
    return error;
}

static int end_mayflies(skua_context *ctx)
{
    int error = 0;
    for (uint32_t i = 0; i < MILLION && error == 0; i++) {
        error = skua_send(ctx, mayflies[i], skua_nothing());
    }
    return error;
}

/* Its first step starts them all, the second ends them all. */
static int swarm_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (bench_starts(events)) {
        skua_continue(ctx);
        return start_mayflies(ctx);
    }
    skua_done(ctx, skua_nothing());
    return end_mayflies(ctx);
}

static const skua_process_type swarm_type = {.name = "swarm", .step = swarm_step};

struct measurement bench_after_burst(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    mayflies = calloc(MILLION, sizeof *mayflies);
    expect_ok(mayflies != NULL ? 0 : SKUA_E_NO_MEMORY, "mayflies");
    memset(mayflies, 1, MILLION * sizeof *mayflies); /* not to be counted below */
    const uint64_t begin = now_ns();
    const uint64_t before = bench_resident_bytes();
    bench_submit_one(runtime, &swarm_type);
    bench_wait_until_empty(runtime, MILLION + 1);
    const uint64_t peak = bench_resident_bytes();
    bench_sleep(2000000000); /* an idle runtime gives memory back after a while */
    const uint64_t after = bench_resident_bytes();
    const double left = after > before ? (double)(after - before) / MIB : 0;
    struct measurement result = bench_finish(runtime, MILLION, now_ns() - begin);
    result.value = left;
    snprintf(result.note, sizeof result.note, "start %.1f MiB, when they had ended %.1f, then %.1f",
             (double)before / MIB, (double)peak / MIB, (double)after / MIB);
    free(mayflies);
    return result;
}
