/* SPDX-License-Identifier: MIT */
/* What several workloads need. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void expect_ok(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "skua bench: %s: %s (%s)\n", what, skua_error_text(error),
                skua_error_name(error));
        exit(1);
    }
}

void expect_right(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "skua bench: wrong result: %s\n", what);
        exit(1);
    }
}

skua_runtime *bench_create(uint32_t workers)
{
    skua_runtime *runtime;
    expect_ok(skua_runtime_create(&runtime, &(skua_runtime_config){.worker_count = workers}),
              "create");
    return runtime;
}

skua_runtime *bench_start(uint32_t workers)
{
    skua_runtime *runtime = bench_create(workers);
    expect_ok(skua_runtime_start(runtime), "start");
    return runtime;
}

static uint64_t run_root(skua_runtime *runtime, const skua_process_type *type, const char *method,
                         skua_payload *input, size_t input_count, uint64_t *result)
{
    skua_exit exit;
    const uint64_t begin = now_ns();
    expect_ok(skua_process_run_with(
                  runtime,
                  &(skua_spawn_options){
                      .type = type, .method = method, .input = input, .input_count = input_count},
                  &exit),
              "run");
    const uint64_t elapsed = now_ns() - begin;
    expect_ok(exit.error, type->name);
    if (result != NULL) {
        *result = skua_payload_to_u64(&exit.result);
    }
    return elapsed;
}

uint64_t bench_run(skua_runtime *runtime, const skua_process_type *type, const char *method,
                   uint64_t *result)
{
    return run_root(runtime, type, method, NULL, 0, result);
}

uint64_t bench_run_sized(skua_runtime *runtime, const skua_process_type *type, uint32_t size,
                         uint64_t *result)
{
    skua_payload input = skua_payload_u64(0, size);
    return run_root(runtime, type, NULL, &input, 1, result);
}

uint32_t bench_rounds(uint32_t size)
{
    return size < MILLION ? (MILLION + size - 1) / size : 1;
}

struct measurement bench_run_counted(skua_runtime *runtime, const skua_process_type *type,
                                     const char *method, uint64_t ops, const char *what)
{
    uint64_t count;
    const uint64_t elapsed = bench_run(runtime, type, method, &count);
    expect_right(count == ops, what);
    return bench_finish(runtime, ops, elapsed);
}

int bench_idle(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return 0;
}

const skua_process_type bench_idler_type = {.name = "idler", .step = bench_idle};

struct measurement bench_finish(skua_runtime *runtime, uint64_t ops, uint64_t elapsed_ns)
{
    struct measurement measurement = {
        .value = (double)elapsed_ns / (double)ops,
        .ops = ops,
        .elapsed_ns = elapsed_ns,
        .resident_bytes = bench_resident_bytes(),
    };
    (void)skua_stats_read(runtime, &measurement.stats, NULL, 0);
    expect_ok(skua_runtime_stop(runtime, SKUA_FOREVER), "stop");
    expect_ok(skua_runtime_destroy(runtime), "destroy");
    return measurement;
}

void bench_sleep(long ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

void bench_submit_one(skua_runtime *runtime, const skua_process_type *type)
{
    expect_ok(skua_process_submit(runtime, type, skua_nothing(), NULL), "submit");
}

void bench_wait_for(atomic_uint *counter, uint32_t value)
{
    while (atomic_load(counter) < value) {
        bench_sleep(50000);
    }
}

void bench_wait_until_empty(skua_runtime *runtime, uint64_t processes)
{
    skua_stats stats;
    while (skua_stats_read(runtime, &stats, NULL, 0) > 0 && stats.live > 0) {
        bench_sleep(20000);
    }
    expect_right(stats.finished == processes, "how many processes have finished");
}

/* Xorshift: never 0, and no compiler can foresee where it ends. */
static uint64_t turn_around(uint64_t turns)
{
    uint64_t value = turns | 1;
    for (uint64_t i = 0; i < turns; i++) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    return value;
}

void bench_compute(uint64_t turns)
{
    expect_right(turn_around(turns) != 0, "what was computed");
}

#define TRIALS      1000u /* short ones: some are not interrupted, even on a busy machine */
#define TRIAL_TURNS 100000u

uint64_t bench_turns(uint64_t ns)
{
    static uint64_t fastest_ns; /* of all trials */
    for (uint32_t i = fastest_ns == 0 ? 0 : TRIALS; i < TRIALS; i++) {
        const uint64_t begin = now_ns();
        bench_compute(TRIAL_TURNS);
        const uint64_t elapsed = now_ns() - begin;
        fastest_ns = i == 0 || elapsed < fastest_ns ? elapsed : fastest_ns;
    }
    return ns * TRIAL_TURNS / fastest_ns;
}

uint64_t bench_resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t bench_context_switches(void)
{
    uint64_t total = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char path[300];
        char line[200];
        if (task->d_name[0] == '.' || strtol(task->d_name, NULL, 10) == getpid()) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "re");
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            const char *count = strstr(line, "ctxt_switches:");
            total += count != NULL ? strtoull(count + strlen("ctxt_switches:"), NULL, 10) : 0;
        }
        if (status != NULL) {
            fclose(status);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return total;
}

/* ---- tallies ---- */

#define TALLIES_MAX (SKUA_WORKERS_MAX + SKUA_SPARES_MAX)

static struct tally {
    _Alignas(64) _Atomic uint64_t count;
} tallies[TALLIES_MAX];
static atomic_uint tally_count;
static _Thread_local struct tally *own_tally;

void tally_add(void)
{
    if (own_tally == NULL) {
        own_tally = &tallies[atomic_fetch_add(&tally_count, 1) % TALLIES_MAX];
    }
    atomic_store_explicit(&own_tally->count,
                          atomic_load_explicit(&own_tally->count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

uint64_t tally_sum(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < TALLIES_MAX; i++) {
        sum += atomic_load_explicit(&tallies[i].count, memory_order_relaxed);
    }
    return sum;
}

/* Workers are new threads in every run. */
void tally_clear(void)
{
    for (uint32_t i = 0; i < TALLIES_MAX; i++) {
        atomic_store(&tallies[i].count, 0);
    }
    atomic_store(&tally_count, 0);
}
