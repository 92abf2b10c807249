/* SPDX-License-Identifier: MIT */
/* The list in the upper half of a word: order, gate, and a push that loses a race. The race is made
 * on one thread, by a gate that changes the word while it decides. */
#include "concurrent/event_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counting_allocator.h"

#define TAG UINT32_C(0xfedcba98)

struct node {
    struct pool_link link; /* while free */
    uint32_t number;
    uint32_t next; /* not at the beginning, so that a wrong offset shows */
    char rest[48];
};

struct fixture {
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache cache;
    atomic_u64 word;
};

static void construct(void *object, uint32_t index, uint32_t floor)
{
    (void)floor;
    ((struct node *)object)->number = index;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.word = event_list_word(OBJECT_NONE, TAG)};
    counting_allocator_init(&fixture.memory);
    *state = &fixture;
    const bool ready =
        object_pool_init(&fixture.pool, &fixture.memory.allocator,
                         &(struct object_pool_shape){
                             .layout = {sizeof(struct node), offsetof(struct node, link)},
                             .limit = 1000,
                             .cache_count = 1,
                             .construct = construct,
                         });
    return ready ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    object_pool_deinit(&fixture->pool);
    return counting_allocator_is_clean(&fixture->memory) ? 0 : -1;
}

static struct node *node_at(struct fixture *fixture, uint32_t index)
{
    return object_pool_at(&fixture->pool, index);
}

static uint32_t take_node(struct fixture *fixture)
{
    uint32_t index = OBJECT_NONE;
    assert_int_equal(
        object_acquire_owner(&fixture->pool, fixture->pool.shape.layout, &fixture->cache, &index),
        OBJECT_POOL_OK);
    return index;
}

static enum event_list_verdict push(struct fixture *fixture, uint32_t index, event_list_gate *gate,
                                    uint32_t arg)
{
    return event_list_push_any(&fixture->word, index, &node_at(fixture, index)->next, gate, arg);
}

static uint32_t reverse(struct fixture *fixture, uint32_t first)
{
    return event_list_reverse(&fixture->pool, fixture->pool.shape.layout, first,
                              offsetof(struct node, next));
}

/* ---- gates ---- */

static enum event_list_verdict admit(uint32_t *tag, uint32_t arg)
{
    (void)tag;
    (void)arg;
    return EVENT_LIST_ADDED;
}

static enum event_list_verdict admit_and_add(uint32_t *tag, uint32_t arg)
{
    *tag += arg;
    return EVENT_LIST_ADDED;
}

static enum event_list_verdict leave_and_add(uint32_t *tag, uint32_t arg)
{
    *tag += arg;
    return EVENT_LIST_CALLER;
}

static enum event_list_verdict refuse_and_spoil(uint32_t *tag, uint32_t arg)
{
    *tag = arg;
    return EVENT_LIST_REFUSED;
}

/* ---- tests ---- */

static void event_list_word_holds_first_and_tag_apart(void **state)
{
    (void)state;
    const uint64_t word = event_list_word(UINT32_C(0x89abcdef), UINT32_C(0xf1234567));
    assert_int_equal(event_list_first(word), UINT32_C(0x89abcdef));
    assert_int_equal(event_list_tag(word), UINT32_C(0xf1234567));
}

static void event_list_push_links_newest_first(void **state)
{
    struct fixture *fixture = *state;
    uint32_t nodes[5];
    for (size_t i = 0; i < 5; i++) {
        nodes[i] = take_node(fixture);
        assert_int_equal(push(fixture, nodes[i], admit, 0), EVENT_LIST_ADDED);
    }
    uint32_t index = event_list_first(load_relaxed(&fixture->word));
    for (size_t i = 5; i-- > 0;) {
        assert_int_equal(index, nodes[i]);
        index = node_at(fixture, index)->next;
    }
    assert_int_equal(index, OBJECT_NONE);
    assert_int_equal(event_list_tag(load_relaxed(&fixture->word)), TAG);
}

static void event_list_gate_gets_its_argument_and_sets_the_tag(void **state)
{
    struct fixture *fixture = *state;
    store_relaxed(&fixture->word, event_list_word(OBJECT_NONE, 10));
    assert_int_equal(push(fixture, take_node(fixture), admit_and_add, 5), EVENT_LIST_ADDED);
    assert_int_equal(event_list_tag(load_relaxed(&fixture->word)), 15);
    assert_int_equal(push(fixture, take_node(fixture), admit_and_add, UINT32_MAX),
                     EVENT_LIST_ADDED);
    assert_int_equal(event_list_tag(load_relaxed(&fixture->word)), 14);
}

static void event_list_refused_push_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(push(fixture, take_node(fixture), admit, 0), EVENT_LIST_ADDED);
    const uint64_t before = load_relaxed(&fixture->word);
    const uint32_t index = take_node(fixture);
    node_at(fixture, index)->next = 99;
    assert_int_equal(push(fixture, index, refuse_and_spoil, 3), EVENT_LIST_REFUSED);
    assert_int_equal(node_at(fixture, index)->next, 99);
    assert_int_equal(load_relaxed(&fixture->word), before);
}

/* The node is its pusher's, the list stays as it is. */
static void event_list_node_left_to_its_pusher_is_not_linked(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t older = take_node(fixture);
    const uint32_t index = take_node(fixture);
    const uint32_t firsts[] = {OBJECT_NONE, older};
    for (size_t i = 0; i < 2; i++) {
        store_relaxed(&fixture->word, event_list_word(firsts[i], 10));
        node_at(fixture, index)->next = 99;
        assert_int_equal(push(fixture, index, leave_and_add, 5), EVENT_LIST_CALLER);
        assert_int_equal(load_relaxed(&fixture->word), event_list_word(firsts[i], 15));
        assert_int_equal(node_at(fixture, index)->next, 99);
    }
}

static void event_list_take_empties_the_list_and_sets_the_tag(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t index = take_node(fixture);
    assert_int_equal(push(fixture, index, admit, 0), EVENT_LIST_ADDED);
    assert_int_equal(event_list_take_owner(&fixture->word, 77), event_list_word(index, TAG));
    assert_int_equal(load_relaxed(&fixture->word), event_list_word(OBJECT_NONE, 77));
    assert_int_equal(event_list_take_owner(&fixture->word, 78), event_list_word(OBJECT_NONE, 77));
}

static void event_list_reversed_is_in_order_of_pushing(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 300 };
    uint32_t nodes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        nodes[i] = take_node(fixture);
        assert_int_equal(push(fixture, nodes[i], admit, 0), EVENT_LIST_ADDED);
    }
    uint32_t index = reverse(fixture, event_list_first(event_list_take_owner(&fixture->word, TAG)));
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(index, nodes[i]);
        assert_int_equal(node_at(fixture, index)->number, nodes[i]); /* only links were written */
        index = node_at(fixture, index)->next;
    }
    assert_int_equal(index, OBJECT_NONE);
}

static void event_list_reverse_of_none_and_of_one_is_the_same(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(reverse(fixture, OBJECT_NONE), OBJECT_NONE);
    const uint32_t index = take_node(fixture);
    node_at(fixture, index)->next = OBJECT_NONE;
    assert_int_equal(reverse(fixture, index), index);
    assert_int_equal(node_at(fixture, index)->next, OBJECT_NONE);
}

/* ---- pushes that lose a race ---- */

static struct {
    atomic_u64 *word;
    uint64_t meanwhile; /* what the word becomes while the gate first decides */
    int calls;
} race;

static enum event_list_verdict admit_while_others_push(uint32_t *tag, uint32_t arg)
{
    if (race.calls++ == 0) {
        store_relaxed(race.word, race.meanwhile);
    }
    *tag += arg;
    return EVENT_LIST_ADDED;
}

static enum event_list_verdict admit_the_first_tag_only(uint32_t *tag, uint32_t arg)
{
    if (race.calls++ == 0) {
        store_relaxed(race.word, race.meanwhile);
    }
    return *tag == arg ? EVENT_LIST_ADDED : EVENT_LIST_REFUSED;
}

/* As for two wakers: only the first becomes responsible. */
static enum event_list_verdict leave_the_first_tag_only(uint32_t *tag, uint32_t arg)
{
    if (race.calls++ == 0) {
        store_relaxed(race.word, race.meanwhile);
    }
    return *tag == arg ? EVENT_LIST_CALLER : EVENT_LIST_ADDED;
}

static void start_race(struct fixture *fixture, uint64_t meanwhile)
{
    race.word = &fixture->word;
    race.meanwhile = meanwhile;
    race.calls = 0;
}

static void event_list_push_after_a_lost_race_uses_the_new_word(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t other = take_node(fixture);
    const uint32_t mine = take_node(fixture);
    start_race(fixture, event_list_word(other, 100));
    assert_int_equal(push(fixture, mine, admit_while_others_push, 1), EVENT_LIST_ADDED);
    assert_int_equal(race.calls, 2);
    assert_int_equal(load_relaxed(&fixture->word), event_list_word(mine, 101));
    assert_int_equal(node_at(fixture, mine)->next, other);
}

static void event_list_push_after_a_lost_race_asks_the_gate_again(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t closed = event_list_word(OBJECT_NONE, 100);
    start_race(fixture, closed);
    assert_int_equal(push(fixture, take_node(fixture), admit_the_first_tag_only, TAG),
                     EVENT_LIST_REFUSED);
    assert_int_equal(race.calls, 2);
    assert_int_equal(load_relaxed(&fixture->word), closed);
}

static void event_list_pusher_that_lost_the_race_is_not_responsible(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t mine = take_node(fixture);
    start_race(fixture, event_list_word(OBJECT_NONE, 100));
    assert_int_equal(push(fixture, mine, leave_the_first_tag_only, TAG), EVENT_LIST_ADDED);
    assert_int_equal(race.calls, 2);
    assert_int_equal(load_relaxed(&fixture->word), event_list_word(mine, 100));
    assert_int_equal(node_at(fixture, mine)->next, OBJECT_NONE);
}

static void event_list_responsibility_after_a_lost_race_leaves_the_new_list(void **state)
{
    struct fixture *fixture = *state;
    const uint32_t other = take_node(fixture);
    const uint32_t mine = take_node(fixture);
    node_at(fixture, mine)->next = 99;
    start_race(fixture, event_list_word(other, 100));
    assert_int_equal(push(fixture, mine, leave_the_first_tag_only, 100), EVENT_LIST_CALLER);
    assert_int_equal(race.calls, 2);
    assert_int_equal(load_relaxed(&fixture->word), event_list_word(other, 100));
}

#define LIST_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_list_word_holds_first_and_tag_apart),
        LIST_TEST(event_list_push_links_newest_first),
        LIST_TEST(event_list_gate_gets_its_argument_and_sets_the_tag),
        LIST_TEST(event_list_refused_push_changes_nothing),
        LIST_TEST(event_list_node_left_to_its_pusher_is_not_linked),
        LIST_TEST(event_list_take_empties_the_list_and_sets_the_tag),
        LIST_TEST(event_list_reversed_is_in_order_of_pushing),
        LIST_TEST(event_list_reverse_of_none_and_of_one_is_the_same),
        LIST_TEST(event_list_push_after_a_lost_race_uses_the_new_word),
        LIST_TEST(event_list_push_after_a_lost_race_asks_the_gate_again),
        LIST_TEST(event_list_pusher_that_lost_the_race_is_not_responsible),
        LIST_TEST(event_list_responsibility_after_a_lost_race_leaves_the_new_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
