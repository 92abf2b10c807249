/* SPDX-License-Identifier: MIT */
/* The explorer itself: threads that block. A mutex keeps others out and hands on what was written
 * in it; wakes and signals can be lost; time passes when the model says so; a join waits. */
#include "base/futex.h"
#include "self_test.h"

/* ---- futexes ---- */

/* Sleeps while x is 0; the check and the falling asleep are one step. */
static void sleep_rightly(const void *arg)
{
    (void)arg;
    while (load_seq_cst(&x) == 0) {
        futex_wait(&x, 0);
    }
}

/* Sleeps if x was 0 a step ago. */
static void sleep_wrongly(const void *arg)
{
    (void)arg;
    if (load_seq_cst(&x) == 0) {
        futex_wait(&y, 0);
    }
}

static void sleep_once(const void *arg)
{
    (void)arg;
    futex_wait(&x, 0);
    EXPLORE_CHECK(load_seq_cst(&x) == 1, "a futex wakes only when woken");
}

static void wake(const void *word)
{
    store_seq_cst(&x, 1);
    futex_wake_one(word == NULL ? &x : &y);
}

/* ---- conditions, and time ---- */

static void wait_rightly(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    while (load_relaxed(&x) == 0) {
        (void)condition_wait_until(&condition, &mutex, UINT64_MAX);
    }
    mutex_unlock(&mutex);
}

/* Waits if x was 0 before it had the mutex. */
static void wait_wrongly(const void *arg)
{
    (void)arg;
    const bool waits = load_relaxed(&x) == 0;
    mutex_lock(&mutex);
    if (waits) {
        (void)condition_wait_until(&condition, &mutex, UINT64_MAX);
    }
    mutex_unlock(&mutex);
}

/* Between the look at x and the sleep there is a step that nobody else's has to do with. */
static void wait_slowly(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    if (load_relaxed(&x) == 0) {
        (void)load_relaxed(&y);
        (void)pthread_cond_wait(&condition, &mutex);
    }
    mutex_unlock(&mutex);
}

static void signal_without_mutex(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    (void)pthread_cond_signal(&condition);
}

/* Waits for a while; x counts those that were in time, y the others. */
static void wait_a_while(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    const bool in_time = condition_wait_until(&condition, &mutex, 1);
    mutex_unlock(&mutex);
    (void)fetch_add_relaxed(in_time ? &x : &y, 1);
}

static void wait_patiently(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    const bool in_time = condition_wait_until(&condition, &mutex, 1);
    mutex_unlock(&mutex);
    EXPLORE_CHECK(in_time || load_relaxed(&x) == 1, "time does not pass before the signal");
}

static void check_in_time(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 1 && load_relaxed(&y) == 0, "it was in time");
}

static void check_too_late(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 0 && load_relaxed(&y) == 1, "it was too late");
}

static void signal_one(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    store_relaxed(&x, 1);
    (void)pthread_cond_signal(&condition);
    mutex_unlock(&mutex);
}

static void signal_all(const void *arg)
{
    (void)arg;
    mutex_lock(&mutex);
    store_relaxed(&x, 1);
    mutex_unlock(&mutex);
    (void)pthread_cond_broadcast(&condition); /* without the mutex it is a step of its own */
}

/* ---- joins ---- */

static void join_first(const void *arg)
{
    (void)arg;
    (void)pthread_join((pthread_t)0, NULL);
    EXPLORE_CHECK(load_relaxed(&x) == 2, "it has ended");
}

/* ---- what is expected ---- */

static const struct self_test tests[] = {
    PASSES(2, "update_with_mutex", .mode = EXPLORE_EACH, .threads = {TWICE(increment_locked)},
           .finish = check_two),
    PASSES(2, "update_with_open_mutex", .mode = EXPLORE_EACH, .threads = {TWICE(increment_locked)},
           .finish = check_two, .mutexes_are_open = true),
    FAILS("update_half_locked", .mode = EXPLORE_EACH,
          .threads = {ALONE(increment_locked), ALONE(increment_by_parts)}, .finish = check_two,
          .mutexes_are_open = true),

    PASSES(ANY, "wake_right", .threads = {ALONE(sleep_rightly), ALONE(wake)}),
    FAILS("wake_lost", .threads = {ALONE(sleep_wrongly), EXPLORE_THREAD("waker", wake, &y)}),
    PASSES(ANY, "wake_with_reason", .threads = {ALONE(sleep_once), ALONE(wake)}),
    FAILS("wake_without_reason", .threads = {ALONE(sleep_once), ALONE(wake)}, .spurious_wakes = 1),

    PASSES(2, "signal_right", .threads = {ALONE(wait_rightly), ALONE(signal_one)}),
    FAILS("signal_one_of_two",
          .threads = {ALONE(wait_rightly), ALONE(signal_one), ALONE(wait_rightly)}),
    PASSES(ANY, "signal_all",
           .threads = {ALONE(wait_rightly), ALONE(signal_all), ALONE(wait_rightly)}),
    FAILS("signal_lost", .threads = {ALONE(wait_wrongly), ALONE(signal_all)}),
    FAILS("signal_lost_open", .threads = {ALONE(wait_wrongly), ALONE(signal_all)},
          .mutexes_are_open = true),
    FAILS("signal_missed_open", .threads = {ALONE(wait_slowly), ALONE(signal_without_mutex)},
          .mutexes_are_open = true),
    FAILS("signal_missed_bounded", .mode = EXPLORE_PREEMPTIONS, .bound = 1,
          .threads = {ALONE(wait_slowly), ALONE(signal_without_mutex)}, .mutexes_are_open = true),
    PASSES(ANY, "signal_right_open", .threads = {ALONE(wait_rightly), ALONE(signal_one)},
           .mutexes_are_open = true),

    FAILS("time_stands_still", .threads = {ALONE(wait_a_while)}),
    PASSES(1, "time_passes", .threads = {ALONE(wait_a_while)}, .timeouts = 1,
           .finish = check_too_late),
    FAILS("time_may_pass_first", .threads = {ALONE(wait_a_while), ALONE(signal_all)}, .timeouts = 1,
          .finish = check_in_time),
    FAILS("time_is_quick", .threads = {ALONE(wait_patiently), ALONE(signal_all)}, .timeouts = 1),
    PASSES(ANY, "time_is_slow", .threads = {ALONE(wait_patiently), ALONE(signal_all)},
           .timeouts = 1, .time_is_slow = true),

    PASSES(1, "join", .mode = EXPLORE_EACH, .threads = {ALONE(add_twice), ALONE(join_first)}),
    FAILS("join_without_end", .mode = EXPLORE_EACH, .threads = {ALONE(take), ALONE(join_first)}),

    /* What a mutex and a join hand over is seen, however old the value that a load may see. */
    PASSES(ANY, "fresh_in_mutex", .threads = {TWICE(increment_locked)}, .finish = check_two,
           .stale = UINT32_MAX),
    PASSES(ANY, "fresh_in_open_mutex", .threads = {TWICE(increment_locked)}, .finish = check_two,
           .stale = UINT32_MAX, .mutexes_are_open = true),
    PASSES(ANY, "fresh_after_join", .threads = {ALONE(add_twice), ALONE(join_first)},
           .stale = UINT32_MAX),
};

static void body(void)
{
    run_tests(tests, COUNT_OF(tests));
}

int main(void)
{
    return run_self_test(body);
}
