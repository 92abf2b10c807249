/* SPDX-License-Identifier: MIT */
/* The simulator as a driver: its configuration, that it has no threads, and who may drive it when.
 * (What it makes of the clock, the seed and the faults is in other files.) */
#include <unistd.h>

#include "actor.h"
#include "desk.h"
#include "threads.h"

#define SEED  7
#define START SKUA_SIM_START_NS

#define COMMAND 100

static const skua_blocking_pool safe_pool = {.name = "pool", .sim_safe = true};

/* ---- configuration ---- */

TEST(config_is_copied_with_the_defaults_filled_in)
{
    skua_runtime_config config;
    world_create_sim(SEED, (skua_sim_config){.faults.message_delay = 5});
    assert_int_equal(skua_runtime_config_read(world_runtime(), &config), 0);
    assert_int_equal(config.worker_count, 1);
    assert_int_equal(config.spare_limit, SKUA_SPARES_NONE);
    assert_int_equal(config.seed, SEED);
    assert_ptr_equal(config.alloc_arg, &world->api->memory);
    assert_non_null(config.sim);
    assert_int_equal(config.sim->step_ns, SKUA_MICROSECOND);
    assert_int_equal(config.sim->faults.delay_max_ns, 10 * SKUA_MILLISECOND);
    assert_int_equal(config.sim->faults.message_delay, 5);
}

/* Creates and destroys one; nothing is left, whatever the outcome. The n-th allocation fails, if n
 * is not 0. */
static int create_with(skua_sim_config config, uint64_t n)
{
    struct counting_allocator memory;
    skua_runtime *runtime = NULL;
    counting_allocator_init(&memory);
    if (n > 0) {
        counting_allocator_fail_once(&memory, n);
    }
    const int error = skua_runtime_create(
        &runtime,
        &(skua_runtime_config){.alloc = counting_allocate, .alloc_arg = &memory, .sim = &config});
    assert_int_equal(skua_runtime_destroy(runtime), 0);
    assert_true(counting_allocator_is_clean(&memory));
    return error;
}

TEST(config_out_of_range_is_refused)
{
    const uint32_t over = SIM_ALWAYS + 1;
    const skua_sim_config bad[] = {
        {.step_ns = SKUA_DURATION_MAX + 1}, {.faults.delay_max_ns = SKUA_DURATION_MAX + 1},
        {.faults.message_delay = over},     {.faults.handler_error = over},
        {.faults.slow_completion = over},   {.faults.no_memory = over},
        {.faults.spurious_wake = over},     {.faults.process_kill = UINT32_MAX},
    };
    FOR_ROWS (config, bad) {
        assert_int_equal(create_with(*config, 0), SKUA_E_INVALID);
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
    assert_int_equal(create_with(widest, 0), 0);
}

/* Every single allocation fails once. */
TEST(create_without_memory_leaves_nothing_behind)
{
    uint64_t n = 1;
    for (int error = SKUA_E_NO_MEMORY; error != 0; n += error != 0) {
        error = create_with((skua_sim_config){0}, n);
        assert_true(error == 0 || error == SKUA_E_NO_MEMORY);
    }
    assert_true(n > 4);
}

/* ---- no threads ---- */

static int give_back(skua_payload *input, skua_payload *result)
{
    *result = skua_payload_take(input);
    return 0;
}

static int count_threads_while_blocking(struct turn *turn, const struct act *act)
{
    uint32_t *threads = act->arg;
    const int begun = skua_blocking_begin(turn->ctx);
    *threads = os_thread_count();
    return begun != 0 ? begun : skua_blocking_end(turn->ctx);
}

/* Blocks, has a function run on the pool, and finishes. */
static struct script block_both_ways(uint32_t *threads)
{
    return ACTS(does(count_threads_while_blocking, threads), offloads(1, "pool", give_back, 5),
                expects(completion_of(1, 0, 5)), finishes(0));
}

TEST(simulation_has_no_threads)
{
    const uint32_t before = os_wait_alone();
    uint32_t threads = 0;
    world_create_sim(SEED, (skua_sim_config){0});
    world_register_pool(safe_pool);
    world_start();
    assert_int_equal(os_thread_count(), before);
    assert_result(actor_run(actor_new(block_both_ways(&threads))), 0);
    assert_int_equal(threads, before);
    assert_int_equal(os_thread_count(), before);
    world_close();
    assert_int_equal(os_thread_count(), before);
}

TEST(simulation_moves_only_while_it_is_driven)
{
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_start(NO_ACTS);
    assert_int_equal(world_send(actor->pid, skua_payload_u64(0, 1)), 0);
    assert_int_equal(actor->steps, 0);
    assert_int_equal(world->sim.trace.count, 0);
    world_settle();
    assert_saw(actor, message(0, 1));
}

static int wait_readable(struct turn *turn, const struct act *act)
{
    return skua_yield_readable(turn->ctx, 0, *(const int *)act->arg, SKUA_FOREVER);
}

static int wait_writable(struct turn *turn, const struct act *act)
{
    return skua_yield_writable(turn->ctx, 1, *(const int *)act->arg, SKUA_FOREVER);
}

TEST(descriptors_are_not_simulated)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_new(
        ACTS(does(wait_readable, &fds[0]), does(wait_writable, &fds[1]), awaits(2), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_completed_each_once(actor, 2, SKUA_E_NOT_SIMULATED);
    assert_int_equal(skua_descriptor_close(world_runtime(), fds[0]), 0);
    assert_int_equal(skua_descriptor_close(world_runtime(), fds[0]), SKUA_E_DESCRIPTOR);
    assert_int_equal(close(fds[1]), 0);
}

/* ---- who may drive, and when ---- */

TEST(functions_of_the_simulator_need_a_simulation)
{
    world_open_with((skua_runtime_config){.worker_count = 1});
    skua_runtime *const runtimes[] = {NULL, world_runtime()};
    for (size_t i = 0; i < COUNT_OF(runtimes); i++) {
        assert_int_equal(skua_sim_run(runtimes[i], SKUA_FOREVER), SKUA_E_INVALID);
        assert_int_equal(skua_sim_step(runtimes[i]), SKUA_E_INVALID);
        assert_int_equal(skua_sim_now(runtimes[i]), 0);
        assert_int_equal(skua_sim_hash(runtimes[i]), 0);
    }
}

TEST(simulation_is_driven_between_start_and_stop)
{
    world_create_sim(SEED, (skua_sim_config){0});
    skua_runtime *runtime = world_runtime();
    struct actor *actor = actor_new(NO_ACTS);
    assert_int_equal(skua_sim_run(runtime, SKUA_FOREVER), SKUA_E_NOT_STARTED);
    assert_int_equal(skua_sim_step(runtime), SKUA_E_NOT_STARTED);
    assert_int_equal(actor_try_run(actor, NULL), SKUA_E_NOT_STARTED);
    assert_int_equal(skua_runtime_stop(runtime, 0), SKUA_E_NOT_STARTED);
    world_start();
    assert_int_equal(skua_runtime_start(runtime), SKUA_E_STARTED);
    assert_int_equal(skua_runtime_destroy(runtime), SKUA_E_BUSY);
    actor_submit(actor);
    assert_int_equal(skua_runtime_stop(runtime, SKUA_SECOND), 0);
    assert_int_equal(skua_runtime_stop(runtime, SKUA_SECOND), 0);
    assert_int_equal(skua_runtime_start(runtime), SKUA_E_STOPPED);
    assert_int_equal(skua_sim_run(runtime, SKUA_FOREVER), SKUA_E_STOPPED);
    assert_int_equal(skua_sim_step(runtime), SKUA_E_STOPPED);
    assert_int_equal(actor_try_submit(actor), SKUA_E_STOPPED);
    assert_true(world_now() > START);
}

/* Somebody to wait for, and how often somebody tried. */
static struct actor *bystander;
static unsigned tries;

/* Everything that drives, from where it must not. */
static void try_to_drive(int expected_of_wait)
{
    skua_runtime *runtime = world_runtime();
    tries++;
    assert_int_equal(skua_sim_run(runtime, SKUA_FOREVER), SKUA_E_INSIDE_STEP);
    assert_int_equal(skua_sim_run(runtime, 0), SKUA_E_INSIDE_STEP);
    assert_int_equal(skua_sim_step(runtime), SKUA_E_INSIDE_STEP);
    assert_int_equal(skua_process_wait(runtime, bystander->pid, SKUA_FOREVER, NULL),
                     expected_of_wait);
    assert_int_equal(skua_runtime_stop(runtime, 0), SKUA_E_INSIDE_STEP);
}

static int drive_in_a_step(void *arg)
{
    (void)arg;
    try_to_drive(SKUA_E_INSIDE_STEP);
    assert_int_equal(skua_runtime_destroy(world_runtime()), SKUA_E_BUSY);
    assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_STARTED);
    return 0;
}

static int drive_in_a_handler(void *arg, skua_command *command, skua_payload *result)
{
    (void)arg;
    (void)command;
    (void)result;
    try_to_drive(SKUA_E_INSIDE_STEP);
    return 0;
}

static int drive_in_a_blocking_function(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    /* As on threads, waiting as such is not forbidden here; but this thread is taken. */
    try_to_drive(SKUA_E_BUSY);
    return world_send(bystander->pid, skua_payload_u64(0, 1)); /* what does not wait works */
}

TEST(simulation_is_not_driven_from_inside)
{
    tries = 0;
    world_create_sim(SEED, (skua_sim_config){0});
    world_register(COMMAND, drive_in_a_handler, NULL);
    world_register_pool(safe_pool);
    world_start();
    bystander = actor_start(NO_ACTS);
    struct actor *actor = actor_new(ACTS(calls(drive_in_a_step, NULL), yields(1, COMMAND, 0, 0),
                                         expects(completion(1, 0)), calls(drive_in_a_step, NULL),
                                         offloads(2, "pool", drive_in_a_blocking_function, 0),
                                         expects(completion(2, 0)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_int_equal(tries, 4);
    world_settle();
    assert_saw(bystander, message(0, 1));
}

struct other_driver {
    struct actor *waits_for;
    struct actor *starts;
    int results[6];
};

static void drive_elsewhere(void *arg)
{
    struct other_driver *driver = arg;
    skua_runtime *runtime = world_runtime();
    driver->results[0] = skua_sim_run(runtime, SKUA_FOREVER);
    driver->results[1] = skua_sim_step(runtime);
    driver->results[2] = skua_process_wait(runtime, driver->waits_for->pid, SKUA_FOREVER, NULL);
    driver->results[3] = skua_runtime_stop(runtime, SKUA_FOREVER);
    driver->results[4] = skua_runtime_destroy(runtime);
    driver->results[5] = actor_try_run(driver->starts, NULL); /* started all the same */
}

/* A step that lasts until another thread has tried. */
static int let_another_try(void *arg)
{
    thread_run(drive_elsewhere, arg);
    return 0;
}

TEST(simulation_is_driven_by_one_thread_at_a_time)
{
    struct other_driver driver = {0};
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_new(ACTS(calls(let_another_try, &driver), finishes(0)));
    driver.waits_for = actor;
    driver.starts = actor_new(NO_ACTS);
    assert_result(actor_run(actor), 0);
    for (size_t i = 0; i < COUNT_OF(driver.results); i++) {
        assert_int_equal(driver.results[i], SKUA_E_BUSY);
    }
    world_settle();
    assert_int_equal(driver.starts->steps, 1);
}

static void run_a_second(void *arg)
{
    *(int *)arg = skua_sim_run(world_runtime(), START + SKUA_SECOND);
}

TEST(simulation_is_driven_by_one_thread_after_another)
{
    int result = -1;
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *actor = actor_start(ACTS(sleeps(1, 3 * SKUA_SECOND), awaits(1), finishes(0)));
    thread_run(run_a_second, &result);
    assert_int_equal(result, 1);
    assert_int_equal(actor->steps, 1);
    world_settle();
    assert_int_equal(actor->closes, 1);
}

/* ---- simulations inside of others ---- */

/* Drives a whole simulation with a pool; afterwards it must be known that this is still a step or a
 * blocking function of the world. */
static int drive_another_and_stop(void)
{
    struct sim_scene inner;
    uint32_t threads;
    sim_create(&inner, SEED, (skua_sim_config){0});
    assert_int_equal(skua_blocking_register(inner.runtime, &safe_pool, NULL), 0);
    api_start(&inner.api);
    struct actor *actor = actor_new(block_both_ways(&threads));
    assert_result(api_run_process(&inner.api, &actor->type, actor), 0);
    sim_end(&inner);
    return skua_runtime_stop(world_runtime(), 0);
}

static int drive_another_in_a_step(void *arg)
{
    (void)arg;
    return drive_another_and_stop();
}

static int drive_another_in_a_blocking_function(skua_payload *input, skua_payload *result)
{
    (void)input;
    (void)result;
    return drive_another_and_stop();
}

TEST(simulation_driven_inside_another_leaves_it_alone)
{
    world_create_sim(SEED, (skua_sim_config){0});
    world_register_pool(safe_pool);
    world_start();
    struct actor *actor =
        actor_new(ACTS(refused(calls(drive_another_in_a_step, NULL), SKUA_E_INSIDE_STEP),
                       offloads(1, "pool", drive_another_in_a_blocking_function, 0),
                       expects(completion(1, SKUA_E_INSIDE_STEP)), finishes(0)));
    assert_result(actor_run(actor), 0);
}

static int stop_the_world(void *arg)
{
    (void)arg;
    return skua_runtime_stop(world_runtime(), 0);
}

static int run_to_rest(void *runtime)
{
    return skua_sim_run(runtime, SKUA_FOREVER);
}

TEST(simulation_that_a_stop_drives_cannot_stop_it)
{
    struct sim_scene inner;
    sim_begin(&inner, SEED, SIM_NO_FAULTS);
    world_open_sim(SEED, SIM_NO_FAULTS);
    struct actor *stopping =
        actor_new(ACTS(refused(calls(stop_the_world, NULL), SKUA_E_INSIDE_STEP), finishes(0)));
    (void)api_submit(&inner.api, &stopping->type, stopping);
    struct actor *driving = actor_start(
        ACTS(expects(cancel(SKUA_E_STOPPED)), calls(run_to_rest, inner.runtime), finishes(0)));
    world_settle();
    world_close();
    assert_saw(driving, cancel(SKUA_E_STOPPED));
    assert_int_equal(stopping->closes, 1);
    sim_end(&inner);
}

/* ---- other threads ---- */

#define VISITORS 4
#define VISITS   500

struct visitor {
    skua_pid host;
    struct probe guests; /* all of them */
    uint64_t accepted;
    uint64_t submitted;
    uint64_t seen;
};

/* A process whose state is allocated by the thread that submits it. */
static int submit_large(struct probe *probe)
{
    skua_payload input = api_world_payload(probe);
    return skua_process_submit(world_runtime(), &probe_large_type, input, NULL);
}

/* Its numbers do not fit if the clock goes back. */
static void visit(void *arg)
{
    struct visitor *visitor = arg;
    uint64_t last = 0;
    for (int i = 0; i < VISITS && world_now() >= last; i++) {
        skua_process_snapshot info;
        last = world_now();
        visitor->accepted += world_send(visitor->host, skua_payload_u64(0, 1)) == 0;
        visitor->submitted += submit_large(&visitor->guests) == 0;
        visitor->seen += skua_process_info(world_runtime(), visitor->host, &info) == 0;
    }
}

static void drive_until_told(void *arg)
{
    atomic_bool *finish = arg;
    while (!atomic_load(finish)) {
        (void)skua_sim_run(world_runtime(), world_now() + SKUA_MILLISECOND);
    }
}

/* So that the faults have something to do. */
static int allocate_for_ever(struct turn *turn, const struct act *act)
{
    (void)act;
    skua_free(turn->ctx, skua_alloc(turn->ctx, 16), 16);
    return ACT_WAITS;
}

TEST(simulation_takes_calls_from_other_threads)
{
    struct visitor visitors[VISITORS];
    atomic_bool finish = false;
    world_open_sim(SEED,
                   (skua_sim_faults){.no_memory = SIM_ALWAYS / 2, .spurious_wake = SIM_ALWAYS / 2});
    struct actor *host = actor_start(ACTS(does(allocate_for_ever, NULL)));
    struct thread *driver = thread_start(drive_until_told, &finish);
    for (size_t i = 0; i < VISITORS; i++) {
        visitors[i] = (struct visitor){.host = host->pid, .guests.habit = PROBE_ENDS};
    }
    api_in_threads(VISITORS, visit, visitors, sizeof visitors[0]);
    atomic_store(&finish, true);
    thread_join(driver);
    world_settle();
    for (size_t i = 0; i < VISITORS; i++) {
        assert_int_equal(visitors[i].accepted, VISITS);
        assert_int_equal(visitors[i].submitted, VISITS);
        assert_int_equal(visitors[i].seen, VISITS);
        assert_int_equal(visitors[i].guests.closes, VISITS);
    }
    assert_int_equal(host->seen_count, VISITORS * VISITS);
    assert_int_equal(world_stats().live, 1);
}
