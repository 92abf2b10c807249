/* SPDX-License-Identifier: MIT */
/* Open calls by their tags: all of one tag are found, through the list or through an index,
 * whatever has come and gone. */
#include "base/random.h"
#include "call_rig.h"
#include "dispatch/tag_index.h"

#define MANY  200
#define INDEX 32 /* so many calls have one */

static const skua_pid owner = {UINT64_C(0x0010000004000001)};
static struct process process;

/* What is open, by the books. */
static struct {
    uint32_t call[MANY];
    uint64_t tag[MANY];
    bool is_cancelled[MANY];
    uint32_t count;
} books;

static void close_rig(void)
{
    call_drop_index_owner(&memory.allocator, &call_rig.events, &process);
}

static void open_rig(void)
{
    call_rig_open();
    process = (struct process){.calls = OBJECT_NONE};
    books.count = 0;
    test_at_end(close_rig);
}

static uint32_t make_call(uint64_t tag)
{
    const uint32_t index = take_node();
    node_at(index)->as.call.tag = tag;
    (void)call_open_owner(node_at(index), index, owner);
    return index;
}

static void link_call(uint32_t index)
{
    call_link_owner(&memory.allocator, &call_rig.events, &process, index);
}

static void begin(uint64_t tag)
{
    const uint32_t index = make_call(tag);
    link_call(index);
    books.call[books.count] = index;
    books.tag[books.count] = tag;
    books.is_cancelled[books.count++] = false;
}

/* Its completion is delivered. */
static void end_at(uint32_t at)
{
    const uint32_t index = books.call[at];
    call_unlink_owner(&call_rig.events, &process, node_at(index), index);
    give_node(index);
    books.count--;
    books.call[at] = books.call[books.count];
    books.tag[at] = books.tag[books.count];
    books.is_cancelled[at] = books.is_cancelled[books.count];
}

static uint32_t number_of(uint32_t index)
{
    uint32_t at = 0;
    while (at < books.count && books.call[at] != index) {
        at++;
    }
    assert_true(at < books.count);
    return at;
}

static bool has_index(void)
{
    const struct annex *annex = annex_of(&call_rig.events, &process);
    return annex != NULL && annex->tags != NULL;
}

static uint32_t first_with(uint64_t tag)
{
    return call_first_owner(&memory.allocator, &call_rig.events, &call_rig.cache, &process, tag);
}

/* As a step that takes back a tag: each call of it is met once, and none that is not. */
static void cancel(uint64_t tag)
{
    bool is_met[MANY] = {false};
    for (uint32_t index = first_with(tag); index != OBJECT_NONE;
         index = call_next_owner(&call_rig.events, &process, index, tag)) {
        const uint32_t at = number_of(index);
        assert_false(is_met[at]);
        assert_int_equal(books.tag[at], tag);
        assert_true(!has_index() || !books.is_cancelled[at]); /* an index has only the others */
        is_met[at] = true;
        node_at(index)->as.call.previous |= CALL_ENDS;
    }
    for (uint32_t at = 0; at < books.count; at++) {
        assert_true(is_met[at] || books.is_cancelled[at] || books.tag[at] != tag);
        books.is_cancelled[at] = books.is_cancelled[at] || is_met[at];
    }
}

static uint32_t cancelled(void)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < books.count; at++) {
        count += books.is_cancelled[at];
    }
    return count;
}

/* So many calls with the tags 0, 1, 2, 0, 1, 2 ... */
static void begin_many(uint32_t count)
{
    open_rig();
    for (uint32_t i = 0; i < count; i++) {
        begin(i % 3);
    }
}

/* A walk through the list for few, an index for many. */
TEST(calls_are_found_by_their_tags)
{
    static const uint32_t counts[] = {0, 1, 2, 3, INDEX - 1, INDEX, INDEX + 1, MANY};
    FOR_ROWS (count, counts) {
        begin_many(*count);
        cancel(1);
        assert_int_equal(cancelled(), (*count + 1) / 3);
        cancel(3);
        assert_int_equal(cancelled(), (*count + 1) / 3);
        cancel(0);
        assert_int_equal(cancelled(), (*count + 1) / 3 + (*count + 2) / 3);
        assert_int_equal(has_index(), *count >= INDEX);
    }
}

TEST(calls_that_come_after_the_index_was_made_are_found)
{
    begin_many(MANY - 10);
    cancel(7); /* makes it */
    assert_true(has_index());
    for (uint64_t i = 0; i < 5; i++) {
        begin(2);
        begin(8);
    }
    cancel(8);
    assert_int_equal(cancelled(), 5);
    cancel(2);
    assert_int_equal(cancelled(), 5 + 5 + (MANY - 10) / 3);
}

/* What was taken back waits to be delivered; a later call with its tag is another. */
TEST(call_with_the_tag_of_one_that_was_taken_back_is_found_alone)
{
    begin_many(MANY - 10);
    cancel(1);
    const uint32_t before = cancelled();
    begin(1);
    begin(1);
    cancel(1);
    assert_int_equal(cancelled(), before + 2);
    while (books.count > 0) {
        end_at(0);
    }
    assert_int_equal(*annex_calls(&call_rig.events, &process), OBJECT_NONE);
    assert_int_equal(annex_of(&call_rig.events, &process)->tags->count, 0);
}

TEST(calls_are_found_without_memory_for_an_index)
{
    static const uint64_t failing[] = {1, 2};
    FOR_ROWS (allocation, failing) {
        begin_many(MANY);
        counting_allocator_fail_from(&memory, *allocation);
        cancel(1);
        counting_allocator_fail_never(&memory);
        assert_int_equal(cancelled(), (MANY + 1) / 3);
    }
}

TEST(index_that_cannot_grow_is_given_up_and_the_list_has_all)
{
    enum { TAGS = 2000 };
    uint32_t added = 0;
    begin_many(INDEX);
    cancel(7);
    while (has_index()) {
        const uint32_t index = make_call(1000 + added);
        counting_allocator_fail_from(&memory, 1);
        link_call(index);
        counting_allocator_fail_never(&memory);
        assert_in_range(++added, 1, TAGS);
    }
    counting_allocator_fail_from(&memory, 1);
    for (uint32_t i = 0; i < added; i++) {
        const uint32_t index = first_with(1000 + i);
        assert_int_not_equal(index, OBJECT_NONE);
        assert_int_equal(node_at(index)->as.call.tag, 1000 + i);
    }
    counting_allocator_fail_never(&memory);
    cancel(2);
    assert_int_equal(cancelled(), INDEX / 3);
}

static void act_randomly(uint64_t *random, uint32_t tag_count)
{
    const uint64_t tag = random_below(random, tag_count);
    const uint32_t what = random_below(random, 100);
    if (what < 60 && books.count < MANY) {
        begin(tag);
    } else if (what < 97 && books.count > 0) {
        end_at(random_below(random, books.count));
    } else {
        cancel(tag);
    }
}

TEST(calls_that_come_and_go_at_random_are_found)
{
    static const uint32_t tag_counts[] = {1, 4, 60, 5000};
    FOR_ROUNDS (seed, 24) {
        uint64_t random = random_mix(seed);
        open_rig();
        for (uint32_t i = 0; i < 3000; i++) {
            act_randomly(&random, tag_counts[seed % COUNT_OF(tag_counts)]);
        }
        while (books.count > 0) {
            cancel(books.tag[0]);
            end_at(random_below(&random, books.count));
        }
        assert_int_equal(*annex_calls(&call_rig.events, &process), OBJECT_NONE);
    }
}
