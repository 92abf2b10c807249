/* SPDX-License-Identifier: MIT */
/* Object pools, for tests of what lives in them: acquiring always works. */
#ifndef SKUA_TESTS_POOL_SUPPORT_H
#define SKUA_TESTS_POOL_SUPPORT_H

#include "concurrent/object_pool.h"

/* Makes a pool in the memory of the test (test_memory.h), until the test ends. One to a test. */
void pool_open(struct object_pool *pool, const struct object_pool_shape *shape);

uint32_t pool_take(struct object_pool *pool, struct pool_cache *cache);
void pool_give(struct object_pool *pool, struct pool_cache *cache, uint32_t index);

/* The same for many; `indices` has room for `count`. */
void pool_take_many(struct object_pool *pool, struct pool_cache *cache, uint32_t *indices,
                    uint32_t count);
void pool_give_many(struct object_pool *pool, struct pool_cache *cache, const uint32_t *indices,
                    uint32_t count);

/* Trims all that can be trimmed; returns how many bytes that was. */
size_t pool_trim(struct object_pool *pool);

#endif
