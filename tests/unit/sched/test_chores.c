/* SPDX-License-Identifier: MIT */
/* When memory is given back, and what that gives way to, on a scheduler without threads. */
#include "sched/chores.h"

#include "dispatch/call.h"
#include "sched/timers.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

#define NODES 200000 /* more memory than is kept */
#define HOUR  (3600 * SKUA_SECOND)

/* As in chores.c. */
#define TRIM_DELAY_NS     (250 * SKUA_MILLISECOND)
#define TRIM_DELAY_MAX_NS (64 * SKUA_SECOND)

static struct pool_cache *cache(void)
{
    return &worker(0)->caches.events;
}

static uint32_t acquire_node(void)
{
    uint32_t index = OBJECT_NONE;
    assert_true(event_acquire_owner(&rig.sched.events, cache(), &index));
    return index;
}

/* After a burst of events, with a trim scheduled. */
static void open_after_burst(void)
{
    uint32_t *nodes = test_alloc(NODES * sizeof *nodes);
    scheduler_rig_open();
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i] = acquire_node();
    }
    for (uint32_t i = NODES; i > 0; i--) {
        event_release_owner(&rig.sched.events, cache(), nodes[i - 1]);
    }
    chores_consider_trim(worker(0));
    assert_int_equal(chores_next(&rig.sched), rig.now + TRIM_DELAY_NS);
}

static uint64_t trimmed(void)
{
    return load_relaxed(&worker(0)->stats.trimmed_bytes);
}

/* Moves the clock to when the next chore is due, and does it. */
static void do_next_chore(void)
{
    rig.now = chores_next(&rig.sched);
    assert_true(chores_are_due(&rig.sched));
    chores_do(worker(0));
}

/* A timer that nobody waits for; it is taken out before the test ends. */
static uint32_t arm_timer(uint64_t when)
{
    const uint32_t call = acquire_node();
    (void)call_open_owner(event_at(&rig.sched.events, call), call, (skua_pid){1});
    timers_arm(worker(0), call, &(struct timing){.now = rig.now, .when = when});
    return call;
}

static void take_timer_back(uint32_t call)
{
    deadlines_disarm_any(&rig.sched.deadlines, call);
    timers_correct_next(worker(0));
    event_release_owner(&rig.sched.events, cache(), call);
}

TEST(memory_is_given_back_a_while_after_a_burst)
{
    open_after_burst();
    do_next_chore();
    assert_in_range(trimmed(), NODES / 2 * sizeof(struct event_node), SIZE_MAX);
    assert_int_equal(chores_next(&rig.sched), UINT64_MAX);
}

TEST(trim_does_not_mind_a_timer_that_is_not_due)
{
    open_after_burst();
    const uint32_t timer = arm_timer(rig.now + HOUR);
    do_next_chore();
    assert_true(trimmed() > 0);
    take_timer_back(timer);
}

TEST(trim_gives_way_to_a_timer_that_is_due)
{
    open_after_burst();
    const uint32_t timer = arm_timer(rig.now);
    do_next_chore();
    assert_int_equal(trimmed(), 0);
    assert_int_equal(chores_next(&rig.sched), rig.now + 2 * TRIM_DELAY_NS);
    take_timer_back(timer);
    do_next_chore();
    assert_true(trimmed() > 0);
}

/* As with a ticker whose period is shorter than the trim would take. */
TEST(trim_does_not_give_way_to_timers_for_ever)
{
    open_after_burst();
    const uint64_t begin = rig.now;
    const uint32_t timer = arm_timer(rig.now);
    while (trimmed() == 0) {
        do_next_chore();
        assert_in_range(rig.now - begin, 0, 3 * TRIM_DELAY_MAX_NS);
    }
    take_timer_back(timer);
}

TEST(trim_gives_way_to_work)
{
    open_after_burst();
    (void)rig_spawn(NULL, &rig_resting);
    do_next_chore();
    assert_int_equal(trimmed(), 0);
    rig_run_all();
    do_next_chore();
    assert_true(trimmed() > 0);
}
