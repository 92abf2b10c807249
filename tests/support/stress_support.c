/* SPDX-License-Identifier: MIT */
#include "stress_support.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "base/mutex.h"

#define SECOND_NS       UINT64_C(1000000000)
#define FAULTS_PRINTED  8
#define SHORT_SECONDS   60
#define PAUSE_TURNS_MAX 300

/* How much slower operations are, and how much longer a stall may be before it counts as a hang. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOWDOWN 10
#elif __has_feature(address_sanitizer)
#define SLOWDOWN 4
#endif
#elif defined(__SANITIZE_THREAD__)
#define SLOWDOWN 10
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 4
#endif
#ifdef SLOWDOWN
#define HANG_SECONDS 60
#else
#define SLOWDOWN     1
#define HANG_SECONDS 20
#endif

static const char *const fault_names[STRESS_FAULT_KINDS] = {
    [STRESS_LOST] = "lost",       [STRESS_DOUBLED] = "doubled",
    [STRESS_CORRUPT] = "corrupt", [STRESS_DISORDERED] = "disordered",
    [STRESS_BROKEN] = "broken",
};

static uint64_t fault_count(struct stress *stress, enum stress_fault fault)
{
    return load_relaxed(&stress->faults[fault]); /* statistic */
}

bool stress_has_failed(struct stress *stress)
{
    for (uint32_t i = 0; i < STRESS_FAULT_KINDS; i++) {
        if (fault_count(stress, i) > 0) {
            return true;
        }
    }
    return false;
}

void stress_fault(struct stress *stress, enum stress_fault fault, const char *format, ...)
{
    if (fetch_add_relaxed(&stress->faults[fault], 1) < FAULTS_PRINTED) { /* counter */
        char text[200];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        (void)fprintf(stderr, "%s: %s: %s\n", stress->name, fault_names[fault], text);
    }
}

uint64_t stress_done(struct stress *stress)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < STRESS_THREADS_MAX; i++) {
        done += load_relaxed(&stress->counters[i].value); /* statistic */
    }
    return done;
}

/* ---- the watchdog ---- */

static _Noreturn void report_hang(struct stress *stress)
{
    (void)fprintf(stderr,
                  "%s: no progress for %d s after %" PRIu64 " operations, so something was lost; "
                  "seed %" PRIu64 "\n",
                  stress->name, HANG_SECONDS, stress_done(stress), stress->seed);
    if (stress->watchdog.describe != NULL) {
        stress->watchdog.describe();
    }
    abort();
}

static void *watch(void *arg)
{
    struct stress *stress = arg;
    uint64_t seen = 0;
    uint64_t seen_ns = monotonic_ns();
    mutex_lock(&stress->watchdog.lock);
    while (!stress->watchdog.stop) {
        (void)condition_wait_until(&stress->watchdog.changed, &stress->watchdog.lock,
                                   monotonic_deadline(SECOND_NS));
        const uint64_t done = stress_done(stress);
        const uint64_t now_ns = monotonic_ns();
        if (stress->is_short && now_ns - stress->start_ns > SHORT_SECONDS * SECOND_NS) {
            store_relaxed(&stress->enough, 1); /* orders nothing */
        }
        if (done != seen) {
            seen = done;
            seen_ns = now_ns;
        } else if (now_ns - seen_ns > HANG_SECONDS * SECOND_NS) {
            report_hang(stress);
        }
    }
    mutex_unlock(&stress->watchdog.lock);
    return NULL;
}

static void start_watchdog(struct stress *stress)
{
    mutex_init(&stress->watchdog.lock);
    condition_init(&stress->watchdog.changed);
    stress->watchdog.thread = stress_start_thread(watch, stress);
}

static void stop_watchdog(struct stress *stress)
{
    mutex_lock(&stress->watchdog.lock);
    stress->watchdog.stop = true;
    (void)pthread_cond_signal(&stress->watchdog.changed);
    mutex_unlock(&stress->watchdog.lock);
    (void)pthread_join(stress->watchdog.thread, NULL);
    mutex_deinit(&stress->watchdog.lock);
    (void)pthread_cond_destroy(&stress->watchdog.changed);
}

void stress_describe_with(struct stress *stress, void (*describe)(void))
{
    mutex_lock(&stress->watchdog.lock);
    stress->watchdog.describe = describe;
    mutex_unlock(&stress->watchdog.lock);
}

/* ---- the frame of a program ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;
    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0';
}

static bool parse_arguments(struct stress *stress, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        uint64_t *number = strcmp(argv[i], "--ops") == 0    ? &stress->ops
                           : strcmp(argv[i], "--seed") == 0 ? &stress->seed
                                                            : NULL;
        if (number == NULL || i + 1 == argc || !parse_number(argv[i + 1], number)) {
            return false;
        }
        stress->is_short = stress->is_short && number != &stress->ops;
    }
    return true;
}

void stress_begin(struct stress *stress, int argc, char **argv, uint64_t default_ops)
{
    stress->name = base_name(argv[0]);
    stress->ops = default_ops / SLOWDOWN;
    stress->is_short = true;
    stress->seed = random_mix(monotonic_ns()) >> 32;
    if (!parse_arguments(stress, argc, argv)) {
        (void)fprintf(stderr, "usage: %s [--ops N] [--seed S]\n", stress->name);
        exit(EXIT_FAILURE);
    }
    (void)printf("%s: seed %" PRIu64 "\n", stress->name, stress->seed);
    (void)fflush(stdout);
    stress->start_ns = monotonic_ns();
    start_watchdog(stress);
}

int stress_end(struct stress *stress)
{
    stop_watchdog(stress);
    const double seconds = (double)(monotonic_ns() - stress->start_ns) / (double)SECOND_NS;
    (void)printf("%s: %" PRIu64 " operations, %.1f s, %" PRIu64 " lost, %" PRIu64 " doubled",
                 stress->name, stress_done(stress), seconds, fault_count(stress, STRESS_LOST),
                 fault_count(stress, STRESS_DOUBLED));
    for (uint32_t i = STRESS_DOUBLED + 1; i < STRESS_FAULT_KINDS; i++) {
        if (fault_count(stress, i) > 0) {
            (void)printf(", %" PRIu64 " %s", fault_count(stress, i), fault_names[i]);
        }
    }
    (void)printf("\n");
    return stress_has_failed(stress) ? EXIT_FAILURE : EXIT_SUCCESS;
}

pthread_t stress_start_thread(void *(*function)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, arg) != 0) {
        (void)fprintf(stderr, "the system refused to create a thread\n");
        abort();
    }
    return thread;
}

void stress_run_threads(uint32_t count, void *(*function)(void *), void *args, size_t arg_size)
{
    pthread_t threads[STRESS_THREADS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        threads[i] = stress_start_thread(function, (char *)args + i * arg_size);
    }
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

/* ---- pauses and parcels ---- */

void stress_pause(uint64_t *random, uint32_t rarity)
{
    if (LIKELY(!once_in(random, rarity))) {
        return;
    }
    const uint32_t turns = random_below(random, PAUSE_TURNS_MAX);
    if (turns % 2 == 0) {
        (void)sched_yield();
        return;
    }
    for (uint32_t i = 0; i < turns; i++) {
        __asm__ volatile(""); /* keeps the loop */
    }
}

uint64_t stress_parcel_empty(struct stress *stress, struct stress_parcel *parcel)
{
    const uint64_t serial = parcel->serial;
    if (UNLIKELY(parcel->check != random_mix(serial))) {
        stress_fault(stress, STRESS_CORRUPT, "the content of parcel %" PRIu64, serial);
    }
    uint64_t expected = serial;
    if (UNLIKELY(!cas_acq_rel_relaxed(&parcel->under_way, &expected, 0))) { /* content is read */
        stress_fault(stress, STRESS_DOUBLED, "parcel %" PRIu64 ", which is now at %" PRIu64, serial,
                     expected);
    }
    return serial;
}

void stress_parcel_expect_free(struct stress *stress, struct stress_parcel *parcel)
{
    const uint64_t serial = load_acquire(&parcel->under_way);
    if (serial != 0) {
        stress_fault(stress, STRESS_LOST, "parcel %" PRIu64, serial);
    }
}
