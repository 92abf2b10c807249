/* SPDX-License-Identifier: MIT */
/* The life of a runtime: create, start, stop, destroy, in the right and in the wrong order; what
 * its configuration shows. Several of them side by side are in test_runtimes.c. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "actor.h"
#include "child.h"
#include "effort.h"
#include "handlers.h"

/* ---- configuration ---- */

static skua_runtime_config read_config(skua_runtime *runtime)
{
    skua_runtime_config config;
    memset(&config, 0xff, sizeof config);
    assert_int_equal(skua_runtime_config_read(runtime, &config), 0);
    return config;
}

TEST(runtime_config_of_null_shows_every_default)
{
    skua_runtime *runtime;
    assert_int_equal(skua_runtime_create(&runtime, NULL), 0);
    const skua_runtime_config config = read_config(runtime);
    assert_in_range(config.worker_count, 1, SKUA_WORKERS_MAX);
    assert_int_equal(config.process_limit, 1 << 24);
    assert_int_equal(config.mailbox_limit, 1 << 20);
    assert_int_equal(config.stack_limit, 1 << 20);
    assert_int_equal(config.payload_limit, 1 << 30);
    assert_int_equal(config.seed, 1);
    assert_non_null(config.alloc);
    assert_null(config.on_exit);
    assert_null(config.on_survivor);
    assert_int_equal(skua_runtime_destroy(runtime), 0);
}

static void ignore_exit(void *arg, skua_exit *exit)
{
    (void)arg;
    (void)exit;
}

static void ignore_survivor(void *arg, const skua_process_snapshot *info)
{
    (void)arg;
    (void)info;
}

TEST(runtime_config_that_was_given_is_shown_unchanged)
{
    int arg;
    const skua_runtime_config given = {
        .worker_count = 3,
        .process_limit = 77,
        .mailbox_limit = 5,
        .payload_limit = 99,
        .seed = 12345,
        .on_exit = ignore_exit,
        .on_exit_arg = &arg,
        .on_survivor = ignore_survivor,
        .on_survivor_arg = &arg,
    };
    world_create(given);
    const skua_runtime_config shown = read_config(world_runtime());
    assert_int_equal(shown.worker_count, given.worker_count);
    assert_int_equal(shown.process_limit, given.process_limit);
    assert_int_equal(shown.mailbox_limit, given.mailbox_limit);
    assert_int_equal(shown.payload_limit, given.payload_limit);
    assert_int_equal(shown.seed, given.seed);
    assert_ptr_equal(shown.alloc, counting_allocate);
    assert_ptr_equal(shown.alloc_arg, &world->api->memory);
    assert_ptr_equal(shown.on_exit, given.on_exit);
    assert_ptr_equal(shown.on_exit_arg, given.on_exit_arg);
    assert_ptr_equal(shown.on_survivor, given.on_survivor);
    assert_ptr_equal(shown.on_survivor_arg, given.on_survivor_arg);
}

/* ---- the default number of workers ---- */

/* 0 if that failed. */
static int default_worker_count(void)
{
    skua_runtime *runtime;
    skua_runtime_config config;
    if (skua_runtime_create(&runtime, NULL) != 0) {
        return 0;
    }
    const int error = skua_runtime_config_read(runtime, &config);
    (void)skua_runtime_destroy(runtime);
    return error == 0 ? (int)config.worker_count : 0;
}

/* Of a program that may use only `count` of the CPUs that this one has. */
static int worker_count_with_cpus(int count)
{
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
        return 0;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &mask) && count-- <= 0) {
            CPU_CLR(cpu, &mask);
        }
    }
    return sched_setaffinity(0, sizeof mask, &mask) == 0 ? default_worker_count() : 0;
}

/* Whether this program's control group could have a CPU quota. Fewer workers than CPUs are right
 * then; how many, the unit test of the quota checks. */
static bool quota_is_possible(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) {
        return false;
    }
    bool possible = access("/sys/fs/cgroup/cpu.max", F_OK) == 0;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        possible = possible || (strncmp(line, "0::/", 4) == 0 && line[4] != '\n');
    }
    (void)fclose(file);
    return possible;
}

TEST(runtime_workers_by_default_are_as_many_as_cpus_in_the_mask)
{
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    const int cpus = CPU_COUNT(&mask) < SKUA_WORKERS_MAX ? CPU_COUNT(&mask) : SKUA_WORKERS_MAX;
    const int workers = default_worker_count();
    if (quota_is_possible()) {
        print_message("a quota may be in force: %d CPUs, %d workers\n", cpus, workers);
        assert_in_range(workers, 1, cpus);
    } else {
        assert_int_equal(workers, cpus);
    }
    for (int narrow = 1; narrow < cpus && narrow < 256; narrow++) { /* a status has 8 bits */
        assert_int_equal(child_run(worker_count_with_cpus, narrow),
                         narrow < workers ? narrow : workers);
    }
}

/* ---- threads, files, memory ---- */

TEST(runtime_has_threads_while_it_runs_and_only_then)
{
    const uint32_t alone = os_wait_alone();
    world_create((skua_runtime_config){.worker_count = 5});
    assert_int_equal(os_thread_count(), alone);
    world_start();
    assert_int_equal(os_thread_count(), alone + 5 + 1); /* the monitor */
    assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_STARTED);
    assert_int_equal(os_thread_count(), alone + 5 + 1);
    world_stop();
    assert_int_equal(skua_runtime_start(world_runtime()), SKUA_E_STOPPED);
    os_wait_threads(alone);
}

/* Its end sees to it that all memory is back. */
TEST(runtime_that_is_never_started_leaks_nothing)
{
    world_create((skua_runtime_config){0});
}

static void live_once(uint32_t workers)
{
    world_create((skua_runtime_config){.worker_count = workers});
    world_register(1000, complete_at_once, NULL); /* ids above 255 are in allocated memory */
    world_start();
    struct actor *rests = actor_start(NO_ACTS);
    struct actor *large = actor_new(ACTS(finishes(1)));
    large->type.state_size = 4096; /* too large for the process record */
    assert_result(actor_run(large), 1);
    world_close();
    assert_saw(rests, cancel(SKUA_E_STOPPED));
}

TEST(runtime_that_lives_a_thousand_times_leaks_nothing)
{
    uint32_t threads = 0;
    uint32_t files = 0;
    FOR_ROUNDS (round, 1 + EFFORT(1000)) {
        if (round == 2) { /* what the C library and sanitizers keep for good, they have now */
            threads = os_wait_alone();
            files = os_file_count();
        }
        live_once(1 + (uint32_t)round % 3);
    }
    os_wait_threads(threads);
    assert_int_equal(os_file_count(), files);
}

/* A process that begins the next one, and ends with a message and a completion under way. No actor:
 * one cannot be begun anew before it has ended. */
#define GENERATIONS 70000

static int heir_step(void *self, skua_context *ctx, skua_event *events, size_t count);

static const skua_process_type heir_type = {
    .name = "heir", .state_size = 200, .init = api_init_world, .step = heir_step};

static int heir_step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    atomic_uint *left = api_world(self);
    skua_payload input = api_world_payload(left);
    (void)events;
    (void)count;
    (void)skua_send(ctx, skua_self(ctx), skua_payload_empty(0));
    const int error = skua_yield(ctx, 0, 1, skua_payload_empty(0), SKUA_FOREVER);
    if (error != 0) {
        return error;
    }
    skua_done(ctx, skua_payload_empty(0));
    return atomic_fetch_sub(left, 1) > 1 ? skua_spawn(ctx, &heir_type, input, NULL) : 0;
}

static void live_for_generations(unsigned count)
{
    atomic_uint left = count;
    (void)api_submit(world->api, &heir_type, &left);
    world_await_live(0);
}

/* The dead leave nothing behind: there are more of them than places and events in one block of
 * either, and still no further block is needed. */
TEST(runtime_memory_does_not_grow_with_the_number_of_past_processes)
{
    world_create((skua_runtime_config){.worker_count = 2});
    world_register(1, never_complete, NULL);
    world_start();
    live_for_generations(100);
    const uint64_t blocks = counting_allocator_live_blocks(&world->api->memory);
    live_for_generations(GENERATIONS);
    assert_int_equal(world_stats().finished, 100 + GENERATIONS);
    /* The second worker may have got its array for yields only now. */
    assert_in_range(counting_allocator_live_blocks(&world->api->memory), blocks, blocks + 1);
}

/* ---- the wrong order ---- */

TEST(runtime_stop_before_start_is_an_error_and_changes_nothing)
{
    world_create((skua_runtime_config){0});
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_NOT_STARTED);
    world_start();
    struct actor *actor = actor_start(NO_ACTS);
    world_close();
    assert_saw(actor, cancel(SKUA_E_STOPPED));
}

TEST(runtime_stop_again_and_again_returns_0)
{
    world_open();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(skua_runtime_stop(world_runtime(), 0), 0);
    }
}

TEST(runtime_destroy_while_running_is_refused_and_harmless)
{
    world_open();
    struct actor *rests = actor_start(NO_ACTS);
    assert_int_equal(skua_runtime_destroy(world_runtime()), SKUA_E_BUSY);
    assert_result(actor_run(actor_new(ACTS(finishes(1)))), 1);
    assert_int_equal(world_send(rests->pid, skua_payload_empty(0)), 0);
    world_close();
    assert_saw(rests, message(0, 0), cancel(SKUA_E_STOPPED));
}

TEST(runtime_register_after_start_is_an_error)
{
    const skua_handler handler = {.name = "nothing", .run = complete_at_once};
    world_open();
    assert_int_equal(skua_command_register(world_runtime(), 1, &handler), SKUA_E_FROZEN);
    world_stop();
    assert_int_equal(skua_command_register(world_runtime(), 1, &handler), SKUA_E_FROZEN);
}

/* Both ways to begin a process. */
static void assert_starts_nobody(int expected)
{
    struct actor *unborn = actor_new(NO_ACTS);
    struct tracked items[2] = {{0}};
    skua_pid pid = {42};
    skua_exit exit = {.error = 42};
    skua_payload input[] = {api_world_payload(unborn), tracked_payload(0, &items[0])};
    assert_int_equal(
        skua_process_submit_with(
            world_runtime(),
            &(skua_spawn_options){.type = &unborn->type, .input = input, .input_count = 2}, &pid),
        expected);
    input[0] = api_world_payload(unborn);
    input[1] = tracked_payload(0, &items[1]);
    assert_int_equal(
        skua_process_run_with(
            world_runtime(),
            &(skua_spawn_options){.type = &unborn->type, .input = input, .input_count = 2}, &exit),
        expected);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(unborn->inits, 0);
    assert_int_equal(pid.bits, 42);
    assert_int_equal(exit.error, 42);
    assert_int_equal(world_stats().spawned, 0);
}

TEST(runtime_that_does_not_run_starts_nobody)
{
    world_create((skua_runtime_config){0});
    assert_starts_nobody(SKUA_E_NOT_STARTED);
    world_start();
    world_stop();
    assert_starts_nobody(SKUA_E_STOPPED);
}

TEST(runtime_that_has_stopped_still_answers)
{
    struct tracked item = {0};
    skua_process_snapshot info;
    world_open();
    const skua_pid pid = actor_start(NO_ACTS)->pid;
    world_stop();
    assert_int_equal(world_send(pid, tracked_payload(0, &item)), SKUA_E_NO_PROCESS);
    assert_drops(&item, 1, 1);
    assert_int_equal(world_cancel(pid, -1), SKUA_E_NO_PROCESS);
    assert_int_equal(world_terminate(pid), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_info(world_runtime(), pid, &info), SKUA_E_NO_PROCESS);
    assert_int_equal(skua_process_wait(world_runtime(), pid, SKUA_FOREVER, NULL),
                     SKUA_E_NO_PROCESS);
    assert_int_equal(world_stats().spawned, 1);
}

/* ---- calls that would wait for their own worker ---- */

/* What the waiting calls returned, made on a worker. */
struct inside {
    int stop;
    int wait;
    int run;
    int destroy;
    struct tracked item;
    struct actor *unborn;
    skua_pid self;
};

static struct inside *inside_new(void)
{
    struct inside *inside = test_alloc(sizeof *inside);
    inside->unborn = actor_new(NO_ACTS);
    return inside;
}

static int wait_inside(void *arg)
{
    struct inside *inside = arg;
    skua_runtime *runtime = world_runtime();
    skua_payload input[] = {api_world_payload(inside->unborn), tracked_payload(0, &inside->item)};
    inside->stop = skua_runtime_stop(runtime, SKUA_FOREVER);
    inside->wait = skua_process_wait(runtime, inside->self, SKUA_FOREVER, NULL);
    inside->run = skua_process_run_with(
        runtime,
        &(skua_spawn_options){.type = &inside->unborn->type, .input = input, .input_count = 2},
        NULL);
    inside->destroy = skua_runtime_destroy(runtime);
    return 0;
}

static void assert_refused_inside(struct inside *inside)
{
    assert_int_equal(inside->stop, SKUA_E_INSIDE_STEP);
    assert_int_equal(inside->wait, SKUA_E_INSIDE_STEP);
    assert_int_equal(inside->run, SKUA_E_INSIDE_STEP);
    assert_int_equal(inside->destroy, SKUA_E_BUSY);
    assert_drops(&inside->item, 1, 1);
    assert_int_equal(inside->unborn->inits, 0);
}

TEST(waiting_inside_a_step_is_refused)
{
    world_open();
    struct inside *inside = inside_new();
    struct actor *actor = actor_start(NO_ACTS);
    inside->self = actor->pid;
    actor_perform(actor, ACTS(calls(wait_inside, inside)));
    assert_refused_inside(inside);
}

static int wait_in_handler(void *arg, skua_command *command, skua_payload *result)
{
    struct inside *inside = arg;
    (void)result;
    inside->self = command->completion.process;
    return wait_inside(inside);
}

TEST(waiting_inside_a_handler_is_refused)
{
    struct inside *inside = inside_new();
    world_create((skua_runtime_config){0});
    world_register(7, wait_in_handler, inside);
    world_start();
    struct actor *actor =
        actor_new(ACTS(yields(1, 7, 0, 0), expects(completion(1, 0)), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_refused_inside(inside);
}

static void wait_in_on_exit(void *arg, skua_exit *exit)
{
    struct inside *inside = arg;
    inside->self = exit->pid;
    (void)wait_inside(inside);
}

TEST(waiting_inside_on_exit_is_refused)
{
    struct inside *inside = inside_new();
    world_open_with((skua_runtime_config){.on_exit = wait_in_on_exit, .on_exit_arg = inside});
    assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    world_close();
    assert_refused_inside(inside);
}
