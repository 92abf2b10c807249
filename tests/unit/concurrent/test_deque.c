/* SPDX-License-Identifier: MIT */
/* The deque with its owner and thieves on one thread: what comes out, in which order, at all
 * lengths and across the wrap-around of its indices. Races are the business of tests/model and
 * tests/stress. */
#include "concurrent/deque.h"

#include <stdio.h>

#include "base/random.h"
#include "test.h"

#define TOP_WRAP (UINT32_C(1) << DEQUE_TOP_BITS)

/* Item n is the address of marks[n]. */
static char marks[4 * DEQUE_CAPACITY];

static void *item(uint32_t n)
{
    return &marks[n];
}

static void push_items(struct deque *deque, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(deque_push_owner(deque, item(first + i)));
    }
}

/* Moves the indices of an empty deque, as if that many items had gone through it. */
static void move_indices(struct deque *deque, uint64_t version, uint32_t index)
{
    store_relaxed(&deque->head, version << DEQUE_TOP_BITS | (index & DEQUE_TOP_MASK));
    store_relaxed(&deque->bottom, index);
}

static uint64_t version_of(struct deque *deque)
{
    return load_relaxed(&deque->head) >> DEQUE_TOP_BITS;
}

static void assert_empty(struct deque *deque)
{
    void *stolen[1];
    assert_int_equal(deque_length_owner(deque), 0);
    assert_false(deque_has_items_any(deque));
    assert_null(deque_pop_owner(deque));
    assert_int_equal(deque_steal_any(deque, stolen, 1), 0);
}

TEST(deque_new_is_empty)
{
    struct deque deque;
    memset(&deque, 0xff, sizeof deque);
    deque_init(&deque);
    assert_empty(&deque);
}

TEST(deque_owner_pops_newest_first)
{
    struct deque deque;
    deque_init(&deque);
    push_items(&deque, 0, 10);
    for (uint32_t n = 10; n-- > 0;) {
        assert_ptr_equal(deque_pop_owner(&deque), item(n));
    }
    assert_empty(&deque);
}

TEST(deque_thief_takes_oldest_first)
{
    struct deque deque;
    deque_init(&deque);
    push_items(&deque, 0, 10);
    for (uint32_t n = 0; n < 10; n++) {
        void *stolen[1];
        assert_int_equal(deque_steal_any(&deque, stolen, 1), 1);
        assert_ptr_equal(stolen[0], item(n));
    }
    assert_empty(&deque);
}

TEST(deque_length_follows_every_operation)
{
    struct deque deque;
    void *stolen[4];
    deque_init(&deque);
    for (uint32_t n = 1; n <= 8; n++) {
        push_items(&deque, 0, 1);
        assert_int_equal(deque_length_owner(&deque), n);
        assert_true(deque_has_items_any(&deque));
    }
    (void)deque_pop_owner(&deque);
    assert_int_equal(deque_length_owner(&deque), 7);
    assert_int_equal(deque_steal_any(&deque, stolen, 4), 4);
    assert_int_equal(deque_length_owner(&deque), 3);
}

/* Steals from a deque of `length` items; then the rest must still be there, newest last. */
static void check_steal(uint32_t length, uint32_t most, uint32_t expected)
{
    struct deque deque;
    void *stolen[DEQUE_CAPACITY] = {NULL};
    deque_init(&deque);
    push_items(&deque, 0, length);
    assert_int_equal(deque_steal_any(&deque, stolen, most), expected);
    for (uint32_t i = 0; i < expected; i++) {
        assert_ptr_equal(stolen[i], item(i));
    }
    for (uint32_t n = length; n-- > expected;) {
        assert_ptr_equal(deque_pop_owner(&deque), item(n));
    }
    assert_empty(&deque);
}

TEST(deque_steal_takes_half_rounded_up_at_every_length)
{
    for (uint32_t length = 1; length <= DEQUE_CAPACITY; length++) {
        check_steal(length, DEQUE_CAPACITY, length - length / 2);
    }
}

TEST(deque_steal_takes_no_more_than_asked)
{
    check_steal(100, 0, 0);
    check_steal(100, 1, 1);
    check_steal(100, 49, 49);
    check_steal(100, 50, 50);
    check_steal(100, 51, 50);
    check_steal(DEQUE_CAPACITY, 32, 32);
    check_steal(3, 32, 2);
}

TEST(deque_full_refuses_and_loses_nothing)
{
    struct deque deque;
    deque_init(&deque);
    push_items(&deque, 0, DEQUE_CAPACITY);
    assert_false(deque_push_owner(&deque, item(DEQUE_CAPACITY)));
    assert_int_equal(deque_length_owner(&deque), DEQUE_CAPACITY);
    for (uint32_t n = DEQUE_CAPACITY; n-- > 0;) {
        assert_ptr_equal(deque_pop_owner(&deque), item(n));
    }
    assert_empty(&deque);
}

TEST(deque_full_has_room_again_after_a_pop)
{
    struct deque deque;
    deque_init(&deque);
    push_items(&deque, 0, DEQUE_CAPACITY);
    assert_ptr_equal(deque_pop_owner(&deque), item(DEQUE_CAPACITY - 1));
    assert_true(deque_push_owner(&deque, item(DEQUE_CAPACITY)));
    assert_false(deque_push_owner(&deque, item(0)));
    assert_ptr_equal(deque_pop_owner(&deque), item(DEQUE_CAPACITY));
}

TEST(deque_full_has_room_again_after_a_steal)
{
    struct deque deque;
    void *stolen[DEQUE_CAPACITY];
    deque_init(&deque);
    push_items(&deque, 0, DEQUE_CAPACITY);
    assert_int_equal(deque_steal_any(&deque, stolen, DEQUE_CAPACITY), DEQUE_CAPACITY / 2);
    push_items(&deque, DEQUE_CAPACITY, DEQUE_CAPACITY / 2);
    assert_false(deque_push_owner(&deque, item(0)));
    assert_int_equal(deque_steal_any(&deque, stolen, 1), 1);
    assert_ptr_equal(stolen[0], item(DEQUE_CAPACITY / 2));
}

/* INV-2: this is what makes a thief fail that looked before the pop. */
TEST(deque_pop_changes_the_version_and_not_the_top)
{
    struct deque deque;
    deque_init(&deque);
    push_items(&deque, 0, 3);
    const uint64_t before = load_relaxed(&deque.head);
    (void)deque_pop_owner(&deque);
    assert_int_equal(load_relaxed(&deque.head), before + DEQUE_VERSION_ONE);
}

TEST(deque_pop_of_the_version_before_wrap_keeps_the_top)
{
    struct deque deque;
    deque_init(&deque);
    move_indices(&deque, (UINT64_C(1) << 40) - 1, 77);
    push_items(&deque, 0, 2);
    assert_ptr_equal(deque_pop_owner(&deque), item(1));
    assert_int_equal(version_of(&deque), 0);
    assert_ptr_equal(deque_pop_owner(&deque), item(0));
    assert_empty(&deque);
}

TEST(deque_steal_across_the_wrap_adds_one_to_the_version)
{
    struct deque deque;
    void *stolen[4];
    deque_init(&deque);
    move_indices(&deque, 4, TOP_WRAP - 2); /* an even version: a carry would show in it */
    push_items(&deque, 0, 8);
    assert_int_equal(deque_steal_any(&deque, stolen, 4), 4);
    assert_ptr_equal(stolen[3], item(3));
    assert_int_equal(version_of(&deque), 5);
    assert_int_equal(deque_top(load_relaxed(&deque.head)), 2);
    assert_int_equal(deque_length_owner(&deque), 4);
}

/* Everything that moves an index, with the wrap-around at each place inside a full deque. */
static void check_full_round_from(uint32_t start)
{
    struct deque deque;
    void *stolen[DEQUE_CAPACITY];
    deque_init(&deque);
    move_indices(&deque, 0, start);
    assert_empty(&deque);
    push_items(&deque, 0, DEQUE_CAPACITY);
    assert_false(deque_push_owner(&deque, item(0)));
    assert_true(deque_has_items_any(&deque));
    assert_int_equal(deque_steal_any(&deque, stolen, DEQUE_CAPACITY), DEQUE_CAPACITY / 2);
    for (uint32_t i = 0; i < DEQUE_CAPACITY / 2; i++) {
        assert_ptr_equal(stolen[i], item(i));
    }
    for (uint32_t n = DEQUE_CAPACITY; n-- > DEQUE_CAPACITY / 2;) {
        assert_ptr_equal(deque_pop_owner(&deque), item(n));
    }
    assert_empty(&deque);
}

TEST(deque_works_across_the_wrap_of_24_bits)
{
    for (uint32_t before = 0; before <= DEQUE_CAPACITY; before++) {
        check_full_round_from(TOP_WRAP - before);
    }
}

TEST(deque_works_where_the_sign_of_24_bits_changes)
{
    for (uint32_t before = 0; before <= DEQUE_CAPACITY; before++) {
        check_full_round_from(TOP_WRAP / 2 - before);
    }
}

TEST(deque_works_across_the_wrap_of_bottoms_32_bits)
{
    for (uint32_t before = 0; before <= DEQUE_CAPACITY; before++) {
        check_full_round_from(UINT32_MAX - before);
    }
}

/* The moment inside a pop of an empty deque that only a thief can see. */
TEST(deque_with_bottom_one_below_top_looks_empty)
{
    static const uint32_t tops[] = {0, 1, 1000, TOP_WRAP - 1};
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        struct deque deque;
        void *stolen[1];
        deque_init(&deque);
        move_indices(&deque, 1, tops[i]);
        store_relaxed(&deque.bottom, tops[i] - 1);
        assert_false(deque_has_items_any(&deque));
        assert_int_equal(deque_length_owner(&deque), 0);
        assert_int_equal(deque_steal_any(&deque, stolen, 1), 0);
    }
}

/* A thief that read top long before bottom may see more items than fit. */
TEST(deque_steal_with_impossible_length_is_lost)
{
    struct deque deque;
    void *stolen[DEQUE_CAPACITY];
    deque_init(&deque);
    store_relaxed(&deque.bottom, DEQUE_CAPACITY + 1);
    const uint64_t before = load_relaxed(&deque.head);
    assert_int_equal(deque_steal_any(&deque, stolen, DEQUE_CAPACITY), DEQUE_LOST);
    assert_int_equal(load_relaxed(&deque.head), before);
}

/* ---- against a plain array ---- */

struct reference {
    void *items[DEQUE_CAPACITY];
    uint32_t length; /* oldest first */
};

static void step_push(struct deque *deque, struct reference *reference, void *pushed)
{
    const bool room = reference->length < DEQUE_CAPACITY;
    assert_int_equal(deque_push_owner(deque, pushed), room);
    if (room) {
        reference->items[reference->length++] = pushed;
    }
}

static void step_pop(struct deque *deque, struct reference *reference)
{
    void *expected = NULL;
    if (reference->length > 0) {
        expected = reference->items[--reference->length];
    }
    assert_ptr_equal(deque_pop_owner(deque), expected);
}

static void step_steal(struct deque *deque, struct reference *reference, uint32_t most)
{
    void *stolen[DEQUE_CAPACITY];
    const uint32_t half = (reference->length + 1) / 2;
    const uint32_t count = half < most ? half : most;
    assert_int_equal(deque_steal_any(deque, stolen, most), count);
    assert_memory_equal(stolen, reference->items, count * sizeof stolen[0]);
    reference->length -= count;
    memmove(reference->items, reference->items + count,
            reference->length * sizeof reference->items[0]);
}

TEST(deque_random_operations_match_an_array)
{
    const uint64_t seed = 20240607;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t random = seed;
    struct deque deque;
    struct reference reference = {.length = 0};
    deque_init(&deque);
    move_indices(&deque, 0, TOP_WRAP - 20000); /* the wrap comes half-way */
    for (int i = 0; i < 200000; i++) {
        /* Pushes come in long runs now and then, so that the deque fills up. */
        const uint32_t choice = random_below(&random, (i / 1000) % 2 == 0 ? 10 : 5);
        if (choice == 0) {
            step_steal(&deque, &reference, 1 + random_below(&random, 40));
        } else if (choice == 1) {
            step_pop(&deque, &reference);
        } else {
            step_push(&deque, &reference, item(random_below(&random, sizeof marks)));
        }
        assert_int_equal(deque_length_owner(&deque), reference.length);
        assert_int_equal(deque_has_items_any(&deque), reference.length > 0);
    }
    assert_true(load_relaxed(&deque.bottom) > TOP_WRAP);
}
