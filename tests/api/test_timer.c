/* SPDX-License-Identifier: MIT */
/* Sleeping and timers: each ends at its time and never before, and with its process. */
#include "base/monotonic.h"
#include "desk.h"
#include "timers.h"

#define MANY 1000

/* ---- sleeping ---- */

static void check_sleep(struct actor *actor, uint64_t duration_ns)
{
    const uint64_t due = world_now() + duration_ns;
    actor_perform(actor, ACTS(sleeps(7, duration_ns)));
    assert_waits_until(firing_time(due));
    world_advance_to(due - 1);
    look_at_timers();
    world_advance_to(firing_time(due) > due ? firing_time(due) - 1 : due - 1);
    look_at_timers();
    assert_then_saw_nothing(actor);
    world_advance_to(firing_time(due));
    assert_then_saw(actor, completion(7, 0));
    assert_int_equal(actor->seen[actor->seen_count - 1].now, firing_time(due));
}

TEST(sleep_of_any_length_ends_at_its_time_and_never_before)
{
    static const uint64_t durations[] = {1, 2, RESOLUTION - 1, RESOLUTION, RESOLUTION + 1,
                                         MILLISECOND, 17 * SECOND, 24 * HOUR, 1, 8766 * HOUR,
                                         876600 * HOUR, 3 * MILLISECOND,
                                         /* Nothing is longer than this. */
                                         SKUA_DURATION_MAX};
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    for (size_t i = 0; i < COUNT_OF(durations); i++) {
        check_sleep(actor, durations[i]);
    }
    assert_int_equal(timers_fired(), COUNT_OF(durations));
    assert_int_equal(timers_armed(), 0);
}

TEST(sleep_that_ends_with_a_span_is_not_rounded)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    world_advance_to(firing_time(START));
    check_sleep(actor, RESOLUTION);
    check_sleep(actor, 1000 * RESOLUTION);
    assert_int_equal(world_now(), firing_time(START) + 1001 * RESOLUTION);
}

TEST(sleep_is_counted_from_the_end_of_its_step)
{
    const uint64_t end = firing_time(START + HOUR + SECOND);
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    actor_perform_until_held(actor, ACTS(sleeps(1, SECOND), holds()));
    world_set_clock(START + HOUR);
    actor_release(actor);
    assert_saw_nothing(actor);
    assert_waits_until(end);
    world_advance_to(end);
    assert_saw(actor, completion(1, 0));
}

TEST(sleep_of_no_time_ends_at_once)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(sleeps(1, 0)));
    world_settle();
    assert_saw(actor, completion(1, 0));
    assert_int_equal(actor->seen[0].now, START);
    assert_int_equal(timers_fired(), 0); /* no timer was needed */
    assert_int_equal(virtual_wait_calls(&world->time), 0);
}

TEST(duration_that_is_negative_or_too_long_is_refused)
{
    test_of_steps("a task keeps the node of an event until it receives the next");
    static const uint64_t bad[] = {SKUA_DURATION_MAX + 1, (uint64_t)-1, (uint64_t)INT64_MIN,
                                   (uint64_t)-SKUA_SECOND};
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    const uint64_t nodes = nodes_in_use();
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        actor_perform(actor, ACTS(refused(sleeps(1, bad[i]), SKUA_E_DURATION),
                                  refused(ticker(2, bad[i]), SKUA_E_DURATION)));
    }
    actor_perform(actor, ACTS(refused(ticker(3, 0), SKUA_E_DURATION)));
    world_advance(HOUR);
    assert_saw_nothing(actor); /* no yield, no completion */
    assert_int_equal(virtual_wait_calls(&world->time), 0);
    assert_int_equal(nodes_in_use(), nodes);
}

/* Late in its life the clock shows instants from which a long duration leads beyond its end. */
TEST(durations_that_lead_beyond_all_time_never_end)
{
    world_open_virtual();
    struct actor *actor = actor_start(NO_ACTS);
    world_advance_to(SKUA_FOREVER - SKUA_DURATION_MAX + HOUR);
    actor_perform(
        actor, ACTS(sleeps(0, SKUA_DURATION_MAX), ticker(1, SKUA_DURATION_MAX), sleeps(2, SECOND)));
    world_advance(2 * SECOND);
    assert_then_saw(actor, completion(2, 0));
    world_advance_to(SKUA_FOREVER - 1);
    assert_then_saw_nothing(actor);
    actor_perform(actor, ACTS(cancels(0), cancels(1)));
    assert_then_saw(actor, completion(0, SKUA_E_CANCELLED), completion(1, SKUA_E_CANCELLED));
}

/* ---- timers ---- */

TEST(timer_whose_time_has_passed_fires_at_once)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(timer(0, 0), timer(1, 1), timer(2, START - HOUR),
                                           timer(3, START - 1), timer(4, START)));
    world_settle();
    assert_completed_each_once(actor, 5, 0);
    assert_int_equal(virtual_wait_calls(&world->time), 0);
}

TEST(timer_for_ever_ends_only_when_it_is_cancelled)
{
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(timer(1, SKUA_FOREVER)));
    world_settle();
    assert_int_equal(world_info(actor->pid).state, SKUA_PROCESS_BLOCKED);
    assert_int_equal(virtual_wait_calls(&world->time), 0); /* nobody needs to look at the clock */
    world_advance(SKUA_DURATION_MAX);
    assert_saw_nothing(actor);
    actor_perform(actor, ACTS(cancels(1)));
    assert_saw(actor, completion(1, SKUA_E_CANCELLED));
}

TEST(timer_that_is_centuries_away_does_not_fire_before)
{
    const uint64_t last = UINT64_MAX / RESOLUTION * RESOLUTION; /* the last end of a span */
    world_open_virtual();
    struct actor *actor =
        actor_start(ACTS(timer(1, last), timer(2, last - HOUR), timer(3, START + HOUR)));
    world_advance_to(firing_time(START + HOUR));
    assert_then_saw(actor, completion(3, 0));
    world_advance_to(firing_time(last - HOUR) - 1);
    assert_then_saw_nothing(actor);
    world_advance_to(firing_time(last - HOUR));
    assert_then_saw(actor, completion(2, 0));
    world_advance_to(last - 1);
    look_at_timers();
    assert_then_saw_nothing(actor);
    world_advance_to(last);
    assert_then_saw(actor, completion(1, 0));
}

/* Ten timers in disorder: the one with tag i is due i + 1 distances from now. */
#define SHUFFLED 10

static struct actor *start_shuffled_timers(uint64_t distance)
{
    static const uint64_t order[SHUFFLED] = {5, 2, 9, 0, 7, 3, 8, 1, 6, 4};
    struct act acts[SHUFFLED];
    for (size_t i = 0; i < SHUFFLED; i++) {
        acts[i] = timer(order[i], world_now() + (order[i] + 1) * distance);
    }
    struct actor *actor = actor_new(script_copy(acts, SHUFFLED));
    actor->type.mailbox_limit = 1; /* which does not concern what timers bring */
    actor_submit(actor);
    return actor;
}

TEST(timers_fire_in_order_as_time_passes)
{
    world_open_virtual();
    struct actor *actor = start_shuffled_timers(SECOND);
    for (uint64_t i = 0; i < SHUFFLED; i++) {
        const uint64_t instant = firing_time(START + (i + 1) * SECOND);
        assert_waits_until(instant);
        world_advance_to(instant);
        assert_then_saw(actor, completion(i, 0));
    }
}

TEST(timers_that_are_all_overdue_come_in_order)
{
    static const uint64_t distances[] = {RESOLUTION, 3 * MILLISECOND, SECOND, HOUR};
    world_open_virtual_with((skua_runtime_config){.worker_count = 1});
    for (size_t i = 0; i < COUNT_OF(distances); i++) {
        struct actor *actor = start_shuffled_timers(distances[i]);
        world_advance(24 * HOUR);
        assert_completed_each_once(actor, SHUFFLED, 0);
        for (size_t tag = 0; tag < SHUFFLED; tag++) {
            assert_int_equal(actor->seen[tag].tag, tag);
        }
    }
}

/* Ten decades of distances are equally likely, so that all levels of a wheel are used. */
static uint64_t random_distance(uint64_t *seed)
{
    uint64_t distance = 1;
    for (uint64_t decade = seed_next(seed) % 11; decade > 0; decade--) {
        distance *= 10;
    }
    return distance * (1 + seed_next(seed) % 1000) / 10;
}

static size_t count_due(const uint64_t *deadlines, size_t count)
{
    size_t due = 0;
    for (size_t i = 0; i < count; i++) {
        due += firing_time(deadlines[i]) <= world_now();
    }
    return due;
}

TEST(timers_of_one_process_each_fire_once_and_never_early)
{
    uint64_t seed = seed_choose();
    uint64_t deadlines[MANY];
    struct act *acts = test_alloc(MANY * sizeof *acts);
    world_open_virtual();
    for (size_t i = 0; i < MANY; i++) {
        deadlines[i] = START + 1 + random_distance(&seed);
        acts[i] = timer(i, deadlines[i]);
    }
    struct actor *actor = actor_start((struct script){acts, MANY});
    world_settle();
    assert_int_equal(timers_armed(), MANY);
    while (actor->seen_count < MANY) {
        world_advance(random_distance(&seed));
        assert_int_equal(actor->seen_count, count_due(deadlines, MANY)); /* nor late */
    }
    assert_completed_each_once(actor, MANY, 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(actor->seen[i].now >= firing_time(deadlines[actor->seen[i].tag]));
    }
    assert_int_equal(timers_fired(), MANY);
    assert_int_equal(timers_armed(), 0);
}

/* Sleeps for random times, one after the other. */
#define NAPS 5

struct sleeper {
    struct actor *actor;
    uint64_t durations[NAPS];
};

static void start_sleeper(struct sleeper *sleeper, uint64_t *seed)
{
    struct act acts[2 * NAPS + 1];
    for (uint64_t i = 0; i < NAPS; i++) {
        sleeper->durations[i] = 1 + seed_next(seed) % SECOND;
        acts[2 * i] = sleeps(i, sleeper->durations[i]);
        acts[2 * i + 1] = expects(completion(i, 0));
    }
    acts[2 * NAPS] = finishes(0);
    sleeper->actor = actor_start(script_copy(acts, COUNT_OF(acts)));
}

static void assert_never_woke_early(const struct sleeper *sleeper)
{
    uint64_t asleep_since = START;
    assert_completed_each_once(sleeper->actor, NAPS, 0);
    for (size_t i = 0; i < NAPS; i++) {
        const uint64_t woke = sleeper->actor->seen[i].now;
        assert_true(woke >= asleep_since + sleeper->durations[i]);
        asleep_since = woke;
    }
}

TEST(timers_of_many_processes_all_fire_and_never_early)
{
    uint64_t seed = seed_choose();
    struct sleeper *sleepers = test_alloc(2 * MANY * sizeof *sleepers);
    world_open_virtual();
    for (size_t i = 0; i < 2 * MANY; i++) {
        start_sleeper(&sleepers[i], &seed);
    }
    world_settle();
    assert_int_equal(timers_armed(), 2 * MANY);
    for (int i = 0; i < 1000 && world_stats().live > 0; i++) {
        world_advance(1 + seed_next(&seed) % (SECOND / 10));
    }
    assert_int_equal(world_stats().live, 0);
    assert_int_equal(timers_fired(), 2 * MANY * NAPS);
    for (size_t i = 0; i < 2 * MANY; i++) {
        assert_never_woke_early(&sleepers[i]);
    }
}

/* ---- the clock of a step ---- */

struct readings {
    uint64_t now[2];
};

static int read_clock(struct turn *turn, const struct act *act)
{
    struct readings *readings = act->arg;
    readings->now[0] = skua_now(turn->ctx);
    world_set_clock(START + SECOND); /* a long step */
    readings->now[1] = skua_now(turn->ctx);
    return 0;
}

TEST(context_tells_the_time_of_the_runtimes_clock)
{
    struct readings readings;
    world_open_virtual();
    struct actor *actor = actor_start(ACTS(does(read_clock, &readings), sleeps(1, 0)));
    world_settle();
    assert_int_equal(actor->init_now, START);
    assert_int_equal(readings.now[0], START);
    assert_int_equal(readings.now[1], START); /* the same throughout a step */
    assert_saw(actor, completion(1, 0));
    assert_int_equal(actor->seen[0].now, START + SECOND);
}

/* ---- timers end with their process ---- */

/* All kinds of them, with tags below MANY. */
static struct actor *start_with_many_timers(void)
{
    struct act acts[MANY];
    for (uint64_t i = 0; i < MANY; i++) {
        const struct act kinds[] = {sleeps(i, SECOND + i * MILLISECOND), timer(i, START + HOUR + i),
                                    ticker(i, SECOND + i), timer(i, SKUA_FOREVER),
                                    until(START + 5 * SECOND, yields(i, DESK_KEEP, 0, 0))};
        acts[i] = kinds[i % 5];
    }
    struct actor *actor = actor_start(script_copy(acts, MANY));
    world_settle();
    assert_int_equal(timers_armed(), MANY - MANY / 5);
    return actor;
}

/* No last acts: it is terminated. */
static void check_end_with_many_timers(struct script last)
{
    struct desk *desk = desk_open_virtual();
    const uint64_t nodes = nodes_in_use();
    for (int round = 0; round < 3; round++) {
        struct actor *actor = start_with_many_timers();
        if (last.count > 0) {
            actor_tell(actor, last);
        } else {
            assert_int_equal(world_terminate(actor->pid), 0);
        }
        world_await_live(0);
        assert_int_equal(nodes_in_use(), nodes);
        assert_int_equal(timers_armed(), 0);
        assert_int_equal(desk_complete(desk, 0, 0, 0), SKUA_E_LATE);
        assert_saw_nothing(actor);
    }
    world_advance(24 * HOUR);
    assert_int_equal(timers_fired(), 0);
    assert_waits_for_nothing();
}

TEST(end_by_termination_ends_all_timers)
{
    check_end_with_many_timers(NO_ACTS);
}

TEST(end_by_a_result_ends_all_timers)
{
    check_end_with_many_timers(ACTS(sleeps(1, SECOND), finishes(0)));
}

TEST(end_by_an_error_ends_all_timers)
{
    check_end_with_many_timers(ACTS(sleeps(1, SECOND), fails(SKUA_E_USER - 1)));
}

/* One worker is held in the process's step, the other one fires. */
static void check_end_after_firing(struct act yield)
{
    world_open_virtual_with((skua_runtime_config){.worker_count = 2});
    const uint64_t nodes = nodes_in_use();
    struct actor *actor = actor_start(ACTS(yield));
    actor_perform_until_held(actor, ACTS(holds()));
    advance_until_fired(firing_time(START + SECOND));
    assert_int_equal(world_terminate(actor->pid), 0);
    actor_release(actor);
    world_await_live(0);
    assert_saw_nothing(actor);
    assert_int_equal(timers_armed(), 0);
    assert_int_equal(nodes_in_use(), nodes);
}

TEST(end_of_a_process_drops_the_sleep_that_has_fired)
{
    check_end_after_firing(sleeps(1, SECOND));
}

TEST(end_of_a_process_drops_the_tick_that_waits)
{
    check_end_after_firing(ticker(1, SECOND));
}

static void doze(bool ignores_cancel)
{
    (void)desk_open_virtual();
    for (int i = 0; i < MANY; i++) {
        struct actor *actor =
            actor_new(ACTS(sleeps(1, HOUR), ticker(2, HOUR), timer(3, SKUA_FOREVER),
                           until(START + HOUR, yields(4, DESK_KEEP, 0, 0))));
        actor->ignores_cancel = ignores_cancel;
        actor_submit(actor);
    }
    assert_waits_until(firing_time(START + HOUR));
    assert_int_equal(timers_armed(), 3 * MANY);
}

TEST(stop_does_not_wait_for_timers)
{
    doze(false);
    world_close();
    assert_int_equal(world_now(), START);
}

TEST(stop_by_force_does_not_wait_for_timers)
{
    doze(true);
    world_expect_survivors();
    world_close();
    assert_int_equal(world_now(), START);
}

/* ---- the real clock ---- */

/* The sleep of no time brings the time of the step that asks for all else. */
TEST(real_time_brings_everything_and_nothing_early)
{
    world_create((skua_runtime_config){0});
    (void)desk_open();
    world_start();
    const uint64_t due = monotonic_ns() + 3 * MILLISECOND;
    struct actor *ticks =
        actor_new(ACTS(sleeps(0, 0), awaits(1), ticker(1, MILLISECOND), awaits(3), finishes(0)));
    actor_submit(ticks);
    struct actor *sleeper = actor_new(
        ACTS(sleeps(0, 0), awaits(1), sleeps(1, 2 * MILLISECOND), timer(2, due),
             until(due + MILLISECOND, yields(3, DESK_KEEP, 0, 0)), awaits(3), finishes(0)));
    assert_result(actor_run(sleeper), 0);
    actor_await_end(ticks);

    const uint64_t earliest[] = {0, sleeper->seen[0].now + 2 * MILLISECOND, due, due + MILLISECOND};
    assert_then_saw_in_any_order(sleeper, completion(0, 0), completion(1, 0), completion(2, 0),
                                 completion(3, SKUA_E_TIMEOUT));
    for (size_t i = 0; i < sleeper->seen_count; i++) {
        assert_true(sleeper->seen[i].now >= earliest[sleeper->seen[i].tag]);
    }
    uint64_t tick_time = ticks->seen[1].tick_time - ticks->seen[1].value * MILLISECOND;
    assert_true(tick_time >= ticks->seen[0].now);
    for (size_t i = 1; i < 4; i++) {
        const struct seen *seen = &ticks->seen[i];
        tick_time += seen->value * MILLISECOND;
        assert_int_equal(seen->type, SKUA_EVENT_TICK);
        assert_int_equal(seen->tick_time, tick_time);
        assert_true(seen->now >= tick_time);
    }
}
