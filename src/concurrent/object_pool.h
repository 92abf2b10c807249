/* SPDX-License-Identifier: MIT */
/* Objects of one size, found by a 32-bit index, that are never unmapped before the pool is: a stale
 * index leads to some object of the same type, so a thread that arrives late reads something
 * harmless and a compare-exchange on the object's own words tells it so. No epochs, no hazard
 * pointers.
 *
 * Objects live in segments of 2 MiB; a directory of segment pointers is sized for the limit at the
 * start. Growing adds a segment: nothing is copied, nobody waits but other growers.
 *
 * Each worker has a cache: two chains of up to `batch` free objects, linked through themselves.
 * Acquiring and releasing touch only the cache; whole chains are exchanged with the pool under its
 * lock, one exchange per `batch` objects at most. A pool whose limit is small has batch 0: its
 * caches hold nothing back and the limit is exact.
 *
 * After a burst, object_pool_trim_any returns the memory of free objects to the system, by pages.
 * The mapping stays, so a stale index still leads to something harmless: to the free object as it
 * was, or to zeros. An object's age, the number that tells its uses apart (a generation, a serial),
 * must outlive its content, but a trim loses all ages on the page. So the pool remembers for each
 * trimmed page the highest of them, its floor, and constructs the objects with that floor when the
 * page is used again: they may skip ages, but never repeat one. A page with an object older than
 * `age_max` is not trimmed, so that its neighbours do not lose their whole range of ages to the
 * jump; that also makes the ages of one object compare as numbers although a serial may wrap
 * around.
 *
 * INV-20: an object is live, or in exactly one chain, or in a trimmed page, or not yet constructed
 * (index >= ready). */
#ifndef SKUA_CONCURRENT_OBJECT_POOL_H
#define SKUA_CONCURRENT_OBJECT_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/allocator.h"
#include "base/atomic.h"
#include "base/compiler.h"

#define OBJECT_POOL_BATCH_MAX    64
#define OBJECT_POOL_SEGMENT_SIZE ((size_t)2 << 20)

/* Index 0 is never an object, so that it can mean "none". */
#define OBJECT_NONE 0

/* Lies inside a free object, at the pool's link_offset. */
struct pool_link {
    uint32_t next;       /* in this chain */
    uint32_t next_chain; /* in a chain's first object, while the chain is the pool's */
};

/* The layout of a pool's objects. Users of a pool pass theirs as a constant to the functions that
 * run for every message: finding an object is then two shifts and a load. */
struct object_layout {
    uint32_t size; /* a power of two */
    uint32_t link_offset;
};

struct object_pool_shape {
    struct object_layout layout;
    uint32_t limit;       /* objects at most, not counting retired ones */
    uint32_t capacity;    /* indices at most, retired ones included; 0: as many as limit */
    uint32_t cache_count; /* how many caches will share the limit */
    /* Initialises a free object: the first time before any index to it exists, and after a trim,
     * when only stale indices do. Its age becomes `floor` or more; the floor is 0 the first
     * time. */
    void (*construct)(void *object, uint32_t index, uint32_t floor);
    /* For object_pool_trim_any only: the age of a free object. An object that is constructed with
     * this floor or a higher one never repeats an age that it had so far. */
    uint32_t (*age)(const void *object);
    uint32_t age_max; /* a page with an older object is not trimmed */
};

/* Free objects whose memory was returned to the system: `first` and the others on its page. */
struct trimmed_page {
    uint32_t first;
    uint32_t floor;
};

struct object_pool {
    /* Written by init only. */
    struct object_pool_shape shape;
    const struct allocator *allocator;
    uint32_t segment_count; /* entries in the directory */
    uint32_t batch;
    uint32_t page_shift; /* to the page of an index; pages are the unit of trimming */
    size_t page_size;    /* in bytes; segments are aligned to it */
    void **segments;     /* each written once, under lock, before `ready` covers it */
    /* Indices below it are constructed. Written under lock. */
    CACHE_ALIGNED atomic_u32 ready;
    CACHE_ALIGNED pthread_mutex_t lock;
    /* Written under lock. */
    uint32_t chains; /* first objects of full chains */
    atomic_u32 chain_count;
    uint32_t retired;
    struct trimmed_page *trimmed; /* a stack */
    uint32_t trimmed_count;
    uint32_t trimmed_capacity;
    struct { /* the remainder of a trimmed page that is being reused */
        uint32_t next;
        uint32_t end;
        uint32_t floor;
    } reopened;
    /* A trim has taken chains out; a thread that needs them sets is_wanted and waits for
     * put_back. */
    bool is_trimming;
    atomic_u32 is_wanted;
    pthread_cond_t put_back;
};

struct object_chain {
    uint32_t first;
    uint32_t count;
};

struct pool_cache {
    struct object_chain active;
    struct object_chain spare; /* empty, or `batch` objects */
};

enum object_pool_result { OBJECT_POOL_OK, OBJECT_POOL_LIMIT, OBJECT_POOL_NO_MEMORY };

NODISCARD bool object_pool_init(struct object_pool *pool, const struct allocator *allocator,
                                const struct object_pool_shape *shape);
void object_pool_deinit(struct object_pool *pool);

/* Says that an acquired object will never be released: a new one may take its place. */
void object_pool_retire_any(struct object_pool *pool);

/* Full chains in the pool, which a trim would go through. Any thread; a snapshot. */
static inline uint32_t object_pool_free_chains(struct object_pool *pool)
{
    return load_relaxed(&pool->chain_count); /* statistic */
}

/* Objects in trimmed pages. Any thread; a snapshot. */
uint32_t object_pool_trimmed_objects(struct object_pool *pool);

/* Returns to the system the memory of pages on which every object is free and in one of the pool's
 * chains (objects in caches stay, and so do their pages). The result is the number of bytes, 0 also
 * if there was no memory to work with.
 *
 * It first takes the full chains out of the pool, then calls go_on, and again before it counts and
 * before it sorts a chain: when go_on returns false, it puts all chains back and returns 0. A
 * thread that would find the pool at its limit, or the system out of memory, while chains are out
 * makes it end in the same way, and waits for that.
 *
 * PRECONDITION: if the first call of go_on returned true, there was a moment during it at which no
 * other thread was between looking up an index and being done with the object. An earlier moment is
 * not enough: after it one thread could find an object alive, another release it into a chain that
 * is then taken out, and the first still use it when the object loses its content. After that
 * moment, other threads may acquire, release and look up any index: in a trimmed page they find an
 * old free object, zeros, or a newly constructed free object, until it is acquired.
 *
 * Called by one thread at a time. Neither it nor go_on may hold or wait for a lock that a thread
 * holds when it acquires objects. */
size_t object_pool_trim_any(struct object_pool *pool, bool (*go_on)(void *arg), void *arg);

/* Slow paths of acquiring and releasing. */
NODISCARD enum object_pool_result object_pool_refill_owner(struct object_pool *pool,
                                                           struct pool_cache *cache);
void object_pool_put_away_owner(struct object_pool *pool, struct pool_cache *cache);

/* The shift from an index to that of its segment. */
static inline uint32_t object_segment_shift(struct object_layout layout)
{
    return (uint32_t)(__builtin_ctzl(OBJECT_POOL_SEGMENT_SIZE) - __builtin_ctz(layout.size));
}

/* The object of an index that was handed out, or that object_pool_holds. */
static inline void *object_at(const struct object_pool *pool, struct object_layout layout,
                              uint32_t index)
{
    const uint32_t shift = object_segment_shift(layout);
    /* Not atomic, so that the compiler may look a segment up once for several uses. It was written
     * before any thread knew the index; whatever carried that here ordered the two. */
    char *segment = pool->segments[index >> shift];
    const uint32_t within = index & ((UINT32_C(1) << shift) - 1);
    return segment + ((size_t)within << __builtin_ctz(layout.size));
}

static inline void *object_pool_at(const struct object_pool *pool, uint32_t index)
{
    return object_at(pool, pool->shape.layout, index);
}

/* Whether there is an object with this index, which may be forged. */
static inline bool object_pool_holds(struct object_pool *pool, uint32_t index)
{
    /* acquire MO-pool: pairs with the store that follows construction; makes the objects and the
     * directory entry visible. seq_cst for the scan of shutdown (MO-stop). */
    return index != OBJECT_NONE && index < load_seq_cst(&pool->ready);
}

/* The index of the object that an address lies in, which may be forged; OBJECT_NONE: it lies in
 * none. Any thread; looks through the segments. */
uint32_t object_pool_index_of(struct object_pool *pool, const void *address);

static inline struct pool_link *object_link(struct object_layout layout, void *object)
{
    return (struct pool_link *)(void *)((char *)object + layout.link_offset);
}

static inline struct pool_link *object_pool_link(const struct object_pool *pool, void *object)
{
    return object_link(pool->shape.layout, object);
}

/* Sees to it that the owner's cache has a free object. */
NODISCARD static inline enum object_pool_result object_provide_owner(struct object_pool *pool,
                                                                     struct pool_cache *cache)
{
    return LIKELY(cache->active.count > 0) ? OBJECT_POOL_OK : object_pool_refill_owner(pool, cache);
}

/* Acquires one that the cache has. Returns it, and writes its index to *index. */
static inline void *object_acquire_cached_owner(const struct object_pool *pool,
                                                struct object_layout layout,
                                                struct pool_cache *cache, uint32_t *index)
{
    const uint32_t first = cache->active.first;
    void *object = object_at(pool, layout, first);
    cache->active.first = object_link(layout, object)->next;
    cache->active.count--;
    *index = first;
    return object;
}

/* Acquires a free object through the owner's cache and writes its index to *index. */
NODISCARD static inline enum object_pool_result object_acquire_owner(struct object_pool *pool,
                                                                     struct object_layout layout,
                                                                     struct pool_cache *cache,
                                                                     uint32_t *index)
{
    const enum object_pool_result result = object_provide_owner(pool, cache);
    if (LIKELY(result == OBJECT_POOL_OK)) {
        (void)object_acquire_cached_owner(pool, layout, cache, index);
    }
    return result;
}

/* Releases an object, whose index that is, into the owner's cache. */
static inline void object_return_owner(struct object_pool *pool, struct object_layout layout,
                                       struct pool_cache *cache, void *object, uint32_t index)
{
    object_link(layout, object)->next = cache->active.first;
    cache->active.first = index;
    cache->active.count++;
    if (UNLIKELY(cache->active.count >= pool->batch)) {
        object_pool_put_away_owner(pool, cache);
    }
}

/* The same for who knows only the index. */
static inline void object_release_owner(struct object_pool *pool, struct object_layout layout,
                                        struct pool_cache *cache, uint32_t index)
{
    object_return_owner(pool, layout, cache, object_at(pool, layout, index), index);
}

#endif
