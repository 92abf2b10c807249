/* SPDX-License-Identifier: MIT */
/* The stacks of tasks in a runtime: memory that goes back, and stacks that are used up. */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aborts.h"
#include "child.h"
#include "deep_task.h"
#include "task/stacks.h"
#include "workers.h"

#define KIB ((size_t)1024)

/* ---- memory ---- */

#define BURST 100
/* Frames are larger with sanitizers. */
#define DEEP (IS_SANITIZED ? 80 * KIB : 200 * KIB)

static atomic_uint arrived;

/* Goes deep, waits, and ends when it is told. */
static int burst_main(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    use_stack(DEEP);
    atomic_fetch_add(&arrived, 1);
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

static const skua_process_type burst_type = {
    .name = "burst", .main = burst_main, .stack_size = 256 * KIB};

static skua_pid start(const skua_process_type *type)
{
    skua_pid pid = {0};
    const int error = skua_process_submit(world_runtime(), type, skua_payload_empty(0), &pid);
    assert_int_equal(error, 0);
    return pid;
}

static bool all_have_arrived(void *count)
{
    return atomic_load(&arrived) == *(unsigned *)count;
}

static bool is_trimmed(void *bytes)
{
    return world_stats().trimmed_bytes >= *(uint64_t *)bytes;
}

static void await_arrival(unsigned count)
{
    wait_until(all_have_arrived, &count, "tasks that have gone deep");
}

static void run_burst(void)
{
    skua_pid pids[BURST];
    atomic_store(&arrived, 0);
    for (unsigned i = 0; i < BURST; i++) {
        pids[i] = start(&burst_type);
    }
    await_arrival(BURST);
    for (unsigned i = 0; i < BURST; i++) {
        assert_int_equal(world_send(pids[i], skua_payload_empty(1)), 0);
    }
    world_await_live(0);
}

TEST(task_stacks_give_memory_back_after_a_burst)
{
    if (IS_SANITIZED) {
        skip(); /* stacks keep their memory then */
    }
    uint64_t bytes = (DEEP - 10 * KIB) * BURST;
    world_open();
    run_burst();
    wait_until(is_trimmed, &bytes, "the memory of the stacks to go back");
    run_burst(); /* on the same ones */
    bytes *= 2;
    wait_until(is_trimmed, &bytes, "the memory of the stacks to go back again");
}

TEST(task_that_waits_gives_back_what_it_has_used_below)
{
    uint64_t deep = (DEEP - 10 * KIB) * BURST;
    world_open_virtual();
    atomic_store(&arrived, 0);
    for (unsigned i = 0; i < BURST; i++) {
        (void)start(&burst_type);
    }
    world_settle();
    assert_int_equal(atomic_load(&arrived), BURST);
    assert_int_equal(world_stats().trimmed_bytes, 0);
    const uint64_t steps = world_stats().steps;
    world_advance(11 * SKUA_SECOND);
    wait_until(is_trimmed, &deep, "the memory below the tasks to go back");
    world_settle();
    assert_int_equal(world_stats().steps, steps); /* the tasks did not notice */
    const uint64_t trimmed = world_stats().trimmed_bytes;
    world_advance(100 * SKUA_SECOND);
    world_settle();
    assert_int_equal(world_stats().trimmed_bytes, trimmed); /* nor did they run since */
}

/* ---- stacks that are refused ---- */

static int wait_main(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

static const skua_process_type wait_type = {.name = "wait", .main = wait_main};

static int run(const skua_process_type *type)
{
    skua_exit exit;
    const int error = skua_process_run(world_runtime(), type, skua_payload_empty(0), &exit);
    assert_int_equal(error, 0);
    skua_payload_drop(&exit.result);
    return exit.error;
}

static int pause_main(void *self, skua_context *ctx)
{
    (void)self;
    return skua_task_pause(ctx);
}

static const skua_process_type pause_type = {.name = "pause", .main = pause_main};

TEST(tasks_have_as_many_stacks_as_the_configuration_allows)
{
    skua_pid pids[3];
    world_open_with((skua_runtime_config){.stack_limit = COUNT_OF(pids)});
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        pids[i] = start(&wait_type);
        workers_await_asleep(0);
    }
    assert_int_equal(run(&pause_type), SKUA_E_STACK_LIMIT);
    assert_int_equal(world_send(pids[0], skua_payload_empty(1)), 0);
    world_await_live(COUNT_OF(pids) - 1);
    assert_int_equal(run(&pause_type), 0);
}

TEST(tasks_are_refused_where_a_shadow_stack_is_active)
{
    world_create((skua_runtime_config){0});
    claim_shadow_stacks();
    world_start();
    assert_int_equal(run(&pause_type), SKUA_E_SHADOW_STACK);
    assert_int_equal(run(&pause_type), SKUA_E_SHADOW_STACK);
}

/* ---- a limit of address space ---- */

#define CROWD 4000

static atomic_uint without_memory;

static void note_refusal(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    atomic_fetch_add(&without_memory, exit->error == SKUA_E_NO_MEMORY);
}

/* Waits, with a stack that is large. */
static int crowd_main(void *self, skua_context *ctx)
{
    atomic_fetch_add(&arrived, 1);
    return wait_main(self, ctx);
}

static int ends_with(skua_runtime *runtime, const skua_process_type *type)
{
    skua_exit exit;
    const int error = skua_process_run(runtime, type, skua_payload_empty(0), &exit);
    return error != 0 ? error : exit.error;
}

/* More tasks than there is address space for: 0 if some end for that reason, and all else goes
 * on. */
static int run_crowd(int mebibytes)
{
    static const skua_process_type crowd = {
        .name = "crowd", .main = crowd_main, .close = note_refusal, .stack_size = 1024 * KIB};
    static skua_pid pids[CROWD];
    const rlim_t size = (rlim_t)mebibytes << 20;
    const struct rlimit limit = {.rlim_cur = size, .rlim_max = size};
    skua_runtime *runtime;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || skua_runtime_create(&runtime, NULL) != 0 ||
        skua_runtime_start(runtime) != 0) {
        return 1;
    }
    for (unsigned i = 0; i < CROWD; i++) {
        if (skua_process_submit(runtime, &crowd, skua_payload_empty(0), &pids[i]) != 0) {
            return 2;
        }
    }
    while (atomic_load(&arrived) + atomic_load(&without_memory) < CROWD) {
        (void)sched_yield();
    }
    if (atomic_load(&arrived) == 0 || atomic_load(&without_memory) == 0) {
        return 3;
    }
    if (ends_with(runtime, &pause_type) != 0) {
        return 4; /* there is room for smaller ones */
    }
    for (unsigned i = 0; i < CROWD; i++) {
        (void)skua_process_cancel(runtime, pids[i], 0);
        (void)!skua_process_wait(runtime, pids[i], SKUA_FOREVER, NULL);
    }
    if (ends_with(runtime, &pause_type) != 0 || skua_runtime_stop(runtime, SKUA_FOREVER) != 0) {
        return 5;
    }
    return skua_runtime_destroy(runtime) == 0 ? 0 : 6;
}

TEST(tasks_without_address_space_end_and_the_others_go_on)
{
    if (IS_SANITIZED) {
        skip(); /* sanitizers need more of it */
    }
    atomic_store(&arrived, 0);
    atomic_store(&without_memory, 0);
    assert_int_equal(child_run(run_crowd, 2048), 0);
}

/* ---- guards ---- */

static struct {
    unsigned lines;
    char text[320];
    enum skua_log_level level;
} logged;

static void note_log(void *arg, const skua_log *log)
{
    (void)arg;
    logged.lines++;
    logged.level = log->level;
    (void)snprintf(logged.text, sizeof logged.text, "%s", log->text);
}

static void run_some_with(void (*prepare)(void))
{
    memset(&logged, 0, sizeof logged);
    world_create((skua_runtime_config){.worker_count = 1, .on_log = note_log});
    prepare();
    world_start();
    for (unsigned i = 0; i < 3; i++) {
        (void)start(&wait_type);
        assert_int_equal(run(&pause_type), 0);
    }
    world_close();
}

TEST(weak_guard_of_stacks_is_told_once)
{
    run_some_with(deny_guard_pages);
    assert_int_equal(logged.lines, 1);
    assert_int_equal(logged.level, SKUA_LOG_INFO);
    assert_non_null(strstr(logged.text, "guarded by mappings of their own"));
    run_some_with(deny_guards);
    assert_int_equal(logged.lines, 1);
    assert_int_equal(logged.level, SKUA_LOG_WARNING);
    assert_non_null(strstr(logged.text, "only a canary"));
}

/* ---- stacks that are used up ---- */

static char said[1 << 16];

static int endless_main(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    use_stack(SIZE_MAX);
    return 0;
}

static int large_frame_main(void *self, skua_context *ctx)
{
    char frame[128 * 1024]; /* beyond the guard, but for -fstack-clash-protection */
    (void)self;
    (void)ctx;
    frame[0] = 0;
    __asm__ volatile("" : : "r"(frame) : "memory"); /* all of it is used */
    return frame[0];
}

static const skua_process_type endless_small = {
    .name = "endless", .main = endless_main, .stack_size = 16 * KIB};
static const skua_process_type endless_usual = {.name = "endless", .main = endless_main};
static const skua_process_type endless_largest = {
    .name = "endless", .main = endless_main, .stack_size = 1024 * KIB};
static const skua_process_type large_frame = {
    .name = "large", .main = large_frame_main, .stack_size = 64 * KIB};

struct scene {
    const skua_process_type *type;
    void (*prepare)(void); /* may be null */
    const char *expected;
};

static void overflow(void *arg)
{
    const struct scene *scene = arg;
    world_create((skua_runtime_config){.worker_count = 1, .crash_report = true});
    if (scene->prepare != NULL) {
        scene->prepare();
    }
    world_start();
    (void)start(scene->type);
    world_await_live(0);
}

static void assert_named(const struct scene *scene, int number)
{
    const int ended = ends_by(overflow, (void *)(uintptr_t)scene, said, sizeof said);
    if (ended != number || strstr(said, scene->expected) == NULL) {
        print_message("expected: %s, ended by %d, saying: %s\n", scene->expected, ended, said);
    }
    assert_int_equal(ended, number);
    assert_non_null(strstr(said, scene->expected));
}

TEST(task_that_uses_up_its_stack_is_named)
{
    static const struct scene scenes[] = {
        {&endless_small, NULL, "(type endless, 16 KiB) is used up in use_stack(); set .stack_size"},
        {&endless_usual, NULL, "(type endless, 64 KiB) is used up in use_stack(); set .stack_size"},
        {&endless_usual, deny_guard_pages, "(type endless, 64 KiB) is used up in use_stack()"},
        {&endless_largest, NULL, "(type endless, 1024 KiB) is used up in use_stack(); there is no"},
        {&large_frame, NULL, "(type large, 64 KiB) is used up"},
    };
    FOR_ROWS (scene, scenes) {
        assert_named(scene, SIGSEGV);
    }
}

static int past_the_end_main(void *self, skua_context *ctx)
{
    (void)self;
    use_stack(18 * KIB);
    return skua_task_pause(ctx);
}

/* Not in the first slot: what lies below is another stack. */
static int parent_main(void *self, skua_context *ctx)
{
    static const skua_process_type child = {
        .name = "child", .main = past_the_end_main, .stack_size = 16 * KIB};
    skua_pid pid;
    (void)self;
    const int error = skua_spawn(ctx, &child, skua_payload_empty(0), &pid);
    return error != 0 ? error : skua_task_sleep(ctx, SKUA_SECOND * 1000);
}

static const skua_process_type parent = {
    .name = "parent", .main = parent_main, .stack_size = 16 * KIB};

TEST(task_without_guard_that_uses_up_its_stack_is_named)
{
    static const struct scene scene = {&parent, deny_guards,
                                       "(child) has used up its stack of 16 KiB: set .stack_size"};
    if (IS_SANITIZED) {
        skip(); /* frames are larger */
    }
    assert_named(&scene, SIGABRT);
}

static int fault_main(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    char *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)page = 1;
    return 0;
}

/* Another fault of a task is not an overflow. */
TEST(task_that_crashes_has_not_used_up_its_stack)
{
    static const skua_process_type type = {.name = "faulty", .main = fault_main};
    static const struct scene scene = {&type, NULL, "(type faulty), step 1"};
    assert_named(&scene, SIGSEGV);
    assert_null(strstr(said, "used up"));
}

/* ---- signals ---- */

/* Those that a handler of the program may be for, which need not have SA_ONSTACK. */
static int signals_main(void *self, skua_context *ctx)
{
    static const int asynchronous[] = {SIGHUP, SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2};
    sigset_t blocked;
    (void)self;
    (void)ctx;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (size_t i = 0; i < COUNT_OF(asynchronous); i++) {
        if (sigismember(&blocked, asynchronous[i]) != 1) {
            return SKUA_E_USER - asynchronous[i];
        }
    }
    return 0;
}

TEST(signals_of_the_program_are_not_handled_on_the_stacks_of_tasks)
{
    static const skua_process_type type = {.name = "signals", .main = signals_main};
    world_open();
    assert_int_equal(run(&type), 0);
}

static atomic_uint stalls;
static atomic_uint frames_seen;

static void note_stall(void *arg, const skua_stall *stall)
{
    (void)arg;
    atomic_store(&frames_seen, stall->frame_count);
    atomic_store(&stalls, 1);
}

/* Little of its stack is left. */
__attribute__((noinline)) static void stall_deep_down(void)
{
    char frame[13 * 1024];
    while (atomic_load(&stalls) == 0) {
        __asm__ volatile("" : : "r"(frame) : "memory"); /* all of it is used */
    }
}

static int stall_main(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    stall_deep_down();
    return 0;
}

TEST(task_on_a_small_stack_can_be_asked_for_its_backtrace)
{
    static const skua_process_type type = {
        .name = "stall", .main = stall_main, .stack_size = 16 * KIB};
    if (IS_SANITIZED) {
        skip(); /* frames are larger */
    }
    world_open_with((skua_runtime_config){
        .stall_limit_ns = SKUA_MILLISECOND, .stall_signal = SIGUSR1, .on_stall = note_stall});
    do { /* a thread that has no CPU does not answer in time */
        atomic_store(&stalls, 0);
        (void)start(&type);
        world_await_live(0);
    } while (atomic_load(&frames_seen) == 0);
    assert_in_range(atomic_load(&frames_seen), 1, 10);
}

/* ---- another program ---- */

/* The child goes on on the same stack, deeper, and ends. */
static int fork_main(void *self, skua_context *ctx)
{
    int status = 0;
    (void)self;
    const pid_t child = fork();
    if (child == 0) {
        use_stack(20 * KIB);
        _exit(7);
    }
    const pid_t ended = waitpid(child, &status, 0);
    const int error = skua_task_pause(ctx);
    const bool is_right = ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    return error != 0 ? error : is_right ? 0 : SKUA_E_USER;
}

TEST(task_may_fork)
{
    static const skua_process_type type = {.name = "fork", .main = fork_main};
    world_open();
    assert_int_equal(run(&type), 0);
}
