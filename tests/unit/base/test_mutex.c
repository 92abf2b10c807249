/* SPDX-License-Identifier: MIT */
/* Deadlines: how they are computed and how condition_wait_until keeps them. */
#include "base/mutex.h"

#include <errno.h>

#include "base/monotonic.h"
#include "test.h"

#define SECOND      UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open; /* under lock */
} room;

static void close_room(void)
{
    mutex_unlock(&room.lock);
    (void)pthread_cond_destroy(&room.changed);
    mutex_deinit(&room.lock);
}

/* The test is in it: holds its lock. */
static void enter_room(void)
{
    mutex_init(&room.lock);
    condition_init(&room.changed);
    room.open = false;
    mutex_lock(&room.lock);
    test_at_end(close_room);
}

/* ---- monotonic.h ---- */

TEST(monotonic_time_does_not_go_back)
{
    uint64_t last = monotonic_ns();
    for (int i = 0; i < 1000; i++) {
        const uint64_t now = monotonic_ns();
        assert_true(now >= last);
        last = now;
    }
}

TEST(deadline_is_the_timeout_from_now)
{
    static const uint64_t timeouts[] = {0, 1, 999999999, 5 * SECOND, UINT64_C(1) << 62};
    for (size_t i = 0; i < COUNT_OF(timeouts); i++) {
        const uint64_t before = monotonic_ns();
        const uint64_t deadline = monotonic_deadline(timeouts[i]);
        const uint64_t after = monotonic_ns();
        assert_true(deadline >= before + timeouts[i]);
        assert_true(deadline <= after + timeouts[i]);
    }
}

TEST(deadline_beyond_the_end_of_time_is_for_ever)
{
    assert_int_equal(monotonic_deadline(UINT64_MAX), UINT64_MAX);
    assert_int_equal(monotonic_deadline(UINT64_MAX - 1), UINT64_MAX);
}

/* ---- condition_wait_until ---- */

/* Whether a wait that nobody ends reports that its deadline has passed. It may end for no reason,
 * but not again and again. */
static bool times_out(uint64_t deadline)
{
    for (int i = 0; i < 100; i++) {
        if (!condition_wait_until(&room.changed, &room.lock, deadline)) {
            return true;
        }
    }
    return false;
}

TEST(wait_until_the_past_returns_false)
{
    enter_room();
    const uint64_t past[] = {0, 1, SECOND - 1, monotonic_ns() - 1};
    for (size_t i = 0; i < COUNT_OF(past); i++) {
        assert_true(times_out(past[i]));
    }
}

TEST(wait_that_timed_out_holds_the_mutex_again)
{
    enter_room();
    assert_true(times_out(0));
    assert_int_equal(pthread_mutex_trylock(&room.lock), EBUSY);
    mutex_unlock(&room.lock);
    assert_int_equal(pthread_mutex_trylock(&room.lock), 0);
}

/* Fails if seconds and nanoseconds are mixed up, or if the deadline is put to another clock. */
TEST(wait_does_not_time_out_before_its_deadline)
{
    enter_room();
    for (uint64_t timeout = 1; timeout <= 4 * MILLISECOND; timeout *= 4) {
        const uint64_t deadline = monotonic_deadline(timeout);
        assert_true(times_out(deadline));
        assert_true(monotonic_ns() >= deadline);
    }
}

static void *open_room(void *arg)
{
    mutex_lock(&room.lock);
    room.open = true;
    (void)pthread_cond_signal(&room.changed);
    mutex_unlock(&room.lock);
    return arg;
}

TEST(wait_until_the_far_future_or_for_ever_ends_with_the_signal)
{
    const uint64_t deadlines[] = {UINT64_MAX, UINT64_MAX - 1,
                                  monotonic_deadline(UINT64_C(1000000) * SECOND)};
    FOR_ROWS (deadline, deadlines) {
        pthread_t thread;
        bool in_time = true;
        enter_room(); /* so the signal cannot come before the wait */
        assert_int_equal(pthread_create(&thread, NULL, open_room, NULL), 0);
        while (!room.open && in_time) {
            in_time = condition_wait_until(&room.changed, &room.lock, *deadline);
        }
        assert_true(room.open);
        assert_true(in_time);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}
