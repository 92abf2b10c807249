/* SPDX-License-Identifier: MIT */
/* Open calls: who may complete them, and the list that a process keeps of them. */
#include "dispatch/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counting_allocator.h"

#define CALLS  5
#define WHEELS 2
#define TAG    UINT64_C(0xfedcba9876543210)

static const skua_pid owner = {UINT64_C(0x0010000004000001)};

struct fixture {
    struct counting_allocator memory;
    struct object_pool events;
    struct deadlines deadlines;
    struct pool_cache cache;
    struct process process;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.process = {.calls = OBJECT_NONE}};
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

static struct event_node *node_at(struct fixture *fixture, uint32_t index)
{
    return event_at(&fixture->events, index);
}

static uint32_t take_node(struct fixture *fixture)
{
    uint32_t index = OBJECT_NONE;
    assert_int_equal(object_acquire_owner(&fixture->events, fixture->events.shape.layout,
                                          &fixture->cache, &index),
                     OBJECT_POOL_OK);
    return index;
}

static skua_completion open_on(struct fixture *fixture, uint32_t index)
{
    struct event_node *node = node_at(fixture, index);
    node->as.call.tag = TAG;
    return call_open_owner(node, index, owner);
}

static skua_completion open_one(struct fixture *fixture)
{
    return open_on(fixture, take_node(fixture));
}

static bool claim(struct fixture *fixture, skua_completion completion)
{
    return call_claim_any(node_at(fixture, call_index(completion)), call_guard(completion));
}

/* ---- opening and claiming ---- */

static void open_fills_the_node_and_names_it(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t index = take_node(fixture);
    const skua_completion completion = open_on(fixture, index);
    const struct open_call *call = &node_at(fixture, index)->as.call;
    assert_int_equal(call_index(completion), index);
    assert_int_equal(call_guard(completion), load_relaxed(&node_at(fixture, index)->guard));
    assert_true(skua_pid_equal(completion.process, owner));
    assert_true(skua_pid_equal(call->owner, owner));
    assert_int_equal(call->wheel, 0);
    assert_int_equal(call->tag, TAG);
    assert_int_equal(call->previous, OBJECT_NONE);
    assert_int_equal(call->next, OBJECT_NONE);
}

static void open_call_is_claimed_once(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion completion = open_one(fixture);
    assert_true(claim(fixture, completion));
    assert_false(claim(fixture, completion));
    assert_false(claim(fixture, completion));
}

static void claim_of_an_earlier_call_on_the_same_node_fails(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion first = open_one(fixture);
    assert_true(claim(fixture, first));
    const skua_completion second = open_on(fixture, call_index(first));
    assert_false(claim(fixture, first));
    assert_true(claim(fixture, second));
}

static void claim_of_an_earlier_call_fails_after_the_node_was_free(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion first = open_one(fixture);
    assert_true(claim(fixture, first));
    object_release_owner(&fixture->events, fixture->events.shape.layout, &fixture->cache,
                         call_index(first));
    assert_false(claim(fixture, first));
    const uint32_t index = take_node(fixture);
    assert_int_equal(index, call_index(first));
    assert_false(claim(fixture, first));
    const skua_completion second = open_on(fixture, index);
    assert_false(claim(fixture, first));
    assert_true(claim(fixture, second));
}

static void claim_with_a_guard_that_is_not_open_fails(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion completion = open_one(fixture);
    struct event_node *node = node_at(fixture, call_index(completion));
    const uint32_t guard = call_guard(completion);
    assert_false(call_claim_any(node, guard & ~CALL_OPEN));
    assert_false(call_claim_any(node, 0));
    assert_true(call_claim_any(node, guard));
    /* What the guard is now; somebody could make it up. */
    assert_false(call_claim_any(node, load_relaxed(&node->guard)));
    assert_int_equal(load_relaxed(&node->guard), guard & ~CALL_OPEN);
}

static void claim_of_a_node_that_never_was_a_call_fails(void **state)
{
    struct fixture *fixture = *state;
    struct event_node *node = node_at(fixture, take_node(fixture));
    assert_false(call_claim_any(node, 0));
    assert_false(call_claim_any(node, CALL_OPEN));
    assert_false(call_claim_any(node, CALL_SERIAL_ONE | CALL_OPEN));
}

static void serial_differs_for_every_call_of_a_node(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t index = take_node(fixture);
    uint32_t last = load_relaxed(&node_at(fixture, index)->guard);
    for (int i = 0; i < 1000; i++) {
        const skua_completion completion = open_on(fixture, index);
        assert_int_equal(call_guard(completion), (last + CALL_SERIAL_ONE) | CALL_OPEN);
        assert_true(claim(fixture, completion));
        last = load_relaxed(&node_at(fixture, index)->guard);
    }
}

static void serial_may_wrap(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t index = take_node(fixture);
    store_relaxed(&node_at(fixture, index)->guard, UINT32_MAX & ~CALL_OPEN);
    const skua_completion completion = open_on(fixture, index);
    assert_int_equal(call_guard(completion), CALL_OPEN);
    assert_int_equal(call_index(completion), index);
    assert_true(claim(fixture, completion));
    assert_false(claim(fixture, completion));
}

static void complete_turns_the_call_into_its_event(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion completion = open_one(fixture);
    assert_true(claim(fixture, completion));
    struct event_node *node = node_at(fixture, call_index(completion));
    const skua_payload result = skua_payload_u64(7, 8);
    call_complete_owner(node, -42, &result);
    assert_int_equal(node->as.event.type, SKUA_EVENT_COMPLETION);
    assert_int_equal(node->as.event.tag, TAG);
    assert_int_equal(node->as.event.error, -42);
    assert_int_equal(node->as.event.payload.type, 7);
    assert_int_equal(skua_payload_to_u64(&node->as.event.payload), 8);
}

/* ---- opening again, as a ticker does ---- */

static void reopen_has_the_next_serial_and_no_deadline(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion first = open_one(fixture);
    const uint32_t index = call_index(first);
    struct event_node *node = node_at(fixture, index);
    assert_true(deadlines_arm_any(&fixture->deadlines, 1, index, 1000, 0));
    assert_int_equal(node->as.call.wheel, 2);
    assert_true(claim(fixture, first));
    call_disarm_owner(&fixture->deadlines, node, index);
    const skua_completion second = call_reopen_owner(node, index, owner);
    assert_int_equal(call_index(second), index);
    assert_int_equal(call_guard(second), call_guard(first) + CALL_SERIAL_ONE);
    assert_true(skua_pid_equal(second.process, owner));
    assert_true(skua_pid_equal(node->as.call.owner, owner));
    assert_int_equal(node->as.call.tag, TAG);
    assert_int_equal(node->as.call.wheel, 0);
    assert_false(claim(fixture, first));
    assert_true(claim(fixture, second));
}

/* ---- the list ---- */

struct calls {
    skua_completion completions[CALLS];
    bool linked[CALLS];
};

static void open_and_link(struct fixture *fixture, struct calls *calls)
{
    for (size_t i = 0; i < CALLS; i++) {
        calls->completions[i] = open_one(fixture);
        call_link_owner(&fixture->events, &fixture->process, call_index(calls->completions[i]));
        calls->linked[i] = true;
    }
}

static size_t number_of(const struct calls *calls, uint32_t index)
{
    size_t number = 0;
    while (number < CALLS && call_index(calls->completions[number]) != index) {
        number++;
    }
    assert_true(number < CALLS);
    return number;
}

/* The list holds exactly the linked calls, each once, and its back links are right. */
static void assert_list(struct fixture *fixture, const struct calls *calls)
{
    bool found[CALLS] = {false};
    uint32_t previous = OBJECT_NONE;
    uint32_t index = fixture->process.calls;
    while (index != OBJECT_NONE) {
        const struct open_call *call = &node_at(fixture, index)->as.call;
        const size_t number = number_of(calls, index);
        assert_false(found[number]);
        found[number] = true;
        assert_int_equal(call->previous & ~CALL_ENDS, previous);
        previous = index;
        index = call->next;
    }
    assert_memory_equal(found, calls->linked, sizeof found);
}

/* As when the completion is delivered: won, filled, and then taken off the list. */
static void deliver(struct fixture *fixture, struct calls *calls, size_t number)
{
    const uint32_t index = call_index(calls->completions[number]);
    struct event_node *node = node_at(fixture, index);
    const skua_payload result = skua_payload_u64(1, number);
    assert_true(claim(fixture, calls->completions[number]));
    call_complete_owner(node, 0, &result);
    call_unlink_owner(&fixture->events, &fixture->process, node, index);
    calls->linked[number] = false;
    assert_true(skua_pid_is_none(node->as.event.from)); /* not what the links left there */
    assert_int_equal(skua_payload_to_u64(&node->as.event.payload), number);
}

static void link_builds_a_list_of_all_calls(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    open_and_link(fixture, &calls);
    assert_list(fixture, &calls);
}

static void unlink_works_in_every_position(void **state)
{
    struct fixture *fixture = *state;
    for (size_t number = 0; number < CALLS; number++) {
        struct calls calls;
        fixture->process.calls = OBJECT_NONE;
        open_and_link(fixture, &calls);
        deliver(fixture, &calls, number);
        assert_list(fixture, &calls);
    }
}

static void unlink_works_in_every_order(void **state)
{
    struct fixture *fixture = *state;
    static const size_t orders[][CALLS] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 1, 3, 0, 4}, {1, 3, 2, 4, 0}, {0, 4, 1, 3, 2}};
    for (size_t order = 0; order < sizeof orders / sizeof orders[0]; order++) {
        struct calls calls;
        open_and_link(fixture, &calls);
        for (size_t i = 0; i < CALLS; i++) {
            deliver(fixture, &calls, orders[order][i]);
            assert_list(fixture, &calls);
        }
        assert_int_equal(fixture->process.calls, OBJECT_NONE);
    }
}

/* The others find their neighbour where it was. */
static void reopen_keeps_the_place_in_the_list(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    open_and_link(fixture, &calls);
    for (size_t number = 0; number < CALLS; number++) {
        const uint32_t index = call_index(calls.completions[number]);
        struct event_node *node = node_at(fixture, index);
        assert_true(claim(fixture, calls.completions[number]));
        node->as.event.type = SKUA_EVENT_TICK;
        node->as.event.payload = skua_payload_empty(0);
        calls.completions[number] = call_reopen_owner(node, index, owner);
        assert_list(fixture, &calls);
    }
    for (size_t number = 0; number < CALLS; number++) {
        deliver(fixture, &calls, number);
        assert_list(fixture, &calls);
    }
}

/* CALL_ENDS lies in a link: what neighbours do to the link must not take it off, and the link must
 * work with it. */
static void mark_of_a_call_that_ends_survives_changes_of_the_list(void **state)
{
    struct fixture *fixture = *state;
    for (size_t ending = 0; ending < CALLS; ending++) {
        for (size_t other = 0; other < CALLS; other++) {
            struct calls calls;
            fixture->process.calls = OBJECT_NONE;
            open_and_link(fixture, &calls);
            const uint32_t index = call_index(calls.completions[ending]);
            node_at(fixture, index)->as.call.previous |= CALL_ENDS;
            if (other != ending) {
                deliver(fixture, &calls, other);
                assert_int_not_equal(node_at(fixture, index)->as.call.previous & CALL_ENDS, 0);
            }
            assert_list(fixture, &calls);
            deliver(fixture, &calls, ending);
            assert_list(fixture, &calls);
        }
    }
}

static void mark_of_a_call_that_ends_survives_a_new_neighbour(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t index = call_index(open_one(fixture));
    struct event_node *node = node_at(fixture, index);
    call_link_owner(&fixture->events, &fixture->process, index);
    node->as.call.previous |= CALL_ENDS;
    const uint32_t neighbour = call_index(open_one(fixture));
    call_link_owner(&fixture->events, &fixture->process, neighbour);
    assert_int_equal(node->as.call.previous, CALL_ENDS | neighbour);
    call_unlink_owner(&fixture->events, &fixture->process, node, index);
    assert_int_equal(fixture->process.calls, neighbour);
    assert_int_equal(node_at(fixture, neighbour)->as.call.next, OBJECT_NONE);
}

/* A call that its handler completed at once never was on the list. */
static void unlink_of_a_call_that_was_not_linked_changes_no_list(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion alone = open_one(fixture);
    call_unlink_owner(&fixture->events, &fixture->process, node_at(fixture, call_index(alone)),
                      call_index(alone));
    assert_int_equal(fixture->process.calls, OBJECT_NONE);

    struct calls calls;
    open_and_link(fixture, &calls);
    const skua_completion other = open_one(fixture);
    call_unlink_owner(&fixture->events, &fixture->process, node_at(fixture, call_index(other)),
                      call_index(other));
    assert_list(fixture, &calls);
}

/* A completer may win between the handler's return and call_link_owner; the links survive it. */
static void link_after_the_completion_is_undone_by_its_delivery(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    open_and_link(fixture, &calls);
    const skua_completion early = open_one(fixture);
    const uint32_t index = call_index(early);
    const skua_payload result = skua_payload_u64(1, 2);
    assert_true(claim(fixture, early));
    call_complete_owner(node_at(fixture, index), 0, &result);
    call_link_owner(&fixture->events, &fixture->process, index);
    assert_int_equal(fixture->process.calls, index);
    assert_int_equal(skua_payload_to_u64(&node_at(fixture, index)->as.event.payload), 2);
    call_unlink_owner(&fixture->events, &fixture->process, node_at(fixture, index), index);
    assert_list(fixture, &calls);
}

/* ---- call_revoke_all_owner ---- */

static uint32_t free_nodes(const struct fixture *fixture)
{
    return fixture->cache.active.count + fixture->cache.spare.count;
}

static void revoke_of_no_calls_does_nothing(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t before = free_nodes(fixture);
    call_revoke_all_owner(&fixture->events, &fixture->deadlines, &fixture->cache,
                          &fixture->process);
    assert_int_equal(free_nodes(fixture), before);
    assert_int_equal(fixture->process.calls, OBJECT_NONE);
}

static void revoke_gives_the_nodes_back_and_makes_completions_late(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    open_and_link(fixture, &calls);
    const uint32_t before = free_nodes(fixture);
    call_revoke_all_owner(&fixture->events, &fixture->deadlines, &fixture->cache,
                          &fixture->process);
    assert_int_equal(free_nodes(fixture), before + CALLS);
    assert_int_equal(fixture->process.calls, OBJECT_NONE);
    for (size_t i = 0; i < CALLS; i++) {
        assert_false(claim(fixture, calls.completions[i]));
    }
}

/* Their completers give them back when they find the process closed. */
static void revoke_leaves_calls_that_a_completer_has_won(void **state)
{
    struct fixture *fixture = *state;
    for (size_t won = 0; won < CALLS; won++) {
        struct calls calls;
        open_and_link(fixture, &calls);
        const skua_payload result = skua_payload_u64(1, 99);
        struct event_node *node = node_at(fixture, call_index(calls.completions[won]));
        assert_true(claim(fixture, calls.completions[won]));
        call_complete_owner(node, -7, &result);
        const uint32_t before = free_nodes(fixture);
        call_revoke_all_owner(&fixture->events, &fixture->deadlines, &fixture->cache,
                              &fixture->process);
        assert_int_equal(free_nodes(fixture), before + CALLS - 1);
        assert_int_equal(fixture->process.calls, OBJECT_NONE);
        assert_int_equal(node->as.event.error, -7); /* a free node keeps its links there */
        assert_int_equal(skua_payload_to_u64(&node->as.event.payload), 99);
    }
}

/* ---- calls with a deadline ---- */

static uint32_t armed_calls(struct fixture *fixture)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WHEELS; i++) {
        count += fixture->deadlines.wheels[i].wheel.count;
    }
    return count;
}

static void arm(struct fixture *fixture, skua_completion completion, uint32_t wheel, uint64_t when)
{
    (void)!deadlines_arm_any(&fixture->deadlines, wheel, call_index(completion), when, 0);
}

static void disarm_takes_the_call_out_of_its_wheel(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion one = open_one(fixture);
    const skua_completion other = open_one(fixture);
    arm(fixture, one, 0, 1000);
    arm(fixture, other, 1, 1000);
    assert_int_equal(armed_calls(fixture), 2);
    assert_true(claim(fixture, other));
    call_disarm_owner(&fixture->deadlines, node_at(fixture, call_index(other)), call_index(other));
    assert_int_equal(fixture->deadlines.wheels[0].wheel.count, 1);
    assert_int_equal(fixture->deadlines.wheels[1].wheel.count, 0);
    assert_true(deadlines_next(&fixture->deadlines, 1) == WHEEL_NEVER);
}

static void disarm_of_a_call_without_a_deadline_touches_no_wheel(void **state)
{
    struct fixture *fixture = *state;
    const skua_completion armed = open_one(fixture);
    const skua_completion plain = open_one(fixture);
    arm(fixture, armed, 0, 1000);
    assert_true(claim(fixture, plain));
    call_disarm_owner(&fixture->deadlines, node_at(fixture, call_index(plain)), call_index(plain));
    assert_int_equal(armed_calls(fixture), 1);
    assert_true(claim(fixture, armed));
    call_disarm_owner(&fixture->deadlines, node_at(fixture, call_index(armed)), call_index(armed));
    assert_int_equal(armed_calls(fixture), 0);
}

static void revoke_takes_the_calls_out_of_their_wheels(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    struct wheel_due due[CALLS];
    open_and_link(fixture, &calls);
    for (size_t i = 0; i < CALLS; i++) {
        arm(fixture, calls.completions[i], (uint32_t)i % WHEELS, 1000 * (i + 1));
    }
    call_revoke_all_owner(&fixture->events, &fixture->deadlines, &fixture->cache,
                          &fixture->process);
    assert_int_equal(armed_calls(fixture), 0);
    for (uint32_t i = 0; i < WHEELS; i++) {
        assert_true(deadlines_next(&fixture->deadlines, i) == WHEEL_NEVER);
        assert_int_equal(deadlines_collect_any(&fixture->deadlines, i, UINT64_MAX - 1, due, CALLS),
                         0);
    }
}

/* One that has fired is on its way to the process, as a completion is. */
static void revoke_leaves_a_call_whose_deadline_has_passed(void **state)
{
    struct fixture *fixture = *state;
    struct calls calls;
    struct wheel_due due[CALLS];
    open_and_link(fixture, &calls);
    arm(fixture, calls.completions[2], 0, 1000);
    assert_int_equal(deadlines_collect_any(&fixture->deadlines, 0, SKUA_SECOND, due, CALLS), 1);
    assert_int_equal(due[0].index, call_index(calls.completions[2]));
    const uint32_t before = free_nodes(fixture);
    call_revoke_all_owner(&fixture->events, &fixture->deadlines, &fixture->cache,
                          &fixture->process);
    assert_int_equal(free_nodes(fixture), before + CALLS - 1);
    assert_false(claim(fixture, calls.completions[2]));
}

#define CALL_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALL_TEST(open_fills_the_node_and_names_it),
        CALL_TEST(open_call_is_claimed_once),
        CALL_TEST(claim_of_an_earlier_call_on_the_same_node_fails),
        CALL_TEST(claim_of_an_earlier_call_fails_after_the_node_was_free),
        CALL_TEST(claim_with_a_guard_that_is_not_open_fails),
        CALL_TEST(claim_of_a_node_that_never_was_a_call_fails),
        CALL_TEST(serial_differs_for_every_call_of_a_node),
        CALL_TEST(serial_may_wrap),
        CALL_TEST(complete_turns_the_call_into_its_event),
        CALL_TEST(reopen_has_the_next_serial_and_no_deadline),
        CALL_TEST(reopen_keeps_the_place_in_the_list),
        CALL_TEST(mark_of_a_call_that_ends_survives_changes_of_the_list),
        CALL_TEST(mark_of_a_call_that_ends_survives_a_new_neighbour),
        CALL_TEST(disarm_takes_the_call_out_of_its_wheel),
        CALL_TEST(disarm_of_a_call_without_a_deadline_touches_no_wheel),
        CALL_TEST(revoke_takes_the_calls_out_of_their_wheels),
        CALL_TEST(revoke_leaves_a_call_whose_deadline_has_passed),
        CALL_TEST(link_builds_a_list_of_all_calls),
        CALL_TEST(unlink_works_in_every_position),
        CALL_TEST(unlink_works_in_every_order),
        CALL_TEST(unlink_of_a_call_that_was_not_linked_changes_no_list),
        CALL_TEST(link_after_the_completion_is_undone_by_its_delivery),
        CALL_TEST(revoke_of_no_calls_does_nothing),
        CALL_TEST(revoke_gives_the_nodes_back_and_makes_completions_late),
        CALL_TEST(revoke_leaves_calls_that_a_completer_has_won),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
