/* SPDX-License-Identifier: MIT */
/* Deadlines of open calls: arming, moving, disarming, collecting, and who gets a call that several
 * want to end. */
#include "dispatch/deadlines.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "counting_allocator.h"
#include "dispatch/call.h"

#define WHEELS  3
#define TICK    (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define TAG     UINT64_C(0xfedcba9876543210)
#define DUE_MAX 64

static const skua_pid owner = {UINT64_C(0x0010000004000001)};

struct fixture {
    struct counting_allocator memory;
    struct object_pool events;
    struct pool_cache cache;
    struct deadlines deadlines;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    counting_allocator_init(&fixture.memory);
    *state = &fixture;
    const struct allocator *allocator = &fixture.memory.allocator;
    return event_pool_init(&fixture.events, allocator, 1) &&
                   deadlines_init(&fixture.deadlines, allocator, &fixture.events, WHEELS)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    deadlines_deinit(&fixture->deadlines);
    object_pool_deinit(&fixture->events);
    return counting_allocator_is_clean(&fixture->memory) ? 0 : -1;
}

static struct event_node *node_at(const struct fixture *fixture, uint32_t call)
{
    return event_at(&fixture->events, call);
}

static uint32_t open_call(struct fixture *fixture)
{
    uint32_t call = OBJECT_NONE;
    assert_int_equal(object_acquire_owner(&fixture->events, fixture->events.shape.layout,
                                          &fixture->cache, &call),
                     OBJECT_POOL_OK);
    struct event_node *node = node_at(fixture, call);
    node->as.call.tag = TAG;
    node->as.call.error = -1;
    (void)call_open_owner(node, call, owner);
    return call;
}

static bool claim(struct fixture *fixture, uint32_t call)
{
    struct event_node *node = node_at(fixture, call);
    return call_claim_any(node, load_relaxed(&node->guard));
}

static bool arm(struct fixture *fixture, uint32_t wheel, uint32_t call, uint64_t when)
{
    return deadlines_arm_any(&fixture->deadlines, wheel, call, when, 0);
}

static uint32_t open_armed(struct fixture *fixture, uint32_t wheel, uint64_t when)
{
    const uint32_t call = open_call(fixture);
    (void)arm(fixture, wheel, call, when);
    return call;
}

static void disarm(struct fixture *fixture, uint32_t call)
{
    deadlines_disarm_any(&fixture->deadlines, call);
}

static uint64_t next_of(struct fixture *fixture, uint32_t wheel)
{
    return deadlines_next(&fixture->deadlines, wheel);
}

static uint32_t count_of(const struct fixture *fixture, uint32_t wheel)
{
    return fixture->deadlines.wheels[wheel].wheel.count;
}

/* What collect brought. */
struct collected {
    struct wheel_due due[DUE_MAX];
    uint32_t count;
};

static struct collected collect_most(struct fixture *fixture, uint32_t wheel, uint64_t now,
                                     uint32_t most)
{
    struct collected collected;
    collected.count = deadlines_collect_any(&fixture->deadlines, wheel, now, collected.due, most);
    assert_true(collected.count <= most);
    for (uint32_t i = 0; i < collected.count; i++) {
        const struct event_node *node = node_at(fixture, collected.due[i].index);
        assert_true(collected.due[i].when <= now);
        assert_false(claim(fixture, collected.due[i].index)); /* it is the caller's already */
        assert_int_equal(node->as.call.timer.when, 0);
        assert_int_equal(node->as.call.tag, TAG);
        assert_true(skua_pid_equal(node->as.call.owner, owner));
    }
    return collected;
}

static struct collected collect(struct fixture *fixture, uint32_t wheel, uint64_t now)
{
    return collect_most(fixture, wheel, now, DUE_MAX);
}

static void assert_collects_one(struct fixture *fixture, uint32_t wheel, uint64_t now,
                                uint32_t call, uint64_t when)
{
    const struct collected collected = collect(fixture, wheel, now);
    assert_int_equal(collected.count, 1);
    assert_int_equal(collected.due[0].index, call);
    assert_int_equal(collected.due[0].when, when);
}

/* ---- beginning ---- */

static void init_without_memory_fails_and_leaves_nothing(void **state)
{
    (void)state;
    struct counting_allocator memory;
    struct object_pool events = {0};
    struct deadlines deadlines;
    counting_allocator_init(&memory);
    counting_allocator_fail_from(&memory, 1);
    assert_false(deadlines_init(&deadlines, &memory.allocator, &events, WHEELS));
    deadlines_deinit(&deadlines);
    assert_true(counting_allocator_is_clean(&memory));
}

static void wheels_without_calls_have_no_next(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_int_equal(next_of(fixture, wheel), WHEEL_NEVER);
        assert_int_equal(collect(fixture, wheel, UINT64_MAX - 1).count, 0);
    }
    assert_int_equal(deadlines_next_of_all(&fixture->deadlines, WHEELS), WHEEL_NEVER);
    assert_int_equal(deadlines_next_of_all(&fixture->deadlines, 0), WHEEL_NEVER);
}

/* ---- arming ---- */

static void arm_notes_the_wheel_and_leaves_the_call_open(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        const uint32_t call = open_call(fixture);
        assert_int_equal(node_at(fixture, call)->as.call.wheel, 0);
        assert_true(arm(fixture, wheel, call, 10 * TICK + 1));
        assert_int_equal(node_at(fixture, call)->as.call.wheel, wheel + 1);
        assert_int_equal(node_at(fixture, call)->as.call.timer.when, 10 * TICK + 1);
        assert_int_equal(node_at(fixture, call)->as.call.error, -1);
        assert_int_equal(node_at(fixture, call)->as.call.tag, TAG);
        assert_true(claim(fixture, call));
        disarm(fixture, call);
    }
}

static void arm_tells_whether_nothing_is_as_early(void **state)
{
    struct fixture *fixture = *state;
    assert_true(arm(fixture, 0, open_call(fixture), 100 * TICK));
    assert_false(arm(fixture, 0, open_call(fixture), 100 * TICK));
    assert_false(arm(fixture, 0, open_call(fixture), 100 * TICK - 1)); /* the same span */
    assert_false(arm(fixture, 0, open_call(fixture), 5000 * TICK));
    assert_true(arm(fixture, 0, open_call(fixture), 99 * TICK));
    assert_true(arm(fixture, 0, open_call(fixture), 1));
    assert_false(arm(fixture, 0, open_call(fixture), 0));
    assert_true(arm(fixture, 1, open_call(fixture), 200 * TICK)); /* each wheel for itself */
}

static void arm_sets_next_to_the_end_of_the_earliest_span(void **state)
{
    struct fixture *fixture = *state;
    (void)open_armed(fixture, 1, 100 * TICK + 1);
    assert_int_equal(next_of(fixture, 1), 101 * TICK);
    (void)open_armed(fixture, 1, 5000 * TICK);
    assert_int_equal(next_of(fixture, 1), 101 * TICK);
    (void)open_armed(fixture, 1, 7 * TICK);
    assert_int_equal(next_of(fixture, 1), 7 * TICK);
    assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
    assert_int_equal(next_of(fixture, 2), WHEEL_NEVER);
}

/* What was armed in the past must not wait behind a time that has been dealt with. */
static void arm_in_the_past_is_due_at_once(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t now = 1000 * TICK;
    (void)open_armed(fixture, 0, now);
    assert_int_equal(collect(fixture, 0, now).count, 1);
    const uint32_t call = open_call(fixture);
    assert_true(arm(fixture, 0, call, 3 * TICK));
    assert_true(next_of(fixture, 0) <= now);
    assert_collects_one(fixture, 0, now, call, 3 * TICK);
}

static void next_of_all_is_that_of_the_earliest_among_the_first(void **state)
{
    struct fixture *fixture = *state;
    (void)open_armed(fixture, 0, 200 * TICK);
    (void)open_armed(fixture, 1, 100 * TICK);
    (void)open_armed(fixture, 2, 300 * TICK);
    assert_int_equal(deadlines_next_of_all(&fixture->deadlines, 0), WHEEL_NEVER);
    assert_int_equal(deadlines_next_of_all(&fixture->deadlines, 1), 200 * TICK);
    assert_int_equal(deadlines_next_of_all(&fixture->deadlines, 2), 100 * TICK);
    assert_int_equal(deadlines_next_of_all(&fixture->deadlines, 3), 100 * TICK);
}

/* ---- collecting ---- */

static void collect_claims_what_is_due_and_nothing_before(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 0, 100 * TICK + 1);
    const uint32_t later = open_armed(fixture, 0, 200 * TICK);
    assert_int_equal(collect(fixture, 0, 100 * TICK + 1).count, 0); /* its span is not over */
    assert_int_equal(collect(fixture, 0, 101 * TICK - 1).count, 0);
    assert_int_equal(next_of(fixture, 0), 101 * TICK);
    assert_collects_one(fixture, 0, 101 * TICK, call, 100 * TICK + 1);
    assert_int_equal(next_of(fixture, 0), 200 * TICK);
    assert_collects_one(fixture, 0, 200 * TICK, later, 200 * TICK);
    assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
}

static void collect_touches_only_the_wheel_it_is_for(void **state)
{
    struct fixture *fixture = *state;
    (void)open_armed(fixture, 0, TICK);
    const uint32_t call = open_armed(fixture, 1, TICK);
    (void)open_armed(fixture, 2, TICK);
    assert_collects_one(fixture, 1, 100 * TICK, call, TICK);
    assert_int_equal(next_of(fixture, 0), TICK);
    assert_int_equal(next_of(fixture, 1), WHEEL_NEVER);
    assert_int_equal(next_of(fixture, 2), TICK);
}

static void collect_brings_the_earliest_first_and_no_more_than_asked(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t calls = 10;
    const uint64_t now = 1000 * TICK;
    for (uint32_t i = 0; i < calls; i++) {
        (void)open_armed(fixture, 0, (1 + i * 7 % calls) * TICK);
    }
    uint64_t last = 0;
    for (uint32_t left = calls; left > 0;) {
        const struct collected collected = collect_most(fixture, 0, now, 3);
        assert_int_equal(collected.count, left < 3 ? left : 3);
        for (uint32_t i = 0; i < collected.count; i++) {
            assert_int_equal(collected.due[i].when, last + TICK);
            last = collected.due[i].when;
        }
        left -= collected.count;
        assert_true(left == 0 || next_of(fixture, 0) <= now); /* so that somebody comes again */
    }
    assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
}

/* So many lie in one slot of a higher level that they are not all moved under the lock at once. */
static void collect_of_a_large_slot_comes_in_portions(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t calls = 3000;
    const uint64_t now = 64 * 64 * 2 * TICK;
    for (uint32_t i = 0; i < calls; i++) {
        (void)open_armed(fixture, 0, (64 * 64 + i) * TICK); /* one slot of level 2 */
    }
    assert_int_equal(collect(fixture, 0, now).count, 0);
    assert_true(next_of(fixture, 0) <= now);
    uint32_t collected = 0;
    for (uint32_t rounds = 0; next_of(fixture, 0) <= now; rounds++) {
        assert_true(rounds < calls); /* each does something */
        collected += collect(fixture, 0, now).count;
    }
    assert_int_equal(collected, calls);
    assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
}

/* ---- claims lost to another ---- */

static void collect_leaves_calls_that_another_has_claimed(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 0, TICK);
    assert_true(claim(fixture, call));
    assert_int_equal(collect(fixture, 0, TICK).count, 0);
    /* It was taken out nevertheless: whoever claimed it finds nothing to disarm. */
    assert_int_equal(count_of(fixture, 0), 0);
    assert_int_equal(node_at(fixture, call)->as.call.timer.when, 0);
    assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
    disarm(fixture, call);
    assert_int_equal(count_of(fixture, 0), 0);
}

static void collect_brings_the_others_next_to_a_claim_that_was_lost(void **state)
{
    struct fixture *fixture = *state;
    enum { CALLS = 6 };
    uint64_t now = 0;
    for (uint32_t lost = 0; lost < 1u << CALLS; lost++) {
        uint32_t calls[CALLS];
        uint32_t expected = 0;
        for (uint32_t i = 0; i < CALLS; i++) {
            calls[i] = open_armed(fixture, 0, now + (1 + i) * TICK);
            if ((lost >> i & 1) != 0) {
                assert_true(claim(fixture, calls[i]));
            }
        }
        const struct collected collected = collect(fixture, 0, now + CALLS * TICK);
        for (uint32_t i = 0; i < CALLS; i++) {
            if ((lost >> i & 1) == 0) {
                assert_true(expected < collected.count);
                assert_int_equal(collected.due[expected].index, calls[i]);
                assert_int_equal(collected.due[expected].when, now + (1 + i) * TICK);
                expected++;
            }
            object_release_owner(&fixture->events, fixture->events.shape.layout, &fixture->cache,
                                 calls[i]);
        }
        assert_int_equal(collected.count, expected);
        assert_int_equal(count_of(fixture, 0), 0);
        now += CALLS * TICK;
    }
}

/* ---- disarming ---- */

static void disarm_takes_a_claimed_call_out(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 1, 100 * TICK);
    assert_true(claim(fixture, call));
    disarm(fixture, call);
    assert_int_equal(count_of(fixture, 1), 0);
    assert_int_equal(node_at(fixture, call)->as.call.timer.when, 0);
    assert_int_equal(next_of(fixture, 1), WHEEL_NEVER);
    assert_int_equal(collect(fixture, 1, 1000 * TICK).count, 0);
}

static void disarm_leaves_the_others_and_their_time(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t instants[] = {TICK, TICK, 70 * TICK, 70 * TICK, 5000 * TICK};
    enum { CALLS = sizeof instants / sizeof instants[0] };
    for (uint32_t gone = 0; gone < CALLS; gone++) {
        uint32_t calls[CALLS];
        for (uint32_t i = 0; i < CALLS; i++) {
            calls[i] = open_armed(fixture, 0, instants[i]);
        }
        assert_true(claim(fixture, calls[gone]));
        disarm(fixture, calls[gone]);
        assert_int_equal(count_of(fixture, 0), CALLS - 1);
        assert_true(next_of(fixture, 0) <= TICK); /* early, perhaps; late, never */
        /* The clock of the wheel must not go on, or what is armed next would be overdue. */
        for (uint32_t i = 0; i < CALLS; i++) {
            if (i != gone) {
                assert_true(claim(fixture, calls[i]));
                disarm(fixture, calls[i]);
            }
        }
        assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
    }
}

static void disarm_of_the_earliest_costs_one_look_at_most(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t earliest = open_armed(fixture, 0, 10 * TICK);
    const uint32_t other = open_armed(fixture, 0, 20 * TICK);
    assert_true(claim(fixture, earliest));
    disarm(fixture, earliest);
    const uint64_t next = next_of(fixture, 0);
    assert_in_range(next, 1, 20 * TICK);
    if (next < 20 * TICK) {
        assert_int_equal(collect(fixture, 0, next).count, 0);
        assert_int_equal(next_of(fixture, 0), 20 * TICK);
    }
    assert_collects_one(fixture, 0, 20 * TICK, other, 20 * TICK);
}

/* Whoever sleeps until a `next` that is too early need not be told of something in between. */
static void arm_after_a_disarm_is_told_unless_next_is_earlier_still(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t gone = open_armed(fixture, 0, 10 * TICK);
    (void)open_armed(fixture, 0, 30 * TICK);
    assert_true(claim(fixture, gone));
    disarm(fixture, gone);
    const uint64_t before = next_of(fixture, 0);
    const bool told = arm(fixture, 0, open_call(fixture), 20 * TICK);
    assert_true(told == (20 * TICK < before));
    assert_true(next_of(fixture, 0) <= 20 * TICK);
}

/* A node is used again: its next call has nothing to do with the wheel. */
static void call_disarm_of_a_call_without_deadline_touches_no_wheel(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 2, TICK);
    assert_true(claim(fixture, call));
    call_disarm_owner(&fixture->deadlines, node_at(fixture, call), call);
    assert_int_equal(count_of(fixture, 2), 0);

    struct event_node *node = node_at(fixture, call);
    const skua_payload nothing = skua_payload_empty(0);
    call_complete_owner(node, 0, &nothing); /* leaves something where the wheel was */
    (void)call_open_owner(node, call, owner);
    assert_int_equal(node->as.call.wheel, 0);
    assert_true(claim(fixture, call));
    node->as.call.timer.when = 12345; /* of no meaning now */
    call_disarm_owner(&fixture->deadlines, node, call);
    assert_int_equal(node->as.call.timer.when, 12345);
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_int_equal(count_of(fixture, wheel), 0);
    }
}

static void call_that_is_opened_again_can_be_armed_in_another_wheel(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 0, 10 * TICK);
    uint64_t when = 10 * TICK;
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_collects_one(fixture, wheel, when, call, when);
        when += 10 * TICK;
        (void)call_reopen_owner(node_at(fixture, call), call, owner);
        assert_true(arm(fixture, (wheel + 1) % WHEELS, call, when));
        assert_int_equal(count_of(fixture, wheel), 0);
        assert_int_equal(next_of(fixture, (wheel + 1) % WHEELS), when);
    }
}

/* ---- moving ---- */

static bool move(struct fixture *fixture, uint32_t wheel, uint32_t call, uint64_t when, int error)
{
    return deadlines_move_any(&fixture->deadlines, wheel, call, when, error);
}

static void move_changes_instant_and_error(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t targets[] = {TICK, 49 * TICK, 50 * TICK, 51 * TICK, 9000 * TICK};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const uint32_t call = open_armed(fixture, 0, 50 * TICK);
        (void)move(fixture, 0, call, targets[i], -42);
        assert_int_equal(count_of(fixture, 0), 1);
        assert_int_equal(node_at(fixture, call)->as.call.error, -42);
        assert_int_equal(node_at(fixture, call)->as.call.timer.when, targets[i]);
        assert_true(next_of(fixture, 0) <= targets[i]);
        assert_true(claim(fixture, call));
        disarm(fixture, call);
    }
}

static void move_to_an_earlier_instant_is_told(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 1, 50 * TICK);
    assert_true(move(fixture, 1, call, 40 * TICK, 0));
    assert_int_equal(next_of(fixture, 1), 40 * TICK);
    assert_false(move(fixture, 1, call, 40 * TICK, 0));
    assert_false(move(fixture, 1, call, 60 * TICK, 0));
    (void)open_armed(fixture, 1, 5 * TICK);
    assert_false(move(fixture, 1, call, 10 * TICK, 0)); /* another is earlier */
    assert_int_equal(collect(fixture, 1, 5 * TICK).count, 1);
    assert_collects_one(fixture, 1, 10 * TICK, call, 10 * TICK);
}

static void move_to_a_later_instant_does_not_fire_early(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 0, 50 * TICK);
    (void)move(fixture, 0, call, 80 * TICK, 0);
    assert_int_equal(collect(fixture, 0, 80 * TICK - 1).count, 0);
    assert_int_equal(next_of(fixture, 0), 80 * TICK);
    assert_collects_one(fixture, 0, 80 * TICK, call, 80 * TICK);
}

static void move_of_a_call_that_has_fired_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 0, 50 * TICK);
    assert_collects_one(fixture, 0, 50 * TICK, call, 50 * TICK);
    assert_false(move(fixture, 0, call, TICK, -42));
    assert_int_equal(node_at(fixture, call)->as.call.error, -1);
    assert_int_equal(node_at(fixture, call)->as.call.timer.when, 0);
    assert_int_equal(count_of(fixture, 0), 0);
    assert_int_equal(next_of(fixture, 0), WHEEL_NEVER);
}

/* Where the number of its wheel was, a completion has its type. */
static void move_of_a_call_that_is_an_event_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t call = open_armed(fixture, 0, 50 * TICK);
    assert_collects_one(fixture, 0, 50 * TICK, call, 50 * TICK);
    struct event_node *node = node_at(fixture, call);
    const skua_payload result = skua_payload_u64(7, 8);
    call_complete_owner(node, -3, &result);
    assert_false(move(fixture, 0, call, TICK, -42));
    assert_int_equal(node->as.event.type, SKUA_EVENT_COMPLETION);
    assert_int_equal(node->as.event.error, -3);
    assert_int_equal(skua_payload_to_u64(&node->as.event.payload), 8);
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_int_equal(count_of(fixture, wheel), 0);
        assert_int_equal(next_of(fixture, wheel), WHEEL_NEVER);
    }
}

/* ---- several threads: each call has one end ---- */

#define CALLS_OF_ALL 20000
#define CLAIMERS     2

struct contest {
    struct fixture *fixture;
    uint32_t calls[CALLS_OF_ALL];
    uint32_t guards[CALLS_OF_ALL];
    uint32_t claimed[CLAIMERS][CALLS_OF_ALL]; /* by each claimer */
    uint32_t collected[CALLS_OF_ALL];
    uint32_t number_of[CALLS_OF_ALL + 4096]; /* by node */
};

struct moves {
    struct fixture *fixture;
    atomic_u32 stops;
    uint32_t calls[CALLS_OF_ALL];
    uint32_t collected;
};

struct claimer {
    struct contest *contest;
    uint32_t number;
};

/* As somebody who completes calls that have a deadline. */
static void *claim_some(void *arg)
{
    const struct claimer *claimer = arg;
    struct contest *contest = claimer->contest;
    uint64_t random = 20250301 + claimer->number;
    for (uint32_t i = 0; i < CALLS_OF_ALL; i++) {
        struct event_node *node = node_at(contest->fixture, contest->calls[i]);
        if (random_below(&random, 3) > 0 && call_claim_any(node, contest->guards[i])) {
            const skua_payload result = skua_payload_u64(1, i);
            call_disarm_owner(&contest->fixture->deadlines, node, contest->calls[i]);
            call_complete_owner(node, 0, &result);
            contest->claimed[claimer->number][i]++;
        }
    }
    return NULL;
}

/* As somebody who fires what is due: all of it, but not at once. */
static void *collect_all(void *arg)
{
    struct contest *contest = arg;
    struct deadlines *deadlines = &contest->fixture->deadlines;
    uint64_t now = 0;
    while (deadlines_next_of_all(deadlines, WHEELS) != WHEEL_NEVER) {
        now += 10 * TICK;
        for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
            struct wheel_due due[DUE_MAX];
            const uint32_t count = deadlines_collect_any(deadlines, wheel, now, due, DUE_MAX);
            for (uint32_t i = 0; i < count; i++) {
                struct event_node *node = node_at(contest->fixture, due[i].index);
                const skua_payload nothing = skua_payload_empty(0);
                call_complete_owner(node, node->as.call.error, &nothing);
                contest->collected[contest->number_of[due[i].index]]++;
            }
        }
    }
    return NULL;
}

static void calls_claimed_and_collected_at_once_end_once(void **state)
{
    struct fixture *fixture = *state;
    static struct contest contest;
    contest = (struct contest){.fixture = fixture};
    for (uint32_t i = 0; i < CALLS_OF_ALL; i++) {
        contest.calls[i] = open_armed(fixture, i % WHEELS, (1 + i / 4) * TICK);
        contest.guards[i] = load_relaxed(&node_at(fixture, contest.calls[i])->guard);
        assert_in_range(contest.calls[i], 1, sizeof contest.number_of / sizeof(uint32_t) - 1);
        contest.number_of[contest.calls[i]] = i;
    }
    struct claimer claimers[CLAIMERS] = {{&contest, 0}, {&contest, 1}};
    pthread_t threads[CLAIMERS + 1];
    for (uint32_t i = 0; i < CLAIMERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, claim_some, &claimers[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[CLAIMERS], NULL, collect_all, &contest), 0);
    for (uint32_t i = 0; i <= CLAIMERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t i = 0; i < CALLS_OF_ALL; i++) {
        assert_int_equal(contest.collected[i] + contest.claimed[0][i] + contest.claimed[1][i], 1);
        const skua_event *event = &node_at(fixture, contest.calls[i])->as.event;
        assert_int_equal(event->type, SKUA_EVENT_COMPLETION);
        assert_int_equal(event->error, contest.collected[i] ? -1 : 0);
        assert_int_equal(skua_payload_to_u64(&event->payload), contest.collected[i] ? 0 : i);
    }
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_int_equal(count_of(fixture, wheel), 0);
    }
}

/* As somebody who fires the first wheel while its owner arms and moves. */
static void *collect_until_stopped(void *arg)
{
    struct moves *moves = arg;
    bool stops;
    do {
        stops = load_acquire(&moves->stops); /* then all that was armed is seen below */
        struct wheel_due due[DUE_MAX];
        uint32_t count;
        while ((count = deadlines_collect_any(&moves->fixture->deadlines, 0, TICK, due, DUE_MAX)) >
               0) {
            for (uint32_t i = 0; i < count; i++) {
                struct event_node *node = node_at(moves->fixture, due[i].index);
                const skua_payload nothing = skua_payload_empty(0);
                call_complete_owner(node, node->as.call.error, &nothing);
                moves->collected++;
            }
        }
    } while (!stops);
    return NULL;
}

/* A call whose timer fires may be an event already when its owner wants to move it. */
static void move_against_a_collector_leaves_each_call_one_end(void **state)
{
    struct fixture *fixture = *state;
    static struct moves moves;
    moves = (struct moves){.fixture = fixture};
    pthread_t collector;
    assert_int_equal(pthread_create(&collector, NULL, collect_until_stopped, &moves), 0);
    for (uint32_t i = 0; i < CALLS_OF_ALL; i++) {
        moves.calls[i] = open_armed(fixture, 0, TICK);
        (void)move(fixture, 0, moves.calls[i], TICK / 2, -2);
    }
    store_release(&moves.stops, true);
    assert_int_equal(pthread_join(collector, NULL), 0);
    assert_int_equal(moves.collected, CALLS_OF_ALL);
    assert_int_equal(count_of(fixture, 0), 0);
    for (uint32_t i = 0; i < CALLS_OF_ALL; i++) {
        const skua_event *event = &node_at(fixture, moves.calls[i])->as.event;
        assert_int_equal(event->type, SKUA_EVENT_COMPLETION);
        assert_int_equal(event->tag, TAG);
        assert_true(event->error == -1 || event->error == -2);
    }
}

#define DEADLINES_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_without_memory_fails_and_leaves_nothing),
        DEADLINES_TEST(wheels_without_calls_have_no_next),
        DEADLINES_TEST(arm_notes_the_wheel_and_leaves_the_call_open),
        DEADLINES_TEST(arm_tells_whether_nothing_is_as_early),
        DEADLINES_TEST(arm_sets_next_to_the_end_of_the_earliest_span),
        DEADLINES_TEST(arm_in_the_past_is_due_at_once),
        DEADLINES_TEST(next_of_all_is_that_of_the_earliest_among_the_first),
        DEADLINES_TEST(collect_claims_what_is_due_and_nothing_before),
        DEADLINES_TEST(collect_touches_only_the_wheel_it_is_for),
        DEADLINES_TEST(collect_brings_the_earliest_first_and_no_more_than_asked),
        DEADLINES_TEST(collect_of_a_large_slot_comes_in_portions),
        DEADLINES_TEST(collect_leaves_calls_that_another_has_claimed),
        DEADLINES_TEST(collect_brings_the_others_next_to_a_claim_that_was_lost),
        DEADLINES_TEST(disarm_takes_a_claimed_call_out),
        DEADLINES_TEST(disarm_leaves_the_others_and_their_time),
        DEADLINES_TEST(disarm_of_the_earliest_costs_one_look_at_most),
        DEADLINES_TEST(arm_after_a_disarm_is_told_unless_next_is_earlier_still),
        DEADLINES_TEST(call_disarm_of_a_call_without_deadline_touches_no_wheel),
        DEADLINES_TEST(call_that_is_opened_again_can_be_armed_in_another_wheel),
        DEADLINES_TEST(move_changes_instant_and_error),
        DEADLINES_TEST(move_to_an_earlier_instant_is_told),
        DEADLINES_TEST(move_to_a_later_instant_does_not_fire_early),
        DEADLINES_TEST(move_of_a_call_that_has_fired_changes_nothing),
        DEADLINES_TEST(move_of_a_call_that_is_an_event_changes_nothing),
        DEADLINES_TEST(calls_claimed_and_collected_at_once_end_once),
        DEADLINES_TEST(move_against_a_collector_leaves_each_call_one_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
