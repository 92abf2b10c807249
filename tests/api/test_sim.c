/* SPDX-License-Identifier: MIT */
/* The simulator as a driver: its clock, running, stepping and waiting, who may drive it and when,
 * stopping. What it makes of the seed, and its faults, are in test_sim_faults.c. */
#include <unistd.h>

#include "sim_support.h"

#define SEED          7
#define COMMAND_LATER 1
#define START         SKUA_SIM_START_NS

static const skua_sim_faults no_faults = {0};

/* ---- processes that several tests use ---- */

/* Sleeps as long as `arg` says, then finishes. */
static int sleeper(void *arg, const struct sim_turn *turn)
{
    const uint64_t *duration = arg;
    if (sim_completion(turn, 1) != NULL) {
        return sim_done(turn);
    }
    return turn->count == 0 ? skua_step_sleep(turn->out, 1, *duration) : 0;
}

/* Finishes when it is asked to. */
static int obedient(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    (void)api_finish_if_cancelled(turn->events, turn->count, turn->out);
    return 0;
}

/* Never finishes. */
static int deaf(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    (void)turn;
    return 0;
}

/* Counts messages until it is cancelled. */
static int count_messages(void *arg, const struct sim_turn *turn)
{
    uint64_t *messages = arg;
    for (size_t i = 0; i < turn->count; i++) {
        *messages += turn->events[i].type == SKUA_EVENT_MESSAGE;
    }
    void *memory = skua_context_alloc(turn->ctx, 16); /* so that the faults have something to do */
    skua_context_free(turn->ctx, memory, 16);
    (void)api_finish_if_cancelled(turn->events, turn->count, turn->out);
    return 0;
}

/* A double that completes after as long as `arg` says, with the same number as result. */
static int complete_later(void *arg, skua_command *command, skua_payload *result)
{
    const uint64_t *delay = arg;
    (void)result;
    const int error = skua_sim_complete_after(command->runtime, command->completion, *delay, 0,
                                              skua_payload_u64(0, *delay));
    return error != 0 ? error : SKUA_PENDING;
}

static int never_called(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    return SKUA_E_USER;
}

static void create_with_double(struct sim_scene *scene, skua_sim_config config,
                               skua_handler_fn *simulate, void *arg)
{
    sim_create(scene, SEED, config);
    const skua_handler handler = {
        .name = "later", .run = never_called, .arg = arg, .simulate = simulate};
    assert_int_equal(skua_command_register(scene->runtime, COMMAND_LATER, &handler), 0);
    api_start(&scene->api);
}

/* Asks for COMMAND_LATER once; notes when its completion came. */
struct asker {
    uint64_t came_at;
    uint64_t result;
    int error;
};

static int ask(void *arg, const struct sim_turn *turn)
{
    struct asker *asker = arg;
    const skua_event *completion = sim_completion(turn, 1);
    if (completion != NULL) {
        asker->came_at = skua_context_now(turn->ctx);
        asker->result = skua_payload_to_u64(&completion->payload);
        asker->error = completion->error;
        return sim_done(turn);
    }
    if (turn->count == 0) {
        return skua_step_yield(turn->out, COMMAND_LATER, 1, skua_payload_empty(0));
    }
    return 0;
}

/* ---- configuration ---- */

TEST(sim_config_is_copied_with_the_defaults_filled_in)
{
    struct sim_scene scene;
    skua_runtime_config config;
    sim_create(&scene, SEED, (skua_sim_config){.faults.message_delay = 5});
    assert_int_equal(skua_runtime_config_read(scene.runtime, &config), 0);
    assert_int_equal(config.worker_count, 1);
    assert_int_equal(config.spare_limit, 0);
    assert_int_equal(config.seed, SEED);
    assert_ptr_equal(config.alloc_arg, &scene.api.memory);
    assert_non_null(config.sim);
    assert_int_equal(config.sim->step_ns, SKUA_MICROSECOND);
    assert_int_equal(config.sim->faults.delay_max_ns, 10 * SKUA_MILLISECOND);
    assert_int_equal(config.sim->faults.message_delay, 5);
    assert_int_equal(skua_runtime_destroy(scene.runtime), 0);
    assert_true(counting_allocator_is_clean(&scene.api.memory));
    sim_trace_free(&scene.trace);
}

static int create_with(struct counting_allocator *memory, skua_sim_config config)
{
    skua_runtime *runtime = NULL;
    counting_allocator_init(memory);
    const int error = skua_runtime_create(
        &runtime,
        &(skua_runtime_config){.alloc = counting_allocate, .alloc_arg = memory, .sim = &config});
    assert_int_equal(skua_runtime_destroy(runtime), 0);
    assert_true(counting_allocator_is_clean(memory));
    return error;
}

TEST(sim_config_out_of_range_is_refused)
{
    struct counting_allocator memory;
    const uint32_t over = SIM_ALWAYS + 1;
    const skua_sim_config bad[] = {
        {.step_ns = SKUA_DURATION_MAX + 1}, {.faults.delay_max_ns = SKUA_DURATION_MAX + 1},
        {.faults.message_delay = over},     {.faults.handler_error = over},
        {.faults.slow_completion = over},   {.faults.no_memory = over},
        {.faults.spurious_wake = over},     {.faults.process_kill = UINT32_MAX},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(create_with(&memory, bad[i]), SKUA_E_INVALID);
    }
    const skua_sim_config widest = {
        .step_ns = SKUA_DURATION_MAX,
        .faults = {.message_delay = SIM_ALWAYS,
                   .handler_error = SIM_ALWAYS,
                   .slow_completion = SIM_ALWAYS,
                   .no_memory = SIM_ALWAYS,
                   .spurious_wake = SIM_ALWAYS,
                   .process_kill = SIM_ALWAYS,
                   .delay_max_ns = SKUA_DURATION_MAX},
    };
    assert_int_equal(create_with(&memory, widest), 0);
}

/* Every single allocation of a simulated runtime's creation fails once. */
TEST(sim_create_without_memory_leaves_nothing_behind)
{
    const skua_sim_config sim = {0};
    uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed) {
        struct counting_allocator memory;
        skua_runtime *runtime = NULL;
        counting_allocator_init(&memory);
        counting_allocator_fail_once(&memory, failures + 1);
        const int error = skua_runtime_create(
            &runtime,
            &(skua_runtime_config){.alloc = counting_allocate, .alloc_arg = &memory, .sim = &sim});
        failed = error == SKUA_E_NO_MEMORY;
        assert_true(failed || error == 0);
        assert_int_equal(skua_runtime_destroy(runtime), 0);
        assert_true(counting_allocator_is_clean(&memory));
    }
    assert_true(failures > 3);
}

/* ---- no threads ---- */

static int block_a_little(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_take(input);
    return 0;
}

static int begin_end_and_hand_over(void *arg, const struct sim_turn *turn)
{
    uint32_t *threads = arg;
    const skua_event *completion = sim_completion(turn, 1);
    if (completion != NULL) {
        assert_int_equal(completion->error, 0);
        return sim_done(turn);
    }
    assert_int_equal(skua_blocking_begin(turn->ctx), 0);
    *threads = os_thread_count();
    assert_int_equal(skua_blocking_end(turn->ctx), 0);
    return skua_step_blocking(turn->out, 1, NULL, block_a_little, skua_payload_u64(0, 1));
}

TEST(sim_has_no_threads)
{
    struct sim_scene scene;
    const uint32_t before = os_wait_alone();
    uint32_t threads = 0;
    sim_create(&scene, SEED, (skua_sim_config){0});
    const skua_blocking_pool pool = {.name = SKUA_BLOCKING_DEFAULT, .sim_safe = true};
    assert_int_equal(skua_blocking_register(scene.runtime, &pool), 0);
    api_start(&scene.api);
    assert_int_equal(os_thread_count(), before);
    assert_int_equal(sim_run_actor(&scene, begin_end_and_hand_over, &threads).error, 0);
    assert_int_equal(threads, before);
    assert_int_equal(os_thread_count(), before);
    sim_end(&scene);
    assert_int_equal(os_thread_count(), before);
}

/* Nothing moves unless somebody drives. */
TEST(sim_runs_only_while_it_is_driven)
{
    struct sim_scene scene;
    struct sim_actor actor = {.function = obedient};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_message_send(scene.runtime, actor.pid, skua_payload_u64(0, 1)), 0);
    assert_int_equal(actor.steps, 0);
    assert_int_equal(scene.trace.count, 0);
    sim_run_to_rest(&scene);
    assert_true(actor.steps > 0);
    sim_end(&scene);
    assert_int_equal(actor.closes, 1);
}

/* ---- the clock ---- */

TEST(sim_clock_starts_at_one_second_and_rests)
{
    struct sim_scene scene;
    sim_create(&scene, SEED, (skua_sim_config){0});
    assert_int_equal(skua_sim_now(scene.runtime), SKUA_SECOND);
    api_start(&scene.api);
    sim_run_to_rest(&scene);
    assert_int_equal(skua_sim_step(scene.runtime), 0);
    assert_int_equal(skua_sim_now(scene.runtime), START);
    sim_end(&scene);
}

TEST(sim_run_stops_at_its_instant)
{
    struct sim_scene scene;
    uint64_t duration = 5 * SKUA_SECOND;
    struct sim_actor actor = {.function = sleeper, .arg = &duration};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_sim_run(scene.runtime, START + 2 * SKUA_SECOND), 1);
    assert_int_equal(skua_sim_now(scene.runtime), START + 2 * SKUA_SECOND);
    assert_int_equal(actor.steps, 1);
    /* Instants that have passed bring nothing, and the clock does not go back. */
    assert_int_equal(skua_sim_run(scene.runtime, START), 1);
    assert_int_equal(skua_sim_run(scene.runtime, 0), 1);
    assert_int_equal(skua_sim_now(scene.runtime), START + 2 * SKUA_SECOND);
    assert_int_equal(actor.steps, 1);
    sim_run_to_rest(&scene);
    assert_int_equal(actor.closes, 1);
    const uint64_t end = skua_sim_now(scene.runtime);
    assert_in_range(end, START + duration, START + duration + 2 * SKUA_CLOCK_RESOLUTION_NS);
    /* With nothing left the clock goes where it is sent. */
    assert_int_equal(skua_sim_run(scene.runtime, end + SKUA_SECOND), 0);
    assert_int_equal(skua_sim_now(scene.runtime), end + SKUA_SECOND);
    sim_end(&scene);
}

/* The instant itself is not part of the run. */
TEST(sim_run_leaves_what_happens_at_its_instant)
{
    struct sim_scene scene;
    uint64_t delay = 3 * SKUA_SECOND;
    struct asker asker = {0};
    struct sim_actor actor = {.function = ask, .arg = &asker};
    create_with_double(&scene, (skua_sim_config){0}, complete_later, &delay);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_sim_run(scene.runtime, START + delay), 1);
    assert_int_equal(actor.closes, 0);
    assert_int_equal(skua_sim_now(scene.runtime), START + delay);
    assert_int_equal(skua_sim_run(scene.runtime, START + delay + 1), 0);
    assert_int_equal(actor.closes, 1);
    assert_int_equal(asker.came_at, START + delay);
    assert_int_equal(asker.result, delay);
    sim_end(&scene);
}

TEST(sim_step_does_one_thing)
{
    struct sim_scene scene;
    uint64_t duration = SKUA_SECOND;
    struct sim_actor actor = {.function = sleeper, .arg = &duration};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_sim_step(scene.runtime), 1); /* a turn */
    assert_int_equal(actor.steps, 1);
    assert_int_equal(skua_sim_now(scene.runtime), START + SKUA_MICROSECOND);
    assert_int_equal(sim_count(&scene, SKUA_SIM_CLOCK, 0), 0);
    while (actor.steps == 1) { /* a jump, or two if the timer lies far out */
        assert_int_equal(skua_sim_step(scene.runtime), 1);
    }
    assert_in_range(sim_count(&scene, SKUA_SIM_CLOCK, 0), 1, 5);
    assert_in_range(skua_sim_now(scene.runtime), START + duration,
                    START + duration + 2 * SKUA_CLOCK_RESOLUTION_NS);
    assert_int_equal(actor.closes, 1);
    assert_int_equal(skua_sim_step(scene.runtime), 0);
    assert_int_equal(skua_sim_step(scene.runtime), 0);
    sim_end(&scene);
}

struct watch {
    skua_runtime *runtime;
    uint64_t begins[4]; /* the clock in each step */
    unsigned count;
};

static int look_at_clock(void *arg, const struct sim_turn *turn)
{
    struct watch *watch = arg;
    const uint64_t now = skua_context_now(turn->ctx);
    assert_int_equal(skua_sim_now(watch->runtime), now);
    watch->begins[watch->count++] = now;
    assert_int_equal(skua_context_now(turn->ctx), now);
    return watch->count == COUNT_OF(watch->begins)
               ? sim_done(turn)
               : skua_step_yield(turn->out, COMMAND_LATER, 1, skua_payload_empty(0));
}

/* Time stands still within a turn, goes on by step_ns after it, and otherwise jumps. */
TEST(sim_clock_moves_between_turns_only)
{
    struct sim_scene scene;
    uint64_t delay = 100;
    const uint64_t step_ns = 7;
    create_with_double(&scene, (skua_sim_config){.step_ns = step_ns}, complete_later, &delay);
    struct watch watch = {.runtime = scene.runtime};
    assert_int_equal(sim_run_actor(&scene, look_at_clock, &watch).error, 0);
    for (uint64_t i = 0; i < COUNT_OF(watch.begins); i++) {
        assert_int_equal(watch.begins[i], START + i * delay);
    }
    assert_int_equal(skua_sim_now(scene.runtime), START + 3 * delay + step_ns);
    assert_int_equal(sim_count(&scene, SKUA_SIM_CLOCK, 0), 3);
    sim_end(&scene);
}

/* Runs again and again until some time has come. */
static int poll_the_clock(void *arg, const struct sim_turn *turn)
{
    const uint64_t *until = arg;
    if (skua_context_now(turn->ctx) >= *until) {
        return sim_done(turn);
    }
    skua_step_continue(turn->out);
    return 0;
}

TEST(sim_clock_ends_a_process_that_polls_it)
{
    struct sim_scene scene;
    uint64_t until = START + SKUA_MILLISECOND;
    sim_begin(&scene, SEED, no_faults);
    assert_int_equal(sim_run_actor(&scene, poll_the_clock, &until).error, 0);
    assert_in_range(skua_sim_now(scene.runtime), until, until + SKUA_MICROSECOND);
    sim_end(&scene);
}

/* A turn that begins before the instant of a run ends after it. */
TEST(sim_clock_counts_the_last_turn_in_full)
{
    struct sim_scene scene;
    struct sim_actor actor = {.function = obedient};
    sim_create(&scene, SEED, (skua_sim_config){.step_ns = SKUA_SECOND});
    api_start(&scene.api);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_sim_run(scene.runtime, START + 1), 0);
    assert_int_equal(actor.steps, 1);
    assert_int_equal(skua_sim_now(scene.runtime), START + SKUA_SECOND);
    sim_end(&scene);
}

struct late_ticks {
    uint64_t count;
    uint64_t last;
};

static int count_late_ticks(void *arg, const struct sim_turn *turn)
{
    struct late_ticks *ticks = arg;
    for (size_t i = 0; i < turn->count; i++) {
        if (turn->events[i].type == SKUA_EVENT_TICK) {
            ticks->count += skua_tick_count(&turn->events[i]);
            ticks->last = skua_tick_time(&turn->events[i]);
        }
    }
    if (ticks->count >= 100) {
        return sim_done(turn);
    }
    return turn->count == 0 ? skua_step_ticker(turn->out, 1, SKUA_MILLISECOND) : 0;
}

/* Turns that take longer than a period: the ticks still add up. */
TEST(sim_ticker_tells_of_the_ticks_that_a_slow_process_missed)
{
    struct sim_scene scene;
    struct late_ticks ticks = {0};
    sim_create(&scene, SEED, (skua_sim_config){.step_ns = 10 * SKUA_MILLISECOND});
    api_start(&scene.api);
    struct sim_actor actor = {.function = count_late_ticks, .arg = &ticks};
    sim_submit(&scene, &actor);
    sim_run_to_rest(&scene);
    assert_int_equal(actor.closes, 1);
    assert_in_range(actor.steps, 5, 30);
    assert_int_equal(ticks.last, START + ticks.count * SKUA_MILLISECOND);
    sim_end(&scene);
}

/* ---- an hour ---- */

#define CROWD 1000

struct patrol {
    uint64_t period;
    uint64_t rounds;
};

static int patrol_step(void *arg, const struct sim_turn *turn)
{
    struct patrol *patrol = arg;
    if (api_finish_if_cancelled(turn->events, turn->count, turn->out)) {
        return 0;
    }
    for (size_t i = 0; i < turn->count; i++) {
        patrol->rounds +=
            turn->events[i].type == SKUA_EVENT_TICK ? skua_tick_count(&turn->events[i]) : 0;
    }
    return turn->count == 0 ? skua_step_ticker(turn->out, 1, patrol->period) : 0;
}

TEST(sim_hour_of_a_thousand_tickers)
{
    static struct patrol patrols[CROWD];
    static struct sim_actor actors[CROWD];
    struct sim_scene scene;
    const uint64_t hour = 3600 * SKUA_SECOND;
    memset(actors, 0, sizeof actors);
    /* Without a trace: it would be long. */
    memset(&scene, 0, sizeof scene);
    api_create(&scene.api, (skua_runtime_config){.sim = &(skua_sim_config){0}});
    scene.runtime = scene.api.runtime;
    api_start(&scene.api);
    for (size_t i = 0; i < CROWD; i++) {
        patrols[i] = (struct patrol){.period = (10 + i % 11) * SKUA_SECOND};
        actors[i] = (struct sim_actor){.function = patrol_step, .arg = &patrols[i]};
        sim_submit(&scene, &actors[i]);
    }
    assert_int_equal(skua_sim_run(scene.runtime, START + hour), 1);
    assert_int_equal(skua_sim_now(scene.runtime), START + hour);
    for (size_t i = 0; i < CROWD; i++) { /* the last round may fall just behind the hour */
        const uint64_t rounds = hour / patrols[i].period;
        assert_in_range(patrols[i].rounds, rounds - 1, rounds);
    }
    sim_end(&scene);
}

/* ---- the end of time ---- */

static int set_timers_at_the_end(void *arg, const struct sim_turn *turn)
{
    unsigned *fired = arg;
    if (turn->count == 0) {
        const int error = skua_step_ticker(turn->out, 1, SKUA_DURATION_MAX);
        assert_int_equal(skua_step_timer(turn->out, 2, UINT64_MAX - 1), 0);
        assert_int_equal(skua_step_timer(turn->out, 3, SKUA_FOREVER), 0);
        return error;
    }
    for (size_t i = 0; i < turn->count; i++) {
        *fired += turn->events[i].type != SKUA_EVENT_CANCEL;
    }
    (void)api_finish_if_cancelled(turn->events, turn->count, turn->out);
    return 0;
}

TEST(sim_end_of_time_is_reached_and_survived)
{
    struct sim_scene scene;
    unsigned fired = 0;
    struct sim_actor actor = {.function = set_timers_at_the_end, .arg = &fired};
    uint64_t beyond = SKUA_DURATION_MAX;
    struct sim_actor asleep = {.function = sleeper, .arg = &beyond};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    assert_true(skua_sim_run(scene.runtime, UINT64_MAX - 1) >= 0);
    assert_int_equal(skua_sim_now(scene.runtime), UINT64_MAX - 1);
    assert_in_range(fired, 1, 3); /* two ticks; the timer may round up to never */
    sim_submit(&scene, &asleep);
    sim_run_to_rest(&scene);
    assert_int_equal(asleep.steps, 1); /* its time never comes */
    assert_int_equal(skua_sim_now(scene.runtime), UINT64_MAX - 1);
    assert_int_equal(skua_process_wait(scene.runtime, asleep.pid, SKUA_SECOND, NULL),
                     SKUA_E_AT_REST);
    assert_int_equal(skua_process_terminate(scene.runtime, asleep.pid), 0);
    sim_end(&scene);
    assert_int_equal(actor.closes, 1);
    assert_int_equal(asleep.closes, 1);
}

/* ---- waiting for a process ---- */

TEST(sim_process_run_takes_virtual_time)
{
    struct sim_scene scene;
    uint64_t duration = 1000 * SKUA_SECOND;
    sim_begin(&scene, SEED, no_faults);
    assert_int_equal(sim_run_actor(&scene, sleeper, &duration).error, 0);
    assert_true(skua_sim_now(scene.runtime) >= START + duration);
    sim_end(&scene);
}

TEST(sim_process_wait_times_out_in_virtual_time)
{
    struct sim_scene scene;
    uint64_t duration = 5 * SKUA_SECOND;
    struct sim_actor actor = {.function = sleeper, .arg = &duration};
    skua_exit exit = {.error = SKUA_E_USER};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    const uint64_t before = skua_sim_now(scene.runtime);
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, 0, &exit), SKUA_E_TIMEOUT);
    assert_int_equal(skua_sim_now(scene.runtime), before);
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, SKUA_SECOND, &exit),
                     SKUA_E_TIMEOUT);
    assert_int_equal(skua_sim_now(scene.runtime), before + SKUA_SECOND);
    assert_int_equal(exit.error, SKUA_E_USER);
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, duration, &exit), 0);
    assert_int_equal(exit.error, 0);
    assert_true(skua_pid_equal(exit.pid, actor.pid));
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, 0, &exit), SKUA_E_NO_PROCESS);
    sim_end(&scene);
}

TEST(sim_process_that_waits_for_nothing_is_at_rest)
{
    struct sim_scene scene;
    struct sim_actor actor = {.function = obedient};
    sim_begin(&scene, SEED, no_faults);
    skua_payload input = api_world_payload(&actor);
    assert_int_equal(skua_process_run(scene.runtime, &sim_actor_type, NULL, &input, 1, NULL),
                     SKUA_E_AT_REST);
    /* It lives on. */
    assert_int_equal(api_stats(&scene.api).live, 1);
    assert_int_equal(actor.closes, 0);
    actor.pid = sim_find(&scene, SKUA_SIM_STEP, 0, 0)->pid;
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, SKUA_FOREVER, NULL),
                     SKUA_E_AT_REST);
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, SKUA_SECOND, NULL),
                     SKUA_E_TIMEOUT);
    assert_int_equal(skua_process_cancel(scene.runtime, actor.pid, 0), 0);
    assert_int_equal(skua_process_wait(scene.runtime, actor.pid, SKUA_FOREVER, NULL), 0);
    assert_int_equal(actor.closes, 1);
    sim_end(&scene);
}

/* ---- completing after a while ---- */

TEST(sim_complete_after_brings_error_or_result)
{
    struct sim_scene scene;
    uint64_t delay = 0;
    struct asker asker = {0};
    create_with_double(&scene, (skua_sim_config){0}, complete_later, &delay);
    assert_int_equal(sim_run_actor(&scene, ask, &asker).error, 0);
    assert_in_range(asker.came_at, START,
                    START + SKUA_MICROSECOND); /* no delay: in the next turn */
    delay = SKUA_DURATION_MAX;
    assert_int_equal(sim_run_actor(&scene, ask, &asker).error, 0);
    assert_true(asker.came_at > SKUA_DURATION_MAX);
    assert_int_equal(asker.result, SKUA_DURATION_MAX);
    delay = SKUA_DURATION_MAX + 1; /* refused, so the double fails with that */
    assert_int_equal(sim_run_actor(&scene, ask, &asker).error, 0);
    assert_int_equal(asker.error, SKUA_E_INVALID);
    sim_end(&scene);
}

/* Keeps the completion for the test. */
static int keep(void *arg, skua_command *command, skua_payload *result)
{
    skua_completion *completion = arg;
    (void)result;
    *completion = command->completion;
    return SKUA_PENDING;
}

TEST(sim_complete_after_with_bad_arguments_drops_the_result)
{
    struct sim_scene scene;
    struct api threads;
    skua_completion completion = {0};
    struct tracked results[6] = {0};
    struct asker asker = {0};
    struct sim_actor actor = {.function = ask, .arg = &asker};
    api_run(&threads, 1);
    sim_create(&scene, SEED, (skua_sim_config){0});
    const skua_handler handler = {
        .name = "keep", .run = keep, .arg = &completion, .sim_safe = true};
    assert_int_equal(skua_command_register(scene.runtime, COMMAND_LATER, &handler), 0);
    assert_int_equal(
        skua_sim_complete_after(scene.runtime, completion, 0, 0, tracked_payload(0, &results[0])),
        SKUA_E_NOT_STARTED);
    api_start(&scene.api);
    sim_submit(&scene, &actor);
    sim_run_to_rest(&scene);
    assert_int_equal(
        skua_sim_complete_after(NULL, completion, 0, 0, tracked_payload(0, &results[1])),
        SKUA_E_INVALID);
    assert_int_equal(
        skua_sim_complete_after(threads.runtime, completion, 0, 0, tracked_payload(0, &results[2])),
        SKUA_E_INVALID);
    assert_int_equal(
        skua_sim_complete_after(scene.runtime, completion, 0, 1, tracked_payload(0, &results[3])),
        SKUA_E_INVALID);
    assert_int_equal(skua_sim_complete_after(scene.runtime, completion, SKUA_DURATION_MAX + 1, 0,
                                             tracked_payload(0, &results[4])),
                     SKUA_E_INVALID);
    assert_drops(results, 5, 1);
    sim_run_to_rest(&scene);
    assert_int_equal(actor.closes, 0); /* none of that was a completion */
    assert_int_equal(
        skua_sim_complete_after(scene.runtime, completion, 5, SKUA_E_USER, skua_payload_empty(0)),
        0);
    sim_run_to_rest(&scene);
    assert_int_equal(asker.error, SKUA_E_USER);
    assert_int_equal(skua_runtime_stop(scene.runtime, 0), 0);
    assert_int_equal(
        skua_sim_complete_after(scene.runtime, completion, 0, 0, tracked_payload(0, &results[5])),
        SKUA_E_STOPPED);
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(skua_runtime_destroy(scene.runtime), 0);
    assert_true(counting_allocator_is_clean(&scene.api.memory));
    sim_trace_free(&scene.trace);
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

static int end_with_first_result(void *arg, const struct sim_turn *turn)
{
    uint64_t *value = arg;
    skua_event *completion = sim_completion(turn, 1);
    if (completion == NULL) {
        return skua_step_yield(turn->out, COMMAND_LATER, 1, skua_payload_empty(0));
    }
    *value = tracked_value(&completion->payload);
    return sim_done(turn);
}

TEST(sim_complete_after_the_first_is_late)
{
    struct sim_scene scene;
    struct tracked results[3] = {{.value = 1}, {.value = 2}, {.value = 3}};
    uint64_t value = 0;
    create_with_double(&scene, (skua_sim_config){0}, complete_three_times, results);
    assert_int_equal(sim_run_actor(&scene, end_with_first_result, &value).error, 0);
    assert_int_equal(value, 3); /* the one that was due first */
    sim_run_to_rest(&scene);
    assert_drops(results, COUNT_OF(results), 1);
    assert_int_equal(api_stats(&scene.api).late_completions, 2);
    sim_end(&scene);
}

static int give_up_after_a_second(void *arg, const struct sim_turn *turn)
{
    int *error = arg;
    const skua_event *completion = sim_completion(turn, 1);
    if (completion != NULL) {
        *error = completion->error;
        return sim_done(turn);
    }
    assert_int_equal(skua_step_yield(turn->out, COMMAND_LATER, 1, skua_payload_empty(0)), 0);
    return skua_step_deadline(turn->out, skua_context_deadline(turn->ctx, SKUA_SECOND));
}

static int complete_tracked_later(void *arg, skua_command *command, skua_payload *result)
{
    (void)result;
    (void)skua_sim_complete_after(command->runtime, command->completion, 2 * SKUA_SECOND, 0,
                                  tracked_payload(0, arg));
    return SKUA_PENDING;
}

TEST(sim_complete_after_the_deadline_is_late)
{
    struct sim_scene scene;
    struct tracked result = {0};
    int error = 0;
    create_with_double(&scene, (skua_sim_config){0}, complete_tracked_later, &result);
    assert_int_equal(sim_run_actor(&scene, give_up_after_a_second, &error).error, 0);
    assert_int_equal(error, SKUA_E_TIMEOUT);
    assert_drops(&result, 1, 0);
    assert_true(skua_sim_now(scene.runtime) < START + 2 * SKUA_SECOND);
    sim_run_to_rest(&scene); /* what comes too late is still on the agenda */
    assert_int_equal(skua_sim_now(scene.runtime), START + 2 * SKUA_SECOND);
    assert_drops(&result, 1, 1);
    sim_end(&scene);
}

/* ---- descriptors ---- */

static int wait_for_descriptors(void *arg, const struct sim_turn *turn)
{
    const int *fds = arg;
    static unsigned refused;
    if (turn->count == 0) {
        refused = 0;
        assert_int_equal(skua_step_wait_readable(turn->out, 1, fds[0]), 0);
        return skua_step_wait_writable(turn->out, 2, fds[1]);
    }
    for (size_t i = 0; i < turn->count; i++) {
        refused += turn->events[i].error == SKUA_E_NOT_SIMULATED;
    }
    return refused == 2 ? sim_done(turn) : 0;
}

TEST(sim_descriptors_are_refused)
{
    struct sim_scene scene;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    sim_begin(&scene, SEED, no_faults);
    assert_int_equal(sim_run_actor(&scene, wait_for_descriptors, fds).error, 0);
    assert_int_equal(skua_descriptor_close(scene.runtime, fds[0]), 0);
    assert_int_equal(skua_descriptor_close(scene.runtime, fds[0]), SKUA_E_DESCRIPTOR);
    assert_int_equal(close(fds[1]), 0);
    sim_end(&scene);
}

/* ---- who may drive ---- */

TEST(sim_functions_need_a_simulation)
{
    struct api threads;
    api_run(&threads, 1);
    skua_runtime *const runtimes[] = {NULL, threads.runtime};
    for (size_t i = 0; i < COUNT_OF(runtimes); i++) {
        assert_int_equal(skua_sim_run(runtimes[i], SKUA_FOREVER), SKUA_E_INVALID);
        assert_int_equal(skua_sim_step(runtimes[i]), SKUA_E_INVALID);
        assert_int_equal(skua_sim_now(runtimes[i]), 0);
        assert_int_equal(skua_sim_hash(runtimes[i]), 0);
    }
    api_stop(&threads);
}

TEST(sim_is_driven_between_start_and_stop)
{
    struct sim_scene scene;
    struct sim_actor actor = {.function = obedient};
    skua_payload input = api_world_payload(&actor);
    sim_create(&scene, SEED, (skua_sim_config){0});
    assert_int_equal(skua_sim_run(scene.runtime, SKUA_FOREVER), SKUA_E_NOT_STARTED);
    assert_int_equal(skua_sim_step(scene.runtime), SKUA_E_NOT_STARTED);
    assert_int_equal(skua_process_run(scene.runtime, &sim_actor_type, NULL, &input, 1, NULL),
                     SKUA_E_NOT_STARTED);
    assert_int_equal(skua_runtime_stop(scene.runtime, 0), SKUA_E_NOT_STARTED);
    api_start(&scene.api);
    assert_int_equal(skua_runtime_start(scene.runtime), SKUA_E_STARTED);
    assert_int_equal(skua_runtime_destroy(scene.runtime), SKUA_E_BUSY);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_runtime_stop(scene.runtime, SKUA_SECOND), 0);
    assert_int_equal(skua_runtime_stop(scene.runtime, SKUA_SECOND), 0);
    assert_int_equal(skua_runtime_start(scene.runtime), SKUA_E_STOPPED);
    assert_int_equal(skua_sim_run(scene.runtime, SKUA_FOREVER), SKUA_E_STOPPED);
    assert_int_equal(skua_sim_step(scene.runtime), SKUA_E_STOPPED);
    assert_int_equal(skua_process_submit(scene.runtime, &sim_actor_type, NULL, NULL, 0, NULL),
                     SKUA_E_STOPPED);
    assert_true(skua_sim_now(scene.runtime) > START);
    assert_int_equal(skua_runtime_destroy(scene.runtime), 0);
    assert_true(counting_allocator_is_clean(&scene.api.memory));
    sim_trace_free(&scene.trace);
}

/* Everything that drives, from where it must not. */
static void try_to_drive(skua_runtime *runtime, skua_pid pid, int expected, int expected_of_wait)
{
    assert_int_equal(skua_sim_run(runtime, SKUA_FOREVER), expected);
    assert_int_equal(skua_sim_run(runtime, 0), expected);
    assert_int_equal(skua_sim_step(runtime), expected);
    assert_int_equal(skua_process_wait(runtime, pid, SKUA_FOREVER, NULL), expected_of_wait);
    assert_int_equal(skua_runtime_stop(runtime, 0), expected);
}

struct misuse {
    struct sim_scene *scene;
    skua_pid other;
    unsigned tries;
};

static int drive_in_a_step(void *arg, const struct sim_turn *turn)
{
    struct misuse *misuse = arg;
    misuse->tries++;
    try_to_drive(misuse->scene->runtime, misuse->other, SKUA_E_INSIDE_STEP, SKUA_E_INSIDE_STEP);
    assert_int_equal(skua_runtime_destroy(misuse->scene->runtime), SKUA_E_BUSY);
    assert_int_equal(skua_runtime_start(misuse->scene->runtime), SKUA_E_STARTED);
    return sim_completion(turn, 1) != NULL
               ? sim_done(turn)
               : skua_step_yield(turn->out, COMMAND_LATER, 1, skua_payload_empty(0));
}

static int drive_in_a_handler(void *arg, skua_command *command, skua_payload *result)
{
    struct misuse *misuse = arg;
    (void)result;
    misuse->tries++;
    try_to_drive(command->runtime, misuse->other, SKUA_E_INSIDE_STEP, SKUA_E_INSIDE_STEP);
    return 0;
}

TEST(sim_is_not_driven_inside_a_step)
{
    struct sim_scene scene;
    struct misuse misuse = {.scene = &scene};
    struct sim_actor other = {.function = obedient};
    create_with_double(&scene, (skua_sim_config){0}, drive_in_a_handler, &misuse);
    sim_submit(&scene, &other);
    misuse.other = other.pid;
    assert_int_equal(sim_run_actor(&scene, drive_in_a_step, &misuse).error, 0);
    assert_int_equal(misuse.tries, 3);
    sim_end(&scene);
}

static struct misuse *blocked_misuse;

static int drive_in_a_blocking_function(skua_payload *input, skua_payload *result)
{
    skua_runtime *runtime = blocked_misuse->scene->runtime;
    (void)input;
    (void)result;
    blocked_misuse->tries++;
    /* As on threads, waiting as such is not forbidden here; but this thread is taken. */
    try_to_drive(runtime, blocked_misuse->other, SKUA_E_INSIDE_STEP, SKUA_E_BUSY);
    skua_pid pid = blocked_misuse->other;
    return skua_message_send(runtime, pid, skua_payload_u64(0, 1)); /* what does not wait works */
}

static int block_once(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    const skua_event *completion = sim_completion(turn, 1);
    if (completion != NULL) {
        assert_int_equal(completion->error, 0);
        return sim_done(turn);
    }
    return skua_step_blocking(turn->out, 1, "pool", drive_in_a_blocking_function,
                              skua_payload_empty(0));
}

TEST(sim_is_not_driven_in_a_blocking_function)
{
    struct sim_scene scene;
    struct misuse misuse = {.scene = &scene};
    uint64_t messages = 0;
    struct sim_actor other = {.function = count_messages, .arg = &messages};
    blocked_misuse = &misuse;
    sim_create(&scene, SEED, (skua_sim_config){0});
    const skua_blocking_pool pool = {.name = "pool", .sim_safe = true};
    assert_int_equal(skua_blocking_register(scene.runtime, &pool), 0);
    api_start(&scene.api);
    sim_submit(&scene, &other);
    misuse.other = other.pid;
    assert_int_equal(sim_run_actor(&scene, block_once, NULL).error, 0);
    assert_int_equal(misuse.tries, 1);
    sim_run_to_rest(&scene);
    assert_int_equal(messages, 1);
    sim_end(&scene);
}

struct other_driver {
    struct sim_scene *scene;
    skua_pid pid;
    struct sim_actor actor;
    pthread_t thread;
    int results[6];
};

static void *drive_elsewhere(void *arg)
{
    struct other_driver *driver = arg;
    skua_runtime *runtime = driver->scene->runtime;
    skua_payload input = api_world_payload(&driver->actor);
    driver->results[0] = skua_sim_run(runtime, SKUA_FOREVER);
    driver->results[1] = skua_sim_step(runtime);
    driver->results[2] = skua_process_wait(runtime, driver->pid, SKUA_FOREVER, NULL);
    driver->results[3] = skua_runtime_stop(runtime, SKUA_FOREVER);
    driver->results[4] = skua_runtime_destroy(runtime);
    driver->results[5] = skua_process_run(runtime, &sim_actor_type, NULL, &input, 1,
                                          NULL); /* started all the same */
    return NULL;
}

/* A step that lasts until another thread has tried. */
static int let_others_try(void *arg, const struct sim_turn *turn)
{
    struct other_driver *driver = arg;
    driver->pid = skua_context_self(turn->ctx);
    assert_int_equal(pthread_create(&driver->thread, NULL, drive_elsewhere, driver), 0);
    assert_int_equal(pthread_join(driver->thread, NULL), 0);
    return sim_done(turn);
}

TEST(sim_is_driven_by_one_thread_at_a_time)
{
    struct sim_scene scene;
    struct other_driver driver = {.scene = &scene, .actor = {.function = obedient}};
    sim_begin(&scene, SEED, no_faults);
    assert_int_equal(sim_run_actor(&scene, let_others_try, &driver).error, 0);
    for (size_t i = 0; i < COUNT_OF(driver.results); i++) {
        assert_int_equal(driver.results[i], SKUA_E_BUSY);
    }
    sim_run_to_rest(&scene);
    assert_int_equal(driver.actor.steps, 1);
    sim_end(&scene);
    assert_int_equal(driver.actor.closes, 1);
}

static void *run_to_rest(void *arg)
{
    struct other_driver *driver = arg;
    driver->results[0] = skua_sim_run(driver->scene->runtime, START + SKUA_SECOND);
    return NULL;
}

/* One after the other is fine. */
TEST(sim_is_driven_by_one_thread_after_another)
{
    struct sim_scene scene;
    uint64_t duration = 3 * SKUA_SECOND;
    struct sim_actor actor = {.function = sleeper, .arg = &duration};
    struct other_driver driver = {.scene = &scene};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    assert_int_equal(pthread_create(&driver.thread, NULL, run_to_rest, &driver), 0);
    assert_int_equal(pthread_join(driver.thread, NULL), 0);
    assert_int_equal(driver.results[0], 1);
    assert_int_equal(actor.steps, 1);
    sim_run_to_rest(&scene);
    assert_int_equal(actor.closes, 1);
    sim_end(&scene);
}

/* ---- a simulation inside another runtime ---- */

struct nested {
    skua_runtime *outer;
    struct sim_scene inner;
    int stop_in_step;
    int stop_in_blocking;
};

/* Drives a whole simulation, with a function on a pool, and then sees where it is itself. */
static void drive_inner(struct nested *nested)
{
    uint32_t threads = 0;
    sim_create(&nested->inner, SEED, (skua_sim_config){0});
    const skua_blocking_pool pool = {.name = SKUA_BLOCKING_DEFAULT, .sim_safe = true};
    assert_int_equal(skua_blocking_register(nested->inner.runtime, &pool), 0);
    api_start(&nested->inner.api);
    assert_int_equal(sim_run_actor(&nested->inner, begin_end_and_hand_over, &threads).error, 0);
    sim_end(&nested->inner);
}

static struct nested *nested_in_blocking;

static int drive_inner_in_blocking(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    drive_inner(nested_in_blocking);
    nested_in_blocking->stop_in_blocking = skua_runtime_stop(nested_in_blocking->outer, 0);
    return 0;
}

static int drive_inner_in_step(void *arg, const struct sim_turn *turn)
{
    struct nested *nested = arg;
    if (sim_completion(turn, 1) != NULL) {
        return sim_done(turn);
    }
    drive_inner(nested);
    nested->stop_in_step = skua_runtime_stop(nested->outer, 0);
    return skua_step_blocking(turn->out, 1, "pool", drive_inner_in_blocking, skua_payload_empty(0));
}

TEST(sim_inside_a_step_of_another_runtime_leaves_it_alone)
{
    struct sim_scene outer;
    struct nested nested = {0};
    sim_create(&outer, SEED, (skua_sim_config){0});
    const skua_blocking_pool pool = {.name = "pool", .sim_safe = true};
    assert_int_equal(skua_blocking_register(outer.runtime, &pool), 0);
    api_start(&outer.api);
    nested.outer = outer.runtime;
    nested_in_blocking = &nested;
    assert_int_equal(sim_run_actor(&outer, drive_inner_in_step, &nested).error, 0);
    assert_int_equal(nested.stop_in_step, SKUA_E_INSIDE_STEP);
    assert_int_equal(nested.stop_in_blocking, SKUA_E_INSIDE_STEP);
    sim_end(&outer);
}

/* ---- other threads ---- */

#define VISITORS 4
#define VISITS   500

struct visitor {
    skua_runtime *runtime;
    skua_pid counter;
    uint64_t accepted;
    uint64_t submitted;
    uint64_t seen;
};

static int finish_at_once(void *self, skua_context *ctx, skua_event *events, size_t count,
                          skua_step *out)
{
    (void)self;
    (void)ctx;
    (void)events;
    (void)count;
    skua_step_done(out, skua_payload_empty(0));
    return 0;
}

/* Large, so that its state is allocated by the thread that submits it. */
static const skua_process_type short_lived = {
    .name = "short-lived", .state_size = 200, .step = finish_at_once};

static void visit(void *arg)
{
    struct visitor *visitor = arg;
    uint64_t last = 0;
    for (int i = 0; i < VISITS; i++) {
        skua_process_info info;
        const uint64_t now = skua_sim_now(visitor->runtime);
        if (now < last) {
            return; /* and the numbers will not fit */
        }
        last = now;
        visitor->accepted +=
            skua_message_send(visitor->runtime, visitor->counter, skua_payload_u64(0, 1)) == 0;
        visitor->submitted +=
            skua_process_submit(visitor->runtime, &short_lived, NULL, NULL, 0, NULL) == 0;
        visitor->seen += skua_process_info_read(visitor->runtime, visitor->counter, &info) == 0;
    }
}

struct driver_thread {
    struct sim_scene *scene;
    struct tally finish;
    pthread_t thread;
};

static void *drive_until_told(void *arg)
{
    struct driver_thread *driver = arg;
    while (tally_count(&driver->finish) == 0) {
        (void)skua_sim_run(driver->scene->runtime,
                           skua_sim_now(driver->scene->runtime) + SKUA_MILLISECOND);
    }
    return NULL;
}

TEST(sim_takes_calls_from_other_threads)
{
    struct sim_scene scene;
    uint64_t messages = 0;
    struct sim_actor actor = {.function = count_messages, .arg = &messages};
    struct visitor callers[VISITORS] = {0};
    struct driver_thread driver = {.scene = &scene};
    sim_begin(&scene, SEED,
              (skua_sim_faults){.no_memory = SIM_ALWAYS / 2, .spurious_wake = SIM_ALWAYS / 2});
    sim_submit(&scene, &actor);
    tally_init(&driver.finish);
    assert_int_equal(pthread_create(&driver.thread, NULL, drive_until_told, &driver), 0);
    for (size_t i = 0; i < VISITORS; i++) {
        callers[i] = (struct visitor){.runtime = scene.runtime, .counter = actor.pid};
    }
    api_in_threads(VISITORS, visit, callers, sizeof callers[0]);
    tally_add(&driver.finish, 1);
    assert_int_equal(pthread_join(driver.thread, NULL), 0);
    sim_run_to_rest(&scene);
    for (size_t i = 0; i < VISITORS; i++) {
        assert_int_equal(callers[i].accepted, VISITS);
        assert_int_equal(callers[i].submitted, VISITS);
        assert_int_equal(callers[i].seen, VISITS);
    }
    assert_int_equal(messages, VISITORS * VISITS);
    assert_int_equal(api_stats(&scene.api).live, 1);
    sim_end(&scene);
}

/* ---- stopping ---- */

struct survivors {
    skua_pid pids[4];
    unsigned count;
    uint64_t at;
    skua_runtime *runtime;
};

static void note_survivor(void *arg, const skua_process_info *info)
{
    struct survivors *survivors = arg;
    survivors->pids[survivors->count++] = info->pid;
    survivors->at = skua_sim_now(survivors->runtime);
    assert_int_equal(skua_sim_run(survivors->runtime, SKUA_FOREVER), SKUA_E_BUSY);
}

static void begin_with_survivors(struct sim_scene *scene, struct survivors *survivors)
{
    memset(scene, 0, sizeof *scene);
    api_create(&scene->api, (skua_runtime_config){.sim = &(skua_sim_config){0},
                                                  .on_survivor = note_survivor,
                                                  .on_survivor_arg = survivors});
    scene->runtime = survivors->runtime = scene->api.runtime;
    api_start(&scene->api);
}

static int finish_two_seconds_after_the_cancel(void *arg, const struct sim_turn *turn)
{
    (void)arg;
    if (sim_completion(turn, 1) != NULL) {
        return sim_done(turn);
    }
    return turn->count > 0 ? skua_step_sleep(turn->out, 1, 2 * SKUA_SECOND) : 0;
}

TEST(sim_stop_gives_processes_their_virtual_time)
{
    struct sim_scene scene;
    struct survivors survivors = {0};
    struct sim_actor actor = {.function = finish_two_seconds_after_the_cancel};
    begin_with_survivors(&scene, &survivors);
    sim_submit(&scene, &actor);
    assert_int_equal(skua_runtime_stop(scene.runtime, 3 * SKUA_SECOND), 0);
    assert_true(skua_sim_now(scene.runtime) >= START + 2 * SKUA_SECOND);
    assert_true(skua_sim_now(scene.runtime) < START + 3 * SKUA_SECOND);
    assert_int_equal(survivors.count, 0);
    assert_int_equal(actor.closes, 1);
    sim_end(&scene);
}

static void stop_with_a_deaf_one(uint64_t timeout, uint64_t end)
{
    struct sim_scene scene;
    struct survivors survivors = {0};
    struct sim_actor actors[] = {{.function = deaf}, {.function = obedient}};
    begin_with_survivors(&scene, &survivors);
    sim_submit(&scene, &actors[0]);
    sim_submit(&scene, &actors[1]);
    sim_run_to_rest(&scene);
    const uint64_t before = skua_sim_now(scene.runtime);
    assert_int_equal(skua_runtime_stop(scene.runtime, timeout), SKUA_E_TIMEOUT);
    if (timeout > 0) {
        assert_int_equal(survivors.count, 1);
        assert_true(skua_pid_equal(survivors.pids[0], actors[0].pid));
    } else {
        assert_int_equal(survivors.count, 2); /* nobody had time */
    }
    if (end != SKUA_FOREVER) {
        assert_int_equal(survivors.at, before + end);
    }
    assert_int_equal(actors[0].closes, 1);
    assert_int_equal(actors[1].closes, 1);
    assert_int_equal(skua_runtime_stop(scene.runtime, 0), 0);
    sim_end(&scene);
}

TEST(sim_stop_ends_those_that_do_not_finish)
{
    stop_with_a_deaf_one(5 * SKUA_SECOND, 5 * SKUA_SECOND);
    stop_with_a_deaf_one(0, 0);
    stop_with_a_deaf_one(SKUA_FOREVER, SKUA_FOREVER); /* at rest, it can wait no longer */
}

struct start_in_stop {
    int started;
    int registered;
    int submitted;
};

static int start_when_cancelled(void *arg, const struct sim_turn *turn)
{
    struct start_in_stop *calls = arg;
    if (api_finish_if_cancelled(turn->events, turn->count, turn->out)) {
        skua_runtime *runtime = skua_context_runtime(turn->ctx);
        const skua_handler handler = {.name = "late", .run = never_called};
        calls->started = skua_runtime_start(runtime);
        calls->registered = skua_command_register(runtime, 9, &handler);
        calls->submitted = skua_process_submit(runtime, &short_lived, NULL, NULL, 0, NULL);
    }
    return 0;
}

/* A stop holds a lock while it drives, so a step must not be made to wait for it. */
TEST(sim_stop_refuses_what_steps_ask_of_the_runtime)
{
    struct sim_scene scene;
    struct start_in_stop calls = {0};
    struct sim_actor actor = {.function = start_when_cancelled, .arg = &calls};
    sim_begin(&scene, SEED, no_faults);
    sim_submit(&scene, &actor);
    sim_end(&scene);
    assert_int_equal(calls.started, SKUA_E_STOPPED);
    assert_int_equal(calls.registered, SKUA_E_FROZEN);
    assert_int_equal(calls.submitted, SKUA_E_STOPPED);
    assert_int_equal(actor.closes, 1);
}

/* ---- stopping while things are on the agenda ---- */

struct full_agenda {
    struct tracked messages[3];
    struct tracked results[3];
    struct tracked inputs[3];
    skua_pid receiver;
    unsigned jobs_run;
};

static struct full_agenda *agenda_of_jobs;

static int must_not_run(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    agenda_of_jobs->jobs_run++;
    return 0;
}

static int promise_result(void *arg, skua_command *command, skua_payload *result)
{
    struct full_agenda *agenda = arg;
    const uint64_t i = skua_payload_to_u64(&command->input);
    (void)result;
    assert_int_equal(skua_sim_complete_after(command->runtime, command->completion,
                                             1000 * SKUA_SECOND, 0,
                                             tracked_payload(0, &agenda->results[i])),
                     0);
    return SKUA_PENDING;
}

/* Sends, asks and hands over three times each, and finishes without waiting. */
static int fill_agenda(void *arg, const struct sim_turn *turn)
{
    struct full_agenda *agenda = arg;
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(skua_context_send(turn->ctx, agenda->receiver,
                                           tracked_payload(0, &agenda->messages[i])),
                         0);
        assert_int_equal(skua_step_yield(turn->out, COMMAND_LATER, i, skua_payload_u64(0, i)), 0);
        assert_int_equal(skua_step_blocking(turn->out, 10 + i, "pool", must_not_run,
                                            tracked_payload(0, &agenda->inputs[i])),
                         0);
    }
    return sim_done(turn);
}

TEST(sim_stop_drops_what_is_on_the_agenda)
{
    struct sim_scene scene;
    struct full_agenda agenda = {0};
    struct sim_actor receiver = {.function = obedient};
    struct sim_actor sender = {.function = fill_agenda, .arg = &agenda};
    agenda_of_jobs = &agenda;
    sim_create(&scene, SEED,
               (skua_sim_config){.faults = {.message_delay = SIM_ALWAYS,
                                            .slow_completion = SIM_ALWAYS,
                                            .delay_max_ns = SKUA_DURATION_MAX}});
    const skua_blocking_pool pool = {.name = "pool", .sim_safe = true};
    const skua_handler handler = {
        .name = "promise", .run = never_called, .simulate = promise_result, .arg = &agenda};
    assert_int_equal(skua_blocking_register(scene.runtime, &pool), 0);
    assert_int_equal(skua_command_register(scene.runtime, COMMAND_LATER, &handler), 0);
    api_start(&scene.api);
    sim_submit(&scene, &receiver);
    agenda.receiver = receiver.pid;
    sim_submit(&scene, &sender);
    assert_int_equal(skua_sim_run(scene.runtime, START + SKUA_MILLISECOND), 1);
    assert_int_equal(sender.closes, 1);
    assert_drops(agenda.messages, 3, 0);
    assert_drops(agenda.results, 3, 0);
    assert_drops(agenda.inputs, 3, 0);
    sim_end(&scene); /* the memory is clean */
    assert_drops(agenda.messages, 3, 1);
    assert_drops(agenda.results, 3, 1);
    assert_drops(agenda.inputs, 3, 1);
    assert_int_equal(agenda.jobs_run, 0);
    assert_int_equal(receiver.closes, 1);
}

/* ---- two simulations ---- */

TEST(sim_pids_are_the_same_in_every_runtime)
{
    struct sim_scene scenes[2];
    struct sim_actor actors[2] = {{.function = obedient}, {.function = obedient}};
    for (size_t i = 0; i < 2; i++) {
        sim_begin(&scenes[i], SEED, no_faults);
        sim_submit(&scenes[i], &actors[i]);
    }
    assert_true(skua_pid_equal(actors[0].pid, actors[1].pid));
    sim_end(&scenes[0]);
    sim_end(&scenes[1]);
}
