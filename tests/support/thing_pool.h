/* SPDX-License-Identifier: MIT */
/* An object pool full of things, for tests of the pool itself: it knows which ones are live and how
 * old each must be, and can count all there are. */
#ifndef SKUA_TESTS_THING_POOL_H
#define SKUA_TESTS_THING_POOL_H

#include "concurrent/object_pool.h"
#include "test_memory.h"

struct thing {
    uint64_t value;
    struct pool_link link;
    uint32_t index;
    uint32_t age; /* of its next use */
    char rest[40];
};
_Static_assert(sizeof(struct thing) == 64, "a power of two");

#define THINGS_PER_SEGMENT (OBJECT_POOL_SEGMENT_SIZE / sizeof(struct thing))
#define THING_CACHES       3
#define THING_AGE_MAX      1000000

struct things {
    struct object_pool pool;
    struct pool_cache caches[THING_CACHES];
    uint32_t limit;
    uint32_t constructed;
    uint32_t *live; /* indices that were taken, `live_count` of them */
    uint32_t live_count;
    uint32_t *next_age; /* by index: no use may have a lower one */
};

/* Those of the current test. */
extern struct things things;

/* A pool with this limit and so many caches. Opens the memory, too. */
void things_open(uint32_t limit, uint32_t cache_count);

/* The same with memory from elsewhere. */
void things_open_with(const struct allocator *allocator, uint32_t limit, uint32_t cache_count);

struct object_pool_shape thing_shape(uint32_t limit, uint32_t cache_count);

struct thing *thing_at(uint32_t index);
uint32_t things_per_page(void);

/* Objects made so far, and one more: there is no object 0. */
uint32_t things_ready(void);

/* Those in caches. */
uint32_t things_held(void);

/* ---- taking and giving, by way of a cache ---- */

enum object_pool_result thing_take(uint32_t cache);

/* So many, which there must be. */
void things_take(uint32_t cache, uint32_t count);

/* As many as there are, until the pool says `end`; returns how many. */
uint32_t things_take_all(uint32_t cache, enum object_pool_result end);

/* Those that were taken last. */
void things_give(uint32_t cache, uint32_t count);

/* INV-20: each thing is live, in exactly one chain, in a trimmed page, or not yet made. */
void things_audit(void);

#endif
