/* SPDX-License-Identifier: MIT */
/* The life of a process as its author sees it: init, step and close, methods, what a step may say,
 * its state, and the processes it starts. */

#include "api_support.h"

#define ERROR_INIT (SKUA_E_USER - 1)
#define ERROR_STEP (SKUA_E_USER - 2)

enum { RESULT = 7 };

/* ---- init, step, close ---- */

enum ending { BY_DONE, BY_FAILED_STEP, BY_FAILED_INIT, BY_TERMINATE, BY_SHUTDOWN };

/* What a process of the type `mortal` went through. */
struct life {
    enum ending ending;
    atomic_uint inits;
    atomic_uint steps;
    atomic_uint closes;
    atomic_uint steps_after_close;
    skua_pid pid;
    struct tally stepped;
};

struct mortal {
    struct life *life;
    void *memory; /* what init allocates, close must release */
};

static int mortal_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    struct mortal *mortal = self;
    const int error = api_init_world(self, ctx, method, input, input_count);
    if (error != 0) {
        return error;
    }
    mortal->memory = malloc(32);
    mortal->life->pid = skua_context_self(ctx);
    (void)atomic_fetch_add(&mortal->life->inits, 1);
    return mortal->life->ending == BY_FAILED_INIT ? ERROR_INIT : 0;
}

static int mortal_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct life *life = ((struct mortal *)self)->life;
    (void)ctx;
    (void)events;
    (void)count;
    (void)atomic_fetch_add(&life->steps, 1);
    if (atomic_load(&life->closes) > 0) {
        (void)atomic_fetch_add(&life->steps_after_close, 1);
    }
    if (life->ending == BY_DONE) {
        skua_step_done(out, skua_payload_empty(0));
    }
    tally_add(&life->stepped, 1);
    return life->ending == BY_FAILED_STEP ? ERROR_STEP : 0;
}

static void mortal_close(void *self)
{
    struct mortal *mortal = self;
    (void)atomic_fetch_add(&mortal->life->closes, 1);
    free(mortal->memory);
}

static const skua_process_type mortal_type = {
    .name = "mortal",
    .state_size = sizeof(struct mortal),
    .init = mortal_init,
    .step = mortal_step,
    .close = mortal_close,
};

static void begin_life(struct life *life, enum ending ending)
{
    *life = (struct life){.ending = ending};
    tally_init(&life->stepped);
}

static void submit_mortal(const struct api *api, struct life *life)
{
    skua_payload input = api_world_payload(life);
    skua_pid pid = {0};
    const int error = skua_process_submit(api->runtime, &mortal_type, NULL, &input, 1, &pid);
    if (life->ending == BY_FAILED_INIT) {
        assert_int_equal(error, ERROR_INIT);
        return;
    }
    assert_int_equal(error, 0);
    assert_true(skua_pid_equal(pid, life->pid));
    tally_wait(&life->stepped, 1);
    if (life->ending == BY_TERMINATE) {
        assert_int_equal(skua_process_terminate(api->runtime, pid), 0);
    }
}

static void live_and_die(enum ending ending)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct life life;
    begin_life(&life, ending);
    api_run(&api, workers);
    submit_mortal(&api, &life);
    if (ending == BY_SHUTDOWN) {
        api_stop_by_force(&api);
    } else {
        api_stop(&api);
    }
    assert_int_equal(life.inits, 1);
    assert_int_equal(life.closes, 1);
    assert_int_equal(life.steps_after_close, 0);
    assert_true(ending == BY_FAILED_INIT ? life.steps == 0 : life.steps >= 1);
}

TEST(close_after_done_is_called_once)
{
    live_and_die(BY_DONE);
}

TEST(close_after_failed_step_is_called_once)
{
    live_and_die(BY_FAILED_STEP);
}

TEST(close_after_failed_init_releases_partial_work_once)
{
    live_and_die(BY_FAILED_INIT);
}

TEST(close_after_terminate_is_called_once)
{
    live_and_die(BY_TERMINATE);
}

TEST(close_after_shutdown_timeout_is_called_once)
{
    live_and_die(BY_SHUTDOWN);
}

static int done_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                     skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

TEST(process_without_init_and_close_runs)
{
    static const skua_process_type bare = {.name = "bare", .step = done_step};
    struct api api;
    struct tracked item = {0};
    skua_payload input = tracked_payload(0, &item);
    skua_exit exit = {.error = SKUA_E_USER};
    api_run(&api, 1);
    assert_int_equal(skua_process_run(api.runtime, &bare, NULL, &input, 1, &exit), 0);
    assert_int_equal(exit.error, 0);
    assert_drops(&item, 1, 1); /* nobody took it */
    api_stop(&api);
}

/* ---- a failing init leaves no trace ---- */

static void count_exit(void *arg, skua_exit *exit)
{
    atomic_uint *exits = arg;
    (void)exit;
    (void)atomic_fetch_add(exits, 1);
}

TEST(init_failing_leaves_no_process)
{
    struct api api;
    struct life life;
    atomic_uint exits = 0;
    skua_process_info info;
    begin_life(&life, BY_FAILED_INIT);
    api_create(&api, (skua_runtime_config){
                         .worker_count = 2, .on_exit = count_exit, .on_exit_arg = &exits});
    api_start(&api);
    submit_mortal(&api, &life);

    assert_false(skua_pid_is_none(life.pid));
    assert_int_equal(skua_message_send(api.runtime, life.pid, skua_payload_empty(0)),
                     SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_terminate(api.runtime, life.pid), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_cancel(api.runtime, life.pid, 0), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_info_read(api.runtime, life.pid, &info), SKUA_E_NO_PROCESS);
    const skua_stats stats = api_stats(&api);
    assert_int_equal(stats.live, 0);
    assert_int_equal(stats.spawned, 0);
    api_stop(&api);
    assert_int_equal(exits, 0);
}

TEST(init_failing_gives_its_place_back)
{
    struct api api;
    struct life life;
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 1});
    api_start(&api);
    for (unsigned i = 0; i < 100; i++) {
        begin_life(&life, BY_FAILED_INIT);
        submit_mortal(&api, &life);
    }
    (void)api_submit(&api, &api_idler, NULL);
    api_stop(&api);
}

static void spawn_failing_child(void *arg, skua_context *ctx, skua_step *out)
{
    int *error = arg;
    struct life life;
    (void)out;
    begin_life(&life, BY_FAILED_INIT);
    skua_payload input = api_world_payload(&life);
    *error = skua_context_spawn(ctx, &mortal_type, NULL, &input, 1, NULL);
}

TEST(init_failing_in_run_and_spawn_returns_its_error)
{
    struct api api;
    struct life life;
    int spawn_error = 0;
    begin_life(&life, BY_FAILED_INIT);
    skua_payload input = api_world_payload(&life);
    api_run(&api, 2);
    assert_int_equal(skua_process_run(api.runtime, &mortal_type, NULL, &input, 1, NULL),
                     ERROR_INIT);
    assert_int_equal(life.closes, 1);
    api_in_step(&api, spawn_failing_child, &spawn_error);
    assert_int_equal(spawn_error, ERROR_INIT);
    assert_int_equal(api_stats(&api).spawned, 1); /* the parent */
    api_stop(&api);
}

/* Keeps its second input and leaves the others. */
struct keeper {
    void *world;
    skua_payload kept;
};

static int keeper_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    struct keeper *keeper = self;
    const int *error = skua_payload_data(&input[0]);
    keeper->kept = skua_payload_take(&input[1]);
    (void)api_init_world(self, ctx, method, input, input_count);
    return *error;
}

static int keeper_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)api_finish_if_cancelled(events, count, out);
    return 0;
}

static void keeper_close(void *self)
{
    skua_payload_drop(&((struct keeper *)self)->kept);
}

static const skua_process_type keeper_type = {
    .name = "keeper",
    .state_size = sizeof(struct keeper),
    .init = keeper_init,
    .step = keeper_step,
    .close = keeper_close,
};

static int submit_keeper(const struct api *api, int init_error, struct tracked *items)
{
    skua_payload input[] = {
        api_world_payload(&init_error),
        tracked_payload(1, &items[0]),
        tracked_payload(2, &items[1]),
        tracked_payload(3, &items[2]),
    };
    return skua_process_submit(api->runtime, &keeper_type, NULL, input, COUNT_OF(input), NULL);
}

TEST(input_left_by_init_is_dropped_and_input_taken_is_kept)
{
    struct api api;
    struct tracked items[3] = {0};
    api_run(&api, 1);
    assert_int_equal(submit_keeper(&api, 0, items), 0);
    assert_drops(&items[0], 1, 0);
    assert_drops(&items[1], 2, 1);
    api_stop(&api);
    assert_drops(items, COUNT_OF(items), 1);
}

TEST(input_of_failing_init_is_dropped_once)
{
    struct api api;
    struct tracked items[3] = {0};
    api_run(&api, 1);
    assert_int_equal(submit_keeper(&api, ERROR_INIT, items), ERROR_INIT);
    assert_drops(items, COUNT_OF(items), 1);
    api_stop(&api);
    assert_drops(items, COUNT_OF(items), 1);
}

/* ---- methods ---- */

/* Each method ends the process with a number of its own. */
static int chooser_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                        size_t input_count)
{
    (void)ctx;
    (void)input;
    (void)input_count;
    const char *const names[] = {"main", "alpha", "beta", "gamma"};
    for (uint64_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(method, names[i]) == 0) {
            *(uint64_t *)self = i;
            return 0;
        }
    }
    return ERROR_INIT;
}

static int chooser_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out)
{
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_u64(RESULT, *(const uint64_t *)self));
    return 0;
}

enum { MAIN, ALPHA, BETA, GAMMA };

static const char *const method_names[] = {"alpha", "beta", "gamma", NULL};
static const char *const no_method_names[] = {NULL};

static const skua_process_type chooser = {
    .name = "chooser",
    .state_size = sizeof(uint64_t),
    .methods = method_names,
    .init = chooser_init,
    .step = chooser_step,
};

static const skua_process_type main_only = {
    .name = "main only",
    .state_size = sizeof(uint64_t),
    .init = chooser_init,
    .step = chooser_step,
};

static const skua_process_type without_entry = {
    .name = "without entry",
    .state_size = sizeof(uint64_t),
    .methods = no_method_names,
    .init = chooser_init,
    .step = chooser_step,
};

static uint64_t run_method(const struct api *api, const skua_process_type *type, const char *method)
{
    skua_exit exit;
    assert_int_equal(skua_process_run(api->runtime, type, method, NULL, 0, &exit), 0);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    return skua_payload_to_u64(&exit.result);
}

TEST(method_null_means_the_first)
{
    struct api api;
    api_run(&api, 1);
    assert_int_equal(run_method(&api, &chooser, NULL), ALPHA);
    assert_int_equal(run_method(&api, &main_only, NULL), MAIN);
    api_stop(&api);
}

TEST(method_by_name_is_chosen)
{
    struct api api;
    char copy[] = "gamma"; /* equal, but not the same pointer */
    api_run(&api, 1);
    assert_int_equal(run_method(&api, &chooser, "alpha"), ALPHA);
    assert_int_equal(run_method(&api, &chooser, "beta"), BETA);
    assert_int_equal(run_method(&api, &chooser, copy), GAMMA);
    assert_int_equal(run_method(&api, &main_only, "main"), MAIN);
    api_stop(&api);
}

/* The three ways to start a process, with a method that the type does not have. */
struct refusal {
    const skua_process_type *type;
    const char *method;
    struct tracked items[3];
    skua_payload input[3];
    int error;
};

static void fill_refusal(struct refusal *refusal, const skua_process_type *type, const char *method)
{
    *refusal = (struct refusal){.type = type, .method = method};
    for (size_t i = 0; i < COUNT_OF(refusal->items); i++) {
        refusal->input[i] = tracked_payload(0, &refusal->items[i]);
    }
}

static void check_refusal(struct refusal *refusal)
{
    assert_int_equal(refusal->error, SKUA_E_UNKNOWN_METHOD);
    assert_drops(refusal->items, COUNT_OF(refusal->items), 1);
}

static void spawn_refused(void *arg, skua_context *ctx, skua_step *out)
{
    struct refusal *refusal = arg;
    (void)out;
    refusal->error =
        skua_context_spawn(ctx, refusal->type, refusal->method, refusal->input, 3, NULL);
}

static void refuse_method(const skua_process_type *type, const char *method)
{
    struct api api;
    struct refusal refusal;
    skua_pid pid = {0};
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 2});
    api_start(&api);

    fill_refusal(&refusal, type, method);
    refusal.error = skua_process_submit(api.runtime, type, method, refusal.input, 3, &pid);
    check_refusal(&refusal);
    assert_true(skua_pid_is_none(pid));
    fill_refusal(&refusal, type, method);
    refusal.error = skua_process_run(api.runtime, type, method, refusal.input, 3, NULL);
    check_refusal(&refusal);
    assert_int_equal(api_stats(&api).spawned, 0);
    assert_int_equal(api_stats(&api).steps, 0);

    fill_refusal(&refusal, type, method);
    api_in_step(&api, spawn_refused, &refusal);
    check_refusal(&refusal);
    assert_int_equal(api_stats(&api).spawned, 1); /* the one that asked */

    /* Both places are still there. */
    api_wait_live(&api, 0);
    (void)api_submit(&api, &api_idler, NULL);
    (void)api_submit(&api, &api_idler, NULL);
    api_stop(&api);
}

TEST(method_unknown_is_refused_without_a_trace)
{
    refuse_method(&chooser, "delta");
    refuse_method(&chooser, "");
    refuse_method(&chooser, "alph");
    refuse_method(&chooser, "alphabet");
    refuse_method(&main_only, "alpha");
    refuse_method(&without_entry, NULL);
    refuse_method(&without_entry, "main");
}

/* ---- what a step says ---- */

/* A process that does as its script says, one line per step. */
struct script {
    int (*const *lines)(struct script *script, skua_context *ctx, skua_event *events, size_t count,
                        skua_step *out);
    size_t next;
    size_t counts[16]; /* events that each step got */
    struct tracked items[4];
    struct tally stepped;
    skua_pid peer;
};

static int script_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct script *script = api_world(self);
    const size_t line = script->next++;
    script->counts[line] = count;
    const int error = script->lines[line](script, ctx, events, count, out);
    tally_add(&script->stepped, 1);
    return error;
}

static const skua_process_type script_type = {
    .name = "script", .state_size = sizeof(void *), .init = api_init_world, .step = script_step};

typedef int line_fn(struct script *script, skua_context *ctx, skua_event *events, size_t count,
                    skua_step *out);

static void script_init(struct script *script, line_fn *const *lines)
{
    *script = (struct script){.lines = lines};
    tally_init(&script->stepped);
}

/* Most lines use only some of their arguments. */
#define LINE(name)                                                                                 \
    static int name(struct script *script, skua_context *ctx, skua_event *events, size_t count,    \
                    skua_step *out)
#define UNUSED_LINE_ARGUMENTS() ((void)script, (void)ctx, (void)events, (void)count, (void)out)

LINE(say_nothing)
{
    UNUSED_LINE_ARGUMENTS();
    return 0;
}

LINE(say_idle)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_idle(out);
    return 0;
}

LINE(say_wait)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_wait(out);
    return 0;
}

LINE(say_continue)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_continue(out);
    return 0;
}

LINE(say_done)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_done(out, tracked_payload(RESULT, &script->items[0]));
    return 0;
}

LINE(say_done_twice)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_done(out, tracked_payload(RESULT + 1, &script->items[1]));
    skua_step_done(out, tracked_payload(RESULT, &script->items[0]));
    return 0;
}

LINE(say_done_then_continue)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_done(out, tracked_payload(RESULT + 1, &script->items[1]));
    skua_step_continue(out);
    return 0;
}

LINE(say_failed)
{
    UNUSED_LINE_ARGUMENTS();
    return ERROR_STEP;
}

LINE(say_done_and_fail)
{
    UNUSED_LINE_ARGUMENTS();
    skua_step_done(out, tracked_payload(RESULT, &script->items[0]));
    return ERROR_STEP;
}

/* Runs the script and expects as many steps as it has lines. */
static skua_exit play(line_fn *const *lines, size_t count, struct script *script)
{
    struct api api;
    script_init(script, lines);
    api_run(&api, 1);
    const skua_exit exit = api_run_process(&api, &script_type, script);
    api_stop(&api);
    assert_int_equal(script->next, count);
    return exit;
}

TEST(step_first_gets_no_events)
{
    struct script script;
    const skua_exit exit = play((line_fn *const[]){say_done}, 1, &script);
    assert_int_equal(exit.error, 0);
    assert_int_equal(script.counts[0], 0);
}

TEST(step_continue_runs_again_without_events)
{
    struct script script;
    line_fn *const lines[] = {say_continue, say_continue, say_continue, say_continue,
                              say_continue, say_continue, say_continue, say_done};
    const skua_exit exit = play(lines, COUNT_OF(lines), &script);
    assert_int_equal(exit.error, 0);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_int_equal(script.counts[i], 0);
    }
}

TEST(step_done_ends_with_its_result)
{
    struct script script;
    skua_exit exit = play((line_fn *const[]){say_continue, say_done}, 2, &script);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    assert_ptr_equal(skua_payload_data(&exit.result), &script.items[0]);
    assert_drops(&script.items[0], 1, 0); /* it is this thread's now */
    skua_payload_drop(&exit.result);
}

TEST(step_done_again_replaces_the_result)
{
    struct script script;
    const skua_exit exit = play((line_fn *const[]){say_done_twice}, 1, &script);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    assert_drops(&script.items[0], 1, 0);
    assert_drops(&script.items[1], 1, 1);
}

TEST(step_status_set_last_counts)
{
    struct script script;
    const skua_exit exit = play((line_fn *const[]){say_done_then_continue, say_done}, 2, &script);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    assert_drops(&script.items[1], 1, 1);
}

TEST(step_failing_ends_with_its_error)
{
    struct script script;
    const skua_exit exit = play((line_fn *const[]){say_continue, say_failed}, 2, &script);
    assert_int_equal(exit.error, ERROR_STEP);
    assert_int_equal(exit.result.storage, SKUA_PAYLOAD_EMPTY);
}

TEST(step_failing_drops_its_result)
{
    struct script script;
    const skua_exit exit = play((line_fn *const[]){say_done_and_fail}, 1, &script);
    assert_int_equal(exit.error, ERROR_STEP);
    assert_int_equal(exit.result.storage, SKUA_PAYLOAD_EMPTY);
    assert_drops(&script.items[0], 1, 1);
}

/* A process that waits takes no step until a message comes, and then exactly one. */
static void check_waiting(line_fn *status)
{
    struct api api;
    struct script script;
    skua_process_info info;
    line_fn *const lines[] = {status, status, say_done};
    script_init(&script, lines);
    api_run(&api, 2);
    const skua_pid pid = api_submit(&api, &script_type, &script);
    for (uint64_t step = 1; step <= 2; step++) {
        tally_wait(&script.stepped, step);
        api_wait_state(&api, pid, SKUA_PROCESS_IDLE);
        assert_int_equal(skua_process_info_read(api.runtime, pid, &info), 0);
        assert_int_equal(info.steps, step);
        assert_int_equal(skua_message_send(api.runtime, pid, skua_payload_empty(0)), 0);
    }
    tally_wait(&script.stepped, 3);
    api_stop(&api);
    assert_int_equal(script.counts[0], 0);
    assert_int_equal(script.counts[1], 1);
    assert_int_equal(script.counts[2], 1);
    assert_drops(&script.items[0], 1, 1); /* nobody waited for the result */
}

TEST(step_idle_waits_for_an_event)
{
    check_waiting(say_idle);
}

TEST(step_without_status_waits_for_an_event)
{
    check_waiting(say_nothing);
}

TEST(step_wait_without_yields_waits_for_an_event)
{
    check_waiting(say_wait);
}

/* ---- the state ---- */

/* The size of the states of `vessel`; its processes cannot ask for it. */
static size_t vessel_size;

/* Checks in its first step that its state is zeroed and fills it, checks in the following ones that
 * it is as it was left. */
static int check_bytes(const unsigned char *bytes, unsigned char expected)
{
    for (size_t i = 0; i < vessel_size; i++) {
        if (bytes[i] != expected) {
            return ERROR_STEP;
        }
    }
    return 0;
}

static unsigned char mark_of(skua_context *ctx)
{
    return (unsigned char)(1 + skua_context_self(ctx).bits % 255);
}

static int vessel_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    (void)method;
    (void)input;
    (void)input_count;
    if ((uintptr_t)self % _Alignof(max_align_t) != 0 || check_bytes(self, 0) != 0) {
        return ERROR_INIT;
    }
    memset(self, mark_of(ctx), vessel_size);
    return 0;
}

/* Without an init the first step finds the zeroed state. */
static int zeroed_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    (void)events;
    (void)count;
    const int error = check_bytes(self, 0);
    memset(self, mark_of(ctx), vessel_size); /* for whoever has the place next */
    skua_step_done(out, skua_payload_empty(0));
    return error;
}

static int vessel_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    if (count > 0) {
        (void)api_finish_if_cancelled(events, count, out);
    } else {
        skua_step_continue(out);
    }
    return check_bytes(self, mark_of(ctx));
}

static const size_t state_sizes[] = {0, 1, 63, 64, 65, 127, 4096, 1 << 20};

TEST(state_of_any_size_is_zeroed_at_first)
{
    struct api api;
    /* One place only, so that every process gets the place of the one before. */
    api_create(&api, (skua_runtime_config){.worker_count = 1, .process_limit = 1});
    api_start(&api);
    for (size_t i = 0; i < 2 * COUNT_OF(state_sizes); i++) {
        vessel_size = state_sizes[i % COUNT_OF(state_sizes)];
        static skua_process_type types[2 * COUNT_OF(state_sizes)];
        types[i] =
            (skua_process_type){.name = "zeroed", .state_size = vessel_size, .step = zeroed_step};
        skua_exit exit = {.error = SKUA_E_USER};
        assert_int_equal(skua_process_run(api.runtime, &types[i], NULL, NULL, 0, &exit), 0);
        assert_int_equal(exit.error, 0);
        api_wait_live(&api, 0);
    }
    api_stop(&api);
}

static void count_failure(void *arg, skua_exit *exit)
{
    atomic_uint *failures = arg;
    (void)atomic_fetch_add(failures, exit->error != 0);
}

TEST(state_of_any_size_stays_as_it_was_left)
{
    static skua_process_type types[COUNT_OF(state_sizes)];
    for (size_t i = 0; i < COUNT_OF(state_sizes); i++) {
        struct api api;
        skua_pid pids[8];
        atomic_uint failures = 0;
        vessel_size = state_sizes[i];
        types[i] = (skua_process_type){
            .name = "vessel", .state_size = vessel_size, .init = vessel_init, .step = vessel_step};
        api_create(&api, (skua_runtime_config){.worker_count = 2,
                                               .on_exit = count_failure,
                                               .on_exit_arg = &failures});
        api_start(&api);
        for (size_t j = 0; j < COUNT_OF(pids); j++) {
            pids[j] = (skua_pid){0};
            assert_int_equal(skua_process_submit(api.runtime, &types[i], NULL, NULL, 0, &pids[j]),
                             0);
        }
        /* Several steps of each, beside the others. */
        for (size_t j = 0; j < COUNT_OF(pids); j++) {
            api_wait_steps(&api, pids[j], 3);
        }
        api_stop(&api);
        assert_int_equal(failures, 0);
    }
}

/* ---- the context ---- */

struct context_view {
    skua_pid submitted;
    skua_pid self[2];
    skua_runtime *runtime[2];
    uint64_t now[4];
    int to_itself;
};

static int viewer_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    const int error = api_init_world(self, ctx, method, input, input_count);
    struct context_view *view = api_world(self);
    view->self[0] = skua_context_self(ctx);
    view->runtime[0] = skua_context_runtime(ctx);
    view->now[0] = skua_context_now(ctx);
    view->to_itself = skua_context_send(ctx, skua_context_self(ctx), skua_payload_empty(0));
    return error;
}

static int viewer_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct context_view *view = api_world(self);
    (void)events;
    (void)count;
    if (view->now[1] == 0) {
        view->self[1] = skua_context_self(ctx);
        view->runtime[1] = skua_context_runtime(ctx);
        view->now[1] = skua_context_now(ctx);
        view->now[2] = skua_context_now(ctx);
        skua_step_continue(out);
        return 0;
    }
    view->now[3] = skua_context_now(ctx);
    skua_step_done(out, skua_payload_empty(0));
    return skua_pid_equal(view->submitted, view->self[0]) ? 0 : ERROR_STEP;
}

static const skua_process_type viewer_type = {
    .name = "viewer", .state_size = sizeof(void *), .init = viewer_init, .step = viewer_step};

TEST(context_shows_itself_its_runtime_and_time)
{
    struct api api;
    struct context_view view = {0};
    atomic_uint failures = 0;
    api_create(&api, (skua_runtime_config){
                         .worker_count = 2, .on_exit = count_failure, .on_exit_arg = &failures});
    api_start(&api);
    skua_payload input = api_world_payload(&view);
    /* The PID must be in place before the process first runs; its last step compares. */
    assert_int_equal(
        skua_process_submit(api.runtime, &viewer_type, NULL, &input, 1, &view.submitted), 0);
    skua_runtime *runtime = api.runtime;
    api_wait_live(&api, 0);
    api_stop(&api);
    assert_int_equal(failures, 0);
    assert_true(skua_pid_equal(view.self[0], view.submitted));
    assert_true(skua_pid_equal(view.self[1], view.submitted));
    assert_ptr_equal(view.runtime[0], runtime);
    assert_ptr_equal(view.runtime[1], runtime);
    assert_true(view.now[0] > 0 && view.now[0] <= view.now[1]);
    assert_int_equal(view.now[1], view.now[2]);
    assert_true(view.now[2] <= view.now[3]);
    assert_int_equal(view.to_itself, SKUA_E_NO_PROCESS); /* nobody can send before init ends */
}

#define RANDOM_STEPS 3
#define RANDOM_CALLS 4
#define RANDOM_COUNT (RANDOM_STEPS * RANDOM_CALLS)

struct random_numbers {
    uint64_t values[RANDOM_COUNT];
    size_t count;
};

static int random_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    struct random_numbers *numbers = api_world(self);
    (void)events;
    (void)count;
    for (unsigned i = 0; i < RANDOM_CALLS; i++) {
        numbers->values[numbers->count++] = skua_context_random(ctx);
    }
    skua_step_continue(out);
    if (numbers->count == RANDOM_COUNT) {
        skua_step_done(out, skua_payload_empty(0));
    }
    return 0;
}

static const skua_process_type random_type = {
    .name = "random", .state_size = sizeof(void *), .init = api_init_world, .step = random_step};

static void draw(uint64_t seed, struct random_numbers *first, struct random_numbers *second)
{
    struct api api;
    *first = *second = (struct random_numbers){.count = 0};
    api_create(&api, (skua_runtime_config){.worker_count = 1, .seed = seed});
    api_start(&api);
    (void)api_run_process(&api, &random_type, first);
    (void)api_run_process(&api, &random_type, second);
    api_stop(&api);
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Sorts them. */
static void assert_all_different(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_numbers);
    for (size_t i = 1; i < count; i++) {
        assert_true(values[i - 1] != values[i]);
    }
}

TEST(context_random_depends_on_seed_process_step_and_call)
{
    struct random_numbers numbers[6];
    draw(5, &numbers[0], &numbers[1]);
    draw(5, &numbers[2], &numbers[3]);
    draw(6, &numbers[4], &numbers[5]);
    assert_memory_equal(numbers[0].values, numbers[2].values, sizeof numbers[0].values);
    assert_memory_equal(numbers[1].values, numbers[3].values, sizeof numbers[1].values);
    uint64_t all[4 * RANDOM_COUNT];
    const size_t different[] = {0, 1, 4, 5};
    for (size_t i = 0; i < COUNT_OF(different); i++) {
        memcpy(&all[i * RANDOM_COUNT], numbers[different[i]].values,
               sizeof numbers[different[i]].values);
    }
    assert_all_different(all, COUNT_OF(all));
}

static void use_memory(void *arg, skua_context *ctx, skua_step *out)
{
    bool *good = arg;
    (void)out;
    unsigned char *small = skua_context_alloc(ctx, 1);
    unsigned char *large = skua_context_alloc(ctx, 100000);
    *good = small != NULL && large != NULL && (uintptr_t)small % _Alignof(max_align_t) == 0 &&
            (uintptr_t)large % _Alignof(max_align_t) == 0;
    if (*good) {
        memset(large, 1, 100000);
        *small = 2;
    }
    skua_context_free(ctx, small, 1);
    skua_context_free(ctx, large, 100000);
    skua_context_free(ctx, NULL, 0);
}

TEST(context_memory_comes_from_the_runtime)
{
    struct api api;
    bool good = false;
    api_run(&api, 1);
    const uint64_t before = counting_allocator_attempts(&api.memory);
    api_in_step(&api, use_memory, &good);
    assert_true(good);
    assert_true(counting_allocator_attempts(&api.memory) >= before + 2);
    api_stop(&api);
}

/* ---- processes that start processes ---- */

struct family {
    struct tally child_steps;
    skua_pid child;
    int spawn_error;
    uint64_t steps_when_parent_ended;
    int init_error;
};

static int child_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                      skua_step *out)
{
    struct family *family = api_world(self);
    (void)ctx;
    (void)events;
    (void)count;
    tally_add(&family->child_steps, 1);
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

static const skua_process_type child_type = {
    .name = "child", .state_size = sizeof(void *), .init = api_init_world, .step = child_step};

static void spawn_child(void *arg, skua_context *ctx, skua_step *out)
{
    struct family *family = arg;
    skua_payload input = api_world_payload(family);
    (void)out;
    family->spawn_error = skua_context_spawn(ctx, &child_type, NULL, &input, 1, &family->child);
    family->steps_when_parent_ended = tally_count(&family->child_steps);
}

static int parent_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    const int error = api_init_world(self, ctx, method, input, input_count);
    struct family *family = api_world(self);
    spawn_child(family, ctx, NULL);
    return error != 0 ? error : family->init_error;
}

static const skua_process_type parent_type = {
    .name = "parent", .state_size = sizeof(void *), .init = parent_init, .step = done_step};

static void begin_family(struct family *family, int init_error)
{
    *family = (struct family){.spawn_error = SKUA_E_USER, .init_error = init_error};
    tally_init(&family->child_steps);
}

static void check_family(struct family *family, struct api *api)
{
    tally_wait(&family->child_steps, 1);
    api_stop(api);
    assert_int_equal(family->spawn_error, 0);
    assert_false(skua_pid_is_none(family->child));
    assert_int_equal(tally_count(&family->child_steps), 1);
}

TEST(spawn_in_a_step_starts_a_child_after_it)
{
    struct api api;
    struct family family;
    begin_family(&family, 0);
    api_run(&api, 1);
    api_in_step(&api, spawn_child, &family);
    check_family(&family, &api);
    assert_int_equal(family.steps_when_parent_ended, 0);
}

TEST(spawn_in_init_starts_a_child)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct family family;
    begin_family(&family, 0);
    api_run(&api, workers);
    (void)api_submit(&api, &parent_type, &family);
    check_family(&family, &api);
}

static void spawn_parent(void *arg, skua_context *ctx, skua_step *out)
{
    skua_payload input = api_world_payload(arg);
    (void)out;
    (void)skua_context_spawn(ctx, &parent_type, NULL, &input, 1, NULL);
}

TEST(spawn_in_init_of_a_spawned_process_starts_a_child)
{
    struct api api;
    struct family family;
    begin_family(&family, 0);
    api_run(&api, 2);
    api_in_step(&api, spawn_parent, &family);
    check_family(&family, &api);
}

TEST(spawn_in_failing_init_starts_a_child_of_its_own)
{
    struct api api;
    struct family family;
    begin_family(&family, ERROR_INIT);
    skua_payload input = api_world_payload(&family);
    api_run(&api, 2);
    assert_int_equal(skua_process_submit(api.runtime, &parent_type, NULL, &input, 1, NULL),
                     ERROR_INIT);
    check_family(&family, &api);
}

#define CHILDREN 100000

struct crowd {
    skua_pid pids[CHILDREN];
    atomic_uchar runs[CHILDREN];
    atomic_uint finished;
    int error;
    struct tally all_ran;
};

struct member {
    struct crowd *crowd;
    uint64_t number;
};

static int member_init(void *self, skua_context *ctx, const char *method, skua_payload *input,
                       size_t input_count)
{
    struct member *member = self;
    const int error = api_init_world(self, ctx, method, input, input_count);
    member->number = skua_payload_to_u64(&input[1]);
    return error;
}

static int member_step(void *self, skua_context *ctx, skua_event *events, size_t count,
                       skua_step *out)
{
    const struct member *member = self;
    struct crowd *crowd = member->crowd;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    (void)atomic_fetch_add(&crowd->runs[member->number], 1);
    if (atomic_fetch_add(&crowd->finished, 1) + 1 == CHILDREN) {
        tally_add(&crowd->all_ran, 1);
    }
    return skua_pid_equal(crowd->pids[member->number], skua_context_self(ctx)) ? 0 : ERROR_STEP;
}

static const skua_process_type member_type = {.name = "member",
                                              .state_size = sizeof(struct member),
                                              .init = member_init,
                                              .step = member_step};

static void spawn_crowd(void *arg, skua_context *ctx, skua_step *out)
{
    struct crowd *crowd = arg;
    (void)out;
    for (uint64_t i = 0; i < CHILDREN; i++) {
        skua_payload input[] = {api_world_payload(crowd), skua_payload_u64(0, i)};
        crowd->error |= skua_context_spawn(ctx, &member_type, NULL, input, 2, &crowd->pids[i]);
    }
}

TEST(spawn_of_100000_children_in_one_step_runs_all)
{
    const uint32_t workers = test_workers();
    struct api api;
    atomic_uint failures = 0;
    struct crowd *crowd = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    tally_init(&crowd->all_ran);
    api_create(&api, (skua_runtime_config){.worker_count = workers,
                                           .on_exit = count_failure,
                                           .on_exit_arg = &failures});
    api_start(&api);
    api_in_step(&api, spawn_crowd, crowd);
    assert_int_equal(crowd->error, 0);
    tally_wait(&crowd->all_ran, 1);
    assert_int_equal(api_stats(&api).spawned, CHILDREN + 1);
    api_stop(&api);
    assert_int_equal(failures, 0);
    uint64_t *bits = malloc(CHILDREN * sizeof *bits);
    assert_non_null(bits);
    for (size_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(crowd->runs[i], 1);
        bits[i] = crowd->pids[i].bits;
    }
    assert_all_different(bits, CHILDREN);
    free(bits);
    free(crowd);
}

/* ---- PIDs ---- */

#define REUSES 20000

TEST(pid_is_never_given_twice)
{
    static const skua_process_type brief = {.name = "brief", .step = done_step};
    struct api api;
    static uint64_t bits[REUSES];
    api_create(&api, (skua_runtime_config){.worker_count = 2, .process_limit = 4});
    api_start(&api);
    for (size_t i = 0; i < REUSES; i++) {
        skua_exit exit;
        int error;
        do { /* a place is free again a moment after the wait for its process */
            error = skua_process_run(api.runtime, &brief, NULL, NULL, 0, &exit);
        } while (error == SKUA_E_PROCESS_LIMIT);
        assert_int_equal(error, 0);
        assert_false(skua_pid_is_none(exit.pid));
        bits[i] = exit.pid.bits;
    }
    api_stop(&api);
    assert_all_different(bits, REUSES);
}

TEST(pid_of_a_finished_process_receives_nothing)
{
    const uint32_t workers = test_workers();
    struct api api;
    struct life life;
    struct tracked item = {0};
    begin_life(&life, BY_DONE);
    api_run(&api, workers);
    const skua_exit exit = api_run_process(&api, &mortal_type, &life);
    assert_true(skua_pid_equal(exit.pid, life.pid));
    assert_int_equal(skua_message_send(api.runtime, exit.pid, tracked_payload(0, &item)),
                     SKUA_E_NO_PROCESS);
    assert_drops(&item, 1, 1);
    api_stop(&api);
    assert_int_equal(life.steps, 1);
    assert_int_equal(life.closes, 1);
}
