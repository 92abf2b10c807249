/* SPDX-License-Identifier: MIT */
/* What the inspector tells of a task: what it waits for, where, and which functions have led
 * there. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "actor.h"
#include "deep_task.h"
#include "inspected.h"
#include "task/fiber.h"

#define WORKERS 2
#define HOUR    (UINT64_C(3600) * 1000000000)
#define NUMBER  UINT32_C(7)

/* Fields of a line `task`. */
enum { KIND = 2, TYPE, LEFT, WHERE, FIELDS };

static void open_world(void)
{
    inspected_prepare();
    world_create((skua_runtime_config){.worker_count = WORKERS, .inspect = true});
    world_start();
}

static skua_pid start(const skua_process_type *type)
{
    skua_pid pid;
    assert_int_equal(skua_process_submit(world_runtime(), type, skua_nothing(), &pid), 0);
    while (world_info(pid).steps == 0 || (world_info(pid).state != SKUA_PROCESS_IDLE &&
                                          world_info(pid).state != SKUA_PROCESS_BLOCKED)) {
        (void)sched_yield();
    }
    return pid;
}

/* A busy machine may need more than one attempt. */
static const struct inspect_line *ask(struct inspect_client *client, const char *request,
                                      skua_pid pid)
{
    do {
        client_ask(client, "%s %" PRIx64, request, pid.bits);
    } while (strcmp(inspect_find(client, "described", 0)->fields[2], "told") != 0);
    return inspect_count(client, "task") > 0 ? inspect_find(client, "task", 0) : NULL;
}

/* ---- waits; each notes its line ---- */

static atomic_int line_of_wait;

static int receive_any(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    atomic_store(&line_of_wait, __LINE__ + 1);
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

static int receive_any_in_time(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    atomic_store(&line_of_wait, __LINE__ + 1);
    return skua_task_receive(ctx, &event, HOUR);
}

static int receive_number(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    atomic_store(&line_of_wait, __LINE__ + 1);
    return skua_task_receive_type(ctx, NUMBER, &event, HOUR);
}

static bool is_never_right(void *arg, const skua_event *event)
{
    (void)arg;
    (void)event;
    return false;
}

static int receive_right(void *self, skua_context *ctx)
{
    skua_event *event;
    (void)self;
    atomic_store(&line_of_wait, __LINE__ + 1);
    return skua_task_receive_if(ctx, is_never_right, NULL, &event, SKUA_FOREVER);
}

static int sleep_long(void *self, skua_context *ctx)
{
    (void)self;
    atomic_store(&line_of_wait, __LINE__ + 1);
    return skua_task_sleep(ctx, HOUR);
}

TEST(task_tells_what_it_waits_for_and_where)
{
    static const struct {
        skua_process_type type;
        const char *kind;
        const char *wanted;
        bool has_time;
    } rows[] = {
        {{.name = "any", .main = receive_any}, "receive", "-", false},
        {{.name = "any in time", .main = receive_any_in_time}, "receive", "-", true},
        {{.name = "number", .main = receive_number}, "type", "7", true},
        {{.name = "right", .main = receive_right}, "match", "-", false},
        {{.name = "sleep", .main = sleep_long}, "completion", "-", false},
    };
    char where[32];
    open_world();
    struct inspect_client *client = client_open();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const skua_pid pid = start(&rows[i].type);
        const struct inspect_line *line = ask(client, "describe", pid);
        assert_non_null(line);
        assert_int_equal(line->count, FIELDS);
        assert_true(skua_pid_equal(inspect_pid(line, 1), pid));
        assert_string_equal(line->fields[KIND], rows[i].kind);
        assert_string_equal(line->fields[TYPE], rows[i].wanted);
        if (rows[i].has_time) {
            assert_in_range(inspect_number(line, LEFT), HOUR / 2, HOUR + SKUA_SECOND);
        } else {
            assert_string_equal(line->fields[LEFT], "-");
        }
        (void)snprintf(where, sizeof where, "test_inspect_task.c:%d", atomic_load(&line_of_wait));
        assert_non_null(strstr(line->fields[WHERE], where));
    }
}

/* ---- backtraces ---- */

/* After a call, which would otherwise be a jump, and leave no frame. */
#define NO_JUMP __asm__ volatile("" : : : "memory")

static NOINLINE int descend(skua_context *ctx, int depth)
{
    skua_event *event;
    if (depth > 0) {
        const int error = descend(ctx, depth - 1);
        NO_JUMP;
        return error;
    }
    return skua_task_receive(ctx, &event, SKUA_FOREVER);
}

static NOINLINE int dive(void *self, skua_context *ctx)
{
    (void)self;
    int error;
    while ((error = descend(ctx, 2)) == 0) {
    }
    return error;
}

/* How many frames are of a function, and that all of them are of some. */
static size_t count_frames(const struct inspect_client *client, const char *function)
{
    size_t found = 0;
    for (size_t i = 0; i < inspect_count(client, "frame"); i++) {
        const char *text = inspect_find(client, "frame", i)->fields[1];
        assert_non_null(strchr(text, '+'));
        found += strncmp(text, function, strlen(function)) == 0 && text[strlen(function)] == '+';
    }
    return found;
}

TEST(backtrace_of_a_waiting_task_is_complete)
{
    static const skua_process_type type = {.name = "diver", .main = dive};
    open_world();
    struct inspect_client *client = client_open();
    const skua_pid pid = start(&type);
    for (unsigned i = 0; i < 10; i++) {
        assert_non_null(ask(client, "process", pid));
        assert_int_equal(count_frames(client, "dive"), 1);
        assert_true(count_frames(client, "descend") >= 1); /* some compilers unroll it */
        const size_t last = inspect_count(client, "frame") - 1;
        assert_int_equal(count_frames(client, "coroutine_start_"), 1);
        assert_memory_equal(inspect_find(client, "frame", last)->fields[1], "coroutine_start_", 16);
        /* And it goes on as if nothing had happened. */
        assert_int_equal(skua_process_send(world_runtime(), pid, skua_nothing()), 0);
    }
}

/* ---- those that have none ---- */

static int serve(void *self, skua_context *ctx, skua_event *event)
{
    (void)self;
    (void)event;
    const int error = skua_task_sleep(ctx, HOUR);
    NO_JUMP;
    return error;
}

TEST(task_that_serves_waits_only_while_it_serves)
{
    static const skua_process_type type = {.name = "server", .serve = serve};
    open_world();
    struct inspect_client *client = client_open();
    const skua_pid pid = start(&type);
    assert_null(ask(client, "process", pid));
    assert_int_equal(inspect_count(client, "frame"), 0);
    assert_int_equal(skua_process_send(world_runtime(), pid, skua_nothing()), 0);
    while (world_info(pid).state != SKUA_PROCESS_BLOCKED) {
        (void)sched_yield();
    }
    const struct inspect_line *line = ask(client, "process", pid);
    assert_non_null(line);
    assert_string_equal(line->fields[KIND], "completion");
    assert_int_equal(count_frames(client, "serve"), 1);
}

/* ---- how deep it has been ---- */

static int goes_deep_and_waits(void *self, skua_context *ctx)
{
    use_stack(30000);
    return receive_any(self, ctx);
}

static int goes_deep_and_returns(void *self, skua_context *ctx, skua_event *event)
{
    (void)self;
    (void)ctx;
    (void)event;
    use_stack(5000);
    return 0;
}

/* Fields of a line `stack`. */
enum { DEEPEST = 2, SIZE };

static void assert_stack(struct inspect_client *client, skua_pid pid, uint64_t least, uint64_t most,
                         uint64_t size)
{
    (void)ask(client, "describe", pid);
    const struct inspect_line *line = inspect_find(client, "stack", 0);
    assert_true(skua_pid_equal(inspect_pid(line, 1), pid));
    assert_in_range(inspect_number(line, DEEPEST), least, most);
    assert_int_equal(inspect_number(line, SIZE), size);
}

/* Of a task that waits, what it has used so far; of one without a stack, what others have. */
TEST(task_tells_how_deep_stacks_of_its_type_were_used)
{
    static const skua_process_type deep = {.name = "deep", .main = goes_deep_and_waits};
    static const skua_process_type server = {
        .name = "server", .serve = goes_deep_and_returns, .stack_size = 16384};
    if (IS_SANITIZED) {
        skip(); /* they are not measured then */
    }
    inspected_prepare();
    assert_int_equal(setenv("SKUA_DEBUG", "stacks", 1), 0);
    world_create((skua_runtime_config){.worker_count = WORKERS, .inspect = true});
    world_start();
    struct inspect_client *client = client_open();
    assert_stack(client, start(&deep), 30000, 40000, 65536);
    const skua_pid serving = start(&server);
    assert_stack(client, serving, 0, 0, 16384);
    assert_int_equal(world_send(serving, skua_payload_empty(0)), 0);
    while (world_info(serving).steps < 2 || world_info(serving).state != SKUA_PROCESS_IDLE) {
        (void)sched_yield();
    }
    assert_stack(client, serving, 5000, 10000, 16384);
    (void)ask(client, "describe", actor_start(NO_ACTS)->pid);
    assert_int_equal(inspect_count(client, "stack"), 0);
}

TEST(task_does_not_tell_what_is_not_measured)
{
    static const skua_process_type deep = {.name = "deep", .main = goes_deep_and_waits};
    open_world();
    struct inspect_client *client = client_open();
    (void)ask(client, "describe", start(&deep));
    assert_int_equal(inspect_count(client, "stack"), 0);
}
