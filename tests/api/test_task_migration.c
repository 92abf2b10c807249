/* SPDX-License-Identifier: MIT */
/* Tasks that go on on another worker (SKUA_DEBUG=migrate), and how deep they were on their stacks
 * (SKUA_DEBUG=stacks). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "capture.h"
#include "deep_task.h"
#include "task/fiber.h"
#include "world.h"

#define WAITS 200

static struct capture capture;

static void clear_debug(void)
{
    assert_int_equal(unsetenv("SKUA_DEBUG"), 0);
}

static void set_debug(const char *settings)
{
    assert_int_equal(setenv("SKUA_DEBUG", settings, 1), 0);
    test_at_end(clear_debug);
}

static void run(const skua_process_type *type, int expected)
{
    skua_exit exit;
    const int error = skua_process_run(world_runtime(), type, skua_payload_empty(0), &exit);
    assert_int_equal(error, 0);
    assert_int_equal(exit.error, expected);
}

/* ---- other workers ---- */

static atomic_uint moves;
static atomic_uint wrong;

/* The compiler must not know what these return. */
__attribute__((noinline)) static pthread_t this_thread(void)
{
    __asm__ volatile("" : : : "memory");
    return pthread_self();
}

/* As a program would have it: the location of errno is known before the wait. */
static inline int fail_with(int error)
{
    errno = error;
    return -1;
}

static inline bool has_failed_with(int error)
{
    return errno == error;
}

/* The errno of this thread, as a function sees it that knows nothing of tasks. */
__attribute__((noinline)) static int *plain_errno(void)
{
    __asm__ volatile("" : : : "memory");
    return __errno_location();
}

static int migrate_main(void *self, skua_context *ctx)
{
    (void)self;
    for (int i = 1; i <= WAITS; i++) {
        const pthread_t before = this_thread();
        (void)fail_with(i);
        atomic_fetch_add(&wrong, !has_failed_with(i) || *plain_errno() != i);
        const int error = skua_task_pause(ctx);
        if (error != 0) {
            return error;
        }
        atomic_fetch_add(&moves, pthread_equal(before, this_thread()) == 0);
        (void)fail_with(1000 + i);
        atomic_fetch_add(&wrong, *plain_errno() != 1000 + i);
        *plain_errno() = 2000 + i;
        atomic_fetch_add(&wrong, !has_failed_with(2000 + i));
    }
    return 0;
}

static const skua_process_type migrate_type = {.name = "migrate", .main = migrate_main};

TEST(task_goes_on_on_another_worker_with_the_errno_of_that)
{
    set_debug("migrate");
    atomic_store(&moves, 0);
    atomic_store(&wrong, 0);
    world_open();
    do { /* on a busy machine the other worker may hardly run */
        run(&migrate_type, 0);
    } while (test_workers() > 1 && atomic_load(&moves) < WAITS / 10);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* ---- stacks ---- */

static int shallow_main(void *self, skua_context *ctx)
{
    (void)self;
    return skua_task_pause(ctx);
}

static int deep_main(void *self, skua_context *ctx)
{
    use_stack(30000);
    return shallow_main(self, ctx);
}

/* The number after `key` in the line about a type. */
static unsigned long printed(const char *type, const char *key)
{
    char name[64];
    (void)snprintf(name, sizeof name, " type=%s ", type);
    const char *line = strstr(capture.text, name);
    const char *number = line != NULL ? strstr(line, key) : NULL;
    assert_non_null(number);
    return number == NULL ? 0 : strtoul(number + strlen(key), NULL, 10);
}

TEST(debug_prints_how_deep_stacks_were_used)
{
    static const skua_process_type shallow = {.name = "shallow", .main = shallow_main};
    static const skua_process_type deep = {.name = "deep", .main = deep_main};
    if (IS_SANITIZED) {
        skip(); /* they are not measured then */
    }
    set_debug("stacks");
    capture_begin(&capture);
    world_open();
    run(&shallow, 0);
    run(&deep, 0);
    run(&shallow, 0); /* on a stack that was used */
    world_close();
    (void)capture_end(&capture);
    assert_in_range(printed("deep", "deepest="), 30000, 40000);
    assert_in_range(printed("shallow", "deepest="), 100, 4000);
    assert_int_equal(printed("shallow", "of="), 65536);
    assert_int_equal(printed("shallow", "tasks="), 2);
}
