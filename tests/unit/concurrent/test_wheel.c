/* SPDX-License-Identifier: MIT */
/* The timing wheel: every instant on every level, work in portions, removal at every moment, and
 * long random use against a naive reference. */
#include "concurrent/wheel.h"

#include <inttypes.h>

#include "base/random.h"
#include "counting_allocator.h"
#include "effort.h"
#include "test.h"

#define TICK      (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define LAST_TICK (UINT64_MAX >> WHEEL_TICK_SHIFT)
#define LAST_TIME (UINT64_MAX - 1) /* that a clock can show: the next is WHEEL_NEVER */
#define ALL       UINT32_MAX
#define MARK      UINT64_C(0x6d61726b6d61726b)
#define DUE_MAX   64

struct item {
    struct pool_link free;
    uint64_t mark; /* none of the wheel's business */
    struct wheel_link link;
};
_Static_assert(sizeof(struct item) == 32, "a power of two");

/* What should be in the wheel. */
struct expected {
    bool is_in;
    uint64_t when;
    uint64_t tick; /* at whose beginning it is due: not before that of the wheel as it was added */
};

struct fixture {
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache cache;
    struct wheel wheel;
    struct expected *expected; /* by index: 1 to item_count */
    uint32_t item_count;
    uint32_t count;     /* of those that are in */
    uint64_t last_tick; /* of what came out last */
};

static void construct(void *object, uint32_t index, uint32_t floor)
{
    (void)index;
    (void)floor;
    struct item *item = object;
    item->mark = MARK;
    item->link.when = 0;
}

static void fixture_init(struct fixture *fixture, uint32_t item_count)
{
    *fixture = (struct fixture){.item_count = item_count};
    counting_allocator_init(&fixture->memory);
    assert_true(object_pool_init(&fixture->pool, &fixture->memory.allocator,
                                 &(struct object_pool_shape){
                                     .layout = {sizeof(struct item), offsetof(struct item, free)},
                                     .limit = item_count,
                                     .cache_count = 1,
                                     .construct = construct,
                                 }));
    for (uint32_t i = 0; i < item_count; i++) {
        uint32_t index;
        assert_int_equal(object_acquire_owner(&fixture->pool, fixture->pool.shape.layout,
                                              &fixture->cache, &index),
                         OBJECT_POOL_OK);
        assert_in_range(index, 1, item_count);
    }
    fixture->expected = calloc(item_count + 1, sizeof *fixture->expected);
    assert_non_null(fixture->expected);
    wheel_init(&fixture->wheel, &fixture->pool, offsetof(struct item, link));
}

static void fixture_deinit(struct fixture *fixture)
{
    free(fixture->expected);
    object_pool_deinit(&fixture->pool);
    assert_true(counting_allocator_is_clean(&fixture->memory));
}

static const struct item *item_at(const struct fixture *fixture, uint32_t index)
{
    return object_pool_at(&fixture->pool, index);
}

/* The tick at whose beginning an instant has passed. Those in the last tick of all count as its
 * beginning: there is no later one. */
static uint64_t tick_after(uint64_t when)
{
    const uint64_t tick = when / TICK + (when % TICK != 0);
    return tick < LAST_TICK ? tick : LAST_TICK;
}

/* ---- the reference ---- */

static uint64_t first_tick(const struct fixture *fixture)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 1; i <= fixture->item_count; i++) {
        if (fixture->expected[i].is_in && fixture->expected[i].tick < first) {
            first = fixture->expected[i].tick;
        }
    }
    return first;
}

/* When there is something to do, were it known exactly. */
static uint64_t first_instant(const struct fixture *fixture)
{
    return fixture->count > 0 ? first_tick(fixture) * TICK : WHEEL_NEVER;
}

static void assert_next_is_not_late(const struct fixture *fixture)
{
    const uint64_t next = wheel_next(&fixture->wheel);
    assert_true(next <= first_instant(fixture));
    assert_true((next == WHEEL_NEVER) == (fixture->count == 0));
    /* What has been done once is not asked for again. */
    assert_true(next >= fixture->wheel.current * TICK);
}

static void assert_items(const struct fixture *fixture)
{
    assert_int_equal(fixture->wheel.count, fixture->count);
    for (uint32_t i = 1; i <= fixture->item_count; i++) {
        const struct expected *expected = &fixture->expected[i];
        assert_int_equal(item_at(fixture, i)->mark, MARK);
        assert_int_equal(item_at(fixture, i)->link.when, expected->is_in ? expected->when : 0);
    }
}

static void add(struct fixture *fixture, uint32_t index, uint64_t when)
{
    struct expected *expected = &fixture->expected[index];
    assert_false(expected->is_in);
    expected->is_in = true;
    expected->when = when > 0 ? when : 1;
    const uint64_t tick = tick_after(expected->when);
    expected->tick = tick > fixture->wheel.current ? tick : fixture->wheel.current;
    fixture->count++;
    wheel_add(&fixture->wheel, index, when, 0);
}

static void remove_item(struct fixture *fixture, uint32_t index)
{
    assert_true(fixture->expected[index].is_in);
    fixture->expected[index].is_in = false;
    fixture->count--;
    wheel_remove(&fixture->wheel, index);
}

/* One that has come out: nothing is early, lost, doubled or out of order. */
static void take_out(struct fixture *fixture, const struct wheel_due *due, uint64_t now)
{
    assert_in_range(due->index, 1, fixture->item_count);
    struct expected *expected = &fixture->expected[due->index];
    assert_true(expected->is_in);
    assert_int_equal(due->when, expected->when);
    assert_true(expected->when <= now || now / TICK == LAST_TICK);
    assert_true(expected->tick <= now / TICK);
    assert_true(expected->tick >= fixture->last_tick);
    assert_int_equal(item_at(fixture, due->index)->link.when, 0);
    fixture->last_tick = expected->tick;
    expected->is_in = false;
    fixture->count--;
}

static uint32_t expire(struct fixture *fixture, uint64_t now, uint32_t most, uint32_t budget)
{
    struct wheel_due due[DUE_MAX + 1];
    assert_true(most <= DUE_MAX);
    due[most] = (struct wheel_due){MARK, ALL};
    const uint32_t count = wheel_expire(&fixture->wheel, now, due, most, budget);
    assert_true(count <= most);
    assert_true(due[most].when == MARK && due[most].index == ALL);
    for (uint32_t i = 0; i < count; i++) {
        take_out(fixture, &due[i], now);
    }
    const uint64_t next = wheel_next(&fixture->wheel);
    const uint64_t rest = first_tick(fixture);
    assert_true(fixture->count == 0 || rest >= fixture->last_tick); /* the earliest came first */
    assert_true(next <= now || fixture->count == 0 || rest > now / TICK);
    if (budget == ALL && count < most) {
        assert_true(next > now); /* all that was due came out, and it knows */
    }
    return count;
}

/* ---- instants ---- */

TEST(wheel_without_items_is_never_due)
{
    struct fixture fixture;
    fixture_init(&fixture, 1);
    assert_int_equal(wheel_next(&fixture.wheel), WHEEL_NEVER);
    assert_int_equal(expire(&fixture, 0, DUE_MAX, ALL), 0);
    assert_int_equal(expire(&fixture, LAST_TIME, DUE_MAX, ALL), 0);
    assert_int_equal(wheel_next(&fixture.wheel), WHEEL_NEVER);
    fixture_deinit(&fixture);
}

/* One that nobody has looked at for long need not begin in the distant past; one with items in it
 * must, because they may be due. */
TEST(add_to_a_stale_wheel_begins_at_the_instant_that_has_passed)
{
    const uint64_t past = 1000 * TICK + 5;
    struct fixture fixture;
    fixture_init(&fixture, 2);
    wheel_add(&fixture.wheel, 1, past + TICK, past);
    assert_int_equal(fixture.wheel.current, 1000);
    assert_true(fixture.wheel.occupied[0] != 0); /* the lowest level */
    wheel_add(&fixture.wheel, 2, past + 5 * TICK, past + 4 * TICK);
    assert_int_equal(fixture.wheel.current, 1000);
    struct wheel_due due[2];
    assert_int_equal(wheel_expire(&fixture.wheel, past + TICK, due, 2, 0), 0);
    assert_int_equal(wheel_expire(&fixture.wheel, past + 2 * TICK, due, 2, 0), 1);
    assert_int_equal(due[0].index, 1);
    wheel_remove(&fixture.wheel, 2);
    fixture_deinit(&fixture);
}

/* Alone in a wheel whose time is `start`. */
static void assert_fires_at_the_end_of_its_tick(uint64_t start, uint64_t when)
{
    struct fixture fixture;
    fixture_init(&fixture, 1);
    (void)expire(&fixture, start, DUE_MAX, ALL);
    add(&fixture, 1, when);
    const uint64_t due_at = first_instant(&fixture);
    assert_int_equal(wheel_next(&fixture.wheel), due_at);
    if (due_at > start) {
        assert_int_equal(expire(&fixture, start, DUE_MAX, ALL), 0);
        assert_int_equal(expire(&fixture, due_at - 1, DUE_MAX, ALL), 0);
        assert_int_equal(wheel_next(&fixture.wheel), due_at);
    }
    assert_items(&fixture);
    assert_int_equal(expire(&fixture, due_at, DUE_MAX, ALL), 1);
    assert_int_equal(wheel_next(&fixture.wheel), WHEEL_NEVER);
    assert_items(&fixture);
    fixture_deinit(&fixture);
}

TEST(add_on_every_level_fires_at_the_end_of_its_tick)
{
    static const uint64_t starts[] = {0,
                                      1,
                                      12345 * TICK + 678,
                                      (UINT64_C(1) << 40) - 1,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 3 * TICK};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        for (uint32_t bit = 0; bit < 64; bit += EFFORT_SHARE == 1 ? 1 : 5) {
            const uint64_t span = UINT64_C(1) << bit;
            const uint64_t when = starts[i] < UINT64_MAX - span ? starts[i] + span : UINT64_MAX;
            assert_fires_at_the_end_of_its_tick(starts[i], when - 1);
            assert_fires_at_the_end_of_its_tick(starts[i], when);
            assert_fires_at_the_end_of_its_tick(starts[i], when | (span - 1));
        }
    }
}

TEST(add_in_the_past_is_due_at_once)
{
    const uint64_t now = UINT64_C(1) << 42;
    const uint64_t pasts[] = {0, 1, TICK, now - TICK, now - 1, now};
    for (size_t i = 0; i < sizeof pasts / sizeof pasts[0]; i++) {
        struct fixture fixture;
        fixture_init(&fixture, 1);
        (void)expire(&fixture, now, DUE_MAX, ALL);
        add(&fixture, 1, pasts[i]);
        assert_true(wheel_next(&fixture.wheel) <= now);
        assert_int_equal(expire(&fixture, now, DUE_MAX, ALL), 1);
        fixture_deinit(&fixture);
    }
}

/* 0 in the link means that it is in no wheel. */
TEST(add_at_zero_counts_as_one)
{
    struct fixture fixture;
    struct wheel_due due;
    fixture_init(&fixture, 1);
    wheel_add(&fixture.wheel, 1, 0, 0);
    assert_int_equal(item_at(&fixture, 1)->link.when, 1);
    assert_int_equal(wheel_expire(&fixture.wheel, TICK, &due, 1, ALL), 1);
    assert_int_equal(due.when, 1);
    fixture_deinit(&fixture);
}

/* Two threads may look at the clock in one order and come here in the other. */
TEST(expire_with_a_time_before_the_last_fires_nothing_early)
{
    const uint64_t now = 1000 * TICK;
    struct fixture fixture;
    fixture_init(&fixture, 3);
    (void)expire(&fixture, now, DUE_MAX, ALL);
    add(&fixture, 1, now - 5 * TICK);
    add(&fixture, 2, now - 2 * TICK);
    add(&fixture, 3, now + 1);
    assert_int_equal(expire(&fixture, now - 3 * TICK, DUE_MAX, 0), 0);
    assert_int_equal(expire(&fixture, now - 1, DUE_MAX, 0), 0);
    assert_items(&fixture);
    assert_int_equal(expire(&fixture, now, DUE_MAX, ALL), 2);
    assert_int_equal(expire(&fixture, now + TICK, DUE_MAX, ALL), 1);
    fixture_deinit(&fixture);
}

/* ---- order and portions ---- */

TEST(expire_brings_the_earliest_ticks_first)
{
    struct fixture fixture;
    const uint32_t count = 500;
    fixture_init(&fixture, count);
    for (uint32_t i = 1; i <= count; i++) { /* each tick twice, in a wild order */
        add(&fixture, i, 1 + (uint64_t)(i * 77 % 250) * 50 * TICK);
    }
    uint32_t fired = 0;
    for (uint32_t portion; (portion = expire(&fixture, UINT64_C(1) << 40, 7, ALL)) > 0;) {
        fired += portion;
        assert_items(&fixture);
    }
    assert_int_equal(fired, count);
    fixture_deinit(&fixture);
}

TEST(expire_of_nothing_takes_nothing_out)
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    add(&fixture, 1, 10 * TICK);
    add(&fixture, 2, 5000 * TICK);
    assert_int_equal(expire(&fixture, 10000 * TICK, 0, ALL), 0);
    assert_items(&fixture);
    assert_int_equal(expire(&fixture, 10000 * TICK, DUE_MAX, ALL), 2);
    fixture_deinit(&fixture);
}

/* What is added for soon then lies where it need not be moved again. */
TEST(expire_of_an_empty_wheel_brings_it_up_to_now)
{
    struct fixture fixture;
    const uint64_t now = UINT64_C(123456789) * WHEEL_SLOTS * TICK;
    fixture_init(&fixture, 1);
    assert_int_equal(expire(&fixture, now, DUE_MAX, ALL), 0);
    add(&fixture, 1, now + (WHEEL_SLOTS - 1) * TICK);
    assert_int_equal(expire(&fixture, now + (WHEEL_SLOTS - 1) * TICK, DUE_MAX, 0), 1);
    fixture_deinit(&fixture);
}

static uint32_t slot_length(const struct fixture *fixture, uint32_t level, uint32_t slot)
{
    const struct wheel *wheel = &fixture->wheel;
    uint32_t length = 0;
    if ((wheel->occupied[level] >> slot & 1) != 0) {
        for (uint32_t i = wheel->first[level][slot]; i != OBJECT_NONE;) {
            length++;
            i = item_at(fixture, i)->link.next;
        }
    }
    return length;
}

/* Ticks that lie in slot 3 of level 1 until the wheel comes there. */
#define CASCADE_BEGIN ((uint64_t)3 * WHEEL_SLOTS)
#define CASCADE_TICKS WHEEL_SLOTS

static void add_cascade(struct fixture *fixture)
{
    for (uint32_t i = 1; i <= fixture->item_count; i++) {
        add(fixture, i, (CASCADE_BEGIN + i % CASCADE_TICKS) * TICK);
    }
    assert_int_equal(slot_length(fixture, 1, 3), fixture->item_count);
}

TEST(expire_moves_no_more_than_its_budget)
{
    struct fixture fixture;
    const uint32_t count = 1000;
    const uint32_t budget = 30;
    const uint64_t now = (CASCADE_BEGIN + CASCADE_TICKS) * TICK;
    fixture_init(&fixture, count);
    add_cascade(&fixture);
    for (uint32_t moved = 0; moved < count - budget;) {
        assert_int_equal(expire(&fixture, now, DUE_MAX, budget), 0);
        moved += budget;
        assert_int_equal(slot_length(&fixture, 1, 3), count - moved);
        assert_true(wheel_next(&fixture.wheel) <= now); /* so that the caller comes again */
    }
    assert_int_equal(expire(&fixture, now, DUE_MAX, budget), DUE_MAX);
    assert_int_equal(slot_length(&fixture, 1, 3), 0);
    assert_items(&fixture);
    while (fixture.count > 0) {
        assert_true(expire(&fixture, now, DUE_MAX, 0) > 0); /* nothing is left to be moved */
    }
    fixture_deinit(&fixture);
}

TEST(expire_without_budget_stays_before_the_cascade)
{
    struct fixture fixture;
    fixture_init(&fixture, 10);
    add_cascade(&fixture);
    const uint64_t now = 2 * CASCADE_BEGIN * TICK;
    assert_int_equal(expire(&fixture, now, DUE_MAX, 0), 0);
    assert_true(wheel_next(&fixture.wheel) <= now);
    assert_int_equal(slot_length(&fixture, 1, 3), 10);
    assert_int_equal(expire(&fixture, now, DUE_MAX, ALL), 10);
    fixture_deinit(&fixture);
}

/* From the highest level each item goes down one or more levels at a time, never up. */
TEST(expire_moves_an_item_at_most_once_per_level)
{
    struct fixture fixture;
    fixture_init(&fixture, 1);
    add(&fixture, 1, UINT64_C(0xfedcba9876540000)); /* none of its levels is left out */
    uint32_t calls = 0;
    while (fixture.count > 0) {
        (void)expire(&fixture, LAST_TIME, DUE_MAX, 1);
        assert_true(++calls <= WHEEL_LEVELS);
    }
    assert_int_equal(calls, WHEEL_LEVELS - 1);
    fixture_deinit(&fixture);
}

/* Of what is added while a slot cascades, the earliest still comes first. */
TEST(add_during_a_cascade_keeps_the_order)
{
    struct fixture fixture;
    const uint32_t count = 200;
    const uint64_t now = (CASCADE_BEGIN + CASCADE_TICKS) * TICK;
    fixture_init(&fixture, count + 5);
    for (uint32_t i = 1; i <= count; i++) {
        add(&fixture, i, (CASCADE_BEGIN + i % CASCADE_TICKS) * TICK);
    }
    assert_int_equal(expire(&fixture, now, DUE_MAX, count / 2), 0);
    const uint64_t instants[] = {1, CASCADE_BEGIN * TICK, (CASCADE_BEGIN + 1) * TICK, now,
                                 now + 1000 * TICK};
    for (uint32_t i = 0; i < 5; i++) {
        add(&fixture, count + 1 + i, instants[i]);
        assert_next_is_not_late(&fixture);
    }
    assert_items(&fixture);
    uint32_t fired = 0;
    while (wheel_next(&fixture.wheel) <= now) {
        fired += expire(&fixture, now, 5, 10); /* checks the order */
    }
    assert_int_equal(fired, count + 4);
    assert_int_equal(wheel_next(&fixture.wheel), now + 1000 * TICK);
    fixture_deinit(&fixture);
}

/* ---- removal ---- */

TEST(remove_of_the_only_item_empties_the_wheel)
{
    for (uint32_t bit = 0; bit < 64; bit++) {
        struct fixture fixture;
        fixture_init(&fixture, 1);
        add(&fixture, 1, UINT64_C(1) << bit);
        remove_item(&fixture, 1);
        assert_int_equal(wheel_next(&fixture.wheel), WHEEL_NEVER);
        assert_items(&fixture);
        assert_int_equal(expire(&fixture, LAST_TIME, DUE_MAX, ALL), 0);
        fixture_deinit(&fixture);
    }
}

/* First, middle and last of a slot's list, in all orders of three. */
TEST(remove_works_in_every_position)
{
    static const uint32_t orders[][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                         {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    for (size_t order = 0; order < sizeof orders / sizeof orders[0]; order++) {
        for (uint32_t removed = 0; removed <= 3; removed++) {
            struct fixture fixture;
            fixture_init(&fixture, 4);
            for (uint32_t i = 1; i <= 3; i++) {
                add(&fixture, i, 100 * TICK);
            }
            add(&fixture, 4, 5000 * TICK); /* must stay whatever happens to the others */
            for (uint32_t i = 0; i < removed; i++) {
                remove_item(&fixture, orders[order][i]);
            }
            assert_items(&fixture);
            assert_int_equal(expire(&fixture, 100 * TICK, DUE_MAX, ALL), 3 - removed);
            assert_int_equal(expire(&fixture, 5000 * TICK, DUE_MAX, ALL), 1);
            fixture_deinit(&fixture);
        }
    }
}

/* An overdue item lies where its instant does not lead to. */
TEST(remove_of_overdue_items_works_in_every_position)
{
    for (uint32_t removed = 1; removed <= 3; removed++) {
        struct fixture fixture;
        fixture_init(&fixture, 3);
        (void)expire(&fixture, 1000 * TICK, DUE_MAX, ALL);
        add(&fixture, 1, 10 * TICK);
        add(&fixture, 2, 1000 * TICK);
        add(&fixture, 3, 990 * TICK);
        remove_item(&fixture, removed);
        assert_items(&fixture);
        assert_int_equal(expire(&fixture, 1000 * TICK, DUE_MAX, ALL), 2);
        fixture_deinit(&fixture);
    }
}

/* Its slot may still promise something earlier; one look corrects that. */
TEST(remove_of_the_earliest_makes_next_early_once_at_most)
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    add(&fixture, 1, 5000 * TICK);
    add(&fixture, 2, 5010 * TICK); /* the same slot of level 2 */
    remove_item(&fixture, 1);
    const uint64_t next = wheel_next(&fixture.wheel);
    assert_in_range(next, 1, 5010 * TICK);
    assert_int_equal(expire(&fixture, next, DUE_MAX, ALL), next == 5010 * TICK);
    if (fixture.count > 0) {
        assert_int_equal(wheel_next(&fixture.wheel), 5010 * TICK);
        assert_int_equal(expire(&fixture, 5010 * TICK, DUE_MAX, ALL), 1);
    }
    fixture_deinit(&fixture);
}

/* After `moved` of the slot's items have gone down, every one of them in turn is removed. */
TEST(remove_during_a_cascade_works_wherever_the_item_is)
{
    const uint32_t count = 9;
    const uint64_t now = (CASCADE_BEGIN + CASCADE_TICKS) * TICK;
    for (uint32_t moved = 0; moved <= count; moved++) {
        for (uint32_t removed = 1; removed <= count; removed++) {
            struct fixture fixture;
            fixture_init(&fixture, count);
            for (uint32_t i = 1; i <= count; i++) {
                add(&fixture, i, (CASCADE_BEGIN + i % 4) * TICK); /* several in one tick */
            }
            (void)expire(&fixture, now, 0, moved);
            assert_int_equal(slot_length(&fixture, 1, 3), count - moved);
            remove_item(&fixture, removed);
            assert_next_is_not_late(&fixture);
            assert_items(&fixture);
            assert_int_equal(expire(&fixture, now, DUE_MAX, ALL), count - 1);
            assert_items(&fixture);
            fixture_deinit(&fixture);
        }
    }
}

TEST(remove_of_all_during_a_cascade_ends_it)
{
    struct fixture fixture;
    fixture_init(&fixture, 20);
    add_cascade(&fixture);
    const uint64_t now = (CASCADE_BEGIN + CASCADE_TICKS) * TICK;
    assert_int_equal(expire(&fixture, now, DUE_MAX, 10), 0);
    for (uint32_t i = 1; i <= 20; i++) {
        remove_item(&fixture, i);
        assert_next_is_not_late(&fixture);
    }
    assert_int_equal(wheel_next(&fixture.wheel), WHEEL_NEVER);
    assert_int_equal(expire(&fixture, now, DUE_MAX, 0), 0); /* nothing is left to be moved */
    fixture_deinit(&fixture);
}

/* ---- again ---- */

TEST(add_again_after_firing_and_removal_works)
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    uint64_t now = 0;
    for (uint32_t bit = 16; bit < 62; bit++) {
        const uint64_t when = now + (UINT64_C(1) << bit);
        add(&fixture, 1, when);
        add(&fixture, 2, when);
        remove_item(&fixture, 1);
        add(&fixture, 1, when + TICK); /* as a move does */
        assert_int_equal(expire(&fixture, when, DUE_MAX, ALL), 1);
        assert_int_equal(expire(&fixture, when + TICK, DUE_MAX, ALL), 1);
        assert_items(&fixture);
        now = when + TICK;
    }
    fixture_deinit(&fixture);
}

TEST(add_again_during_a_cascade_works)
{
    struct fixture fixture;
    const uint32_t count = 20;
    fixture_init(&fixture, count);
    add_cascade(&fixture);
    const uint64_t now = (CASCADE_BEGIN + CASCADE_TICKS) * TICK;
    (void)expire(&fixture, now, 0, count / 2);
    for (uint32_t i = 1; i <= count; i++) {
        remove_item(&fixture, i);
        add(&fixture, i, i % 2 == 0 ? now + i * TICK : CASCADE_BEGIN * TICK);
        assert_next_is_not_late(&fixture);
    }
    assert_items(&fixture);
    assert_int_equal(expire(&fixture, now, DUE_MAX, ALL), count / 2);
    assert_int_equal(expire(&fixture, now + count * TICK, DUE_MAX, ALL), count / 2);
    fixture_deinit(&fixture);
}

/* ---- random use ---- */

#define RANDOM_ITEMS      150
#define RANDOM_OPERATIONS EFFORT(100000)

struct profile {
    const char *name;
    uint64_t seed;
    uint64_t start;
    uint32_t step_bits; /* the clock goes on by less than 2^step_bits at a time */
    uint32_t span_bits; /* most instants are less than 2^span_bits away */
    bool removes;
};

struct run {
    const struct profile *profile;
    struct fixture fixture;
    uint64_t random;
    uint64_t now;
    uint64_t fired;
    uint64_t removed;
};

/* A number of up to `bits` bits; all lengths are as likely. */
static uint64_t random_span(uint64_t *random, uint32_t bits)
{
    return random_next(random) >> (63 - random_below(random, bits));
}

static uint64_t later(uint64_t now, uint64_t span)
{
    return span < LAST_TIME - now ? now + span : LAST_TIME;
}

static uint64_t random_instant(struct run *run)
{
    uint64_t *random = &run->random;
    const uint64_t span = random_span(random, run->profile->span_bits);
    const uint64_t boundary = later(run->now, span) / TICK * TICK;
    /* Those that never come would in time take all the places if they were not removed. */
    switch (random_below(random, run->profile->removes ? 16 : 14)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return run->now > span ? run->now - span : 1;
    case 3:
        return boundary;
    case 4:
        return boundary + 1;
    case 5:
        return boundary > 0 ? boundary - 1 : 0;
    case 14:
        return UINT64_MAX - random_span(random, 20);
    case 15:
        return later(run->now, random_span(random, 64)); /* on any level */
    default:
        return later(run->now, span);
    }
}

static void add_or_remove(struct run *run)
{
    struct fixture *fixture = &run->fixture;
    const uint32_t index = 1 + random_below(&run->random, RANDOM_ITEMS);
    if (!fixture->expected[index].is_in) {
        add(fixture, index, random_instant(run));
    } else if (run->profile->removes) {
        remove_item(fixture, index);
        run->removed++;
        if (random_below(&run->random, 2) == 0) {
            add(fixture, index, random_instant(run));
        }
    }
}

static void expire_randomly(struct run *run)
{
    static const uint32_t budgets[] = {0, 1, 2, 10, ALL};
    static const uint32_t mosts[] = {0, 1, 2, 10, DUE_MAX};
    uint64_t *random = &run->random;
    if (random_below(random, 4) > 0) { /* or go on with what is due now */
        run->now = later(run->now, random_span(random, run->profile->step_bits));
    }
    const uint32_t budget = budgets[random_below(random, 5)];
    run->fired += expire(&run->fixture, run->now, mosts[random_below(random, 5)], budget);
}

/* Portions however small come to an end. */
static void expire_all_that_is_due(struct run *run)
{
    struct fixture *fixture = &run->fixture;
    const uint32_t budget = 1 + random_below(&run->random, 5);
    const uint32_t most = 1 + random_below(&run->random, 5);
    const uint32_t calls_max =
        fixture->count * (WHEEL_LEVELS - 1) / budget + fixture->count / most + 1;
    for (uint32_t calls = 0; wheel_next(&fixture->wheel) <= run->now; calls++) {
        assert_true(calls <= calls_max);
        run->fired += expire(fixture, run->now, most, budget);
    }
    assert_true(fixture->count == 0 || first_tick(fixture) > run->now / TICK);
}

static void operate_randomly(struct run *run)
{
    const uint32_t choice = random_below(&run->random, 1000);
    if (choice < 700) {
        add_or_remove(run);
    } else if (choice < 990) {
        expire_randomly(run);
    } else {
        expire_all_that_is_due(run);
    }
    assert_next_is_not_late(&run->fixture);
    if (!run->profile->removes) { /* then nothing can make it early */
        assert_int_equal(wheel_next(&run->fixture.wheel), first_instant(&run->fixture));
    }
}

static void run_profile(const struct profile *profile)
{
    print_message("%s: seed %" PRIu64 "\n", profile->name, profile->seed);
    struct run run = {.profile = profile, .random = profile->seed, .now = profile->start};
    struct fixture *fixture = &run.fixture;
    fixture_init(fixture, RANDOM_ITEMS);
    for (uint32_t i = 0; i < RANDOM_OPERATIONS; i++) {
        operate_randomly(&run);
        if (i % 64 == 0) {
            assert_items(fixture);
        }
    }
    run.now = LAST_TIME;
    expire_all_that_is_due(&run);
    assert_int_equal(fixture->count, 0);
    assert_items(fixture);
    assert_true(run.fired > RANDOM_OPERATIONS / 20); /* it was no idle run */
    assert_true(!profile->removes || run.removed > RANDOM_OPERATIONS / 20);
    fixture_deinit(fixture);
}

TEST(wheel_random_use_agrees_with_a_naive_reference)
{
    static const struct profile profiles[] = {
        {"ticks", 20250201, 0, 18, 24, true},
        {"milliseconds", 20250202, UINT64_C(1) << 44, 21, 31, true},
        {"seconds", 20250203, UINT64_C(1) << 50, 31, 37, true},
        {"hours", 20250204, 12345, 42, 48, true},
        {"over all of time", 20250205, 0, 53, 60, true},
        {"up to the end of time", 20250206, UINT64_MAX - (UINT64_C(1) << 32), 19, 33, true},
        {"at the end of time", 20250207, UINT64_MAX - 40 * TICK, 8, 22, true},
        {"nothing removed", 20250208, UINT64_C(1) << 44, 22, 31, false},
        {"nothing removed over all of time", 20250209, 0, 53, 60, false},
    };
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        run_profile(&profiles[i]);
    }
}
