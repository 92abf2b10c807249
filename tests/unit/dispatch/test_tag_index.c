/* SPDX-License-Identifier: MIT */
/* The index of tags: each leads to one call. Against a plain list. */
#include "dispatch/tag_index.h"

#include "base/random.h"
#include "call_rig.h"

#define CALLS_MAX 4000

static struct tag_index *tags; /* that of the current test */

static void close_index(void)
{
    tag_index_destroy(&memory.allocator, tags);
    tags = NULL;
}

static void open_index(uint32_t calls)
{
    call_rig_open();
    tags = tag_index_create(&memory.allocator, calls);
    assert_non_null(tags);
    test_at_end(close_index);
}

static uint32_t make_call(uint64_t tag)
{
    const uint32_t call = take_node();
    node_at(call)->as.call.tag = tag;
    return call;
}

static uint32_t add_new(uint64_t tag)
{
    const uint32_t call = make_call(tag);
    assert_true(tag_index_add(&memory.allocator, &tags, tag, call));
    return call;
}

/* The call of a tag. */
static uint32_t find(uint64_t tag)
{
    const struct tag_entry *entry = tag_index_find(tags, &call_rig.events, tag);
    return entry != NULL ? entry->call : OBJECT_NONE;
}

/* The same, and removes it. */
static uint32_t take(uint64_t tag)
{
    const uint32_t call = find(tag);
    if (call != OBJECT_NONE) {
        tag_index_remove(tags, tag_index_find(tags, &call_rig.events, tag));
    }
    return call;
}

TEST(index_without_calls_has_none)
{
    open_index(0);
    assert_int_equal(find(0), OBJECT_NONE);
    assert_int_equal(find(UINT64_MAX), OBJECT_NONE);
    assert_int_equal(tags->count, 0);
}

TEST(tag_is_found_until_it_is_removed)
{
    open_index(0);
    const uint32_t call = add_new(5);
    assert_int_equal(find(6), OBJECT_NONE);
    assert_int_equal(find(5), call);
    assert_int_equal(find(5), call);
    assert_int_equal(take(5), call);
    assert_int_equal(find(5), OBJECT_NONE);
    assert_int_equal(tags->count, 0);
}

/* As when the first of several calls with one tag has ended. */
TEST(entry_can_be_led_to_another_call)
{
    open_index(0);
    (void)add_new(5);
    const uint32_t other = make_call(5);
    tag_index_find(tags, &call_rig.events, 5)->call = other;
    assert_int_equal(find(5), other);
    assert_int_equal(tags->count, 1);
}

/* Two tags whose hashes are equal, all 32 bits of them. */
static void find_twins(uint64_t twins[2])
{
    enum { PLACES = 1 << 18 };
    uint64_t *seen = test_alloc(PLACES * sizeof *seen);
    for (uint64_t tag = 1;; tag++) {
        uint64_t *place = &seen[(uint32_t)random_mix(tag) % PLACES];
        if (*place != 0 && (uint32_t)random_mix(*place) == (uint32_t)random_mix(tag)) {
            twins[0] = *place;
            twins[1] = tag;
            return;
        }
        *place = tag;
    }
}

TEST(tags_with_one_hash_are_told_apart)
{
    uint64_t twins[2];
    open_index(0);
    find_twins(twins);
    const uint32_t first = add_new(twins[0]);
    const uint32_t second = add_new(twins[1]);
    assert_int_equal(take(twins[1]), second);
    assert_int_equal(take(twins[1]), OBJECT_NONE);
    assert_int_equal(take(twins[0]), first);
}

/* Made for so many, it needs no memory for them. */
TEST(index_has_room_for_the_calls_it_was_made_for)
{
    static const uint32_t counts[] = {0, 1, 16, 32, 33, 1000};
    FOR_ROWS (count, counts) {
        open_index(*count);
        give_node(take_node());
        for (uint32_t i = 0; i < *count; i++) {
            const uint32_t call = make_call(i);
            counting_allocator_fail_from(&memory, 1);
            assert_true(tag_index_add(&memory.allocator, &tags, i, call));
            counting_allocator_fail_never(&memory);
        }
        for (uint32_t i = 0; i < *count; i++) {
            assert_int_not_equal(take(i), OBJECT_NONE);
        }
    }
}

TEST(index_grows_and_keeps_what_it_has)
{
    uint32_t calls[CALLS_MAX];
    open_index(0);
    const uint32_t before = tags->mask;
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        calls[i] = add_new(i * UINT64_C(0x100000000));
        assert_true(tags->count <= tags->mask / 2 + 1);
    }
    assert_true(tags->mask > before);
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        assert_int_equal(take(i * UINT64_C(0x100000000)), calls[i]);
    }
    assert_int_equal(tags->count, 0);
}

/* It is full and stays as it is; the caller does without it. */
TEST(add_without_memory_fails_and_changes_nothing)
{
    open_index(0);
    uint32_t added = 0;
    (void)make_call(0);
    counting_allocator_fail_from(&memory, 1);
    for (;; added++) {
        counting_allocator_fail_never(&memory);
        const uint32_t call = make_call(added);
        counting_allocator_fail_from(&memory, 1);
        if (!tag_index_add(&memory.allocator, &tags, added, call)) {
            break;
        }
    }
    assert_int_equal(tags->count, added);
    assert_in_range(added, tags->mask / 2, tags->mask);
    counting_allocator_fail_never(&memory);
    for (uint32_t i = 0; i < added; i++) {
        assert_int_not_equal(take(i), OBJECT_NONE);
    }
}

TEST(create_without_memory_fails)
{
    memory_open();
    counting_allocator_fail_from(&memory, 1);
    assert_null(tag_index_create(&memory.allocator, 10));
    tag_index_destroy(&memory.allocator, NULL); /* as nothing does */
    counting_allocator_fail_never(&memory);
}

/* ---- against a list ---- */

static struct {
    uint32_t call;
    uint64_t tag;
} list[CALLS_MAX];
static uint32_t list_count;

static uint32_t find_in_list(uint64_t tag)
{
    uint32_t at = 0;
    while (at < list_count && list[at].tag != tag) {
        at++;
    }
    return at;
}

/* Adds a tag that is not there, or takes one that is. */
static void change(uint64_t tag)
{
    const uint32_t at = find_in_list(tag);
    if (at < list_count) {
        assert_int_equal(take(tag), list[at].call);
        give_node(list[at].call);
        list[at] = list[--list_count];
    } else if (list_count < CALLS_MAX) {
        assert_int_equal(find(tag), OBJECT_NONE);
        list[list_count].tag = tag;
        list[list_count++].call = add_new(tag);
    }
    assert_int_equal(tags->count, list_count);
}

/* Few tags come and go again and again, many make long tables. */
static void run_randomly(uint64_t seed)
{
    static const uint32_t tag_counts[] = {1, 40, 300, 1000000};
    uint64_t random = random_mix(seed);
    const uint32_t tag_count = tag_counts[seed % COUNT_OF(tag_counts)];
    list_count = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        change(random_below(&random, tag_count));
        const uint64_t tag = random_below(&random, tag_count);
        const uint32_t at = find_in_list(tag);
        assert_int_equal(find(tag), at < list_count ? list[at].call : OBJECT_NONE);
    }
    while (list_count > 0) {
        change(list[random_below(&random, list_count)].tag);
    }
}

TEST(index_agrees_with_a_list)
{
    FOR_ROUNDS (seed, 12) {
        open_index(0);
        run_randomly(seed);
    }
}
