/* SPDX-License-Identifier: MIT */
/* Pools and their caches: limits, reuse, growth, running out of memory, giving memory back. All on
 * one thread, but for the taker that has to wait for a trim. */
#include "concurrent/object_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "counting_allocator.h"
#include "process/event.h"
#include "test.h"

struct thing {
    uint64_t value;
    struct pool_link link;
    uint32_t index;
    uint32_t age; /* of its next use */
    char rest[40];
};
_Static_assert(sizeof(struct thing) == 64, "a power of two");

#define THINGS_PER_SEGMENT (OBJECT_POOL_SEGMENT_SIZE / sizeof(struct thing))

#define CACHES  3
#define AGE_MAX 1000000

struct fixture {
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache caches[CACHES];
    uint32_t *live; /* indices that were taken, `live_count` of them */
    uint32_t live_count;
    uint32_t *next_age; /* by index: no use may have a lower one */
};

static uint32_t constructed;

static void construct(void *object, uint32_t index, uint32_t floor)
{
    struct thing *thing = object;
    thing->index = index;
    thing->value = 0;
    thing->age = floor;
    constructed++;
}

static uint32_t age(const void *object)
{
    return ((const struct thing *)object)->age;
}

static struct object_pool_shape shape_of(uint32_t limit, uint32_t cache_count)
{
    return (struct object_pool_shape){
        .layout = {sizeof(struct thing), offsetof(struct thing, link)},
        .limit = limit,
        .cache_count = cache_count,
        .construct = construct,
        .age = age,
        .age_max = AGE_MAX,
    };
}

static void fixture_init(struct fixture *fixture, uint32_t limit, uint32_t cache_count)
{
    *fixture = (struct fixture){0};
    constructed = 0;
    counting_allocator_init(&fixture->memory);
    fixture->live = malloc((limit + 1) * sizeof *fixture->live);
    assert_non_null(fixture->live);
    fixture->next_age = calloc(limit + 1, sizeof *fixture->next_age);
    assert_non_null(fixture->next_age);
    const struct object_pool_shape shape = shape_of(limit, cache_count);
    assert_true(object_pool_init(&fixture->pool, &fixture->memory.allocator, &shape));
}

static void fixture_deinit(struct fixture *fixture)
{
    object_pool_deinit(&fixture->pool);
    free(fixture->live);
    free(fixture->next_age);
    assert_true(counting_allocator_is_clean(&fixture->memory));
}

static struct thing *thing_at(struct fixture *fixture, uint32_t index)
{
    return object_pool_at(&fixture->pool, index);
}

static uint32_t things_per_page(const struct fixture *fixture)
{
    return (uint32_t)(fixture->pool.page_size / sizeof(struct thing));
}

static enum object_pool_result take(struct fixture *fixture, uint32_t cache)
{
    uint32_t index = OBJECT_NONE;
    const enum object_pool_result result = object_acquire_owner(
        &fixture->pool, fixture->pool.shape.layout, &fixture->caches[cache], &index);
    if (result == OBJECT_POOL_OK) {
        assert_true(object_pool_holds(&fixture->pool, index));
        fixture->live[fixture->live_count++] = index;
        struct thing *thing = thing_at(fixture, index);
        assert_int_equal(thing->index, index);
        assert_true(thing->age >= fixture->next_age[index]);
        fixture->next_age[index] = ++thing->age;
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
        object_release_owner(&fixture->pool, fixture->pool.shape.layout, &fixture->caches[cache],
                             index);
    }
}

static uint32_t ready(struct fixture *fixture)
{
    return load_relaxed(&fixture->pool.ready);
}

/* ---- INV-20: an object is live, in exactly one chain, in a trimmed page, or not yet made ---- */

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

static void audit_trimmed(struct fixture *fixture, struct audit *audit)
{
    const struct object_pool *pool = &fixture->pool;
    const uint32_t before = audit->count;
    for (uint32_t index = pool->reopened.next; index < pool->reopened.end; index++) {
        audit_one(fixture, audit, index);
    }
    for (uint32_t i = 0; i < pool->trimmed_count; i++) {
        const uint32_t first = pool->trimmed[i].first;
        for (uint32_t index = first; index < first + things_per_page(fixture); index++) {
            audit_one(fixture, audit, index);
        }
    }
    assert_int_equal(object_pool_trimmed_objects(&fixture->pool), audit->count - before);
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
    uint32_t chains = 0;
    while (first != OBJECT_NONE) {
        const uint32_t next_chain = thing_at(fixture, first)->link.next_chain;
        audit_chain(fixture, &audit, (struct object_chain){first, batch > 0 ? batch : 1});
        first = next_chain;
        chains++;
    }
    assert_int_equal(object_pool_free_chains(&fixture->pool), chains);
    audit_trimmed(fixture, &audit);
    assert_int_equal(audit.count, ready(fixture) - 1);
    free(audit.seen);
}

/* ---- the limit ---- */

TEST(pool_without_batch_has_an_exact_limit)
{
    struct fixture fixture;
    fixture_init(&fixture, 100, 1);
    assert_int_equal(fixture.pool.batch, 0);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 100);
    give_newest(&fixture, 0, 1);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), 1);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

TEST(pool_without_batch_holds_nothing_back_in_caches)
{
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

TEST(pool_replaces_retired_objects_up_to_its_capacity)
{
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache cache = {0};
    struct object_pool_shape shape = shape_of(2, 1);
    uint32_t index;
    counting_allocator_init(&memory);
    shape.capacity = 3;
    assert_true(object_pool_init(&pool, &memory.allocator, &shape));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                         OBJECT_POOL_OK);
    }
    assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                     OBJECT_POOL_LIMIT);
    object_pool_retire_any(&pool);
    assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                     OBJECT_POOL_OK);
    assert_int_equal(index, 3);
    object_pool_retire_any(&pool);
    assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                     OBJECT_POOL_LIMIT);
    object_pool_deinit(&pool);
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(pool_of_no_objects_is_at_its_limit)
{
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

TEST(pool_batch_is_a_share_of_the_limit_up_to_a_maximum)
{
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

TEST(pool_caches_hold_back_a_64th_of_the_limit_at_most)
{
    check_held_back(128 * CACHES - 1);
    check_held_back(128 * CACHES);
    check_held_back(128 * CACHES * 10);
    check_held_back(128 * CACHES * 10 + 77);
    check_held_back(128 * CACHES * OBJECT_POOL_BATCH_MAX);
    check_held_back(40000);
}

TEST(pool_with_one_cache_reaches_every_object_below_the_limit)
{
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

TEST(pool_give_and_take_stay_within_the_cache)
{
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

TEST(pool_chain_given_by_one_cache_is_taken_by_another)
{
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
TEST(pool_one_way_traffic_between_caches_does_not_grow_it)
{
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

TEST(pool_random_use_loses_and_doubles_nothing)
{
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

TEST(pool_grown_over_segments_keeps_objects_apart)
{
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

TEST(pool_allocates_segments_only_when_needed)
{
    struct fixture fixture;
    fixture_init(&fixture, 10000000, 1);
    assert_int_equal(counting_allocator_live_blocks(&fixture.memory), 1);
    take_count(&fixture, 0, 1);
    assert_int_equal(counting_allocator_live_blocks(&fixture.memory), 2);
    fixture_deinit(&fixture);
}

TEST(pool_object_is_constructed_once_and_kept)
{
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

TEST(pool_holds_exactly_the_objects_made)
{
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

TEST(pool_without_memory_for_its_directory_is_not_made)
{
    struct counting_allocator memory;
    struct object_pool pool;
    const struct object_pool_shape shape = shape_of(1000, 1);
    counting_allocator_init(&memory);
    counting_allocator_fail_once(&memory, 1);
    assert_false(object_pool_init(&pool, &memory.allocator, &shape));
    assert_true(counting_allocator_is_clean(&memory));
}

TEST(pool_without_memory_for_the_first_segment_recovers)
{
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
TEST(pool_without_memory_for_a_later_segment_gives_what_it_has)
{
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

/* ---- giving memory back ---- */

static bool always(void *arg)
{
    (void)arg;
    return true;
}

static size_t trim(struct fixture *fixture)
{
    return object_pool_trim_any(&fixture->pool, always, NULL);
}

/* Takes all there are up to the limit and gives them back, upper ones first: the caches keep the
 * lowest indices. */
static void burst(struct fixture *fixture, uint32_t limit)
{
    assert_int_equal(take_all(fixture, 0, OBJECT_POOL_LIMIT), limit);
    give_newest(fixture, 0, limit);
}

/* Whether all can be taken again, each once: those of trimmed pages newly constructed, with ages
 * that they never had, the others as they were. */
static void check_all_are_there(struct fixture *fixture, uint32_t limit)
{
    const uint32_t trimmed = object_pool_trimmed_objects(&fixture->pool);
    const uint32_t constructed_before = constructed;
    audit_pool(fixture);
    assert_int_equal(take_all(fixture, 0, OBJECT_POOL_LIMIT), limit);
    audit_pool(fixture);
    assert_int_equal(fixture->live_count, limit);
    assert_int_equal(ready(fixture), limit + 1);
    assert_int_equal(object_pool_trimmed_objects(&fixture->pool), 0);
    assert_int_equal(constructed, constructed_before + trimmed);
}

TEST(pool_trim_after_a_burst_gives_nearly_all_back)
{
    struct fixture fixture;
    const uint32_t limit = 100000;
    fixture_init(&fixture, limit, 1);
    burst(&fixture, limit);
    const uint32_t pages = (limit + 1) / things_per_page(&fixture);
    const size_t given = trim(&fixture);
    assert_int_equal(given, object_pool_trimmed_objects(&fixture.pool) * sizeof(struct thing));
    assert_in_range(given / fixture.pool.page_size, pages - 4, pages);
    check_all_are_there(&fixture, limit);
    fixture_deinit(&fixture);
}

/* Chains are of `batch` objects, which divides a page, is a multiple of it, or neither. */
TEST(pool_trim_with_chains_of_any_length_loses_nothing)
{
    static const uint32_t batches[] = {0, 1, 2, 3, 7, 24, 32, 63, 64};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct fixture fixture;
        const uint32_t limit = batches[i] == 0 ? 5000 : 128 * batches[i] + 5;
        fixture_init(&fixture, limit, batches[i] == 0 ? 100 : 1);
        assert_int_equal(fixture.pool.batch, batches[i]);
        burst(&fixture, limit);
        const uint32_t pages = (limit + 1) / things_per_page(&fixture);
        const uint32_t unit = batches[i] > 0 ? batches[i] : 1;
        const size_t given = trim(&fixture);
        assert_true(given / fixture.pool.page_size + 3 + unit > pages);
        check_all_are_there(&fixture, limit);
        fixture_deinit(&fixture);
    }
}

TEST(pool_trim_without_change_gives_nothing_more)
{
    struct fixture fixture;
    const uint32_t limit = 20000;
    fixture_init(&fixture, limit, 1);
    assert_int_equal(trim(&fixture), 0); /* nothing is made yet */
    burst(&fixture, limit);
    assert_true(trim(&fixture) > 0);
    const uint32_t trimmed = object_pool_trimmed_objects(&fixture.pool);
    assert_int_equal(trim(&fixture), 0);
    assert_int_equal(object_pool_trimmed_objects(&fixture.pool), trimmed);
    check_all_are_there(&fixture, limit);
    fixture_deinit(&fixture);
}

TEST(pool_trim_after_each_burst_gives_the_same_back)
{
    struct fixture fixture;
    const uint32_t limit = 70000;
    fixture_init(&fixture, limit, 1);
    burst(&fixture, limit);
    const size_t first = trim(&fixture);
    for (int i = 0; i < 3; i++) {
        check_all_are_there(&fixture, limit);
        give_newest(&fixture, 0, limit);
        assert_in_range(trim(&fixture), first - 2 * fixture.pool.page_size,
                        first + 2 * fixture.pool.page_size);
    }
    assert_true(counting_allocator_live_bytes(&fixture.memory) <
                4 * OBJECT_POOL_SEGMENT_SIZE); /* so neither the stack nor the pool has grown */
    fixture_deinit(&fixture);
}

TEST(pool_uses_chains_then_trimmed_pages_then_grows)
{
    struct fixture fixture;
    const uint32_t limit = 100000;
    const uint32_t used = 20000;
    fixture_init(&fixture, limit, 1);
    take_count(&fixture, 0, used);
    const uint32_t batch = fixture.pool.batch;
    const uint32_t ready_before = ready(&fixture);
    give_newest(&fixture, 0, used);
    assert_true(trim(&fixture) > 0);
    const uint32_t trimmed = object_pool_trimmed_objects(&fixture.pool);
    while (object_pool_free_chains(&fixture.pool) > 0) {
        assert_int_equal(object_pool_trimmed_objects(&fixture.pool), trimmed);
        take_count(&fixture, 0, 1);
    }
    take_count(&fixture, 0, batch); /* the chain taken last */
    while (object_pool_trimmed_objects(&fixture.pool) > 0) {
        assert_int_equal(ready(&fixture), ready_before);
        take_count(&fixture, 0, 1);
    }
    audit_pool(&fixture);
    take_count(&fixture, 0, 2 * batch);
    assert_true(ready(&fixture) > ready_before);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

/* One object of each page stays, in turn live or in the cache of another thread. */
TEST(pool_trim_leaves_pages_with_an_object_in_use)
{
    struct fixture fixture;
    const uint32_t limit = 40000;
    fixture_init(&fixture, limit, CACHES);
    const uint32_t per_page = things_per_page(&fixture);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit);
    uint32_t kept = 0;
    uint32_t cached = 0;
    for (uint32_t i = 0; i < limit; i++) {
        const uint32_t index = fixture.live[i];
        const uint32_t page = index / per_page;
        thing_at(&fixture, index)->value = index + 7;
        const bool pins = page >= 1 && page <= 400 && index % per_page == page % per_page;
        if (pins && page % 4 == 0) {
            fixture.live[kept++] = index;
        } else {
            const bool caches = pins && page % 4 == 1;
            cached += caches;
            object_release_owner(&fixture.pool, fixture.pool.shape.layout,
                                 &fixture.caches[caches ? 1 : 0], index);
        }
    }
    fixture.live_count = kept;
    assert_int_equal(kept + cached, 200);
    assert_int_equal(object_pool_free_chains(&fixture.pool) * fixture.pool.batch,
                     limit - kept - held_in_caches(&fixture));
    const uint32_t pages = (limit + 1) / per_page;
    const size_t given = trim(&fixture);
    assert_true(given / fixture.pool.page_size <= pages - kept - cached);
    assert_true(given / fixture.pool.page_size >= pages - kept - cached - held_in_caches(&fixture));
    audit_pool(&fixture);
    for (uint32_t i = 0; i < kept; i++) {
        assert_int_equal(thing_at(&fixture, fixture.live[i])->value, fixture.live[i] + 7);
    }
    const uint32_t elsewhere = fixture.caches[1].active.count + fixture.caches[1].spare.count;
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit - kept - elsewhere);
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

TEST(pool_trim_keeps_the_limit_with_retired_objects)
{
    struct fixture fixture;
    const uint32_t limit = 20000;
    const uint32_t retired = 3;
    fixture_init(&fixture, limit, 1);
    fixture.pool.shape.capacity = limit + 1; /* the directory has room for that */
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit);
    const uint32_t lost = fixture.live[5000];
    for (uint32_t i = 0; i < retired; i++) {
        object_pool_retire_any(&fixture.pool);
    }
    fixture.live[5000] = fixture.live[--fixture.live_count];
    give_newest(&fixture, 0, limit - 1);
    assert_true(trim(&fixture) > 0);
    for (uint32_t i = 0; i < fixture.pool.trimmed_count; i++) {
        assert_false(lost - fixture.pool.trimmed[i].first < things_per_page(&fixture));
    }
    uint32_t taken = 0;
    for (uint32_t index; object_acquire_owner(&fixture.pool, fixture.pool.shape.layout,
                                              &fixture.caches[0], &index) == OBJECT_POOL_OK;) {
        assert_int_not_equal(index, lost);
        taken++;
    }
    assert_int_equal(taken, limit); /* one of the retired ones was replaced */
    assert_int_equal(ready(&fixture), limit + 2);
    fixture_deinit(&fixture);
}

/* ---- ages ---- */

TEST(pool_trimmed_page_begins_at_its_highest_age)
{
    struct fixture fixture;
    const uint32_t limit = 20000;
    fixture_init(&fixture, limit, 1);
    const uint32_t per_page = things_per_page(&fixture);
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit);
    for (uint32_t index = 1; index <= limit; index++) {
        const uint32_t page = index / per_page;
        const bool is_oldest = index % per_page == page * 7 % per_page;
        thing_at(&fixture, index)->age = is_oldest ? 10 * page : 5;
    }
    give_newest(&fixture, 0, limit);
    assert_true(trim(&fixture) > 0);
    bool *was_trimmed = calloc(limit / per_page + 1, sizeof *was_trimmed);
    assert_non_null(was_trimmed);
    for (uint32_t i = 0; i < fixture.pool.trimmed_count; i++) {
        was_trimmed[fixture.pool.trimmed[i].first / per_page] = true;
    }
    memset(fixture.next_age, 0, (limit + 1) * sizeof *fixture.next_age);
    check_all_are_there(&fixture, limit);
    for (uint32_t index = 1; index <= limit; index++) {
        const uint32_t page = index / per_page;
        if (was_trimmed[page]) {
            const uint32_t floor = 10 * page > 5 ? 10 * page : 5;
            assert_int_equal(thing_at(&fixture, index)->age, floor + 1); /* take adds one */
        }
    }
    free(was_trimmed);
    fixture_deinit(&fixture);
}

TEST(pool_trim_leaves_pages_with_an_object_that_is_too_old)
{
    struct fixture fixture;
    const uint32_t limit = 20000;
    fixture_init(&fixture, limit, 1);
    const uint32_t per_page = things_per_page(&fixture);
    const uint32_t too_old = 100 * per_page + 3;
    const uint32_t old = 101 * per_page + 3;
    assert_int_equal(take_all(&fixture, 0, OBJECT_POOL_LIMIT), limit);
    thing_at(&fixture, too_old)->age = AGE_MAX + 1;
    thing_at(&fixture, old)->age = AGE_MAX;
    give_newest(&fixture, 0, limit);
    assert_true(trim(&fixture) > 0);
    check_all_are_there(&fixture, limit);
    assert_int_equal(thing_at(&fixture, too_old)->age, AGE_MAX + 2); /* take adds one */
    assert_int_equal(thing_at(&fixture, too_old + 1)->age, 2);
    assert_int_equal(thing_at(&fixture, old)->age, AGE_MAX + 1);
    assert_int_equal(thing_at(&fixture, old + 1)->age, AGE_MAX + 1);
    fixture_deinit(&fixture);
}

/* Old completions must not fit the calls of a node that was trimmed; dispatch/call.h. */
TEST(pool_of_events_keeps_the_serials_of_trimmed_nodes)
{
    enum { COUNT = 80 * OBJECT_POOL_BATCH_MAX };
    struct counting_allocator memory;
    struct object_pool pool;
    struct pool_cache cache = {0};
    uint32_t indices[COUNT];
    uint32_t guards[COUNT + 1];
    counting_allocator_init(&memory);
    assert_true(event_pool_init(&pool, &memory.allocator, 1));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &indices[i]),
                         OBJECT_POOL_OK);
        assert_in_range(indices[i], 1, COUNT);
        assert_int_equal(load_relaxed(&event_at(&pool, indices[i])->guard), 0);
        guards[indices[i]] = 2 * (indices[i] * 7919 % 1000);
        store_relaxed(&event_at(&pool, indices[i])->guard, guards[indices[i]]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        object_release_owner(&pool, pool.shape.layout, &cache, indices[i]);
    }
    assert_true(object_pool_trim_any(&pool, always, NULL) > 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t index = OBJECT_NONE;
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                         OBJECT_POOL_OK);
        const uint32_t guard = load_relaxed(&event_at(&pool, index)->guard);
        assert_in_range(guard, guards[index], 2 * 999);
        assert_int_equal(guard % 2, 0); /* not open */
    }
    assert_int_equal(object_pool_trimmed_objects(&pool), 0);
    object_pool_deinit(&pool);
    assert_true(counting_allocator_is_clean(&memory));
}

/* ---- trims that end early ---- */

struct patience {
    uint32_t asked;
    uint32_t most;
};

static bool until_impatient(void *arg)
{
    struct patience *patience = arg;
    return ++patience->asked < patience->most;
}

/* Says no at the first question, at the second, and so on, until there are no more. */
TEST(pool_trim_that_is_stopped_at_any_moment_loses_nothing)
{
    static const uint32_t batches[] = {7, 32};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct fixture fixture;
        const uint32_t limit = 128 * batches[i];
        fixture_init(&fixture, limit, 1);
        burst(&fixture, limit);
        const uint32_t chains = object_pool_free_chains(&fixture.pool);
        const uint64_t blocks = counting_allocator_live_blocks(&fixture.memory);
        struct patience patience = {0};
        for (uint32_t most = 1; most <= 1 + 2 * chains; most++) {
            patience = (struct patience){.asked = 0, .most = most};
            assert_int_equal(object_pool_trim_any(&fixture.pool, until_impatient, &patience), 0);
            assert_int_equal(patience.asked, most);
            assert_int_equal(object_pool_free_chains(&fixture.pool), chains);
            assert_int_equal(object_pool_trimmed_objects(&fixture.pool), 0);
            audit_pool(&fixture);
        }
        patience = (struct patience){.asked = 0, .most = 2 + 2 * chains};
        assert_true(object_pool_trim_any(&fixture.pool, until_impatient, &patience) > 0);
        assert_int_equal(counting_allocator_live_blocks(&fixture.memory), blocks + 1);
        check_all_are_there(&fixture, limit);
        fixture_deinit(&fixture);
    }
}

TEST(pool_trim_without_memory_of_its_own_changes_nothing)
{
    struct fixture fixture;
    const uint32_t limit = 20000;
    fixture_init(&fixture, limit, 1);
    burst(&fixture, limit);
    const uint64_t blocks = counting_allocator_live_blocks(&fixture.memory);
    for (uint32_t n = 1; n <= 2; n++) {
        counting_allocator_fail_once(&fixture.memory, n);
        assert_int_equal(trim(&fixture), 0);
        assert_int_equal(object_pool_trimmed_objects(&fixture.pool), 0);
        assert_int_equal(counting_allocator_live_blocks(&fixture.memory), blocks);
        audit_pool(&fixture);
    }
    counting_allocator_fail_never(&fixture.memory);
    assert_true(trim(&fixture) > 0);
    check_all_are_there(&fixture, limit);
    fixture_deinit(&fixture);
}

/* The stack of trimmed pages that there is stays as it is when it cannot grow. */
TEST(pool_trim_without_memory_for_more_pages_keeps_those_it_has)
{
    struct fixture fixture;
    const uint32_t limit = 40000;
    fixture_init(&fixture, limit, 1);
    take_count(&fixture, 0, limit / 2);
    give_newest(&fixture, 0, limit / 2);
    assert_true(trim(&fixture) > 0);
    take_count(&fixture, 0, limit);
    give_newest(&fixture, 0, limit / 2); /* the upper half */
    assert_true(trim(&fixture) > 0);
    const uint32_t trimmed = object_pool_trimmed_objects(&fixture.pool);
    give_newest(&fixture, 0, limit / 2);
    counting_allocator_fail_once(&fixture.memory, 2);
    assert_int_equal(trim(&fixture), 0);
    assert_int_equal(object_pool_trimmed_objects(&fixture.pool), trimmed);
    counting_allocator_fail_never(&fixture.memory);
    assert_true(trim(&fixture) > 0);
    assert_true(object_pool_trimmed_objects(&fixture.pool) > trimmed);
    check_all_are_there(&fixture, limit);
    fixture_deinit(&fixture);
}

struct needy_taker {
    struct fixture *fixture;
    pthread_t thread;
    bool is_started;
    enum object_pool_result result;
    uint32_t index;
    atomic_u32 is_done;
};

static void *take_needily(void *arg)
{
    struct needy_taker *taker = arg;
    taker->result = object_acquire_owner(&taker->fixture->pool, taker->fixture->pool.shape.layout,
                                         &taker->fixture->caches[1], &taker->index);
    store_release(&taker->is_done, true);
    return NULL;
}

/* Goes on for ever, but a taker has come who finds nothing. */
static bool with_a_taker(void *arg)
{
    struct needy_taker *taker = arg;
    if (!taker->is_started) {
        taker->is_started = pthread_create(&taker->thread, NULL, take_needily, taker) == 0;
        while (taker->is_started && !load_relaxed(&taker->fixture->pool.is_wanted) &&
               !load_acquire(&taker->is_done)) {
        }
    }
    return true;
}

TEST(pool_trim_ends_early_for_a_taker_at_the_limit)
{
    struct fixture fixture;
    const uint32_t limit = 40000;
    fixture_init(&fixture, limit, CACHES);
    burst(&fixture, limit);
    struct needy_taker taker = {.fixture = &fixture};
    const size_t given = object_pool_trim_any(&fixture.pool, with_a_taker, &taker);
    assert_true(taker.is_started);
    assert_int_equal(pthread_join(taker.thread, NULL), 0);
    assert_int_equal(taker.result, OBJECT_POOL_OK);
    assert_int_equal(given, 0);
    fixture.live[fixture.live_count++] = taker.index;
    audit_pool(&fixture);
    assert_true(trim(&fixture) > 0); /* the next one works again */
    audit_pool(&fixture);
    fixture_deinit(&fixture);
}

/* ---- what the system does with it ---- */

static uint32_t resident_pages(const struct object_pool *pool)
{
    uint32_t resident = 0;
    unsigned char pages[OBJECT_POOL_SEGMENT_SIZE / 4096];
    for (uint32_t i = 0; i < pool->segment_count; i++) {
        void *segment = load_relaxed(&pool->segments[i]);
        if (segment != NULL) {
            assert_int_equal(mincore(segment, OBJECT_POOL_SEGMENT_SIZE, pages), 0);
            for (size_t page = 0; page < OBJECT_POOL_SEGMENT_SIZE / pool->page_size; page++) {
                resident += pages[page] & 1;
            }
        }
    }
    return resident;
}

TEST(pool_trim_of_the_default_allocator_empties_resident_pages)
{
    enum { COUNT = 6 * THINGS_PER_SEGMENT - 1 }; /* whole ones, as they may be huge pages */
    const struct allocator allocator = {.function = allocator_default};
    struct object_pool pool;
    struct pool_cache cache = {0};
    const struct object_pool_shape shape = shape_of(COUNT, 1);
    assert_true(object_pool_init(&pool, &allocator, &shape));
    uint32_t *indices = malloc(COUNT * sizeof *indices);
    assert_non_null(indices);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &indices[i]),
                         OBJECT_POOL_OK);
    }
    const uint32_t full = resident_pages(&pool);
    assert_true(full >= COUNT * sizeof(struct thing) / pool.page_size);
    for (uint32_t i = 0; i < COUNT; i++) {
        object_release_owner(&pool, pool.shape.layout, &cache, indices[i]);
    }
    const size_t given = object_pool_trim_any(&pool, always, NULL);
    const uint32_t left = resident_pages(&pool);
    assert_true(left <= full - given / pool.page_size);
    assert_true(left < full / 20);
    uint32_t index = 1; /* what a stale index leads to */
    while (((struct thing *)object_pool_at(&pool, index))->index == index) {
        index++;
    }
    assert_true(object_pool_holds(&pool, index));
    assert_int_equal(((struct thing *)object_pool_at(&pool, index))->age, 0);
    free(indices);
    object_pool_deinit(&pool);
}

/* The flags of the mapping that an address lies in; empty if the system does not tell. */
static void read_mapping_flags(const void *address, char *flags, size_t size)
{
    char line[512];
    bool is_inside = false;
    flags[0] = '\0';
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file != NULL && flags[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        uintptr_t begin;
        uintptr_t end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
            is_inside = (uintptr_t)address - begin < end - begin;
        } else if (is_inside && strncmp(line, "VmFlags:", 8) == 0) {
            (void)snprintf(flags, size, "%s", line + 8);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* The system would fill the gaps when it makes a huge page of a segment with gaps. */
TEST(pool_trim_of_a_part_of_a_segment_forbids_huge_pages_there)
{
    enum { COUNT = 3 * THINGS_PER_SEGMENT - 1 };
    char flags[512];
    struct object_pool pool;
    struct pool_cache cache = {0};
    static uint32_t indices[COUNT];
    const struct allocator allocator = {.function = allocator_default};
    const struct object_pool_shape shape = shape_of(COUNT, 1);
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
        skip();
    }
    assert_true(object_pool_init(&pool, &allocator, &shape));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &indices[i]),
                         OBJECT_POOL_OK);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        if (indices[i] != THINGS_PER_SEGMENT + 5000) {
            object_release_owner(&pool, pool.shape.layout, &cache, indices[i]);
        }
    }
    assert_true(object_pool_trim_any(&pool, always, NULL) > OBJECT_POOL_SEGMENT_SIZE);
    read_mapping_flags(object_pool_at(&pool, THINGS_PER_SEGMENT), flags, sizeof flags);
    if (flags[0] != '\0') {
        assert_non_null(strstr(flags, " nh"));
    }
    object_pool_deinit(&pool);
}

/* Memory whose content outlives MADV_DONTNEED. */
static void *allocate_shared(void *arg, void *pointer, size_t old_size, size_t new_size,
                             size_t alignment)
{
    (void)arg;
    (void)alignment; /* mmap aligns to pages */
    void *fresh = NULL;
    if (new_size > 0) {
        fresh = mmap(NULL, new_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(fresh, MAP_FAILED);
    }
    if (pointer != NULL) {
        assert_int_equal(new_size, 0); /* growing is not needed here */
        assert_int_equal(munmap(pointer, old_size), 0);
    }
    return fresh;
}

TEST(pool_trim_of_memory_that_keeps_its_content_is_right_too)
{
    enum { COUNT = 20000 };
    const struct allocator allocator = {.function = allocate_shared};
    struct object_pool pool;
    struct pool_cache cache = {0};
    uint32_t indices[COUNT];
    const struct object_pool_shape shape = shape_of(COUNT, 1);
    assert_true(object_pool_init(&pool, &allocator, &shape));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &indices[i]),
                         OBJECT_POOL_OK);
        ((struct thing *)object_pool_at(&pool, indices[i]))->age = 5 + indices[i];
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        object_release_owner(&pool, pool.shape.layout, &cache, indices[i]);
    }
    (void)object_pool_trim_any(&pool, always, NULL);
    assert_true(object_pool_trimmed_objects(&pool) > COUNT / 2);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t index = OBJECT_NONE;
        assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                         OBJECT_POOL_OK);
        assert_true(((struct thing *)object_pool_at(&pool, index))->age >= 5 + index);
    }
    uint32_t index;
    assert_int_equal(object_acquire_owner(&pool, pool.shape.layout, &cache, &index),
                     OBJECT_POOL_LIMIT);
    object_pool_deinit(&pool);
}

/* ---- all together ---- */

static void trim_randomly(struct fixture *fixture, uint64_t *random)
{
    const uint32_t chains = object_pool_free_chains(&fixture->pool);
    struct patience patience = {.most = 2 + random_below(random, 4 * chains + 1)};
    (void)object_pool_trim_any(&fixture->pool, until_impatient, &patience);
}

/* Up to the limit and down to nothing, by way of all caches. */
static void swing_randomly(struct fixture *fixture, uint64_t *random, uint32_t limit)
{
    const uint32_t target = random_below(random, limit + 1);
    enum object_pool_result result = OBJECT_POOL_OK;
    while (fixture->live_count < target && result == OBJECT_POOL_OK) {
        result = take(fixture, random_below(random, CACHES));
    }
    while (fixture->live_count > target) {
        const uint32_t at = random_below(random, fixture->live_count);
        const uint32_t index = fixture->live[at];
        fixture->live[at] = fixture->live[fixture->live_count - 1];
        fixture->live[fixture->live_count - 1] = index;
        give_newest(fixture, random_below(random, CACHES), 1);
    }
}

TEST(pool_random_use_with_trims_loses_doubles_and_repeats_nothing)
{
    const uint64_t seed = 20250117;
    print_message("seed %llu\n", (unsigned long long)seed);
    uint64_t random = seed;
    static const uint32_t limits[] = {300, 128 * CACHES * 5 + 11, 128 * CACHES * 32};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct fixture fixture;
        uint32_t most_trimmed = 0;
        fixture_init(&fixture, limits[i], CACHES);
        for (int step = 0; step < 150; step++) {
            swing_randomly(&fixture, &random, random_below(&random, 3) == 0 ? 20 : limits[i]);
            audit_pool(&fixture);
            trim_randomly(&fixture, &random);
            audit_pool(&fixture);
            const uint32_t trimmed = object_pool_trimmed_objects(&fixture.pool);
            most_trimmed = trimmed > most_trimmed ? trimmed : most_trimmed;
        }
        assert_true(most_trimmed > limits[i] / 4);
        fixture_deinit(&fixture);
    }
}
