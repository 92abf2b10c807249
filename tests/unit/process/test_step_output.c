/* SPDX-License-Identifier: MIT */
/* What a step writes: yields and a status, and that nothing it hands over is lost or kept. */
#include "process/step_output.h"

#include "call_rig.h"

#define PAYLOAD_LIMIT 1000

static skua_step *out; /* that of the current test */
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

static void close_output(void)
{
    step_output_deinit(out);
}

static void open_output(void)
{
    call_rig_open();
    drop_count = 0;
    out = test_alloc(sizeof *out);
    *out = (skua_step){
        .allocator = &memory.allocator,
        .events = &call_rig.events,
        .event_cache = &call_rig.cache,
        .payload_limit = PAYLOAD_LIMIT,
    };
    step_output_reset(out);
    test_at_end(close_output);
}

/* Nothing is left of the step, and so much was dropped with it and before. */
static void assert_discard_drops(int count)
{
    step_output_discard(out);
    assert_int_equal(drop_count, count);
}

static uint32_t nodes_in_use(void)
{
    uint32_t unused = call_rig.cache.active.count + call_rig.cache.spare.count;
    uint32_t first = call_rig.events.chains;
    while (first != OBJECT_NONE) {
        unused += call_rig.events.batch;
        first = node_at(first)->as.link.next_chain;
    }
    return load_relaxed(&call_rig.events.ready) - 1 - unused;
}

static void yield_empty(uint64_t tag)
{
    assert_int_equal(skua_step_yield(out, 1, tag, skua_payload_empty(0)), 0);
}

static void yield_owned(uint64_t tag)
{
    assert_int_equal(skua_step_yield(out, 1, tag, owned(1)), 0);
}

/* Until the array of the yields has no room for another; returns how many there are. */
static uint32_t fill_array(void)
{
    do {
        yield_owned(out->yield_count);
    } while (out->yield_count < out->yield_capacity);
    return out->yield_count;
}

/* ---- yields ---- */

TEST(output_of_a_thousand_yields_has_them_all_in_order)
{
    const uint64_t unit = UINT64_C(0x100000001);
    open_output();
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(skua_step_yield(out, i + 7, i * unit, skua_payload_u64(i, i + 1)), 0);
        assert_int_equal(out->yield_count, i + 1);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        const struct yield *yield = &out->yields[i];
        assert_int_equal(yield->command, i + 7);
        assert_int_equal(yield->payload.type, i);
        assert_int_equal(skua_payload_to_u64(&yield->payload), i + 1);
        assert_int_equal(node_at(yield->node)->as.call.tag, i * unit); /* a node of its own */
    }
    assert_int_equal(nodes_in_use(), 1000);
    assert_int_equal(out->status, STEP_DEFAULT);
    step_output_discard(out);
}

TEST(output_reset_starts_anew_without_allocating)
{
    uint64_t attempts = 0;
    open_output();
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 100; i++) {
            yield_empty(2);
        }
        assert_int_equal(out->yield_count, 100);
        step_output_discard(out);
        if (step > 0) {
            assert_int_equal(counting_allocator_attempts(&memory), attempts);
        }
        attempts = counting_allocator_attempts(&memory);
    }
}

TEST(output_discard_gives_nodes_back_and_drops_payloads_once)
{
    open_output();
    for (int i = 0; i < 300; i++) {
        yield_owned(2);
    }
    skua_step_done(out, owned(10));
    assert_int_equal(drop_count, 0);
    assert_discard_drops(301);
    assert_int_equal(nodes_in_use(), 0);
    assert_int_equal(out->yield_count, 0);
    assert_int_equal(out->status, STEP_DEFAULT);
    assert_discard_drops(301);
}

TEST(yield_of_the_largest_payload_is_accepted)
{
    open_output();
    assert_int_equal(skua_step_yield(out, 1, 2, owned(PAYLOAD_LIMIT)), 0);
    assert_int_equal(skua_step_yield(out, 1, 2, skua_payload_pointer(1, out, count_drop)), 0);
    assert_int_equal(drop_count, 0);
    assert_discard_drops(2);
}

TEST(yield_of_a_larger_payload_is_refused_and_dropped)
{
    open_output();
    assert_int_equal(skua_step_yield(out, 1, 2, owned(PAYLOAD_LIMIT + 1)), SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(drop_count, 1);
    assert_int_equal(out->yield_count, 0);
    assert_int_equal(nodes_in_use(), 0);
}

TEST(calls_without_output_are_refused_and_drop)
{
    open_output();
    skua_payload payload = owned(1);
    assert_int_equal(skua_step_yield(NULL, 1, 2, owned(1)), SKUA_E_INVALID);
    assert_int_equal(drop_count, 1);
    assert_int_equal(skua_step_yield_from(NULL, 1, 2, &payload), SKUA_E_INVALID);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(drop_count, 2);
    assert_int_equal(skua_step_deadline(NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_cancel(NULL, 1), SKUA_E_INVALID);
    skua_step_continue(NULL);
    skua_step_idle(NULL);
    skua_step_wait(NULL);
    assert_int_equal(drop_count, 2);
    skua_step_done(NULL, owned(1));
    assert_int_equal(drop_count, 3);
}

TEST(calls_after_the_step_are_refused_and_drop)
{
    open_output();
    out->open = false;
    assert_int_equal(skua_step_yield(out, 1, 1, owned(1)), SKUA_E_INVALID);
    assert_int_equal(skua_step_cancel(out, 1), SKUA_E_INVALID);
    skua_step_done(out, owned(1));
    skua_step_continue(out);
    assert_int_equal(drop_count, 2);
    assert_int_equal(out->yield_count, 0);
    assert_int_equal(out->status, STEP_DEFAULT);
    assert_int_equal(nodes_in_use(), 0);
}

TEST(yield_from_a_payload_leaves_it_empty)
{
    open_output();
    skua_payload payload = owned(1);
    assert_int_equal(skua_step_yield_from(out, 1, 2, &payload), 0);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(out->yields[0].payload.storage, SKUA_PAYLOAD_OWNED);
    assert_int_equal(skua_step_yield_from(out, 1, 2, NULL), SKUA_E_INVALID);
    assert_int_equal(out->yield_count, 1);
}

TEST(done_from_a_payload_leaves_it_empty)
{
    open_output();
    skua_payload result = owned(1);
    skua_step_done_from(out, NULL);
    assert_int_equal(out->status, STEP_DEFAULT);
    skua_step_done_from(out, &result);
    assert_int_equal(result.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(out->status, STEP_DONE);
    assert_int_equal(out->result.storage, SKUA_PAYLOAD_OWNED);
}

/* ---- deadlines and cancels ---- */

TEST(deadline_is_that_of_the_last_yield)
{
    open_output();
    yield_empty(1);
    assert_int_equal(skua_step_deadline(out, 1000), 0);
    yield_empty(2);
    yield_empty(3);
    assert_int_equal(skua_step_deadline(out, 5000), 0);
    assert_int_equal(skua_step_deadline(out, 0), 0); /* the last one counts */
    assert_int_equal(out->yield_count, 3);
    assert_int_equal(out->yields[0].deadline, 1000);
    assert_int_equal(out->yields[1].deadline, SKUA_FOREVER);
    assert_int_equal(out->yields[2].deadline, 0);
    assert_int_equal(skua_step_deadline(out, SKUA_FOREVER), 0);
    assert_int_equal(out->yields[2].deadline, SKUA_FOREVER);
    step_output_discard(out);
}

TEST(deadline_without_a_yield_of_this_step_is_refused)
{
    open_output();
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID);
    assert_int_equal(skua_step_yield(out, 1, 2, owned(PAYLOAD_LIMIT + 1)), SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID);
    yield_empty(2);
    step_output_discard(out);
    step_output_reset(out);
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID); /* that was another step's */
    assert_int_equal(out->yield_count, 0);
    yield_empty(1);
    out->open = false;
    assert_int_equal(skua_step_deadline(out, 1), SKUA_E_INVALID);
    assert_int_equal(out->yields[0].deadline, SKUA_FOREVER);
    step_output_discard(out);
}

/* It would fall upon the tag, which lies in the same place. */
TEST(deadline_after_a_cancel_is_refused_and_changes_nothing)
{
    open_output();
    yield_empty(2);
    assert_int_equal(skua_step_cancel(out, 77), 0);
    assert_int_equal(skua_step_deadline(out, 1000), SKUA_E_INVALID);
    assert_int_equal(out->yields[0].deadline, SKUA_FOREVER);
    assert_int_equal(out->yields[1].cancels, 77);
    step_output_discard(out);
}

TEST(cancel_keeps_its_place_among_the_yields_and_takes_no_node)
{
    open_output();
    assert_int_equal(skua_step_cancel(out, 5), 0);
    yield_owned(6);
    assert_int_equal(skua_step_cancel(out, UINT64_MAX), 0);
    assert_int_equal(out->yield_count, 3);
    assert_int_equal(out->yields[0].node, OBJECT_NONE);
    assert_int_equal(out->yields[0].cancels, 5);
    assert_int_not_equal(out->yields[1].node, OBJECT_NONE);
    assert_int_equal(out->yields[2].node, OBJECT_NONE);
    assert_int_equal(out->yields[2].cancels, UINT64_MAX);
    assert_int_equal(nodes_in_use(), 1);
    assert_int_equal(out->status, STEP_DEFAULT);
    assert_discard_drops(1);
    assert_int_equal(nodes_in_use(), 0);
}

/* ---- no memory ---- */

TEST(cancel_without_memory_is_refused_and_keeps_the_yields)
{
    open_output();
    const uint32_t full = fill_array();
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(skua_step_cancel(out, 2), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, full);
    counting_allocator_fail_never(&memory);
    assert_int_equal(skua_step_cancel(out, 2), 0);
    assert_int_equal(out->yield_count, full + 1);
    assert_int_equal(out->yields[full].cancels, 2);
    assert_int_equal(nodes_in_use(), full);
    step_output_discard(out);
}

/* A yield that fails leaves no trace, and the next one works. */
TEST(yield_without_memory_keeps_the_earlier_ones)
{
    static const struct {
        bool is_full;
        uint64_t allocation; /* that fails, counted from then on */
    } rows[] = {
        {false, 1}, /* the first array of yields */
        {false, 2}, /* the nodes' segment */
        {true, 1},  /* a larger array */
    };
    FOR_ROWS (row, rows) {
        open_output();
        const uint32_t count = row->is_full ? fill_array() : 0;
        counting_allocator_fail_from(&memory, row->allocation);
        assert_int_equal(skua_step_yield(out, 1, 2, owned(1)), SKUA_E_NO_MEMORY);
        assert_int_equal(out->yield_count, count);
        assert_int_equal(nodes_in_use(), count);
        assert_int_equal(drop_count, 1);
        counting_allocator_fail_never(&memory);
        yield_owned(count);
        assert_int_equal(out->yield_count, count + 1);
        assert_int_equal(drop_count, 1);
        for (uint32_t i = 0; i <= count; i++) {
            assert_int_equal(node_at(out->yields[i].node)->as.call.tag, i);
        }
        assert_discard_drops((int)count + 2);
        assert_int_equal(nodes_in_use(), 0);
    }
}

/* ---- status ---- */

TEST(status_is_that_of_the_last_call)
{
    open_output();
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

TEST(status_after_done_drops_the_result_once)
{
    static void (*const others[])(skua_step *) = {skua_step_continue, skua_step_idle,
                                                  skua_step_wait};
    open_output();
    for (int i = 0; i < 3; i++) {
        skua_step_done(out, owned(1));
        assert_int_equal(drop_count, i);
        others[i](out);
        assert_int_equal(drop_count, i + 1);
    }
    assert_discard_drops(3);
}

TEST(status_done_twice_keeps_the_last_result)
{
    open_output();
    skua_step_done(out, owned(1));
    skua_step_done(out, owned(2));
    assert_int_equal(drop_count, 1);
    assert_int_equal(skua_payload_size(&out->result), 2);
    skua_step_done(out, skua_payload_u64(0, 5));
    assert_int_equal(drop_count, 2);
    assert_int_equal(skua_payload_to_u64(&out->result), 5);
}
