/* SPDX-License-Identifier: MIT */
/* When a stop takes a worker for stuck, and when only for slow. The workers have no threads: the
 * test says what theirs would be doing. */
#include "sched/stuck.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "scheduler_rig.h"

#define SOME_PID UINT64_C(12345)
#define MANY     100

/* The first worker is in a step, and its thread is this one or another. */
static void open_in_step(uint32_t thread_id)
{
    scheduler_rig_open();
    store_relaxed(&worker(0)->running, SOME_PID);
    store_relaxed(&worker(0)->thread_id, thread_id);
    stuck_begin_locked(&rig.sched);
}

static void use_cpu(uint64_t ns)
{
    counter_add_owner(&worker(0)->stats.cpu_ns, ns);
}

/* This thread runs while it asks: it stands for one that waits for a CPU. */
TEST(worker_that_waits_for_a_cpu_is_not_stuck)
{
    open_in_step((uint32_t)gettid());
    for (int i = 0; i < MANY; i++) {
        assert_false(stuck_sample_locked(&rig.sched));
    }
}

TEST(worker_that_computes_in_one_step_is_stuck)
{
    open_in_step((uint32_t)gettid());
    use_cpu(99 * SKUA_MILLISECOND);
    assert_false(stuck_sample_locked(&rig.sched));
    use_cpu(SKUA_MILLISECOND);
    assert_true(stuck_sample_locked(&rig.sched));
}

TEST(worker_that_computes_in_many_steps_is_not_stuck)
{
    open_in_step((uint32_t)gettid());
    for (int i = 0; i < MANY; i++) {
        counter_add_owner(&worker(0)->stats.steps, 1);
        use_cpu(SKUA_SECOND);
        assert_false(stuck_sample_locked(&rig.sched));
    }
}

TEST(worker_without_a_step_is_not_stuck)
{
    open_in_step(0);
    store_relaxed(&worker(0)->running, RUNNING_NOTHING);
    for (int i = 0; i < MANY; i++) {
        use_cpu(SKUA_SECOND);
        assert_false(stuck_sample_locked(&rig.sched));
    }
}

/* ---- asleep ---- */

static struct {
    pthread_mutex_t lock; /* held by the test */
    _Atomic uint32_t id;
    pthread_t thread;
} sleeper = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *sleep_on_lock(void *arg)
{
    (void)arg;
    atomic_store(&sleeper.id, (uint32_t)gettid());
    (void)pthread_mutex_lock(&sleeper.lock);
    (void)pthread_mutex_unlock(&sleeper.lock);
    return NULL;
}

/* Several samples in a row: it may be about to go on. The first may be before it sleeps. */
TEST(worker_that_sleeps_in_a_step_is_stuck)
{
    atomic_store(&sleeper.id, 0);
    (void)pthread_mutex_lock(&sleeper.lock);
    assert_int_equal(pthread_create(&sleeper.thread, NULL, sleep_on_lock, NULL), 0);
    while (atomic_load(&sleeper.id) == 0) {
        (void)sched_yield();
    }
    open_in_step(atomic_load(&sleeper.id));
    assert_false(stuck_sample_locked(&rig.sched));
    while (!stuck_sample_locked(&rig.sched)) {
        (void)sched_yield();
    }
    (void)pthread_mutex_unlock(&sleeper.lock);
    (void)pthread_join(sleeper.thread, NULL);
}

TEST(worker_whose_thread_is_unknown_is_stuck_if_it_uses_no_cpu)
{
    open_in_step(0);
    for (int i = 0; i < 3; i++) {
        assert_false(stuck_sample_locked(&rig.sched));
    }
    use_cpu(2 * SKUA_MILLISECOND); /* it does */
    for (int i = 0; i < 4; i++) {
        assert_false(stuck_sample_locked(&rig.sched));
    }
    assert_true(stuck_sample_locked(&rig.sched));
}
