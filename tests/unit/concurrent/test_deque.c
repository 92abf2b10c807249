/* SPDX-License-Identifier: MIT */
/* The deque with its owner and thieves on one thread: what comes out, in which order, at all
 * lengths and across the wrap-around of its indices. Races are the business of tests/model and
 * tests/stress. */
#include "concurrent/deque.h"

#include "base/random.h"
#include "test.h"

#define TOP_WRAP (UINT32_C(1) << DEQUE_TOP_BITS)

/* Item n is the address of marks[n]. */
static char marks[4 * DEQUE_CAPACITY];

static struct deque deque;

static void *item(uint32_t n)
{
    return &marks[n];
}

static void push_items(uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(deque_push_owner(&deque, item(first + i)));
    }
}

/* A deque of so many items. */
static void open_deque(uint32_t count)
{
    memset(&deque, 0xff, sizeof deque);
    deque_init(&deque);
    push_items(0, count);
}

/* As if that many items had gone through an empty deque. */
static void open_deque_at(uint64_t version, uint32_t index)
{
    open_deque(0);
    store_relaxed(&deque.head, version << DEQUE_TOP_BITS | (index & DEQUE_TOP_MASK));
    store_relaxed(&deque.bottom, index);
}

static uint64_t version(void)
{
    return load_relaxed(&deque.head) >> DEQUE_TOP_BITS;
}

/* The owner gets the items from end - 1 down to first. */
static void assert_pops(uint32_t first, uint32_t end)
{
    while (end-- > first) {
        assert_ptr_equal(deque_pop_owner(&deque), item(end));
    }
}

/* A thief who wants `most` items gets `count`, from `first` on. */
static void assert_steals(uint32_t most, uint32_t first, uint32_t count)
{
    void *stolen[DEQUE_CAPACITY] = {NULL};
    assert_int_equal(deque_steal_any(&deque, stolen, most), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_ptr_equal(stolen[i], item(first + i));
    }
}

static void assert_refuses(void)
{
    assert_false(deque_push_owner(&deque, item(0)));
}

static void assert_length(uint32_t length)
{
    assert_int_equal(deque_length_owner(&deque), length);
    assert_int_equal(deque_has_items_any(&deque), length > 0);
}

static void assert_empty(void)
{
    assert_length(0);
    assert_null(deque_pop_owner(&deque));
    assert_steals(1, 0, 0);
}

TEST(deque_new_is_empty)
{
    open_deque(0);
    assert_empty();
}

TEST(deque_owner_pops_newest_first)
{
    open_deque(10);
    assert_pops(0, 10);
    assert_empty();
}

TEST(deque_thief_takes_oldest_first)
{
    open_deque(10);
    for (uint32_t n = 0; n < 10; n++) {
        assert_steals(1, n, 1);
    }
    assert_empty();
}

TEST(deque_length_follows_every_operation)
{
    open_deque(0);
    for (uint32_t n = 0; n < 8; n++) {
        push_items(n, 1);
        assert_length(n + 1);
    }
    assert_pops(7, 8);
    assert_length(7);
    assert_steals(4, 0, 4);
    assert_length(3);
}

/* Steals from a deque of `length` items; then the rest must still be there, newest last. */
static void check_steal(uint32_t length, uint32_t most, uint32_t expected)
{
    open_deque(length);
    assert_steals(most, 0, expected);
    assert_pops(expected, length);
    assert_empty();
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
    open_deque(DEQUE_CAPACITY);
    assert_refuses();
    assert_length(DEQUE_CAPACITY);
    assert_pops(0, DEQUE_CAPACITY);
    assert_empty();
}

TEST(deque_full_has_room_again_after_a_pop_or_a_steal)
{
    open_deque(DEQUE_CAPACITY);
    assert_pops(DEQUE_CAPACITY - 1, DEQUE_CAPACITY);
    push_items(DEQUE_CAPACITY, 1);
    assert_refuses();
    assert_pops(DEQUE_CAPACITY, DEQUE_CAPACITY + 1);

    open_deque(DEQUE_CAPACITY);
    assert_steals(DEQUE_CAPACITY, 0, DEQUE_CAPACITY / 2);
    push_items(DEQUE_CAPACITY, DEQUE_CAPACITY / 2);
    assert_refuses();
    assert_steals(1, DEQUE_CAPACITY / 2, 1);
}

TEST(deque_pushes_many_in_order_and_as_many_as_fit)
{
    static const uint32_t lengths[] = {0, 1, DEQUE_CAPACITY - 3, DEQUE_CAPACITY};
    void *many[5];
    for (uint32_t i = 0; i < 5; i++) {
        many[i] = item(DEQUE_CAPACITY + i);
    }
    FOR_ROWS (length, lengths) {
        const uint32_t room = DEQUE_CAPACITY - *length;
        const uint32_t pushed = room < 5 ? room : 5;
        open_deque(*length);
        assert_int_equal(deque_push_many_owner(&deque, many, 0), 0);
        assert_int_equal(deque_push_many_owner(&deque, many, 5), pushed);
        assert_length(*length + pushed);
        assert_pops(DEQUE_CAPACITY, DEQUE_CAPACITY + pushed);
        assert_pops(0, *length);
        assert_empty();
    }
}

/* INV-2: this is what makes a thief fail that looked before the pop. */
TEST(deque_pop_changes_the_version_and_not_the_top)
{
    open_deque(3);
    const uint64_t before = load_relaxed(&deque.head);
    (void)deque_pop_owner(&deque);
    assert_int_equal(load_relaxed(&deque.head), before + DEQUE_VERSION_ONE);
}

TEST(deque_pop_of_the_version_before_wrap_keeps_the_top)
{
    open_deque_at((UINT64_C(1) << 40) - 1, 77);
    push_items(0, 2);
    assert_pops(1, 2);
    assert_int_equal(version(), 0);
    assert_pops(0, 1);
    assert_empty();
}

/* An even and an odd version: a carry would show in one of them, however it is added. */
TEST(deque_steal_across_the_wrap_adds_one_to_the_version)
{
    static const uint64_t versions[] = {4, 5};
    FOR_ROWS (before, versions) {
        open_deque_at(*before, TOP_WRAP - 2);
        push_items(0, 8);
        assert_steals(4, 0, 4);
        assert_int_equal(version(), *before + 1);
        assert_int_equal(deque_top(load_relaxed(&deque.head)), 2);
        assert_length(4);
    }
}

/* Across the wrap of 24 bits, where their sign changes, and across the wrap of bottom's 32 bits:
 * everything that moves an index, with that place anywhere inside a full deque. */
TEST(deque_works_wherever_its_indices_are)
{
    static const uint32_t ends[] = {TOP_WRAP, TOP_WRAP / 2, UINT32_MAX};
    FOR_ROWS (end, ends) {
        for (uint32_t before = 0; before <= DEQUE_CAPACITY; before++) {
            open_deque_at(0, *end - before);
            assert_empty();
            push_items(0, DEQUE_CAPACITY);
            assert_refuses();
            assert_length(DEQUE_CAPACITY);
            assert_steals(DEQUE_CAPACITY, 0, DEQUE_CAPACITY / 2);
            assert_pops(DEQUE_CAPACITY / 2, DEQUE_CAPACITY);
            assert_empty();
        }
    }
}

/* The moment inside a pop of an empty deque that only a thief can see. */
TEST(deque_with_bottom_one_below_top_looks_empty)
{
    static const uint32_t tops[] = {0, 1, 1000, TOP_WRAP - 1};
    FOR_ROWS (top, tops) {
        open_deque_at(1, *top);
        store_relaxed(&deque.bottom, *top - 1);
        assert_length(0);
        assert_steals(1, 0, 0);
    }
}

/* A thief that read top long before bottom may see more items than fit. */
TEST(deque_steal_with_impossible_length_is_lost)
{
    void *stolen[DEQUE_CAPACITY];
    open_deque(0);
    store_relaxed(&deque.bottom, DEQUE_CAPACITY + 1);
    const uint64_t before = load_relaxed(&deque.head);
    assert_int_equal(deque_steal_any(&deque, stolen, DEQUE_CAPACITY), DEQUE_LOST);
    assert_int_equal(load_relaxed(&deque.head), before);
}

/* ---- against a plain array ---- */

static struct {
    void *items[DEQUE_CAPACITY];
    uint32_t length; /* oldest first */
} reference;

static void push_both(void *pushed)
{
    const bool room = reference.length < DEQUE_CAPACITY;
    assert_int_equal(deque_push_owner(&deque, pushed), room);
    if (room) {
        reference.items[reference.length++] = pushed;
    }
}

static void push_many_both(uint64_t *random)
{
    void *many[16];
    const uint32_t count = random_below(random, 17);
    const uint32_t room = DEQUE_CAPACITY - reference.length;
    const uint32_t pushed = count < room ? count : room;
    for (uint32_t i = 0; i < count; i++) {
        many[i] = item(random_below(random, sizeof marks));
    }
    assert_int_equal(deque_push_many_owner(&deque, many, count), pushed);
    for (uint32_t i = 0; i < pushed; i++) {
        reference.items[reference.length++] = many[i];
    }
}

static void pop_both(void)
{
    void *expected = reference.length > 0 ? reference.items[--reference.length] : NULL;
    assert_ptr_equal(deque_pop_owner(&deque), expected);
}

static void steal_both(uint32_t most)
{
    void *stolen[DEQUE_CAPACITY];
    const uint32_t half = (reference.length + 1) / 2;
    const uint32_t count = half < most ? half : most;
    assert_int_equal(deque_steal_any(&deque, stolen, most), count);
    assert_memory_equal(stolen, reference.items, count * sizeof stolen[0]);
    reference.length -= count;
    memmove(reference.items, reference.items + count, reference.length * sizeof stolen[0]);
}

TEST(deque_random_operations_match_an_array)
{
    uint64_t random = 20240607;
    reference.length = 0;
    open_deque_at(0, TOP_WRAP - 20000); /* the wrap comes half-way */
    for (int i = 0; i < 200000; i++) {
        /* Pushes come in long runs now and then, so that the deque fills up. */
        const uint32_t choice = random_below(&random, (i / 1000) % 2 == 0 ? 10 : 5);
        if (choice == 0) {
            steal_both(1 + random_below(&random, 40));
        } else if (choice == 1) {
            pop_both();
        } else if (choice == 2 && i % 8 == 0) {
            push_many_both(&random);
        } else {
            push_both(item(random_below(&random, sizeof marks)));
        }
        assert_length(reference.length);
    }
    assert_true(load_relaxed(&deque.bottom) > TOP_WRAP);
}
