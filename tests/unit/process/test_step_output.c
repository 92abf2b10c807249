/* SPDX-License-Identifier: MIT */
/* What a step writes: yields and a status, and that nothing it hands over is lost or kept. */
#include "process/step_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counting_allocator.h"

#define PAYLOAD_LIMIT 1000

struct fixture {
    struct counting_allocator memory;
    struct object_pool events;
    struct pool_cache cache;
    skua_step out;
};

static int drop_count;

static void count_drop(void *data, size_t size)
{
    (void)data;
    (void)size;
    drop_count++;
}

static skua_payload owned(size_t size)
{
    static char bytes[PAYLOAD_LIMIT + 1];
    return skua_payload_owned(1, bytes, size, count_drop);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    drop_count = 0;
    *state = &fixture;
    counting_allocator_init(&fixture.memory);
    fixture.out = (skua_step){
        .allocator = &fixture.memory.allocator,
        .events = &fixture.events,
        .event_cache = &fixture.cache,
        .payload_limit = PAYLOAD_LIMIT,
    };
    step_output_reset(&fixture.out);
    return event_pool_init(&fixture.events, &fixture.memory.allocator, 1) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    step_output_deinit(&fixture->out);
    object_pool_deinit(&fixture->events);
    return counting_allocator_is_clean(&fixture->memory) ? 0 : -1;
}

/* Event nodes that are not free. */
static uint32_t nodes_in_use(struct fixture *fixture)
{
    uint32_t unused = fixture->cache.active.count + fixture->cache.spare.count;
    uint32_t first = fixture->events.chains;
    while (first != OBJECT_NONE) {
        unused += fixture->events.batch;
        first = event_at(&fixture->events, first)->as.link.next_chain;
    }
    return load_relaxed(&fixture->events.ready) - 1 - unused;
}

/* ---- yields ---- */

static void output_of_a_thousand_yields_has_them_all_in_order(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(
            skua_step_yield(out, i + 7, i * UINT64_C(0x100000001), skua_payload_u64(i, i + 1)), 0);
        assert_int_equal(out->yield_count, i + 1);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        const struct yield *yield = &out->yields[i];
        assert_int_equal(yield->command, i + 7);
        assert_int_equal(yield->payload.type, i);
        assert_int_equal(skua_payload_to_u64(&yield->payload), i + 1);
        assert_int_equal(event_at(&fixture->events, yield->node)->as.call.tag,
                         i * UINT64_C(0x100000001)); /* so each has a node of its own */
    }
    assert_int_equal(nodes_in_use(fixture), 1000);
    assert_int_equal(out->status, STEP_DEFAULT);
    step_output_discard(out);
}

static void output_reset_starts_anew_without_allocating(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_empty(0)), 0);
    }
    step_output_discard(out);
    const uint64_t attempts = counting_allocator_attempts(&fixture->memory);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 100; i++) {
            assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_empty(0)), 0);
        }
        assert_int_equal(out->yield_count, 100);
        step_output_discard(out);
    }
    assert_int_equal(counting_allocator_attempts(&fixture->memory), attempts);
}

static void output_discard_gives_nodes_back_and_drops_payloads(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(skua_step_yield(out, 1, 2, owned(10)), 0);
    }
    skua_step_done(out, owned(10));
    assert_int_equal(drop_count, 0);
    step_output_discard(out);
    assert_int_equal(drop_count, 301);
    assert_int_equal(nodes_in_use(fixture), 0);
    assert_int_equal(out->yield_count, 0);
    assert_int_equal(out->status, STEP_DEFAULT);
    step_output_discard(out);
    assert_int_equal(drop_count, 301);
}

/* After done, continue the result is gone already. */
static void output_discard_does_not_drop_a_result_twice(void **state)
{
    struct fixture *fixture = *state;
    skua_step_done(&fixture->out, owned(1));
    skua_step_continue(&fixture->out);
    assert_int_equal(drop_count, 1);
    step_output_discard(&fixture->out);
    assert_int_equal(drop_count, 1);
}

static void yield_of_the_largest_payload_is_accepted(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(skua_step_yield(&fixture->out, 1, 2, owned(PAYLOAD_LIMIT)), 0);
    assert_int_equal(
        skua_step_yield(&fixture->out, 1, 2, skua_payload_pointer(1, fixture, count_drop)), 0);
    assert_int_equal(drop_count, 0);
    step_output_discard(&fixture->out);
    assert_int_equal(drop_count, 2);
}

static void yield_of_a_larger_payload_is_refused_and_dropped(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(skua_step_yield(&fixture->out, 1, 2, owned(PAYLOAD_LIMIT + 1)),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(drop_count, 1);
    assert_int_equal(fixture->out.yield_count, 0);
    assert_int_equal(nodes_in_use(fixture), 0);
}

static void yield_without_output_is_refused_and_dropped(void **state)
{
    (void)state;
    assert_int_equal(skua_step_yield(NULL, 1, 2, owned(1)), SKUA_E_INVALID);
    assert_int_equal(drop_count, 1);
}

static void yield_from_a_payload_leaves_it_empty(void **state)
{
    struct fixture *fixture = *state;
    skua_payload payload = owned(1);
    assert_int_equal(skua_step_yield_from(&fixture->out, 1, 2, &payload), 0);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(fixture->out.yields[0].payload.storage, SKUA_PAYLOAD_OWNED);
    assert_int_equal(skua_step_yield_from(&fixture->out, 1, 2, NULL), SKUA_E_INVALID);
    assert_int_equal(fixture->out.yield_count, 1);
    payload = owned(1);
    assert_int_equal(skua_step_yield_from(NULL, 1, 2, &payload), SKUA_E_INVALID);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(drop_count, 1);
}

static void done_from_a_payload_leaves_it_empty(void **state)
{
    struct fixture *fixture = *state;
    skua_payload result = owned(1);
    skua_step_done_from(&fixture->out, NULL);
    assert_int_equal(fixture->out.status, STEP_DEFAULT);
    skua_step_done_from(&fixture->out, &result);
    assert_int_equal(result.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(fixture->out.status, STEP_DONE);
    assert_int_equal(fixture->out.result.storage, SKUA_PAYLOAD_OWNED);
}

/* ---- deadlines and cancels ---- */

static void deadline_is_that_of_the_last_yield(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    assert_int_equal(skua_step_yield(out, 1, 1, skua_payload_empty(0)), 0);
    assert_int_equal(skua_step_deadline(out, 1000), 0);
    assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_empty(0)), 0);
    assert_int_equal(skua_step_yield(out, 1, 3, skua_payload_empty(0)), 0);
    assert_int_equal(skua_step_deadline(out, 5000), 0);
    assert_int_equal(skua_step_deadline(out, 0), 0); /* the last one counts */
    assert_int_equal(out->yield_count, 3);
    assert_true(out->yields[0].deadline == 1000);
    assert_true(out->yields[1].deadline == SKUA_FOREVER);
    assert_true(out->yields[2].deadline == 0);
    assert_int_equal(skua_step_deadline(out, SKUA_FOREVER), 0);
    assert_true(out->yields[2].deadline == SKUA_FOREVER);
    step_output_discard(out);
}

static void deadline_without_a_yield_is_refused(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    assert_int_equal(skua_step_deadline(NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_yield(out, 1, 2, owned(PAYLOAD_LIMIT + 1)), SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_empty(0)), 0);
    step_output_discard(out);
    step_output_reset(out);
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID); /* that was another step's */
    assert_int_equal(out->yield_count, 0);
}

/* It would fall upon the tag, which lies in the same place. */
static void deadline_after_a_cancel_is_refused_and_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_empty(0)), 0);
    assert_int_equal(skua_step_cancel(out, 77), 0);
    assert_int_equal(skua_step_deadline(out, 1000), SKUA_E_INVALID);
    assert_true(out->yields[0].deadline == SKUA_FOREVER);
    assert_true(out->yields[1].cancels == 77);
    step_output_discard(out);
}

static void cancel_keeps_its_place_among_the_yields_and_takes_no_node(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    assert_int_equal(skua_step_cancel(out, 5), 0);
    assert_int_equal(skua_step_yield(out, 1, 6, owned(1)), 0);
    assert_int_equal(skua_step_cancel(out, UINT64_MAX), 0);
    assert_int_equal(out->yield_count, 3);
    assert_int_equal(out->yields[0].node, OBJECT_NONE);
    assert_true(out->yields[0].cancels == 5);
    assert_int_not_equal(out->yields[1].node, OBJECT_NONE);
    assert_int_equal(out->yields[2].node, OBJECT_NONE);
    assert_true(out->yields[2].cancels == UINT64_MAX);
    assert_int_equal(nodes_in_use(fixture), 1);
    assert_int_equal(out->status, STEP_DEFAULT);
    step_output_discard(out);
    assert_int_equal(drop_count, 1);
    assert_int_equal(nodes_in_use(fixture), 0);
}

static void cancel_without_output_is_refused(void **state)
{
    (void)state;
    assert_int_equal(skua_step_cancel(NULL, 1), SKUA_E_INVALID);
}

static void cancel_without_memory_is_refused_and_keeps_the_yields(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    do {
        assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_empty(0)), 0);
    } while (out->yield_count < out->yield_capacity);
    const uint32_t full = out->yield_count;
    counting_allocator_fail_from(&fixture->memory, 1);
    assert_int_equal(skua_step_cancel(out, 2), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, full);
    counting_allocator_fail_never(&fixture->memory);
    assert_int_equal(skua_step_cancel(out, 2), 0);
    assert_int_equal(out->yield_count, full + 1);
    assert_true(out->yields[full].cancels == 2);
    assert_int_equal(nodes_in_use(fixture), full);
    step_output_discard(out);
}

/* ---- yields without memory ---- */

/* Makes allocation n, counted from now, fail. The yield that needs it must leave no trace, and the
 * next one must work. */
static void check_yield_fails_cleanly(struct fixture *fixture, uint64_t n)
{
    skua_step *out = &fixture->out;
    const uint32_t count = out->yield_count;
    const uint32_t in_use = nodes_in_use(fixture);
    const int dropped = drop_count;
    counting_allocator_fail_from(&fixture->memory, n);
    assert_int_equal(skua_step_yield(out, 1, 2, owned(1)), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, count);
    assert_int_equal(nodes_in_use(fixture), in_use);
    assert_int_equal(drop_count, dropped + 1);
    counting_allocator_fail_never(&fixture->memory);
    assert_int_equal(skua_step_yield(out, 1, 2, owned(1)), 0);
    assert_int_equal(out->yield_count, count + 1);
    assert_int_equal(drop_count, dropped + 1);
}

static void yield_without_memory_for_the_first_array_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    check_yield_fails_cleanly(fixture, 1);
    step_output_discard(&fixture->out);
    assert_int_equal(drop_count, 2);
}

static void yield_without_memory_for_its_node_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    check_yield_fails_cleanly(fixture, 2); /* the array comes first, then the nodes' segment */
    step_output_discard(&fixture->out);
    assert_int_equal(drop_count, 2);
}

static void yield_without_memory_for_a_larger_array_keeps_the_earlier_ones(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    do {
        assert_int_equal(skua_step_yield(out, 1, out->yield_count, owned(1)), 0);
    } while (out->yield_count < out->yield_capacity);
    const uint32_t full = out->yield_count;
    check_yield_fails_cleanly(fixture, 1);
    for (uint32_t i = 0; i < full; i++) {
        assert_int_equal(event_at(&fixture->events, out->yields[i].node)->as.call.tag, i);
    }
    step_output_discard(out);
    assert_int_equal(drop_count, (int)full + 2);
    assert_int_equal(nodes_in_use(fixture), 0);
}

/* ---- status ---- */

static void status_is_that_of_the_last_call(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    skua_step_continue(out);
    assert_int_equal(out->status, STEP_CONTINUE);
    skua_step_idle(out);
    assert_int_equal(out->status, STEP_IDLE);
    skua_step_wait(out);
    assert_int_equal(out->status, STEP_WAIT);
    skua_step_done(out, skua_payload_u64(3, 4));
    assert_int_equal(out->status, STEP_DONE);
    assert_int_equal(out->result.type, 3);
    assert_int_equal(skua_payload_to_u64(&out->result), 4);
    skua_step_idle(out);
    assert_int_equal(out->status, STEP_IDLE);
}

static void status_after_done_drops_the_result(void **state)
{
    struct fixture *fixture = *state;
    static void (*const others[])(skua_step *) = {skua_step_continue, skua_step_idle,
                                                  skua_step_wait};
    for (int i = 0; i < 3; i++) {
        skua_step_done(&fixture->out, owned(1));
        assert_int_equal(drop_count, i);
        others[i](&fixture->out);
        assert_int_equal(drop_count, i + 1);
    }
}

static void status_done_twice_keeps_the_last_result(void **state)
{
    struct fixture *fixture = *state;
    skua_step *out = &fixture->out;
    skua_step_done(out, owned(1));
    skua_step_done(out, owned(2));
    assert_int_equal(drop_count, 1);
    assert_int_equal(skua_payload_size(&out->result), 2);
    skua_step_done(out, skua_payload_u64(0, 5));
    assert_int_equal(drop_count, 2);
    assert_int_equal(skua_payload_to_u64(&out->result), 5);
}

static void status_without_output_does_nothing_but_drop(void **state)
{
    (void)state;
    skua_step_continue(NULL);
    skua_step_idle(NULL);
    skua_step_wait(NULL);
    assert_int_equal(drop_count, 0);
    skua_step_done(NULL, owned(1));
    assert_int_equal(drop_count, 1);
}

#define OUTPUT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* ---- outside a step ---- */

static void output_kept_beyond_its_step_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture->out.open = false;
    assert_int_equal(skua_step_yield(&fixture->out, 1, 1, owned(1)), SKUA_E_INVALID);
    assert_int_equal(skua_step_cancel(&fixture->out, 1), SKUA_E_INVALID);
    skua_step_done(&fixture->out, owned(1));
    skua_step_continue(&fixture->out);
    assert_int_equal(drop_count, 2);
    assert_int_equal(fixture->out.yield_count, 0);
    assert_int_equal(fixture->out.status, STEP_DEFAULT);
    assert_int_equal(nodes_in_use(fixture), 0);
}

static void deadline_for_a_yield_of_a_step_that_is_over_is_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(skua_step_yield(&fixture->out, 1, 1, skua_payload_empty(0)), 0);
    fixture->out.open = false;
    assert_int_equal(skua_step_deadline(&fixture->out, 1), SKUA_E_INVALID);
    assert_true(fixture->out.yields[0].deadline == SKUA_FOREVER);
    step_output_discard(&fixture->out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OUTPUT_TEST(output_kept_beyond_its_step_is_refused),
        OUTPUT_TEST(deadline_for_a_yield_of_a_step_that_is_over_is_refused),
        OUTPUT_TEST(output_of_a_thousand_yields_has_them_all_in_order),
        OUTPUT_TEST(output_reset_starts_anew_without_allocating),
        OUTPUT_TEST(output_discard_gives_nodes_back_and_drops_payloads),
        OUTPUT_TEST(output_discard_does_not_drop_a_result_twice),
        OUTPUT_TEST(yield_of_the_largest_payload_is_accepted),
        OUTPUT_TEST(yield_of_a_larger_payload_is_refused_and_dropped),
        OUTPUT_TEST(yield_without_output_is_refused_and_dropped),
        OUTPUT_TEST(yield_from_a_payload_leaves_it_empty),
        OUTPUT_TEST(done_from_a_payload_leaves_it_empty),
        OUTPUT_TEST(deadline_is_that_of_the_last_yield),
        OUTPUT_TEST(deadline_without_a_yield_is_refused),
        OUTPUT_TEST(deadline_after_a_cancel_is_refused_and_changes_nothing),
        OUTPUT_TEST(cancel_keeps_its_place_among_the_yields_and_takes_no_node),
        OUTPUT_TEST(cancel_without_output_is_refused),
        OUTPUT_TEST(cancel_without_memory_is_refused_and_keeps_the_yields),
        OUTPUT_TEST(yield_without_memory_for_the_first_array_leaves_nothing),
        OUTPUT_TEST(yield_without_memory_for_its_node_leaves_nothing),
        OUTPUT_TEST(yield_without_memory_for_a_larger_array_keeps_the_earlier_ones),
        OUTPUT_TEST(status_is_that_of_the_last_call),
        OUTPUT_TEST(status_after_done_drops_the_result),
        OUTPUT_TEST(status_done_twice_keeps_the_last_result),
        OUTPUT_TEST(status_without_output_does_nothing_but_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
