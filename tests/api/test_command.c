/* SPDX-License-Identifier: MIT */
/* Commands: handlers that complete at once, later, or on another thread; processes that wait for
 * one or many of them; the registry. test_completion.c is about completions that come late. */
#include "actor.h"
#include "desk.h"

#define MANY 1000
#define FEW  5

enum { QUESTION = 3 };

/* A process that yields this command gets that answer, and its input is dropped. */
static void check_answer(uint32_t command, struct seen answer)
{
    struct actor *actor = actor_new(NO_ACTS);
    actor->script = ACTS(yields_item(answer.tag, command, QUESTION, &actor->item), expects(answer),
                         finishes(0));
    assert_result(actor_run(actor), 0);
    assert_drops(&actor->item, 1, 1);
}

/* ---- one yield ---- */

TEST(handler_that_completes_at_once_answers)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor =
        actor_new(ACTS(yields(77, DESK_DOUBLE, QUESTION, 21), awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, completion_of(77, DESK_RESULT, 42));
    assert_int_equal(desk->calls, 1);
    assert_int_equal(desk->last_command, DESK_DOUBLE);
    assert_ptr_equal(desk->last_runtime, world_runtime());
}

TEST(command_that_fails_or_is_unknown_answers_with_an_error)
{
    (void)desk_open_with((skua_runtime_config){0});
    check_answer(DESK_FAIL, failure(79, DESK_ERROR));
    check_answer(DESK_UNKNOWN, failure(80, SKUA_E_UNKNOWN_COMMAND));
    check_answer(123456, failure(81, SKUA_E_UNKNOWN_COMMAND));
}

/* By a call, and then by what it returns. */
static int complete_twice(void *arg, skua_command *command, skua_payload *result)
{
    const int error = skua_command_complete(command->runtime, command->completion, 0,
                                            skua_payload_u64(DESK_RESULT, 1));
    *result = tracked_payload(DESK_RESULT, arg);
    return error;
}

TEST(handler_that_completes_by_a_call_answers_once)
{
    enum { TWICE = 50 };
    struct tracked second = {0};
    world_create((skua_runtime_config){0});
    (void)desk_open();
    world_register(TWICE, complete_twice, &second);
    world_start();
    struct actor *actor = actor_start(ACTS(yields(78, DESK_COMPLETE, QUESTION, 21), awaits(1),
                                           yields(82, TWICE, QUESTION, 0), awaits(1)));
    tally_wait(&actor->performed, 1);
    actor_await_state(actor, SKUA_PROCESS_IDLE);
    world_close();
    assert_saw(actor, completion_of(78, DESK_RESULT, 21), completion_of(82, DESK_RESULT, 1),
               cancel(SKUA_E_STOPPED));
    assert_drops(&second, 1, 1);
}

static int take_input(void *arg, skua_command *command, skua_payload *result)
{
    skua_payload *taken = arg;
    (void)result;
    *taken = skua_payload_take(&command->input);
    return 0;
}

static int leave_input(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return 0;
}

TEST(input_left_by_the_handler_is_dropped_and_input_taken_is_kept)
{
    struct tracked items[2] = {0};
    skua_payload taken;
    world_create((skua_runtime_config){0});
    world_register(0, take_input, &taken);
    world_register(1, leave_input, NULL);
    world_start();
    struct actor *actor =
        actor_new(ACTS(yields_item(0, 0, QUESTION, &items[0]),
                       yields_item(1, 1, QUESTION, &items[1]), awaits(2), finishes(0)));
    assert_result(actor_run(actor), 0);
    world_close();
    assert_completed_each_once(actor, 2, 0);
    assert_drops(&items[0], 1, 0);
    assert_drops(&items[1], 1, 1);
    assert_ptr_equal(skua_payload_data(&taken), &items[0]);
    assert_int_equal(taken.type, QUESTION);
}

/* ---- completing later ---- */

/* Completes what the desk has kept, on the worker it runs on. */
static int complete_first_kept(void *arg, skua_command *command, skua_payload *result)
{
    struct desk *desk = arg;
    *result = skua_payload_u64(DESK_RESULT, 8);
    return skua_command_complete(command->runtime, desk->kept[0], 0,
                                 skua_payload_u64(DESK_RESULT, 100));
}

TEST(completion_later_from_the_same_worker_arrives)
{
    enum { COMPLETE_FIRST = 50 };
    world_create((skua_runtime_config){.worker_count = 1});
    struct desk *desk = desk_open();
    world_register(COMPLETE_FIRST, complete_first_kept, desk);
    world_start();
    struct actor *actor =
        actor_new(ACTS(yields(0, DESK_KEEP, QUESTION, 0), yields(1, COMPLETE_FIRST, QUESTION, 0),
                       awaits(2), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_completed_each_once(actor, 2, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(actor->seen[i].value, actor->seen[i].tag == 0 ? 100 : 8);
    }
}

TEST(completion_from_another_thread_arrives)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct tracked item = {0};
    struct actor *actor = actor_start(ACTS(yields_item(90, DESK_KEEP, QUESTION, &item), awaits(1),
                                           yields(91, DESK_KEEP, QUESTION, 0), awaits(1)));
    desk_await_kept(desk, 1);
    assert_int_equal(desk_complete(desk, 0, 0, 5), 0);
    desk_await_kept(desk, 2);
    assert_int_equal(desk_complete(desk, 1, DESK_ERROR, 0), 0);
    actor_await_seen(actor, 2);
    world_close();
    assert_saw(actor, completion_of(90, DESK_RESULT, 5), completion(91, DESK_ERROR),
               cancel(SKUA_E_STOPPED));
    assert_drops(&item, 1, 1);
}

struct early {
    skua_completion completion;
    struct tally kept;
    struct tally completed;
};

static int return_after_completion(void *arg, skua_command *command, skua_payload *result)
{
    struct early *early = arg;
    (void)result;
    early->completion = command->completion;
    tally_add(&early->kept, 1);
    tally_wait(&early->completed, 1);
    return SKUA_PENDING;
}

/* It is on its way before the handler has said that it will come. */
TEST(completion_during_the_handler_arrives)
{
    struct early early;
    tally_init(&early.kept);
    tally_init(&early.completed);
    world_create((skua_runtime_config){0});
    world_register(1, return_after_completion, &early);
    world_start();
    struct actor *actor = actor_start(ACTS(yields(90, 1, QUESTION, 0)));
    tally_wait(&early.kept, 1);
    assert_int_equal(skua_command_complete(world_runtime(), early.completion, 0,
                                           skua_payload_u64(DESK_RESULT, 6)),
                     0);
    tally_add(&early.completed, 1);
    actor_await_seen(actor, 1);
    world_close();
    assert_saw(actor, completion_of(90, DESK_RESULT, 6), cancel(SKUA_E_STOPPED));
}

TEST(completion_while_the_process_runs_is_seen)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    for (unsigned round = 0; round < 20; round++) {
        struct actor *actor = actor_start(ACTS(yields(90, DESK_KEEP, QUESTION, 0)));
        desk_await_kept(desk, round + 1);
        actor_perform_until_held(actor, ACTS(holds(), awaits(1), finishes(0)));
        assert_int_equal(desk_complete(desk, round, 0, 7), 0);
        actor_let_go(actor);
        actor_await_end(actor);
        assert_saw(actor, completion_of(90, DESK_RESULT, 7));
    }
}

/* ---- many yields ---- */

TEST(many_yields_completed_at_once_come_in_their_order)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_new(
        ACTS(for_each_tag(MANY, yields(0, DESK_DOUBLE, QUESTION, 0)), awaits(MANY), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_completed_each_once(actor, MANY, 0);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(actor->seen[i].tag, i);
        assert_int_equal(actor->seen[i].value, 2 * i);
    }
}

struct completer {
    struct desk *desk;
    size_t first;
    unsigned refused;
};

static void complete_every_third(void *arg)
{
    struct completer *completer = arg;
    for (size_t i = completer->first; i < MANY; i += 3) {
        completer->refused += desk_complete(completer->desk, i, 0, 500 + i) != 0;
    }
}

TEST(many_yields_completed_from_threads_come_once_each)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct completer completers[] = {{desk, 0, 0}, {desk, 1, 0}, {desk, 2, 0}};
    struct actor *actor = actor_start(
        ACTS(for_each_tag(MANY, yields(0, DESK_KEEP, QUESTION, 0)), awaits(MANY), finishes(0)));
    desk_await_kept(desk, MANY);
    api_in_threads(COUNT_OF(completers), complete_every_third, completers, sizeof completers[0]);
    actor_await_end(actor);
    assert_int_equal(completers[0].refused + completers[1].refused + completers[2].refused, 0);
    assert_completed_each_once(actor, MANY, 0);
    for (size_t i = 0; i < MANY; i++) { /* the handlers were called in the order of the yields */
        assert_int_equal(actor->seen[i].value, 500 + actor->seen[i].tag);
    }
}

TEST(many_yields_of_all_kinds_come_once_each)
{
    static const uint32_t commands[] = {DESK_DOUBLE, DESK_COMPLETE, DESK_KEEP, DESK_UNKNOWN};
    struct act acts[MANY + 2];
    bool came[MANY] = {false};
    for (uint64_t tag = 0; tag < MANY; tag++) {
        acts[tag] = yields(tag, commands[tag % 4], QUESTION, tag);
    }
    acts[MANY] = awaits(MANY);
    acts[MANY + 1] = finishes(0);
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_start(script_copy(acts, COUNT_OF(acts)));
    desk_await_kept(desk, MANY / 4);
    for (size_t i = MANY / 4; i-- > 0;) {
        assert_int_equal(desk_complete(desk, i, 0, 0), 0);
    }
    actor_await_end(actor);
    assert_int_equal(actor->seen_count, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        const uint64_t tag = actor->seen[i].tag;
        const uint64_t values[] = {2 * tag, tag, 0, 0};
        assert_in_range(tag, 0, MANY - 1);
        assert_false(came[tag]);
        came[tag] = true;
        assert_int_equal(actor->seen[i].error, tag % 4 == 3 ? SKUA_E_UNKNOWN_COMMAND : 0);
        assert_int_equal(actor->seen[i].value, values[tag % 4]);
    }
}

TEST(process_can_wait_for_all_of_several_yields)
{
    static const size_t orders[][FEW] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 3, 0, 2, 4}};
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    for (size_t order = 0; order < COUNT_OF(orders); order++) {
        struct actor *actor = actor_start(
            ACTS(for_each_tag(FEW, yields(0, DESK_KEEP, QUESTION, 0)), awaits(FEW), finishes(0)));
        desk_await_kept(desk, (order + 1) * FEW);
        for (size_t i = 0; i < FEW; i++) { /* one by one */
            assert_int_equal(desk_complete(desk, order * FEW + orders[order][i], 0, i), 0);
            actor_await_seen(actor, i + 1);
        }
        actor_await_end(actor);
        for (size_t i = 0; i < FEW; i++) {
            assert_int_equal(actor->seen[i].tag, orders[order][i]);
            assert_int_equal(actor->seen[i].value, i);
        }
        assert_completed_each_once(actor, FEW, 0);
    }
}

TEST(process_can_wait_for_any_of_several_yields)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    for (size_t winner = 0; winner < FEW; winner++) {
        struct actor *actor = actor_start(
            ACTS(for_each_tag(FEW, yields(0, DESK_KEEP, QUESTION, 0)), awaits(1), finishes(0)));
        desk_await_kept(desk, (winner + 1) * FEW);
        assert_int_equal(desk_complete(desk, winner * FEW + winner, 0, 9), 0);
        actor_await_end(actor);
        for (size_t i = 0; i < FEW; i++) {
            assert_int_equal(desk_complete(desk, winner * FEW + i, 0, 10), SKUA_E_LATE);
        }
        assert_int_equal(world_stats().late_completions, (winner + 1) * FEW);
        assert_saw(actor, completion_of(winner, DESK_RESULT, 9));
    }
}

/* ---- what a process shows while it waits ---- */

/* After so many steps the process rests in this state. */
static void assert_rests(const struct actor *actor, uint64_t steps, enum skua_process_state state)
{
    api_wait_steps(world->api, actor->pid, steps);
    actor_await_state(actor, state);
    assert_int_equal(world_info(actor->pid).steps, steps);
}

TEST(process_shows_blocked_exactly_while_a_yield_is_open)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_start(NO_ACTS);
    assert_rests(actor, 1, SKUA_PROCESS_IDLE);
    actor_tell(actor, ACTS(yields(90, DESK_KEEP, QUESTION, 0), yields(91, DESK_KEEP, QUESTION, 0)));
    desk_await_kept(desk, 2);
    assert_rests(actor, 2, SKUA_PROCESS_BLOCKED);
    actor_tell(actor, NO_ACTS); /* a message alone changes nothing */
    assert_rests(actor, 3, SKUA_PROCESS_BLOCKED);
    assert_int_equal(desk_complete(desk, 0, 0, 8), 0); /* wakes it, and one is left */
    assert_rests(actor, 4, SKUA_PROCESS_BLOCKED);
    assert_int_equal(desk_complete(desk, 1, 0, 9), 0);
    assert_rests(actor, 5, SKUA_PROCESS_IDLE);
    actor_tell(actor, ACTS(yields(92, DESK_DOUBLE, QUESTION, 5))); /* never open when it rests */
    assert_rests(actor, 7, SKUA_PROCESS_IDLE);
    world_close();
    assert_saw(actor, completion_of(90, DESK_RESULT, 8), completion_of(91, DESK_RESULT, 9),
               completion_of(92, DESK_RESULT, 10), cancel(SKUA_E_STOPPED));
}

TEST(process_whose_yields_are_all_taken_back_shows_idle)
{
    struct desk *desk = desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_start(ACTS(yields(1, DESK_KEEP, QUESTION, 0)));
    desk_await_kept(desk, 1);
    assert_rests(actor, 1, SKUA_PROCESS_BLOCKED);
    actor_tell(actor, ACTS(cancels(1)));
    assert_rests(actor, 3, SKUA_PROCESS_IDLE);
    assert_late(desk, 0);
    assert_saw(actor, failure(1, SKUA_E_CANCELLED));
}

/* ---- completions at once and what else arrives ---- */

#define BUSY_PAUSE 50
#define BUSY_MOST  70

static const struct seen *find_disturbance(const struct actor *actor)
{
    for (size_t i = 0; i < actor->seen_count; i++) {
        if (actor->seen[i].type != SKUA_EVENT_COMPLETION) {
            return &actor->seen[i];
        }
    }
    return NULL;
}

/* Yields a command that completes at once in every step, and so is never without events. In one of
 * the steps it is held, until something else has been sent to it. */
static int yield_until_disturbed(struct turn *turn, const struct act *act)
{
    (void)act;
    if (turn->actor->steps == BUSY_MOST || find_disturbance(turn->actor) != NULL) {
        return 0;
    }
    if (turn->actor->steps == BUSY_PAUSE) {
        (void)perform(turn, holds());
    }
    const int error = perform(turn, yields(0, DESK_DOUBLE, 0, 0));
    return error != 0 ? error : ACT_WAITS;
}

/* What is sent by `disturb` comes soon. */
static void check_disturbance(int (*disturb)(skua_pid pid), uint32_t type)
{
    (void)desk_open_with((skua_runtime_config){0});
    struct actor *actor = actor_start(ACTS(does(yield_until_disturbed, NULL), finishes(0)));
    actor_await_held(actor, 1);
    assert_int_equal(disturb(actor->pid), 0);
    actor_let_go(actor);
    actor_await_end(actor);
    const struct seen *disturbance = find_disturbance(actor);
    assert_non_null(disturbance);
    assert_int_equal(disturbance->type, type);
    assert_in_range(disturbance->step, BUSY_PAUSE + 1, BUSY_MOST);
}

static int disturb_by_message(skua_pid pid)
{
    return world_send(pid, skua_payload_empty(0));
}

static int disturb_by_cancel(skua_pid pid)
{
    return world_cancel(pid, SKUA_E_USER - 2);
}

TEST(completions_at_once_do_not_hold_up_messages)
{
    check_disturbance(disturb_by_message, SKUA_EVENT_MESSAGE);
}

TEST(completions_at_once_do_not_hold_up_cancel_events)
{
    check_disturbance(disturb_by_cancel, SKUA_EVENT_CANCEL);
}

/* ---- what a handler may do ---- */

struct reach {
    struct actor *started;
    struct tracked item;
    int errors[6];
};

static int use_runtime(void *arg, skua_command *command, skua_payload *result)
{
    struct reach *reach = arg;
    skua_runtime *runtime = command->runtime;
    const skua_pid asker = command->completion.process;
    skua_payload input = tracked_payload(0, &reach->item);
    (void)result;
    reach->errors[0] = actor_try_submit(reach->started);
    reach->errors[1] = skua_process_send(runtime, reach->started->pid, skua_payload_u64(1, 2));
    reach->errors[2] = skua_process_send(runtime, asker, skua_payload_u64(1, 3));
    reach->errors[3] = skua_process_wait(runtime, asker, SKUA_FOREVER, NULL);
    reach->errors[4] = skua_process_run(runtime, &api_idler, input, NULL);
    reach->errors[5] = skua_runtime_stop(runtime, 0);
    return 0;
}

TEST(handler_may_call_what_does_not_wait)
{
    struct reach reach = {.started = actor_new(ACTS(awaits(1), finishes(0)))};
    world_create((skua_runtime_config){0});
    world_register(1, use_runtime, &reach);
    world_start();
    struct actor *actor = actor_new(ACTS(yields(90, 1, QUESTION, 0), awaits(2), finishes(0)));
    assert_result(actor_run(actor), 0);
    actor_await_end(reach.started);
    assert_saw(reach.started, message(1, 2));
    assert_int_equal(actor->seen_count, 2); /* in which order does not matter */
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(reach.errors[i], 0);
        assert_int_equal(reach.errors[i + 3], SKUA_E_INSIDE_STEP);
    }
    assert_drops(&reach.item, 1, 1);
}

/* ---- the registry ---- */

static int answer_id(void *arg, skua_command *command, skua_payload *result)
{
    const uint32_t *id = arg;
    *result = skua_payload_u64(DESK_RESULT, *id == command->id ? command->id : 1);
    return 0;
}

TEST(command_ids_of_all_sizes_find_their_handlers)
{
    /* Where the ids that have a place of their own end, and far beyond; in no order. */
    static uint32_t ids[] = {70000, 0,    256,  SKUA_COMMAND_RESERVED - 1, 255, 300, 257,
                             128,   5000, 69999};
    static const uint32_t others[] = {
        1, 127, 254, 258, 299, 301, 4999, 70001, SKUA_COMMAND_RESERVED - 2};
    world_create((skua_runtime_config){0});
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        world_register(ids[i], answer_id, &ids[i]);
    }
    world_start();
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        check_answer(ids[i], completion_of(i, DESK_RESULT, ids[i]));
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        check_answer(others[i], failure(i, SKUA_E_UNKNOWN_COMMAND));
    }
}

TEST(register_of_a_taken_id_is_refused)
{
    static uint32_t ids[] = {0, 255, 256, 70000};
    const skua_handler second = {.name = "second", .run = leave_input};
    world_create((skua_runtime_config){0});
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        world_register(ids[i], answer_id, &ids[i]);
        assert_int_equal(skua_command_register(world_runtime(), ids[i], &second),
                         SKUA_E_COMMAND_EXISTS);
    }
    world_start();
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        check_answer(ids[i], completion_of(i, DESK_RESULT, ids[i]));
    }
}

TEST(register_after_start_is_refused)
{
    static const uint32_t ids[] = {DESK_UNKNOWN, 70000, DESK_DOUBLE};
    const skua_handler late = {.name = "late", .run = leave_input};
    (void)desk_open_with((skua_runtime_config){0});
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(skua_command_register(world_runtime(), ids[i], &late), SKUA_E_FROZEN);
    }
    check_answer(DESK_UNKNOWN, failure(80, SKUA_E_UNKNOWN_COMMAND));
}
