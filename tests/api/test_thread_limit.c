/* SPDX-License-Identifier: MIT */
/* Threads that the system refuses: a start that gets too few is as if it had not been called, and
 * may be tried again. In a child process, which must not touch the test framework. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "handlers.h"
#include "runtime_support.h"

#define CHILD_OK      0
#define CHILD_FAILED  1
#define CHILD_SKIPPED 2

#define WORKERS    4
#define SPARE_USER 54321 /* of whom no other thread should exist */

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, line, what);
        _exit(CHILD_FAILED);
    }
}

/* The limit does not count for the superuser. Only this thread changes, and those it creates. */
static bool become_somebody(void)
{
    return geteuid() != 0 || syscall(SYS_setresuid, SPARE_USER, SPARE_USER, SPARE_USER) == 0;
}

static bool limit_threads(rlim_t count)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0) {
        return false;
    }
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/* It is as if start had not been called; `id` is a command that has no handler yet. */
static void expect_not_started(skua_runtime *runtime, uint32_t id)
{
    struct probe probe = {.habit = PROBE_ENDS};
    const skua_handler handler = {.name = "now", .run = complete_at_once};
    EXPECT(skua_command_register(runtime, id, &handler) == 0);
    EXPECT(probe_submit(runtime, &probe, NULL) == SKUA_E_NOT_STARTED);
    EXPECT(skua_runtime_stop(runtime, 0) == SKUA_E_NOT_STARTED);
}

static void expect_usable(skua_runtime *runtime)
{
    struct probe probe = {.habit = PROBE_ENDS};
    const struct timespec gap = {.tv_nsec = 1000000}; /* long enough to fall asleep, or to exit */
    for (int i = 0; i < 20; i++) {
        skua_pid pid;
        (void)nanosleep(&gap, NULL);
        EXPECT(probe_submit(runtime, &probe, &pid) == 0);
        EXPECT(skua_process_wait(runtime, pid, 20 * SKUA_SECOND, NULL) != SKUA_E_TIMEOUT);
    }
    EXPECT(probe.closes == 20);
}

/* Allows one thread more each time, until there are enough. */
static void start_with_ever_more(skua_runtime *runtime, uint32_t threads)
{
    uint32_t failures = 0;
    int error = SKUA_E_THREAD;
    for (rlim_t allowed = 0; error != 0 && allowed < 100000; allowed++) {
        EXPECT(limit_threads(allowed));
        error = skua_runtime_start(runtime);
        if (error != 0) {
            EXPECT(error == SKUA_E_THREAD);
            os_wait_threads(threads);
            expect_not_started(runtime, 1000 + failures++);
        }
    }
    EXPECT(error == 0);
    EXPECT(failures >= WORKERS + 1); /* at least once at each worker, and the monitor */
}

static int start_with_few_threads(int arg)
{
    struct counting_allocator memory;
    const skua_runtime_config config = {
        .worker_count = WORKERS, .alloc = counting_allocate, .alloc_arg = &memory};
    const uint32_t threads = os_wait_alone();
    skua_runtime *runtime;
    skua_runtime *abandoned;
    (void)arg;
    counting_allocator_init(&memory);
    EXPECT(skua_runtime_create(&runtime, &config) == 0);
    EXPECT(skua_runtime_create(&abandoned, &config) == 0);
    if (!become_somebody() || !limit_threads(0) || skua_runtime_start(abandoned) == 0) {
        return CHILD_SKIPPED; /* the limit is not in force here */
    }
    EXPECT(skua_runtime_destroy(abandoned) == 0);
    start_with_ever_more(runtime, threads);
    expect_usable(runtime);
    EXPECT(os_thread_count() == threads + WORKERS + 1);
    EXPECT(skua_runtime_stop(runtime, SKUA_FOREVER) == 0);
    EXPECT(skua_runtime_destroy(runtime) == 0);
    EXPECT(counting_allocator_is_clean(&memory));
    return CHILD_OK;
}

TEST(start_with_too_few_threads_can_be_tried_again)
{
    const int status = child_run(start_with_few_threads, 0);
    if (status == CHILD_SKIPPED) {
        print_message("skipped: the number of threads cannot be limited here\n");
        skip();
    }
    assert_int_equal(status, CHILD_OK);
}
