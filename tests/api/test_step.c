/* SPDX-License-Identifier: MIT */
/* What a step says the process does next, and the state that it finds and leaves. */
#include <limits.h>

#include "exits.h"

#define ERROR_STEP (SKUA_E_USER - 2)

enum { RESULT = 7 };

/* ---- what a step says ---- */

/* Runs a script that ends after so many steps, to which nobody sends anything. */
static skua_exit play(struct script script, unsigned steps)
{
    struct actor *actor = actor_new(script);
    const skua_exit exit = actor_run(actor);
    assert_int_equal(actor->steps, steps);
    assert_saw_nothing(actor);
    return exit;
}

static int say_continue(struct turn *turn, const struct act *act)
{
    (void)act;
    return skua_continue(turn->ctx);
}

static int sleep_long(struct turn *turn, const struct act *act)
{
    return skua_yield_timer(turn->ctx, act->tag, SKUA_FOREVER);
}

static struct act sleeps_long(void)
{
    return does(sleep_long, NULL);
}

TEST(step_comes_first_without_messages)
{
    world_open();
    assert_result(play(ACTS(finishes(3)), 1), 3);
}

TEST(step_continue_runs_again_without_messages)
{
    world_open();
    assert_result(play(ACTS(continues(7), finishes(3)), 8), 3);
}

TEST(step_done_ends_with_its_result)
{
    struct tracked item = {0};
    world_open();
    skua_exit exit = play(ACTS(continues(1), finishes_with(RESULT, &item)), 2);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    assert_ptr_equal(skua_payload_data(&exit.result), &item);
    world_close();
    assert_drops(&item, 1, 0); /* it is this thread's now */
}

TEST(step_continue_and_then_done_is_done)
{
    struct tracked item = {0};
    world_open();
    skua_exit exit =
        play(ACTS(continues(2), does(say_continue, NULL), finishes_with(RESULT, &item)), 3);
    assert_int_equal(exit.error, 0);
    assert_int_equal(exit.result.type, RESULT);
    assert_ptr_equal(skua_payload_data(&exit.result), &item);
    world_close();
    assert_drops(&item, 1, 0);
}

TEST(step_failing_ends_with_its_error_and_without_a_result)
{
    world_open();
    assert_failed(play(ACTS(continues(1), fails(ERROR_STEP)), 2), ERROR_STEP);
    assert_failed(play(ACTS(does(say_continue, NULL), fails(ERROR_STEP)), 1), ERROR_STEP);
}

TEST(step_that_returns_a_positive_number_ends_its_process)
{
    world_open();
    assert_failed(play(ACTS(fails(1)), 1), SKUA_E_INVALID);
    assert_failed(play(ACTS(continues(1), fails(INT_MAX)), 2), SKUA_E_INVALID);
}

/* With a yield that is open it is Blocked; a message runs it all the same. */
TEST(step_that_says_nothing_waits_for_an_event)
{
    static const struct {
        uint64_t timers;
        enum skua_process_state state;
    } rows[] = {{0, SKUA_PROCESS_IDLE}, {1, SKUA_PROCESS_BLOCKED}, {3, SKUA_PROCESS_BLOCKED}};
    FOR_ROWS (row, rows) {
        struct tracked item = {0};
        const struct act rests = for_each_tag(row->timers, sleeps_long());
        world_open();
        struct actor *actor =
            actor_start(ACTS(rests, expects(message(1, 0)), rests, expects(message(2, 0)),
                             finishes_with(RESULT, &item)));
        for (uint32_t step = 1; step <= 2; step++) {
            api_wait_steps(world->api, actor->pid, step);
            actor_await_state(actor, row->state);
            assert_int_equal(world_info(actor->pid).steps, step);
            assert_int_equal(world_send(actor->pid, skua_payload_empty(step)), 0);
        }
        world_await_live(0);
        assert_saw(actor, message(1, 0), message(2, 0));
        assert_int_equal(actor->seen[0].step, 2);
        assert_int_equal(actor->seen[1].step, 3);
        assert_drops(&item, 1, 1); /* nobody waited for the result */
    }
}

/* ---- the state ---- */

static const size_t state_sizes[] = {0, 1, 63, 64, 65, 127, 4096, 1 << 20};

/* That of the current type; its processes cannot ask for it. */
static size_t state_size;

static int check_bytes(const unsigned char *bytes, unsigned char expected)
{
    for (size_t i = 0; i < state_size; i++) {
        if (bytes[i] != expected) {
            return ERROR_STEP;
        }
    }
    return 0;
}

static unsigned char mark_of(skua_context *ctx)
{
    return (unsigned char)(1 + skua_self(ctx).bits % 255);
}

/* Checks that the state is zeroed, and marks it: for the next step, or for whoever has the place
 * next. */
static int mark_zeroed_state(void *self, skua_context *ctx)
{
    const bool is_aligned = (uintptr_t)self % _Alignof(max_align_t) == 0;
    const int error = check_bytes(self, 0);
    if (state_size > 0) {
        memset(self, mark_of(ctx), state_size);
    }
    return is_aligned && (self == NULL) == (state_size == 0) ? error : ERROR_STEP;
}

static int marking_init(void *self, skua_context *ctx, skua_payload *input, size_t input_count)
{
    (void)input;
    (void)input_count;
    return mark_zeroed_state(self, ctx);
}

static int marking_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)events;
    (void)count;
    const int error = mark_zeroed_state(self, ctx);
    return error != 0 ? error : skua_done(ctx, skua_nothing());
}

static int checking_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)events;
    (void)count;
    (void)skua_continue(ctx);
    return check_bytes(self, mark_of(ctx));
}

static skua_process_type *type_of_size(size_t size, skua_init_fn *init, skua_step_fn *step)
{
    skua_process_type *type = test_alloc(sizeof *type);
    *type = (skua_process_type){.name = "vessel", .state_size = size, .init = init, .step = step};
    state_size = size;
    return type;
}

TEST(state_of_any_size_is_zeroed_at_first)
{
    /* One place only, so that every process gets the place of the one before. */
    world_open_with((skua_runtime_config){.process_limit = 1});
    for (size_t i = 0; i < 2 * COUNT_OF(state_sizes); i++) {
        const size_t size = state_sizes[i % COUNT_OF(state_sizes)];
        const skua_process_type *type = type_of_size(size, NULL, marking_step);
        assert_int_equal(api_run_process(world->api, type, NULL).error, 0);
        world_await_live(0);
    }
}

TEST(state_of_any_size_stays_as_it_was_left)
{
    FOR_ROWS (size, state_sizes) {
        skua_pid pids[8];
        struct exits *exits = exits_new();
        const skua_process_type *type = type_of_size(*size, marking_init, checking_step);
        world_open_with((skua_runtime_config){.worker_count = 2, NOTES_EXITS(exits)});
        for (size_t j = 0; j < COUNT_OF(pids); j++) {
            pids[j] = api_submit(world->api, type, NULL);
        }
        for (size_t j = 0; j < COUNT_OF(pids); j++) {
            api_wait_steps(world->api, pids[j], 3); /* beside the others */
        }
        world_close(); /* the cancel ends them, so no step has failed */
        for (size_t j = 0; j < COUNT_OF(pids); j++) {
            assert_int_equal(exits->list[j].exit.error, SKUA_E_STOPPED);
        }
    }
}
