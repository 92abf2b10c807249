/* SPDX-License-Identifier: MIT */
/* Exceptions of C++ in tasks, which wait in a catch block, or while one is on its way, and go on on
 * another thread, where others throw, too. Run with SKUA_DEBUG=migrate; with an argument, an
 * exception leaves a task. */
#include <pthread.h>
#include <skua/skua.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

static const unsigned TASKS = 8;
static const unsigned ROUNDS = 200;

static std::atomic<unsigned> wrong;
static std::atomic<unsigned> moves;
static std::atomic<unsigned> done;

static void expect(bool holds, const char *what)
{
    if (!holds && wrong++ == 0) {
        (void)std::printf("not true: %s\n", what);
    }
}
#define EXPECT(condition) expect(condition, #condition)

/* The compiler must not know what this returns. */
__attribute__((noinline)) static pthread_t this_thread()
{
    __asm__ volatile("" : : : "memory");
    return pthread_self();
}

/* Waits, in every way that is compiled in another way. */
static void wait_somehow(skua_context *ctx, unsigned round)
{
    const pthread_t before = this_thread();
    int error = 0;
    skua_event *event = NULL;
    if (round % 3 == 0) {
        error = skua_task_pause(ctx);
    } else {
        error = skua_send(ctx, skua_self(ctx), skua_payload_u64(1, round));
        EXPECT(error == 0);
        error = round % 3 == 1 ? skua_task_receive(ctx, &event, SKUA_FOREVER)
                               : skua_task_receive_type(ctx, 1, &event, 1000 * SKUA_SECOND);
        EXPECT(event != NULL && skua_payload_to_u64(&event->payload) == round);
    }
    EXPECT(error == 0);
    moves += pthread_equal(before, this_thread()) == 0;
}

static std::string what_is_handled()
{
    try {
        throw;
    } catch (const std::exception &error) {
        return error.what();
    }
}

/* Waits while an exception is on its way. */
struct waits_when_destroyed {
    skua_context *ctx;
    unsigned round;
    ~waits_when_destroyed()
    {
        EXPECT(std::uncaught_exceptions() == 1);
        wait_somehow(ctx, round);
        EXPECT(std::uncaught_exceptions() == 1);
    }
};

static void fail(skua_context *ctx, unsigned round, const std::string &text)
{
    waits_when_destroyed waits = {ctx, round};
    throw std::runtime_error(text);
}

/* Waits in a catch block, and in one inside of that. */
static void handle(skua_context *ctx, unsigned round, const std::string &name)
{
    const std::string text = name + " " + std::to_string(round);
    try {
        fail(ctx, round, text);
    } catch (const std::exception &error) {
        wait_somehow(ctx, round);
        EXPECT(error.what() == text);
        EXPECT(what_is_handled() == text);
        try {
            fail(ctx, round + 1, text + " again");
        } catch (const std::exception &) {
            wait_somehow(ctx, round + 2);
            EXPECT(what_is_handled() == text + " again");
        }
        wait_somehow(ctx, round + 1);
        EXPECT(what_is_handled() == text);
    }
    EXPECT(std::current_exception() == nullptr);
    EXPECT(std::uncaught_exceptions() == 0);
}

static int thrower_main(void *, skua_context *ctx)
{
    const std::string name = std::to_string(skua_self(ctx).bits);
    EXPECT(std::current_exception() == nullptr);
    for (unsigned round = 0; round < ROUNDS; round++) {
        handle(ctx, round, name);
    }
    done++;
    return 0;
}

/* Is ended in a catch block. */
static int sleeper_main(void *, skua_context *ctx)
{
    try {
        throw std::runtime_error("good night");
    } catch (const std::exception &error) {
        const int outcome = skua_task_sleep(ctx, 1000 * SKUA_SECOND);
        EXPECT(outcome == SKUA_E_TERMINATED);
        EXPECT(what_is_handled() == "good night");
    }
    EXPECT(std::current_exception() == nullptr);
    done++;
    return 0;
}

static int careless_main(void *, skua_context *ctx)
{
    (void)skua_task_pause(ctx);
    throw std::runtime_error("nobody catches this");
}

static skua_pid start(skua_runtime *runtime, const char *name, skua_main_fn *function)
{
    static skua_process_type types[TASKS + 1];
    static unsigned count;
    skua_process_type *type = &types[count++];
    skua_pid pid = {0};
    type->name = name;
    type->main = function;
    EXPECT(skua_process_submit(runtime, type, skua_payload_empty(0), &pid) == 0);
    return pid;
}

static void run(skua_runtime *runtime)
{
    skua_pid pids[TASKS];
    for (unsigned i = 0; i < TASKS; i++) {
        pids[i] = start(runtime, "thrower", thrower_main);
    }
    const skua_pid sleeper = start(runtime, "sleeper", sleeper_main);
    for (unsigned i = 0; i < TASKS; i++) {
        (void)!skua_process_wait(runtime, pids[i], SKUA_FOREVER, NULL);
    }
    EXPECT(skua_process_terminate(runtime, sleeper) == 0);
    (void)!skua_process_wait(runtime, sleeper, SKUA_FOREVER, NULL);
    EXPECT(done == TASKS + 1);
    EXPECT(moves > ROUNDS);
}

int main(int argc, char **)
{
    skua_runtime *runtime;
    skua_runtime_config config = {};
    config.worker_count = 2;
    if (skua_runtime_create(&runtime, &config) != 0 || skua_runtime_start(runtime) != 0) {
        (void)std::printf("cannot start\n");
        return 1;
    }
    if (argc > 1) {
        (void)!skua_process_wait(runtime, start(runtime, "careless", careless_main), SKUA_FOREVER,
                                 NULL);
        return 0;
    }
    run(runtime);
    (void)skua_runtime_stop(runtime, SKUA_FOREVER);
    (void)skua_runtime_destroy(runtime);
    return wrong == 0 ? 0 : 1;
}
