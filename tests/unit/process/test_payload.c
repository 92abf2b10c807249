/* SPDX-License-Identifier: MIT */
/* Payloads of every kind: what they carry, and that what they own is dropped exactly once. */
#include "process/payload.h"

#include <pthread.h>
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
        {skua_payload_static(TYPE, object, 9), SKUA_PAYLOAD_OWNED, object, 9, 0},
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
    assert_int_equal(payload.storage, SKUA_PAYLOAD_TAKEN);
    assert_null(skua_payload_data(&payload));
    assert_int_equal(skua_payload_size(&payload), 0);
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

TEST(payload_discard_all_drops_each_and_marks_it_as_taken)
{
    skua_payload payloads[] = {owned(1), skua_payload_u64(TYPE, 5), skua_payload_empty(TYPE),
                               pointer()};
    reset_drops();
    payload_discard_all(payloads, 0);
    assert_int_equal(drops.count, 0);
    payload_discard_all(payloads, 4);
    assert_int_equal(drops.count, 2);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(payloads[i].storage, SKUA_PAYLOAD_TAKEN);
    }
    payload_discard_all(payloads, 4);
    payload_discard(&payloads[0]);
    payload_discard(NULL);
    assert_int_equal(drops.count, 2);
}

TEST(payload_that_is_refused_says_why)
{
    const struct {
        skua_payload payload;
        int error;
    } rows[] = {
        {skua_payload_empty(TYPE), 0},
        {owned(50), 0},
        {owned(51), SKUA_E_PAYLOAD_SIZE},
        {pointer(), 0},
        {skua_payload_static(TYPE, object, 51), SKUA_E_PAYLOAD_SIZE},
        {{.storage = SKUA_PAYLOAD_TAKEN}, SKUA_E_TAKEN},
    };
    FOR_ROWS (row, rows) {
        assert_int_equal(payload_refuse(&row->payload, 50), row->error);
    }
}

/* ---- getters that check ---- */

TEST(payload_getters_want_type_and_size)
{
    const skua_payload number = skua_payload_u64(TYPE, 7);
    const skua_payload bytes = owned(42);
    skua_payload taken = skua_payload_u64(TYPE, 7);
    (void)skua_payload_take(&taken);
    uint64_t value = 1;
    skua_pid pid = {1};
    const void *data = object;
    assert_int_equal(skua_payload_get_u64(&number, TYPE, &value), 0);
    assert_int_equal(value, 7);
    assert_int_equal(skua_payload_get_u64(&number, TYPE + 1, &value), SKUA_E_PAYLOAD_TYPE);
    assert_int_equal(value, 0);
    assert_int_equal(skua_payload_get_u64(&bytes, TYPE, &value), SKUA_E_PAYLOAD_TYPE);
    assert_int_equal(skua_payload_get_u64(&taken, TYPE, &value), SKUA_E_PAYLOAD_TYPE);
    assert_int_equal(skua_payload_get_pid(&number, TYPE, &pid), 0);
    assert_int_equal(pid.bits, 7);
    assert_int_equal(skua_payload_get_pid(&taken, TYPE, &pid), SKUA_E_PAYLOAD_TYPE);
    assert_true(skua_pid_is_none(pid));
    assert_int_equal(skua_payload_get_bytes(&bytes, TYPE, 42, &data), 0);
    assert_ptr_equal(data, object);
    assert_int_equal(skua_payload_get_bytes(&bytes, TYPE, 41, &data), SKUA_E_PAYLOAD_TYPE);
    assert_null(data);
    assert_int_equal(skua_payload_get_bytes(&bytes, TYPE + 1, 42, &data), SKUA_E_PAYLOAD_TYPE);
    const skua_payload object_payload = pointer();
    assert_int_equal(skua_payload_get_bytes(&object_payload, TYPE, 0, &data), SKUA_E_PAYLOAD_TYPE);
    assert_int_equal(skua_payload_get_bytes(&taken, TYPE, 0, &data), SKUA_E_PAYLOAD_TYPE);
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

/* ---- memory for the caller to fill ---- */

TEST(payload_alloc_gives_bytes_of_its_own)
{
    skua_payload payload;
    memory_open();
    assert_int_equal(payload_alloc(&memory.allocator, TYPE, 100, &payload), 0);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_OWNED);
    assert_int_equal(skua_payload_size(&payload), 100);
    assert_int_equal((uintptr_t)payload.as.owned.data % alignof(max_align_t), 0);
    memset(payload.as.owned.data, 7, 100);
    skua_payload_drop(&payload);
}

TEST(payload_alloc_of_more_than_there_is_fails)
{
    static const size_t sizes[] = {PTRDIFF_MAX, SIZE_MAX, SIZE_MAX - 8};
    FOR_ROWS (size, sizes) {
        skua_payload payload;
        memory_open();
        assert_int_equal(payload_alloc(&memory.allocator, TYPE, *size, &payload), SKUA_E_NO_MEMORY);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        assert_int_equal(counting_allocator_attempts(&memory), 0);
    }
}

/* ---- one thing to many ---- */

#define OWNERS 10

static void share(size_t size, skua_payload *payload)
{
    memset(payload, 0xff, sizeof *payload);
    assert_int_equal(payload_share(&memory.allocator, TYPE, object, size, payload), 0);
    assert_int_equal(payload->type, TYPE);
    assert_int_equal(skua_payload_size(payload), size);
}

/* In whatever order they are dropped, the last one frees. */
TEST(payload_shared_is_freed_by_its_last_owner)
{
    FOR_ROUNDS (first, OWNERS) {
        skua_payload owners[OWNERS];
        memory_open();
        fill(object, sizeof object);
        share(sizeof object, &owners[0]);
        for (size_t i = 1; i < OWNERS; i++) {
            assert_int_equal(skua_payload_ref(&owners[i / 2], &owners[i]), 0);
            assert_int_equal(owners[i].storage, SKUA_PAYLOAD_SHARED);
            assert_ptr_equal(skua_payload_data(&owners[i]), skua_payload_data(&owners[0]));
        }
        for (size_t i = 0; i < OWNERS; i++) {
            skua_payload *owner = &owners[(i + first) % OWNERS];
            assert_int_equal(counting_allocator_live_blocks(&memory), 1);
            assert_memory_equal(skua_payload_data(owner), object, sizeof object);
            skua_payload_drop(owner);
            skua_payload_drop(owner); /* is no owner any more */
        }
        assert_int_equal(counting_allocator_live_blocks(&memory), 0);
        assert_int_equal(counting_allocator_attempts(&memory), 1);
    }
}

TEST(payload_shared_that_is_small_lies_inside)
{
    skua_payload payload;
    skua_payload another;
    memory_open();
    share(SKUA_PAYLOAD_INLINE_SIZE, &payload);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_INLINE);
    assert_int_equal(skua_payload_ref(&payload, &another), 0);
    assert_memory_equal(&payload, &another, sizeof payload);
    assert_int_equal(counting_allocator_attempts(&memory), 0);
}

TEST(payload_shared_without_memory_is_empty)
{
    skua_payload payload;
    memory_open();
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(payload_share(&memory.allocator, TYPE, object, 25, &payload),
                     SKUA_E_NO_MEMORY);
    assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
    skua_payload_drop(&payload);
}

TEST(payload_ref_works_for_what_is_shared_or_owns_nothing)
{
    skua_payload taken = owned(1);
    (void)skua_payload_take(&taken);
    const struct {
        skua_payload payload;
        int error;
    } rows[] = {
        {skua_payload_empty(TYPE), 0},
        {skua_payload_u64(TYPE, 5), 0},
        {skua_payload_static(TYPE, object, 60), 0},
        {skua_payload_pointer(TYPE, object, NULL), 0},
        {owned(60), SKUA_E_NOT_SHARED},
        {pointer(), SKUA_E_NOT_SHARED},
        {taken, SKUA_E_TAKEN},
    };
    reset_drops();
    FOR_ROWS (row, rows) {
        skua_payload another;
        memset(&another, 0xff, sizeof another);
        assert_int_equal(skua_payload_ref(&row->payload, &another), row->error);
        if (row->error == 0) {
            assert_memory_equal(&another, &row->payload, sizeof another);
        } else {
            assert_int_equal(another.storage, SKUA_PAYLOAD_EMPTY);
        }
        skua_payload_drop(&another);
        assert_int_equal(drops.count, 0);
    }
    skua_payload nothing = owned(1);
    assert_int_equal(skua_payload_ref(NULL, &nothing), SKUA_E_INVALID);
    assert_int_equal(nothing.storage, SKUA_PAYLOAD_EMPTY);
    assert_int_equal(skua_payload_ref(&nothing, NULL), SKUA_E_INVALID);
}

/* ---- threads that share ---- */

#define THREADS 4
#define REFS    20000

/* Each has an owner of its own, makes many more, reads through the last and drops them all. */
static void *use_shared(void *arg)
{
    skua_payload *own = arg;
    for (uint32_t i = 0; i < REFS; i++) {
        skua_payload next;
        if (skua_payload_ref(own, &next) != 0) {
            return NULL; /* so its size is wrong in the end */
        }
        skua_payload_drop(own);
        *own = next;
    }
    const unsigned char *bytes = skua_payload_data(own);
    const bool is_whole = bytes[0] == object[0] && bytes[sizeof object - 1] == object[99];
    skua_payload_drop(own);
    return is_whole ? own : NULL;
}

TEST(payload_shared_by_threads_is_freed_once)
{
    FOR_ROUNDS (round, 5) {
        pthread_t threads[THREADS];
        skua_payload owners[THREADS];
        memory_open();
        fill(object, sizeof object);
        share(sizeof object, &owners[0]);
        for (size_t i = 1; i < THREADS; i++) {
            assert_int_equal(skua_payload_ref(&owners[0], &owners[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, use_shared, &owners[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            void *result;
            assert_int_equal(pthread_join(threads[i], &result), 0);
            assert_ptr_equal(result, &owners[i]);
        }
        assert_int_equal(counting_allocator_live_blocks(&memory), 0);
    }
}

/* ---- memory that is used again ---- */

static struct payload_memory *spare;

static skua_payload copy_reusing(size_t size)
{
    skua_payload payload;
    fill(object, size);
    assert_int_equal(payload_copy_reusing(&memory.allocator, &spare, object, size, &payload), 0);
    assert_int_equal(skua_payload_size(&payload), size);
    assert_memory_equal(skua_payload_data(&payload), object, size);
    return payload;
}

TEST(memory_of_a_payload_is_used_for_the_next_that_is_not_much_smaller)
{
    const struct {
        size_t first, second;
        bool fits;
    } rows[] = {{64, 64, true},   {64, 63, true},  {64, 32, true},  {64, 31, false},
                {64, 65, false},  {64, 24, false}, {24, 64, false}, {100, 50, true},
                {100, 49, false}, {25, 25, true}};
    memory_open();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        spare = NULL;
        skua_payload payload = copy_reusing(rows[i].first);
        const void *data = payload.as.owned.data;
        payload_drop_for_reuse(&memory.allocator, &spare, &payload);
        assert_int_equal(payload.storage, SKUA_PAYLOAD_EMPTY);
        assert_int_equal(spare != NULL, rows[i].first > SKUA_PAYLOAD_INLINE_SIZE);
        payload = copy_reusing(rows[i].second);
        assert_int_equal(payload.as.owned.data == data && spare == NULL, rows[i].fits);
        skua_payload_drop(&payload); /* with all the memory that it has */
        payload_free_spare(spare);
        assert_int_equal(counting_allocator_live_blocks(&memory), 0);
    }
}

TEST(only_little_memory_of_the_same_allocator_is_kept)
{
    struct allocator other;
    memory_open();
    other = memory.allocator;
    spare = NULL;
    skua_payload payload = copy_reusing(sizeof object);
    payload_drop_for_reuse(&other, &spare, &payload);
    assert_null(spare);
    share(sizeof object, &payload);
    payload_drop_for_reuse(&memory.allocator, &spare, &payload);
    assert_null(spare);
    assert_int_equal(payload_alloc(&memory.allocator, TYPE, 1025, &payload), 0);
    payload_drop_for_reuse(&memory.allocator, &spare, &payload);
    assert_null(spare);
    reset_drops();
    payload = owned(1);
    payload_drop_for_reuse(&memory.allocator, &spare, &payload);
    assert_null(spare);
    assert_int_equal(drops.count, 1);
    assert_int_equal(counting_allocator_live_blocks(&memory), 0);
}

TEST(newest_memory_is_kept)
{
    memory_open();
    spare = NULL;
    skua_payload first = copy_reusing(64);
    skua_payload second = copy_reusing(80);
    const void *data = second.as.owned.data;
    payload_drop_for_reuse(&memory.allocator, &spare, &first);
    payload_drop_for_reuse(&memory.allocator, &spare, &second);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1);
    skua_payload third = copy_reusing(80);
    assert_ptr_equal(third.as.owned.data, data);
    skua_payload_drop(&third);
    payload_free_spare(NULL);
    assert_int_equal(counting_allocator_live_blocks(&memory), 0);
}
