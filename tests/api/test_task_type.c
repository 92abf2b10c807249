/* SPDX-License-Identifier: MIT */
/* Types of tasks, and what their functions return. */
#include <skua/task.h>

#include "errand.h"
#include "relations.h"

static int return_zero(void *self, skua_context *ctx)
{
    (void)self;
    (void)ctx;
    return 0;
}

static int serve_nothing(void *self, skua_context *ctx, skua_event *event)
{
    (void)self;
    (void)ctx;
    (void)event;
    return 0;
}

static int step_once(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)events;
    (void)count;
    return skua_done(ctx, skua_payload_empty(0));
}

static int submit(const skua_process_type *type)
{
    return skua_process_submit(world_runtime(), type, skua_payload_empty(0), NULL);
}

TEST(type_has_one_of_step_main_and_serve)
{
    static const skua_process_type types[] = {
        {.name = "none"},
        {.name = "step and main", .step = step_once, .main = return_zero},
        {.name = "step and serve", .step = step_once, .serve = serve_nothing},
        {.name = "main and serve", .main = return_zero, .serve = serve_nothing},
        {.name = "all", .step = step_once, .main = return_zero, .serve = serve_nothing},
        {.name = "too large", .main = return_zero, .stack_size = (1 << 20) + 1},
        {.name = "enormous", .serve = serve_nothing, .stack_size = SIZE_MAX},
        {.name = "step with a stack", .step = step_once, .stack_size = 1},
    };
    FOR_ROWS (type, types) {
        world_open_driver(1);
        assert_int_equal(submit(type), SKUA_E_INVALID);
    }
}

/* Uses most of its stack. */
static int uses_its_stack(struct errand *errand, skua_context *ctx)
{
    volatile char bytes[8 << 10];
    bytes[0] = 1;
    bytes[sizeof bytes - 1] = 2;
    CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    CHECK(errand, bytes[0] == 1 && bytes[sizeof bytes - 1] == 2);
    return 0;
}

TEST(stacks_have_four_sizes)
{
    static const size_t sizes[] = {0, 1, 16 << 10, (16 << 10) + 1, 64 << 10, 256 << 10, 1 << 20};
    FOR_ROWS (size, sizes) {
        world_open();
        struct errand *errand = errand_new(uses_its_stack);
        errand->type.stack_size = *size;
        assert_result(errand_run(errand), 0);
    }
}

/* The state of a task, whatever its size, and what the runtime keeps beside it. */
static int checks_its_state(void *self, skua_context *ctx)
{
    unsigned char *bytes = self;
    skua_event *event;
    memset(bytes + 1, 0x5a, (size_t)bytes[0] - 1);
    int error = skua_task_receive_type(ctx, 2, &event, SKUA_FOREVER);
    for (size_t i = 1; i < bytes[0]; i++) {
        error = bytes[i] != 0x5a ? SKUA_E_USER : error;
    }
    return error;
}

static int keep_size(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    (void)ctx;
    (void)count;
    *(unsigned char *)self = (unsigned char)skua_payload_to_u64(&input[0]);
    return 0;
}

TEST(state_of_a_task_is_its_own)
{
    FOR_ROUNDS (size, 80) {
        skua_exit exit;
        skua_pid pid;
        const skua_process_type type = {
            .name = "stateful", .state_size = size, .init = keep_size, .main = checks_its_state};
        world_open_driver(1);
        assert_int_equal(
            skua_process_submit(world_runtime(), &type, skua_payload_u64(0, size), &pid), 0);
        assert_int_equal(world_send(pid, skua_payload_u64(1, 0)), 0);
        assert_int_equal(world_send(pid, skua_payload_u64(2, 0)), 0);
        const int error = skua_process_wait(world_runtime(), pid, SKUA_FOREVER, &exit);
        assert_true(error == SKUA_E_NO_PROCESS || (error == 0 && exit.error == 0));
        world_close();
    }
}

/* ---- what a function returns ---- */

static int returns_number(struct errand *errand, skua_context *ctx)
{
    (void)ctx;
    return (int)(int64_t)errand->number;
}

static int returns_later(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_sleep(ctx, 1) == 0);
    return returns_number(errand, ctx);
}

TEST(result_of_main_is_that_of_the_process)
{
    static const struct {
        int returns;
        int error;
    } rows[] = {{0, 0},
                {SKUA_E_USER, SKUA_E_USER},
                {SKUA_E_CANCELLED, SKUA_E_CANCELLED},
                {SKUA_E_TERMINATED, SKUA_E_TERMINATED},
                {1, SKUA_E_INVALID}};
    FOR_ROWS (row, rows) {
        world_open();
        struct errand *at_once = errand_new(returns_number);
        struct errand *later = errand_new(returns_later);
        at_once->number = later->number = (uint64_t)(int64_t)row->returns;
        assert_int_equal(errand_run(at_once).error, row->error);
        assert_int_equal(errand_run(later).error, row->error);
    }
}

static int is_done_with_an_item(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_sleep(ctx, 0) == 0);
    CHECK(errand, skua_done(ctx, tracked_payload(3, &errand->item)) == 0);
    CHECK(errand, skua_done(ctx, tracked_payload(3, errand->arg)) == SKUA_E_DONE);
    return (int)(int64_t)errand->number;
}

TEST(main_gives_a_result_by_being_done)
{
    FOR_ROUNDS (round, 2) {
        struct tracked second = {0};
        world_open();
        struct errand *errand = errand_new(is_done_with_an_item);
        errand->number = (uint64_t)(int64_t)(round == 1 ? 0 : SKUA_E_USER);
        errand->item.value = 8;
        errand->arg = &second;
        skua_exit exit = errand_run(errand);
        assert_int_equal(exit.result.type, 3);
        assert_result(exit, 8);
        assert_drops(&errand->item, 1, 1);
        assert_drops(&second, 1, 1);
    }
}

/* ---- waits that bring something ---- */

static int finishes_late(struct errand *errand, skua_context *ctx)
{
    CHECK(errand, skua_task_sleep(ctx, SKUA_MILLISECOND) == 0);
    CHECK(errand, skua_name_register(ctx, "late", NULL) == 0);
    CHECK(errand, skua_task_sleep(ctx, SKUA_MILLISECOND) == 0);
    CHECK(errand, skua_done(ctx, tracked_payload(0, &errand->item)) == 0);
    return 0;
}

static int watches(struct errand *errand, skua_context *ctx)
{
    skua_pid pid = {1};
    skua_payload result;
    CHECK(errand, skua_task_await_name(ctx, "late", 1, &pid) == SKUA_E_TIMEOUT);
    CHECK(errand, pid.bits == 0);
    CHECK(errand, skua_task_await_name(ctx, "late", SKUA_FOREVER, &pid) == 0);
    CHECK(errand, pid.bits == errand->other.bits);
    CHECK(errand, skua_task_join(ctx, errand->other, SKUA_FOREVER, NULL, &result) == 0);
    note(errand, tracked_value(&result));
    skua_payload_drop(&result);
    CHECK(errand, skua_task_monitor(ctx, errand->other, SKUA_FOREVER, NULL) == SKUA_E_NO_PROCESS);
    return 0;
}

static int monitors_and_returns(struct errand *errand, skua_context *ctx)
{
    int exit_error = 0;
    CHECK(errand, skua_task_monitor(ctx, errand->other, SKUA_FOREVER, &exit_error) == 0);
    return exit_error;
}

TEST(task_waits_for_names_ends_and_results)
{
    FOR_ROUNDS (seed, 20) {
        world_open_sim(seed, SIM_NO_FAULTS);
        struct errand *late = errand_new(finishes_late);
        late->item.value = 31;
        errand_submit(late);
        struct errand *watcher = errand_new(watches);
        watcher->other = late->pid;
        errand_submit(watcher);
        struct actor *failing =
            actor_start(ACTS(sleeps(1, 1000), expects(completion(1, 0)), fails(SKUA_E_USER - 1)));
        struct errand *monitor = errand_new(monitors_and_returns);
        monitor->other = failing->pid;
        errand_submit(monitor);
        world_settle();
        assert_errand_ended(watcher, 0);
        assert_errand_ended(monitor, SKUA_E_USER - 1);
        assert_noted(watcher, 31);
        assert_drops(&late->item, 1, 1);
    }
}

static int double_number(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_u64(4, 2 * skua_payload_to_u64(input));
    return 0;
}

static int fail_blocking(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    return SKUA_E_USER - 2;
}

static int runs_on_a_pool(struct errand *errand, skua_context *ctx)
{
    skua_payload result;
    const skua_pool pool = {0};
    CHECK(errand, skua_task_blocking(ctx, pool, double_number, skua_payload_u64(0, 21),
                                     SKUA_FOREVER, &result) == 0);
    note(errand, skua_payload_to_u64(&result));
    skua_payload_drop(&result);
    CHECK(errand, skua_task_blocking(ctx, pool, double_number, skua_payload_u64(0, 21),
                                     SKUA_FOREVER, NULL) == 0);
    CHECK(errand, skua_task_blocking(ctx, pool, fail_blocking, tracked_payload(0, &errand->item),
                                     SKUA_FOREVER, &result) == SKUA_E_USER - 2);
    CHECK(errand, result.storage == SKUA_PAYLOAD_EMPTY);
    return 0;
}

TEST(task_runs_functions_that_block)
{
    world_open();
    struct errand *errand = errand_new(runs_on_a_pool);
    assert_result(errand_run(errand), 0);
    assert_noted(errand, 42);
    world_close();
    assert_drops(&errand->item, 1, 1);
}
