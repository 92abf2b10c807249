/* SPDX-License-Identifier: MIT */
/* Payloads of every kind: what they carry, and that what they own is dropped exactly once. */
#include "process/payload.h"

#include <skua/error.h>
#include <stdalign.h>

#include "test_memory.h"

#define TYPE UINT32_C(0xfedcba98)
#define PID  ((skua_pid){UINT64_C(0x8000000400000001)})

/* What the drop function was last called with, and how often it was called. */
static struct {
    int count;
    void *data;
    size_t size;
} drops;

static void count_drop(void *data, size_t size)
{
    drops.count++;
    drops.data = data;
    drops.size = size;
}

static void reset_drops(void)
{
    memset(&drops, 0, sizeof drops);
}

static unsigned char object[100];

static skua_payload owned(size_t size)
{
    return skua_payload_owned(TYPE, object, size, count_drop);
}

static skua_payload pointer(void)
{
    return skua_payload_pointer(TYPE, object, count_drop);
}

/* ---- the kinds ---- */

TEST(payload_of_each_kind_carries_what_it_was_made_with)
{
    static const uint64_t large = UINT64_C(0x123456789abcdef0);
    const struct {
        skua_payload payload;
        enum skua_payload_storage storage;
        const void *data; /* null: some bytes inside of it, unless it is empty */
        size_t size;
        uint64_t number; /* not the pointer of what it owns */
    } rows[] = {
        {skua_payload_empty(TYPE), SKUA_PAYLOAD_EMPTY, NULL, 0, 0},
        {skua_payload_u64(TYPE, 0), SKUA_PAYLOAD_INLINE, NULL, 8, 0},
        {skua_payload_u64(TYPE, 1), SKUA_PAYLOAD_INLINE, NULL, 8, 1},
        {skua_payload_u64(TYPE, large), SKUA_PAYLOAD_INLINE, NULL, 8, large},
        {skua_payload_u64(TYPE, UINT64_MAX), SKUA_PAYLOAD_INLINE, NULL, 8, UINT64_MAX},
        {skua_payload_pid(TYPE, PID), SKUA_PAYLOAD_INLINE, NULL, 8, PID.bits},
        {owned(sizeof object), SKUA_PAYLOAD_OWNED, object, sizeof object, 0},
        {pointer(), SKUA_PAYLOAD_POINTER, object, 0, 0},
    };
    FOR_ROWS (row, rows) {
        const skua_payload *payload = &row->payload;
        assert_int_equal(payload->type, TYPE);
        assert_int_equal(payload->storage, row->storage);
        assert_int_equal(skua_payload_size(payload), row->size);
        assert_int_equal(skua_payload_to_u64(payload), row->number);
        assert_int_equal(skua_payload_to_pid(payload).bits, row->number);
        if (row->storage == SKUA_PAYLOAD_INLINE) {
            assert_memory_equal(skua_payload_data(payload), &row->number, 8);
        } else {
            assert_ptr_equal(skua_payload_data(payload), row->data);
        }
    }
}

/* ---- drop and take ---- */

TEST(payload_drop_calls_the_function_exactly_once)
{
    const struct {
        skua_payload payload;
        size_t size;
    } rows[] = {{owned(42), 42}, {pointer(), 0}};
    FOR_ROWS (row, rows) {
        skua_payload payload = row->payload;
        reset_drops();
        skua_payload_drop(&payload);
        assert_int_equal(drops.count, 1);
        assert_ptr_equal(drops.data, object);
        assert_int_equal(drops.size, row->size);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        skua_payload_drop(&payload);
        assert_int_equal(drops.count, 1);
    }
}

/* The bytes of an inline payload may look like a drop function. */
TEST(payload_drop_of_what_owns_nothing_calls_nothing)
{
    skua_payload look_alike = owned(1);
    look_alike.storage = SKUA_PAYLOAD_INLINE;
    look_alike.inline_size = SKUA_PAYLOAD_INLINE_SIZE;
    const skua_payload rows[] = {look_alike, skua_payload_empty(TYPE),
                                 skua_payload_owned(TYPE, object, sizeof object, NULL)};
    reset_drops();
    FOR_ROWS (row, rows) {
        skua_payload payload = *row;
        skua_payload_drop(&payload);
        assert_int_equal(drops.count, 0);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        assert_null(skua_payload_data(&payload));
    }
}

TEST(payload_take_moves_the_ownership)
{
    skua_payload payload = owned(42);
    reset_drops();
    skua_payload taken = skua_payload_take(&payload);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(taken.type, TYPE);
    assert_ptr_equal(skua_payload_data(&taken), object);
    assert_int_equal(skua_payload_size(&taken), 42);
    skua_payload_drop(&payload);
    assert_int_equal(drops.count, 0);
    skua_payload_drop(&taken);
    assert_int_equal(drops.count, 1);
}

TEST(payload_take_of_inline_keeps_the_number)
{
    skua_payload payload = skua_payload_u64(TYPE, 77);
    const skua_payload taken = skua_payload_take(&payload);
    assert_int_equal(skua_payload_to_u64(&taken), 77);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
}

TEST(payload_drop_all_drops_each)
{
    skua_payload payloads[] = {owned(1), skua_payload_u64(TYPE, 5), skua_payload_empty(TYPE),
                               pointer()};
    reset_drops();
    payload_drop_all(payloads, 0);
    assert_int_equal(drops.count, 0);
    payload_drop_all(payloads, 4);
    assert_int_equal(drops.count, 2);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(payloads[i].storage, SKUA_PAYLOAD_EMPTY);
    }
    payload_drop_all(payloads, 4);
    assert_int_equal(drops.count, 2);
}

/* ---- copies ---- */

static void copy(const void *data, size_t size, skua_payload *payload)
{
    memset(payload, 0xff, sizeof *payload);
    assert_int_equal(payload_copy(&memory.allocator, TYPE, data, size, payload), 0);
    assert_int_equal(payload->type, TYPE);
    assert_int_equal(skua_payload_size(payload), size);
}

static void fill(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(i * 5 + 3);
    }
}

/* Up to 24 bytes are inside; more are allocated, aligned for any type. */
static void check_copy(size_t size)
{
    unsigned char source[5000];
    unsigned char expected[sizeof source];
    skua_payload payload;
    memory_open();
    fill(source, size);
    fill(expected, size);
    copy(source, size, &payload);
    memset(source, 0, size);
    assert_memory_equal(skua_payload_data(&payload), expected, size);
    const bool fits = size <= SKUA_PAYLOAD_INLINE_SIZE;
    assert_int_equal(payload.storage, fits ? SKUA_PAYLOAD_INLINE : SKUA_PAYLOAD_OWNED);
    assert_int_equal(counting_allocator_live_blocks(&memory), fits ? 0 : 1);
    assert_int_equal(counting_allocator_attempts(&memory), fits ? 0 : 1);
    if (!fits) {
        assert_int_equal((uintptr_t)skua_payload_data(&payload) % alignof(max_align_t), 0);
    }
    skua_payload_drop(&payload);
}

TEST(payload_copy_has_the_bytes_when_their_source_is_gone)
{
    static const size_t sizes[] = {64, 100, 4096, 5000};
    FOR_ROUNDS (size, 40) {
        check_copy(size);
    }
    FOR_ROWS (size, sizes) {
        check_copy(*size);
    }
}

TEST(payload_copy_of_nothing_needs_no_data)
{
    skua_payload payload;
    memory_open();
    copy(NULL, 0, &payload);
    skua_payload_drop(&payload);
    assert_int_equal(counting_allocator_attempts(&memory), 0);
}

TEST(payload_copy_of_a_number_reads_as_one_only_if_whole)
{
    const uint64_t number = UINT64_C(0x1122334455667788);
    skua_payload payload;
    memory_open();
    copy(&number, 8, &payload);
    assert_int_equal(skua_payload_to_u64(&payload), number);
    copy(&number, 7, &payload);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
}

TEST(payload_copy_taken_elsewhere_is_freed_there)
{
    skua_payload payload;
    memory_open();
    copy(object, 50, &payload);
    skua_payload taken = skua_payload_take(&payload);
    skua_payload_drop(&payload);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    skua_payload_drop(&taken);
}

TEST(payload_copy_without_memory_is_empty)
{
    skua_payload payload;
    memory_open();
    counting_allocator_fail_from(&memory, 1);
    memset(&payload, 0xff, sizeof payload);
    assert_int_equal(payload_copy(&memory.allocator, TYPE, object, 25, &payload), SKUA_E_NO_MEMORY);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    skua_payload_drop(&payload);
    copy(object, 24, &payload);
}
