/* SPDX-License-Identifier: MIT */
/* Stopping a runtime while processes are started: each is either refused, or accepted and then
 * stopped like any other; nothing is left behind. */
#include "actor.h"
#include "effort.h"
#include "stopper.h"
#include "threads.h"

/* ---- races ---- */

#define ROUNDS   EFFORT(150)
#define BIRTHS   4000
#define CHILDREN 3

/* One process that somebody tried to start. */
struct birth {
    struct probe probe;
    atomic_bool accepted;
};

struct nursery {
    enum probe_habit habit;
    atomic_uint used;
    atomic_uint wrong; /* refusals that are not SKUA_E_STOPPED */
    struct tally tries;
    struct birth births[BIRTHS];
};

/* The next to be started, or null. */
static struct birth *next_birth(struct nursery *nursery)
{
    const uint32_t index = atomic_fetch_add(&nursery->used, 1);
    tally_add(&nursery->tries, 1);
    if (index >= BIRTHS) {
        return NULL;
    }
    nursery->births[index].probe.habit = nursery->habit;
    return &nursery->births[index];
}

/* Whether to go on. */
static bool note_birth(struct nursery *nursery, struct birth *birth, int error)
{
    if (error == 0) {
        atomic_store(&birth->accepted, true);
        return true;
    }
    (void)atomic_fetch_add(&nursery->wrong, error != SKUA_E_STOPPED);
    return false;
}

/* Starts a few in every step until the cancel event. */
static int breed(struct turn *turn, const struct act *act)
{
    struct nursery *nursery = act->arg;
    if (turn->actor->seen_count > 0) {
        return 0;
    }
    for (int i = 0; i < CHILDREN; i++) {
        struct birth *birth = next_birth(nursery);
        if (birth == NULL) {
            return 0;
        }
        (void)note_birth(nursery, birth, probe_spawn(turn->ctx, &birth->probe));
    }
    return perform(turn, continues(UINT64_MAX));
}

static void submit_until_refused(void *arg)
{
    struct nursery *nursery = arg;
    struct birth *birth;
    do {
        birth = next_birth(nursery);
    } while (birth != NULL &&
             note_birth(nursery, birth, probe_submit(world_runtime(), &birth->probe, NULL)));
}

/* Waits for each of its processes, so it hangs if one of them is forgotten. */
static void run_until_refused(void *arg)
{
    struct nursery *nursery = arg;
    struct birth *birth;
    do {
        birth = next_birth(nursery);
        if (birth == NULL) {
            return;
        }
        birth->probe.habit = PROBE_ENDS;
    } while (note_birth(nursery, birth, probe_run(world_runtime(), &birth->probe)));
}

static void check_births(struct nursery *nursery)
{
    const uint32_t used = atomic_load(&nursery->used);
    assert_int_equal(atomic_load(&nursery->wrong), 0);
    for (uint32_t i = 0; i < used && i < BIRTHS; i++) {
        struct probe *probe = &nursery->births[i].probe;
        assert_int_equal(atomic_load(&probe->closes), atomic_load(&probe->inits));
        if (!atomic_load(&nursery->births[i].accepted)) {
            assert_int_equal(atomic_load(&probe->steps), 0);
        } else if (probe->habit == PROBE_OBEYS) {
            assert_probe_stopped_once(probe);
        } else {
            assert_int_equal(atomic_load(&probe->closes), 1);
            assert_in_range(atomic_load(&probe->stops), 0, 1);
        }
    }
}

/* Processes with this habit are started from two threads outside and from steps meanwhile. */
static void race_with_stop(enum probe_habit habit, uint64_t timeout_ns)
{
    uint64_t seed = seed_choose();
    FOR_ROUNDS (round, ROUNDS) {
        struct nursery *nursery = test_alloc(sizeof *nursery);
        nursery->habit = habit;
        tally_init(&nursery->tries);
        world_open_with((skua_runtime_config){.worker_count = 2});
        (void)actor_start(ACTS(does(breed, nursery)));
        struct thread *submitter = thread_start(submit_until_refused, nursery);
        struct thread *runner = thread_start(run_until_refused, nursery);
        tally_wait(&nursery->tries, seed_next(&seed) % 200);

        const int stopped = stop_patiently(timeout_ns);

        thread_join(submitter);
        thread_join(runner);
        assert_true(stopped == 0 || (habit == PROBE_IGNORES && stopped == SKUA_E_TIMEOUT));
        check_births(nursery);
    }
}

TEST(stop_racing_with_spawns_cancels_each_accepted_process_once)
{
    race_with_stop(PROBE_OBEYS, SKUA_FOREVER);
}

TEST(stop_racing_with_spawns_ends_each_accepted_survivor)
{
    race_with_stop(PROBE_IGNORES, 0);
}

/* ---- a stop within an init ---- */

/* An init that takes so long that the whole stop fits into it. */
static struct actor *new_slow_init(bool ignores_cancel)
{
    struct actor *slow = actor_new(NO_ACTS);
    slow->ignores_cancel = ignores_cancel;
    slow->type.state_size = 1000;
    slow->in_init = ACTS(holds());
    return slow;
}

/* Accepted or not, nothing is left of it. */
static void assert_nothing_is_left(const struct actor *slow, int started)
{
    assert_true(started == 0 || started == SKUA_E_STOPPED);
    assert_int_equal(slow->inits, 1);
    assert_int_equal(slow->closes, 1);
    if (started != 0) {
        assert_int_equal(slow->steps, 0);
    } else if (slow->seen_count > 0) {
        assert_saw(slow, cancel(SKUA_E_STOPPED));
    }
}

static const bool habits[] = {false, true};

struct start {
    struct actor *actor;
    int result;
};

static void submit_slow(void *arg)
{
    struct start *start = arg;
    start->result = actor_try_submit(start->actor);
}

TEST(stop_during_the_init_of_a_submit_leaves_no_process)
{
    FOR_ROWS (ignores_cancel, habits) {
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct start start = {.actor = new_slow_init(*ignores_cancel)};
        struct thread *submitter = thread_start(submit_slow, &start);
        actor_await_held(start.actor, 1);
        const int stopped = skua_runtime_stop(world_runtime(), 0);
        actor_let_go(start.actor);
        thread_join(submitter);
        if (stopped == SKUA_E_STUCK) { /* it may count the init as a part of the process */
            (void)skua_runtime_stop(world_runtime(), SKUA_FOREVER);
        }
        assert_nothing_is_left(start.actor, start.result);
    }
}

static int spawn_slow(struct turn *turn, const struct act *act)
{
    struct start *start = act->arg;
    start->result = perform(turn, spawns(start->actor));
    return 0;
}

TEST(stop_during_the_init_of_a_spawn_leaves_no_process)
{
    FOR_ROWS (ignores_cancel, habits) {
        world_open_with((skua_runtime_config){.worker_count = 2});
        struct start start = {.actor = new_slow_init(*ignores_cancel)};
        (void)actor_start(ACTS(does(spawn_slow, &start), finishes(0)));
        actor_await_held(start.actor, 1);
        assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_STUCK);
        actor_let_go(start.actor);
        assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
        assert_nothing_is_left(start.actor, start.result);
    }
}

static int stop_here(void *arg)
{
    (void)arg;
    return skua_runtime_stop(world_runtime(), SKUA_FOREVER);
}

/* Nobody but a worker is forbidden to stop. */
TEST(stop_by_the_init_of_a_submit_refuses_that_process)
{
    world_open();
    struct actor *stopping = actor_new(NO_ACTS);
    stopping->in_init = ACTS(calls(stop_here, NULL));
    assert_int_equal(actor_try_submit(stopping), SKUA_E_STOPPED);
    assert_int_equal(stopping->closes, 1);
    assert_int_equal(stopping->steps, 0);
}
