/* SPDX-License-Identifier: MIT */
/* The queue that all workers share, on one thread. */
#include "concurrent/global_queue.h"
#include "test.h"

#define LINKS 64

struct fixture {
    struct global_queue queue;
    struct queue_link links[LINKS];
};

static void fixture_init(struct fixture *fixture)
{
    global_queue_init(&fixture->queue);
    /* The link of an item that is in no queue means nothing: let it lead astray. */
    for (uint32_t i = 0; i < LINKS; i++) {
        fixture->links[i].next = &fixture->links[0];
    }
}

/* Pushes links[first] to links[first + count - 1] as one batch. */
static void push_batch(struct fixture *fixture, uint32_t first, uint32_t count)
{
    for (uint32_t i = first + 1; i < first + count; i++) {
        fixture->links[i].next = &fixture->links[i - 1];
    }
    global_queue_push_any(&fixture->queue, &fixture->links[first + count - 1],
                          &fixture->links[first]);
}

/* Pops with so many sharers, and expects links[first] to links[first + count - 1]. */
static void assert_pops_share(struct fixture *fixture, uint32_t most, uint32_t sharers,
                              uint32_t first, uint32_t count)
{
    struct queue_link *items[LINKS];
    assert_int_equal(global_queue_pop_any(&fixture->queue, items, most, sharers), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_ptr_equal(items[i], &fixture->links[first + i]);
    }
}

static void assert_pops(struct fixture *fixture, uint32_t most, uint32_t first, uint32_t count)
{
    assert_pops_share(fixture, most, 1, first, count);
}

static void assert_has_items(struct fixture *fixture, bool has_items)
{
    assert_int_equal(global_queue_has_items(&fixture->queue), has_items);
    assert_int_equal(global_queue_has_items_recheck(&fixture->queue), has_items);
}

TEST(global_queue_new_is_empty)
{
    struct fixture fixture;
    fixture_init(&fixture);
    assert_has_items(&fixture, false);
    assert_pops(&fixture, LINKS, 0, 0);
    assert_has_items(&fixture, false);
    global_queue_deinit(&fixture.queue);
}

TEST(global_queue_single_items_come_out_in_order)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (uint32_t i = 0; i < 10; i++) {
        push_batch(&fixture, i, 1);
        assert_has_items(&fixture, true);
    }
    for (uint32_t i = 0; i < 10; i++) {
        assert_pops(&fixture, 1, i, 1);
        assert_has_items(&fixture, i < 9);
    }
    global_queue_deinit(&fixture.queue);
}

TEST(global_queue_batches_come_out_in_order)
{
    struct fixture fixture;
    fixture_init(&fixture);
    push_batch(&fixture, 0, 5);
    push_batch(&fixture, 5, 1);
    push_batch(&fixture, 6, 20);
    assert_has_items(&fixture, true);
    assert_pops(&fixture, LINKS, 0, 26);
    assert_has_items(&fixture, false);
    global_queue_deinit(&fixture.queue);
}

TEST(global_queue_pop_takes_no_more_than_asked)
{
    struct fixture fixture;
    fixture_init(&fixture);
    push_batch(&fixture, 0, 10);
    assert_pops(&fixture, 0, 0, 0);
    assert_has_items(&fixture, true);
    assert_pops(&fixture, 3, 0, 3);
    assert_has_items(&fixture, true);
    assert_pops(&fixture, 7, 3, 7);
    assert_has_items(&fixture, false);
    assert_pops(&fixture, 1, 0, 0);
    global_queue_deinit(&fixture.queue);
}

TEST(global_queue_pushes_between_pops_go_to_the_end)
{
    struct fixture fixture;
    fixture_init(&fixture);
    push_batch(&fixture, 0, 4);
    assert_pops(&fixture, 2, 0, 2);
    push_batch(&fixture, 4, 4);
    assert_pops(&fixture, LINKS, 2, 2); /* what was sorted in when it was popped from */
    assert_pops(&fixture, LINKS, 4, 4);
    global_queue_deinit(&fixture.queue);
}

/* Or the inbox would grow for as long as the list lasts. */
TEST(global_queue_sorts_now_and_then_before_the_list_is_empty)
{
    struct fixture fixture;
    fixture_init(&fixture);
    push_batch(&fixture, 0, LINKS - 1);
    assert_pops(&fixture, 1, 0, 1);
    push_batch(&fixture, LINKS - 1, 1);
    uint32_t popped = 1;
    while (load_relaxed(&fixture.queue.inbox) != NULL) {
        assert_pops(&fixture, 1, popped++, 1);
    }
    assert_in_range(popped, 2, LINKS - 2);
    assert_pops(&fixture, LINKS, popped, LINKS - popped);
    global_queue_deinit(&fixture.queue);
}

TEST(global_queue_pop_leaves_their_share_to_others)
{
    struct fixture fixture;
    fixture_init(&fixture);
    push_batch(&fixture, 0, 10);
    assert_pops_share(&fixture, LINKS, 4, 0, 3); /* one, and a fourth of ten */
    assert_pops_share(&fixture, 2, 2, 3, 2);     /* it could be more */
    assert_pops_share(&fixture, LINKS, 100, 5, 1);
    assert_pops_share(&fixture, LINKS, 1, 6, 4);
    assert_has_items(&fixture, false);
    global_queue_deinit(&fixture.queue);
}

TEST(global_queue_can_be_used_again_after_it_ran_empty)
{
    struct fixture fixture;
    fixture_init(&fixture);
    for (uint32_t round = 0; round < 3; round++) {
        push_batch(&fixture, 0, 3);
        assert_pops(&fixture, 3, 0, 3);
        assert_pops(&fixture, 3, 0, 0);
    }
    assert_has_items(&fixture, false);
    global_queue_deinit(&fixture.queue);
}
