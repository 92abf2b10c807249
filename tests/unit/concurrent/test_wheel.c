/* SPDX-License-Identifier: MIT */
/* The timing wheel: every instant on every level, work in portions, removal at every moment, and
 * long random use against a naive reference. */
#include "concurrent/wheel.h"

#include <inttypes.h>

#include "base/random.h"
#include "effort.h"
#include "pool_support.h"
#include "test_memory.h"

#define TICK      (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define LAST_TICK (UINT64_MAX >> WHEEL_TICK_SHIFT)
#define LAST_TIME (UINT64_MAX - 1) /* that a clock can show: the next is WHEEL_NEVER */
#define ALL       UINT32_MAX
#define MARK      UINT64_C(0x6d61726b6d61726b)
#define DUE_MAX   64
#define ITEMS_MAX 1000

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

static struct object_pool pool;
static struct wheel wheel;

static struct expected expected[ITEMS_MAX + 1]; /* by index: 1 to item_count */
static uint32_t item_count;
static uint32_t in_count;  /* of those that are in */
static uint64_t last_tick; /* of what came out last */

static void construct(void *object, uint32_t index, uint32_t floor)
{
    (void)index;
    (void)floor;
    struct item *item = object;
    item->mark = MARK;
    item->link.when = 0;
}

static const struct item *item_at(uint32_t index)
{
    return object_pool_at(&pool, index);
}

/* An empty wheel at the beginning of time, and as many items. */
static void reset_wheel(void)
{
    memset(expected, 0, sizeof expected);
    in_count = 0;
    last_tick = 0;
    for (uint32_t i = 1; i <= item_count; i++) {
        construct(object_pool_at(&pool, i), i, 0);
    }
    wheel_init(&wheel, &pool, offsetof(struct item, link));
}

static void open_wheel(uint32_t items)
{
    struct pool_cache cache = {0};
    memory_open();
    assert_in_range(items, 1, ITEMS_MAX);
    item_count = items;
    pool_open(&pool, &(struct object_pool_shape){
                         .layout = {sizeof(struct item), offsetof(struct item, free)},
                         .limit = items,
                         .cache_count = 1,
                         .construct = construct,
                     });
    for (uint32_t i = 0; i < items; i++) {
        assert_in_range(pool_take(&pool, &cache), 1, items);
    }
    reset_wheel();
}

/* ---- the reference ---- */

/* The tick at whose beginning an instant has passed. Those in the last tick of all count as its
 * beginning: there is no later one. */
static uint64_t tick_after(uint64_t when)
{
    const uint64_t tick = when / TICK + (when % TICK != 0);
    return tick < LAST_TICK ? tick : LAST_TICK;
}

static uint64_t first_tick(void)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 1; i <= item_count; i++) {
        if (expected[i].is_in && expected[i].tick < first) {
            first = expected[i].tick;
        }
    }
    return first;
}

/* When there is something to do, were it known exactly. */
static uint64_t first_instant(void)
{
    return in_count > 0 ? first_tick() * TICK : WHEEL_NEVER;
}

static void assert_next_is_not_late(void)
{
    const uint64_t next = wheel_next(&wheel);
    assert_true(next <= first_instant());
    assert_true((next == WHEEL_NEVER) == (in_count == 0));
    /* What has been done once is not asked for again. */
    assert_true(next >= wheel.current * TICK);
}

static void assert_items(void)
{
    assert_int_equal(wheel.count, in_count);
    for (uint32_t i = 1; i <= item_count; i++) {
        assert_int_equal(item_at(i)->mark, MARK);
        assert_int_equal(item_at(i)->link.when, expected[i].is_in ? expected[i].when : 0);
    }
}

static void add(uint32_t index, uint64_t when)
{
    struct expected *item = &expected[index];
    assert_false(item->is_in);
    item->is_in = true;
    item->when = when > 0 ? when : 1;
    const uint64_t tick = tick_after(item->when);
    item->tick = tick > wheel.current ? tick : wheel.current;
    in_count++;
    wheel_add(&wheel, index, when, 0);
}

static void remove_item(uint32_t index)
{
    assert_true(expected[index].is_in);
    expected[index].is_in = false;
    in_count--;
    wheel_remove(&wheel, index);
}

/* One that has come out: nothing is early, lost or doubled. */
static struct expected *take_out(const struct wheel_due *due, uint64_t now)
{
    assert_in_range(due->index, 1, item_count);
    struct expected *item = &expected[due->index];
    assert_true(item->is_in);
    assert_int_equal(due->when, item->when);
    assert_true(item->when <= now || now / TICK == LAST_TICK);
    assert_true(item->tick <= now / TICK);
    assert_int_equal(item_at(due->index)->link.when, 0);
    item->is_in = false;
    in_count--;
    return item;
}

static uint32_t expire_some(uint64_t now, uint32_t most, uint32_t budget)
{
    struct wheel_due due[DUE_MAX + 1];
    assert_true(most <= DUE_MAX);
    due[most] = (struct wheel_due){MARK, ALL};
    const uint32_t count = wheel_expire(&wheel, now, due, most, budget);
    assert_true(count <= most);
    assert_true(due[most].when == MARK && due[most].index == ALL);
    for (uint32_t i = 0; i < count; i++) {
        const struct expected *item = take_out(&due[i], now);
        assert_true(item->tick >= last_tick); /* nothing is out of order */
        last_tick = item->tick;
    }
    const uint64_t next = wheel_next(&wheel);
    const uint64_t rest = first_tick();
    assert_true(in_count == 0 || rest >= last_tick); /* the earliest came first */
    assert_true(next <= now || in_count == 0 || rest > now / TICK);
    if (budget == ALL && count < most) {
        assert_true(next > now); /* all that was due came out, and it knows */
    }
    return count;
}

/* The same in no order. */
static uint32_t expire_latest(uint64_t now, uint32_t most)
{
    struct wheel_due due[DUE_MAX + 1];
    due[most] = (struct wheel_due){MARK, ALL};
    const uint32_t count = wheel_expire_latest(&wheel, now, due, most);
    assert_true(count <= most);
    assert_true(due[most].when == MARK && due[most].index == ALL);
    for (uint32_t i = 0; i < count; i++) {
        (void)take_out(&due[i], now);
    }
    return count;
}

/* So many come out, with all the moving there is to do. */
static void expire(uint64_t now, uint32_t count)
{
    assert_int_equal(expire_some(now, DUE_MAX, ALL), count);
}

/* ---- instants ---- */

TEST(wheel_without_items_is_never_due)
{
    open_wheel(1);
    assert_int_equal(wheel_next(&wheel), WHEEL_NEVER);
    expire(0, 0);
    expire(LAST_TIME, 0);
    assert_int_equal(wheel_next(&wheel), WHEEL_NEVER);
}

/* One that nobody has looked at for long need not begin in the distant past; one with items in it
 * must, because they may be due. */
TEST(add_to_a_stale_wheel_begins_at_the_instant_that_has_passed)
{
    const uint64_t past = 1000 * TICK + 5;
    struct wheel_due due[2];
    open_wheel(2);
    wheel_add(&wheel, 1, past + TICK, past);
    assert_int_equal(wheel.current, 1000);
    assert_true(wheel.occupied[0] != 0); /* the lowest level */
    wheel_add(&wheel, 2, past + 5 * TICK, past + 4 * TICK);
    assert_int_equal(wheel.current, 1000);
    assert_int_equal(wheel_expire(&wheel, past + TICK, due, 2, 0), 0);
    assert_int_equal(wheel_expire(&wheel, past + 2 * TICK, due, 2, 0), 1);
    assert_int_equal(due[0].index, 1);
    wheel_remove(&wheel, 2);
}

/* Alone in a wheel whose time is `start`. */
static void assert_fires_at_the_end_of_its_tick(uint64_t start, uint64_t when)
{
    reset_wheel();
    expire(start, 0);
    add(1, when);
    const uint64_t due_at = first_instant();
    assert_int_equal(wheel_next(&wheel), due_at);
    if (due_at > start) {
        expire(start, 0);
        expire(due_at - 1, 0);
        assert_int_equal(wheel_next(&wheel), due_at);
    }
    assert_items();
    expire(due_at, 1);
    assert_int_equal(wheel_next(&wheel), WHEEL_NEVER);
    assert_items();
}

TEST(add_on_every_level_fires_at_the_end_of_its_tick)
{
    static const uint64_t starts[] = {0,
                                      1,
                                      12345 * TICK + 678,
                                      (UINT64_C(1) << 40) - 1,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 3 * TICK};
    FOR_ROWS (start, starts) {
        open_wheel(1);
        for (uint32_t bit = 0; bit < 64; bit += EFFORT_SHARE == 1 ? 1 : 5) {
            const uint64_t span = UINT64_C(1) << bit;
            const uint64_t when = *start < UINT64_MAX - span ? *start + span : UINT64_MAX;
            assert_fires_at_the_end_of_its_tick(*start, when - 1);
            assert_fires_at_the_end_of_its_tick(*start, when);
            assert_fires_at_the_end_of_its_tick(*start, when | (span - 1));
        }
    }
}

TEST(add_in_the_past_is_due_at_once)
{
    const uint64_t now = UINT64_C(1) << 42;
    const uint64_t pasts[] = {0, 1, TICK, now - TICK, now - 1, now};
    FOR_ROWS (past, pasts) {
        open_wheel(1);
        expire(now, 0);
        add(1, *past);
        assert_true(wheel_next(&wheel) <= now);
        expire(now, 1);
    }
}

/* 0 in the link means that it is in no wheel. */
TEST(add_at_zero_counts_as_one)
{
    struct wheel_due due;
    open_wheel(1);
    wheel_add(&wheel, 1, 0, 0);
    assert_int_equal(item_at(1)->link.when, 1);
    assert_int_equal(wheel_expire(&wheel, TICK, &due, 1, ALL), 1);
    assert_int_equal(due.when, 1);
}

/* Two threads may look at the clock in one order and come here in the other. */
TEST(expire_with_a_time_before_the_last_fires_nothing_early)
{
    const uint64_t now = 1000 * TICK;
    open_wheel(3);
    expire(now, 0);
    add(1, now - 5 * TICK);
    add(2, now - 2 * TICK);
    add(3, now + 1);
    assert_int_equal(expire_some(now - 3 * TICK, DUE_MAX, 0), 0);
    assert_int_equal(expire_some(now - 1, DUE_MAX, 0), 0);
    assert_items();
    expire(now, 2);
    expire(now + TICK, 1);
}

/* ---- order and portions ---- */

TEST(expire_brings_the_earliest_ticks_first)
{
    uint32_t fired = 0;
    open_wheel(500);
    for (uint32_t i = 1; i <= 500; i++) { /* each tick twice, in a wild order */
        add(i, 1 + (uint64_t)(i * 77 % 250) * 50 * TICK);
    }
    for (uint32_t portion; (portion = expire_some(UINT64_C(1) << 40, 7, ALL)) > 0;) {
        fired += portion;
        assert_items();
    }
    assert_int_equal(fired, 500);
}

/* A crowd is due at one tick, and a single one a while after that, on every level. */
TEST(latest_comes_out_before_the_crowd_that_is_due_before_it)
{
    const uint64_t crowd = (UINT64_C(1) << 48) + 3 * TICK;
    open_wheel(102);
    for (uint32_t level = 0; level < 4; level++) {
        const uint64_t after = crowd + (TICK << (level * WHEEL_LEVEL_BITS));
        reset_wheel();
        for (uint32_t i = 1; i <= 100; i++) {
            add(i, crowd);
        }
        assert_int_equal(expire_some(crowd, 10, ALL), 10);
        add(101, after);
        add(102, after + TICK);
        assert_true(expire_latest(after, 2) >= 1);
        assert_false(expected[101].is_in);
        assert_items();
        assert_int_equal(expire_latest(after, DUE_MAX), DUE_MAX - (level == 0 ? 0 : 1));
        assert_true(expected[102].is_in); /* it is not due */
        while (expire_some(after, DUE_MAX, ALL) > 0) {
        }
        assert_int_equal(in_count, 1);
        expire(after + TICK, 1);
    }
}

TEST(latest_of_nothing_that_is_due_takes_nothing_out)
{
    open_wheel(2);
    add(1, 10 * TICK);
    add(2, 5000 * TICK);
    assert_int_equal(expire_latest(9 * TICK, DUE_MAX), 0);
    assert_items();
    expire(10000 * TICK, 2);
}

TEST(expire_of_nothing_takes_nothing_out)
{
    open_wheel(2);
    add(1, 10 * TICK);
    add(2, 5000 * TICK);
    assert_int_equal(expire_some(10000 * TICK, 0, ALL), 0);
    assert_items();
    expire(10000 * TICK, 2);
}

/* What is added for soon then lies where it need not be moved again. */
TEST(expire_of_an_empty_wheel_brings_it_up_to_now)
{
    const uint64_t now = UINT64_C(123456789) * WHEEL_SLOTS * TICK;
    const uint64_t soon = now + (WHEEL_SLOTS - 1) * TICK;
    open_wheel(1);
    expire(now, 0);
    add(1, soon);
    assert_int_equal(expire_some(soon, DUE_MAX, 0), 1);
}

/* ---- cascades ---- */

/* Ticks that lie in slot 3 of level 1 until the wheel comes there. */
#define CASCADE_BEGIN ((uint64_t)3 * WHEEL_SLOTS)
#define CASCADE_TICKS WHEEL_SLOTS
#define CASCADE_END   ((CASCADE_BEGIN + CASCADE_TICKS) * TICK)

static void assert_cascade_length(uint32_t length)
{
    uint32_t found = 0;
    if ((wheel.occupied[1] >> 3 & 1) != 0) {
        for (uint32_t i = wheel.first[1][3]; i != OBJECT_NONE; i = item_at(i)->link.next) {
            found++;
        }
    }
    assert_int_equal(found, length);
}

/* The first `count` items lie there, spread over so many ticks. */
static void add_cascade(uint32_t count, uint32_t ticks)
{
    for (uint32_t i = 1; i <= count; i++) {
        add(i, (CASCADE_BEGIN + i % ticks) * TICK);
    }
    assert_cascade_length(count);
}

TEST(expire_moves_no_more_than_its_budget)
{
    const uint32_t count = 1000;
    const uint32_t budget = 30;
    open_wheel(count);
    add_cascade(count, CASCADE_TICKS);
    for (uint32_t moved = 0; moved < count - budget;) {
        assert_int_equal(expire_some(CASCADE_END, DUE_MAX, budget), 0);
        moved += budget;
        assert_cascade_length(count - moved);
        assert_true(wheel_next(&wheel) <= CASCADE_END); /* so that the caller comes again */
    }
    assert_int_equal(expire_some(CASCADE_END, DUE_MAX, budget), DUE_MAX);
    assert_cascade_length(0);
    assert_items();
    while (in_count > 0) {
        assert_true(expire_some(CASCADE_END, DUE_MAX, 0) > 0); /* nothing is left to be moved */
    }
}

TEST(expire_without_budget_stays_before_the_cascade)
{
    const uint64_t now = 2 * CASCADE_BEGIN * TICK;
    open_wheel(10);
    add_cascade(10, CASCADE_TICKS);
    assert_int_equal(expire_some(now, DUE_MAX, 0), 0);
    assert_true(wheel_next(&wheel) <= now);
    assert_cascade_length(10);
    expire(now, 10);
}

/* From the highest level each item goes down one or more levels at a time, never up. */
TEST(expire_moves_an_item_at_most_once_per_level)
{
    uint32_t calls = 0;
    open_wheel(1);
    add(1, UINT64_C(0xfedcba9876540000)); /* none of its levels is left out */
    while (in_count > 0) {
        (void)expire_some(LAST_TIME, DUE_MAX, 1);
        assert_true(++calls <= WHEEL_LEVELS);
    }
    assert_int_equal(calls, WHEEL_LEVELS - 1);
}

/* Of what is added while a slot cascades, the earliest still comes first. */
TEST(add_during_a_cascade_keeps_the_order)
{
    const uint32_t count = 200;
    const uint64_t late = CASCADE_END + 1000 * TICK;
    const uint64_t instants[] = {1, CASCADE_BEGIN * TICK, (CASCADE_BEGIN + 1) * TICK, CASCADE_END,
                                 late};
    uint32_t fired = 0;
    open_wheel(count + COUNT_OF(instants));
    add_cascade(count, CASCADE_TICKS);
    assert_int_equal(expire_some(CASCADE_END, DUE_MAX, count / 2), 0);
    for (uint32_t i = 0; i < COUNT_OF(instants); i++) {
        add(count + 1 + i, instants[i]);
        assert_next_is_not_late();
    }
    assert_items();
    while (wheel_next(&wheel) <= CASCADE_END) {
        fired += expire_some(CASCADE_END, 5, 10); /* checks the order */
    }
    assert_int_equal(fired, count + COUNT_OF(instants) - 1);
    assert_int_equal(wheel_next(&wheel), late);
}

/* ---- removal ---- */

TEST(remove_of_the_only_item_empties_the_wheel)
{
    open_wheel(1);
    for (uint32_t bit = 0; bit < 64; bit++) {
        reset_wheel();
        add(1, UINT64_C(1) << bit);
        remove_item(1);
        assert_int_equal(wheel_next(&wheel), WHEEL_NEVER);
        assert_items();
        expire(LAST_TIME, 0);
    }
}

/* First, middle and last of a slot's list, in all orders of three. */
TEST(remove_works_in_every_position)
{
    static const uint32_t orders[][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                         {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    FOR_ROWS (order, orders) {
        open_wheel(4);
        for (uint32_t removed = 0; removed <= 3; removed++) {
            reset_wheel();
            for (uint32_t i = 1; i <= 3; i++) {
                add(i, 100 * TICK);
            }
            add(4, 5000 * TICK); /* must stay whatever happens to the others */
            for (uint32_t i = 0; i < removed; i++) {
                remove_item((*order)[i]);
            }
            assert_items();
            expire(100 * TICK, 3 - removed);
            expire(5000 * TICK, 1);
        }
    }
}

/* An overdue item lies where its instant does not lead to. */
TEST(remove_of_overdue_items_works_in_every_position)
{
    open_wheel(3);
    for (uint32_t removed = 1; removed <= 3; removed++) {
        reset_wheel();
        expire(1000 * TICK, 0);
        add(1, 10 * TICK);
        add(2, 1000 * TICK);
        add(3, 990 * TICK);
        remove_item(removed);
        assert_items();
        expire(1000 * TICK, 2);
    }
}

/* Its slot may still promise something earlier; one look corrects that. */
TEST(remove_of_the_earliest_makes_next_early_once_at_most)
{
    open_wheel(2);
    add(1, 5000 * TICK);
    add(2, 5010 * TICK); /* the same slot of level 2 */
    remove_item(1);
    const uint64_t next = wheel_next(&wheel);
    assert_in_range(next, 1, 5010 * TICK);
    expire(next, next == 5010 * TICK);
    if (in_count > 0) {
        assert_int_equal(wheel_next(&wheel), 5010 * TICK);
        expire(5010 * TICK, 1);
    }
}

/* After `moved` of the slot's items have gone down, every one of them in turn is removed. */
TEST(remove_during_a_cascade_works_wherever_the_item_is)
{
    const uint32_t count = 9;
    open_wheel(count);
    for (uint32_t moved = 0; moved <= count; moved++) {
        for (uint32_t removed = 1; removed <= count; removed++) {
            reset_wheel();
            add_cascade(count, 4); /* several in one tick */
            (void)expire_some(CASCADE_END, 0, moved);
            assert_cascade_length(count - moved);
            remove_item(removed);
            assert_next_is_not_late();
            assert_items();
            expire(CASCADE_END, count - 1);
            assert_items();
        }
    }
}

TEST(remove_of_all_during_a_cascade_ends_it)
{
    open_wheel(20);
    add_cascade(20, CASCADE_TICKS);
    assert_int_equal(expire_some(CASCADE_END, DUE_MAX, 10), 0);
    for (uint32_t i = 1; i <= 20; i++) {
        remove_item(i);
        assert_next_is_not_late();
    }
    assert_int_equal(wheel_next(&wheel), WHEEL_NEVER);
    assert_int_equal(expire_some(CASCADE_END, DUE_MAX, 0), 0); /* nothing is left to be moved */
}

/* ---- again ---- */

TEST(add_again_after_firing_and_removal_works)
{
    uint64_t now = 0;
    open_wheel(2);
    for (uint32_t bit = 16; bit < 62; bit++) {
        const uint64_t when = now + (UINT64_C(1) << bit);
        add(1, when);
        add(2, when);
        remove_item(1);
        add(1, when + TICK); /* as a move does */
        expire(when, 1);
        expire(when + TICK, 1);
        assert_items();
        now = when + TICK;
    }
}

TEST(add_again_during_a_cascade_works)
{
    const uint32_t count = 20;
    open_wheel(count);
    add_cascade(count, CASCADE_TICKS);
    (void)expire_some(CASCADE_END, 0, count / 2);
    for (uint32_t i = 1; i <= count; i++) {
        remove_item(i);
        add(i, i % 2 == 0 ? CASCADE_END + i * TICK : CASCADE_BEGIN * TICK);
        assert_next_is_not_late();
    }
    assert_items();
    expire(CASCADE_END, count / 2);
    expire(CASCADE_END + count * TICK, count / 2);
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
    const uint32_t index = 1 + random_below(&run->random, RANDOM_ITEMS);
    if (!expected[index].is_in) {
        add(index, random_instant(run));
    } else if (run->profile->removes) {
        remove_item(index);
        run->removed++;
        if (random_below(&run->random, 2) == 0) {
            add(index, random_instant(run));
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
    if (run->profile->removes && random_below(random, 4) == 0) { /* `next` is early after that */
        run->fired += expire_latest(run->now, mosts[random_below(random, 5)]);
        return;
    }
    const uint32_t budget = budgets[random_below(random, 5)];
    run->fired += expire_some(run->now, mosts[random_below(random, 5)], budget);
}

/* Portions however small come to an end. */
static void expire_all_that_is_due(struct run *run)
{
    const uint32_t budget = 1 + random_below(&run->random, 5);
    const uint32_t most = 1 + random_below(&run->random, 5);
    const uint32_t calls_max = in_count * (WHEEL_LEVELS - 1) / budget + in_count / most + 1;
    for (uint32_t calls = 0; wheel_next(&wheel) <= run->now; calls++) {
        assert_true(calls <= calls_max);
        run->fired += expire_some(run->now, most, budget);
    }
    assert_true(in_count == 0 || first_tick() > run->now / TICK);
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
    assert_next_is_not_late();
    if (!run->profile->removes) { /* then nothing can make it early */
        assert_int_equal(wheel_next(&wheel), first_instant());
    }
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
    FOR_ROWS (profile, profiles) {
        struct run run = {.profile = profile, .random = profile->seed, .now = profile->start};
        print_message("%s: seed %" PRIu64 "\n", profile->name, profile->seed);
        open_wheel(RANDOM_ITEMS);
        for (uint32_t i = 0; i < RANDOM_OPERATIONS; i++) {
            operate_randomly(&run);
            if (i % 64 == 0) {
                assert_items();
            }
        }
        run.now = LAST_TIME;
        expire_all_that_is_due(&run);
        assert_int_equal(in_count, 0);
        assert_items();
        assert_true(run.fired > RANDOM_OPERATIONS / 20); /* it was no idle run */
        assert_true(!profile->removes || run.removed > RANDOM_OPERATIONS / 20);
    }
}
