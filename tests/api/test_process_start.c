/* SPDX-License-Identifier: MIT */
/* How processes begin: init and what it leaves behind, inputs, methods; and that close is called
 * once, however they end. */
#include "exits.h"

#define ERROR_INIT (SKUA_E_USER - 1)
#define ERROR_STEP (SKUA_E_USER - 2)

/* ---- init and close ---- */

static struct actor *unborn_new(void)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->init_returns = ERROR_INIT;
    return actor;
}

TEST(close_is_called_once_however_a_process_ends)
{
    world_open();
    struct actor *done = actor_start(ACTS(finishes(0)));
    struct actor *failed = actor_start(ACTS(fails(ERROR_STEP)));
    struct actor *terminated = actor_start(NO_ACTS);
    struct actor *unborn = unborn_new();
    struct actor *survivor = actor_new(NO_ACTS);
    assert_int_equal(actor_try_submit(unborn), ERROR_INIT);
    actor_await_end(done);
    actor_await_end(failed);
    actor_await_state(terminated, SKUA_PROCESS_IDLE);
    assert_int_equal(world_terminate(terminated->pid), 0);
    survivor->ignores_cancel = true;
    actor_submit(survivor);
    actor_await_state(survivor, SKUA_PROCESS_IDLE);
    world_expect_survivors();
    world_close();

    struct actor *all[] = {done, failed, terminated, unborn, survivor};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        assert_int_equal(all[i]->inits, 1);
        assert_int_equal(all[i]->closes, 1);
        assert_int_equal(all[i]->steps > 0, all[i] != unborn);
    }
}

/* api_idler has neither. */
TEST(process_without_init_and_close_runs)
{
    struct exits *exits = exits_new();
    struct tracked item = {0};
    skua_payload input = tracked_payload(0, &item);
    skua_pid pid = {0};
    world_open_with((skua_runtime_config){NOTES_EXITS(exits)});
    assert_int_equal(skua_process_submit(world_runtime(), &api_idler, input, &pid), 0);
    assert_drops(&item, 1, 1); /* nobody took it */
    assert_int_equal(world_cancel(pid, 0), 0);
    exits_await(exits, 1);
    assert_int_equal(exits->list[0].exit.error, SKUA_E_CANCELLED);
}

TEST(init_failing_leaves_no_process)
{
    struct exits *exits = exits_new();
    skua_process_snapshot info;
    world_open_with((skua_runtime_config){NOTES_EXITS(exits)});
    struct actor *unborn = unborn_new();
    assert_int_equal(actor_try_submit(unborn), ERROR_INIT);
    assert_false(skua_pid_is_none(unborn->pid));
    assert_int_equal(world_send(unborn->pid, skua_payload_empty(0)), SKUA_E_NO_PROCESS);
    assert_int_equal(world_terminate(unborn->pid), SKUA_E_NO_PROCESS);
    assert_int_equal(world_cancel(unborn->pid, 0), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_info(world_runtime(), unborn->pid, &info), SKUA_E_NO_PROCESS);
    assert_int_equal(world_stats().live, 0);
    assert_int_equal(world_stats().spawned, 0);
    world_close();
    assert_int_equal(exits->count, 0);
}

TEST(init_failing_gives_its_place_back)
{
    world_open_with((skua_runtime_config){.process_limit = 1});
    struct actor *unborn = unborn_new();
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(actor_try_submit(unborn), ERROR_INIT);
    }
    (void)actor_start(NO_ACTS);
}

TEST(init_failing_in_run_and_spawn_returns_its_error)
{
    world_open();
    struct actor *unborn = unborn_new();
    assert_int_equal(actor_try_run(unborn, NULL), ERROR_INIT);
    assert_int_equal(unborn->closes, 1);
    struct actor *parent = actor_new(ACTS(refused(spawns(unborn), ERROR_INIT), finishes(0)));
    assert_result(actor_run(parent), 0);
    assert_int_equal(world_stats().spawned, 1); /* the parent */
}

/* ---- inputs ---- */

static int take_second_input(struct turn *turn, const struct act *act)
{
    *(skua_payload *)act->arg = skua_payload_take(&turn->input[1]);
    return 0;
}

TEST(input_taken_by_init_is_kept_and_the_rest_dropped_once)
{
    static const int init_errors[] = {0, ERROR_INIT};
    FOR_ROWS (init_error, init_errors) {
        struct tracked items[3] = {0};
        skua_payload taken;
        world_open();
        struct actor *actor = actor_new(NO_ACTS);
        actor->in_init = ACTS(does(take_second_input, &taken));
        actor->init_returns = *init_error;
        skua_payload input[] = {api_world_payload(actor), tracked_payload(1, &items[0]),
                                tracked_payload(2, &items[1]), tracked_payload(3, &items[2])};
        assert_int_equal(
            skua_process_submit_with(
                world_runtime(),
                &(skua_spawn_options){.type = &actor->type, .input = input, .input_count = 4},
                NULL),
            *init_error);
        assert_drops(&items[1], 2, 1);
        world_close();
        assert_drops(&items[0], 1, 0);
        assert_ptr_equal(skua_payload_data(&taken), &items[0]);
        skua_payload_drop(&taken);
        assert_drops(items, 3, 1);
    }
}

/* ---- methods ---- */

static const char *const greek[] = {"alpha", "beta", "gamma", NULL};
static const char *const no_method[] = {NULL};

TEST(method_is_the_one_named_or_the_first)
{
    char copy[] = "gamma"; /* equal, but not the same pointer */
    const struct {
        const char *const *methods;
        const char *method;
        const char *expected;
    } rows[] = {{greek, NULL, "alpha"}, {greek, "alpha", "alpha"}, {greek, "beta", "beta"},
                {greek, copy, "gamma"}, {NULL, NULL, "main"},      {NULL, "main", "main"}};
    FOR_ROWS (row, rows) {
        world_open();
        struct actor *actor = actor_new(ACTS(finishes(3)));
        skua_payload input = api_world_payload(actor);
        skua_exit exit;
        actor->type.methods = row->methods;
        assert_int_equal(skua_process_run_with(world_runtime(),
                                               &(skua_spawn_options){.type = &actor->type,
                                                                     .method = row->method,
                                                                     .input = &input,
                                                                     .input_count = 1},
                                               &exit),
                         0);
        assert_result(exit, 3);
        assert_string_equal(actor->method, row->expected);
    }
}

/* The ways to start a process. */
enum way { BY_SUBMIT, BY_RUN, BY_SPAWN, WAYS };

struct attempt {
    const skua_process_type *type;
    const char *method;
    skua_payload input[3];
};

static int spawn_attempt(struct turn *turn, const struct act *act)
{
    struct attempt *attempt = act->arg;
    return skua_spawn_with(turn->ctx,
                           &(skua_spawn_options){.type = attempt->type,
                                                 .method = attempt->method,
                                                 .input = attempt->input,
                                                 .input_count = 3},
                           NULL);
}

static void check_method_is_refused(enum way way, const skua_process_type *type, const char *method)
{
    struct tracked items[3] = {0};
    struct attempt attempt = {.type = type, .method = method};
    skua_pid pid = {0};
    int error = SKUA_E_UNKNOWN_METHOD;
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        attempt.input[i] = tracked_payload(0, &items[i]);
    }
    if (way == BY_SUBMIT) {
        error = skua_process_submit_with(
            world_runtime(),
            &(skua_spawn_options){
                .type = type, .method = method, .input = attempt.input, .input_count = 3},
            &pid);
        assert_true(skua_pid_is_none(pid));
    } else if (way == BY_RUN) {
        error = skua_process_run_with(
            world_runtime(),
            &(skua_spawn_options){
                .type = type, .method = method, .input = attempt.input, .input_count = 3},
            NULL);
    } else {
        const struct act spawns_it = refused(does(spawn_attempt, &attempt), error);
        assert_result(actor_run(actor_new(ACTS(spawns_it, finishes(0)))), 0);
    }
    assert_int_equal(error, SKUA_E_UNKNOWN_METHOD);
    assert_drops(items, COUNT_OF(items), 1);
}

TEST(method_unknown_is_refused_without_a_trace)
{
    static const struct {
        const char *const *methods;
        const char *method;
    } rows[] = {{greek, "delta"}, {greek, ""},       {greek, "alph"},    {greek, "alphabet"},
                {NULL, "alpha"},  {no_method, NULL}, {no_method, "main"}};
    FOR_ROWS (row, rows) {
        world_open_with((skua_runtime_config){.process_limit = 2});
        struct actor *unborn = actor_new(NO_ACTS);
        unborn->type.methods = row->methods;
        for (enum way way = 0; way < WAYS; way++) {
            check_method_is_refused(way, &unborn->type, row->method);
        }
        assert_int_equal(unborn->inits, 0);
        world_await_live(0);
        assert_int_equal(world_stats().spawned, 1); /* the one that called spawn */
        assert_int_equal(world_stats().steps, 1);
        (void)actor_start(NO_ACTS); /* both places are still there */
        (void)actor_start(NO_ACTS);
    }
}
