/* SPDX-License-Identifier: MIT */
/* Every public function with arguments it cannot use: it returns the error that its header names
 * (or survives, if it returns nothing), drops what it was given exactly once, and changes nothing.
 * Payloads are in test_bad_payload.c, what a process itself may do wrong in test_misuse.c, what
 * only a simulated runtime refuses in the tests of the simulator. */
#include <limits.h>

#include "actor.h"
#include "desk.h"

#define PAYLOAD_LIMIT 1000

/* ---- the scene: a runtime with one process, and a foreign one ---- */

static struct {
    struct api other;
    struct actor *resident;
    struct actor *foreigner;
    skua_pid live;
    skua_pid stale; /* has finished */
    skua_pid foreign;
} scene;

/* Nothing has happened to anybody. */
static void scene_close(void)
{
    world_await_live(1);
    assert_int_equal(scene.resident->steps, 1);
    world_close();
    api_stop(&scene.other);
    assert_saw(scene.resident, cancel(SKUA_E_STOPPED));
    assert_saw(scene.foreigner, cancel(SKUA_E_STOPPED));
}

static void scene_open(void)
{
    world_open_with((skua_runtime_config){.worker_count = 2, .payload_limit = PAYLOAD_LIMIT});
    api_run(&scene.other, 1);
    struct actor *gone = actor_start(ACTS(finishes(0)));
    actor_await_end(gone);
    scene.resident = actor_start(NO_ACTS);
    scene.foreigner = actor_new(NO_ACTS);
    scene.stale = gone->pid;
    scene.live = scene.resident->pid;
    scene.foreign = api_submit(&scene.other, &scene.foreigner->type, scene.foreigner);
    actor_await_state(scene.resident, SKUA_PROCESS_IDLE);
    world_await_live(1);
    test_at_end(scene_close);
}

/* ---- functions that take a PID ---- */

static struct tracked sent;
static uint32_t send_count;

static int call_send(skua_runtime *runtime, skua_pid pid)
{
    send_count++;
    return skua_process_send(runtime, pid, tracked_payload(0, &sent));
}

static int call_cancel(skua_runtime *runtime, skua_pid pid)
{
    return skua_process_cancel(runtime, pid, SKUA_E_USER);
}

static int call_wait(skua_runtime *runtime, skua_pid pid)
{
    skua_exit exit;
    return skua_process_wait(runtime, pid, SKUA_FOREVER, &exit);
}

static int call_info(skua_runtime *runtime, skua_pid pid)
{
    skua_process_snapshot info;
    return skua_process_info(runtime, pid, &info);
}

static int (*const pid_calls[])(skua_runtime *runtime, skua_pid pid) = {
    call_send, call_cancel, skua_process_terminate, call_wait, call_info};

static void assert_all_refuse(skua_runtime *runtime, skua_pid pid, int expected)
{
    for (size_t i = 0; i < COUNT_OF(pid_calls); i++) {
        assert_int_equal(pid_calls[i](runtime, pid), expected);
    }
    assert_int_equal(sent.drops, send_count);
}

TEST(pid_of_nobody_is_refused)
{
    scene_open();
    assert_all_refuse(NULL, scene.live, SKUA_E_INVALID);
    assert_all_refuse(NULL, (skua_pid){0}, SKUA_E_INVALID);
    assert_all_refuse(world_runtime(), (skua_pid){0}, SKUA_E_NO_PROCESS);
    assert_all_refuse(world_runtime(), (skua_pid){UINT64_MAX}, SKUA_E_FOREIGN_PID);
    assert_all_refuse(world_runtime(), scene.stale, SKUA_E_NO_PROCESS);
    assert_all_refuse(world_runtime(), scene.foreign, SKUA_E_FOREIGN_PID);
    assert_all_refuse(scene.other.runtime, scene.live, SKUA_E_FOREIGN_PID);
}

TEST(pid_with_any_bit_flipped_is_refused)
{
    scene_open();
    for (unsigned bit = 0; bit < 64; bit++) {
        const skua_pid pid = {scene.live.bits ^ UINT64_C(1) << bit};
        const int error = call_info(world_runtime(), pid);
        assert_true(error == SKUA_E_NO_PROCESS || error == SKUA_E_FOREIGN_PID);
        assert_all_refuse(world_runtime(), pid, error);
    }
}

TEST(pid_of_a_reused_place_is_refused)
{
    struct actor *later[200]; /* far more than a worker has in its caches: one has the place */
    world_open_with((skua_runtime_config){.worker_count = 1});
    struct actor *first = actor_start(ACTS(finishes(0)));
    world_await_live(0);
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        later[i] = actor_start(NO_ACTS);
        assert_false(skua_pid_equal(later[i]->pid, first->pid));
    }
    assert_all_refuse(world_runtime(), first->pid, SKUA_E_NO_PROCESS);
    assert_int_equal(world_stats().live, COUNT_OF(later));
    world_close();
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        assert_saw(later[i], cancel(SKUA_E_STOPPED));
    }
}

TEST(oversized_message_is_refused_and_dropped)
{
    struct tracked item = {0};
    scene_open();
    assert_int_equal(world_send(scene.live, tracked_oversized(PAYLOAD_LIMIT, &item)),
                     SKUA_E_PAYLOAD_SIZE);
    assert_drops(&item, 1, 1);
}

TEST(message_with_a_taken_payload_is_refused)
{
    struct tracked item = {0};
    scene_open();
    skua_payload payload = tracked_payload(0, &item);
    skua_payload taken = skua_payload_take(&payload);
    assert_int_equal(world_send(scene.live, payload), SKUA_E_TAKEN);
    assert_drops(&item, 1, 0);
    skua_payload_drop(&taken);
    assert_drops(&item, 1, 1);
}

TEST(cancel_for_a_reason_that_is_no_error_is_refused)
{
    scene_open();
    assert_int_equal(world_cancel(scene.live, 1), SKUA_E_INVALID);
    assert_int_equal(world_cancel(scene.live, INT_MAX), SKUA_E_INVALID);
    assert_int_equal(world_cancel(scene.stale, 1), SKUA_E_INVALID);
    assert_int_equal(skua_process_cancel(NULL, scene.live, 0), SKUA_E_INVALID);
}

TEST(wait_without_time_times_out)
{
    skua_exit exit = {.error = 42};
    scene_open();
    assert_int_equal(skua_process_wait(world_runtime(), scene.live, 0, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(skua_process_wait(world_runtime(), scene.live, 1, NULL), SKUA_E_TIMEOUT);
    assert_int_equal(exit.error, 42);
}

TEST(info_without_a_place_to_write_is_refused)
{
    scene_open();
    assert_int_equal(skua_process_info(world_runtime(), scene.live, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_process_info(NULL, scene.live, NULL), SKUA_E_INVALID);
}

/* ---- starting a process: submit, run and spawn ---- */

static int unreachable(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    return SKUA_E_USER;
}

static atomic_uint closes;

static void count_close(void *self, skua_context *ctx, const skua_exit *exit)
{
    (void)self;
    (void)ctx;
    (void)exit;
    (void)atomic_fetch_add(&closes, 1);
}

/* Takes one and leaves the rest. */
static int failing_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)self;
    (void)ctx;
    if (input_count > 0) {
        skua_payload taken = skua_payload_take(&input[0]);
        skua_payload_drop(&taken);
    }
    return SKUA_E_USER - 7;
}

/* A positive number is no error. */
static int positive_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)failing_init(self, ctx, input, input_count);
    return 7;
}

static const char *const two_methods[] = {"first", "second", NULL};
static const char *const no_methods[] = {NULL};

/* Arguments that lead to an error, whichever function gets them. */
struct start_case {
    skua_process_type type;
    bool type_is_null;
    const char *method;
    bool input_is_null;
    bool second_is_oversized;
    bool second_is_taken;
    int expected;
};

#define GOOD_TYPE .name = "good", .step = unreachable
#define FAILING   .name = "fails", .init = failing_init, .step = unreachable, .close = count_close
#define POSITIVE  .name = "odd", .init = positive_init, .step = unreachable, .close = count_close

static const struct start_case start_cases[] = {
    {.type_is_null = true, .expected = SKUA_E_INVALID},
    {.type = {.step = unreachable}, .expected = SKUA_E_INVALID},
    {.type = {.name = "no step"}, .expected = SKUA_E_INVALID},
    {.type = {GOOD_TYPE, .state_size = (size_t)PTRDIFF_MAX + 1}, .expected = SKUA_E_INVALID},
    {.type = {GOOD_TYPE, .mailbox_limit = SKUA_MAILBOX_MAX + 1}, .expected = SKUA_E_INVALID},
    {.type = {GOOD_TYPE, .cancel = (enum skua_cancel_mode)2}, .expected = SKUA_E_INVALID},
    {.type = {GOOD_TYPE}, .input_is_null = true, .expected = SKUA_E_INVALID},
    {.type = {GOOD_TYPE}, .method = "Main", .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = {GOOD_TYPE}, .method = "", .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = {GOOD_TYPE, .methods = two_methods},
     .method = "main",
     .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = {GOOD_TYPE, .methods = two_methods},
     .method = "firs",
     .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = {GOOD_TYPE, .methods = no_methods}, .expected = SKUA_E_UNKNOWN_METHOD},
    {.type = {GOOD_TYPE}, .second_is_oversized = true, .expected = SKUA_E_PAYLOAD_SIZE},
    {.type = {GOOD_TYPE}, .second_is_taken = true, .expected = SKUA_E_TAKEN},
    {.type = {FAILING}, .expected = SKUA_E_USER - 7},
    {.type = {FAILING, .state_size = 10000}, .expected = SKUA_E_USER - 7},
    {.type = {POSITIVE}, .expected = SKUA_E_INVALID},
    {.type = {POSITIVE, .state_size = 10000}, .expected = SKUA_E_INVALID},
};
#define CLOSES 4 /* of those whose init is called */
static const struct start_case no_handle = {.type = {GOOD_TYPE}, .expected = SKUA_E_INVALID};

/* One of the three functions; `handle` is what it is called on. */
typedef int start_fn(void *handle, const skua_process_type *type, const char *method,
                     skua_payload *input);

static int submit(void *handle, const skua_process_type *type, const char *method,
                  skua_payload *input)
{
    skua_pid pid;
    return skua_process_submit_with(
        handle,
        &(skua_spawn_options){.type = type, .method = method, .input = input, .input_count = 2},
        &pid);
}

static int run(void *handle, const skua_process_type *type, const char *method, skua_payload *input)
{
    skua_exit exit;
    return skua_process_run_with(
        handle,
        &(skua_spawn_options){.type = type, .method = method, .input = input, .input_count = 2},
        &exit);
}

static int spawn(void *handle, const skua_process_type *type, const char *method,
                 skua_payload *input)
{
    skua_pid pid;
    return skua_spawn_with(
        handle,
        &(skua_spawn_options){.type = type, .method = method, .input = input, .input_count = 2},
        &pid);
}

/* Whether it returns what it should, and all input was dropped. In a step, too. */
static bool is_refused(start_fn *start, void *handle, const struct start_case *wrong)
{
    struct tracked items[2] = {{0}};
    skua_payload input[] = {tracked_payload(0, &items[0]),
                            wrong->second_is_oversized ? tracked_oversized(PAYLOAD_LIMIT, &items[1])
                                                       : tracked_payload(0, &items[1])};
    if (wrong->second_is_taken) {
        skua_payload taken = skua_payload_take(&input[1]);
        skua_payload_drop(&taken);
    }
    const int error = start(handle, wrong->type_is_null ? NULL : &wrong->type, wrong->method,
                            wrong->input_is_null ? NULL : input);
    const unsigned drops = wrong->input_is_null ? 0 : 1;
    return error == wrong->expected && items[0].drops == drops && items[1].drops == drops;
}

static void assert_start_is_refused_outside(start_fn *start)
{
    scene_open();
    closes = 0;
    for (size_t i = 0; i < COUNT_OF(start_cases); i++) {
        if (!is_refused(start, world_runtime(), &start_cases[i])) {
            fail_msg("case %zu", i);
        }
    }
    assert_true(is_refused(start, NULL, &no_handle));
    assert_int_equal(closes, CLOSES);
    assert_int_equal(world_stats().spawned, 2); /* of the scene */
}

TEST(submit_with_bad_arguments_leaves_no_trace)
{
    assert_start_is_refused_outside(submit);
}

TEST(run_with_bad_arguments_leaves_no_trace)
{
    assert_start_is_refused_outside(run);
}

static int spawn_wrongly(struct turn *turn, const struct act *act)
{
    (void)act;
    for (size_t i = 0; i < COUNT_OF(start_cases); i++) {
        if (!is_refused(spawn, turn->ctx, &start_cases[i])) {
            actor_surprise(turn->actor, "case %zu", i);
        }
    }
    return 0;
}

TEST(spawn_with_bad_arguments_leaves_no_trace)
{
    scene_open();
    closes = 0;
    assert_result(actor_run(actor_new(ACTS(does(spawn_wrongly, NULL), finishes(1)))), 1);
    assert_true(is_refused(spawn, NULL, &no_handle));
    assert_int_equal(closes, CLOSES);
    assert_int_equal(world_stats().spawned, 3);
}

/* The short forms, with one payload. */
TEST(start_with_one_bad_payload_is_refused_and_takes_it)
{
    static const skua_process_type good = {GOOD_TYPE};
    struct tracked items[8] = {{0}};
    size_t used = 0;
    scene_open();
    skua_runtime *runtime = world_runtime();
    assert_int_equal(
        skua_process_submit(runtime, &good, tracked_oversized(PAYLOAD_LIMIT, &items[used++]), NULL),
        SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(
        skua_process_run(runtime, &good, tracked_oversized(PAYLOAD_LIMIT, &items[used++]), NULL),
        SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(skua_process_submit(NULL, &good, tracked_payload(0, &items[used++]), NULL),
                     SKUA_E_INVALID);
    assert_int_equal(skua_process_run(NULL, &good, tracked_payload(0, &items[used++]), NULL),
                     SKUA_E_INVALID);
    skua_payload payload = tracked_payload(0, &items[used++]);
    assert_int_equal(skua_process_submit_from(NULL, &good, &payload, NULL), SKUA_E_INVALID);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_TAKEN);
    assert_int_equal(skua_process_submit_from(runtime, &good, &payload, NULL), SKUA_E_TAKEN);
    assert_int_equal(skua_process_submit_from(runtime, &good, NULL, NULL), SKUA_E_INVALID);
    payload = tracked_payload(0, &items[used++]);
    assert_int_equal(skua_process_submit_from(runtime, NULL, &payload, NULL), SKUA_E_INVALID);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_TAKEN);
    assert_int_equal(skua_process_run(runtime, &good, payload, NULL), SKUA_E_TAKEN);
    assert_int_equal(skua_process_submit_with(runtime, NULL, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_process_run_with(runtime, NULL, NULL), SKUA_E_INVALID);
    assert_drops(items, used, 1);
    assert_int_equal(world_stats().spawned, 2);
}

TEST(input_of_null_with_a_count_on_a_null_runtime_is_survived)
{
    const skua_spawn_options counted = {.type = &no_handle.type, .input_count = 2};
    assert_int_equal(skua_process_submit_with(NULL, &counted, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_process_run_with(NULL, &counted, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_spawn_with(NULL, &counted, NULL), SKUA_E_INVALID);
}

/* ---- commands ---- */

static int nothing(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

TEST(register_with_bad_arguments_is_refused)
{
    static const uint32_t ids[] = {0, 255, 256, 100000, SKUA_COMMAND_RESERVED - 1};
    static const uint32_t reserved[] = {SKUA_COMMAND_RESERVED, SKUA_COMMAND_RESERVED + 3,
                                        UINT32_MAX};
    const skua_handler handler = {.name = "nothing", .run = nothing};
    const skua_handler lame = {.name = "lame"};
    const skua_handler newer = {.name = "newer", .run = nothing, .reserved = {[2] = 1}};
    world_create((skua_runtime_config){.worker_count = 1});
    skua_runtime *runtime = world_runtime();
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(skua_command_register(NULL, ids[i], &handler), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(runtime, ids[i], NULL), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(runtime, ids[i], &lame), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(runtime, ids[i], &newer), SKUA_E_INVALID);
        assert_int_equal(skua_command_register(runtime, ids[i], &handler), 0);
        assert_int_equal(skua_command_register(runtime, ids[i], &handler), SKUA_E_COMMAND_EXISTS);
    }
    for (size_t i = 0; i < COUNT_OF(reserved); i++) {
        assert_int_equal(skua_command_register(runtime, reserved[i], &handler), SKUA_E_RESERVED);
    }
}

/* A desk, and actors that wait for a completion and finish then. */
static struct desk *open_calls(struct actor **callers, size_t count)
{
    world_create((skua_runtime_config){.worker_count = 1});
    struct desk *desk = desk_open();
    world_start();
    for (size_t i = 0; i < count; i++) {
        callers[i] =
            actor_start(ACTS(yields(1, DESK_KEEP, 0, 0), expects(completion(1, 0)), finishes(0)));
        actor_await_state(callers[i], SKUA_PROCESS_BLOCKED);
    }
    return desk;
}

static int complete(skua_completion completion, struct tracked *item)
{
    return skua_command_complete(world_runtime(), completion, 0, tracked_payload(0, item));
}

TEST(completion_that_fits_no_call_is_late_and_dropped)
{
    struct actor *caller;
    struct tracked item = {0};
    unsigned late = 1;
    const skua_completion good = open_calls(&caller, 1)->kept[0];
    assert_int_equal(complete((skua_completion){.call = 0}, &item), SKUA_E_LATE);
    for (unsigned bit = 0; bit < 64; bit++, late++) {
        const skua_completion bad = {good.process, good.call ^ UINT64_C(1) << bit};
        assert_int_equal(complete(bad, &item), SKUA_E_LATE);
    }
    assert_drops(&item, 1, late);
    assert_int_equal(world_stats().late_completions, late);
    /* The call itself is still open, once. */
    assert_int_equal(complete(good, &item), 0);
    assert_int_equal(complete(good, &item), SKUA_E_LATE);
    world_await_live(0);
    assert_int_equal(complete(good, &item), SKUA_E_LATE);
    assert_drops(&item, 1, late + 3);
    assert_saw(caller, completion(1, 0));
}

/* The call decides who is meant; what matters is that nobody gets two completions, or none. */
TEST(completion_mixed_from_two_reaches_one_process_once)
{
    struct actor *callers[2];
    struct tracked items[3] = {{0}};
    const skua_completion *kept = open_calls(callers, 2)->kept;
    const skua_completion mixed = {kept[0].process, kept[1].call};
    const int outcome = complete(mixed, &items[0]);
    assert_true(outcome == 0 || outcome == SKUA_E_LATE);
    assert_int_equal(complete(kept[0], &items[1]), 0);
    assert_int_equal(complete(kept[1], &items[2]), outcome == 0 ? SKUA_E_LATE : 0);
    world_await_live(0);
    assert_saw(callers[0], completion(1, 0));
    assert_saw(callers[1], completion(1, 0));
    assert_drops(items, COUNT_OF(items), 1);
}

TEST(completion_with_bad_arguments_changes_nothing)
{
    struct tracked items[3] = {{0}};
    scene_open();
    const skua_completion here = {.process = scene.live, .call = 1};
    const skua_completion foreign = {.process = scene.foreign, .call = 1};
    assert_int_equal(skua_command_complete(NULL, here, 0, tracked_payload(0, &items[0])),
                     SKUA_E_INVALID);
    assert_int_equal(skua_command_complete(world_runtime(), here, 1, tracked_payload(0, &items[1])),
                     SKUA_E_INVALID);
    assert_int_equal(complete(foreign, &items[2]), SKUA_E_FOREIGN_PID);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(world_stats().late_completions, 0);
}

/* ---- runtimes and statistics ---- */

TEST(create_with_bad_arguments_is_refused)
{
    static const skua_runtime_config rows[] = {
        {.worker_count = SKUA_WORKERS_MAX + 1},    {.worker_count = UINT32_MAX},
        {.process_limit = SKUA_PROCESSES_MAX + 1}, {.process_limit = UINT32_MAX},
        {.mailbox_limit = SKUA_MAILBOX_MAX + 1},   {.mailbox_limit = UINT32_MAX},
        {.stack_limit = (1u << 24) + 1},           {.stack_limit = UINT32_MAX},
    };
    skua_runtime *runtime = NULL;
    assert_int_equal(skua_runtime_create(NULL, &(skua_runtime_config){0}), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_create(NULL, NULL), SKUA_E_INVALID);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(skua_runtime_create(&runtime, &rows[i]), SKUA_E_INVALID);
        assert_null(runtime);
    }
}

TEST(create_at_the_limits_is_accepted)
{
    world_create((skua_runtime_config){
        .worker_count = SKUA_WORKERS_MAX,
        .process_limit = SKUA_PROCESSES_MAX,
        .mailbox_limit = SKUA_MAILBOX_MAX,
        .stack_limit = 1u << 24,
        .payload_limit = SIZE_MAX,
        .seed = UINT64_MAX,
    });
}

TEST(runtime_of_null_is_refused)
{
    skua_runtime_config config;
    skua_stats stats;
    scene_open();
    assert_int_equal(skua_runtime_config_read(NULL, &config), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_config_read(world_runtime(), NULL), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_start(NULL), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_stop(NULL, 0), SKUA_E_INVALID);
    assert_int_equal(skua_runtime_destroy(NULL), 0);
    assert_int_equal(skua_stats_read(NULL, &stats, &stats, 1), SKUA_E_INVALID);
    assert_int_equal(skua_stats_read(world_runtime(), &stats, NULL, 1), SKUA_E_INVALID);
}

TEST(pool_that_cannot_be_found_has_no_handle)
{
    skua_pool pool = {42};
    scene_open();
    assert_int_equal(skua_blocking_find(NULL, SKUA_BLOCKING_DEFAULT, &pool), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_find(world_runtime(), NULL, &pool), SKUA_E_INVALID);
    assert_int_equal(skua_blocking_find(world_runtime(), SKUA_BLOCKING_DEFAULT, NULL),
                     SKUA_E_INVALID);
    assert_int_equal(skua_blocking_find(world_runtime(), "none", &pool), SKUA_E_UNKNOWN_POOL);
    assert_int_equal(skua_blocking_find(world_runtime(), SKUA_BLOCKING_DEFAULT, &pool), 0);
    assert_int_equal(pool.number, 0); /* the zero handle */
}

TEST(simulator_without_a_simulation_is_refused)
{
    struct tracked results[2] = {{0}};
    const skua_completion completion = {{0}, 0};
    const skua_sim_record record = {.type = SKUA_SIM_CLOCK};
    char text[10];
    scene_open();
    skua_runtime *const runtimes[] = {NULL, world_runtime()};
    for (size_t i = 0; i < COUNT_OF(runtimes); i++) {
        assert_int_equal(skua_sim_run(runtimes[i], 0), SKUA_E_INVALID);
        assert_int_equal(skua_sim_step(runtimes[i]), SKUA_E_INVALID);
        assert_int_equal(skua_sim_now(runtimes[i]), 0);
        assert_int_equal(skua_sim_hash(runtimes[i]), 0);
        assert_int_equal(skua_sim_faults_set(runtimes[i], &(skua_sim_faults){0}), SKUA_E_INVALID);
        assert_int_equal(
            skua_sim_complete_after(runtimes[i], completion, 0, 0, tracked_payload(0, &results[i])),
            SKUA_E_INVALID);
    }
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(skua_sim_record_format(NULL, text, sizeof text), SKUA_E_INVALID);
    assert_int_equal(skua_sim_record_format(&record, NULL, 1), SKUA_E_INVALID);
}

/* ---- names ---- */

TEST(text_that_is_no_pid_is_refused)
{
    static const char *const garbage[] = {
        "",    " ",  "g", "-1", "0x1", "1 ", " 1", "12345678901234567", "00000000000000000",
        "1\n", "1.0"};
    char text[SKUA_PID_TEXT_SIZE];
    skua_pid pid;
    for (size_t i = 0; i < COUNT_OF(garbage); i++) {
        pid = (skua_pid){42};
        assert_int_equal(skua_pid_parse(garbage[i], &pid), SKUA_E_INVALID);
        assert_true(skua_pid_is_none(pid));
    }
    pid = (skua_pid){42};
    assert_int_equal(skua_pid_parse(NULL, &pid), SKUA_E_INVALID);
    assert_true(skua_pid_is_none(pid));
    assert_int_equal(skua_pid_parse("1", NULL), SKUA_E_INVALID);
    /* One that is, with digits of either kind. */
    const skua_pid written = {UINT64_C(0x0123456789abcdef)};
    assert_int_equal(skua_pid_parse(skua_pid_format(written, text), &pid), 0);
    assert_int_equal(pid.bits, written.bits);
    assert_int_equal(skua_pid_parse("123456789ABCDEF", &pid), 0);
    assert_int_equal(pid.bits, written.bits);
}

TEST(unknown_numbers_have_a_name)
{
    static const int strangers[] = {1, -1, -5000, -5999, SKUA_E_USER, INT_MAX, INT_MIN};
    static const unsigned states[] = {0, 5, 1000};
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        assert_string_equal(skua_error_name(strangers[i]), "SKUA_E_?");
        assert_true(strlen(skua_error_text(strangers[i])) > 0);
    }
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        assert_string_equal(skua_process_state_name((enum skua_process_state)states[i]), "?");
    }
}
