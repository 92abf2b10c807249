/* SPDX-License-Identifier: MIT */
/* Destroying a runtime waits for threads that are inside a call of it. To hold a thread there, what
 * it writes to lies on a page that it cannot write to yet: the handler of the fault that follows
 * runs in the middle of the call. */
#include <sched.h>
#include <signal.h>
#include <skua/metrics.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api_support.h"
#include "threads.h"

/* How often the thread gives way there: a destroy that does not wait returns before. */
#define CHANCES 20000

static struct {
    skua_runtime *runtime;
    skua_pid pid;
    void *page;
    size_t page_size;
    atomic_bool is_inside;
    atomic_bool is_stopped;
    atomic_bool is_destroyed;
    bool was_destroyed; /* while the call was in progress */
} scene;

static void stay_inside(int signal)
{
    (void)signal;
    atomic_store(&scene.is_inside, true);
    while (!atomic_load(&scene.is_stopped)) {
        (void)sched_yield();
    }
    for (int i = 0; i < CHANCES && !atomic_load(&scene.is_destroyed); i++) {
        (void)sched_yield();
    }
    scene.was_destroyed = atomic_load(&scene.is_destroyed);
    (void)mprotect(scene.page, scene.page_size, PROT_READ | PROT_WRITE); /* and try again */
}

static void read_stats(void)
{
    (void)skua_stats_read(scene.runtime, scene.page, NULL, 0);
}

static void read_stats_of_workers(void)
{
    (void)skua_stats_read(scene.runtime, NULL, scene.page, 1);
}

static void read_info(void)
{
    (void)!skua_process_info(scene.runtime, scene.pid, scene.page);
}

static void list_processes(void)
{
    (void)skua_process_list(scene.runtime, (skua_pid){0}, scene.page, 1);
}

static void read_metrics(void)
{
    (void)skua_metrics_format(scene.runtime, scene.page, scene.page_size);
}

/* The reply is empty before all else. */
static void call_process(void)
{
    (void)!skua_process_call(scene.runtime, scene.pid, skua_nothing(), 0, scene.page);
}

static void look(void *arg)
{
    void (*const *reader)(void) = arg;
    (*reader)();
}

/* A runtime with one process, and a page that cannot be written to. */
static void open_scene(void)
{
    const skua_runtime_config config = {.worker_count = 1};
    memset(&scene, 0, sizeof scene);
    scene.page_size = (size_t)sysconf(_SC_PAGESIZE);
    scene.page = mmap(NULL, scene.page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(scene.page, MAP_FAILED);
    assert_int_equal(skua_runtime_create(&scene.runtime, &config), 0);
    assert_int_equal(skua_runtime_start(scene.runtime), 0);
    assert_int_equal(skua_process_submit(scene.runtime, &api_idler, skua_nothing(), &scene.pid), 0);
}

TEST(destroy_waits_for_threads_that_read_or_call)
{
    static void (*const readers[])(void) = {read_stats,     read_stats_of_workers, read_info,
                                            list_processes, read_metrics,          call_process};
    const struct sigaction action = {.sa_handler = stay_inside};
    struct sigaction before;
    FOR_ROWS (reader, readers) {
        open_scene();
        assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
        void (*chosen)(void) = *reader;
        struct thread *thread = thread_start(look, &chosen);
        while (!atomic_load(&scene.is_inside)) {
            (void)sched_yield();
        }
        assert_int_equal(skua_runtime_stop(scene.runtime, SKUA_FOREVER), 0);
        atomic_store(&scene.is_stopped, true);
        assert_int_equal(skua_runtime_destroy(scene.runtime), 0);
        atomic_store(&scene.is_destroyed, true);
        thread_join(thread);
        assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
        assert_false(scene.was_destroyed);
        assert_int_equal(munmap(scene.page, scene.page_size), 0);
    }
}
