/* SPDX-License-Identifier: MIT */
/* The rules of parking that hold for each call by itself. That no wake-up is lost between threads
 * is shown by tests/model. */
#include "concurrent/parking.h"

#include <pthread.h>
#include <sched.h>

#include "aborts.h"
#include "test.h"

#define SPARES      64
#define SPARE_FIRST (PARKING_WORKERS_MAX - SPARES)

static struct parking parking;

static void open_parking(uint32_t workers)
{
    memset(&parking, 0xff, sizeof parking);
    parking_init(&parking, workers, workers);
}

/* P2 to P4. */
static int claim_any(int last_choice)
{
    return parking_may_claim(&parking) ? parking_claim_sleeper_any(&parking, last_choice)
                                       : PARKING_NOBODY;
}

static uint32_t searching(void)
{
    return load_relaxed(&parking.searching);
}

static bool sleeps(uint32_t worker)
{
    const uint64_t group = load_relaxed(&parking.sleepers[worker / PARKING_GROUP_BITS]);
    return (group >> (worker % PARKING_GROUP_BITS) & 1) != 0;
}

static uint32_t sleeper_count(void)
{
    uint32_t count = 0;
    for (uint32_t worker = 0; worker < PARKING_WORKERS_MAX; worker++) {
        count += sleeps(worker);
    }
    return count;
}

static void put_to_sleep(uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        parking_announce_owner(&parking, first + i, false);
    }
}

/* Claims and lets the claimed worker leave the search again, so that the next claim can succeed. */
static int claim_and_leave(int last_choice)
{
    const int claimed = claim_any(last_choice);
    if (claimed != PARKING_NOBODY) {
        (void)!parking_end_search_owner(&parking);
    }
    return claimed;
}

/* ---- claiming ---- */

TEST(parking_new_has_nobody_to_wake)
{
    open_parking(PARKING_WORKERS_MAX);
    assert_int_equal(claim_any(PARKING_NOBODY), PARKING_NOBODY);
    assert_int_equal(searching(), 0);
    for (uint32_t worker = 0; worker < PARKING_WORKERS_MAX; worker++) {
        assert_false(parking_claim_worker_any(&parking, worker));
    }
    assert_int_equal(searching(), 0);
}

TEST(parking_claim_takes_a_sleeper_and_makes_it_a_searcher)
{
    open_parking(8);
    parking_announce_owner(&parking, 5, false);
    assert_int_equal(claim_any(PARKING_NOBODY), 5);
    assert_false(sleeps(5));
    assert_int_equal(searching(), 1);
}

TEST(parking_claim_wakes_nobody_while_one_searches)
{
    open_parking(8);
    put_to_sleep(0, 4);
    assert_true(parking_start_search_owner(&parking));
    assert_int_equal(claim_any(PARKING_NOBODY), PARKING_NOBODY);
    assert_int_equal(sleeper_count(), 4);
    assert_int_equal(searching(), 1);
    assert_true(parking_end_search_owner(&parking));
    assert_int_not_equal(claim_any(PARKING_NOBODY), PARKING_NOBODY);
    assert_int_equal(claim_any(PARKING_NOBODY), PARKING_NOBODY); /* the claimed one searches */
    assert_int_equal(sleeper_count(), 3);
}

static void check_each_sleeper_is_claimed_once(uint32_t worker_count, uint32_t every)
{
    bool claimed[PARKING_WORKERS_MAX] = {false};
    uint32_t asleep = 0;
    open_parking(worker_count);
    for (uint32_t worker = every - 1; worker < worker_count; worker += every) {
        parking_announce_owner(&parking, worker, false);
        asleep++;
    }
    for (uint32_t i = 0; i < asleep; i++) {
        const int worker = claim_and_leave(PARKING_NOBODY);
        assert_in_range(worker, 0, worker_count - 1);
        assert_int_equal((uint32_t)worker % every, every - 1); /* was asleep at all */
        assert_false(claimed[worker]);
        claimed[worker] = true;
    }
    assert_int_equal(claim_and_leave(PARKING_NOBODY), PARKING_NOBODY);
    assert_int_equal(searching(), 0);
}

TEST(parking_claims_each_sleeper_once_in_all_groups)
{
    static const uint32_t worker_counts[] = {1, 2, 63, 64, 65, 128, 129, 200, 255, 256, 257, 320};
    FOR_ROWS (count, worker_counts) {
        check_each_sleeper_is_claimed_once(*count, 1);
        check_each_sleeper_is_claimed_once(*count, *count < 3 ? *count : 3);
        check_each_sleeper_is_claimed_once(*count, *count < 64 ? *count : 64);
        check_each_sleeper_is_claimed_once(*count, *count);
    }
}

/* All of `worker_count` sleep; `last` is claimed after all the others, which come in order. */
static void check_last_choice_comes_last(uint32_t worker_count, uint32_t last)
{
    open_parking(worker_count);
    put_to_sleep(0, worker_count);
    for (uint32_t worker = 0; worker < worker_count; worker++) {
        if (worker != last) {
            assert_int_equal(claim_and_leave((int)last), worker);
        }
    }
    assert_int_equal(claim_and_leave((int)last), last);
    assert_int_equal(claim_and_leave((int)last), PARKING_NOBODY);
    assert_int_equal(searching(), 0);
}

TEST(parking_claim_takes_the_last_choice_after_all_others)
{
    static const uint32_t worker_counts[] = {1, 2, 64, 65, 130, 320};
    FOR_ROWS (count, worker_counts) {
        check_last_choice_comes_last(*count, 0);
        check_last_choice_comes_last(*count, *count / 2);
        check_last_choice_comes_last(*count, *count - 1);
    }
}

/* The last choice is a hint, which may be out of date by the time of the claim. */
TEST(parking_claim_of_a_last_choice_that_is_awake_finds_nobody)
{
    open_parking(200);
    assert_int_equal(claim_any(150), PARKING_NOBODY);
    assert_int_equal(searching(), 0);
    parking_announce_owner(&parking, 150, false);
    assert_true(parking_start_search_owner(&parking));
    assert_int_equal(claim_any(150), PARKING_NOBODY); /* as for all others */
    assert_true(sleeps(150));
    assert_true(parking_end_search_owner(&parking));
    assert_int_equal(claim_any(150), 150);
    assert_int_equal(searching(), 1);
}

/* ---- spare workers ---- */

TEST(parking_spare_workers_are_claimed_like_others)
{
    parking_init(&parking, 66, 2);
    parking_announce_owner(&parking, 65, false);
    assert_int_equal(claim_and_leave(PARKING_NOBODY), 65);
    parking_announce_owner(&parking, 65, false);
    assert_true(parking_claim_worker_any(&parking, 65));
    assert_false(sleeps(65));
}

TEST(parking_asleep_counts_the_bits_of_all_groups)
{
    parking_init(&parking, PARKING_WORKERS_MAX, SPARE_FIRST);
    assert_int_equal(parking_asleep(&parking), 0);
    for (uint32_t worker = 0; worker < PARKING_WORKERS_MAX; worker += 5) {
        parking_announce_owner(&parking, worker, false);
        assert_int_equal(parking_asleep(&parking), worker / 5 + 1);
    }
    assert_true(parking_claim_worker_any(&parking, PARKING_WORKERS_MAX - 5));
    assert_int_equal(parking_asleep(&parking), PARKING_WORKERS_MAX / 5 - 1);
}

TEST(parking_claim_worker_wakes_that_one_even_while_others_search)
{
    open_parking(200);
    put_to_sleep(60, 100);
    assert_true(parking_start_search_owner(&parking));
    assert_true(parking_claim_worker_any(&parking, 130));
    assert_false(sleeps(130));
    assert_int_equal(sleeper_count(), 99);
    assert_int_equal(searching(), 2);
    assert_false(parking_claim_worker_any(&parking, 130));
    assert_false(parking_claim_worker_any(&parking, 10));
    assert_int_equal(searching(), 2);
}

/* ---- searching ---- */

/* The spare ones that could come make no difference. */
TEST(parking_half_of_the_awake_may_search_and_always_one)
{
    static const struct {
        uint32_t workers;
        uint32_t asleep;
        uint32_t searchers;
    } rows[] = {
        {1, 0, 1}, {2, 0, 1}, {3, 0, 2},     {4, 0, 2},      {8, 0, 4}, {8, 4, 2},
        {8, 6, 1}, {8, 7, 1}, {256, 0, 128}, {256, 192, 32}, /* sleepers of all groups count */
    };
    FOR_ROWS (row, rows) {
        uint32_t admitted = 0;
        parking_init(&parking, row->workers + SPARES, row->workers);
        put_to_sleep(0, row->asleep);
        while (admitted <= row->workers && parking_start_search_owner(&parking)) {
            admitted++;
        }
        assert_int_equal(admitted, row->searchers);
        assert_int_equal(searching(), admitted); /* the refused one was not counted */
    }
}

TEST(parking_end_search_tells_only_the_last)
{
    open_parking(8);
    assert_true(parking_start_search_owner(&parking));
    assert_true(parking_start_search_owner(&parking));
    assert_true(parking_start_search_owner(&parking));
    assert_false(parking_end_search_owner(&parking));
    assert_false(parking_end_search_owner(&parking));
    assert_true(parking_end_search_owner(&parking));
    assert_int_equal(searching(), 0);
}

static void end_search_of_new_parking(void *arg)
{
    (void)!parking_end_search_owner(arg);
}

static void announce_as_searcher(void *arg)
{
    parking_announce_owner(arg, 0, true);
}

TEST(parking_leaving_a_search_nobody_is_in_aborts)
{
    open_parking(8);
    assert_true(aborts(end_search_of_new_parking, &parking)); /* INV-9 */
    assert_true(aborts(announce_as_searcher, &parking));
}

/* ---- going to sleep ---- */

TEST(parking_announce_leaves_the_search_only_if_in_it)
{
    open_parking(100);
    assert_true(parking_start_search_owner(&parking));
    assert_true(parking_start_search_owner(&parking));
    parking_announce_owner(&parking, 70, true);
    assert_true(sleeps(70));
    assert_int_equal(searching(), 1);
    parking_announce_owner(&parking, 3, false);
    assert_true(sleeps(3));
    assert_int_equal(searching(), 1);
    assert_int_equal(sleeper_count(), 2);
}

TEST(parking_retract_unclaimed_goes_on_as_a_searcher)
{
    open_parking(100);
    parking_announce_owner(&parking, 69, false);
    parking_announce_owner(&parking, 70, false);
    assert_true(parking_retract_owner(&parking, 70));
    assert_int_equal(searching(), 1);
    assert_false(sleeps(70));
    assert_true(sleeps(69));
}

TEST(parking_retract_claimed_must_wait_for_its_token)
{
    open_parking(100);
    parking_announce_owner(&parking, 70, false);
    assert_int_equal(claim_any(PARKING_NOBODY), 70);
    assert_false(parking_retract_owner(&parking, 70));
    assert_int_equal(searching(), 1); /* the claim has counted it already */
}

static void init_with_more_usual_workers_than_all(void *arg)
{
    parking_init(arg, 8, 9);
}

static void init_with_too_many_workers(void *arg)
{
    parking_init(arg, PARKING_WORKERS_MAX + 1, PARKING_WORKERS_MAX + 1);
}

TEST(parking_init_with_too_many_workers_aborts)
{
    assert_true(aborts(init_with_too_many_workers, &parking));
    assert_true(aborts(init_with_more_usual_workers_than_all, &parking));
}

/* ---- tokens ---- */

TEST(token_given_before_can_be_taken_at_once)
{
    struct park_token token = {.word = 0};
    for (int i = 0; i < 3; i++) {
        assert_false(park_token_give_any(&token));
        assert_int_equal(load_relaxed(&token.word), 1);
        park_token_take_owner(&token);
        assert_int_equal(load_relaxed(&token.word), 0);
    }
}

static void give_token(void *arg)
{
    (void)!park_token_give_any(arg);
}

TEST(token_given_twice_aborts)
{
    struct park_token token = {.word = 0};
    assert_false(park_token_give_any(&token));
    assert_true(aborts(give_token, &token)); /* INV-8 */
}

static void *take_token(void *arg)
{
    park_token_take_owner(arg);
    return NULL;
}

/* Who gives the token to a worker in the poller must interrupt the poller; nobody else. */
TEST(token_given_to_a_polling_worker_asks_for_an_interrupt)
{
    struct park_token token = {.word = 0};
    for (int i = 0; i < 3; i++) {
        assert_true(park_token_start_polling_owner(&token));
        assert_false(park_token_is_given(&token));
        assert_true(park_token_give_any(&token));
        assert_true(park_token_is_given(&token));
        assert_false(park_token_end_polling_owner(&token)); /* it must be taken */
        assert_true(park_token_is_given(&token));
        park_token_take_owner(&token);
        assert_false(park_token_is_given(&token));
        assert_int_equal(load_relaxed(&token.word), 0);
    }
}

TEST(token_given_before_polling_keeps_the_worker_from_it)
{
    struct park_token token = {.word = 0};
    assert_false(park_token_give_any(&token));
    assert_false(park_token_start_polling_owner(&token));
    assert_true(park_token_is_given(&token));
    park_token_take_owner(&token);
    assert_true(park_token_start_polling_owner(&token));
}

TEST(token_not_given_while_polling_is_not_there_afterwards)
{
    struct park_token token = {.word = 0};
    assert_true(park_token_start_polling_owner(&token));
    assert_true(park_token_end_polling_owner(&token));
    assert_int_equal(load_relaxed(&token.word), 0);
    assert_false(park_token_give_any(&token)); /* nobody is in the poller any more */
    park_token_take_owner(&token);
}

TEST(token_given_twice_to_a_polling_worker_aborts)
{
    struct park_token token = {.word = 0};
    assert_true(park_token_start_polling_owner(&token));
    assert_true(park_token_give_any(&token));
    assert_true(aborts(give_token, &token)); /* INV-8 */
}

TEST(token_given_to_a_sleeper_wakes_it)
{
    struct park_token token = {.word = 0};
    pthread_t sleeper;
    assert_int_equal(pthread_create(&sleeper, NULL, take_token, &token), 0);
    while (load_acquire(&token.word) != 2) { /* it waits, or is just about to */
        (void)sched_yield();
    }
    assert_false(park_token_give_any(&token)); /* on its futex, not in the poller */
    assert_int_equal(pthread_join(sleeper, NULL), 0);
    assert_int_equal(load_relaxed(&token.word), 0);
}
