/* SPDX-License-Identifier: MIT */
/* What a step writes: yields and a status, and that nothing it hands over is lost or kept. */
#include "process/step_output.h"

#include "call_rig.h"
#include "sched/context.h"

#define PAYLOAD_LIMIT 1000

static struct step_output *out; /* that of the current test */
static skua_context *ctx;       /* of the step that writes to it */
static struct scheduler sched;  /* which nobody listens to */
static struct worker writer;    /* whose output it is */
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

/* As the worker does when a step has failed. */
static void discard(void)
{
    for (uint32_t i = 0; i < out->yield_count; i++) {
        if (out->yields[i].node != OBJECT_NONE) {
            skua_payload_drop(&out->yields[i].as.payload);
            give_node(out->yields[i].node);
        }
    }
    step_output_reset(out);
}

static void close_output(void)
{
    discard();
    step_output_drain_reserve(out);
    step_output_deinit(out);
}

/* An output without room, so that its first yield needs memory. */
static void open_bare_output(void)
{
    call_rig_open();
    drop_count = 0;
    ctx = test_alloc(sizeof *ctx);
    ctx->sched = &sched;
    ctx->worker = &writer;
    ctx->phase = CONTEXT_STEP;
    out = &ctx->worker->out;
    *out = (struct step_output){
        .allocator = &memory.allocator,
        .events = &call_rig.events,
        .event_cache = &call_rig.cache,
        .payload_limit = PAYLOAD_LIMIT,
    };
    step_output_reset(out);
    test_at_end(close_output);
}

static void open_output(void)
{
    open_bare_output();
    assert_true(step_output_init(out));
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

static int yield(uint64_t tag, skua_payload payload)
{
    return skua_yield(ctx, tag, 1, payload, SKUA_FOREVER);
}

static void yield_owned(uint64_t tag)
{
    assert_int_equal(yield(tag, owned(1)), 0);
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
        assert_int_equal(skua_yield(ctx, i * unit, i + 7, skua_payload_u64(i, i + 1), i), 0);
        assert_int_equal(out->yield_count, i + 1);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        const struct yield *entry = &out->yields[i];
        assert_int_equal(entry->command, i + 7);
        assert_int_equal(entry->timeout, i);
        assert_int_equal(entry->as.payload.type, i);
        assert_int_equal(skua_payload_to_u64(&entry->as.payload), i + 1);
        assert_int_equal(node_at(entry->node)->as.call.tag, i * unit); /* a node of its own */
    }
    assert_int_equal(nodes_in_use(), 1000);
    assert_int_equal(out->status, STEP_WAITS);
}

TEST(output_reset_starts_anew_without_allocating)
{
    uint64_t attempts = 0;
    open_output();
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < 100; i++) {
            assert_int_equal(yield(2, skua_nothing()), 0);
        }
        assert_int_equal(out->yield_count, 100);
        discard();
        if (step > 0) {
            assert_int_equal(counting_allocator_attempts(&memory), attempts);
        }
        attempts = counting_allocator_attempts(&memory);
    }
}

TEST(output_reset_after_done_waits_again)
{
    open_output();
    assert_int_equal(skua_done(ctx, skua_nothing()), 0);
    step_output_reset(out);
    assert_int_equal(out->status, STEP_WAITS);
    assert_int_equal(yield(1, skua_nothing()), 0);
}

TEST(yield_of_the_largest_payload_is_accepted)
{
    open_output();
    assert_int_equal(yield(2, owned(PAYLOAD_LIMIT)), 0);
    assert_int_equal(yield(2, skua_payload_pointer(1, out, count_drop)), 0);
    assert_int_equal(drop_count, 0);
    discard();
    assert_int_equal(drop_count, 2);
}

static void assert_no_yield(int drops)
{
    assert_int_equal(drop_count, drops);
    assert_int_equal(out->yield_count, 0);
    assert_int_equal(nodes_in_use(), 0);
}

TEST(yield_of_a_larger_payload_is_refused_and_dropped)
{
    open_output();
    assert_int_equal(yield(2, owned(PAYLOAD_LIMIT + 1)), SKUA_E_PAYLOAD_SIZE);
    assert_no_yield(1);
}

TEST(yield_of_a_taken_payload_is_refused)
{
    open_output();
    skua_payload payload = owned(1);
    skua_payload taken = skua_payload_take(&payload);
    assert_int_equal(skua_yield_from(ctx, 1, 2, &payload, SKUA_FOREVER), SKUA_E_TAKEN);
    assert_no_yield(0);
    assert_int_equal(yield(1, taken), 0);
}

TEST(yield_of_a_reserved_command_is_refused_and_drops)
{
    open_output();
    for (uint32_t id = SKUA_COMMAND_RESERVED; id != 0; id = id == SKUA_COMMAND_RESERVED ? ~0u : 0) {
        assert_int_equal(skua_yield(ctx, 1, id, owned(1), SKUA_FOREVER), SKUA_E_RESERVED);
    }
    assert_no_yield(2);
    assert_int_equal(skua_yield(ctx, 1, SKUA_COMMAND_RESERVED - 1, owned(1), SKUA_FOREVER), 0);
}

TEST(timeout_is_a_duration_or_forever)
{
    static const struct {
        uint64_t timeout;
        int error;
    } rows[] = {
        {0, 0},
        {1, 0},
        {SKUA_DURATION_MAX, 0},
        {SKUA_DURATION_MAX + 1, SKUA_E_DURATION},
        {SKUA_FOREVER - 1, SKUA_E_DURATION},
        {SKUA_FOREVER, 0},
    };
    FOR_ROWS (row, rows) {
        open_output();
        assert_int_equal(skua_yield(ctx, 1, 2, owned(1), row->timeout), row->error);
        assert_int_equal(out->yield_count, row->error == 0);
        assert_int_equal(drop_count, row->error != 0);
        assert_int_equal(nodes_in_use(), row->error == 0);
        if (row->error == 0) {
            assert_int_equal(out->yields[0].timeout, row->timeout);
        }
    }
}

TEST(calls_without_context_are_refused_and_drop)
{
    open_output();
    skua_payload payload = owned(1);
    assert_int_equal(skua_yield(NULL, 2, 1, owned(1), SKUA_FOREVER), SKUA_E_INVALID);
    assert_int_equal(drop_count, 1);
    assert_int_equal(skua_yield_from(NULL, 1, 2, &payload, SKUA_FOREVER), SKUA_E_INVALID);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_TAKEN);
    assert_int_equal(drop_count, 2);
    assert_int_equal(skua_yield_cancel(NULL, 1), SKUA_E_INVALID);
    assert_int_equal(skua_continue(NULL), SKUA_E_INVALID);
    assert_int_equal(drop_count, 2);
    assert_int_equal(skua_done(NULL, owned(1)), SKUA_E_INVALID);
    assert_int_equal(drop_count, 3);
}

/* In init, in close, and between the calls. */
TEST(calls_outside_of_a_step_are_refused_and_drop)
{
    static const uint32_t phases[] = {CONTEXT_INIT, CONTEXT_CLOSE, CONTEXT_CLOSED};
    FOR_ROWS (phase, phases) {
        open_output();
        ctx->phase = *phase;
        assert_int_equal(yield(1, owned(1)), SKUA_E_CONTEXT);
        assert_int_equal(skua_yield_cancel(ctx, 1), SKUA_E_CONTEXT);
        assert_int_equal(skua_done(ctx, owned(1)), SKUA_E_CONTEXT);
        assert_int_equal(skua_continue(ctx), SKUA_E_CONTEXT);
        assert_no_yield(2);
        assert_int_equal(out->status, STEP_WAITS);
    }
}

TEST(yield_from_a_payload_leaves_it_taken)
{
    open_output();
    skua_payload payload = owned(1);
    assert_int_equal(skua_yield_from(ctx, 1, 2, &payload, SKUA_FOREVER), 0);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_TAKEN);
    assert_int_equal(out->yields[0].as.payload.storage, SKUA_PAYLOAD_OWNED);
    assert_int_equal(skua_yield_from(ctx, 1, 2, NULL, SKUA_FOREVER), SKUA_E_INVALID);
    assert_int_equal(skua_yield_from(ctx, 1, 2, &payload, SKUA_FOREVER), SKUA_E_TAKEN);
    assert_int_equal(out->yield_count, 1);
    assert_int_equal(drop_count, 0);
}

TEST(done_from_a_payload_leaves_it_taken)
{
    open_output();
    skua_payload result = owned(1);
    assert_int_equal(skua_done_from(ctx, NULL), SKUA_E_INVALID);
    assert_int_equal(out->status, STEP_WAITS);
    assert_int_equal(skua_done_from(ctx, &result), 0);
    assert_int_equal(result.storage, SKUA_PAYLOAD_TAKEN);
    assert_int_equal(out->status, STEP_DONE);
    assert_int_equal(out->result.storage, SKUA_PAYLOAD_OWNED);
}

TEST(cancel_keeps_its_place_among_the_yields_and_takes_no_node)
{
    open_output();
    assert_int_equal(skua_yield_cancel(ctx, 5), 0);
    yield_owned(6);
    assert_int_equal(skua_yield_cancel(ctx, UINT64_MAX), 0);
    assert_int_equal(out->yield_count, 3);
    assert_int_equal(out->yields[0].node, OBJECT_NONE);
    assert_int_equal(out->yields[0].cancels, 5);
    assert_int_not_equal(out->yields[1].node, OBJECT_NONE);
    assert_int_equal(out->yields[2].node, OBJECT_NONE);
    assert_int_equal(out->yields[2].cancels, UINT64_MAX);
    assert_int_equal(nodes_in_use(), 1);
    assert_int_equal(out->status, STEP_WAITS);
}

/* ---- done, and what comes after it ---- */

TEST(status_is_that_of_the_last_call)
{
    open_output();
    assert_int_equal(skua_continue(ctx), 0);
    assert_int_equal(out->status, STEP_CONTINUES);
    assert_int_equal(skua_continue(ctx), 0);
    assert_int_equal(skua_done(ctx, skua_payload_u64(3, 4)), 0);
    assert_int_equal(out->status, STEP_DONE);
    assert_int_equal(out->result.type, 3);
    assert_int_equal(skua_payload_to_u64(&out->result), 4);
}

TEST(done_is_final)
{
    open_output();
    yield_owned(1);
    assert_int_equal(skua_done(ctx, owned(7)), 0);
    assert_int_equal(skua_continue(ctx), SKUA_E_DONE);
    assert_int_equal(skua_yield_cancel(ctx, 1), SKUA_E_DONE);
    assert_int_equal(drop_count, 0);
    assert_int_equal(yield(2, owned(1)), SKUA_E_DONE);
    assert_int_equal(drop_count, 1);
    assert_int_equal(skua_done(ctx, owned(2)), SKUA_E_DONE);
    assert_int_equal(drop_count, 2);
    assert_int_equal(out->status, STEP_DONE);
    assert_int_equal(skua_payload_size(&out->result), 7); /* the first */
    assert_int_equal(out->yield_count, 1);                /* the one before it */
    assert_int_equal(nodes_in_use(), 1);
}

TEST(done_with_a_taken_payload_is_refused)
{
    open_output();
    skua_payload result = owned(1);
    skua_payload taken = skua_payload_take(&result);
    assert_int_equal(skua_done_from(ctx, &result), SKUA_E_TAKEN);
    assert_int_equal(out->status, STEP_WAITS);
    assert_int_equal(skua_done(ctx, taken), 0);
}

/* ---- no memory ---- */

TEST(cancel_without_memory_is_refused_and_keeps_the_yields)
{
    open_output();
    const uint32_t full = fill_array();
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(skua_yield_cancel(ctx, 2), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, full);
    counting_allocator_fail_never(&memory);
    assert_int_equal(skua_yield_cancel(ctx, 2), 0);
    assert_int_equal(out->yield_count, full + 1);
    assert_int_equal(out->yields[full].cancels, 2);
    assert_int_equal(nodes_in_use(), full);
}

/* A yield that fails leaves no trace, and the next one works. */
TEST(yield_without_memory_keeps_the_earlier_ones)
{
    static const struct {
        bool is_full;
        uint64_t allocation; /* that fails, counted from then on */
    } rows[] = {
        {false, 1}, /* the nodes' segment */
        {true, 1},  /* a larger array */
    };
    FOR_ROWS (row, rows) {
        open_output();
        const uint32_t count = row->is_full ? fill_array() : 0;
        counting_allocator_fail_from(&memory, row->allocation);
        assert_int_equal(yield(2, owned(1)), SKUA_E_NO_MEMORY);
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
        discard();
        assert_int_equal(drop_count, (int)count + 2);
        assert_int_equal(nodes_in_use(), 0);
    }
}

TEST(room_for_the_first_yields_needs_memory_once)
{
    open_bare_output();
    counting_allocator_fail_from(&memory, 1);
    assert_false(step_output_init(out));
    assert_int_equal(out->yield_capacity, 0);
    counting_allocator_fail_never(&memory);
    assert_true(step_output_init(out));
    give_node(take_node()); /* there are nodes from now on */
    counting_allocator_fail_from(&memory, 1);
    const uint32_t full = fill_array();
    assert_in_range(full, 1, 1000);
    assert_int_equal(yield(1, skua_nothing()), SKUA_E_NO_MEMORY);
    counting_allocator_fail_never(&memory);
}

/* ---- the reserve ---- */

static struct yield *entry_made; /* by the last of these */

static int yield_reserved(uint64_t tag)
{
    return step_output_yield_reserved(out, tag, 9, &entry_made);
}

/* No node is to be had any more but those of the reserve. */
static void exhaust_nodes(void)
{
    uint32_t node;
    counting_allocator_fail_from(&memory, 1);
    while (event_acquire_owner(&call_rig.events, &call_rig.cache, &node)) {
        /* They stay with the pool, which is freed as a whole. */
    }
}

TEST(reserve_is_filled_once_and_drained)
{
    open_output();
    step_output_fill_reserve(out);
    assert_int_equal(out->reserve_count, STEP_RESERVE);
    assert_int_equal(nodes_in_use(), STEP_RESERVE);
    step_output_fill_reserve(out);
    assert_int_equal(nodes_in_use(), STEP_RESERVE);
    step_output_drain_reserve(out);
    assert_int_equal(out->reserve_count, 0);
    assert_int_equal(nodes_in_use(), 0);
}

TEST(reserve_without_memory_stays_as_it_is)
{
    open_output();
    counting_allocator_fail_from(&memory, 1);
    step_output_fill_reserve(out);
    assert_int_equal(out->reserve_count, 0);
    assert_int_equal(yield_reserved(1), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, 0);
    counting_allocator_fail_never(&memory);
}

TEST(reserved_yield_spares_the_reserve_while_there_is_memory)
{
    open_output();
    step_output_fill_reserve(out);
    assert_int_equal(yield_reserved(1), 0);
    entry_made->as.payload = skua_nothing();
    assert_int_equal(out->reserve_count, STEP_RESERVE);
    assert_int_equal(entry_made->command, 9);
    assert_int_equal(entry_made->timeout, SKUA_FOREVER);
}

TEST(reserved_yield_without_memory_draws_on_the_reserve_as_far_as_it_goes)
{
    open_output();
    step_output_fill_reserve(out);
    exhaust_nodes();
    for (uint32_t i = 0; i < STEP_RESERVE; i++) {
        assert_int_equal(yield(i, owned(1)), SKUA_E_NO_MEMORY); /* it is not for these */
        assert_int_equal(yield_reserved(100 + i), 0);
        entry_made->as.payload = skua_nothing();
        assert_int_equal(out->reserve_count, STEP_RESERVE - i - 1);
        assert_ptr_equal(entry_made, &out->yields[i]);
        assert_int_equal(entry_made->command, 9);
        assert_int_equal(entry_made->timeout, SKUA_FOREVER);
        assert_int_equal(node_at(entry_made->node)->as.call.tag, 100 + i);
    }
    assert_int_equal(yield_reserved(1), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, STEP_RESERVE);
    counting_allocator_fail_never(&memory);
}

/* The array may be full, too. */
TEST(reserved_yields_have_places_of_their_own)
{
    open_output();
    step_output_fill_reserve(out);
    const uint32_t full = fill_array();
    counting_allocator_fail_from(&memory, 1);
    for (uint32_t i = 0; i < STEP_RESERVE; i++) {
        assert_int_equal(skua_yield_cancel(ctx, 1), SKUA_E_NO_MEMORY); /* they are not for these */
        assert_int_equal(yield_reserved(100 + i), 0);
        entry_made->as.payload = skua_nothing();
        assert_ptr_equal(entry_made, &out->yields[full + i]);
        assert_int_equal(node_at(entry_made->node)->as.call.tag, 100 + i);
    }
    assert_int_equal(yield_reserved(1), SKUA_E_NO_MEMORY);
    assert_int_equal(out->yield_count, full + STEP_RESERVE);
    counting_allocator_fail_never(&memory);
    assert_int_equal(yield_reserved(1), 0); /* there is memory for a larger array */
    entry_made->as.payload = skua_nothing();
    for (uint32_t i = 0; i < STEP_RESERVE; i++) {
        assert_int_equal(node_at(out->yields[full + i].node)->as.call.tag, 100 + i);
    }
}

TEST(reserved_yield_after_done_is_refused)
{
    open_output();
    step_output_fill_reserve(out);
    assert_int_equal(skua_done(ctx, skua_nothing()), 0);
    exhaust_nodes();
    assert_int_equal(yield_reserved(1), SKUA_E_DONE);
    assert_int_equal(out->reserve_count, STEP_RESERVE);
    counting_allocator_fail_never(&memory);
}
