/* SPDX-License-Identifier: MIT */
/* What a worker does before it sleeps, and what the hot paths do not do. */
#include <sched.h>

#include "actor.h"
#include "desk.h"

#define ROUNDS       15 /* looks of one search at the one other worker */
#define ROUNDS_YIELD 12 /* those of them that give way */
#define ATTEMPTS     20

/* Takes the place of the C library's, to count how often a searching worker gives way. */
static atomic_uint times_given_way;

int sched_yield(void)
{
    (void)atomic_fetch_add(&times_given_way, 1);
    return 0;
}

static bool have_slept(void *arg)
{
    return world_stats().parks >= *(const uint64_t *)arg;
}

static void open_and_let_all_sleep(uint32_t workers)
{
    world_open_with((skua_runtime_config){.worker_count = workers});
    wait_until_all_have_slept(world_runtime());
}

struct effort {
    uint64_t looks;
    unsigned times; /* that it gave way */
};

/* Of the worker that has run a short process and found nothing more. */
static struct effort search_once(void)
{
    const skua_stats before = world_stats();
    const unsigned times_before = times_given_way;
    assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    wait_until(have_slept, &(uint64_t){before.parks + 1}, "the worker to sleep");
    return (struct effort){
        .looks = world_stats().steal_attempts - before.steal_attempts,
        .times = times_given_way - times_before,
    };
}

/* On a busy machine giving way may take so long that the search ends early, as it should: then once
 * more. */
static void check_search(uint64_t looks, unsigned times)
{
    struct effort effort = search_once();
    for (int attempt = 1; attempt < ATTEMPTS && effort.looks < looks; attempt++) {
        effort = search_once();
    }
    assert_int_equal(effort.looks, looks);
    assert_int_equal(effort.times, times);
}

TEST(search_climbs_the_ladder_while_another_worker_is_awake)
{
    open_and_let_all_sleep(2);
    struct actor *awake = actor_start(ACTS(holds()));
    actor_await_held(awake, 1);
    check_search(ROUNDS, ROUNDS_YIELD);
    actor_release(awake);
}

/* Nobody could bring it work in the meantime but the outside, which wakes it. */
TEST(search_with_all_others_asleep_gives_way_to_nobody)
{
    open_and_let_all_sleep(2);
    check_search(1, 0);
}

TEST(search_of_a_single_worker_gives_way_to_nobody)
{
    const unsigned before = times_given_way;
    open_and_let_all_sleep(1);
    assert_int_equal(world_stats().steal_attempts, 0);
    world_close();
    assert_int_equal(times_given_way, before);
}

TEST(spawn_send_and_yield_allocate_nothing_once_warm)
{
    world_create((skua_runtime_config){.worker_count = 1});
    (void)desk_open();
    world_start();
    struct actor *child = actor_new(ACTS(awaits(1), replies(2, 0), finishes(0)));
    struct actor *talker = actor_start(NO_ACTS);
    uint64_t attempts = 0;
    for (int i = 0; i < 20; i++) {
        actor_perform(talker, ACTS(spawns(child), sends(child, 1, 0), yields(1, DESK_DOUBLE, 0, 0),
                                   awaits(2), repeats(999)));
        const uint64_t now = counting_allocator_attempts(&world->real.memory);
        assert_true(i == 0 || now == attempts);
        attempts = now;
    }
    assert_int_equal(child->closes, 20000);
}
