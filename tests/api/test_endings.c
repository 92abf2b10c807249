/* SPDX-License-Identifier: MIT */
/* What may be relied on once something has ended: places are free, messages have been read, threads
 * are out of the library, and nothing that does not return holds up a stop. */
#include "actor.h"
#include "effort.h"

TEST(place_is_free_once_the_end_is_known)
{
    world_open_with((skua_runtime_config){.process_limit = 1});
    struct actor *actor = actor_new(ACTS(finishes(0)));
    for (int round = 0; round < EFFORT(2000); round++) {
        assert_result(actor_run(actor), 0);
    }
}

TEST(stop_comes_behind_the_messages_before_it)
{
    enum { MESSAGES = 150 }; /* more than one step gets */
    struct seen expected[MESSAGES + 1];
    for (uint64_t i = 0; i < MESSAGES; i++) {
        expected[i] = message(0, i);
    }
    expected[MESSAGES] = cancel(SKUA_E_STOPPED);
    FOR_ROUNDS (round, EFFORT(200)) {
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct actor *actor = actor_start(NO_ACTS);
        for (uint64_t i = 0; i < MESSAGES; i++) {
            assert_int_equal(world_send(actor->pid, skua_payload_u64(0, i)), 0);
        }
        world_close();
        assert_saw_from(actor, 0, expected, COUNT_OF(expected));
    }
}

/* A handler that lets a thread of its own complete the command. */
struct handed_over {
    skua_command command;
    pthread_t thread;
};

static void *complete_it(void *arg)
{
    skua_command *command = arg;
    (void)skua_command_complete(command->runtime, command->completion, 0, skua_payload_empty(0));
    return NULL;
}

static int hand_over(void *arg, skua_command *command, skua_payload *result)
{
    struct handed_over *handed = arg;
    (void)result;
    handed->command = *command;
    return pthread_create(&handed->thread, NULL, complete_it, &handed->command) == 0
               ? SKUA_PENDING
               : SKUA_E_THREAD;
}

/* The completion is seen before the call that made it returns. The sanitizers see whether that call
 * then still uses a runtime that is gone. */
TEST(runtime_outlives_the_calls_whose_effect_was_seen)
{
    FOR_ROUNDS (round, EFFORT(300)) {
        struct handed_over *handed = test_alloc(sizeof *handed);
        world_create((skua_runtime_config){.worker_count = 2});
        world_register(1, hand_over, handed);
        world_start();
        struct actor *actor =
            actor_new(ACTS(yields(0, 1, 0, 0), expects(completion(0, 0)), finishes(0)));
        assert_result(actor_run(actor), 0);
        world_close();
        assert_int_equal(pthread_join(handed->thread, NULL), 0);
    }
}

TEST(stop_gives_up_on_a_close_that_does_not_return)
{
    world_open();
    struct actor *actor = actor_new(ACTS(finishes(0)));
    actor->holds_in_close = true;
    actor_submit(actor);
    actor_await_held(actor, 1);
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(world_runtime()), SKUA_E_BUSY);
    actor_let_go(actor);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
}
