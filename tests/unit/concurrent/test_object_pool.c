/* SPDX-License-Identifier: MIT */
/* Object pools and their caches: limits, reuse, growth, and running out of memory. */
#include "concurrent/object_pool.h"

#include "base/random.h"
#include "pool_support.h"
#include "thing_pool.h"

#define CACHES THING_CACHES

/* ---- the limit ---- */

TEST(pool_without_batch_has_an_exact_limit)
{
    things_open(100, 1);
    assert_int_equal(things.pool.batch, 0);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 100);
    things_give(0, 1);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 1);
    things_audit();
}

TEST(pool_without_batch_holds_nothing_back_in_caches)
{
    things_open(100, CACHES);
    for (uint32_t i = 0; i < 3 * CACHES; i++) {
        assert_int_equal(things_take_all(i % CACHES, OBJECT_POOL_LIMIT), 100);
        things_give((i + 1) % CACHES, 100);
        things_audit();
    }
}

TEST(pool_of_no_objects_is_at_its_limit)
{
    things_open(0, 1);
    assert_int_equal(thing_take(0), OBJECT_POOL_LIMIT);
    assert_int_equal(object_pool_index_of(&things.pool, &things), OBJECT_NONE);
}

TEST(address_outside_a_pool_has_no_index)
{
    things_open(100, 1);
    assert_int_equal(object_pool_index_of(&things.pool, &things), OBJECT_NONE);
    things_take(0, 1);
    const char *thing = (const char *)thing_at(things.live[0]);
    assert_int_equal(object_pool_index_of(&things.pool, &things), OBJECT_NONE);
    assert_int_equal(object_pool_index_of(&things.pool, thing - OBJECT_POOL_SEGMENT_SIZE),
                     OBJECT_NONE);
}

TEST(pool_replaces_retired_objects_up_to_its_capacity)
{
    things_open(2, 1);
    things.pool.shape.capacity = 3;
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 2);
    object_pool_retire_any(&things.pool);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 1);
    assert_int_equal(things.live[2], 3);
    object_pool_retire_any(&things.pool);
    assert_int_equal(thing_take(0), OBJECT_POOL_LIMIT);
}

TEST(pool_batch_is_a_share_of_the_limit_up_to_a_maximum)
{
    static const struct {
        uint32_t limit;
        uint32_t caches;
        uint32_t batch;
    } rows[] = {
        {127, 1, 0},
        {128, 1, 1},
        {128 * 5 - 1, 5, 0},
        {128 * 5, 5, 1},
        {128 * 5 * 10, 5, 10},
        {128 * 5 * OBJECT_POOL_BATCH_MAX, 5, OBJECT_POOL_BATCH_MAX},
        {1000000, 5, OBJECT_POOL_BATCH_MAX},
    };
    FOR_ROWS (row, rows) {
        things_open(row->limit, row->caches);
        assert_int_equal(things.pool.batch, row->batch);
    }
}

TEST(pool_caches_hold_back_a_64th_of_the_limit_at_most)
{
    static const uint32_t limits[] = {128 * CACHES - 1,
                                      128 * CACHES,
                                      128 * CACHES * 10,
                                      128 * CACHES * 10 + 77,
                                      128 * CACHES * OBJECT_POOL_BATCH_MAX,
                                      40000};
    FOR_ROWS (limit, limits) {
        things_open(*limit, CACHES);
        /* With one object more a chain would go to the pool. */
        const uint32_t most = things.pool.batch > 0 ? 2 * things.pool.batch - 1 : 0;
        for (uint32_t cache = 0; cache < CACHES; cache++) {
            things_take(cache, most + 1); /* whole chains */
            things_give(cache, most);
        }
        assert_int_equal(things_held(), CACHES * most);
        assert_true(things_held() <= *limit / 64);
        (void)things_take_all(0, OBJECT_POOL_LIMIT); /* all but what the other caches hold */
        assert_int_equal(things.live_count, *limit - (CACHES - 1) * most);
        things_audit();
    }
}

TEST(pool_with_one_cache_reaches_every_object_below_the_limit)
{
    const uint32_t limit = 128 * 7 + 3; /* the last chain is a short one */
    things_open(limit, 1);
    assert_int_equal(things.pool.batch, 7);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), limit);
        things_audit();
        things_give(0, limit);
    }
}

/* ---- caches and chains ---- */

TEST(pool_give_and_take_stay_within_the_cache)
{
    things_open(100000, CACHES);
    const uint32_t batch = things.pool.batch;
    things_take(0, 3 * batch);
    const uint32_t ready_before = things_ready();
    for (uint32_t round = 0; round < 100; round++) {
        things_give(0, 2 * batch - 1);
        assert_int_equal(things.pool.chains, OBJECT_NONE);
        things_take(0, 2 * batch - 1);
    }
    assert_int_equal(things_ready(), ready_before);
    things_audit();
}

TEST(pool_chain_given_by_one_cache_is_taken_by_another)
{
    things_open(100000, CACHES);
    const uint32_t batch = things.pool.batch;
    things_take(0, 2 * batch);
    things_give(0, 2 * batch); /* the first chain becomes the spare one, then it goes */
    assert_int_not_equal(things.pool.chains, OBJECT_NONE);
    const uint32_t ready_before = things_ready();
    things_take(1, batch);
    assert_int_equal(things.pool.chains, OBJECT_NONE);
    assert_int_equal(things_ready(), ready_before);
    things_audit();
}

/* As with a process that sends and another that consumes. */
TEST(pool_one_way_traffic_between_caches_does_not_grow_it)
{
    things_open(1000000, 2);
    const uint32_t batch = things.pool.batch;
    for (uint32_t i = 0; i < 100 * batch; i++) {
        things_take(0, 1);
        things_give(1, 1);
    }
    assert_true(things_ready() - 1 <= 4 * batch);
    things_audit();
}

static void step_randomly(uint64_t *random)
{
    const uint32_t cache = random_below(random, CACHES);
    const uint32_t count = 1 + random_below(random, 50);
    if (random_below(random, 2) == 1) {
        things_give(cache, count < things.live_count ? count : things.live_count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const enum object_pool_result result = thing_take(cache);
        assert_true(result == OBJECT_POOL_OK || result == OBJECT_POOL_LIMIT);
        assert_true(things.live_count <= things.limit);
    }
}

TEST(pool_random_use_loses_and_doubles_nothing)
{
    static const uint32_t limits[] = {50, 128 * CACHES, 128 * CACHES * 5 + 11};
    uint64_t random = 20240608;
    FOR_ROWS (limit, limits) {
        things_open(*limit, CACHES);
        for (int step = 0; step < 2000; step++) {
            step_randomly(&random);
            things_audit();
        }
        assert_int_equal(things.constructed, things_ready() - 1);
    }
}

/* ---- objects ---- */

TEST(pool_grown_over_segments_keeps_objects_apart)
{
    const uint32_t count = 100000;
    things_open(count, 1);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1); /* the directory */
    things_take(0, 1);
    assert_int_equal(counting_allocator_live_blocks(&memory), 2); /* segments when needed */
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), count - 1);
    assert_int_equal(counting_allocator_live_blocks(&memory), 1 + count / THINGS_PER_SEGMENT + 1);
    things_audit(); /* so all indices differ */
    for (uint32_t i = 0; i < count; i++) {
        struct thing *thing = thing_at(things.live[i]);
        assert_int_equal((uintptr_t)thing % sizeof *thing, 0);
        assert_int_equal(thing->index, things.live[i]);
        assert_int_equal(object_pool_index_of(&things.pool, &thing->value), things.live[i]);
        thing->value = things.live[i] * UINT64_C(0x100000001);
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(thing_at(things.live[i])->value, things.live[i] * UINT64_C(0x100000001));
    }
}

TEST(pool_object_is_constructed_once_and_kept)
{
    things_open(1000, 1);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        thing_at(things.live[i])->value = things.live[i] + 7;
    }
    things_give(0, 1000);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 1000);
    for (uint32_t i = 0; i < 1000; i++) { /* type-stable: only the link moved */
        assert_int_equal(thing_at(things.live[i])->value, things.live[i] + 7);
    }
    assert_int_equal(things.constructed, 1000);
}

TEST(pool_holds_exactly_the_objects_made)
{
    things_open(1000, 1);
    assert_false(object_pool_holds(&things.pool, OBJECT_NONE));
    assert_false(object_pool_holds(&things.pool, 1));
    things_take(0, 1);
    const uint32_t end = 1 + things.pool.batch;
    assert_int_equal(things_ready(), end);
    assert_false(object_pool_holds(&things.pool, OBJECT_NONE));
    assert_true(object_pool_holds(&things.pool, 1));
    assert_true(object_pool_holds(&things.pool, end - 1));
    assert_false(object_pool_holds(&things.pool, end));
    assert_false(object_pool_holds(&things.pool, UINT32_MAX));
    things_give(0, 1);
    assert_true(object_pool_holds(&things.pool, 1)); /* free objects stay what they are */
}

/* ---- no memory ---- */

TEST(pool_without_memory_for_its_directory_is_not_made)
{
    const struct object_pool_shape shape = thing_shape(1000, 1);
    struct object_pool pool;
    memory_open();
    counting_allocator_fail_once(&memory, 1);
    assert_false(object_pool_init(&pool, &memory.allocator, &shape));
}

TEST(pool_without_memory_for_the_first_segment_recovers)
{
    things_open(1000, 1);
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(thing_take(0), OBJECT_POOL_NO_MEMORY);
    assert_int_equal(thing_take(0), OBJECT_POOL_NO_MEMORY);
    assert_false(object_pool_holds(&things.pool, 1));
    counting_allocator_fail_never(&memory);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), 1000);
    things_audit();
}

/* The border of the segments lies inside a chain, which is then a short one. */
TEST(pool_without_memory_for_a_later_segment_gives_what_it_has)
{
    const uint32_t limit = 2 * THINGS_PER_SEGMENT;
    const uint32_t first_segment = THINGS_PER_SEGMENT - 1; /* index 0 is no object */
    things_open(limit, 1);
    things_take(0, 1);
    counting_allocator_fail_from(&memory, 1);
    assert_int_equal(things_take_all(0, OBJECT_POOL_NO_MEMORY), first_segment - 1);
    things_audit();
    things_give(0, first_segment / 2);
    assert_int_equal(things_take_all(0, OBJECT_POOL_NO_MEMORY), first_segment / 2);
    counting_allocator_fail_never(&memory);
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), limit - first_segment);
    things_audit();
}
