/* SPDX-License-Identifier: MIT */
/* Every public function with arguments it cannot use: it returns the error that its header names
 * (or survives, if it returns nothing), drops what it was given exactly once, and changes nothing.
 */
#include <limits.h>

#include "runtime_support.h"

#define PAYLOAD_LIMIT 1000
#define COMMAND_LATER 3

/* ---- the scene: a runtime with one process, and a foreign one ---- */

struct scene {
    struct api api;
    struct api other;
    skua_runtime *runtime; /* that of api */
    struct probe live_probe;
    struct probe foreign_probe;
    skua_pid live;
    skua_pid stale; /* has finished */
    skua_pid foreign;
};

static int keep_completion(void *arg, skua_command *command, skua_payload *result)
{
    skua_completion *completion = arg;
    (void)result;
    *completion = command->completion;
    return SKUA_PENDING;
}

static void scene_create(struct scene *scene)
{
    struct probe ends = {.habit = PROBE_ENDS};
    memset(scene, 0, sizeof *scene);
    api_create(&scene->api,
               (skua_runtime_config){.worker_count = 2, .payload_limit = PAYLOAD_LIMIT});
    scene->runtime = scene->api.runtime;
    api_start(&scene->api);
    api_run(&scene->other, 1);
    scene->stale = api_run_process(&scene->api, &probe_type, &ends).pid;
    scene->live = api_submit(&scene->api, &probe_type, &scene->live_probe);
    scene->foreign = api_submit(&scene->other, &probe_type, &scene->foreign_probe);
    api_wait_state(&scene->api, scene->live, SKUA_PROCESS_IDLE);
    api_wait_live(&scene->api, 1);
}

/* Nothing has happened to anybody. */
static void scene_destroy(struct scene *scene)
{
    assert_int_equal(api_stats(&scene->api).live, 1);
    assert_int_equal(atomic_load(&scene->live_probe.steps), 1);
    api_stop(&scene->api);
    api_stop(&scene->other);
    assert_probe_stopped_once(&scene->live_probe);
    assert_probe_stopped_once(&scene->foreign_probe);
    assert_int_equal(atomic_load(&scene->live_probe.messages), 0);
    assert_int_equal(atomic_load(&scene->foreign_probe.messages), 0);
}

/* A tracked payload that claims to be longer than the limit; nobody may look at its bytes. */
static skua_payload oversized(struct tracked *item)
{
    skua_payload payload = tracked_payload(0, item);
    payload.as.owned.size = PAYLOAD_LIMIT + 1;
    return payload;
}

/* ---- functions that take a PID ---- */

typedef int pid_call(skua_runtime *runtime, skua_pid pid);

static struct tracked sent;
static uint32_t send_count;

static int call_send(skua_runtime *runtime, skua_pid pid)
{
    send_count++;
    return skua_message_send(runtime, pid, tracked_payload(0, &sent));
}

static int call_cancel(skua_runtime *runtime, skua_pid pid)
{
    return skua_process_cancel(runtime, pid, SKUA_E_USER);
}

static int call_terminate(skua_runtime *runtime, skua_pid pid)
{
    return skua_process_terminate(runtime, pid);
}

static int call_wait(skua_runtime *runtime, skua_pid pid)
{
    skua_exit exit;
    return skua_process_wait(runtime, pid, SKUA_FOREVER, &exit);
}

static int call_info(skua_runtime *runtime, skua_pid pid)
{
    skua_process_info info;
    return skua_process_info_read(runtime, pid, &info);
}

static pid_call *const pid_calls[] = {call_send, call_cancel, call_terminate, call_wait, call_info};

static void expect_from_all(skua_runtime *runtime, skua_pid pid, int expected)
{
    for (size_t i = 0; i < COUNT_OF(pid_calls); i++) {
        assert_int_equal(pid_calls[i](runtime, pid), expected);
    }
    assert_int_equal(atomic_load(&sent.drops), send_count);
}

TEST(bad_input_pid_of_nobody_is_refused)
{
    static struct scene scene;
    scene_create(&scene);

    expect_from_all(NULL, scene.live, SKUA_E_INVALID);
    expect_from_all(NULL, (skua_pid){0}, SKUA_E_INVALID);
    expect_from_all(scene.runtime, (skua_pid){0}, SKUA_E_NO_PROCESS);
    expect_from_all(scene.runtime, scene.stale, SKUA_E_NO_PROCESS);
    expect_from_all(scene.runtime, scene.foreign, SKUA_E_FOREIGN_PID);
    expect_from_all(scene.other.runtime, scene.live, SKUA_E_FOREIGN_PID);

    scene_destroy(&scene);
}

TEST(bad_input_pid_with_any_bit_flipped_is_refused)
{
    static struct scene scene;
    scene_create(&scene);

    for (unsigned bit = 0; bit < 64; bit++) {
        const skua_pid pid = {scene.live.bits ^ UINT64_C(1) << bit};
        for (size_t i = 0; i < COUNT_OF(pid_calls); i++) {
            const int error = pid_calls[i](scene.runtime, pid);
            assert_true(error == SKUA_E_NO_PROCESS || error == SKUA_E_FOREIGN_PID);
        }
    }
    expect_from_all(scene.runtime, (skua_pid){UINT64_MAX}, SKUA_E_FOREIGN_PID);

    scene_destroy(&scene);
}

TEST(bad_input_pid_of_a_reused_place_is_refused)
{
    struct probe first = {.habit = PROBE_ENDS};
    struct probe later[200] = {{0}};
    struct api api;
    api_run(&api, 1);
    const skua_pid stale = api_run_process(&api, &probe_type, &first).pid;
    api_wait_live(&api, 0);
    /* Far more than a worker keeps in its caches: one of them has the place. */
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        const skua_pid pid = api_submit(&api, &probe_type, &later[i]);
        assert_false(skua_pid_equal(pid, stale));
    }

    expect_from_all(api.runtime, stale, SKUA_E_NO_PROCESS);

    assert_int_equal(api_stats(&api).live, COUNT_OF(later));
    api_stop(&api);
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        assert_int_equal(atomic_load(&later[i].messages), 0);
        assert_probe_stopped_once(&later[i]);
    }
}

TEST(bad_input_oversized_message_is_refused_and_dropped)
{
    static struct scene scene;
    struct tracked item = {0};
    scene_create(&scene);

    assert_int_equal(skua_message_send(scene.runtime, scene.live, oversized(&item)),
                     SKUA_E_PAYLOAD_SIZE);

    assert_drops(&item, 1, 1);
    scene_destroy(&scene);
}

TEST(bad_input_wait_without_time_times_out)
{
    static struct scene scene;
    scene_create(&scene);
    skua_exit exit = {.error = 42};

    assert_int_equal(skua_process_wait(scene.runtime, scene.live, 0, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(skua_process_wait(scene.runtime, scene.live, 1, NULL), SKUA_E_TIMEOUT);

    assert_int_equal(exit.error, 42);
    scene_destroy(&scene);
}

TEST(bad_input_info_without_a_place_to_write_is_refused)
{
    static struct scene scene;
    scene_create(&scene);

    assert_int_equal(skua_process_info_read(scene.runtime, scene.live, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_process_info_read(NULL, scene.live, NULL), SKUA_E_INVALID);

    scene_destroy(&scene);
}

/* ---- starting a process: submit, run and spawn ---- */

/* Arguments that lead to an error, whichever function gets them. */
struct start_case {
    const skua_process_type *type;
    const char *method;
    bool input_is_null;
    bool second_is_oversized;
    int expected;
};

static int unreachable_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                            skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    (void)out;
    return SKUA_E_USER;
}

static atomic_uint closes;

static void count_close(void *self)
{
    (void)self;
    (void)atomic_fetch_add(&closes, 1);
}

static int failing_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    (void)self;
    (void)ctx;
    (void)method;
    /* Takes one and leaves the rest. */
    for (size_t i = 0; i < input_count && i < 1; i++) {
        skua_payload taken = skua_payload_take(&input[i]);
        skua_payload_drop(&taken);
    }
    return SKUA_E_USER - 7;
}

static const char *const two_methods[] = {"first", "second", NULL};
static const char *const no_methods[] = {NULL};

static const skua_process_type good_type = {.name = "good", .step = unreachable_step};
static const skua_process_type nameless_type = {.step = unreachable_step};
static const skua_process_type stepless_type = {.name = "no step"};
static const skua_process_type huge_type = {
    .name = "huge", .step = unreachable_step, .state_size = (size_t)PTRDIFF_MAX + 1};
static const skua_process_type spacious_type = {
    .name = "spacious", .step = unreachable_step, .mailbox_limit = SKUA_MAILBOX_MAX + 1};
static const skua_process_type two_methods_type = {
    .name = "two", .step = unreachable_step, .methods = two_methods};
static const skua_process_type no_methods_type = {
    .name = "none", .step = unreachable_step, .methods = no_methods};
static const skua_process_type failing_type = {
    .name = "fails", .init = failing_init, .step = unreachable_step, .close = count_close};
static const skua_process_type failing_large_type = {.name = "fails, large",
                                                     .state_size = 10000,
                                                     .init = failing_init,
                                                     .step = unreachable_step,
                                                     .close = count_close};

static const struct start_case start_cases[] = {
    {.type = NULL, .expected = SKUA_E_INVALID},
    {.type = &nameless_type, .expected = SKUA_E_INVALID},
    {.type = &stepless_type, .expected = SKUA_E_INVALID},
    {.type = &huge_type, .expected = SKUA_E_INVALID},
    {.type = &spacious_type, .expected = SKUA_E_INVALID},
    {.type = &good_type, .input_is_null = true, .expected = SKUA_E_INVALID},
    {.type = &good_type, .method = "Main", .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = &good_type, .method = "", .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = &two_methods_type, .method = "main", .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = &two_methods_type, .method = "firs", .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = &no_methods_type, .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = &good_type, .second_is_oversized = true, .expected = SKUA_E_PAYLOAD_SIZE},
    {.type = &failing_type, .expected = SKUA_E_USER - 7},
    {.type = &failing_large_type, .expected = SKUA_E_USER - 7},
};

/* `start` is one of the three functions; `handle` is what it is called on. */
typedef int start_fn(void *handle, const struct start_case *start, skua_payload *input);

static int start_by_submit(void *handle, const struct start_case *start, skua_payload *input)
{
    skua_pid pid;
    return skua_process_submit(handle, start->type, start->method, input, 2, &pid);
}

static int start_by_run(void *handle, const struct start_case *start, skua_payload *input)
{
    skua_exit exit;
    return skua_process_run(handle, start->type, start->method, input, 2, &exit);
}

static int start_by_spawn(void *handle, const struct start_case *start, skua_payload *input)
{
    skua_pid pid;
    return skua_context_spawn(handle, start->type, start->method, input, 2, &pid);
}

struct start_outcome {
    int error;
    struct tracked items[2];
};

static void start_one(void *handle, start_fn *function, const struct start_case *start,
                      struct start_outcome *outcome)
{
    skua_payload input[2];
    input[0] = tracked_payload(0, &outcome->items[0]);
    input[1] = start->second_is_oversized ? oversized(&outcome->items[1])
                                          : tracked_payload(0, &outcome->items[1]);
    outcome->error = function(handle, start, start->input_is_null ? NULL : input);
}

static void assert_start_failed(const struct start_case *start, struct start_outcome *outcome)
{
    assert_int_equal(outcome->error, start->expected);
    assert_drops(outcome->items, 2, start->input_is_null ? 0 : 1);
}

static void assert_starts_fail_outside(struct scene *scene, start_fn *function)
{
    for (size_t i = 0; i < COUNT_OF(start_cases); i++) {
        struct start_outcome outcome = {0};
        start_one(scene->runtime, function, &start_cases[i], &outcome);
        assert_start_failed(&start_cases[i], &outcome);
    }
    const struct start_case good = {.type = &good_type, .expected = SKUA_E_INVALID};
    struct start_outcome outcome = {0};
    start_one(NULL, function, &good, &outcome);
    assert_start_failed(&good, &outcome);
}

TEST(bad_input_submit_is_refused_without_a_trace)
{
    static struct scene scene;
    scene_create(&scene);
    atomic_store(&closes, 0);

    assert_starts_fail_outside(&scene, start_by_submit);

    assert_int_equal(atomic_load(&closes), 2);
    assert_int_equal(api_stats(&scene.api).spawned, 2);
    scene_destroy(&scene);
}

TEST(bad_input_run_is_refused_without_a_trace)
{
    static struct scene scene;
    scene_create(&scene);
    atomic_store(&closes, 0);

    assert_starts_fail_outside(&scene, start_by_run);

    assert_int_equal(atomic_load(&closes), 2);
    assert_int_equal(api_stats(&scene.api).spawned, 2);
    scene_destroy(&scene);
}

static void spawn_all_cases(void *arg, skua_context *ctx, skua_step *out)
{
    struct start_outcome *outcomes = arg;
    (void)out;
    for (size_t i = 0; i < COUNT_OF(start_cases); i++) {
        start_one(ctx, start_by_spawn, &start_cases[i], &outcomes[i]);
    }
}

TEST(bad_input_spawn_is_refused_without_a_trace)
{
    static struct scene scene;
    static struct start_outcome outcomes[COUNT_OF(start_cases)];
    scene_create(&scene);
    memset(outcomes, 0, sizeof outcomes);
    atomic_store(&closes, 0);

    api_in_step(&scene.api, spawn_all_cases, outcomes);

    for (size_t i = 0; i < COUNT_OF(start_cases); i++) {
        assert_start_failed(&start_cases[i], &outcomes[i]);
    }
    const struct start_case good = {.type = &good_type, .expected = SKUA_E_INVALID};
    struct start_outcome outcome = {0};
    start_one(NULL, start_by_spawn, &good, &outcome);
    assert_start_failed(&good, &outcome);
    assert_int_equal(atomic_load(&closes), 2);
    api_wait_live(&scene.api, 1);
    assert_int_equal(api_stats(&scene.api).spawned, 3);
    scene_destroy(&scene);
}

TEST(bad_input_null_input_with_a_count_on_a_null_runtime_is_survived)
{
    assert_int_equal(skua_process_submit(NULL, &good_type, NULL, NULL, 5, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_process_run(NULL, &good_type, NULL, NULL, 5, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_context_spawn(NULL, &good_type, NULL, NULL, 5, NULL), SKUA_E_INVALID);
}

/* ---- payloads ---- */

TEST(bad_input_copy_is_refused_and_gives_an_empty_payload)
{
    static struct scene scene;
    static const char bytes[PAYLOAD_LIMIT + 1];
    struct tracked item = {0};
    scene_create(&scene);
    const struct {
        skua_runtime *runtime;
        const void *data;
        size_t size;
        int expected;
    } cases[] = {
        {NULL, bytes, 8, SKUA_E_INVALID},
        {scene.runtime, NULL, 1, SKUA_E_INVALID},
        {scene.runtime, NULL, 100, SKUA_E_INVALID},
        {scene.runtime, bytes, PAYLOAD_LIMIT + 1, SKUA_E_PAYLOAD_SIZE},
        {scene.runtime, bytes, SIZE_MAX, SKUA_E_PAYLOAD_SIZE},
    };

    assert_int_equal(skua_payload_copy(scene.runtime, 1, bytes, 8, NULL), SKUA_E_INVALID);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        skua_payload payload = tracked_payload(9, &item);
        assert_int_equal(
            skua_payload_copy(cases[i].runtime, 1, cases[i].data, cases[i].size, &payload),
            cases[i].expected);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        assert_null(skua_payload_data(&payload));
    }

    /* At the limit, and nothing at all, are fine. */
    skua_payload payload;
    assert_int_equal(skua_payload_copy(scene.runtime, 1, bytes, PAYLOAD_LIMIT, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), PAYLOAD_LIMIT);
    skua_payload_drop(&payload);
    assert_int_equal(skua_payload_copy(scene.runtime, 1, NULL, 0, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), 0);
    scene_destroy(&scene);
}

TEST(bad_input_payload_of_another_kind_reads_as_zero)
{
    struct tracked item = {0};
    skua_payload payload = tracked_payload(1, &item);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
    assert_true(skua_pid_is_none(skua_payload_to_pid(&payload)));
    skua_payload_drop(&payload);
    skua_payload_drop(&payload);
    assert_drops(&item, 1, 1);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
    assert_int_equal(skua_payload_size(&payload), 0);
    assert_null(skua_payload_data(&payload));
}

/* ---- commands ---- */

TEST(bad_input_register_is_refused)
{
    skua_completion completion;
    const skua_handler handler = {.name = "later", .run = keep_completion, .arg = &completion};
    const skua_handler lame = {.name = "does nothing"};
    const uint32_t ids[] = {0, 255, 256, SKUA_COMMAND_RESERVED - 1};
    const uint32_t reserved[] = {SKUA_COMMAND_RESERVED, SKUA_COMMAND_RESERVED + 3, UINT32_MAX};
    struct api api;
    api_create(&api, (skua_runtime_config){0});

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(skua_command_register(NULL, ids[i], &handler), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(api.runtime, ids[i], NULL), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(api.runtime, ids[i], &lame), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(api.runtime, ids[i], &handler), 0);
        assert_int_equal(skua_command_register(api.runtime, ids[i], &handler),
                         SKUA_E_COMMAND_EXISTS);
    }
    for (size_t i = 0; i < COUNT_OF(reserved); i++) {
        assert_int_equal(skua_command_register(api.runtime, reserved[i], &handler), SKUA_E_INVALID);
    }

    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

/* A probe with an open call. It finishes when that completes. */
static int caller_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct probe *probe = api_world(self);
    const bool first = atomic_load(&probe->steps) == 0;
    (void)probe_type.step(self, ctx, events, count, out);
    if (first) {
        return skua_step_yield(out, COMMAND_LATER, 0, skua_payload_empty(0));
    }
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type caller_type = {
    .name = "caller", .state_size = sizeof(void *), .init = api_init_world, .step = caller_step};

TEST(bad_input_completion_that_fits_no_call_is_late_and_dropped)
{
    skua_completion good = {.call = 0};
    const skua_handler handler = {.name = "later", .run = keep_completion, .arg = &good};
    struct probe caller = {.habit = PROBE_IGNORES};
    struct tracked item = {0};
    unsigned late = 0;
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_command_register(api.runtime, COMMAND_LATER, &handler), 0);
    api_start(&api);
    const skua_pid pid = api_submit(&api, &caller_type, &caller);
    api_wait_state(&api, pid, SKUA_PROCESS_BLOCKED);

    const skua_completion zero = {.call = 0};
    assert_int_equal(skua_command_complete(api.runtime, zero, 0, tracked_payload(0, &item)),
                     SKUA_E_LATE);
    late++;
    for (unsigned bit = 0; bit < 64; bit++) {
        const skua_completion bad = {good.process, good.call ^ UINT64_C(1) << bit};
        assert_int_equal(skua_command_complete(api.runtime, bad, 0, tracked_payload(0, &item)),
                         SKUA_E_LATE);
        late++;
    }
    assert_drops(&item, 1, late);
    assert_int_equal(api_stats(&api).late_completions, late);

    /* The call itself is still open, once. */
    assert_int_equal(skua_command_complete(api.runtime, good, 0, tracked_payload(0, &item)), 0);
    assert_int_equal(skua_command_complete(api.runtime, good, 0, tracked_payload(0, &item)),
                     SKUA_E_LATE);
    api_wait_live(&api, 0);
    assert_int_equal(skua_command_complete(api.runtime, good, 0, tracked_payload(0, &item)),
                     SKUA_E_LATE);
    assert_drops(&item, 1, late + 3);
    assert_int_equal(atomic_load(&caller.completions), 1);
    api_stop(&api);
}

/* Keeps the completions of two callers, in the order of their calls. */
struct two_completions {
    skua_completion completions[2];
    atomic_uint count;
};

static int keep_two(void *arg, skua_command *command, skua_payload *result)
{
    struct two_completions *kept = arg;
    (void)result;
    kept->completions[atomic_fetch_add(&kept->count, 1)] = command->completion;
    return SKUA_PENDING;
}

/* The call decides who is meant; what matters is that nobody gets two completions, or none. */
TEST(bad_input_completion_mixed_from_two_reaches_one_process_once)
{
    struct two_completions kept = {.count = 0};
    const skua_handler handler = {.name = "later", .run = keep_two, .arg = &kept};
    struct probe callers[2] = {{.habit = PROBE_IGNORES}, {.habit = PROBE_IGNORES}};
    struct tracked items[3] = {{0}};
    skua_pid pids[2];
    struct api api;
    api_create(&api, (skua_runtime_config){.worker_count = 1});
    assert_int_equal(skua_command_register(api.runtime, COMMAND_LATER, &handler), 0);
    api_start(&api);
    for (int i = 0; i < 2; i++) {
        pids[i] = api_submit(&api, &caller_type, &callers[i]);
        api_wait_state(&api, pids[i], SKUA_PROCESS_BLOCKED);
    }

    const skua_completion mixed = {kept.completions[0].process, kept.completions[1].call};
    const int outcome = skua_command_complete(api.runtime, mixed, 0, tracked_payload(0, &items[0]));
    assert_true(outcome == 0 || outcome == SKUA_E_LATE);
    assert_int_equal(
        skua_command_complete(api.runtime, kept.completions[0], 0, tracked_payload(0, &items[1])),
        0);
    assert_int_equal(
        skua_command_complete(api.runtime, kept.completions[1], 0, tracked_payload(0, &items[2])),
        outcome == 0 ? SKUA_E_LATE : 0);

    api_wait_live(&api, 0);
    assert_int_equal(atomic_load(&callers[0].completions), 1);
    assert_int_equal(atomic_load(&callers[1].completions), 1);
    assert_drops(items, COUNT_OF(items), 1);
    api_stop(&api);
}

TEST(bad_input_completion_with_bad_arguments_changes_nothing)
{
    static struct scene scene;
    struct tracked items[3] = {{0}};
    scene_create(&scene);
    const skua_completion here = {.process = scene.live, .call = 1};
    const skua_completion foreign = {.process = scene.foreign, .call = 1};

    assert_int_equal(skua_command_complete(NULL, here, 0, tracked_payload(0, &items[0])),
                     SKUA_E_INVALID);
    assert_int_equal(skua_command_complete(scene.runtime, here, 1, tracked_payload(0, &items[1])),
                     SKUA_E_INVALID);
    assert_int_equal(
        skua_command_complete(scene.runtime, foreign, 0, tracked_payload(0, &items[2])),
        SKUA_E_FOREIGN_PID);

    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(api_stats(&scene.api).late_completions, 0);
    scene_destroy(&scene);
}

/* ---- inside a step ---- */

struct inside {
    struct scene *scene;
    struct tracked items[8];
    int null_send;
    int zero_send;
    int stale_send;
    int foreign_send;
    int oversized_send;
    int null_yield;
    int oversized_yield;
    bool null_alloc_is_null;
    bool huge_alloc_is_null;
};

static void misuse_step(void *arg, skua_context *ctx, skua_step *out)
{
    struct inside *inside = arg;
    struct scene *scene = inside->scene;
    struct tracked *items = inside->items;
    inside->null_send = skua_context_send(NULL, scene->live, tracked_payload(0, &items[0]));
    inside->zero_send = skua_context_send(ctx, (skua_pid){0}, tracked_payload(0, &items[1]));
    inside->stale_send = skua_context_send(ctx, scene->stale, tracked_payload(0, &items[2]));
    inside->foreign_send = skua_context_send(ctx, scene->foreign, tracked_payload(0, &items[3]));
    inside->oversized_send = skua_context_send(ctx, scene->live, oversized(&items[4]));
    inside->null_yield = skua_step_yield(NULL, 1, 1, tracked_payload(0, &items[5]));
    inside->oversized_yield = skua_step_yield(out, 1, 1, oversized(&items[6]));
    skua_step_continue(NULL);
    skua_step_idle(NULL);
    skua_step_wait(NULL);
    skua_step_done(NULL, tracked_payload(0, &items[7]));
    inside->null_alloc_is_null = skua_context_alloc(NULL, 8) == NULL;
    inside->huge_alloc_is_null = skua_context_alloc(ctx, SIZE_MAX) == NULL &&
                                 skua_context_alloc(ctx, (size_t)PTRDIFF_MAX + 1) == NULL;
    skua_context_free(ctx, NULL, 0);
    skua_context_free(ctx, NULL, 8);
    skua_context_free(NULL, NULL, 8);
    skua_context_free(ctx, skua_context_alloc(ctx, 0), 0);
}

TEST(bad_input_inside_a_step_is_refused_and_dropped)
{
    static struct scene scene;
    scene_create(&scene);
    struct inside inside = {.scene = &scene};

    api_in_step(&scene.api, misuse_step, &inside);

    assert_int_equal(inside.null_send, SKUA_E_INVALID);
    assert_int_equal(inside.zero_send, SKUA_E_NO_PROCESS);
    assert_int_equal(inside.stale_send, SKUA_E_NO_PROCESS);
    assert_int_equal(inside.foreign_send, SKUA_E_FOREIGN_PID);
    assert_int_equal(inside.oversized_send, SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(inside.null_yield, SKUA_E_INVALID);
    assert_int_equal(inside.oversized_yield, SKUA_E_PAYLOAD_SIZE);
    assert_true(inside.null_alloc_is_null);
    assert_true(inside.huge_alloc_is_null);
    assert_drops(inside.items, COUNT_OF(inside.items), 1);
    api_wait_live(&scene.api, 1);
    scene_destroy(&scene);
}

TEST(bad_input_null_context_answers_with_nothing)
{
    assert_true(skua_pid_is_none(skua_context_self(NULL)));
    assert_null(skua_context_runtime(NULL));
    assert_int_equal(skua_context_now(NULL), 0);
    assert_int_equal(skua_context_random(NULL), 0);
}

/* A step that changes its mind keeps the last word; the results of the others are dropped. */
struct fickle {
    struct tracked results[3];
    struct tally steps;
};

static int fickle_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct fickle *fickle = api_world(self);
    (void)ctx;
    if (!api_finish_if_cancelled(events, count, out)) {
        skua_step_done(out, tracked_payload(0, &fickle->results[0]));
        skua_step_done(out, tracked_payload(0, &fickle->results[1]));
        skua_step_idle(out);
    }
    tally_add(&fickle->steps, 1);
    return 0;
}

static const skua_process_type fickle_type = {
    .name = "fickle", .state_size = sizeof(void *), .init = api_init_world, .step = fickle_step};

/* Says that it is done, and fails. */
static int contradictory_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                              skua_step *out)
{
    struct fickle *fickle = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    (void)skua_step_yield(out, 1, 1, tracked_payload(0, &fickle->results[1]));
    skua_step_done(out, tracked_payload(0, &fickle->results[2]));
    return SKUA_E_USER;
}

static const skua_process_type contradictory_type = {.name = "contradictory",
                                                     .state_size = sizeof(void *),
                                                     .init = api_init_world,
                                                     .step = contradictory_step};

TEST(bad_input_results_that_are_taken_back_are_dropped_once)
{
    struct fickle fickle = {0};
    struct fickle contradictory = {0};
    tally_init(&fickle.steps);
    struct api api;
    api_run(&api, 1);

    const skua_pid pid = api_submit(&api, &fickle_type, &fickle);
    tally_wait(&fickle.steps, 1);
    api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
    const skua_exit exit = api_run_process(&api, &contradictory_type, &contradictory);

    assert_drops(fickle.results, 2, 1);
    assert_int_equal(exit.error, SKUA_E_USER);
    assert_int_equal(exit.result.storage, SKUA_PAYLOAD_EMPTY);
    assert_drops(&contradictory.results[1], 2, 1);
    api_stop(&api);
}

/* ---- runtimes and statistics ---- */

TEST(bad_input_create_is_refused)
{
    const skua_runtime_config good = {0};
    const skua_runtime_config cases[] = {
        {.worker_count = SKUA_WORKERS_MAX + 1},    {.worker_count = UINT32_MAX},
        {.process_limit = SKUA_PROCESSES_MAX + 1}, {.process_limit = UINT32_MAX},
        {.mailbox_limit = SKUA_MAILBOX_MAX + 1},   {.mailbox_limit = UINT32_MAX},
    };
    skua_runtime *runtime = NULL;
    assert_int_equal(skua_runtime_create(NULL, &good), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_create(NULL, NULL), SKUA_E_INVALID);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(skua_runtime_create(&runtime, &cases[i]), SKUA_E_INVALID);
        assert_null(runtime);
    }
}

TEST(bad_input_create_at_the_limits_is_accepted)
{
    struct api api;
    api_create(&api, (skua_runtime_config){
                         .worker_count = SKUA_WORKERS_MAX,
                         .process_limit = SKUA_PROCESSES_MAX,
                         .mailbox_limit = SKUA_MAILBOX_MAX,
                         .payload_limit = SIZE_MAX,
                         .seed = UINT64_MAX,
                     });
    assert_int_equal(skua_runtime_destroy(api.runtime), 0);
    assert_true(counting_allocator_is_clean(&api.memory));
}

TEST(bad_input_null_runtime_is_refused)
{
    static struct scene scene;
    skua_runtime_config config;
    skua_stats stats;
    scene_create(&scene);

    assert_int_equal(skua_runtime_config_read(NULL, &config), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_config_read(scene.runtime, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_start(NULL), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_stop(NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_destroy(NULL), 0);
    assert_int_equal(skua_stats_read(NULL, &stats, &stats, 1), SKUA_E_INVALID);
    assert_int_equal(skua_stats_read(scene.runtime, &stats, NULL, 1), SKUA_E_INVALID);

    scene_destroy(&scene);
}

/* ---- the simulator; test_sim_*.c have what only a simulated runtime refuses ---- */

TEST(bad_input_simulator_without_a_simulation_is_refused)
{
    static struct scene scene;
    struct tracked results[2] = {0};
    const skua_completion completion = {{0}, 0};
    const skua_sim_record record = {.type = SKUA_SIM_CLOCK};
    char text[10];
    scene_create(&scene);

    skua_runtime *const runtimes[] = {NULL, scene.runtime};
    for (size_t i = 0; i < COUNT_OF(runtimes); i++) {
        assert_int_equal(skua_sim_run(runtimes[i], 0), SKUA_E_INVALID);
        assert_int_equal(skua_sim_step(runtimes[i]), SKUA_E_INVALID);
        assert_int_equal(skua_sim_now(runtimes[i]), 0);
        assert_int_equal(skua_sim_hash(runtimes[i]), 0);
        assert_int_equal(
            skua_sim_complete_after(runtimes[i], completion, 0, 0, tracked_payload(0, &results[i])),
            SKUA_E_INVALID);
    }
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(skua_sim_record_format(NULL, text, sizeof text), SKUA_E_INVALID);
    assert_int_equal(skua_sim_record_format(&record, NULL, 1), SKUA_E_INVALID);

    scene_destroy(&scene);
}

/* ---- names ---- */

TEST(bad_input_unknown_numbers_have_a_name)
{
    const int strangers[] = {1, -1, -5000, -5034, SKUA_E_USER, INT_MAX, INT_MIN};
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        assert_string_equal(skua_error_name(strangers[i]), "SKUA_E_?");
        assert_true(strlen(skua_error_text(strangers[i])) > 0);
    }
    assert_string_equal(skua_process_state_name((enum skua_process_state)0), "?");
    assert_string_equal(skua_process_state_name((enum skua_process_state)5), "?");
    assert_string_equal(skua_process_state_name((enum skua_process_state)1000), "?");
}
