/* SPDX-License-Identifier: MIT */
/* Steps that say that they block: spare workers step in for them, up to a limit, and rest when they
 * are needed no more. What blocks does so until the test lets it go on. */
#include <unistd.h>

#include "blocking_support.h"
#include "crowd.h"
#include "stopper.h"
#include "workers.h"

#define SPARES 4

/* No step counts as stuck, so only the calls themselves bring spare workers. */
static void open_with_spares(uint32_t workers, uint32_t spares)
{
    world_open_with((skua_runtime_config){
        .worker_count = workers, .spare_limit = spares, .stall_limit_ns = API_NEVER_STUCK});
}

/* A process that blocks in its step. */
static struct actor *start_blocked(void)
{
    struct actor *actor = actor_start(ACTS(blocks(), finishes(0)));
    actor_await_held(actor, 1);
    return actor;
}

static void unblock(struct actor *actor)
{
    actor_let_go(actor);
    actor_await_end(actor);
}

/* ---- what waits for the worker ---- */

TEST(blocked_step_leaves_the_only_worker_to_others)
{
    open_with_spares(1, 0);
    struct actor *blocked = start_blocked();
    for (int i = 0; i < 100; i++) {
        assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    }
    /* One spare worker, or two if the monitor saw the step at the moment of its call. */
    assert_in_range(workers_count(), 2, 3);
    assert_in_range(world_stats().spares, 1, 2);
    assert_int_equal(world_stats().stalls, 0);
    unblock(blocked);
}

TEST(blocked_step_without_spares_holds_up_its_worker)
{
    open_with_spares(1, SKUA_SPARES_NONE);
    struct actor *blocked = start_blocked();
    struct actor *other = actor_start(ACTS(finishes(0)));
    assert_int_equal(other->steps, 0);
    unblock(blocked);
    actor_await_end(other);
    assert_int_equal(workers_count(), 1);
    assert_int_equal(world_stats().spares, 0);
}

TEST(blocked_step_without_spares_leaves_its_work_to_the_other_workers)
{
    open_with_spares(2, SKUA_SPARES_NONE);
    struct actor *blocked = start_blocked();
    for (int i = 0; i < 100; i++) {
        assert_result(actor_run(actor_new(ACTS(finishes(0)))), 0);
    }
    assert_int_equal(workers_count(), 2);
    unblock(blocked);
}

/* It stays in its step until all that it has spawned have run. Before the call they are in the
 * worker's next slot and its deque, and some of them in the global queue; after it, nobody is left
 * who searches and would come across them. */
TEST(blocked_step_holds_up_nothing_that_it_has_readied)
{
    static const struct {
        uint32_t before;
        uint32_t after;
    } rows[] = {{1, 0}, {2, 0}, {1000, 0}, {0, 1}, {1, 1}, {0, 2}, {1000, 1000}};
    FOR_ROWS (row, rows) {
        struct tally ran;
        tally_init(&ran);
        const struct script script = ACTS(counts(&ran), finishes(0));
        open_with_spares(0, 0);
        struct actor *actor = actor_new(
            ACTS(spawns_crowd(crowd_new(row->before, script)), begins_blocking(),
                 awaits_count(&ran, row->before), awaits_others_asleep(),
                 spawns_crowd(crowd_new(row->after, script)),
                 awaits_count(&ran, row->before + row->after), ends_blocking(), finishes(0)));
        assert_result(actor_run(actor), 0);
        world_close();
        assert_int_equal(tally_count(&ran), row->before + row->after);
    }
}

static int wait_readable(struct turn *turn, const struct act *act)
{
    return skua_yield_readable(turn->ctx, 1, *(const int *)act->arg, SKUA_FOREVER);
}

/* They were begun on the worker that then blocks. */
TEST(blocked_step_holds_up_no_timer_and_no_descriptor)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    open_with_spares(1, 0);
    struct actor *reader = actor_start(ACTS(does(wait_readable, &ends[0])));
    struct actor *sleeper = actor_start(ACTS(sleeps(1, 20 * SKUA_MILLISECOND)));
    actor_await_state(reader, SKUA_PROCESS_BLOCKED);
    struct actor *blocked = start_blocked();
    assert_int_equal(write(ends[1], "x", 1), 1);
    actor_await_seen(reader, 1);
    actor_await_seen(sleeper, 1);
    unblock(blocked);
    world_close();
    assert_saw(reader, completion(1, 0), cancel(SKUA_E_STOPPED));
    assert_saw(sleeper, completion(1, 0), cancel(SKUA_E_STOPPED));
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

/* ---- how many at once ---- */

TEST(blocked_steps_run_at_once_up_to_the_limit_of_spares)
{
    const uint32_t most = test_workers() + SPARES;
    struct actor *blocked[SPARES + 8];
    open_with_spares(0, SPARES);
    for (uint32_t i = 0; i < most; i++) {
        blocked[i] = start_blocked();
    }
    assert_int_equal(workers_count(), most);
    /* Now every thread there may be is in a step, and one more finds nobody. */
    struct actor *one_more = actor_start(ACTS(blocks(), finishes(0)));
    assert_int_equal(workers_count(), most);
    assert_int_equal(tally_count(&one_more->held), 0);
    unblock(blocked[0]);
    actor_await_held(one_more, 1);
    unblock(one_more);
    for (uint32_t i = 1; i < most; i++) {
        unblock(blocked[i]);
    }
    assert_int_equal(workers_count(), most);
}

/* Two workers and one spare. The second to block finds no spare; when the first is back, its spare
 * is not one too many but makes up for the second. The monitor sees to that. */
TEST(blocked_step_that_found_no_spare_gets_one_later)
{
    open_with_spares(2, 1);
    struct actor *first = start_blocked();
    struct actor *second = start_blocked();
    unblock(first);
    for (int round = 0; round < 5; round++) { /* after the first it would rest, if it were */
        workers_meet(2);
    }
    assert_int_equal(tally_count(&second->performed), 0);
    unblock(second);
    assert_int_equal(workers_count(), 3);
}

/* Each time after the spare worker has gone to sleep: it is the one that there is, and nobody else
 * has to be woken or made. */
TEST(blocking_again_uses_the_spare_that_is_there_already)
{
    open_with_spares(1, 0);
    struct actor *actor = actor_new(
        ACTS(begins_blocking(), awaits_others_asleep(), ends_blocking(), repeats(99), finishes(0)));
    assert_result(actor_run(actor), 0);
    assert_in_range(workers_count(), 2, 5); /* one; for the others see above */
}

/* The last step on the spare worker ends when the other worker is back and sleeps, which makes the
 * spare one too many; but it has just readied a process. */
TEST(spare_that_rests_leaves_what_it_has_to_others)
{
    open_with_spares(1, 1);
    struct actor *child = actor_new(ACTS(finishes(0)));
    struct actor *blocked = start_blocked();
    struct actor *last =
        actor_start(ACTS(holds(), awaits_others_asleep(), spawns(child), finishes(0)));
    actor_await_held(last, 1);
    unblock(blocked);
    unblock(last);
    tally_wait(&child->closed, 1);
    world_await_live(0);
}

/* ---- calls that do not match ---- */

static int call_without_context(struct turn *turn, const struct act *act)
{
    (void)act;
    if (skua_blocking_begin(NULL) != SKUA_E_INVALID || skua_blocking_end(NULL) != SKUA_E_INVALID) {
        actor_surprise(turn->actor, "a call without a context was accepted");
    }
    return 0;
}

TEST(calls_that_do_not_match_are_refused)
{
    open_with_spares(1, 0);
    for (int round = 0; round < 3; round++) { /* the last call of each is for the step to end */
        struct actor *actor =
            actor_new(ACTS(refused(ends_blocking(), SKUA_E_INVALID), begins_blocking(),
                           refused(begins_blocking(), SKUA_E_INVALID), ends_blocking(),
                           refused(ends_blocking(), SKUA_E_INVALID), begins_blocking(),
                           does(call_without_context, NULL), finishes(0)));
        assert_result(actor_run(actor), 0);
    }
}

/* The steps follow each other without a pause. */
TEST(blocking_that_is_not_ended_ends_with_the_step)
{
    open_with_spares(1, 0);
    struct actor *actor =
        actor_new(ACTS(begins_blocking(), continues(1), refused(ends_blocking(), SKUA_E_INVALID),
                       continues(1), repeats(1), finishes(0)));
    assert_result(actor_run(actor), 0);
}

TEST(blocking_in_init_counts_on_a_worker_and_does_nothing_elsewhere)
{
    open_with_spares(1, 0);
    struct actor *outside = actor_new(ACTS(finishes(0)));
    outside->in_init = ACTS(begins_blocking(), begins_blocking(), ends_blocking(), ends_blocking());
    assert_result(actor_run(outside), 0);
    assert_int_equal(world_stats().spares, 0);

    struct actor *inside = actor_new(ACTS(finishes(0)));
    inside->in_init = ACTS(begins_blocking(), refused(begins_blocking(), SKUA_E_INVALID),
                           ends_blocking(), refused(ends_blocking(), SKUA_E_INVALID));
    assert_result(actor_run(actor_new(ACTS(spawns(inside), finishes(0)))), 0);
    actor_await_end(inside);
    assert_true(world_stats().spares >= 1);
}

/* ---- afterwards ---- */

#define MANY 5000

/* As many processes run at once as there are workers, and no more. */
static void check_parallelism(void)
{
    struct meter *meter = test_alloc(sizeof *meter);
    crowd_submit(crowd_new(MANY, ACTS(measures(meter), finishes(0))));
    world_await_live(0);
    assert_int_equal(meter->entries, MANY);
    assert_in_range(meter->most, 1, test_workers());
    workers_meet(test_workers());
}

TEST(blocking_leaves_as_many_workers_as_there_were)
{
    open_with_spares(0, SPARES);
    for (int round = 0; round < 5; round++) {
        struct actor *actors[SPARES];
        for (size_t i = 0; i < SPARES; i++) {
            actors[i] = actor_start(i % 2 == 0 ? ACTS(blocks(), finishes(0))
                                               : ACTS(begins_blocking(), holds(), finishes(0)));
            actor_await_held(actors[i], 1);
        }
        for (size_t i = 0; i < SPARES; i++) {
            unblock(actors[i]);
        }
        world_await_live(0);
        workers_let_spares_rest();
        assert_in_range(workers_count(), test_workers() + 1, test_workers() + SPARES);
        check_parallelism();
    }
}

TEST(blocking_again_and_again_leaves_as_many_workers_as_there_were)
{
    open_with_spares(0, SPARES);
    crowd_submit(crowd_new(200, ACTS(begins_blocking(), ends_blocking(), repeats(99),
                                     begins_blocking(), finishes(0))));
    world_await_live(0);
    workers_let_spares_rest();
    check_parallelism();
}

/* ---- the monitor and the stop ---- */

struct culprits {
    pthread_mutex_t lock;
    skua_pid pids[16];
    uint32_t count;
    skua_pid suspect;
};

static void note_culprit(void *arg, const skua_stall *stall)
{
    struct culprits *culprits = arg;
    (void)pthread_mutex_lock(&culprits->lock);
    if (culprits->count < COUNT_OF(culprits->pids)) {
        culprits->pids[culprits->count++] = stall->pid;
    }
    (void)pthread_mutex_unlock(&culprits->lock);
}

static bool suspect_is_culprit(void *arg)
{
    struct culprits *culprits = arg;
    bool found = false;
    (void)pthread_mutex_lock(&culprits->lock);
    for (uint32_t i = 0; i < culprits->count; i++) {
        found = found || skua_pid_equal(culprits->pids[i], culprits->suspect);
    }
    (void)pthread_mutex_unlock(&culprits->lock);
    return found;
}

static void forget_culprits(struct culprits *culprits)
{
    (void)pthread_mutex_lock(&culprits->lock);
    culprits->count = 0;
    (void)pthread_mutex_unlock(&culprits->lock);
}

/* By the time that a step which began later is found stuck, this one would have been, too. On a
 * slow machine it may be found so before it has said that it blocks, which ends with the first of
 * the others. */
TEST(blocked_step_is_no_stall)
{
    struct culprits *culprits = test_alloc(sizeof *culprits);
    (void)pthread_mutex_init(&culprits->lock, NULL);
    world_open_with((skua_runtime_config){.worker_count = 1,
                                          .stall_limit_ns = 10 * SKUA_MILLISECOND,
                                          .on_stall = note_culprit,
                                          .on_stall_arg = culprits});
    struct actor *blocked = start_blocked();
    for (int i = 0; i < 3; i++) {
        struct actor *stuck = actor_start(ACTS(holds(), finishes(0)));
        culprits->suspect = stuck->pid;
        wait_until(suspect_is_culprit, culprits, "the stall to be reported");
        unblock(stuck);
        if (i == 0) {
            forget_culprits(culprits);
        }
    }
    culprits->suspect = blocked->pid;
    assert_false(suspect_is_culprit(culprits));
    unblock(blocked);
}

TEST(blocked_step_that_does_not_return_makes_the_stop_stuck)
{
    open_with_spares(1, 0);
    struct actor *blocked = start_blocked();
    assert_int_equal(skua_runtime_stop(world_runtime(), 0), SKUA_E_STUCK);
    assert_int_equal(skua_runtime_destroy(world_runtime()), SKUA_E_BUSY);
    actor_let_go(blocked);
    assert_int_equal(skua_runtime_stop(world_runtime(), SKUA_FOREVER), SKUA_E_TIMEOUT);
}

/* While the stop waits for one step, others that are spare workers' own go on to their end. */
TEST(blocked_step_does_not_keep_others_from_ending)
{
    open_with_spares(1, 0);
    struct actor *blocked = start_blocked();
    const struct crowd others = crowd_new(50, NO_ACTS);
    crowd_submit(others);
    struct stopper *stopper = stopper_start(SKUA_FOREVER);
    crowd_await_end(others);
    for (size_t i = 0; i < others.count; i++) {
        assert_saw(others.actors[i], cancel(SKUA_E_STOPPED));
    }
    actor_let_go(blocked);
    assert_int_equal(stopper_join(stopper), 0);
}
