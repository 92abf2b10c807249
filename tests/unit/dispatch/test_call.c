/* SPDX-License-Identifier: MIT */
/* Open calls: who may complete them, and the list that a process keeps of them. */
#include "dispatch/call.h"

#include "call_rig.h"

#define CALLS 5
#define TAG   UINT64_C(0xfedcba9876543210)

static const skua_pid owner = {UINT64_C(0x0010000004000001)};
static struct process process;

static void open_rig(void)
{
    call_rig_open();
    process = (struct process){.calls = OBJECT_NONE};
}

static skua_completion open_on(uint32_t index)
{
    node_at(index)->as.call.tag = TAG;
    return call_open_owner(node_at(index), index, owner);
}

static skua_completion open_one(void)
{
    return open_on(take_node());
}

static struct event_node *node_of(skua_completion completion)
{
    return node_at(call_index(completion));
}

static bool claim(skua_completion completion)
{
    return call_claim_any(node_of(completion), call_guard(completion));
}

static void complete(skua_completion completion, int error, uint64_t value)
{
    const skua_payload result = skua_payload_u64(7, value);
    assert_true(claim(completion));
    call_complete_owner(node_of(completion), error, &result);
}

static void assert_event(skua_completion completion, int error, uint64_t value)
{
    const skua_event *event = &node_of(completion)->as.event;
    assert_int_equal(event->type, SKUA_EVENT_COMPLETION);
    assert_int_equal(event->error, error);
    assert_int_equal(event->payload.type, 7);
    assert_int_equal(skua_payload_to_u64(&event->payload), value);
}

/* ---- opening and claiming ---- */

TEST(open_fills_the_node_and_names_it)
{
    open_rig();
    const uint32_t index = take_node();
    const skua_completion completion = open_on(index);
    const struct open_call *call = &node_at(index)->as.call;
    assert_int_equal(call_index(completion), index);
    assert_int_equal(call_guard(completion), load_relaxed(&node_at(index)->guard));
    assert_true(skua_pid_equal(completion.process, owner));
    assert_true(skua_pid_equal(call->owner, owner));
    assert_int_equal(call->wheel, 0);
    assert_int_equal(call->tag, TAG);
    assert_int_equal(call->previous, OBJECT_NONE);
    assert_int_equal(call->next, OBJECT_NONE);
}

TEST(open_call_is_claimed_once)
{
    open_rig();
    const skua_completion completion = open_one();
    assert_true(claim(completion));
    assert_false(claim(completion));
    assert_false(claim(completion));
}

/* Whether the node is used again at once, or was free in between. */
TEST(claim_of_an_earlier_call_on_the_same_node_fails)
{
    static const bool was_free[] = {false, true};
    FOR_ROWS (row, was_free) {
        open_rig();
        const skua_completion first = open_one();
        assert_true(claim(first));
        if (*row) {
            give_node(call_index(first));
            assert_false(claim(first));
            assert_int_equal(take_node(), call_index(first));
            assert_false(claim(first));
        }
        const skua_completion second = open_on(call_index(first));
        assert_false(claim(first));
        assert_true(claim(second));
    }
}

TEST(claim_with_a_guard_that_is_not_open_fails)
{
    open_rig();
    const skua_completion completion = open_one();
    struct event_node *node = node_of(completion);
    const uint32_t guard = call_guard(completion);
    assert_false(call_claim_any(node, guard & ~CALL_OPEN));
    assert_false(call_claim_any(node, 0));
    assert_true(call_claim_any(node, guard));
    /* What the guard is now; somebody could make it up. */
    assert_false(call_claim_any(node, load_relaxed(&node->guard)));
    assert_int_equal(load_relaxed(&node->guard), guard & ~CALL_OPEN);
}

TEST(claim_of_a_node_that_never_was_a_call_fails)
{
    open_rig();
    struct event_node *node = node_at(take_node());
    assert_false(call_claim_any(node, 0));
    assert_false(call_claim_any(node, CALL_OPEN));
    assert_false(call_claim_any(node, CALL_SERIAL_ONE | CALL_OPEN));
}

TEST(serial_differs_for_every_call_of_a_node)
{
    open_rig();
    const uint32_t index = take_node();
    uint32_t last = load_relaxed(&node_at(index)->guard);
    for (int i = 0; i < 1000; i++) {
        const skua_completion completion = open_on(index);
        assert_int_equal(call_guard(completion), (last + CALL_SERIAL_ONE) | CALL_OPEN);
        assert_true(claim(completion));
        last = load_relaxed(&node_at(index)->guard);
    }
}

TEST(serial_may_wrap)
{
    open_rig();
    const uint32_t index = take_node();
    store_relaxed(&node_at(index)->guard, UINT32_MAX & ~(CALL_SERIAL_ONE - 1));
    const skua_completion completion = open_on(index);
    assert_int_equal(call_guard(completion), CALL_OPEN);
    assert_int_equal(call_index(completion), index);
    assert_true(claim(completion));
    assert_false(claim(completion));
}

TEST(complete_turns_the_call_into_its_event)
{
    open_rig();
    const skua_completion completion = open_one();
    complete(completion, -42, 8);
    assert_event(completion, -42, 8);
    assert_int_equal(node_of(completion)->as.event.tag, TAG);
}

/* ---- the list ---- */

static skua_completion calls[CALLS];
static bool is_linked[CALLS];

static void open_and_link(void)
{
    process.calls = OBJECT_NONE;
    for (size_t i = 0; i < CALLS; i++) {
        calls[i] = open_one();
        call_link_owner(&memory.allocator, &call_rig.events, &process, call_index(calls[i]));
        is_linked[i] = true;
    }
}

static void open_rig_and_link(void)
{
    open_rig();
    open_and_link();
}

static void unlink_call(skua_completion completion)
{
    call_unlink_owner(&call_rig.events, &process, node_of(completion), call_index(completion));
}

static size_t number_of(uint32_t index)
{
    size_t number = 0;
    while (number < CALLS && call_index(calls[number]) != index) {
        number++;
    }
    assert_true(number < CALLS);
    return number;
}

/* The list holds exactly the linked calls, each once, and its back links are right. */
static void assert_list(void)
{
    bool found[CALLS] = {false};
    uint32_t previous = OBJECT_NONE;
    uint32_t index = process.calls;
    while (index != OBJECT_NONE) {
        const struct open_call *call = &node_at(index)->as.call;
        const size_t number = number_of(index);
        assert_false(found[number]);
        found[number] = true;
        assert_int_equal(call->previous & ~CALL_FLAGS, previous);
        previous = index;
        index = call->next;
    }
    assert_memory_equal(found, is_linked, sizeof found);
}

/* As when the completion is delivered: won, filled, and then taken off the list. */
static void deliver(size_t number)
{
    complete(calls[number], 0, number);
    unlink_call(calls[number]);
    is_linked[number] = false;
    assert_true(skua_pid_is_none(node_of(calls[number])->as.event.from)); /* no traces of links */
    assert_event(calls[number], 0, number);
    assert_list();
}

TEST(link_builds_a_list_of_all_calls)
{
    open_rig_and_link();
    assert_list();
}

TEST(unlink_works_in_every_order)
{
    static const size_t orders[][CALLS] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 1, 3, 0, 4}, {1, 3, 2, 4, 0}, {3, 4, 1, 0, 2}};
    FOR_ROWS (order, orders) {
        open_rig_and_link();
        for (size_t i = 0; i < CALLS; i++) {
            deliver((*order)[i]);
        }
        assert_int_equal(process.calls, OBJECT_NONE);
    }
}

/* CALL_ENDS lies in a link: what neighbours do to the link must not take it off, and the link must
 * work with it. */
TEST(mark_of_a_call_that_ends_survives_changes_of_the_list)
{
    FOR_ROUNDS (round, CALLS * CALLS) {
        const size_t ending = (round - 1) / CALLS;
        const size_t other = (round - 1) % CALLS;
        open_rig_and_link();
        struct open_call *call = &node_of(calls[ending])->as.call;
        call->previous |= CALL_ENDS;
        if (other != ending) {
            deliver(other);
            assert_int_not_equal(call->previous & CALL_ENDS, 0);
        }
        assert_list();
        deliver(ending);
    }
}

TEST(mark_of_a_call_that_ends_survives_a_new_neighbour)
{
    open_rig();
    const skua_completion ending = open_one();
    struct open_call *call = &node_of(ending)->as.call;
    call_link_owner(&memory.allocator, &call_rig.events, &process, call_index(ending));
    call->previous |= CALL_ENDS;
    const uint32_t neighbour = call_index(open_one());
    call_link_owner(&memory.allocator, &call_rig.events, &process, neighbour);
    assert_int_equal(call->previous, CALL_ENDS | neighbour);
    unlink_call(ending);
    assert_int_equal(process.calls, neighbour);
    assert_int_equal(node_at(neighbour)->as.call.next, OBJECT_NONE);
}

/* A call that its handler completed at once never was on the list. */
TEST(unlink_of_a_call_that_was_not_linked_changes_no_list)
{
    open_rig();
    unlink_call(open_one());
    assert_int_equal(process.calls, OBJECT_NONE);
    open_and_link();
    unlink_call(open_one());
    assert_list();
}

/* A completer may win between the handler's return and call_link_owner; the links survive it. */
TEST(link_after_the_completion_is_undone_by_its_delivery)
{
    open_rig_and_link();
    const skua_completion early = open_one();
    complete(early, 0, 2);
    call_link_owner(&memory.allocator, &call_rig.events, &process, call_index(early));
    assert_int_equal(process.calls, call_index(early));
    assert_event(early, 0, 2);
    unlink_call(early);
    assert_list();
}

/* ---- deadlines ---- */

static void arm(skua_completion completion, uint32_t wheel, uint64_t when)
{
    (void)!deadlines_arm_any(&call_rig.deadlines, wheel, call_index(completion), when, 0);
}

static void disarm(skua_completion completion)
{
    assert_true(claim(completion));
    call_disarm_owner(&call_rig.deadlines, node_of(completion), call_index(completion));
}

/* Calls in each wheel. */
static void assert_armed(uint32_t first, uint32_t second, uint32_t third)
{
    const uint32_t expected[CALL_RIG_WHEELS] = {first, second, third};
    for (uint32_t i = 0; i < CALL_RIG_WHEELS; i++) {
        assert_int_equal(call_rig.deadlines.wheels[i].wheel.count, expected[i]);
        assert_int_equal(deadlines_next(&call_rig.deadlines, i) == WHEEL_NEVER, expected[i] == 0);
    }
}

TEST(disarm_takes_the_call_out_of_its_wheel_and_touches_no_other)
{
    open_rig();
    const skua_completion one = open_one();
    const skua_completion other = open_one();
    arm(one, 0, 1000);
    arm(other, 1, 1000);
    assert_armed(1, 1, 0);
    disarm(open_one()); /* which has no deadline */
    assert_armed(1, 1, 0);
    disarm(other);
    assert_armed(1, 0, 0);
    disarm(one);
    assert_armed(0, 0, 0);
}

/* ---- opening again, as a ticker does ---- */

TEST(reopen_has_the_next_serial_and_no_deadline)
{
    open_rig();
    const skua_completion first = open_one();
    const uint32_t index = call_index(first);
    const struct open_call *call = &node_at(index)->as.call;
    arm(first, 1, 1000);
    assert_int_equal(call->wheel, 2);
    disarm(first);
    const skua_completion second = call_reopen_owner(node_at(index), index, owner);
    assert_int_equal(call_index(second), index);
    assert_int_equal(call_guard(second), call_guard(first) + CALL_SERIAL_ONE);
    assert_true(skua_pid_equal(second.process, owner));
    assert_true(skua_pid_equal(call->owner, owner));
    assert_int_equal(call->tag, TAG);
    assert_int_equal(call->wheel, 0);
    assert_false(claim(first));
    assert_true(claim(second));
}

/* The others find their neighbour where it was. */
TEST(reopen_keeps_the_place_in_the_list)
{
    open_rig_and_link();
    for (size_t i = 0; i < CALLS; i++) {
        struct event_node *node = node_of(calls[i]);
        assert_true(claim(calls[i]));
        node->as.event.type = SKUA_EVENT_TICK;
        node->as.event.payload = skua_payload_empty(0);
        calls[i] = call_reopen_owner(node, call_index(calls[i]), owner);
        assert_list();
    }
    for (size_t i = 0; i < CALLS; i++) {
        deliver(i);
    }
}

/* ---- call_revoke_owner ---- */

/* Returns whether that were all. */
static bool revoke(uint32_t budget)
{
    return call_revoke_owner(&call_rig.events, &call_rig.deadlines, &call_rig.cache, &process,
                             &budget);
}

/* The nodes of so many calls come back; those of the others are left to their completers, which
 * find the process closed. */
static void assert_revokes(uint32_t count)
{
    const uint32_t before = call_rig.cache.active.count + call_rig.cache.spare.count;
    assert_true(revoke(CALLS));
    assert_int_equal(process.backlog, OBJECT_NONE);
    assert_int_equal(call_rig.cache.active.count + call_rig.cache.spare.count, before + count);
    assert_int_equal(process.calls, OBJECT_NONE);
    assert_armed(0, 0, 0);
}

TEST(revoke_of_no_calls_does_nothing)
{
    open_rig();
    assert_revokes(0);
}

TEST(revoke_gives_the_nodes_back_and_makes_completions_late)
{
    open_rig_and_link();
    for (uint32_t i = 0; i < CALLS; i++) { /* some calls have a deadline */
        if (i != 3) {
            arm(calls[i], i % CALL_RIG_WHEELS, 1000 * (i + 1));
        }
    }
    assert_revokes(CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_false(claim(calls[i]));
    }
}

TEST(revoke_leaves_calls_that_a_completer_has_won)
{
    FOR_ROUNDS (round, CALLS) {
        const skua_completion *won = &calls[round - 1];
        open_rig_and_link();
        complete(*won, -7, 99);
        assert_revokes(CALLS - 1);
        assert_event(*won, -7, 99); /* a free node would have its links there */
    }
}

/* One that has fired is on its way to the process, as a completion is. */
TEST(revoke_leaves_a_call_whose_deadline_has_passed)
{
    struct wheel_due due[CALLS];
    open_rig_and_link();
    arm(calls[2], 0, 1000);
    assert_int_equal(deadlines_collect_any(&call_rig.deadlines, 0, SKUA_SECOND, due, CALLS), 1);
    assert_int_equal(due[0].index, call_index(calls[2]));
    assert_revokes(CALLS - 1);
    assert_false(claim(calls[2]));
}

/* Those that their handlers want to hear of go to the front of the backlog, oldest first. */
static void assert_abandons(const bool abandoned[CALLS], uint32_t behind)
{
    uint32_t index = process.backlog;
    for (uint32_t i = 0; i < CALLS; i++) {
        if (abandoned[i]) {
            assert_int_equal(index, call_index(calls[i]));
            assert_int_equal(node_at(index)->as.event.type, EVENT_ABANDONED);
            index = node_at(index)->next;
        }
    }
    assert_int_equal(index, behind);
}

TEST(revoke_keeps_the_nodes_of_calls_that_are_to_be_told)
{
    static const skua_handler listener = {.name = "listener"};
    bool abandoned[CALLS] = {false};
    open_rig_and_link();
    const uint32_t behind = take_node();
    process.backlog = behind;
    for (uint32_t i = 0; i < CALLS; i += 2) {
        node_at(call_index(calls[i]))->as.call.previous |= CALL_TELLS;
        node_at(call_index(calls[i]))->as.call.listener = &listener;
        abandoned[i] = i != 2;
    }
    complete(calls[2], -7, 99); /* which stays its completer's */
    while (!revoke(1)) {
    }
    assert_abandons(abandoned, behind);
}

/* The calls that are left are a list as before. */
TEST(revoke_of_some_leaves_the_others_as_they_are)
{
    FOR_ROUNDS (budget, CALLS - 1) {
        open_rig_and_link();
        assert_false(revoke((uint32_t)budget)); /* the newest */
        for (size_t i = CALLS; i-- > CALLS - budget;) {
            assert_false(claim(calls[i]));
            is_linked[i] = false;
        }
        assert_list();
        for (size_t i = 0; i < CALLS - budget; i++) {
            deliver(i);
        }
        assert_int_equal(process.calls, OBJECT_NONE);
        assert_true(revoke(0));
    }
}
