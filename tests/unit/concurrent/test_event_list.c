/* SPDX-License-Identifier: MIT */
/* The list in the upper half of a word: order, gate, and a push that loses a race. The race is made
 * on one thread, by a gate that changes the word while it decides. */
#include "concurrent/event_list.h"

#include "pool_support.h"
#include "test_memory.h"

#define TAG    UINT32_C(0xfedcba98)
#define ASTRAY 99 /* where the link of a node that is in no list may lead */
#define COUNT  300

struct node {
    struct pool_link link; /* while free */
    uint32_t number;
    uint32_t next; /* not at the beginning, so that a wrong offset shows */
    char rest[48];
};

static struct object_pool pool;
static struct pool_cache cache;
static atomic_u64 word;

static void construct(void *object, uint32_t index, uint32_t floor)
{
    (void)floor;
    ((struct node *)object)->number = index;
}

static void open_list(void)
{
    memory_open();
    cache = (struct pool_cache){0};
    store_relaxed(&word, event_list_word(OBJECT_NONE, TAG));
    pool_open(&pool, &(struct object_pool_shape){
                         .layout = {sizeof(struct node), offsetof(struct node, link)},
                         .limit = 1000,
                         .cache_count = 1,
                         .construct = construct,
                     });
}

static struct node *node_at(uint32_t index)
{
    return object_pool_at(&pool, index);
}

static uint32_t take_node(void)
{
    const uint32_t index = pool_take(&pool, &cache);
    node_at(index)->next = ASTRAY;
    return index;
}

static enum event_list_verdict push(uint32_t index, event_list_gate *gate, uint32_t arg)
{
    return event_list_push_any(&word, index, &node_at(index)->next, gate, arg);
}

static uint32_t reverse(uint32_t first)
{
    return event_list_reverse(&pool, pool.shape.layout, first, offsetof(struct node, next));
}

static void assert_word(uint32_t first, uint32_t tag)
{
    assert_int_equal(load_relaxed(&word), event_list_word(first, tag));
}

/* ---- gates ---- */

static enum event_list_verdict admit(uint32_t *tag, uint32_t arg)
{
    *tag += arg;
    return EVENT_LIST_ADDED;
}

static enum event_list_verdict leave(uint32_t *tag, uint32_t arg)
{
    *tag += arg;
    return EVENT_LIST_CALLER;
}

static enum event_list_verdict refuse(uint32_t *tag, uint32_t arg)
{
    *tag = arg;
    return EVENT_LIST_REFUSED;
}

static void push_nodes(uint32_t *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nodes[i] = take_node();
        assert_int_equal(push(nodes[i], admit, 0), EVENT_LIST_ADDED);
    }
}

/* ---- one push after another ---- */

TEST(event_list_word_holds_first_and_tag_apart)
{
    const uint64_t both = event_list_word(UINT32_C(0x89abcdef), UINT32_C(0xf1234567));
    assert_int_equal(event_list_first(both), UINT32_C(0x89abcdef));
    assert_int_equal(event_list_tag(both), UINT32_C(0xf1234567));
}

TEST(event_list_push_links_newest_first)
{
    uint32_t nodes[5];
    open_list();
    push_nodes(nodes, 5);
    assert_word(nodes[4], TAG);
    for (size_t i = 5; i-- > 0;) {
        assert_int_equal(node_at(nodes[i])->next, i > 0 ? nodes[i - 1] : OBJECT_NONE);
    }
}

TEST(event_list_gate_gets_its_argument_and_sets_the_tag)
{
    open_list();
    store_relaxed(&word, event_list_word(OBJECT_NONE, 10));
    const uint32_t first = take_node();
    const uint32_t second = take_node();
    assert_int_equal(push(first, admit, 5), EVENT_LIST_ADDED);
    assert_word(first, 15);
    assert_int_equal(push(second, admit, UINT32_MAX), EVENT_LIST_ADDED);
    assert_word(second, 14);
}

TEST(event_list_refused_push_changes_nothing)
{
    uint32_t older;
    open_list();
    push_nodes(&older, 1);
    const uint32_t index = take_node();
    assert_int_equal(push(index, refuse, 3), EVENT_LIST_REFUSED);
    assert_int_equal(node_at(index)->next, ASTRAY);
    assert_word(older, TAG);
}

/* The node is its pusher's, the list stays as it is. */
TEST(event_list_node_left_to_its_pusher_is_not_linked)
{
    open_list();
    const uint32_t index = take_node();
    const uint32_t firsts[] = {OBJECT_NONE, take_node()};
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        store_relaxed(&word, event_list_word(firsts[i], 10));
        assert_int_equal(push(index, leave, 5), EVENT_LIST_CALLER);
        assert_word(firsts[i], 15);
        assert_int_equal(node_at(index)->next, ASTRAY);
    }
}

TEST(event_list_take_empties_the_list_and_sets_the_tag)
{
    uint32_t index;
    open_list();
    push_nodes(&index, 1);
    assert_int_equal(event_list_take_owner(&word, 77), event_list_word(index, TAG));
    assert_word(OBJECT_NONE, 77);
    assert_int_equal(event_list_take_owner(&word, 78), event_list_word(OBJECT_NONE, 77));
}

TEST(event_list_reversed_is_in_order_of_pushing)
{
    static const size_t counts[] = {0, 1, 2, COUNT};
    FOR_ROWS (count, counts) {
        uint32_t nodes[COUNT];
        open_list();
        push_nodes(nodes, *count);
        uint32_t index = reverse(event_list_first(event_list_take_owner(&word, TAG)));
        for (size_t i = 0; i < *count; i++) {
            assert_int_equal(index, nodes[i]);
            assert_int_equal(node_at(index)->number, nodes[i]); /* only links were written */
            index = node_at(index)->next;
        }
        assert_int_equal(index, OBJECT_NONE);
    }
}

/* ---- pushes that lose a race ---- */

static struct {
    uint64_t meanwhile; /* what the word becomes while the gate first decides */
    int calls;
} race;

static void lose_first(void)
{
    if (race.calls++ == 0) {
        store_relaxed(&word, race.meanwhile);
    }
}

static enum event_list_verdict admit_while_others_push(uint32_t *tag, uint32_t arg)
{
    lose_first();
    return admit(tag, arg);
}

static enum event_list_verdict admit_one_tag_only(uint32_t *tag, uint32_t arg)
{
    lose_first();
    return *tag == arg ? EVENT_LIST_ADDED : EVENT_LIST_REFUSED;
}

/* As for two wakers: only the first becomes responsible. */
static enum event_list_verdict leave_one_tag_only(uint32_t *tag, uint32_t arg)
{
    lose_first();
    return *tag == arg ? EVENT_LIST_CALLER : EVENT_LIST_ADDED;
}

/* The gate is asked again, about the word that there is now, and the node linked to what that
 * leads to. */
TEST(event_list_push_after_a_lost_race_begins_anew)
{
    static const struct {
        event_list_gate *gate;
        uint32_t arg;
        bool others_push; /* or only change the tag */
        enum event_list_verdict verdict;
        uint32_t tag;
    } rows[] = {
        {admit_while_others_push, 1, true, EVENT_LIST_ADDED, 101},
        {admit_one_tag_only, TAG, false, EVENT_LIST_REFUSED, 100},
        {leave_one_tag_only, TAG, false, EVENT_LIST_ADDED, 100},
        {leave_one_tag_only, 100, true, EVENT_LIST_CALLER, 100},
    };
    FOR_ROWS (row, rows) {
        open_list();
        const uint32_t other = row->others_push ? take_node() : OBJECT_NONE;
        const uint32_t mine = take_node();
        race.meanwhile = event_list_word(other, 100);
        race.calls = 0;
        assert_int_equal(push(mine, row->gate, row->arg), row->verdict);
        assert_int_equal(race.calls, 2);
        const bool is_linked = row->verdict == EVENT_LIST_ADDED;
        assert_word(is_linked ? mine : other, row->tag);
        if (is_linked) {
            assert_int_equal(node_at(mine)->next, other);
        }
    }
}
