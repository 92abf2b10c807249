/* SPDX-License-Identifier: MIT */
/* Payloads of every kind: what they carry, and that what they own is dropped exactly once. */
#include "process/payload.h"

#include <setjmp.h>
#include <skua/error.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"

#define TYPE UINT32_C(0xfedcba98)

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

static int set_up(void **state)
{
    (void)state;
    memset(&drops, 0, sizeof drops);
    return 0;
}

static unsigned char object[100];

static void fill(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(i * 5 + 3);
    }
}

/* ---- the kinds ---- */

static void payload_empty_carries_only_its_type(void **state)
{
    (void)state;
    const skua_payload payload = skua_payload_empty(TYPE);
    assert_int_equal(payload.type, TYPE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_null(skua_payload_data(&payload));
    assert_int_equal(skua_payload_size(&payload), 0);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
    assert_true(skua_pid_is_none(skua_payload_to_pid(&payload)));
}

static void payload_u64_carries_its_number_inside(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, UINT64_C(0x123456789abcdef0), UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const skua_payload payload = skua_payload_u64(TYPE, values[i]);
        assert_int_equal(payload.type, TYPE);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_INLINE);
        assert_int_equal(skua_payload_size(&payload), 8);
        assert_int_equal(skua_payload_to_u64(&payload), values[i]);
        assert_memory_equal(skua_payload_data(&payload), &values[i], 8);
    }
}

static void payload_pid_carries_the_pid(void **state)
{
    (void)state;
    const skua_pid pid = {UINT64_C(0x8000000400000001)};
    const skua_payload payload = skua_payload_pid(TYPE, pid);
    assert_int_equal(payload.type, TYPE);
    assert_true(skua_pid_equal(skua_payload_to_pid(&payload), pid));
}

static void payload_owned_shows_its_bytes(void **state)
{
    (void)state;
    const skua_payload payload = skua_payload_owned(TYPE, object, sizeof object, count_drop);
    assert_int_equal(payload.type, TYPE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_OWNED);
    assert_ptr_equal(skua_payload_data(&payload), object);
    assert_int_equal(skua_payload_size(&payload), sizeof object);
    assert_int_equal(skua_payload_to_u64(&payload), 0); /* not the pointer */
    assert_true(skua_pid_is_none(skua_payload_to_pid(&payload)));
}

static void payload_pointer_shows_its_object_and_no_bytes(void **state)
{
    (void)state;
    const skua_payload payload = skua_payload_pointer(TYPE, object, count_drop);
    assert_int_equal(payload.type, TYPE);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_POINTER);
    assert_ptr_equal(skua_payload_data(&payload), object);
    assert_int_equal(skua_payload_size(&payload), 0);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
}

/* ---- drop and take ---- */

static void payload_drop_of_owned_calls_drop_exactly_once(void **state)
{
    (void)state;
    skua_payload payload = skua_payload_owned(TYPE, object, 42, count_drop);
    skua_payload_drop(&payload);
    assert_int_equal(drops.count, 1);
    assert_ptr_equal(drops.data, object);
    assert_int_equal(drops.size, 42);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    skua_payload_drop(&payload);
    assert_int_equal(drops.count, 1);
}

static void payload_drop_of_pointer_calls_drop_exactly_once(void **state)
{
    (void)state;
    skua_payload payload = skua_payload_pointer(TYPE, object, count_drop);
    skua_payload_drop(&payload);
    skua_payload_drop(&payload);
    assert_int_equal(drops.count, 1);
    assert_ptr_equal(drops.data, object);
    assert_int_equal(drops.size, 0);
}

static void payload_drop_without_function_frees_nothing(void **state)
{
    (void)state;
    skua_payload payload = skua_payload_owned(TYPE, object, sizeof object, NULL);
    skua_payload_drop(&payload);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    assert_null(skua_payload_data(&payload));
}

/* The bytes of an inline payload may look like a drop function. */
static void payload_drop_of_inline_calls_nothing(void **state)
{
    (void)state;
    skua_payload payload = skua_payload_owned(TYPE, object, 1, count_drop);
    payload.storage = SKUA_PAYLOAD_INLINE;
    payload.inline_size = SKUA_PAYLOAD_INLINE_SIZE;
    skua_payload_drop(&payload);
    assert_int_equal(drops.count, 0);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    payload = skua_payload_empty(TYPE);
    skua_payload_drop(&payload);
    assert_int_equal(drops.count, 0);
}

static void payload_take_moves_the_ownership(void **state)
{
    (void)state;
    skua_payload payload = skua_payload_owned(TYPE, object, 42, count_drop);
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

static void payload_take_of_inline_keeps_the_number(void **state)
{
    (void)state;
    skua_payload payload = skua_payload_u64(TYPE, 77);
    const skua_payload taken = skua_payload_take(&payload);
    assert_int_equal(skua_payload_to_u64(&taken), 77);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
}

static void payload_drop_all_drops_each(void **state)
{
    (void)state;
    skua_payload payloads[] = {
        skua_payload_owned(TYPE, object, 1, count_drop),
        skua_payload_u64(TYPE, 5),
        skua_payload_empty(TYPE),
        skua_payload_pointer(TYPE, object, count_drop),
    };
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

static void check_copy(struct counting_allocator *memory, size_t size)
{
    static unsigned char source[5000];
    static unsigned char expected[sizeof source];
    fill(source, size);
    fill(expected, size);
    skua_payload payload;
    memset(&payload, 0xff, sizeof payload);
    assert_int_equal(payload_copy(&memory->allocator, TYPE, source, size, &payload), 0);
    memset(source, 0, size); /* the source may go */
    assert_int_equal(payload.type, TYPE);
    assert_int_equal(skua_payload_size(&payload), size);
    assert_memory_equal(skua_payload_data(&payload), expected, size);
    const bool fits = size <= SKUA_PAYLOAD_INLINE_SIZE;
    assert_int_equal(payload.storage, fits ? SKUA_PAYLOAD_INLINE : SKUA_PAYLOAD_OWNED);
    assert_int_equal(counting_allocator_live_blocks(memory), fits ? 0 : 1);
    skua_payload_drop(&payload);
    assert_true(counting_allocator_is_clean(memory));
}

static void payload_copy_up_to_24_bytes_is_inside(void **state)
{
    (void)state;
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    for (size_t size = 1; size <= SKUA_PAYLOAD_INLINE_SIZE; size++) {
        check_copy(&memory, size);
    }
    assert_int_equal(counting_allocator_attempts(&memory), 0);
}

static void payload_copy_of_more_is_allocated_and_freed(void **state)
{
    (void)state;
    static const size_t sizes[] = {25, 26, 31, 32, 33, 100, 4096, 5000};
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_copy(&memory, sizes[i]);
        assert_int_equal(counting_allocator_attempts(&memory), i + 1);
    }
}

static void payload_copy_is_aligned_for_any_type(void **state)
{
    (void)state;
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    skua_payload payload;
    assert_int_equal(payload_copy(&memory.allocator, TYPE, object, 64, &payload), 0);
    assert_int_equal((uintptr_t)skua_payload_data(&payload) % alignof(max_align_t), 0);
    skua_payload_drop(&payload);
    assert_true(counting_allocator_is_clean(&memory));
}

static void payload_copy_of_nothing_needs_no_data(void **state)
{
    (void)state;
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    skua_payload payload;
    assert_int_equal(payload_copy(&memory.allocator, TYPE, NULL, 0, &payload), 0);
    assert_int_equal(payload.type, TYPE);
    assert_int_equal(skua_payload_size(&payload), 0);
    skua_payload_drop(&payload);
    assert_int_equal(counting_allocator_attempts(&memory), 0);
}

static void payload_copy_of_a_number_reads_as_one_only_if_whole(void **state)
{
    (void)state;
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    const uint64_t number = UINT64_C(0x1122334455667788);
    skua_payload payload;
    assert_int_equal(payload_copy(&memory.allocator, TYPE, &number, 8, &payload), 0);
    assert_int_equal(skua_payload_to_u64(&payload), number);
    assert_int_equal(payload_copy(&memory.allocator, TYPE, &number, 7, &payload), 0);
    assert_int_equal(skua_payload_to_u64(&payload), 0);
}

static void payload_copy_taken_elsewhere_is_freed_there(void **state)
{
    (void)state;
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    skua_payload payload;
    assert_int_equal(payload_copy(&memory.allocator, TYPE, object, 50, &payload), 0);
    skua_payload taken = skua_payload_take(&payload);
    skua_payload_drop(&payload);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    skua_payload_drop(&taken);
    assert_true(counting_allocator_is_clean(&memory));
}

static void payload_copy_without_memory_is_empty(void **state)
{
    (void)state;
    struct counting_allocator memory;
    counting_allocator_init(&memory);
    counting_allocator_fail_from(&memory, 1);
    skua_payload payload;
    memset(&payload, 0xff, sizeof payload);
    assert_int_equal(payload_copy(&memory.allocator, TYPE, object, 25, &payload), SKUA_E_NO_MEMORY);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    skua_payload_drop(&payload);
    assert_int_equal(payload_copy(&memory.allocator, TYPE, object, 24, &payload), 0);
    assert_true(counting_allocator_is_clean(&memory));
}

#define PAYLOAD_TEST(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAYLOAD_TEST(payload_empty_carries_only_its_type),
        PAYLOAD_TEST(payload_u64_carries_its_number_inside),
        PAYLOAD_TEST(payload_pid_carries_the_pid),
        PAYLOAD_TEST(payload_owned_shows_its_bytes),
        PAYLOAD_TEST(payload_pointer_shows_its_object_and_no_bytes),
        PAYLOAD_TEST(payload_drop_of_owned_calls_drop_exactly_once),
        PAYLOAD_TEST(payload_drop_of_pointer_calls_drop_exactly_once),
        PAYLOAD_TEST(payload_drop_without_function_frees_nothing),
        PAYLOAD_TEST(payload_drop_of_inline_calls_nothing),
        PAYLOAD_TEST(payload_take_moves_the_ownership),
        PAYLOAD_TEST(payload_take_of_inline_keeps_the_number),
        PAYLOAD_TEST(payload_drop_all_drops_each),
        PAYLOAD_TEST(payload_copy_up_to_24_bytes_is_inside),
        PAYLOAD_TEST(payload_copy_of_more_is_allocated_and_freed),
        PAYLOAD_TEST(payload_copy_is_aligned_for_any_type),
        PAYLOAD_TEST(payload_copy_of_nothing_needs_no_data),
        PAYLOAD_TEST(payload_copy_of_a_number_reads_as_one_only_if_whole),
        PAYLOAD_TEST(payload_copy_taken_elsewhere_is_freed_there),
        PAYLOAD_TEST(payload_copy_without_memory_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
