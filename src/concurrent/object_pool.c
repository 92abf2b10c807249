/* SPDX-License-Identifier: MIT */
#include "concurrent/object_pool.h"

#include "base/assert.h"
#include "base/mutex.h"

/* So few objects in each cache that all caches together hold back 1/64 of the limit at most. */
static uint32_t batch_for(const struct object_pool_shape *shape)
{
    const uint32_t share = shape->limit / 128 / shape->cache_count;
    return share < OBJECT_POOL_BATCH_MAX ? share : OBJECT_POOL_BATCH_MAX;
}

static uint32_t chain_length(const struct object_pool *pool)
{
    return pool->batch > 0 ? pool->batch : 1;
}

static size_t directory_size(const struct object_pool *pool)
{
    return pool->segment_count * sizeof *pool->segments;
}

bool object_pool_init(struct object_pool *pool, const struct allocator *allocator,
                      const struct object_pool_shape *shape)
{
    const uint32_t per_segment = (uint32_t)(OBJECT_POOL_SEGMENT_SIZE / shape->object_size);
    SKUA_ASSERT((per_segment & (per_segment - 1)) == 0);
    pool->shape = *shape;
    if (pool->shape.capacity == 0) {
        pool->shape.capacity = shape->limit;
    }
    pool->allocator = allocator;
    pool->segment_shift = (uint32_t)__builtin_ctz(per_segment);
    pool->segment_count = (pool->shape.capacity >> pool->segment_shift) + 1;
    pool->batch = batch_for(shape);
    pool->segments = alloc_take_zeroed(allocator, directory_size(pool), CACHE_LINE);
    if (pool->segments == NULL) {
        return false;
    }
    mutex_init(&pool->lock);
    store_relaxed(&pool->ready, OBJECT_NONE + 1); /* not shared yet */
    pool->chains = OBJECT_NONE;
    pool->retired = 0;
    return true;
}

void object_pool_deinit(struct object_pool *pool)
{
    for (uint32_t i = 0; i < pool->segment_count; i++) {
        void *segment = load_relaxed(&pool->segments[i]); /* nobody else is left */
        alloc_give(pool->allocator, segment, OBJECT_POOL_SEGMENT_SIZE, CACHE_LINE);
    }
    alloc_give(pool->allocator, (void *)pool->segments, directory_size(pool), CACHE_LINE);
    mutex_deinit(&pool->lock);
}

void object_pool_retire(struct object_pool *pool)
{
    mutex_lock(&pool->lock);
    pool->retired++;
    mutex_unlock(&pool->lock);
}

static void *construct_locked(struct object_pool *pool, uint32_t index)
{
    atomic_ptr *segment = &pool->segments[index >> pool->segment_shift];
    if (load_relaxed(segment) == NULL) { /* written under the lock only */
        void *memory = alloc_take(pool->allocator, OBJECT_POOL_SEGMENT_SIZE, CACHE_LINE);
        if (memory == NULL) {
            return NULL;
        }
        store_relaxed(segment, memory); /* published by `ready` */
    }
    void *object = object_pool_at(pool, index);
    pool->shape.construct(object, index);
    return object;
}

/* Makes a chain of new objects, as long as limit and memory allow. */
static enum object_pool_result grow_locked(struct object_pool *pool, struct object_chain *chain)
{
    uint32_t index = load_relaxed(&pool->ready); /* written under the lock only */
    const uint32_t room = pool->shape.capacity - pool->shape.limit;
    const uint32_t end = pool->shape.limit + (pool->retired < room ? pool->retired : room) + 1;
    if (index == end) {
        return OBJECT_POOL_LIMIT;
    }
    while (chain->count < chain_length(pool) && index < end) {
        void *object = construct_locked(pool, index);
        if (object == NULL) {
            break;
        }
        object_pool_link(pool, object)->next = chain->first;
        chain->first = index++;
        chain->count++;
    }
    store_seq_cst(&pool->ready, index); /* release MO-pool, seq_cst MO-stop */
    return chain->count > 0 ? OBJECT_POOL_OK : OBJECT_POOL_NO_MEMORY;
}

enum object_pool_result object_pool_refill(struct object_pool *pool, struct pool_cache *cache)
{
    if (cache->spare.count > 0) {
        cache->active = cache->spare;
        cache->spare = (struct object_chain){0};
        return OBJECT_POOL_OK;
    }
    cache->active = (struct object_chain){0};
    enum object_pool_result result = OBJECT_POOL_OK;
    mutex_lock(&pool->lock);
    if (pool->chains != OBJECT_NONE) {
        cache->active = (struct object_chain){pool->chains, chain_length(pool)};
        pool->chains = object_pool_link(pool, object_pool_at(pool, pool->chains))->next_chain;
    } else {
        result = grow_locked(pool, &cache->active);
    }
    mutex_unlock(&pool->lock);
    return result;
}

void object_pool_put_away(struct object_pool *pool, struct pool_cache *cache)
{
    if (pool->batch > 0 && cache->spare.count == 0) {
        cache->spare = cache->active;
    } else {
        struct pool_link *link = object_pool_link(pool, object_pool_at(pool, cache->active.first));
        mutex_lock(&pool->lock);
        link->next_chain = pool->chains;
        pool->chains = cache->active.first;
        mutex_unlock(&pool->lock);
    }
    cache->active = (struct object_chain){0};
}
