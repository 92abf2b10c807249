/* SPDX-License-Identifier: MIT */
/* The kit of scripted processes: what actors do, and that a surprise does not go unnoticed. */
#include "actor.h"
#include "desk.h"
#include "exits.h"
#include "standstill.h"

enum { ASK = 1, ANSWER = 2, NUMBER = 3 };

TEST(two_actors_talk_and_finish)
{
    world_open();
    struct actor *server = actor_start(ACTS(expects(message(ASK, 1)), replies(ANSWER, 2)));
    struct actor *client =
        actor_new(ACTS(sends(server, ASK, 1), expects(message(ANSWER, 2)), finishes(7)));
    assert_result(actor_run(client), 7);
    assert_saw(server, message(ASK, 1));
    assert_saw(client, message(ANSWER, 2));
    assert_int_equal(client->closes, 1);
}

TEST(script_is_repeated_as_often_as_it_says)
{
    world_open();
    struct actor *counter = actor_start(NO_ACTS);
    struct actor *talker = actor_new(ACTS(sends(counter, NUMBER, 5), repeats(9), finishes(0)));
    assert_result(actor_run(talker), 0);
    actor_await_seen(counter, 10);
}

TEST(continued_steps_are_counted)
{
    world_open();
    struct actor *actor = actor_new(ACTS(continues(5), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(actor->steps, 6);
}

TEST(actor_performs_what_it_is_told)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform(actor, ACTS(sleeps(1, SKUA_SECOND), refused(ticker(2, 0), SKUA_E_DURATION)));
    assert_saw_nothing(actor);
    world_advance(2 * SKUA_SECOND);
    assert_saw(actor, completion(1, 0));
}

TEST(actor_that_is_held_stays_in_its_step)
{
    world_open();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform_until_held(actor, ACTS(holds(), finishes(0)));
    assert_int_equal(world_info(actor->pid).state, SKUA_PROCESS_RUNNING);
    actor_release(actor);
    actor_await_end(actor);
}

TEST(desk_completes_what_actors_yield)
{
    world_create((skua_runtime_config){0});
    struct desk *desk = desk_open();
    world_start();
    struct actor *actor =
        actor_start(ACTS(yields(1, DESK_DOUBLE, 0, 21), yields(2, DESK_FAIL, 0, 0),
                         yields(3, DESK_KEEP, 0, 0), awaits(2)));
    desk_await_kept(desk, 1);
    actor_await_seen(actor, 2);
    assert_int_equal(desk_complete(desk, 0, 0, 5), 0);
    actor_await_seen(actor, 3);
    assert_saw(actor, completion_of(1, DESK_RESULT, 42), completion(2, DESK_ERROR),
               completion_of(3, DESK_RESULT, 5));
}

TEST(simulated_actors_are_the_same)
{
    world_open_sim(1, (skua_sim_faults){0});
    struct actor *actor = actor_start(ACTS(sleeps(1, SKUA_SECOND), expects(completion(1, 0))));
    world_settle();
    assert_saw(actor, completion(1, 0));
}

TEST(init_performs_acts_of_its_own)
{
    world_open();
    struct actor *child = actor_new(ACTS(finishes(0)));
    struct actor *parent = actor_new(ACTS(finishes(0)));
    parent->in_init = ACTS(spawns(child), refused(sends(parent, ASK, 1), SKUA_E_NO_PROCESS));
    assert_result(actor_run(parent), 0);
    actor_await_end(child);
    assert_string_equal(parent->method, "main");
}

TEST(actor_that_has_ended_may_be_run_again)
{
    world_open();
    struct actor *actor = actor_new(ACTS(continues(1), repeats(1), finishes(7)));
    for (unsigned i = 1; i <= 3; i++) {
        assert_result(actor_run(actor), 7);
        assert_int_equal(actor->steps, 3 * i);
        assert_int_equal(actor->closes, i);
    }
}

TEST(numbers_are_sent_on_in_their_order)
{
    world_open();
    struct actor *last = actor_start(NO_ACTS);
    struct actor *relay = actor_start(ACTS(passes_on(last)));
    struct actor *first =
        actor_new(ACTS(sends_numbers(relay, NUMBER, 2), continues(1), repeats(1), finishes(0)));
    assert_result(actor_run(first), 0);
    actor_await_seen(last, 4);
    assert_saw(last, message(NUMBER, 0), message(NUMBER, 1), message(NUMBER, 2),
               message(NUMBER, 3));
    assert_true(skua_pid_equal(last->seen[0].from, relay->pid));
}

TEST(standstill_lets_nothing_run)
{
    world_open();
    standstill_begin();
    struct actor *actor = actor_start(NO_ACTS);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(world_send(actor->pid, skua_payload_u64(NUMBER, i)), 0);
    }
    assert_int_equal(world_info(actor->pid).steps, 0);
    standstill_end();
    actor_await_seen(actor, 10);
    assert_int_equal(actor_largest_batch(actor), 10);
}

TEST(exits_are_noted)
{
    struct exits *exits = exits_new();
    world_open_with((skua_runtime_config){NOTES_EXITS(exits)});
    struct actor *done = actor_start(ACTS(finishes(0)));
    struct actor *failed = actor_start(ACTS(fails(-1)));
    exits_await(exits, 2);
    assert_exited(exits, done, 0);
    assert_exited(exits, failed, -1);
    assert_int_equal(exits->failures, 1);
}

/* Takes surprises back: they were wanted. */
static void expect_surprise(struct actor *actor, const char *text)
{
    assert_int_equal(actor->surprises, 1);
    assert_non_null(strstr(actor->surprise, text));
    actor->surprises = 0;
}

TEST(event_that_is_not_expected_is_a_surprise)
{
    world_open();
    struct actor *actor = actor_start(ACTS(expects(message(ASK, 1)), finishes(0)));
    assert_int_equal(world_send(actor->pid, skua_payload_u64(ASK, 2)), 0);
    actor_await_end(actor);
    expect_surprise(actor, "type 1 value 2");
}

TEST(call_that_returns_something_else_is_a_surprise)
{
    world_open();
    struct actor *actor = actor_new(ACTS(ticker(1, 0), finishes(0)));
    assert_result(actor_run(actor), 0);
    expect_surprise(actor, skua_error_name(SKUA_E_DURATION));
}

TEST(error_that_does_not_come_is_a_surprise)
{
    world_open();
    struct actor *actor = actor_new(ACTS(refused(sleeps(1, 0), SKUA_E_DURATION), finishes(0)));
    assert_result(actor_run(actor), 0);
    expect_surprise(actor, skua_error_name(SKUA_E_DURATION));
}

TEST(rounds_leave_what_was_opened_before_them)
{
    world_open();
    struct actor *before = actor_start(NO_ACTS);
    FOR_ROUNDS (number, 3) {
        world_open();
        assert_result(actor_run(actor_new(ACTS(finishes(number)))), number);
        world_close();
        world_open(); /* a second one in the same round */
        assert_result(actor_run(actor_new(ACTS(finishes(number)))), number);
    }
    assert_int_equal(world_send(before->pid, skua_payload_u64(NUMBER, 5)), 0);
    actor_await_seen(before, 1);
    world_close();
    assert_saw(before, message(NUMBER, 5), cancel(SKUA_E_STOPPED));
}

TEST(actor_that_is_told_something_finishes_its_script_first)
{
    world_open();
    struct actor *actor = actor_start(ACTS(sends(actor_start(NO_ACTS), NUMBER, 1)));
    actor_perform(actor, ACTS(finishes(0)));
    actor_await_end(actor);
    assert_true(actor->steps >= 2);
}

TEST(events_are_looked_at_as_they_come)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(sleeps(1, 0), sleeps(2, 0), ticker(3, SKUA_SECOND)));
    world_settle();
    assert_then_saw_in_any_order(actor, completion(2, 0), completion(1, 0));
    assert_then_saw_nothing(actor);
    world_advance(2 * SKUA_SECOND);
    assert_then_saw(actor, tick_at(3, 2, WORLD_START + 2 * SKUA_SECOND));
}
