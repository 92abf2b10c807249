/* SPDX-License-Identifier: MIT */
#include "pool_support.h"

#include "test_memory.h"

static struct object_pool *opened;

static void close_opened(void)
{
    object_pool_deinit(opened);
}

void pool_open(struct object_pool *pool, const struct object_pool_shape *shape)
{
    assert_true(object_pool_init(pool, &memory.allocator, shape));
    opened = pool;
    test_at_end(close_opened);
}

uint32_t pool_take(struct object_pool *pool, struct pool_cache *cache)
{
    uint32_t index = OBJECT_NONE;
    assert_int_equal(object_acquire_owner(pool, pool->shape.layout, cache, &index), OBJECT_POOL_OK);
    return index;
}

void pool_give(struct object_pool *pool, struct pool_cache *cache, uint32_t index)
{
    object_release_owner(pool, pool->shape.layout, cache, index);
}

void pool_take_many(struct object_pool *pool, struct pool_cache *cache, uint32_t *indices,
                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = pool_take(pool, cache);
    }
}

void pool_give_many(struct object_pool *pool, struct pool_cache *cache, const uint32_t *indices,
                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pool_give(pool, cache, indices[i]);
    }
}

static bool go_on(void *arg)
{
    (void)arg;
    return true;
}

size_t pool_trim(struct object_pool *pool)
{
    return object_pool_trim_any(pool, go_on, NULL);
}
