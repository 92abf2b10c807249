/* SPDX-License-Identifier: MIT */
/* The queue that all workers share, on one thread. */
#include "concurrent/global_queue.h"
#include "test.h"

#define LINKS 64

static struct global_queue queue;
static struct queue_link links[LINKS];

static void close_queue(void)
{
    global_queue_deinit(&queue);
}

static void open_queue(void)
{
    global_queue_init(&queue);
    /* The link of an item that is in no queue means nothing: let it lead astray. */
    for (uint32_t i = 0; i < LINKS; i++) {
        links[i].next = &links[0];
    }
    test_at_end(close_queue);
}

/* Pushes links[first] to links[first + count - 1] as one batch. */
static void push_batch(uint32_t first, uint32_t count)
{
    for (uint32_t i = first + 1; i < first + count; i++) {
        links[i].next = &links[i - 1];
    }
    global_queue_push_any(&queue, &links[first + count - 1], &links[first]);
}

/* Pops with so many sharers, and expects links[first] to links[first + count - 1]. */
static void assert_pops_share(uint32_t most, uint32_t sharers, uint32_t first, uint32_t count)
{
    struct queue_link *items[LINKS];
    assert_int_equal(global_queue_pop_any(&queue, items, most, sharers), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_ptr_equal(items[i], &links[first + i]);
    }
}

static void assert_pops(uint32_t most, uint32_t first, uint32_t count)
{
    assert_pops_share(most, 1, first, count);
}

static void assert_has_items(bool has_items)
{
    assert_int_equal(global_queue_has_items(&queue), has_items);
    assert_int_equal(global_queue_has_items_recheck(&queue), has_items);
}

TEST(global_queue_new_is_empty)
{
    open_queue();
    assert_has_items(false);
    assert_pops(LINKS, 0, 0);
    assert_has_items(false);
}

TEST(global_queue_single_items_come_out_in_order)
{
    open_queue();
    for (uint32_t i = 0; i < 10; i++) {
        push_batch(i, 1);
        assert_has_items(true);
    }
    for (uint32_t i = 0; i < 10; i++) {
        assert_pops(1, i, 1);
        assert_has_items(i < 9);
    }
}

TEST(global_queue_batches_come_out_in_order)
{
    open_queue();
    push_batch(0, 5);
    push_batch(5, 1);
    push_batch(6, 20);
    assert_has_items(true);
    assert_pops(LINKS, 0, 26);
    assert_has_items(false);
}

TEST(global_queue_pop_takes_no_more_than_asked)
{
    open_queue();
    push_batch(0, 10);
    assert_pops(0, 0, 0);
    assert_has_items(true);
    assert_pops(3, 0, 3);
    assert_has_items(true);
    assert_pops(7, 3, 7);
    assert_has_items(false);
    assert_pops(1, 0, 0);
}

TEST(global_queue_pushes_between_pops_go_to_the_end)
{
    open_queue();
    push_batch(0, 4);
    assert_pops(2, 0, 2);
    push_batch(4, 4);
    assert_pops(LINKS, 2, 2); /* what was sorted in when it was popped from */
    assert_pops(LINKS, 4, 4);
}

/* Or the inbox would grow for as long as the list lasts. */
TEST(global_queue_sorts_now_and_then_before_the_list_is_empty)
{
    open_queue();
    push_batch(0, LINKS - 1);
    assert_pops(1, 0, 1);
    push_batch(LINKS - 1, 1);
    uint32_t popped = 1;
    while (load_relaxed(&queue.inbox) != NULL) {
        assert_pops(1, popped++, 1);
    }
    assert_in_range(popped, 2, LINKS - 2);
    assert_pops(LINKS, popped, LINKS - popped);
}

TEST(global_queue_pop_leaves_their_share_to_others)
{
    open_queue();
    push_batch(0, 10);
    assert_pops_share(LINKS, 4, 0, 3); /* one, and a fourth of ten */
    assert_pops_share(2, 2, 3, 2);     /* it could be more */
    assert_pops_share(LINKS, 100, 5, 1);
    assert_pops_share(LINKS, 1, 6, 4);
    assert_has_items(false);
}

TEST(global_queue_can_be_used_again_after_it_ran_empty)
{
    open_queue();
    for (uint32_t round = 0; round < 3; round++) {
        push_batch(0, 3);
        assert_pops(3, 0, 3);
        assert_pops(3, 0, 0);
    }
    assert_has_items(false);
}
