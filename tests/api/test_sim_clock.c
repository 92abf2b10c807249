/* SPDX-License-Identifier: MIT */
/* The clock of the simulator: what moves it and how far, waiting for processes in virtual time, and
 * commands that complete after a while of it. */
#include "actor.h"
#include "desk.h"
#include "sim_trace.h"

#define SEED  7
#define START SKUA_SIM_START_NS

/* A command that completes after as long as its number says, with that number. */
#define LATER 100

static int complete_later(void *arg, skua_command *command, skua_payload *result)
{
    const uint64_t delay = skua_payload_to_u64(&command->input);
    (void)arg;
    (void)result;
    const int error = skua_sim_complete_after(command->runtime, command->completion, delay, 0,
                                              skua_payload_u64(0, delay));
    return error != 0 ? error : SKUA_PENDING;
}

static void open_with_later(skua_sim_config config)
{
    world_create_sim(SEED, config);
    world_register(LATER, complete_later, NULL);
    world_start();
}

static struct script sleep_and_finish(uint64_t duration)
{
    return ACTS(sleeps(1, duration), expects(completion(1, 0)), finishes(0));
}

static int run_until(uint64_t instant)
{
    return skua_sim_run(world_runtime(), instant);
}

/* ---- how far a run goes ---- */

TEST(clock_starts_at_one_second_and_rests)
{
    world_create_sim(SEED, (skua_sim_config){0});
    assert_int_equal(world_now(), SKUA_SECOND);
    world_start();
    world_settle();
    assert_int_equal(skua_sim_step(world_runtime()), 0);
    assert_int_equal(world_now(), START);
}

TEST(run_stops_at_its_instant)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_start(sleep_and_finish(5 * SKUA_SECOND));
    /* Instants that have passed bring nothing, and the clock does not go back. */
    const uint64_t instants[] = {START + 2 * SKUA_SECOND, START, 0};
    for (size_t i = 0; i < COUNT_OF(instants); i++) {
        assert_int_equal(run_until(instants[i]), 1);
        assert_int_equal(world_now(), START + 2 * SKUA_SECOND);
        assert_int_equal(actor->steps, 1);
    }
    world_settle();
    assert_int_equal(actor->closes, 1);
    const uint64_t due = START + 5 * SKUA_SECOND;
    const uint64_t end = world_now();
    assert_in_range(end, due, due + 2 * SKUA_CLOCK_RESOLUTION_NS);
    /* With nothing left the clock goes where it is sent. */
    assert_int_equal(run_until(end + SKUA_SECOND), 0);
    assert_int_equal(world_now(), end + SKUA_SECOND);
}

TEST(run_leaves_out_what_happens_at_its_instant)
{
    const uint64_t delay = 3 * SKUA_SECOND;
    open_with_later((skua_sim_config){0});
    struct actor *actor = actor_start(ACTS(yields(1, LATER, 0, delay), awaits(1), finishes(0)));
    assert_int_equal(run_until(START + delay), 1);
    assert_int_equal(world_now(), START + delay);
    assert_saw_nothing(actor);
    assert_int_equal(run_until(START + delay + 1), 0);
    assert_saw(actor, completion_of(1, 0, delay));
    assert_int_equal(actor->seen[0].now, START + delay);
    assert_int_equal(actor->closes, 1);
}

TEST(step_takes_one_turn_or_one_jump)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_start(sleep_and_finish(SKUA_SECOND));
    assert_int_equal(skua_sim_step(world_runtime()), 1);
    assert_int_equal(actor->steps, 1);
    assert_int_equal(world_now(), START + SKUA_MICROSECOND);
    assert_int_equal(sim_count(SKUA_SIM_CLOCK, 0), 0);
    while (actor->steps == 1) { /* a jump, or a few if the timer lies far out */
        assert_int_equal(skua_sim_step(world_runtime()), 1);
    }
    assert_in_range(sim_count(SKUA_SIM_CLOCK, 0), 1, 5);
    assert_in_range(world_now(), START + SKUA_SECOND,
                    START + SKUA_SECOND + 2 * SKUA_CLOCK_RESOLUTION_NS);
    assert_int_equal(actor->closes, 1);
    assert_int_equal(skua_sim_step(world_runtime()), 0);
    assert_int_equal(skua_sim_step(world_runtime()), 0);
}

/* ---- what moves the clock ---- */

#define DELAY 100

/* That it is time for the actor's next round, all step long. */
static int check_clock(struct turn *turn, const struct act *act)
{
    const uint64_t expected = START + turn->actor->seen_count * DELAY;
    (void)act;
    return turn_now(turn) == expected && world_now() == expected && turn_now(turn) == expected
               ? 0
               : SKUA_E_USER;
}

/* Time stands still within a turn, goes on by step_ns after it, and otherwise jumps. */
TEST(clock_moves_between_turns_only)
{
    const uint64_t step_ns = 7;
    open_with_later((skua_sim_config){.step_ns = step_ns});
    struct actor *actor =
        actor_new(ACTS(does(check_clock, NULL), yields(1, LATER, 0, DELAY), awaits(1), repeats(2),
                       does(check_clock, NULL), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(actor->steps, 4);
    assert_int_equal(world_now(), START + 3 * DELAY + step_ns);
    assert_int_equal(sim_count(SKUA_SIM_CLOCK, 0), 3);
}

static int poll_clock(struct turn *turn, const struct act *act)
{
    return turn_now(turn) < *(const uint64_t *)act->arg ? perform(turn, continues(UINT64_MAX)) : 0;
}

TEST(clock_ends_a_process_that_polls_it)
{
    uint64_t until = START + SKUA_MILLISECOND;
    world_open_sim(SEED, SIM_NO_FAULTS);
    assert_result(actor_run(actor_new(ACTS(does(poll_clock, &until), finishes(0)))), 0);
    assert_in_range(world_now(), until, until + SKUA_MICROSECOND);
}

/* A turn that begins before the instant of a run ends after it. */
TEST(clock_counts_the_last_turn_in_full)
{
    world_create_sim(SEED, (skua_sim_config){.step_ns = SKUA_SECOND});
    world_start();
    struct actor *actor = actor_start(NO_ACTS);
    assert_int_equal(run_until(START + 1), 0);
    assert_int_equal(actor->steps, 1);
    assert_int_equal(world_now(), START + SKUA_SECOND);
}

static uint64_t ticks_of(const struct actor *actor)
{
    uint64_t ticks = 0;
    for (size_t i = 0; i < actor->seen_count; i++) {
        ticks += actor->seen[i].value;
    }
    return ticks;
}

/* Turns that take longer than a period: the ticks still add up. */
TEST(ticker_tells_of_the_ticks_that_a_slow_process_missed)
{
    world_create_sim(SEED, (skua_sim_config){.step_ns = 10 * SKUA_MILLISECOND});
    world_start();
    struct actor *actor = actor_new(ACTS(ticker(1, SKUA_MILLISECOND), awaits(20), finishes(0)));
    assert_result(actor_run(actor), 0);
    const uint64_t ticks = ticks_of(actor);
    assert_true(ticks >= 100);
    assert_int_equal(actor->seen[actor->seen_count - 1].tick_time,
                     START + ticks * SKUA_MILLISECOND);
}

#define CROWD 1000

static void ignore_record(void *arg, const skua_sim_record *record)
{
    (void)arg;
    (void)record;
}

TEST(hour_of_a_thousand_tickers)
{
    const uint64_t hour = 3600 * SKUA_SECOND;
    struct actor *actors[CROWD];
    world_create_sim(SEED, (skua_sim_config){.on_record = ignore_record}); /* it would be long */
    world_start();
    for (size_t i = 0; i < CROWD; i++) {
        actors[i] = actor_start(ACTS(ticker(1, (10 + i % 11) * SKUA_SECOND)));
    }
    assert_int_equal(run_until(START + hour), 1);
    assert_int_equal(world_now(), START + hour);
    for (size_t i = 0; i < CROWD; i++) { /* the last tick may fall just behind the hour */
        const uint64_t ticks = 3600 / (10 + i % 11);
        assert_in_range(ticks_of(actors[i]), ticks - 1, ticks);
    }
}

TEST(end_of_time_is_reached_and_survived)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_start(
        ACTS(ticker(1, SKUA_DURATION_MAX), timer(2, UINT64_MAX - 1), timer(3, SKUA_FOREVER)));
    assert_true(run_until(UINT64_MAX - 1) >= 0);
    assert_int_equal(world_now(), UINT64_MAX - 1);
    assert_in_range(actor->seen_count, 1, 3); /* two ticks; the timer may round up to never */
    struct actor *asleep = actor_start(sleep_and_finish(SKUA_DURATION_MAX));
    world_settle();
    assert_int_equal(asleep->steps, 1); /* its time never comes */
    assert_int_equal(world_now(), UINT64_MAX - 1);
    assert_int_equal(skua_process_wait(world_runtime(), asleep->pid, SKUA_SECOND, NULL),
                     SKUA_E_AT_REST);
    assert_int_equal(world_terminate(asleep->pid), 0);
}

/* ---- waiting for a process ---- */

TEST(process_run_takes_virtual_time)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    assert_result(actor_run(actor_new(sleep_and_finish(1000 * SKUA_SECOND))), 0);
    assert_true(world_now() >= START + 1000 * SKUA_SECOND);
}

TEST(process_wait_times_out_in_virtual_time)
{
    skua_exit exit = {.error = SKUA_E_USER};
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_start(sleep_and_finish(5 * SKUA_SECOND));
    const struct {
        uint64_t timeout;
        int result;
        uint64_t now;
    } waits[] = {{0, SKUA_E_TIMEOUT, START}, {SKUA_SECOND, SKUA_E_TIMEOUT, START + SKUA_SECOND}};
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        assert_int_equal(skua_process_wait(world_runtime(), actor->pid, waits[i].timeout, &exit),
                         waits[i].result);
        assert_int_equal(world_now(), waits[i].now);
        assert_int_equal(exit.error, SKUA_E_USER);
    }
    assert_int_equal(skua_process_wait(world_runtime(), actor->pid, 5 * SKUA_SECOND, &exit), 0);
    assert_int_equal(exit.error, 0);
    assert_true(skua_pid_equal(exit.pid, actor->pid));
    assert_int_equal(skua_process_wait(world_runtime(), actor->pid, 0, &exit), SKUA_E_NO_PROCESS);
}

TEST(process_that_waits_for_nothing_is_at_rest)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_new(NO_ACTS);
    assert_int_equal(actor_try_run(actor, NULL), SKUA_E_AT_REST);
    assert_int_equal(world_stats().live, 1);
    assert_int_equal(actor->closes, 0);
    assert_int_equal(skua_process_wait(world_runtime(), actor->pid, SKUA_FOREVER, NULL),
                     SKUA_E_AT_REST);
    assert_int_equal(skua_process_wait(world_runtime(), actor->pid, SKUA_SECOND, NULL),
                     SKUA_E_TIMEOUT);
    assert_int_equal(world_cancel(actor->pid, 0), 0);
    assert_int_equal(skua_process_wait(world_runtime(), actor->pid, SKUA_FOREVER, NULL), 0);
    assert_int_equal(actor->closes, 1);
}

/* ---- completing after a while ---- */

static const struct seen *run_later(uint64_t delay)
{
    struct actor *actor = actor_new(ACTS(yields(1, LATER, 0, delay), awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    return &actor->seen[0];
}

TEST(complete_after_brings_error_or_result)
{
    open_with_later((skua_sim_config){0});
    assert_in_range(run_later(0)->now, START, START + SKUA_MICROSECOND); /* in the next turn */
    const struct seen *latest = run_later(SKUA_DURATION_MAX);
    assert_true(latest->now > SKUA_DURATION_MAX);
    assert_int_equal(latest->value, SKUA_DURATION_MAX);
    /* More is refused, so the handler fails with that. */
    assert_int_equal(run_later(SKUA_DURATION_MAX + 1)->error, SKUA_E_INVALID);
}

/* A result that the call has taken, whatever it returned. */
static int complete_after(skua_runtime *runtime, skua_completion completion, uint64_t delay_ns,
                          int error)
{
    struct tracked result = {0};
    const int returned =
        skua_sim_complete_after(runtime, completion, delay_ns, error, tracked_payload(0, &result));
    assert_drops(&result, 1, 1);
    return returned;
}

TEST(complete_after_with_bad_arguments_drops_the_result)
{
    struct api threads;
    api_run(&threads, 1);
    world_create_sim(SEED, (skua_sim_config){0});
    struct desk *desk = desk_open();
    skua_runtime *runtime = world_runtime();
    assert_int_equal(complete_after(runtime, (skua_completion){0}, 0, 0), SKUA_E_NOT_STARTED);
    world_start();
    struct actor *actor = actor_start(ACTS(yields(1, DESK_KEEP, 0, 0)));
    world_settle();
    const skua_completion kept = desk->kept[0];
    assert_int_equal(complete_after(NULL, kept, 0, 0), SKUA_E_INVALID);
    assert_int_equal(complete_after(threads.runtime, kept, 0, 0), SKUA_E_INVALID);
    assert_int_equal(complete_after(runtime, kept, 0, 1), SKUA_E_INVALID);
    assert_int_equal(complete_after(runtime, kept, SKUA_DURATION_MAX + 1, 0), SKUA_E_INVALID);
    world_settle();
    assert_saw_nothing(actor);
    assert_int_equal(skua_sim_complete_after(runtime, kept, 5, SKUA_E_USER, skua_payload_empty(0)),
                     0);
    world_settle();
    assert_saw(actor, completion(1, SKUA_E_USER));
    assert_int_equal(skua_runtime_stop(runtime, SKUA_SECOND), 0);
    assert_int_equal(complete_after(runtime, kept, 0, 0), SKUA_E_STOPPED);
    api_stop(&threads);
}

static int complete_three_times(void *arg, skua_command *command, skua_payload *result)
{
    struct tracked *results = arg;
    (void)result;
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(skua_sim_complete_after(command->runtime, command->completion, 30 - i, 0,
                                                 tracked_payload(0, &results[i])),
                         0);
    }
    return SKUA_PENDING;
}

TEST(complete_after_the_first_is_late)
{
    struct tracked results[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
    world_create_sim(SEED, (skua_sim_config){0});
    world_register(LATER, complete_three_times, results);
    world_start();
    struct actor *actor = actor_new(ACTS(yields(1, LATER, 0, 0), awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, completion_of(1, 0, 3)); /* the one that was due first */
    world_settle();
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(world_stats().late_completions, 2);
}

static int complete_in_two_seconds(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    assert_int_equal(skua_sim_complete_after(command->runtime, command->completion, 2 * SKUA_SECOND,
                                             0, tracked_payload(0, arg)),
                     0);
    return SKUA_PENDING;
}

TEST(complete_after_the_deadline_is_late)
{
    struct tracked result = {0};
    world_create_sim(SEED, (skua_sim_config){0});
    world_register(LATER, complete_in_two_seconds, &result);
    world_start();
    struct actor *actor =
        actor_new(ACTS(until(START + SKUA_SECOND, yields(1, LATER, 0, 0)), awaits(1), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_saw(actor, completion(1, SKUA_E_TIMEOUT));
    assert_drops(&result, 1, 0);
    assert_true(world_now() < START + 2 * SKUA_SECOND);
    world_settle(); /* what comes too late is still on the agenda */
    assert_int_equal(world_now(), START + 2 * SKUA_SECOND);
    assert_drops(&result, 1, 1);
}
