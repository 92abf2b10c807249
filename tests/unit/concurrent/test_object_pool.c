/* SPDX-License-Identifier: MIT */
/* Pools and their caches on one thread: limits, reuse, growth, running out of memory. */
#include "concurrent/object_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "counting_allocator.h"

struct thing {
    uint64_t value;
    struct pool_link link;
    uint32_t index;
    char rest[44];
};
_Static_assert(sizeof(struct thing) == 64, "a power of two");

#define THINGS_PER_SEGMENT (OBJECT_POOL_SEGMENT_SIZE / sizeof(struct thing))

#define CACHES 3

struct fixture {
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache caches[CACHES];
    uint32_t *live; /* indices that were taken, `live_count` of them */
    uint32_t live_count;
};

static uint32_t constructed;

static void construct(void *object, uint32_t index)
{
    struct thing *thing = object;
    thing->index = index;
    thing->value = 0;
    constructed++;
}

static struct object_pool_shape shape_of(uint32_t limit, uint32_t cache_count)
{
    return (struct object_pool_shape){
        .object_size = sizeof(struct thing),
        .link_offset = offsetof(struct thing, link),
        .limit = limit,
        .cache_count = cache_count,
        .construct = construct,
    };
}

static void fixture_init(struct fixture *fixture, uint32_t limit, uint32_t cache_count)
{
    *fixture = (struct fixture){0};
    constructed = 0;
    counting_allocator_init(&fixture->memory);
    fixture->live = malloc((limit + 1) * sizeof *fixture->live);
    assert_non_null(fixture->live);
    const struct object_pool_shape shape = shape_of(limit, cache_count);
    assert_true(object_pool_init(&fixture->pool, &fixture->memory.allocator, &shape));
}

static void fixture_deinit(struct fixture *fixture)
{
    object_pool_deinit(&fixture->pool);
    free(fixture->live);
    assert_true(counting_allocator_is_clean(&fixture->memory));
}

static struct thing *thing_at(struct fixture *fixture, uint32_t index)
{
    return object_pool_at(&fixture->pool, index);
}

static enum object_pool_result take(struct fixture *fixture, uint32_t cache)
{
    uint32_t index = OBJECT_NONE;
    const enum object_pool_result result =
        object_pool_take(&fixture->pool, &fixture->caches[cache], &index);
    if (result == OBJECT_POOL_OK) {
        assert_true(object_pool_holds(&fixture->pool, index));
        fixture->live[fixture->live_count++] = index;
    }
    return result;
}

/* Takes as many as there are, and returns how many. */
static uint32_t take_all(struct fixture *fixture, uint32_t cache, enum object_pool_result end)
{
    const uint32_t before = fixture->live_count;
    enum object_pool_result result;
    do {
        result = take(fixture, cache);
    } while (result == OBJECT_POOL_OK);
    assert_int_equal(result, end);
    return fixture->live_count - before;
}

static void take_count(struct fixture *fixture, uint32_t cache, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(take(fixture, cache), OBJECT_POOL_OK);
    }
}

static void give_newest(struct fixture *fixture, uint32_t cache, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = fixture->live[--fixture->live_count];
        object_pool_give(&fixture->pool, &fixture->caches[cache], index);
    }
}

static uint32_t ready(struct fixture *fixture)
{
    return load_relaxed(&fixture->pool.ready);
}

/* ---- INV-20: an object is live, or in exactly one chain, or not yet made ---- */

struct audit {
    bool *seen;
    uint32_t count;
};

static void audit_one(struct fixture *fixture, struct audit *audit, uint32_t index)
{
    assert_true(object_pool_holds(&fixture->pool, index));
    assert_false(audit->seen[index]);
    audit->seen[index] = true;
    audit->count++;
}

static void audit_chain(struct fixture *fixture, struct audit *audit, struct object_chain chain)
{
    uint32_t index = chain.first;
    for (uint32_t i = 0; i < chain.count; i++) {
        audit_one(fixture, audit, index);
        index = thing_at(fixture, index)->link.next;
    }
}

static void audit_pool(struct fixture *fixture)
{
    const uint32_t batch = fixture->pool.batch;
    struct audit audit = {.seen = calloc(ready(fixture), sizeof(bool)), .count = 0};
    assert_non_null(audit.seen);
    for (uint32_t i = 0; i < fixture->live_count; i++) {
        audit_one(fixture, &audit, fixture->live[i]);
    }
    for (uint32_t i = 0; i < CACHES; i++) {
        assert_true(fixture->caches[i].spare.count == 0 || fixture->caches[i].spare.count == batch);
        audit_chain(fixture, &audit, fixture->caches[i].active);
        audit_chain(fixture, &audit, fixture->caches[i].spare);
    }
    uint32_t first = fixture->pool.chains;
    while (first != OBJECT_NONE) {
        const uint32_t next_chain = thing_at(fixture, first)->link.next_chain;
        audit_chain(fixture, &audit, (struct object_chain){first, batch > 0 ? batch : 1});
        first = next_chain;
    }
    assert_int_equal(audit.count, ready(fixture) - 1);
    free(audit.seen);
}

/* ---- the limit ---- */

static void pool_without_batch_has_an_exact_limit(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 100, 1);
    assert_int_equal(fixture.pool.batch, 0);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 100);
    give_newest(&fixture, 0, 1);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 1);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

static void pool_without_batch_holds_nothing_back_in_caches(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 100, CACHES);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t cache = 0; cache < CACHES; cache++) {
            assert_int_equal(take_all(&fixture, cache, OBJECT_POOL_LIMIT), 100);
            give_newest(&fixture, (cache + 1) % CACHES, 100);
            audit_pool(&fixture);
        }
    }
    fixture_deinit(&fixture);
}

static void pool_replaces_retired_objects_up_to_its_capacity(void **state)
{
    (void)state;
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache cache = {0};
    struct object_pool_shape shape = shape_of(2, 1);
    uint32_t index;
    counting_allocator_init(&memory);
    shape.capacity = 3;
    assert_true(object_pool_init(&pool, &memory.allocator, &shape));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(object_pool_take(&pool, &cache, &index), OBJECT_POOL_OK);
    }
    assert_int_equal(object_pool_take(&pool, &cache, &index), OBJECT_POOL_LIMIT);
    object_pool_retire(&pool);
    assert_int_equal(object_pool_take(&pool, &cache, &index), OBJECT_POOL_OK);
    assert_int_equal(index, 3);
    object_pool_retire(&pool);
    assert_int_equal(object_pool_take(&pool, &cache, &index), OBJECT_POOL_LIMIT);
    object_pool_deinit(&pool);
    assert_true(counting_allocator_is_clean(&memory));
}

static void pool_of_no_objects_is_at_its_limit(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 0, 1);
    assert_int_equal(take(&fixture, 0), OBJECT_POOL_LIMIT);
    fixture_deinit(&fixture);
}

static uint32_t batch_of(uint32_t limit, uint32_t cache_count)
{
    struct fixture fixture;
    fixture_init(&fixture, limit, cache_count);
    const uint32_t batch = fixture.pool.batch;
    fixture_deinit(&fixture);
    return batch;
}

static void pool_batch_is_a_share_of_the_limit_up_to_a_maximum(void **state)
{
    (void)state;
    assert_int_equal(batch_of(127, 1), 0);
    assert_int_equal(batch_of(128, 1), 1);
    assert_int_equal(batch_of(128 * 5 - 1, 5), 0);
    assert_int_equal(batch_of(128 * 5, 5), 1);
    assert_int_equal(batch_of(128 * 5 * 10, 5), 10);
    assert_int_equal(batch_of(128 * 5 * OBJECT_POOL_BATCH_MAX, 5), OBJECT_POOL_BATCH_MAX);
    assert_int_equal(batch_of(1000000, 5), OBJECT_POOL_BATCH_MAX);
}

static uint32_t held_in_caches(const struct fixture *fixture)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < CACHES; i++) {
        held += fixture->caches[i].active.count + fixture->caches[i].spare.count;
    }
    return held;
}

/* What a cache can hold: with one object more a chain would go to the pool. */
static uint32_t held_at_most(const struct fixture *fixture)
{
    const uint32_t batch = fixture->pool.batch;
    return batch > 0 ? 2 * batch - 1 : 0;
}

static void check_held_back(uint32_t limit)
{
    struct fixture fixture;
    fixture_init(&fixture, limit, CACHES);
    const uint32_t most = held_at_most(&fixture);
    for (uint32_t cache = 0; cache < CACHES; cache++) {
        take_count(&fixture, cache, most + 1); /* whole chains */
        give_newest(&fixture, cache, most);
    }
    const uint32_t held = held_in_caches(&fixture);
    assert_int_equal(held, CACHES * most);
    assert_true(held <= limit / 64);
    (void)take_all(&fixture, 0, OBJECT_POOL_LIMIT); /* all but what the other caches hold */
    assert_int_equal(fixture.live_count, limit - (CACHES - 1) * most);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

static void pool_caches_hold_back_a_64th_of_the_limit_at_most(void **state)
{
    (void)state;
    check_held_back(128 * CACHES - 1);
    check_held_back(128 * CACHES);
    check_held_back(128 * CACHES * 10);
    check_held_back(128 * CACHES * 10 + 77);
    check_held_back(128 * CACHES * OBJECT_POOL_BATCH_MAX);
    check_held_back(40000);
}

static void pool_with_one_cache_reaches_every_object_below_the_limit(void **state)
{
    (void)state;
    struct fixture fixture;
    const uint32_t limit = 128 * 7 + 3; /* the last chain is a short one */
    fixture_init(&fixture, limit, 1);
    assert_int_equal(fixture.pool.batch, 7);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit);
    audit_pool(&fixture);
    give_newest(&fixture, 0, limit);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

/* ---- caches and chains ---- */

static void pool_give_and_take_stay_within_the_cache(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 100000, CACHES);
    const uint32_t batch = fixture.pool.batch;
    take_count(&fixture, 0, 3 * batch);
    const uint32_t ready_before = ready(&fixture);
    for (uint32_t round = 0; round < 100; round++) {
        give_newest(&fixture, 0, 2 * batch - 1);
        assert_int_equal(fixture.pool.chains, OBJECT_NONE);
        take_count(&fixture, 0, 2 * batch - 1);
    }
    assert_int_equal(ready(&fixture), ready_before);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

static void pool_chain_given_by_one_cache_is_taken_by_another(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 100000, CACHES);
    const uint32_t batch = fixture.pool.batch;
    take_count(&fixture, 0, 2 * batch);
    give_newest(&fixture, 0, 2 * batch); /* the first chain becomes the spare one, then it goes */
    assert_int_not_equal(fixture.pool.chains, OBJECT_NONE);
    const uint32_t ready_before = ready(&fixture);
    take_count(&fixture, 1, batch);
    assert_int_equal(fixture.pool.chains, OBJECT_NONE);
    assert_int_equal(ready(&fixture), ready_before);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

/* As with a process that sends and another that consumes. */
static void pool_one_way_traffic_between_caches_does_not_grow_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 1000000, 2);
    const uint32_t batch = fixture.pool.batch;
    for (uint32_t i = 0; i < 100 * batch; i++) {
        take_count(&fixture, 0, 1);
        give_newest(&fixture, 1, 1);
    }
    assert_true(ready(&fixture) - 1 <= 4 * batch);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

static void step_randomly(struct fixture *fixture, uint64_t *random, uint32_t limit)
{
    const uint32_t cache = random_below(random, CACHES);
    const uint32_t count = 1 + random_below(random, 50);
    if (random_below(random, 2) == 0) {
        for (uint32_t i = 0; i < count; i++) {
            const enum object_pool_result result = take(fixture, cache);
            assert_true(result == OBJECT_POOL_OK || result == OBJECT_POOL_LIMIT);
            assert_true(fixture->live_count <= limit);
        }
    } else {
        give_newest(fixture, cache, count < fixture->live_count ? count : fixture->live_count);
    }
}

static void pool_random_use_loses_and_doubles_nothing(void **state)
{
    (void)state;
    const uint64_t seed = 20240608;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t random = seed;
    static const uint32_t limits[] = {50, 128 * CACHES, 128 * CACHES * 5 + 11};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct fixture fixture;
        fixture_init(&fixture, limits[i], CACHES);
        for (int step = 0; step < 2000; step++) {
            step_randomly(&fixture, &random, limits[i]);
            audit_pool(&fixture);
        }
        assert_int_equal(constructed, ready(&fixture) - 1);
        fixture_deinit(&fixture);
    }
}

/* ---- objects ---- */

static void pool_grown_over_segments_keeps_objects_apart(void **state)
{
    (void)state;
    struct fixture fixture;
    const uint32_t count = 100000;
    fixture_init(&fixture, count, 1);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), count);
    assert_int_equal(counting_allocator_live_blocks(&fixture.memory),
                     1 + count / THINGS_PER_SEGMENT + 1); /* directory and segments */
    audit_pool(&fixture);                                 /* so all indices differ */
    for (uint32_t i = 0; i < count; i++) {
        struct thing *thing = thing_at(&fixture, fixture.live[i]);
        assert_int_equal((uintptr_t)thing % sizeof *thing, 0);
        assert_int_equal(thing->index, fixture.live[i]);
        thing->value = fixture.live[i] * UINT64_C(0x100000001);
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(thing_at(&fixture, fixture.live[i])->value,
                         fixture.live[i] * UINT64_C(0x100000001));
    }
    fixture_deinit(&fixture);
}

static void pool_allocates_segments_only_when_needed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 10000000, 1);
    assert_int_equal(counting_allocator_live_blocks(&fixture.memory), 1);
    take_count(&fixture, 0, 1);
    assert_int_equal(counting_allocator_live_blocks(&fixture.memory), 2);
    fixture_deinit(&fixture);
}

static void pool_object_is_constructed_once_and_kept(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 1000, 1);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        thing_at(&fixture, fixture.live[i])->value = fixture.live[i] + 7;
    }
    give_newest(&fixture, 0, 1000);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        const struct thing *thing = thing_at(&fixture, fixture.live[i]);
        assert_int_equal(thing->value, fixture.live[i] + 7); /* type-stable: only the link moved */
    }
    assert_int_equal(constructed, 1000);
    fixture_deinit(&fixture);
}

static void pool_holds_exactly_the_objects_made(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 1000, 1);
    assert_false(object_pool_holds(&fixture.pool, OBJECT_NONE));
    assert_false(object_pool_holds(&fixture.pool, 1));
    take_count(&fixture, 0, 1);
    const uint32_t end = 1 + fixture.pool.batch;
    assert_int_equal(ready(&fixture), end);
    assert_false(object_pool_holds(&fixture.pool, OBJECT_NONE));
    assert_true(object_pool_holds(&fixture.pool, 1));
    assert_true(object_pool_holds(&fixture.pool, end - 1));
    assert_false(object_pool_holds(&fixture.pool, end));
    assert_false(object_pool_holds(&fixture.pool, UINT32_MAX));
    give_newest(&fixture, 0, 1);
    assert_true(object_pool_holds(&fixture.pool, 1)); /* free objects stay what they are */
    fixture_deinit(&fixture);
}

/* ---- no memory ---- */

static void pool_without_memory_for_its_directory_is_not_made(void **state)
{
    (void)state;
    struct counting_allocator memory;
    struct object_pool pool;
    const struct object_pool_shape shape = shape_of(1000, 1);
    counting_allocator_init(&memory);
    counting_allocator_fail_once(&memory, 1);
    assert_false(object_pool_init(&pool, &memory.allocator, &shape));
    assert_true(counting_allocator_is_clean(&memory));
}

static void pool_without_memory_for_the_first_segment_recovers(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, 1000, 1);
    counting_allocator_fail_from(&fixture.memory, 1);
    assert_int_equal(take(&fixture, 0), OBJECT_POOL_NO_MEMORY);
    assert_int_equal(take(&fixture, 0), OBJECT_POOL_NO_MEMORY);
    assert_false(object_pool_holds(&fixture.pool, 1));
    counting_allocator_fail_never(&fixture.memory);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 1000);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

/* The border of the segments lies inside a chain, which is then a short one. */
static void pool_without_memory_for_a_later_segment_gives_what_it_has(void **state)
{
    (void)state;
    struct fixture fixture;
    const uint32_t limit = 2 * THINGS_PER_SEGMENT;
    fixture_init(&fixture, limit, 1);
    take_count(&fixture, 0, 1);
    counting_allocator_fail_from(&fixture.memory, 1);
    const uint32_t first_segment = THINGS_PER_SEGMENT - 1; /* index 0 is no object */
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_NO_MEMORY), first_segment - 1);
    audit_pool(&fixture);
    give_newest(&fixture, 0, first_segment / 2);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_NO_MEMORY), first_segment / 2);
    counting_allocator_fail_never(&fixture.memory);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit - first_segment);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_without_batch_has_an_exact_limit),
        cmocka_unit_test(pool_without_batch_holds_nothing_back_in_caches),
        cmocka_unit_test(pool_replaces_retired_objects_up_to_its_capacity),
        cmocka_unit_test(pool_of_no_objects_is_at_its_limit),
        cmocka_unit_test(pool_batch_is_a_share_of_the_limit_up_to_a_maximum),
        cmocka_unit_test(pool_caches_hold_back_a_64th_of_the_limit_at_most),
        cmocka_unit_test(pool_with_one_cache_reaches_every_object_below_the_limit),
        cmocka_unit_test(pool_give_and_take_stay_within_the_cache),
        cmocka_unit_test(pool_chain_given_by_one_cache_is_taken_by_another),
        cmocka_unit_test(pool_one_way_traffic_between_caches_does_not_grow_it),
        cmocka_unit_test(pool_random_use_loses_and_doubles_nothing),
        cmocka_unit_test(pool_grown_over_segments_keeps_objects_apart),
        cmocka_unit_test(pool_allocates_segments_only_when_needed),
        cmocka_unit_test(pool_object_is_constructed_once_and_kept),
        cmocka_unit_test(pool_holds_exactly_the_objects_made),
        cmocka_unit_test(pool_without_memory_for_its_directory_is_not_made),
        cmocka_unit_test(pool_without_memory_for_the_first_segment_recovers),
        cmocka_unit_test(pool_without_memory_for_a_later_segment_gives_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
