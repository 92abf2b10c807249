/* SPDX-License-Identifier: MIT */
/* What test_example_kv_orders.c would notice: the same server with faults that show now and then
 * only, planted in what it calls. Some seed must tell. */
#include <skua/skua.h>
#include <string.h>

enum fault { STALE_NUMBER, WRONG_SHARD, ANSWER_OF_ANOTHER, LATE_CLOCK, FAULTS };

static enum fault fault;
static uint64_t occasions; /* on which it could have shown */

static bool is_time_for(enum fault which)
{
    return fault == which && ++occasions % 3 == 0;
}

/* An increment works on the number that there was before; what is small is a length. */
static int faulty_number(skua_bytes bytes, int64_t *number)
{
    const int error = skua_bytes_to_number(bytes, number);
    *number -= *number > 99 && is_time_for(STALE_NUMBER);
    return error;
}

/* A key is looked for, and made, where it does not belong. */
static uint64_t faulty_hash(skua_bytes bytes, uint64_t seed)
{
    return skua_bytes_hash(bytes, seed + is_time_for(WRONG_SHARD));
}

/* What one connection is answered is written to the next one. */
static void answer_another(skua_output *output)
{
    static char kept[64];
    static size_t size;
    const skua_bytes fresh = skua_output_peek(output);
    if (fault != ANSWER_OF_ANOTHER || fresh.size == 0 || fresh.size > sizeof kept) {
        return;
    }
    if (size == fresh.size && is_time_for(ANSWER_OF_ANOTHER)) {
        skua_output_clear(output);
        skua_output_put(output, kept, size);
    } else {
        memcpy(kept, fresh.data, fresh.size);
        size = fresh.size;
    }
}

static int faulty_exchange(skua_context *ctx, skua_stream *stream, skua_event **event)
{
    answer_another(&stream->output);
    return skua_task_exchange(ctx, stream, event);
}

/* What has expired is still there, or something else lives too long. */
static uint64_t faulty_now(skua_context *ctx)
{
    return skua_now(ctx) - (is_time_for(LATE_CLOCK) ? SKUA_SECOND : 0);
}

#undef skua_task_exchange
#define skua_bytes_to_number(bytes, number)    faulty_number(bytes, number)
#define skua_bytes_hash(bytes, seed)           faulty_hash(bytes, seed)
#define skua_now(ctx)                          faulty_now(ctx)
#define skua_task_exchange(ctx, stream, event) faulty_exchange(ctx, stream, event)
#include "example_kv.h"

#undef skua_now
#include "kv_client.h"

static struct kv_history history;

static bool is_noticed(enum fault which, uint64_t seed)
{
    fault = which;
    world_open_sim(seed, SIM_NO_FAULTS);
    example_kv_start(2);
    kv_play(&history, EXAMPLE_KV_ADDRESS, client_type.name, seed);
    return !kv_is_explained(&history, NULL);
}

static void assert_noticed(enum fault which)
{
    uint64_t noticed = 0;
    FOR_ROUNDS (seed, 10) {
        noticed += is_noticed(which, seed);
    }
    assert_in_range(noticed, 1, 10);
}

TEST(increment_of_a_stale_number_is_noticed)
{
    assert_noticed(STALE_NUMBER);
}

TEST(key_in_two_shards_is_noticed)
{
    assert_noticed(WRONG_SHARD);
}

TEST(answer_that_another_client_should_have_got_is_noticed)
{
    assert_noticed(ANSWER_OF_ANOTHER);
}

TEST(clock_that_is_late_is_noticed)
{
    assert_noticed(LATE_CLOCK);
}

TEST(server_without_a_fault_is_not_accused)
{
    FOR_ROUNDS (seed, 10) {
        assert_false(is_noticed(FAULTS, seed));
    }
}
