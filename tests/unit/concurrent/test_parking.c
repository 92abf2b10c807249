/* SPDX-License-Identifier: MIT */
/* The rules of parking that hold for each call by itself. That no wake-up is lost between threads
 * is shown by tests/model. */
#include "concurrent/parking.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aborts.h"

static uint32_t searching(struct parking *parking)
{
    return load_relaxed(&parking->searching);
}

static bool sleeps(struct parking *parking, uint32_t worker)
{
    const uint64_t group = load_relaxed(&parking->sleepers[worker / PARKING_GROUP_BITS]);
    return (group >> (worker % PARKING_GROUP_BITS) & 1) != 0;
}

static uint32_t sleeper_count(struct parking *parking)
{
    uint32_t count = 0;
    for (uint32_t worker = 0; worker < PARKING_WORKERS_MAX; worker++) {
        count += sleeps(parking, worker);
    }
    return count;
}

static void put_to_sleep(struct parking *parking, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        parking_announce(parking, first + i, false);
    }
}

/* Claims and lets the claimed worker leave the search again, so that the next claim can succeed. */
static int claim_and_leave(struct parking *parking)
{
    const int claimed = parking_claim_any(parking);
    if (claimed != PARKING_NOBODY) {
        (void)!parking_end_search(parking);
    }
    return claimed;
}

/* ---- claiming ---- */

static void parking_new_has_nobody_to_wake(void **state)
{
    (void)state;
    struct parking parking;
    memset(&parking, 0xff, sizeof parking);
    parking_init(&parking, PARKING_WORKERS_MAX);
    assert_int_equal(parking_claim_any(&parking), PARKING_NOBODY);
    assert_int_equal(searching(&parking), 0);
    for (uint32_t worker = 0; worker < PARKING_WORKERS_MAX; worker++) {
        assert_false(parking_claim_worker(&parking, worker));
    }
    assert_int_equal(searching(&parking), 0);
}

static void parking_claim_takes_a_sleeper_and_makes_it_a_searcher(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 8);
    parking_announce(&parking, 5, false);
    assert_int_equal(parking_claim_any(&parking), 5);
    assert_false(sleeps(&parking, 5));
    assert_int_equal(searching(&parking), 1);
}

static void parking_claim_wakes_nobody_while_one_searches(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 8);
    put_to_sleep(&parking, 0, 4);
    assert_true(parking_start_search(&parking));
    assert_int_equal(parking_claim_any(&parking), PARKING_NOBODY);
    assert_int_equal(sleeper_count(&parking), 4);
    assert_int_equal(searching(&parking), 1);
    assert_true(parking_end_search(&parking));
    assert_int_not_equal(parking_claim_any(&parking), PARKING_NOBODY);
    assert_int_equal(parking_claim_any(&parking), PARKING_NOBODY); /* the claimed one searches */
    assert_int_equal(sleeper_count(&parking), 3);
}

static void check_each_sleeper_is_claimed_once(uint32_t worker_count, uint32_t every)
{
    struct parking parking;
    bool claimed[PARKING_WORKERS_MAX] = {false};
    uint32_t asleep = 0;
    parking_init(&parking, worker_count);
    for (uint32_t worker = every - 1; worker < worker_count; worker += every) {
        parking_announce(&parking, worker, false);
        asleep++;
    }
    for (uint32_t i = 0; i < asleep; i++) {
        const int worker = claim_and_leave(&parking);
        assert_in_range(worker, 0, worker_count - 1);
        assert_int_equal((uint32_t)worker % every, every - 1); /* was asleep at all */
        assert_false(claimed[worker]);
        claimed[worker] = true;
    }
    assert_int_equal(claim_and_leave(&parking), PARKING_NOBODY);
    assert_int_equal(searching(&parking), 0);
}

static void parking_claims_each_sleeper_once_in_all_groups(void **state)
{
    (void)state;
    static const uint32_t worker_counts[] = {1, 2, 63, 64, 65, 128, 129, 200, 255, 256};
    for (size_t i = 0; i < sizeof worker_counts / sizeof worker_counts[0]; i++) {
        check_each_sleeper_is_claimed_once(worker_counts[i], 1);
    }
    check_each_sleeper_is_claimed_once(256, 3);
    check_each_sleeper_is_claimed_once(256, 64);
    check_each_sleeper_is_claimed_once(256, 256);
}

static void parking_claim_worker_wakes_that_one_even_while_others_search(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 200);
    put_to_sleep(&parking, 60, 100);
    assert_true(parking_start_search(&parking));
    assert_true(parking_claim_worker(&parking, 130));
    assert_false(sleeps(&parking, 130));
    assert_int_equal(sleeper_count(&parking), 99);
    assert_int_equal(searching(&parking), 2);
    assert_false(parking_claim_worker(&parking, 130));
    assert_false(parking_claim_worker(&parking, 10));
    assert_int_equal(searching(&parking), 2);
}

/* ---- searching ---- */

/* How many may search at once while `asleep` of the workers sleep. */
static uint32_t searchers_admitted(uint32_t worker_count, uint32_t asleep)
{
    struct parking parking;
    parking_init(&parking, worker_count);
    put_to_sleep(&parking, 0, asleep);
    uint32_t admitted = 0;
    while (admitted <= worker_count && parking_start_search(&parking)) {
        admitted++;
    }
    assert_int_equal(searching(&parking), admitted); /* the refused one was not counted */
    return admitted;
}

static void parking_half_of_the_awake_may_search_and_always_one(void **state)
{
    (void)state;
    assert_int_equal(searchers_admitted(1, 0), 1);
    assert_int_equal(searchers_admitted(2, 0), 1);
    assert_int_equal(searchers_admitted(3, 0), 2);
    assert_int_equal(searchers_admitted(4, 0), 2);
    assert_int_equal(searchers_admitted(8, 0), 4);
    assert_int_equal(searchers_admitted(8, 4), 2);
    assert_int_equal(searchers_admitted(8, 6), 1);
    assert_int_equal(searchers_admitted(8, 7), 1);
    assert_int_equal(searchers_admitted(256, 0), 128);
    assert_int_equal(searchers_admitted(256, 192), 32); /* sleepers of all groups count */
}

static void parking_end_search_tells_only_the_last(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 8);
    assert_true(parking_start_search(&parking));
    assert_true(parking_start_search(&parking));
    assert_true(parking_start_search(&parking));
    assert_false(parking_end_search(&parking));
    assert_false(parking_end_search(&parking));
    assert_true(parking_end_search(&parking));
    assert_int_equal(searching(&parking), 0);
}

static void end_search_of_new_parking(void *arg)
{
    (void)!parking_end_search(arg);
}

static void announce_as_searcher(void *arg)
{
    parking_announce(arg, 0, true);
}

static void parking_leaving_a_search_nobody_is_in_aborts(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 8);
    assert_true(aborts(end_search_of_new_parking, &parking)); /* INV-9 */
    assert_true(aborts(announce_as_searcher, &parking));
}

/* ---- going to sleep ---- */

static void parking_announce_leaves_the_search_only_if_in_it(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 100);
    assert_true(parking_start_search(&parking));
    assert_true(parking_start_search(&parking));
    parking_announce(&parking, 70, true);
    assert_true(sleeps(&parking, 70));
    assert_int_equal(searching(&parking), 1);
    parking_announce(&parking, 3, false);
    assert_true(sleeps(&parking, 3));
    assert_int_equal(searching(&parking), 1);
    assert_int_equal(sleeper_count(&parking), 2);
}

static void parking_retract_unclaimed_goes_on_as_a_searcher(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 100);
    parking_announce(&parking, 69, false);
    parking_announce(&parking, 70, false);
    assert_true(parking_retract(&parking, 70));
    assert_int_equal(searching(&parking), 1);
    assert_false(sleeps(&parking, 70));
    assert_true(sleeps(&parking, 69));
}

static void parking_retract_claimed_must_wait_for_its_token(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking, 100);
    parking_announce(&parking, 70, false);
    assert_int_equal(parking_claim_any(&parking), 70);
    assert_false(parking_retract(&parking, 70));
    assert_int_equal(searching(&parking), 1); /* the claim has counted it already */
}

static void init_with_too_many_workers(void *arg)
{
    parking_init(arg, PARKING_WORKERS_MAX + 1);
}

static void parking_init_with_too_many_workers_aborts(void **state)
{
    (void)state;
    struct parking parking;
    assert_true(aborts(init_with_too_many_workers, &parking));
}

/* ---- tokens ---- */

static void token_given_before_can_be_taken_at_once(void **state)
{
    (void)state;
    struct park_token token = {.word = 0};
    for (int i = 0; i < 3; i++) {
        park_token_give(&token);
        assert_int_equal(load_relaxed(&token.word), 1);
        park_token_take(&token);
        assert_int_equal(load_relaxed(&token.word), 0);
    }
}

static void give_token(void *arg)
{
    park_token_give(arg);
}

static void token_given_twice_aborts(void **state)
{
    (void)state;
    struct park_token token = {.word = 0};
    park_token_give(&token);
    assert_true(aborts(give_token, &token)); /* INV-8 */
}

static void *take_token(void *arg)
{
    park_token_take(arg);
    return NULL;
}

static void token_given_to_a_sleeper_wakes_it(void **state)
{
    (void)state;
    struct park_token token = {.word = 0};
    pthread_t sleeper;
    assert_int_equal(pthread_create(&sleeper, NULL, take_token, &token), 0);
    while (load_acquire(&token.word) != 2) { /* it waits, or is just about to */
        (void)sched_yield();
    }
    park_token_give(&token);
    assert_int_equal(pthread_join(sleeper, NULL), 0);
    assert_int_equal(load_relaxed(&token.word), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parking_new_has_nobody_to_wake),
        cmocka_unit_test(parking_claim_takes_a_sleeper_and_makes_it_a_searcher),
        cmocka_unit_test(parking_claim_wakes_nobody_while_one_searches),
        cmocka_unit_test(parking_claims_each_sleeper_once_in_all_groups),
        cmocka_unit_test(parking_claim_worker_wakes_that_one_even_while_others_search),
        cmocka_unit_test(parking_half_of_the_awake_may_search_and_always_one),
        cmocka_unit_test(parking_end_search_tells_only_the_last),
        cmocka_unit_test(parking_leaving_a_search_nobody_is_in_aborts),
        cmocka_unit_test(parking_announce_leaves_the_search_only_if_in_it),
        cmocka_unit_test(parking_retract_unclaimed_goes_on_as_a_searcher),
        cmocka_unit_test(parking_retract_claimed_must_wait_for_its_token),
        cmocka_unit_test(parking_init_with_too_many_workers_aborts),
        cmocka_unit_test(token_given_before_can_be_taken_at_once),
        cmocka_unit_test(token_given_twice_aborts),
        cmocka_unit_test(token_given_to_a_sleeper_wakes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
