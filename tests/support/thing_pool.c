/* SPDX-License-Identifier: MIT */
#include "thing_pool.h"

#include "pool_support.h"

struct things things;

static void construct(void *object, uint32_t index, uint32_t floor)
{
    struct thing *thing = object;
    thing->index = index;
    thing->value = 0;
    thing->age = floor;
    things.constructed++;
}

static uint32_t age(const void *object)
{
    return ((const struct thing *)object)->age;
}

struct object_pool_shape thing_shape(uint32_t limit, uint32_t cache_count)
{
    return (struct object_pool_shape){
        .layout = {sizeof(struct thing), offsetof(struct thing, link)},
        .limit = limit,
        .cache_count = cache_count,
        .construct = construct,
        .age = age,
        .age_max = THING_AGE_MAX,
    };
}

static void close_things(void)
{
    object_pool_deinit(&things.pool);
}

void things_open_with(const struct allocator *allocator, uint32_t limit, uint32_t cache_count)
{
    const struct object_pool_shape shape = thing_shape(limit, cache_count);
    things = (struct things){
        .limit = limit,
        .live = test_alloc((limit + 2) * sizeof(uint32_t)),
        .next_age = test_alloc((limit + 2) * sizeof(uint32_t)),
    };
    assert_true(object_pool_init(&things.pool, allocator, &shape));
    test_at_end(close_things);
}

void things_open(uint32_t limit, uint32_t cache_count)
{
    memory_open();
    things_open_with(&memory.allocator, limit, cache_count);
}

struct thing *thing_at(uint32_t index)
{
    return object_pool_at(&things.pool, index);
}

uint32_t things_per_page(void)
{
    return (uint32_t)(things.pool.page_size / sizeof(struct thing));
}

uint32_t things_ready(void)
{
    return load_relaxed(&things.pool.ready);
}

uint32_t things_held(void)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < THING_CACHES; i++) {
        held += things.caches[i].active.count + things.caches[i].spare.count;
    }
    return held;
}

/* ---- taking and giving ---- */

enum object_pool_result thing_take(uint32_t cache)
{
    uint32_t index = OBJECT_NONE;
    const enum object_pool_result result =
        object_acquire_owner(&things.pool, things.pool.shape.layout, &things.caches[cache], &index);
    if (result == OBJECT_POOL_OK) {
        assert_true(object_pool_holds(&things.pool, index));
        things.live[things.live_count++] = index;
        struct thing *thing = thing_at(index);
        assert_int_equal(thing->index, index);
        assert_true(thing->age >= things.next_age[index]);
        things.next_age[index] = ++thing->age;
    }
    return result;
}

void things_take(uint32_t cache, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(thing_take(cache), OBJECT_POOL_OK);
    }
}

uint32_t things_take_all(uint32_t cache, enum object_pool_result end)
{
    const uint32_t before = things.live_count;
    enum object_pool_result result;
    do {
        result = thing_take(cache);
    } while (result == OBJECT_POOL_OK);
    assert_int_equal(result, end);
    return things.live_count - before;
}

void things_give(uint32_t cache, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pool_give(&things.pool, &things.caches[cache], things.live[--things.live_count]);
    }
}

/* ---- the audit ---- */

struct audit {
    bool *seen;
    uint32_t count;
};

static void see(struct audit *audit, uint32_t index)
{
    assert_true(object_pool_holds(&things.pool, index));
    assert_false(audit->seen[index]);
    audit->seen[index] = true;
    audit->count++;
}

static void see_chain(struct audit *audit, struct object_chain chain)
{
    uint32_t index = chain.first;
    for (uint32_t i = 0; i < chain.count; i++) {
        see(audit, index);
        index = thing_at(index)->link.next;
    }
}

static void see_caches(struct audit *audit)
{
    for (uint32_t i = 0; i < THING_CACHES; i++) {
        const struct pool_cache *cache = &things.caches[i];
        assert_true(cache->spare.count == 0 || cache->spare.count == things.pool.batch);
        see_chain(audit, cache->active);
        see_chain(audit, cache->spare);
    }
}

static void see_chains(struct audit *audit)
{
    const uint32_t length = things.pool.batch > 0 ? things.pool.batch : 1;
    uint32_t chains = 0;
    for (uint32_t first = things.pool.chains; first != OBJECT_NONE; chains++) {
        const uint32_t next_chain = thing_at(first)->link.next_chain;
        see_chain(audit, (struct object_chain){first, length});
        first = next_chain;
    }
    assert_int_equal(object_pool_free_chains(&things.pool), chains);
}

static void see_trimmed(struct audit *audit)
{
    const struct object_pool *pool = &things.pool;
    const uint32_t before = audit->count;
    for (uint32_t index = pool->reopened.next; index < pool->reopened.end; index++) {
        see(audit, index);
    }
    for (uint32_t i = 0; i < pool->trimmed_count; i++) {
        const uint32_t first = pool->trimmed[i].first;
        for (uint32_t index = first; index < first + things_per_page(); index++) {
            see(audit, index);
        }
    }
    assert_int_equal(object_pool_trimmed_objects(&things.pool), audit->count - before);
}

void things_audit(void)
{
    struct audit audit = {.seen = calloc(things_ready(), sizeof(bool)), .count = 0};
    assert_non_null(audit.seen);
    for (uint32_t i = 0; i < things.live_count; i++) {
        see(&audit, things.live[i]);
    }
    see_caches(&audit);
    see_chains(&audit);
    see_trimmed(&audit);
    assert_int_equal(audit.count, things_ready() - 1);
    free(audit.seen);
}
