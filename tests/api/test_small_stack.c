/* SPDX-License-Identifier: MIT */
/* A runtime on a thread with little stack: threads of other libraries and languages often have no
 * more. */
#include <limits.h>
#include <unistd.h>

#include "actor.h"
#include "capture.h"
#include "handlers.h"
#include "inspected.h"

#define SMALL (24 * 1024)

/* With sanitizers a frame is several times as large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FRAMES_ARE_LARGE true
#else
#define FRAMES_ARE_LARGE false
#endif

static size_t small_stack(void)
{
    const long least = sysconf(_SC_THREAD_STACK_MIN); /* more than SMALL on some machines */
    const size_t size = FRAMES_ARE_LARGE ? 16 * SMALL : SMALL;
    return least > 0 && (size_t)least > size ? (size_t)least : size;
}

static int finish(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_done(ctx, skua_nothing());
}

static const skua_process_type type = {.name = "brief", .step = finish};

/* What a program does with a runtime; returns the first error. */
static int use_runtime(const skua_runtime_config *config)
{
    skua_runtime *runtime;
    skua_stats stats;
    int error = skua_runtime_create(&runtime, config);
    if (error != 0) {
        return error;
    }
    error = skua_command_register(runtime, 1, &(skua_handler){.run = complete_at_once});
    if (error == 0) {
        error = skua_runtime_start(runtime);
    }
    if (error == 0) {
        error = skua_process_run(runtime, &type, skua_nothing(), NULL);
    }
    if (error == 0) {
        error = skua_stats_read(runtime, &stats, NULL, 0) > 0 && stats.finished == 1 ? 0 : -1;
    }
    if (error == 0) {
        error = skua_runtime_stop(runtime, SKUA_FOREVER);
    }
    return error != 0 ? error : skua_runtime_destroy(runtime);
}

struct use {
    skua_runtime_config config;
    int error;
};

static void *use_on_thread(void *arg)
{
    struct use *use = arg;
    use->error = use_runtime(&use->config);
    return NULL;
}

static void use_with_small_stack(skua_runtime_config config)
{
    struct use use = {.config = config, .error = 1};
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, small_stack()), 0);
    assert_int_equal(pthread_create(&thread, &attributes, use_on_thread, &use), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(use.error, 0);
}

TEST(runtime_needs_little_stack)
{
    use_with_small_stack((skua_runtime_config){0});
    use_with_small_stack((skua_runtime_config){.worker_count = 2, .crash_report = true});
}

TEST(runtime_with_an_inspector_needs_little_stack)
{
    inspected_prepare();
    use_with_small_stack((skua_runtime_config){.inspect = true});
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    use_with_small_stack((skua_runtime_config){0});
}

/* Then it says so, and starts without. */
TEST(runtime_whose_inspector_cannot_listen_needs_little_stack)
{
    struct capture *capture = test_alloc(sizeof *capture);
    inspected_prepare();
    scratch_write("skua", "no folder");
    assert_int_equal(setenv("SKUA_INSPECT", "1", 1), 0);
    assert_int_equal(setenv("SKUA_DEBUG", "nonsense=1", 1), 0);
    capture_begin(capture);
    use_with_small_stack((skua_runtime_config){0});
    const char *said = capture_end(capture);
    assert_non_null(strstr(said, "skua: SKUA_INSPECT: cannot open the inspector socket"));
    assert_non_null(strstr(said, "nonsense"));
}

/* ---- the runtime's own threads ---- */

static pthread_attr_t usual;

static void restore_stacks(void)
{
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
}

/* Threads that are created from now on, and do not ask for more, have a small stack. */
static void make_stacks_small(void)
{
    pthread_attr_t small;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, small_stack()), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    assert_int_equal(pthread_attr_destroy(&small), 0);
    test_at_end(restore_stacks);
}

TEST(threads_of_the_runtime_need_little_stack)
{
    static const char *const requests[] = {
        "stats",
        "metrics",
        "processes pid 0 256",
        "processes mailbox 0 256",
        "processes steps 0 256",
        "processes run 0 256",
        "processes age 0 256",
        "trace start",
        "trace read",
        "trace stop",
    };
    if (FRAMES_ARE_LARGE) {
        skip(); /* and threads of sanitizers need a stack of some size */
    }
    make_stacks_small();
    inspected_prepare();
    assert_int_equal(setenv("SKUA_DEBUG", "schedtrace=1,stall=1ms", 1), 0);
    struct capture *capture = test_alloc(sizeof *capture);
    capture_begin(capture);
    world_open_with((skua_runtime_config){.inspect = true, .crash_report = true});
    struct actor *culprit = actor_start(ACTS(holds(), finishes(0)));
    struct inspect_client *client = client_open();
    for (unsigned i = 0; i < 300; i++) {
        (void)actor_start(NO_ACTS);
    }
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        client_ask(client, "%s", requests[i]);
    }
    capture_wait(capture, "schedtrace: ");
    capture_wait(capture, "stall: ");
    actor_let_go(culprit);
    actor_await_end(culprit);
    world_close();
    (void)capture_end(capture);
}
