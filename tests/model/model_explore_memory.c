/* SPDX-License-Identifier: MIT */
/* The explorer itself: litmus tests, what weak memory allows and what not. */
#include "self_test.h"

/* Store buffering, as raise_and_look: each stores to its word and reads the other's. */
static void store_load_relaxed(const void *second)
{
    store_relaxed(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_relaxed(second == NULL ? &y : &x);
}

static void store_load_acq_rel(const void *second)
{
    store_release(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_acquire(second == NULL ? &y : &x);
}

static void exchange_load_acq_rel(const void *second)
{
    (void)exchange_acq_rel(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_acquire(second == NULL ? &y : &x);
}

static void add_load_seq_cst(const void *second)
{
    (void)fetch_add_seq_cst(second == NULL ? &x : &y, 1);
    seen[second != NULL] = load_seq_cst(second == NULL ? &y : &x);
}

static void exchange_both_acq_rel(const void *second)
{
    (void)exchange_acq_rel(second == NULL ? &x : &y, 1);
    seen[second != NULL] = fetch_add_acq_rel(second == NULL ? &y : &x, 1);
}

/* Message passing: the message is x (and y), and the flag says that it is there. */
static void pass_relaxed(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    store_relaxed(&y, 1);
    store_relaxed(&flag, 1);
}

static void pass_release(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    store_release(&flag, 1);
}

static void check_message(bool passed)
{
    EXPLORE_CHECK(!passed || load_relaxed(&x) == 1, "the message is there");
}

static void receive_relaxed(const void *arg)
{
    (void)arg;
    check_message(load_relaxed(&flag) == 1);
}

static void receive_acquire(const void *arg)
{
    (void)arg;
    check_message(load_acquire(&flag) == 1);
}

/* Needs two stale loads to fail. */
static void receive_either(const void *arg)
{
    (void)arg;
    if (load_relaxed(&flag) == 1) {
        const uint32_t first = load_relaxed(&x);
        EXPLORE_CHECK(first + load_relaxed(&y) > 0, "one of two messages is there");
    }
}

/* Independent reads of independent writes: do two readers see two writers in the same order? */
static void write_release(const void *second)
{
    store_release(second == NULL ? &x : &y, 1);
}

static void write_seq_cst(const void *second)
{
    store_seq_cst(second == NULL ? &x : &y, 1);
}

static void read_both_acquire(const void *second)
{
    uint32_t *to = second == NULL ? &seen[0] : &seen[2];
    to[0] = load_acquire(second == NULL ? &x : &y);
    to[1] = load_acquire(second == NULL ? &y : &x);
}

static void read_both_seq_cst(const void *second)
{
    uint32_t *to = second == NULL ? &seen[0] : &seen[2];
    to[0] = load_seq_cst(second == NULL ? &x : &y);
    to[1] = load_seq_cst(second == NULL ? &y : &x);
}

static void check_one_order(void)
{
    EXPLORE_CHECK(!(seen[0] == 1 && seen[1] == 0 && seen[2] == 1 && seen[3] == 0),
                  "both see the same order");
}

/* Coherence: of one word nobody goes back. */
static void write_one_two(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    store_relaxed(&x, 2);
}

static void read_in_order(const void *arg)
{
    (void)arg;
    const uint32_t first = load_relaxed(&x);
    EXPLORE_CHECK(first <= load_relaxed(&x), "a word does not go back");
}

static void read_own(const void *arg)
{
    (void)arg;
    store_relaxed(&x, 1);
    EXPLORE_CHECK(load_relaxed(&x) != 0, "its own store, or a later one");
}

/* A release sequence goes on through a read-modify-write, and ends with any other store. */
static void hand_on_by_add(const void *arg)
{
    (void)arg;
    (void)fetch_add_relaxed(&flag, 1);
}

static void hand_on_by_store(const void *arg)
{
    (void)arg;
    if (load_relaxed(&flag) == 1) {
        store_relaxed(&flag, 2);
    }
}

static void receive_two(const void *arg)
{
    (void)arg;
    check_message(load_acquire(&flag) == 2);
}

/* Of two seq_cst loads the one that sees the older value comes first; both ways are possible. */
static void read_after_flag(const void *second)
{
    if (load_relaxed(&flag) == 1) {
        seen[second != NULL] = 1 + load_seq_cst(&x);
    }
}

static void check_first_not_older(void)
{
    EXPLORE_CHECK(seen[0] != 1 || seen[1] != 2, "the first reader sees no less than the second");
}

static void check_second_not_older(void)
{
    EXPLORE_CHECK(seen[1] != 1 || seen[0] != 2, "the second reader sees no less than the first");
}

/* A compare-exchange may fail by what it sees, though what is there would let it succeed. */
static void replace_one(const void *arg)
{
    (void)arg;
    uint32_t expected = 1;
    if (load_relaxed(&flag) == 1) {
        EXPLORE_CHECK(cas_acq_rel_relaxed(&x, &expected, 2), "it sees the newest");
    }
}

static void replace_one_seq_cst(const void *arg)
{
    (void)arg;
    uint32_t expected = 1;
    if (load_relaxed(&flag) == 1) {
        EXPLORE_CHECK(cas_seq_cst(&x, &expected, 2), "it sees the newest");
    }
}

static void pass_seq_cst(const void *arg)
{
    (void)arg;
    store_seq_cst(&x, 1);
    store_relaxed(&flag, 1);
}

static void check_four(void)
{
    EXPLORE_CHECK(load_relaxed(&x) == 4, "no addition is lost");
}

/* ---- what is expected ---- */

static const struct self_test tests[] = {
    FAILS("sb_relaxed", .threads = {PAIR(store_load_relaxed)}, .finish = check_one_saw),
    FAILS("sb_acq_rel", .threads = {PAIR(store_load_acq_rel)}, .finish = check_one_saw),
    FAILS("sb_exchange_acq_rel", .threads = {PAIR(exchange_load_acq_rel)}, .finish = check_one_saw),
    PASSES(ANY, "sb_seq_cst", .threads = {PAIR(raise_and_look)}, .finish = check_one_saw),
    PASSES(ANY, "sb_add_seq_cst", .threads = {PAIR(add_load_seq_cst)}, .finish = check_one_saw),
    PASSES(ANY, "sb_only_rmw", .threads = {PAIR(exchange_both_acq_rel)}, .finish = check_one_saw),
    FAILS("mp_relaxed", .threads = {ALONE(pass_relaxed), ALONE(receive_relaxed)}),
    FAILS("mp_release_relaxed", .threads = {ALONE(pass_release), ALONE(receive_relaxed)}),
    FAILS("mp_relaxed_acquire", .threads = {ALONE(pass_relaxed), ALONE(receive_acquire)}),
    PASSES(ANY, "mp_release_acquire", .threads = {ALONE(pass_release), ALONE(receive_acquire)}),
    FAILS("iriw_acq_rel", .threads = {PAIR(write_release), PAIR(read_both_acquire)},
          .finish = check_one_order),
    PASSES(ANY, "iriw_seq_cst", .threads = {PAIR(write_seq_cst), PAIR(read_both_seq_cst)},
           .finish = check_one_order),
    PASSES(ANY, "iriw_seq_cst_loads", .threads = {PAIR(write_release), PAIR(read_both_seq_cst)},
           .finish = check_one_order),
    PASSES(ANY, "coherence", .threads = {ALONE(write_one_two), ALONE(read_in_order)}),
    PASSES(ANY, "own_store", .threads = {ALONE(write_one_two), ALONE(read_own)}),
    PASSES(ANY, "sequence_by_add",
           .threads = {ALONE(pass_release), ALONE(hand_on_by_add), ALONE(receive_two)}),
    FAILS("sequence_by_store",
          .threads = {ALONE(pass_release), ALONE(hand_on_by_store), ALONE(receive_two)}),
    FAILS("seq_cst_loads_first", .threads = {ALONE(pass_relaxed), PAIR(read_after_flag)},
          .finish = check_first_not_older),
    FAILS("seq_cst_loads_second", .threads = {ALONE(pass_relaxed), PAIR(read_after_flag)},
          .finish = check_second_not_older),
    FAILS("cas_fails_stale", .threads = {ALONE(pass_relaxed), ALONE(replace_one)}),
    PASSES(ANY, "cas_fresh_seq_cst", .threads = {ALONE(pass_seq_cst), ALONE(replace_one_seq_cst)}),
    PASSES(ANY, "add_relaxed", .threads = {ALONE(add_twice), ALONE(add_twice)},
           .finish = check_four),
};

/* Each in all modes; without stale loads nothing is found. */
static void explore_in_all_modes(const struct self_test *test)
{
    struct explore_model model = test->model;
    run_test(&model, false, ANY);
    model.stale = UINT32_MAX;
    run_test(&model, test->fails, ANY);
    model.stale = 1;
    run_test(&model, test->fails, ANY);
    model.mode = EXPLORE_EACH;
    run_test(&model, test->fails, ANY);
    model.mode = EXPLORE_PREEMPTIONS;
    model.bound = 2;
    run_test(&model, test->fails, ANY);
    model.mode = EXPLORE_RANDOM;
    model.bound = 2000;
    run_test(&model, test->fails, ANY);
}

/* No more loads are stale than the model allows. */
static const struct self_test limits[] = {
    PASSES(ANY, "one_stale", .threads = {ALONE(pass_relaxed), ALONE(receive_either)}, .stale = 1),
    FAILS("two_stale", .threads = {ALONE(pass_relaxed), ALONE(receive_either)}, .stale = 2),
};

/* A schedule that is written down says which loads are stale. */
static void repeat_stale_loads(void)
{
    const struct explore_model model = {.name = "repeat",
                                        .setup = reset,
                                        .threads = {ALONE(pass_relaxed), ALONE(receive_relaxed)},
                                        .stale = 1};
    expect_that(explore_repeat(&model, "00011") && !explore_repeat(&model, "00011a"),
                "a schedule does not repeat");
}

static void body(void)
{
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        explore_in_all_modes(&tests[i]);
    }
    run_tests(limits, COUNT_OF(limits));
    repeat_stale_loads();
}

int main(void)
{
    return run_self_test(body);
}
