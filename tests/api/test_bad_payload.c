/* SPDX-License-Identifier: MIT */
/* Payloads that cannot be made, shared or read: the functions say so, and leave an empty
 * payload. */
#include "world.h"

#define PAYLOAD_LIMIT 1000

static void open_with_limit(void)
{
    world_open_with((skua_runtime_config){.worker_count = 1, .payload_limit = PAYLOAD_LIMIT});
}

TEST(copy_that_is_refused_gives_an_empty_payload)
{
    static const char bytes[PAYLOAD_LIMIT + 1];
    static const struct {
        bool no_runtime;
        const void *data;
        size_t size;
        int expected;
    } rows[] = {
        {true, bytes, 8, SKUA_E_INVALID},
        {false, NULL, 1, SKUA_E_INVALID},
        {false, NULL, 100, SKUA_E_INVALID},
        {false, bytes, PAYLOAD_LIMIT + 1, SKUA_E_PAYLOAD_SIZE},
        {false, bytes, SIZE_MAX, SKUA_E_PAYLOAD_SIZE},
    };
    struct tracked item = {0};
    skua_payload payload;
    open_with_limit();
    assert_int_equal(skua_payload_copy(world_runtime(), 1, bytes, 8, NULL), SKUA_E_INVALID);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        payload = tracked_payload(9, &item);
        assert_int_equal(skua_payload_copy(rows[i].no_runtime ? NULL : world_runtime(), 1,
                                           rows[i].data, rows[i].size, &payload),
                         rows[i].expected);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        assert_null(skua_payload_data(&payload));
    }
    /* At the limit, and nothing at all, are fine. */
    assert_int_equal(skua_payload_copy(world_runtime(), 1, bytes, PAYLOAD_LIMIT, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), PAYLOAD_LIMIT);
    skua_payload_drop(&payload);
    assert_int_equal(skua_payload_copy(world_runtime(), 1, NULL, 0, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), 0);
}

TEST(shared_payload_that_is_refused_is_empty)
{
    static const char bytes[PAYLOAD_LIMIT + 1];
    skua_payload payload;
    skua_payload another;
    struct tracked item = {0};
    open_with_limit();
    skua_runtime *runtime = world_runtime();
    assert_int_equal(skua_payload_shared(runtime, 1, bytes, 8, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_payload_shared(NULL, 1, bytes, 8, &payload), SKUA_E_INVALID);
    assert_int_equal(skua_payload_shared(runtime, 1, NULL, 8, &payload), SKUA_E_INVALID);
    assert_int_equal(skua_payload_shared(runtime, 1, bytes, PAYLOAD_LIMIT + 1, &payload),
                     SKUA_E_PAYLOAD_SIZE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(skua_payload_shared(runtime, 1, bytes, PAYLOAD_LIMIT, &payload), 0);
    assert_int_equal(skua_payload_ref(&payload, NULL), SKUA_E_INVALID);
    assert_int_equal(skua_payload_ref(NULL, &another), SKUA_E_INVALID);
    assert_int_equal(another.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(skua_payload_ref(&payload, &another), 0);
    skua_payload_drop(&payload);
    assert_int_equal(skua_payload_size(&another), PAYLOAD_LIMIT);
    skua_payload_drop(&another);
    /* What has one owner stays with that; what is taken is nobody's. */
    payload = tracked_payload(0, &item);
    assert_int_equal(skua_payload_ref(&payload, &another), SKUA_E_NOT_SHARED);
    assert_int_equal(another.storage, SKUA_PAYLOAD_EMPTY);
    skua_payload taken = skua_payload_take(&payload);
    assert_int_equal(skua_payload_ref(&payload, &another), SKUA_E_TAKEN);
    assert_int_equal(another.storage, SKUA_PAYLOAD_EMPTY);
    skua_payload_drop(&taken);
    assert_drops(&item, 1, 1);
}

SKUA_MESSAGE(pair, 5, uint64_t first; uint64_t second;);

TEST(payload_of_another_type_is_not_read)
{
    struct tracked item = {0};
    skua_payload taken = skua_payload_u64(5, 9);
    (void)skua_payload_take(&taken);
    const skua_payload rows[] = {
        skua_payload_empty(5),
        skua_payload_u64(6, 9),
        taken,
        tracked_payload(5, &item),
        skua_payload_static(5, "1234567", 7),
        skua_payload_pointer(5, &item, NULL),
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t value = 42;
        skua_pid pid = {42};
        const void *data = &item;
        struct pair message = {1, 2};
        assert_int_equal(skua_payload_get_u64(&rows[i], 5, &value), SKUA_E_PAYLOAD_TYPE);
        assert_int_equal(value, 0);
        assert_int_equal(skua_payload_get_pid(&rows[i], 5, &pid), SKUA_E_PAYLOAD_TYPE);
        assert_true(skua_pid_is_none(pid));
        assert_int_equal(skua_payload_get_bytes(&rows[i], 5, 8, &data), SKUA_E_PAYLOAD_TYPE);
        assert_null(data);
        const bool fits = skua_payload_size(&rows[i]) == sizeof message; /* a tracked one does */
        assert_int_equal(pair_get(&rows[i], &message), fits ? 0 : SKUA_E_PAYLOAD_TYPE);
        assert_true(fits || (message.first == 1 && message.second == 2));
    }
}

TEST(payload_of_another_kind_reads_as_zero)
{
    struct tracked item = {0};
    skua_payload payload = tracked_payload(1, &item);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
    assert_true(skua_pid_is_none(skua_payload_to_pid(&payload)));
    skua_payload_drop(&payload);
    skua_payload_drop(&payload);
    assert_drops(&item, 1, 1);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
    assert_int_equal(skua_payload_size(&payload), 0);
    assert_null(skua_payload_data(&payload));
}
