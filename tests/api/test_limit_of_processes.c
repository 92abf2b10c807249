/* SPDX-License-Identifier: MIT */
/* The limit of processes: exact if it is small, never exceeded, and whole again when they end. */
#include "actor.h"

#define PROCESSES_MOST 1000

/* The processes of the world, all of them idlers. */
struct population {
    atomic_uint count;
    atomic_uint odd_errors;
    skua_pid pids[PROCESSES_MOST];
};

static struct population *population_open(skua_runtime_config config)
{
    world_open_with(config);
    return test_alloc(sizeof(struct population));
}

/* Submits one more; false if there is no place. Any thread. */
static bool grow(struct population *population)
{
    skua_pid pid = {0};
    const int error = skua_process_submit(world_runtime(), &api_idler, skua_nothing(), &pid);
    if (error != 0) {
        (void)atomic_fetch_add(&population->odd_errors, error != SKUA_E_PROCESS_LIMIT);
        return false;
    }
    const unsigned index = atomic_fetch_add(&population->count, 1);
    if (index < PROCESSES_MOST) {
        population->pids[index] = pid;
    }
    return true;
}

static void fill_up(void *arg)
{
    while (grow(arg)) {
    }
}

/* That so many have found a place; ends them all. */
static void check_and_end(struct population *population, unsigned least, unsigned most)
{
    assert_int_equal(population->odd_errors, 0);
    assert_in_range(population->count, least, most);
    assert_int_equal(world_stats().live, population->count);
    for (unsigned i = 0; i < population->count; i++) {
        assert_int_equal(world_terminate(population->pids[i]), 0);
    }
    world_await_live(0);
    population->count = 0;
}

TEST(process_limit_when_small_is_exact)
{
    static const uint32_t limits[] = {1, 2, 7, 100};
    FOR_ROWS (limit, limits) {
        struct population *population =
            population_open((skua_runtime_config){.process_limit = *limit});
        for (unsigned round = 0; round < 3; round++) {
            fill_up(population);
            check_and_end(population, *limit, *limit);
        }
    }
}

TEST(process_limit_when_large_is_never_exceeded_and_nearly_reached)
{
    static const uint32_t worker_counts[] = {1, 2};
    FOR_ROWS (workers, worker_counts) {
        struct population *population = population_open(
            (skua_runtime_config){.worker_count = *workers, .process_limit = PROCESSES_MOST});
        for (unsigned round = 0; round < 3; round++) {
            fill_up(population);
            check_and_end(population, PROCESSES_MOST - PROCESSES_MOST / 64, PROCESSES_MOST);
        }
    }
}

TEST(process_that_ends_leaves_one_place)
{
    struct population *population = population_open((skua_runtime_config){.process_limit = 10});
    fill_up(population);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(world_terminate(population->pids[2 * i]), 0);
        world_await_live(9);
        assert_true(grow(population));
        assert_false(grow(population));
    }
    assert_int_equal(population->odd_errors, 0);
}

TEST(process_limit_under_concurrent_submits_is_exact)
{
    struct population *population = population_open((skua_runtime_config){.process_limit = 50});
    for (unsigned round = 0; round < 10; round++) {
        api_in_threads(4, fill_up, population, 0); /* all fill the same one */
        check_and_end(population, 50, 50);
    }
}

/* Fills the runtime from a step. */
static int spawn_idlers(struct turn *turn, const struct act *act)
{
    atomic_uint *spawned = act->arg;
    int error;
    while ((error = skua_spawn(turn->ctx, &api_idler, skua_nothing(), NULL)) == 0) {
        (void)atomic_fetch_add(spawned, 1);
    }
    return error;
}

TEST(process_limit_under_concurrent_spawns_is_exact)
{
    enum { SPAWNERS = 4, LIMIT = 100 };
    struct actor *spawners[SPAWNERS];
    atomic_uint spawned = 0;
    world_open_with((skua_runtime_config){.process_limit = LIMIT});
    for (size_t i = 0; i < SPAWNERS; i++) {
        spawners[i] = actor_start(NO_ACTS);
        actor_await_state(spawners[i], SKUA_PROCESS_IDLE);
    }
    for (size_t i = 0; i < SPAWNERS; i++) {
        actor_tell(spawners[i], ACTS(refused(does(spawn_idlers, &spawned), SKUA_E_PROCESS_LIMIT)));
    }
    for (size_t i = 0; i < SPAWNERS; i++) {
        tally_wait(&spawners[i]->performed, 1);
    }
    assert_int_equal(world_stats().live, LIMIT);
    assert_int_equal(spawned, LIMIT - SPAWNERS);
}

TEST(process_limit_reached_drops_the_input_and_calls_no_init)
{
    struct tracked items[4] = {0};
    skua_payload input[4];
    skua_pid pid = {0};
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        input[i] = tracked_payload(0, &items[i]);
    }
    world_open_with((skua_runtime_config){.process_limit = 1});
    (void)actor_start(NO_ACTS);
    struct actor *unborn = actor_new(NO_ACTS);
    assert_int_equal(
        skua_process_submit_with(
            world_runtime(),
            &(skua_spawn_options){.type = &unborn->type, .input = input, .input_count = 2}, &pid),
        SKUA_E_PROCESS_LIMIT);
    assert_true(skua_pid_is_none(pid));
    assert_int_equal(
        skua_process_run_with(
            world_runtime(),
            &(skua_spawn_options){.type = &unborn->type, .input = &input[2], .input_count = 2},
            NULL),
        SKUA_E_PROCESS_LIMIT);
    assert_drops(items, COUNT_OF(items), 1);
    assert_int_equal(unborn->inits, 0);
}
