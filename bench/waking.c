/* SPDX-License-Identifier: MIT */
/* Workloads about waking: by timers, by messages from outside, and while all workers are stuck. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

/* ---- timers: many processes, each asleep for its own time; if few, again and again ---- */

/* The delays grow with the number of timers: whatever that is, about a million are due in a second.
 * Otherwise few timers would be far apart, and each would have to pay for waking a worker. */
#define SPREAD_NS_EACH 1000u
#define NIGHTS_MAX     1000u /* a night lasts at least as long as the clock's resolution */

static struct {
    uint32_t size;
    skua_pid bedtime;        /* hears from the last sleeper of a night */
    struct samples lateness; /* microseconds */
    atomic_uint early;
} night;

struct sleeper {
    uint64_t due;
};

static int sleeper_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct sleeper *sleeper = self;
    (void)count;
    const uint64_t now = skua_now(ctx);
    if (bench_starts(events)) {
        const uint64_t spread = (uint64_t)night.size * SPREAD_NS_EACH;
        const uint64_t duration = skua_random(ctx) % spread;
        sleeper->due = now + duration;
        return skua_yield_sleep(ctx, 1, duration);
    }
    if (now < sleeper->due) {
        atomic_fetch_add(&night.early, 1);
    }
    const uint64_t late = now < sleeper->due ? 0 : now - sleeper->due;
    const uint32_t before = samples_add(&night.lateness, late / 1000);
    skua_done(ctx, skua_nothing());
    const bool last = (before + 1) % night.size == 0;
    return last ? skua_send(ctx, night.bedtime, skua_nothing()) : 0;
}

static const skua_process_type sleeper_type = {
    .name = "sleeper", .state_size = sizeof(struct sleeper), .step = sleeper_step};

static uint32_t nights(uint32_t size)
{
    const uint32_t rounds = bench_rounds(size);
    return rounds < NIGHTS_MAX ? rounds : NIGHTS_MAX;
}

struct bedtime {
    uint32_t started;
    uint32_t nights; /* that are over */
};

static int bedtime_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)self;
    (void)input;
    (void)input_count;
    night.bedtime = skua_self(ctx);
    return 0;
}

/* Starts the sleepers, a hundred a step, and waits for the last. */
static int bedtime_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct bedtime *bedtime = self;
    (void)count;
    if (events[0].type == SKUA_EVENT_MESSAGE) {
        bedtime->started = 0;
        bedtime->nights++;
    }
    if (bedtime->nights == nights(night.size)) {
        skua_done(ctx, skua_nothing());
        return 0;
    }
    int error = 0;
    for (uint32_t i = 0; i < 100 && bedtime->started < night.size && error == 0; i++) {
        error = skua_spawn(ctx, &sleeper_type, skua_nothing(), NULL);
        bedtime->started++;
    }
    if (bedtime->started < night.size) {
        skua_continue(ctx);
    }
    return error;
}

static const skua_process_type bedtime_type = {.name = "bedtime",
                                               .state_size = sizeof(struct bedtime),
                                               .init = bedtime_init,
                                               .step = bedtime_step};

struct measurement bench_timers(uint32_t workers, uint32_t size)
{
    const uint32_t ops = size * nights(size);
    skua_runtime *runtime = bench_start(workers);
    night.size = size;
    samples_init(&night.lateness, ops);
    atomic_store(&night.early, 0);
    const double cpu_before = cpu_seconds();
    const uint64_t elapsed = bench_run(runtime, &bedtime_type, NULL, NULL);
    const double cpu_s = cpu_seconds() - cpu_before;
    bench_wait_until_empty(runtime, (uint64_t)ops + 1);
    struct measurement result = bench_finish(runtime, ops, elapsed);
    expect_right(atomic_load(&night.early) == 0, "timers: some fired early");
    expect_right(atomic_load(&night.lateness.count) == ops, "timers: not all have fired");
    result.value = (double)elapsed / 1e9;
    result.cpu_s = cpu_s;
    result.late_p50_us = samples_at(&night.lateness, 500);
    result.late_p99_us = samples_at(&night.lateness, 990);
    snprintf(result.note, sizeof result.note,
             "none early; late p50 %.2f ms, p99 %.2f ms; CPU %.2f s", result.late_p50_us / 1e3,
             result.late_p99_us / 1e3, result.cpu_s);
    samples_free(&night.lateness);
    return result;
}

/* ---- wake: from a send outside to the step, beside the wake-up of a bare thread ---- */

#define WAKES 1000

static struct samples wakes;      /* nanoseconds */
static struct samples bare_wakes; /* nanoseconds */

static int woken_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        if (events[i].type == SKUA_EVENT_START) {
            continue;
        }
        (void)samples_add(&wakes, now_ns() - skua_payload_to_u64(&events[i].payload));
    }
    return 0;
}

static const skua_process_type woken_type = {.name = "woken", .step = woken_step};

/* The bare thread sleeps on this word, which counts the wake-ups. */
static struct {
    atomic_uint word;
    _Atomic uint64_t sent;
} bare;

static void *bare_main(void *arg)
{
    (void)arg;
    for (uint32_t seen = 0; seen < WAKES;) {
        while (atomic_load(&bare.word) == seen) {
            syscall(SYS_futex, &bare.word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        }
        (void)samples_add(&bare_wakes, now_ns() - atomic_load(&bare.sent));
        seen++;
    }
    return NULL;
}

static void wake_bare_thread(void)
{
    atomic_store(&bare.sent, now_ns());
    atomic_fetch_add(&bare.word, 1);
    syscall(SYS_futex, &bare.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

struct measurement bench_wake(uint32_t workers)
{
    skua_runtime *runtime = bench_start(workers);
    samples_init(&wakes, WAKES);
    samples_init(&bare_wakes, WAKES);
    atomic_store(&bare.word, 0);
    pthread_t thread;
    expect_ok(pthread_create(&thread, NULL, bare_main, NULL) == 0 ? 0 : SKUA_E_THREAD, "thread");
    skua_pid pid;
    expect_ok(skua_process_submit(runtime, &woken_type, skua_nothing(), &pid), "submit");
    for (uint32_t i = 0; i < WAKES; i++) {
        bench_sleep(500000);
        expect_ok(skua_process_send(runtime, pid, skua_payload_u64(0, now_ns())), "send");
        bench_sleep(500000);
        wake_bare_thread();
    }
    pthread_join(thread, NULL);
    const double p50 = samples_at(&wakes, 500);
    const double bare_p50 = samples_at(&bare_wakes, 500);
    struct measurement result = bench_finish(runtime, WAKES, (uint64_t)(p50 * WAKES));
    result.value = result.times_futex = p50 / bare_p50;
    result.p50_us = p50 / 1e3;
    result.p99_us = samples_at(&wakes, 990) / 1e3;
    snprintf(result.note, sizeof result.note,
             "p50 %.1f us, p99 %.1f us; bare futex p50 %.1f us, p99 %.1f us", result.p50_us,
             result.p99_us, bare_p50 / 1e3, samples_at(&bare_wakes, 990) / 1e3);
    samples_free(&wakes);
    samples_free(&bare_wakes);
    return result;
}

/* ---- stuck: every worker is in a step that sleeps for two seconds ---- */

#define STUCK_NS 2000000000l
#define NAP_NS   (30 * SKUA_MILLISECOND)

static struct {
    atomic_uint stuck;
    atomic_uint napping;
    atomic_uint served;
    _Atomic uint64_t ready_at; /* when the message was sent and the descriptor written */
    _Atomic uint64_t message;  /* how long each waited, in nanoseconds */
    _Atomic uint64_t timer;
    _Atomic uint64_t descriptor;
    atomic_uint stalls; /* calls of the hook that named a stuck process */
    int fd;
} scene;

static int stuck_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    atomic_fetch_add(&scene.stuck, 1);
    bench_sleep(STUCK_NS);
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type stuck_type = {.name = "stuck", .step = stuck_step};

static int serve(skua_context *ctx, _Atomic uint64_t *waited, uint64_t since)
{
    atomic_store(waited, now_ns() - since);
    atomic_fetch_add(&scene.served, 1);
    return skua_done(ctx, skua_nothing());
}

static int ready_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return serve(ctx, &scene.message, atomic_load(&scene.ready_at));
}

static const skua_process_type ready_type = {.name = "ready", .step = ready_step};

static int napper_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    uint64_t *due = self;
    (void)count;
    if (!bench_starts(events)) {
        return serve(ctx, &scene.timer, *due);
    }
    *due = skua_now(ctx) + NAP_NS;
    atomic_fetch_add(&scene.napping, 1);
    return skua_yield_timer(ctx, 1, *due);
}

static const skua_process_type napper_type = {
    .name = "napper", .state_size = sizeof(uint64_t), .step = napper_step};

static int reader_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)count;
    if (!bench_starts(events)) {
        return serve(ctx, &scene.descriptor, atomic_load(&scene.ready_at));
    }
    atomic_fetch_add(&scene.napping, 1);
    return skua_yield_readable(ctx, 1, scene.fd, SKUA_FOREVER);
}

static const skua_process_type reader_type = {.name = "reader", .step = reader_step};

static void note_stall(void *arg, const skua_stall *stall)
{
    (void)arg;
    if (strcmp(stall->type_name, "stuck") == 0) {
        atomic_fetch_add(&scene.stalls, 1);
    }
}

struct measurement bench_stuck(uint32_t workers)
{
    skua_runtime *runtime;
    const uint64_t one = 1;
    memset(&scene, 0, sizeof scene);
    expect_ok(skua_runtime_create(&runtime, &(skua_runtime_config){.worker_count = workers,
                                                                   .on_stall = note_stall}),
              "create");
    expect_ok(skua_runtime_start(runtime), "start");
    scene.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    bench_submit_one(runtime, &napper_type);
    bench_submit_one(runtime, &reader_type);
    bench_wait_for(&scene.napping, 2);
    for (uint32_t i = 0; i < workers; i++) {
        bench_submit_one(runtime, &stuck_type);
    }
    bench_wait_for(&scene.stuck, workers);
    atomic_store(&scene.ready_at, now_ns());
    bench_submit_one(runtime, &ready_type);
    expect_ok(write(scene.fd, &one, sizeof one) == (ssize_t)sizeof one ? 0 : SKUA_E_INVALID,
              "write");
    bench_wait_for(&scene.served, 3);
    const uint64_t done = now_ns();
    expect_right(done - atomic_load(&scene.ready_at) <= (uint64_t)STUCK_NS,
                 "stuck: served only after the stuck steps");
    const double message = (double)atomic_load(&scene.message) / 1e6;
    const double timer = (double)atomic_load(&scene.timer) / 1e6;
    const double descriptor = (double)atomic_load(&scene.descriptor) / 1e6;
    double worst = message > timer ? message : timer;
    worst = worst > descriptor ? worst : descriptor;
    struct measurement result = bench_finish(runtime, 1, (uint64_t)(worst * 1e6));
    result.value = worst;
    snprintf(result.note, sizeof result.note,
             "message %.1f ms, timer %.1f ms, descriptor %.1f ms; stalls reported %u", message,
             timer, descriptor, atomic_load(&scene.stalls));
    close(scene.fd);
    return result;
}
