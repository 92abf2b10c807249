/* SPDX-License-Identifier: MIT */
/* Deadlines of open calls: arming, disarming, collecting, and who gets a call that several
 * want to end. */
#include "dispatch/deadlines.h"

#include <pthread.h>

#include "base/random.h"
#include "call_rig.h"

#define WHEELS  CALL_RIG_WHEELS
#define TICK    (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define TAG     UINT64_C(0xfedcba9876543210)
#define DUE_MAX 64

static const skua_pid owner = {UINT64_C(0x0010000004000001)};

static struct open_call *call_at(uint32_t call)
{
    return &node_at(call)->as.call;
}

static uint32_t open_call(void)
{
    const uint32_t call = take_node();
    call_at(call)->tag = TAG;
    call_at(call)->error = -1;
    (void)call_open_owner(node_at(call), call, owner);
    return call;
}

static bool claim(uint32_t call)
{
    return call_claim_any(node_at(call), load_relaxed(&node_at(call)->guard));
}

static bool arm(uint32_t wheel, uint32_t call, uint64_t when)
{
    return deadlines_arm_any(&call_rig.deadlines, wheel, call, when, 0);
}

static bool put_beside(uint32_t wheel, uint32_t call, uint64_t when)
{
    return deadlines_put_beside_owner(&call_rig.deadlines, wheel, call, when);
}

static uint32_t open_beside(uint32_t wheel, uint64_t when)
{
    const uint32_t call = open_call();
    (void)put_beside(wheel, call, when);
    return call;
}

static uint32_t open_armed(uint32_t wheel, uint64_t when)
{
    const uint32_t call = open_call();
    (void)arm(wheel, call, when);
    return call;
}

static void claim_and_disarm(uint32_t call)
{
    assert_true(claim(call));
    deadlines_disarm_any(&call_rig.deadlines, call);
    assert_int_equal(call_at(call)->timer.when, 0);
}

static uint64_t next_of(uint32_t wheel)
{
    return deadlines_next(&call_rig.deadlines, wheel);
}

static uint32_t count_of(uint32_t wheel)
{
    return call_rig.deadlines.wheels[wheel].wheel.count;
}

static uint32_t count_beside(uint32_t wheel)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < DEADLINE_PLACES; i++) {
        count += load_seq_cst(&call_rig.deadlines.wheels[wheel].beside[i]) != OBJECT_NONE;
    }
    return count;
}

static void assert_empty(uint32_t wheel)
{
    assert_int_equal(count_of(wheel), 0);
    assert_int_equal(count_beside(wheel), 0);
    assert_int_equal(next_of(wheel), WHEEL_NEVER);
}

/* ---- collecting ---- */

static struct wheel_due due[DUE_MAX]; /* what was collected last */

static uint32_t collect_most(uint32_t wheel, uint64_t now, uint32_t most)
{
    const uint32_t count = deadlines_collect_any(&call_rig.deadlines, wheel, now, due, most);
    assert_true(count <= most);
    for (uint32_t i = 0; i < count; i++) {
        const struct open_call *call = call_at(due[i].index);
        assert_true(due[i].when <= now);
        assert_false(claim(due[i].index)); /* it is the caller's already */
        assert_int_equal(call->timer.when, 0);
        assert_int_equal(call->tag, TAG);
        assert_true(skua_pid_equal(call->owner, owner));
    }
    return count;
}

static uint32_t collect(uint32_t wheel, uint64_t now)
{
    return collect_most(wheel, now, DUE_MAX);
}

static void assert_collects_one(uint32_t wheel, uint64_t now, uint32_t call, uint64_t when)
{
    assert_int_equal(collect(wheel, now), 1);
    assert_int_equal(due[0].index, call);
    assert_int_equal(due[0].when, when);
}

/* ---- beginning ---- */

TEST(init_without_memory_fails_and_leaves_nothing)
{
    struct object_pool events = {0};
    struct deadlines deadlines;
    memory_open();
    counting_allocator_fail_from(&memory, 1);
    assert_false(deadlines_init(&deadlines, &memory.allocator, &events, WHEELS));
    deadlines_deinit(&deadlines);
}

TEST(wheels_without_calls_have_no_next)
{
    call_rig_open();
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_empty(wheel);
        assert_int_equal(collect(wheel, UINT64_MAX - 1), 0);
    }
    assert_int_equal(deadlines_next_of_all(&call_rig.deadlines, WHEELS), WHEEL_NEVER);
}

/* ---- arming ---- */

TEST(arm_notes_the_wheel_and_leaves_the_call_open)
{
    call_rig_open();
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        const uint32_t call = open_call();
        assert_int_equal(call_at(call)->wheel, 0);
        assert_true(arm(wheel, call, 10 * TICK + 1));
        assert_int_equal(call_at(call)->wheel, wheel + 1);
        assert_int_equal(call_at(call)->timer.when, 10 * TICK + 1);
        assert_int_equal(call_at(call)->error, -1);
        assert_int_equal(call_at(call)->tag, TAG);
        claim_and_disarm(call);
    }
}

/* The end of the span that an instant lies in counts, for each wheel by itself. */
TEST(arm_tells_whether_nothing_is_as_early)
{
    static const struct {
        uint32_t wheel;
        uint64_t when;
        bool is_first;
        uint64_t next; /* of that wheel, afterwards */
    } rows[] = {
        {0, 100 * TICK + 1, true, 101 * TICK},
        {0, 100 * TICK + 1, false, 101 * TICK},
        {0, 101 * TICK - 1, false, 101 * TICK},
        {0, 5000 * TICK, false, 101 * TICK},
        {0, 99 * TICK, true, 99 * TICK},
        {0, 1, true, TICK},
        {0, 0, false, TICK},
        {1, 200 * TICK, true, 200 * TICK},
    };
    call_rig_open();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(arm(rows[i].wheel, open_call(), rows[i].when), rows[i].is_first);
        assert_int_equal(next_of(rows[i].wheel), rows[i].next);
    }
    assert_empty(2);
}

/* What was armed in the past must not wait behind a time that has been dealt with. */
TEST(arm_in_the_past_is_due_at_once)
{
    const uint64_t now = 1000 * TICK;
    call_rig_open();
    assert_collects_one(0, now, open_armed(0, now), now);
    const uint32_t call = open_call();
    assert_true(arm(0, call, 3 * TICK));
    assert_true(next_of(0) <= now);
    assert_collects_one(0, now, call, 3 * TICK);
}

TEST(next_of_all_is_that_of_the_earliest_among_the_first)
{
    static const uint64_t expected[] = {WHEEL_NEVER, 200 * TICK, 100 * TICK, 100 * TICK};
    call_rig_open();
    (void)open_armed(0, 200 * TICK);
    (void)open_armed(1, 100 * TICK);
    (void)open_armed(2, 300 * TICK);
    for (uint32_t count = 0; count <= WHEELS; count++) {
        assert_int_equal(deadlines_next_of_all(&call_rig.deadlines, count), expected[count]);
    }
}

TEST(collect_claims_what_is_due_and_nothing_before)
{
    call_rig_open();
    const uint32_t call = open_armed(0, 100 * TICK + 1);
    const uint32_t later = open_armed(0, 200 * TICK);
    assert_int_equal(collect(0, 100 * TICK + 1), 0); /* its span is not over */
    assert_int_equal(collect(0, 101 * TICK - 1), 0);
    assert_int_equal(next_of(0), 101 * TICK);
    assert_collects_one(0, 101 * TICK, call, 100 * TICK + 1);
    assert_int_equal(next_of(0), 200 * TICK);
    assert_collects_one(0, 200 * TICK, later, 200 * TICK);
    assert_empty(0);
}

TEST(collect_touches_only_the_wheel_it_is_for)
{
    call_rig_open();
    (void)open_armed(0, TICK);
    const uint32_t call = open_armed(1, TICK);
    (void)open_armed(2, TICK);
    assert_collects_one(1, 100 * TICK, call, TICK);
    assert_int_equal(next_of(0), TICK);
    assert_empty(1);
    assert_int_equal(next_of(2), TICK);
}

TEST(collect_brings_the_earliest_first_and_no_more_than_asked)
{
    const uint32_t calls = 10;
    const uint64_t now = 1000 * TICK;
    uint64_t last = 0;
    call_rig_open();
    for (uint32_t i = 0; i < calls; i++) {
        (void)open_armed(0, (1 + i * 7 % calls) * TICK);
    }
    for (uint32_t left = calls; left > 0;) {
        const uint32_t count = collect_most(0, now, 3);
        assert_int_equal(count, left < 3 ? left : 3);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(due[i].when, last + TICK);
            last = due[i].when;
        }
        left -= count;
        assert_true(left == 0 || next_of(0) <= now); /* so that somebody comes again */
    }
    assert_empty(0);
}

/* So many lie in one slot of a higher level that they are not all moved under the lock at once. */
TEST(collect_of_a_large_slot_comes_in_portions)
{
    const uint32_t calls = 3000;
    const uint64_t now = 64 * 64 * 2 * TICK;
    call_rig_open();
    for (uint32_t i = 0; i < calls; i++) {
        (void)open_armed(0, (64 * 64 + i) * TICK); /* one slot of level 2 */
    }
    uint32_t collected = collect(0, now);
    assert_in_range(collected, 1, 64); /* some of those that became due last */
    assert_true(next_of(0) <= now);
    for (uint32_t rounds = 0; next_of(0) <= now; rounds++) {
        assert_true(rounds < calls); /* each does something */
        collected += collect(0, now);
    }
    assert_int_equal(collected, calls);
    assert_empty(0);
}

/* ---- claims lost to another ---- */

/* Whoever claimed them finds them taken out, and nothing to disarm; the others are brought. */
TEST(collect_leaves_calls_that_another_has_claimed)
{
    enum { CALLS = 6 };
    uint64_t now = 0;
    call_rig_open();
    for (uint32_t lost = 0; lost < 1u << CALLS; lost++) {
        uint32_t calls[CALLS];
        uint32_t expected = 0;
        for (uint32_t i = 0; i < CALLS; i++) {
            calls[i] = open_armed(0, now + (1 + i) * TICK);
            assert_true((lost >> i & 1) == 0 || claim(calls[i]));
        }
        const uint32_t count = collect(0, now + CALLS * TICK);
        assert_empty(0);
        for (uint32_t i = 0; i < CALLS; i++) {
            if ((lost >> i & 1) == 0) {
                assert_true(expected < count);
                assert_int_equal(due[expected].index, calls[i]);
                assert_int_equal(due[expected].when, now + (1 + i) * TICK);
                expected++;
            } else {
                assert_int_equal(call_at(calls[i])->timer.when, 0);
                deadlines_disarm_any(&call_rig.deadlines, calls[i]);
                assert_empty(0);
            }
            give_node(calls[i]);
        }
        assert_int_equal(count, expected);
        now += CALLS * TICK;
    }
}

/* ---- disarming ---- */

TEST(disarm_takes_a_claimed_call_out)
{
    call_rig_open();
    claim_and_disarm(open_armed(1, 100 * TICK));
    assert_empty(1);
    assert_int_equal(collect(1, 1000 * TICK), 0);
}

/* The clock of the wheel must not go on, or what is armed next would be overdue. */
TEST(disarm_leaves_the_others_and_their_time)
{
    static const uint64_t instants[] = {TICK, TICK, 70 * TICK, 70 * TICK, 5000 * TICK};
    enum { CALLS = COUNT_OF(instants) };
    call_rig_open();
    for (uint32_t gone = 0; gone < CALLS; gone++) {
        uint32_t calls[CALLS];
        for (uint32_t i = 0; i < CALLS; i++) {
            calls[i] = open_armed(0, instants[i]);
        }
        claim_and_disarm(calls[gone]);
        assert_int_equal(count_of(0), CALLS - 1);
        assert_true(next_of(0) <= TICK); /* early, perhaps; late, never */
        for (uint32_t i = 1; i < CALLS; i++) {
            claim_and_disarm(calls[(gone + i) % CALLS]);
        }
        assert_empty(0);
    }
}

TEST(disarm_of_the_earliest_costs_one_look_at_most)
{
    call_rig_open();
    const uint32_t earliest = open_armed(0, 10 * TICK);
    const uint32_t other = open_armed(0, 20 * TICK);
    claim_and_disarm(earliest);
    const uint64_t next = next_of(0);
    assert_in_range(next, 1, 20 * TICK);
    if (next < 20 * TICK) {
        assert_int_equal(collect(0, next), 0);
        assert_int_equal(next_of(0), 20 * TICK);
    }
    assert_collects_one(0, 20 * TICK, other, 20 * TICK);
}

/* Whoever sleeps until a `next` that is too early need not be told of something in between. */
TEST(arm_after_a_disarm_is_told_unless_next_is_earlier_still)
{
    call_rig_open();
    const uint32_t gone = open_armed(0, 10 * TICK);
    (void)open_armed(0, 30 * TICK);
    claim_and_disarm(gone);
    const uint64_t before = next_of(0);
    assert_int_equal(arm(0, open_call(), 20 * TICK), 20 * TICK < before);
    assert_true(next_of(0) <= 20 * TICK);
}

/* A node is used again: its next call has nothing to do with the wheel. */
TEST(call_disarm_of_a_call_without_deadline_touches_no_wheel)
{
    const skua_payload nothing = skua_payload_empty(0);
    call_rig_open();
    const uint32_t call = open_armed(2, TICK);
    struct event_node *node = node_at(call);
    assert_true(claim(call));
    call_disarm_owner(&call_rig.deadlines, node, call);
    assert_empty(2);

    call_complete_owner(node, 0, &nothing); /* leaves something where the wheel was */
    (void)call_open_owner(node, call, owner);
    assert_int_equal(node->as.call.wheel, 0);
    assert_true(claim(call));
    node->as.call.timer.when = 12345; /* of no meaning now */
    call_disarm_owner(&call_rig.deadlines, node, call);
    assert_int_equal(node->as.call.timer.when, 12345);
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_empty(wheel);
    }
}

TEST(call_that_is_opened_again_can_be_armed_in_another_wheel)
{
    uint64_t when = 10 * TICK;
    call_rig_open();
    const uint32_t call = open_armed(0, when);
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        const uint32_t other = (wheel + 1) % WHEELS;
        assert_collects_one(wheel, when, call, when);
        when += 10 * TICK;
        (void)call_reopen_owner(node_at(call), call, owner);
        assert_true(arm(other, call, when));
        assert_empty(wheel);
        assert_int_equal(next_of(other), when);
    }
}

/* ---- beside a wheel ---- */

TEST(put_beside_leaves_the_wheel_alone_and_the_call_open)
{
    call_rig_open();
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        const uint32_t call = open_beside(wheel, 10 * TICK + 1);
        assert_int_equal(count_of(wheel), 0);
        assert_int_equal(count_beside(wheel), 1);
        assert_int_equal(next_of(wheel), 11 * TICK);
        assert_int_equal(call_at(call)->wheel, wheel + 1);
        assert_int_equal(call_at(call)->timer.when, 10 * TICK + 1);
        assert_int_equal(call_at(call)->tag, TAG);
        assert_true(claim(call));
    }
}

TEST(put_beside_tells_whether_nothing_is_as_early)
{
    call_rig_open();
    assert_true(put_beside(0, open_call(), 100 * TICK));
    assert_false(put_beside(0, open_call(), 100 * TICK));
    assert_false(arm(0, open_call(), 200 * TICK));
    assert_true(put_beside(0, open_call(), 99 * TICK));
    assert_true(arm(0, open_call(), 98 * TICK));
    assert_int_equal(next_of(0), 98 * TICK);
}

TEST(collect_brings_what_lies_beside_the_wheel_in_order_of_time)
{
    call_rig_open();
    const uint32_t third = open_beside(0, 30 * TICK);
    const uint32_t first = open_beside(0, 10 * TICK);
    const uint32_t second = open_armed(0, 20 * TICK);
    assert_int_equal(collect(0, 10 * TICK - 1), 0);
    assert_collects_one(0, 10 * TICK, first, 10 * TICK);
    assert_int_equal(next_of(0), 20 * TICK);
    assert_int_equal(collect(0, 30 * TICK), 2);
    assert_int_equal(due[0].index, second);
    assert_int_equal(due[1].index, third);
    assert_empty(0);
}

/* What is still there when its place comes round again has to go into the wheel. */
TEST(more_calls_than_there_are_places_all_become_due)
{
    const uint32_t calls = 3 * DEADLINE_PLACES + 1;
    uint32_t last = OBJECT_NONE;
    call_rig_open();
    for (uint32_t i = 0; i < calls; i++) {
        last = open_beside(0, (100 + i) * TICK);
    }
    assert_int_equal(count_of(0) + count_beside(0), calls);
    assert_int_equal(count_beside(0), 1);
    for (uint32_t i = 0; i < calls; i++) {
        assert_int_equal(next_of(0), (100 + i) * TICK);
        assert_int_equal(collect(0, (100 + i) * TICK), 1);
    }
    assert_int_equal(due[0].index, last);
    assert_empty(0);
}

TEST(disarm_takes_a_call_from_its_place_or_from_the_wheel_it_went_to)
{
    uint32_t calls[2 * DEADLINE_PLACES];
    call_rig_open();
    for (uint32_t i = 0; i < COUNT_OF(calls); i++) {
        calls[i] = open_beside(0, (100 + i) * TICK);
    }
    for (uint32_t i = 0; i < COUNT_OF(calls); i++) {
        assert_true(claim(calls[i]));
        deadlines_disarm_any(&call_rig.deadlines, calls[i]);
        assert_int_equal(count_of(0) + count_beside(0), COUNT_OF(calls) - 1 - i);
    }
    assert_int_equal(collect(0, 1000 * TICK), 0);
    assert_empty(0);
}

/* Its place has another call by then. */
TEST(disarm_of_a_call_that_was_collected_leaves_the_next_in_its_place)
{
    call_rig_open();
    const uint32_t call = open_beside(0, 10 * TICK);
    assert_true(claim(call));
    assert_int_equal(collect(0, 10 * TICK), 0);
    call_rig.deadlines.wheels[0].turn = 0;
    const uint32_t later = open_beside(0, 20 * TICK);
    assert_int_equal(call_at(later)->place, call_at(call)->place);
    deadlines_disarm_any(&call_rig.deadlines, call);
    assert_collects_one(0, 20 * TICK, later, 20 * TICK);
}

TEST(next_that_calls_left_behind_is_corrected)
{
    call_rig_open();
    const uint32_t gone = open_beside(0, 10 * TICK);
    const uint32_t other = open_beside(0, 20 * TICK);
    assert_true(claim(gone));
    deadlines_disarm_any(&call_rig.deadlines, gone);
    assert_int_equal(next_of(0), 10 * TICK); /* early does no harm */
    deadlines_correct_any(&call_rig.deadlines, 0);
    assert_int_equal(next_of(0), 20 * TICK);
    assert_true(put_beside(0, open_call(), 15 * TICK));
    assert_int_equal(collect(0, 15 * TICK), 1);
    claim_and_disarm(other);
    assert_empty(0);
    deadlines_correct_any(&call_rig.deadlines, 0);
    assert_empty(0);
}

/* ---- several threads: each call has one end ---- */

#define MANY     20000
#define CLAIMERS 2

static struct {
    uint32_t calls[MANY];
    uint32_t guards[MANY];
    uint32_t claimed[CLAIMERS][MANY]; /* by each claimer */
    uint32_t collected[MANY];
    uint32_t collected_in_all;
    uint32_t number_of[MANY + 4096]; /* by node */
    atomic_u32 opened;               /* so many, in a race that opens them as it goes */
    atomic_u32 stops;
} race;

static void open_race(void)
{
    call_rig_open();
    memset(&race, 0, sizeof race);
}

/* As somebody who completes calls that have a deadline. */
static void *claim_some(void *arg)
{
    uint32_t *claimed = arg;
    uint64_t random = 20250301 + (uint64_t)(claimed == race.claimed[1]);
    for (uint32_t i = 0; i < MANY; i++) {
        struct event_node *node = node_at(race.calls[i]);
        if (random_below(&random, 3) > 0 && call_claim_any(node, race.guards[i])) {
            const skua_payload result = skua_payload_u64(1, i);
            call_disarm_owner(&call_rig.deadlines, node, race.calls[i]);
            call_complete_owner(node, 0, &result);
            claimed[i]++;
        }
    }
    return NULL;
}

/* As somebody who fires what is due. */
static uint32_t fire(uint32_t wheel, uint64_t now)
{
    struct wheel_due fired[DUE_MAX];
    const skua_payload nothing = skua_payload_empty(0);
    const uint32_t count = deadlines_collect_any(&call_rig.deadlines, wheel, now, fired, DUE_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct event_node *node = node_at(fired[i].index);
        call_complete_owner(node, node->as.call.error, &nothing);
        race.collected[race.number_of[fired[i].index]]++;
    }
    race.collected_in_all += count;
    return count;
}

/* All of it, but not at once. */
static void *fire_all(void *arg)
{
    uint64_t now = 0;
    while (deadlines_next_of_all(&call_rig.deadlines, WHEELS) != WHEEL_NEVER) {
        now += 10 * TICK;
        for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
            (void)fire(wheel, now);
        }
    }
    return arg;
}

TEST(calls_claimed_and_collected_at_once_end_once)
{
    pthread_t threads[CLAIMERS + 1];
    open_race();
    for (uint32_t i = 0; i < MANY; i++) {
        race.calls[i] = open_armed(i % WHEELS, (1 + i / 4) * TICK);
        race.guards[i] = load_relaxed(&node_at(race.calls[i])->guard);
        assert_in_range(race.calls[i], 1, COUNT_OF(race.number_of) - 1);
        race.number_of[race.calls[i]] = i;
    }
    for (uint32_t i = 0; i < CLAIMERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, claim_some, race.claimed[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[CLAIMERS], NULL, fire_all, NULL), 0);
    for (uint32_t i = 0; i <= CLAIMERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        const skua_event *event = &node_at(race.calls[i])->as.event;
        assert_int_equal(race.collected[i] + race.claimed[0][i] + race.claimed[1][i], 1);
        assert_int_equal(event->type, SKUA_EVENT_COMPLETION);
        assert_int_equal(event->error, race.collected[i] ? -1 : 0);
        assert_int_equal(skua_payload_to_u64(&event->payload), race.collected[i] ? 0 : i);
    }
    for (uint32_t wheel = 0; wheel < WHEELS; wheel++) {
        assert_int_equal(count_of(wheel), 0);
    }
}

/* While the owner of the first wheel arms. */
static void *fire_until_stopped(void *arg)
{
    bool stops;
    do {
        stops = load_acquire(&race.stops); /* then all that was armed is seen below */
        while (fire(0, TICK) > 0) {
        }
    } while (!stops);
    return arg;
}

/* The owner takes back some of what it has just armed, as a process that cancels does. */
TEST(disarm_against_a_collector_leaves_each_call_one_end)
{
    pthread_t collector;
    uint32_t disarmed = 0;
    open_race();
    assert_int_equal(pthread_create(&collector, NULL, fire_until_stopped, NULL), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        race.calls[i] = open_armed(0, TICK);
        if (i % 2 == 0 && claim(race.calls[i])) {
            const skua_payload nothing = skua_payload_empty(0);
            call_disarm_owner(&call_rig.deadlines, node_at(race.calls[i]), race.calls[i]);
            call_complete_owner(node_at(race.calls[i]), -2, &nothing);
            disarmed++;
        }
    }
    store_release(&race.stops, true);
    assert_int_equal(pthread_join(collector, NULL), 0);
    assert_int_equal(race.collected_in_all, MANY - disarmed);
    assert_int_equal(count_of(0), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const skua_event *event = &node_at(race.calls[i])->as.event;
        assert_int_equal(event->type, SKUA_EVENT_COMPLETION);
        assert_int_equal(event->tag, TAG);
        assert_true(event->error == -1 || (event->error == -2 && i % 2 == 0));
    }
}

/* Whoever waits for deadlines goes by `next` alone: a call that it does not cover would stay. */
static void *fire_by_next(void *arg)
{
    bool stops;
    do {
        stops = load_acquire(&race.stops); /* then all that was put there is seen below */
        for (uint64_t next; (next = next_of(0)) != WHEEL_NEVER;) {
            (void)fire(0, next);
        }
    } while (!stops);
    return arg;
}

static void *claim_as_they_come(void *arg)
{
    const skua_payload result = skua_payload_u64(1, 1);
    for (uint32_t i = 0; i < MANY; i++) {
        while (load_acquire(&race.opened) <= i) {
        }
        struct event_node *node = node_at(race.calls[i]);
        if (i % 3 == 0 && call_claim_any(node, race.guards[i])) {
            call_disarm_owner(&call_rig.deadlines, node, race.calls[i]);
            call_complete_owner(node, 0, &result);
            race.claimed[0][i]++;
        }
    }
    return arg;
}

/* Some of them end at once, as a call that is answered does; others by another thread. */
TEST(calls_beside_a_wheel_end_once_whoever_ends_them)
{
    pthread_t claimer;
    pthread_t collector;
    const skua_payload result = skua_payload_u64(1, 1);
    open_race();
    for (uint32_t i = 0; i < MANY; i++) {
        race.calls[i] = open_call();
        race.guards[i] = load_relaxed(&node_at(race.calls[i])->guard);
        assert_in_range(race.calls[i], 1, COUNT_OF(race.number_of) - 1);
        race.number_of[race.calls[i]] = i;
    }
    assert_int_equal(pthread_create(&claimer, NULL, claim_as_they_come, NULL), 0);
    assert_int_equal(pthread_create(&collector, NULL, fire_by_next, NULL), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        struct event_node *node = node_at(race.calls[i]);
        (void)put_beside(0, race.calls[i], (1 + i / 8) * TICK);
        store_release(&race.opened, i + 1);
        if (i % 3 == 1 && call_claim_any(node, race.guards[i])) {
            call_disarm_owner(&call_rig.deadlines, node, race.calls[i]);
            call_complete_owner(node, 0, &result);
            race.claimed[1][i]++;
        }
    }
    assert_int_equal(pthread_join(claimer, NULL), 0);
    store_release(&race.stops, true);
    assert_int_equal(pthread_join(collector, NULL), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(race.collected[i] + race.claimed[0][i] + race.claimed[1][i], 1);
    }
    assert_empty(0);
}
