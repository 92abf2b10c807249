/* SPDX-License-Identifier: MIT */
#include "runtime_support.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "count_of.h"

/* Shorter than the time limit of a test, longer than any of them takes under a sanitizer. */
#define HANG_SECONDS 270

/* ---- the probe ---- */

static int probe_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    const int error = api_init_world(self, ctx, input, input_count);
    if (error == 0) {
        struct probe *probe = api_world(self);
        (void)atomic_fetch_add(&probe->inits, 1);
    }
    return error;
}

static void probe_note(struct probe *probe, const skua_event *event)
{
    switch ((enum skua_event_type)event->type) {
    case SKUA_EVENT_MESSAGE:
        (void)atomic_fetch_add(&probe->messages, 1);
        break;
    case SKUA_EVENT_COMPLETION:
        (void)atomic_fetch_add(&probe->completions, 1);
        break;
    case SKUA_EVENT_CANCEL:
        (void)atomic_fetch_add(&probe->cancels, 1);
        (void)atomic_fetch_add(&probe->stops, event->error == SKUA_E_STOPPED);
        break;
    case SKUA_EVENT_START:
    case SKUA_EVENT_CONTINUE: /* it asks for none of these */
    case SKUA_EVENT_TICK:
    case SKUA_EVENT_CALL:
    case SKUA_EVENT_ABANDON:
    case SKUA_EVENT_EXIT:
    case SKUA_EVENT_GROUP:
    case SKUA_EVENT_CHILD:
    case SKUA_EVENT_BECOME:
        break;
    }
}

static int probe_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    struct probe *probe = api_world(self);
    (void)ctx;
    (void)atomic_fetch_add(&probe->steps, 1);
    for (size_t i = 0; i < count; i++) {
        probe_note(probe, &events[i]);
    }
    const bool obeys = probe->habit == PROBE_OBEYS && atomic_load(&probe->cancels) > 0;
    if (obeys || probe->habit == PROBE_ENDS) {
        skua_done(ctx, skua_payload_empty(0));
    }
    return 0;
}

static void probe_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)ctx;
    (void)exit;
    struct probe *probe = api_world(self);
    (void)atomic_fetch_add(&probe->closes, 1);
}

const skua_process_type probe_type = {
    .name = "probe",
    .state_size = sizeof(void *),
    .init = probe_init,
    .step = probe_step,
    .close = probe_close,
    .cancel = SKUA_CANCEL_EVENT,
};

const skua_process_type probe_large_type = {
    .name = "large probe",
    .state_size = 4096,
    .init = probe_init,
    .step = probe_step,
    .close = probe_close,
    .cancel = SKUA_CANCEL_EVENT,
};

int probe_submit(skua_runtime *runtime, struct probe *probe, skua_pid *pid)
{
    skua_payload input = api_world_payload(probe);
    return skua_process_submit(runtime, &probe_type, input, pid);
}

int probe_run(skua_runtime *runtime, struct probe *probe)
{
    skua_payload input = api_world_payload(probe);
    return skua_process_run(runtime, &probe_type, input, NULL);
}

int probe_spawn(skua_context *ctx, struct probe *probe)
{
    skua_payload input = api_world_payload(probe);
    return skua_spawn(ctx, &probe_type, input, NULL);
}

void assert_probe_stopped_once(struct probe *probe)
{
    assert_int_equal(atomic_load(&probe->stops), 1);
    assert_int_equal(atomic_load(&probe->cancels), 1);
    assert_int_equal(atomic_load(&probe->closes), 1);
}

/* ---- waiting ---- */

void wait_until(bool (*holds)(void *arg), void *arg, const char *what)
{
    const struct timespec pause = {.tv_nsec = 100000};
    const time_t limit = time(NULL) + HANG_SECONDS;
    while (!holds(arg)) {
        if (time(NULL) > limit) {
            (void)fprintf(stderr, "runtime_support: waited %d s for %s\n", HANG_SECONDS, what);
            abort();
        }
        (void)nanosleep(&pause, NULL);
    }
}

static bool have_all_slept(void *arg)
{
    skua_stats workers[16];
    const int count = skua_stats_read(arg, NULL, workers, COUNT_OF(workers));
    assert_in_range(count, 1, COUNT_OF(workers));
    for (int i = 0; i < count; i++) {
        if (workers[i].parks == 0) {
            return false;
        }
    }
    return true;
}

void wait_until_all_have_slept(skua_runtime *runtime)
{
    wait_until(have_all_slept, runtime, "all workers to sleep");
}

static void bark(int number)
{
    static const char text[] = "runtime_support: the program hangs\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    test_describe(); /* not for signal handlers, but all is lost anyway */
    abort();
}

void watchdog_start(void)
{
    (void)os_wait_alone(); /* which is learned while it is certain */
    (void)signal(SIGALRM, bark);
    watchdog_restart();
}

void watchdog_restart(void)
{
    (void)alarm(HANG_SECONDS);
}

/* ---- random numbers ---- */

uint64_t seed_choose(void)
{
    const char *given = getenv("SKUA_TEST_SEED");
    const uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    (void)printf("SKUA_TEST_SEED=%" PRIu64 "\n", seed);
    (void)fflush(stdout);
    return seed;
}

uint64_t seed_next(uint64_t *state)
{
    /* Knuth's MMIX generator; its high bits are the good ones. */
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* ---- the operating system's view ---- */

static uint32_t entry_count(const char *path)
{
    DIR *directory = opendir(path);
    assert_non_null(directory);
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(directory);
    return count;
}

uint32_t os_thread_count(void)
{
    return entry_count("/proc/self/task");
}

static bool has_threads(void *arg)
{
    const uint32_t *count = arg;
    return os_thread_count() == *count;
}

void os_wait_threads(uint32_t count)
{
    wait_until(has_threads, &count, "threads to come or go");
}

/* Sanitizers start a thread of their own with the first one, so there has to be a first one. */
static void *tell_id(void *arg)
{
    *(pid_t *)arg = gettid();
    return NULL;
}

static bool thread_is_gone(void *arg)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d", *(const pid_t *)arg);
    return access(path, F_OK) != 0;
}

static uint32_t count_without_own_threads(void)
{
    pthread_t thread;
    pid_t id;
    assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    wait_until(thread_is_gone, &id, "the end of a thread");
    return os_thread_count();
}

uint32_t os_wait_alone(void)
{
    static pid_t known_in; /* the process that `alone` is about: it may be a child now */
    static uint32_t alone;
    if (known_in != getpid()) {
        alone = count_without_own_threads();
        known_in = getpid();
    }
    /* For some seconds: a test that failed has left the threads of its runtime behind for good. */
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 5000 && os_thread_count() != alone; i++) {
        (void)nanosleep(&pause, NULL);
    }
    return os_thread_count();
}

uint32_t os_file_count(void)
{
    return entry_count("/proc/self/fd");
}
