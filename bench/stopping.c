/* SPDX-License-Identifier: MIT */
/* The workload of stopping a runtime while threads of the same program keep all CPUs busy. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "bench.h"

#define ROUNDS        50u
#define RESTING       1000u
#define SPINNERS_MAX  256u
#define SPINNER_TURNS 1000u
#define SETTLE_NS     2000000l

static atomic_uint resting;
static atomic_bool stopped;

static int resting_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    atomic_fetch_add(&resting, 1);
    return 0;
}

static const skua_process_type resting_type = {.name = "resting", .step = resting_step};

static void *spinner_main(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&stopped, memory_order_relaxed)) {
        bench_compute(SPINNER_TURNS);
    }
    return NULL;
}

/* As many as there are CPUs for this program. */
static uint32_t start_spinners(pthread_t *spinners)
{
    cpu_set_t usable;
    CPU_ZERO(&usable);
    const int error = sched_getaffinity(0, sizeof usable, &usable);
    const uint32_t cpus = error == 0 ? (uint32_t)CPU_COUNT(&usable) : 1;
    const uint32_t count = cpus < SPINNERS_MAX ? cpus : SPINNERS_MAX;
    atomic_store(&stopped, false);
    for (uint32_t i = 0; i < count; i++) {
        const bool started = pthread_create(&spinners[i], NULL, spinner_main, NULL) == 0;
        expect_ok(started ? 0 : SKUA_E_THREAD, "thread");
    }
    return count;
}

static void stop_spinners(const pthread_t *spinners, uint32_t count)
{
    atomic_store(&stopped, true);
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(spinners[i], NULL);
    }
}

/* Returns how long the stop took. */
static uint64_t stop_one(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    atomic_store(&resting, 0);
    for (uint32_t i = 0; i < RESTING; i++) {
        bench_submit_one(runtime, &resting_type);
    }
    bench_wait_for(&resting, RESTING);
    bench_sleep(SETTLE_NS); /* the last ones are on their way to rest */
    const uint64_t begin = now_ns();
    expect_ok(skua_runtime_stop(runtime, SKUA_FOREVER), "stop");
    const uint64_t elapsed = now_ns() - begin;
    skua_stats stats;
    (void)skua_stats_read(runtime, &stats, NULL, 0);
    expect_right(stats.live == 0 && stats.finished == RESTING, "stop: some live on");
    expect_ok(skua_runtime_destroy(runtime), "destroy");
    return elapsed;
}

struct measurement bench_stop(uint32_t workers)
{
    pthread_t spinners[SPINNERS_MAX];
    struct samples times;
    samples_init(&times, ROUNDS);
    const uint32_t count = start_spinners(spinners);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        (void)samples_add(&times, stop_one(workers));
    }
    stop_spinners(spinners, count);
    const uint32_t p50 = samples_at(&times, 500);
    struct measurement result = {.ops = ROUNDS,
                                 .elapsed_ns = (uint64_t)p50 * ROUNDS,
                                 .resident_bytes = bench_resident_bytes()};
    result.value = result.p50_ms = p50 / 1e6;
    result.max_ms = samples_at(&times, 1000) / 1e6;
    snprintf(result.note, sizeof result.note, "the slowest of %u took %.2f ms; %u spinning threads",
             ROUNDS, result.max_ms, count);
    samples_free(&times);
    return result;
}
