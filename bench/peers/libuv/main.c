/* SPDX-License-Identifier: MIT */
/* `run --list` and `run WORKLOAD WORKERS`: runs one workload once and prints one JSON object.
 * Of the workloads of `skua bench`, these are the ones that libuv has a counterpart of.
 *
 * libuv has an event loop on one thread and a pool of threads for queued work. There are no
 * processes: timers are bare ones in an array. The number of workers is the size of the pool, which
 * only `submit` uses. Handles are left open where closing would only be tidying up at the end. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#define MILLION 1000000u

/* What a run has to say. Zero: it does not. */
struct measurement {
    uint64_t ops;
    uint64_t elapsed_ns;
    double cpu_s; /* user and system time of all threads */
    double late_p50_us;
    double late_p99_us;
    double p50_us;
    double p99_us;
};

/* ---- support ---- */

static void expect_ok(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "libuv: %s: %s\n", what, uv_strerror(error));
        exit(1);
    }
}

static void expect_right(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "libuv: wrong result: %s\n", what);
        exit(1);
    }
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    expect_ok(memory != NULL ? 0 : UV_ENOMEM, "memory");
    return memory;
}

static double cpu_seconds(void)
{
    uv_rusage_t usage;
    expect_ok(uv_getrusage(&usage), "usage");
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int compare_values(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double percentile(uint64_t *values, uint32_t count, uint32_t percent)
{
    qsort(values, count, sizeof *values, compare_values);
    return (double)values[(uint64_t)count * percent / 100];
}

/* ---- timers: a million of them on one loop, each for its own time ---- */

struct sleeper {
    uv_timer_t timer;
    uint64_t due_ms; /* in the time of the loop */
};

static struct {
    struct sleeper *sleepers;
    uint64_t *lateness; /* microseconds */
    uint32_t started;
    uint32_t ended;
} bed;

static void wake_up(uv_timer_t *timer)
{
    const struct sleeper *sleeper = (const struct sleeper *)timer;
    const uint64_t now_us = uv_hrtime() / 1000;
    expect_right(now_us >= sleeper->due_ms * 1000, "timers: one fired early");
    bed.lateness[bed.ended++] = now_us - sleeper->due_ms * 1000;
}

static uint64_t next_delay_ms(void)
{
    static uint64_t state = 1; /* the same delays in every run; Knuth's generator */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % 1000;
}

/* Starts a hundred in every turn of the loop, for the loop takes the time once a turn: all at once
 * would start with the time of the first, and end too early by as long as starting them took. */
static void start_some(uv_idle_t *idle)
{
    for (uint32_t i = 0; i < 100; i++) {
        struct sleeper *sleeper = &bed.sleepers[bed.started++];
        const uint64_t delay_ms = next_delay_ms();
        sleeper->due_ms = uv_now(idle->loop) + delay_ms;
        expect_ok(uv_timer_init(idle->loop, &sleeper->timer), "timer");
        expect_ok(uv_timer_start(&sleeper->timer, wake_up, delay_ms, 0), "timer");
    }
    if (bed.started == MILLION) {
        expect_ok(uv_idle_stop(idle), "idle");
    }
}

static struct measurement bench_timers(void)
{
    uv_loop_t *loop = uv_default_loop();
    uv_idle_t idle;
    bed.sleepers = allocate(MILLION, sizeof *bed.sleepers);
    bed.lateness = allocate(MILLION, sizeof *bed.lateness);
    expect_ok(uv_idle_init(loop, &idle), "idle");
    const double cpu = cpu_seconds();
    const uint64_t begin = uv_hrtime();
    expect_ok(uv_idle_start(&idle, start_some), "idle");
    expect_ok(uv_run(loop, UV_RUN_DEFAULT), "run");
    struct measurement result = {.ops = MILLION, .elapsed_ns = uv_hrtime() - begin};
    result.cpu_s = cpu_seconds() - cpu;
    expect_right(bed.ended == MILLION, "timers: not all have fired");
    result.late_p50_us = percentile(bed.lateness, MILLION, 50);
    result.late_p99_us = percentile(bed.lateness, MILLION, 99);
    return result;
}

/* ---- submit: a million pieces of work for the pool ---- */

static uint32_t work_ended;

static void trivial(uv_work_t *work)
{
    (void)work;
}

/* On the thread of the loop. */
static void after_trivial(uv_work_t *work, int status)
{
    (void)work;
    expect_ok(status, "work");
    work_ended++;
}

/* The pool starts its threads with the first piece of work. */
static void start_pool(uv_loop_t *loop)
{
    uv_work_t work;
    expect_ok(uv_queue_work(loop, &work, trivial, after_trivial), "queue");
    expect_ok(uv_run(loop, UV_RUN_DEFAULT), "run");
    work_ended = 0;
}

static struct measurement bench_submit(void)
{
    uv_loop_t *loop = uv_default_loop();
    uv_work_t *works = allocate(MILLION, sizeof *works);
    start_pool(loop);
    const uint64_t begin = uv_hrtime();
    for (uint32_t i = 0; i < MILLION; i++) {
        expect_ok(uv_queue_work(loop, &works[i], trivial, after_trivial), "queue");
    }
    expect_ok(uv_run(loop, UV_RUN_DEFAULT), "run");
    const uint64_t elapsed = uv_hrtime() - begin;
    expect_right(work_ended == MILLION, "submit: how many have ended");
    return (struct measurement){.ops = MILLION, .elapsed_ns = elapsed};
}

/* ---- wake: from another thread to a loop that sleeps ---- */

#define WAKES 1000u

static struct {
    _Atomic uint64_t sent;
    uint64_t times[WAKES]; /* nanoseconds */
    atomic_uint count;
} wake;

static void woken(uv_async_t *async)
{
    const uint64_t now = uv_hrtime();
    const uint32_t count = atomic_load(&wake.count);
    wake.times[count] = now - atomic_load(&wake.sent);
    if (count + 1 == WAKES) {
        uv_close((uv_handle_t *)async, NULL);
    }
    atomic_store(&wake.count, count + 1);
}

static void run_loop(void *loop)
{
    expect_ok(uv_run(loop, UV_RUN_DEFAULT), "run");
}

/* Waits for each before the next is sent, since libuv makes one call of several sends. */
static struct measurement bench_wake(void)
{
    uv_loop_t *loop = uv_default_loop();
    uv_async_t async;
    uv_thread_t thread;
    expect_ok(uv_async_init(loop, &async, woken), "async");
    expect_ok(uv_thread_create(&thread, run_loop, loop), "thread");
    for (uint32_t i = 0; i < WAKES; i++) {
        do {
            uv_sleep(1);
        } while (atomic_load(&wake.count) < i);
        atomic_store(&wake.sent, uv_hrtime());
        expect_ok(uv_async_send(&async), "send");
    }
    expect_ok(uv_thread_join(&thread), "join");
    const double p50 = percentile(wake.times, WAKES, 50);
    return (struct measurement){.ops = WAKES,
                                .elapsed_ns = (uint64_t)(p50 * WAKES),
                                .p50_us = p50 / 1e3,
                                .p99_us = percentile(wake.times, WAKES, 99) / 1e3};
}

/* ---- the command ---- */

static const struct workload {
    const char *name;
    struct measurement (*run)(void);
} workloads[] = {
    {"timers", bench_timers},
    {"submit", bench_submit},
    {"wake", bench_wake},
};

static const size_t workload_count = sizeof workloads / sizeof workloads[0];

static const struct workload *find(const char *name)
{
    for (size_t i = 0; i < workload_count; i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            return &workloads[i];
        }
    }
    return NULL;
}

static void print_field(const char *name, double value)
{
    if (value != 0) {
        printf(", \"%s\": %.3f", name, value);
    }
}

static void print(const char *name, const char *workers, const struct measurement *result)
{
    const double elapsed = (double)result->elapsed_ns;
    size_t resident = 0;
    expect_ok(uv_resident_set_memory(&resident), "memory");
    printf("{\"workload\": \"%s\", \"workers\": %s, \"ops\": %" PRIu64
           ", \"ns_per_op\": %.3f, \"rss_bytes\": %zu",
           name, workers, result->ops, elapsed / (double)result->ops, resident);
    if (result->cpu_s > 0) {
        print_field("wall_s", elapsed / 1e9);
    }
    print_field("cpu_s", result->cpu_s);
    print_field("late_p50_us", result->late_p50_us);
    print_field("late_p99_us", result->late_p99_us);
    print_field("p50_us", result->p50_us);
    print_field("p99_us", result->p99_us);
    puts("}");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < workload_count; i++) {
            puts(workloads[i].name);
        }
        return 0;
    }
    if (argc != 3 || atoi(argv[2]) <= 0) {
        fprintf(stderr, "usage: run --list | run WORKLOAD WORKERS\n");
        return 2;
    }
    const struct workload *workload = find(argv[1]);
    if (workload == NULL) {
        fprintf(stderr, "libuv: there is no workload '%s'\n", argv[1]);
        return 2;
    }
    expect_ok(uv_os_setenv("UV_THREADPOOL_SIZE", argv[2]), "setenv");
    const struct measurement result = workload->run();
    print(workload->name, argv[2], &result);
    return 0;
}
