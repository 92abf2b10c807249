/* SPDX-License-Identifier: MIT */
#include "concurrent/object_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mutex.h"

/* Small enough for all caches together to hold back 1/64 of the limit at most. */
static uint32_t batch_for(const struct object_pool_shape *shape)
{
    const uint32_t share = shape->limit / 128 / shape->cache_count;
    return share < OBJECT_POOL_BATCH_MAX ? share : OBJECT_POOL_BATCH_MAX;
}

static uint32_t chain_length(const struct object_pool *pool)
{
    return pool->batch > 0 ? pool->batch : 1;
}

/* The smallest unit of memory that can be trimmed: a page, but at least 4 KiB. */
static size_t trim_unit(void)
{
    const size_t smallest = 4096;
    const long page = sysconf(_SC_PAGESIZE);
    return page > (long)smallest ? (size_t)page : smallest;
}

static size_t directory_size(const struct object_pool *pool)
{
    return pool->segment_count * sizeof *pool->segments;
}

bool object_pool_init(struct object_pool *pool, const struct allocator *allocator,
                      const struct object_pool_shape *shape)
{
    const uint32_t per_segment = (uint32_t)(OBJECT_POOL_SEGMENT_SIZE / shape->layout.size);
    const uint32_t per_page = (uint32_t)(trim_unit() / shape->layout.size);
    SKUA_ASSERT((per_segment & (per_segment - 1)) == 0);
    SKUA_ASSERT(per_page > 0 && per_page <= per_segment);
    pool->shape = *shape;
    if (pool->shape.capacity == 0) {
        pool->shape.capacity = shape->limit;
    }
    pool->allocator = allocator;
    pool->segment_count = (pool->shape.capacity >> object_segment_shift(shape->layout)) + 1;
    pool->batch = batch_for(shape);
    pool->page_shift = (uint32_t)__builtin_ctz(per_page);
    pool->page_size = trim_unit();
    pool->segments = allocator_alloc_zeroed(allocator, directory_size(pool), CACHE_LINE);
    if (pool->segments == NULL) {
        return false;
    }
    mutex_init(&pool->lock);
    condition_init(&pool->put_back);
    store_relaxed(&pool->ready, OBJECT_NONE + 1); /* not shared yet */
    pool->chains = OBJECT_NONE;
    store_relaxed(&pool->chain_count, 0); /* not shared yet */
    pool->retired = 0;
    pool->trimmed = NULL;
    pool->trimmed_count = 0;
    pool->trimmed_capacity = 0;
    pool->reopened.next = pool->reopened.end = OBJECT_NONE;
    pool->is_trimming = false;
    store_relaxed(&pool->is_wanted, false); /* not shared yet */
    return true;
}

void object_pool_deinit(struct object_pool *pool)
{
    for (uint32_t i = 0; i < pool->segment_count; i++) {
        allocator_free(pool->allocator, pool->segments[i], OBJECT_POOL_SEGMENT_SIZE,
                       pool->page_size);
    }
    allocator_free(pool->allocator, pool->trimmed, pool->trimmed_capacity * sizeof *pool->trimmed,
                   _Alignof(struct trimmed_page));
    allocator_free(pool->allocator, (void *)pool->segments, directory_size(pool), CACHE_LINE);
    (void)pthread_cond_destroy(&pool->put_back);
    mutex_deinit(&pool->lock);
}

void object_pool_retire_any(struct object_pool *pool)
{
    mutex_lock(&pool->lock);
    pool->retired++;
    mutex_unlock(&pool->lock);
}

static struct pool_link *free_link(const struct object_pool *pool, uint32_t index)
{
    return object_pool_link(pool, object_pool_at(pool, index));
}

uint32_t object_pool_index_of(struct object_pool *pool, const void *address)
{
    const uint32_t shift = object_segment_shift(pool->shape.layout);
    const uint32_t ready = load_acquire(&pool->ready);                     /* MO-pool */
    for (uint32_t i = 0; ready > 1 && (uint64_t)i << shift < ready; i++) { /* 1: no segment yet */
        const uintptr_t offset = (uintptr_t)address - (uintptr_t)pool->segments[i];
        if (offset < OBJECT_POOL_SEGMENT_SIZE) {
            const uint32_t within = (uint32_t)(offset / pool->shape.layout.size);
            const uint32_t index = (i << shift) + within;
            return index < ready ? index : OBJECT_NONE;
        }
    }
    return OBJECT_NONE;
}

static uint32_t chain_count_locked(struct object_pool *pool)
{
    return load_relaxed(&pool->chain_count); /* written under the lock only */
}

/* Adds `count` chains, which are linked from `first` to `last`, to the pool. */
static void add_chains_locked(struct object_pool *pool, uint32_t first, uint32_t last,
                              uint32_t count)
{
    free_link(pool, last)->next_chain = pool->chains;
    pool->chains = first;
    store_relaxed(&pool->chain_count, chain_count_locked(pool) + count); /* statistic */
}

static bool take_chain_locked(struct object_pool *pool, struct object_chain *chain)
{
    if (pool->chains == OBJECT_NONE) {
        return false;
    }
    *chain = (struct object_chain){pool->chains, chain_length(pool)};
    pool->chains = free_link(pool, pool->chains)->next_chain;
    store_relaxed(&pool->chain_count, chain_count_locked(pool) - 1); /* statistic */
    return true;
}

/* ---- objects that have no content: those of trimmed pages, and new ones ---- */

static void construct_in_chain(struct object_pool *pool, struct object_chain *chain, uint32_t index,
                               uint32_t floor)
{
    pool->shape.construct(object_pool_at(pool, index), index, floor);
    free_link(pool, index)->next = chain->first;
    chain->first = index;
    chain->count++;
}

/* Whether a trimmed page has an object to reuse: it is reopened.next. */
static bool reopen_page_locked(struct object_pool *pool)
{
    if (pool->reopened.next == pool->reopened.end) {
        if (pool->trimmed_count == 0) {
            return false;
        }
        const struct trimmed_page page = pool->trimmed[--pool->trimmed_count];
        pool->reopened.next = page.first;
        pool->reopened.end = page.first + (UINT32_C(1) << pool->page_shift);
        pool->reopened.floor = page.floor;
    }
    return true;
}

/* Makes a chain of objects of trimmed pages, as long as there are any. */
static bool reuse_locked(struct object_pool *pool, struct object_chain *chain)
{
    while (chain->count < chain_length(pool) && reopen_page_locked(pool)) {
        construct_in_chain(pool, chain, pool->reopened.next++, pool->reopened.floor);
    }
    return chain->count > 0;
}

static bool ensure_segment_locked(struct object_pool *pool, uint32_t index)
{
    void **segment = &pool->segments[index >> object_segment_shift(pool->shape.layout)];
    if (*segment == NULL) {
        void *memory = allocator_alloc(pool->allocator, OBJECT_POOL_SEGMENT_SIZE, pool->page_size);
        if (memory == NULL) {
            return false;
        }
        *segment = memory; /* published by `ready` */
    }
    return true;
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
    while (chain->count < chain_length(pool) && index < end && ensure_segment_locked(pool, index)) {
        construct_in_chain(pool, chain, index++, 0);
    }
    store_seq_cst(&pool->ready, index); /* release MO-pool, seq_cst MO-stop */
    return chain->count > 0 ? OBJECT_POOL_OK : OBJECT_POOL_NO_MEMORY;
}

/* ---- exchange with caches ---- */

static enum object_pool_result fill_locked(struct object_pool *pool, struct object_chain *chain)
{
    if (take_chain_locked(pool, chain) || reuse_locked(pool, chain)) {
        return OBJECT_POOL_OK;
    }
    return grow_locked(pool, chain);
}

enum object_pool_result object_pool_refill_owner(struct object_pool *pool, struct pool_cache *cache)
{
    if (cache->spare.count > 0) {
        cache->active = cache->spare;
        cache->spare = (struct object_chain){0};
        return OBJECT_POOL_OK;
    }
    cache->active = (struct object_chain){0};
    mutex_lock(&pool->lock);
    enum object_pool_result result = fill_locked(pool, &cache->active);
    while (UNLIKELY(result != OBJECT_POOL_OK && pool->is_trimming)) {
        store_relaxed(&pool->is_wanted, true); /* a request; the lock orders what follows */
        (void)condition_wait_until(&pool->put_back, &pool->lock, UINT64_MAX);
        result = fill_locked(pool, &cache->active);
    }
    mutex_unlock(&pool->lock);
    return result;
}

void object_pool_put_away_owner(struct object_pool *pool, struct pool_cache *cache)
{
    if (pool->batch > 0 && cache->spare.count == 0) {
        cache->spare = cache->active;
    } else {
        mutex_lock(&pool->lock);
        add_chains_locked(pool, cache->active.first, cache->active.first, 1);
        mutex_unlock(&pool->lock);
    }
    cache->active = (struct object_chain){0};
}

/* ---- trimming ---- */

/* What a trim knows of a page. */
struct page_census {
    uint32_t free; /* its objects in the chains; after choose_pages: all if chosen, else 0 */
    uint32_t age;  /* the highest of theirs */
};

/* Chains, linked from first to last, and one that is not full yet. */
struct chain_list {
    uint32_t first;
    uint32_t last;
    uint32_t count;
    struct object_chain open;
};

struct trim {
    struct object_pool *pool;
    bool (*go_on)(void *arg);
    void *arg;
    uint32_t unsorted; /* chains that are not sorted yet; all of them at first */
    uint32_t unsorted_count;
    struct page_census *pages;
    uint32_t page_count;
    uint32_t chosen;           /* pages to be trimmed */
    struct chain_list staying; /* objects on other pages */
    struct chain_list going;
};

static uint32_t objects_per_page(const struct object_pool *pool)
{
    return UINT32_C(1) << pool->page_shift;
}

static bool may_go_on(const struct trim *trim)
{
    const bool is_wanted = load_relaxed(&trim->pool->is_wanted); /* a request */
    return !is_wanted && trim->go_on(trim->arg);
}

static bool is_chosen(const struct trim *trim, uint32_t page)
{
    return trim->pages[page].free == objects_per_page(trim->pool);
}

static void take_chains_out(struct trim *trim)
{
    struct object_pool *pool = trim->pool;
    mutex_lock(&pool->lock);
    trim->unsorted = pool->chains;
    trim->unsorted_count = chain_count_locked(pool);
    const uint32_t newest = load_relaxed(&pool->ready) - 1; /* written under the lock only */
    trim->page_count = (newest >> pool->page_shift) + 1;
    pool->chains = OBJECT_NONE;
    store_relaxed(&pool->chain_count, 0); /* statistic */
    pool->is_trimming = true;
    store_relaxed(&pool->is_wanted, false); /* under the lock, as when it is set */
    mutex_unlock(&pool->lock);
}

static void count_chain(struct trim *trim, uint32_t index)
{
    const struct object_pool *pool = trim->pool;
    for (uint32_t i = 0; i < chain_length(pool); i++) {
        struct page_census *page = &trim->pages[index >> pool->page_shift];
        const uint32_t age = pool->shape.age(object_pool_at(pool, index));
        page->age = age > page->age ? age : page->age;
        page->free++;
        index = free_link(pool, index)->next;
    }
}

static bool count_pages(struct trim *trim)
{
    for (uint32_t first = trim->unsorted; first != OBJECT_NONE;) {
        if (!may_go_on(trim)) {
            return false;
        }
        count_chain(trim, first);
        first = free_link(trim->pool, first)->next_chain;
    }
    return true;
}

/* Rounds down to pages whose objects fill whole chains: then the other objects do so, too, and none
 * is left over. */
static uint32_t whole_chains_of_pages(const struct object_pool *pool, uint32_t pages)
{
    uint32_t unit = chain_length(pool);
    for (uint32_t per_page = objects_per_page(pool); per_page > 1 && unit % 2 == 0; per_page /= 2) {
        unit /= 2;
    }
    return pages - pages % unit;
}

/* Chooses the pages to trim: the upper ones, if not all can be. A page with index 0 or with objects
 * not yet constructed is never chosen, as not all of it is in chains. */
static void choose_pages(struct trim *trim)
{
    uint32_t candidates = 0;
    for (uint32_t page = 0; page < trim->page_count; page++) {
        if (trim->pages[page].age > trim->pool->shape.age_max) {
            trim->pages[page].free = 0;
        }
        candidates += is_chosen(trim, page);
    }
    trim->chosen = whole_chains_of_pages(trim->pool, candidates);
    for (uint32_t page = 0; candidates > trim->chosen; page++) {
        candidates -= is_chosen(trim, page);
        trim->pages[page].free = 0;
    }
}

/* Makes room on the stack for all chosen pages. Other threads only pop from it. */
static bool reserve_stack(struct trim *trim)
{
    struct object_pool *pool = trim->pool;
    mutex_lock(&pool->lock);
    const uint32_t capacity = pool->trimmed_count + trim->chosen;
    bool reserved = capacity <= pool->trimmed_capacity;
    if (!reserved) {
        struct trimmed_page *stack = allocator_grow(
            pool->allocator, pool->trimmed, pool->trimmed_capacity * sizeof *pool->trimmed,
            capacity * sizeof *pool->trimmed, _Alignof(struct trimmed_page));
        reserved = stack != NULL;
        if (reserved) {
            pool->trimmed = stack;
            pool->trimmed_capacity = capacity;
        }
    }
    mutex_unlock(&pool->lock);
    return reserved;
}

static void append(const struct object_pool *pool, struct chain_list *list, uint32_t index)
{
    free_link(pool, index)->next = list->open.first;
    list->open.first = index;
    list->open.count++;
    if (list->open.count == chain_length(pool)) {
        free_link(pool, index)->next_chain = list->first;
        list->first = index;
        list->last = list->count == 0 ? index : list->last;
        list->count++;
        list->open = (struct object_chain){0};
    }
}

static void sort_first_chain(struct trim *trim)
{
    const struct object_pool *pool = trim->pool;
    uint32_t index = trim->unsorted;
    trim->unsorted = free_link(pool, index)->next_chain;
    trim->unsorted_count--;
    for (uint32_t i = 0; i < chain_length(pool); i++) {
        const uint32_t next = free_link(pool, index)->next;
        const bool goes = is_chosen(trim, index >> pool->page_shift);
        append(pool, goes ? &trim->going : &trim->staying, index);
        index = next;
    }
}

static bool sort_objects(struct trim *trim)
{
    while (trim->unsorted != OBJECT_NONE) {
        if (!may_go_on(trim)) {
            return false;
        }
        sort_first_chain(trim);
    }
    return true;
}

/* Only whole chains have been sorted, so the two open ones add up to one, or both are empty. */
static void join_open_chains(struct trim *trim)
{
    while (trim->going.open.count > 0) {
        const uint32_t index = trim->going.open.first;
        trim->going.open.first = free_link(trim->pool, index)->next;
        trim->going.open.count--;
        append(trim->pool, &trim->staying, index);
    }
}

/* The chains that are not sorted yet; finding the last takes a walk. */
static struct chain_list unsorted_chains(const struct trim *trim)
{
    struct chain_list list = {
        .first = trim->unsorted, .last = trim->unsorted, .count = trim->unsorted_count};
    for (uint32_t chain = trim->unsorted; chain != OBJECT_NONE;) {
        list.last = chain;
        chain = free_link(trim->pool, chain)->next_chain;
    }
    return list;
}

static void put_back_locked(struct object_pool *pool, const struct chain_list *list)
{
    if (list->count > 0) {
        add_chains_locked(pool, list->first, list->last, list->count);
        (void)pthread_cond_broadcast(&pool->put_back);
    }
}

static void put_all_back(struct trim *trim)
{
    join_open_chains(trim);
    const struct chain_list unsorted = unsorted_chains(trim);
    mutex_lock(&trim->pool->lock);
    put_back_locked(trim->pool, &trim->staying);
    put_back_locked(trim->pool, &trim->going);
    put_back_locked(trim->pool, &unsorted);
    mutex_unlock(&trim->pool->lock);
}

/* Trims neighbouring pages of one segment; returns the bytes that went to the system. Pages that
 * the system refuses count as trimmed all the same: their objects are constructed anew whatever is
 * in them. */
static size_t trim_run(struct trim *trim, uint32_t begin, uint32_t end)
{
    struct object_pool *pool = trim->pool;
    const size_t size = (size_t)(end - begin) * pool->page_size;
    void *memory = object_pool_at(pool, begin << pool->page_shift);
    const size_t returned = madvise(memory, size, MADV_DONTNEED) == 0 ? size : 0;
    mutex_lock(&pool->lock);
    for (uint32_t page = end; page-- > begin;) { /* so that the lowest is used first */
        pool->trimmed[pool->trimmed_count++] =
            (struct trimmed_page){page << pool->page_shift, trim->pages[page].age};
    }
    (void)pthread_cond_broadcast(&pool->put_back);
    mutex_unlock(&pool->lock);
    return returned;
}

/* Trims the chosen pages from `begin` to `end`, all in one segment, with as few system calls as
 * possible. */
static size_t trim_segment(struct trim *trim, uint32_t begin, uint32_t end)
{
    void *segment = object_pool_at(trim->pool, begin << trim->pool->page_shift);
    size_t returned = 0;
    while (end > begin) {
        uint32_t run = end;
        while (run > begin && is_chosen(trim, run - 1)) {
            run--;
        }
        returned += run < end ? trim_run(trim, run, end) : 0;
        end = run < end ? run : end - 1;
    }
    if (returned > 0 && returned < OBJECT_POOL_SEGMENT_SIZE) {
        /* Otherwise the kernel may make a huge page of the remaining pages, and all the memory is
         * back. */
        (void)madvise(segment, OBJECT_POOL_SEGMENT_SIZE, MADV_NOHUGEPAGE);
    }
    return returned;
}

static size_t trim_pages(struct trim *trim)
{
    const struct object_pool *pool = trim->pool;
    const uint32_t shift = object_segment_shift(pool->shape.layout) - pool->page_shift;
    size_t returned = 0;
    for (uint32_t end = trim->page_count; end > 0;) {
        const uint32_t begin = (end - 1) >> shift << shift;
        returned += trim_segment(trim, begin, end);
        end = begin;
    }
    return returned;
}

static size_t trim_chains(struct trim *trim)
{
    if (!may_go_on(trim) || !count_pages(trim)) {
        put_all_back(trim);
        return 0;
    }
    choose_pages(trim);
    if (trim->chosen == 0 || !reserve_stack(trim) || !sort_objects(trim)) {
        put_all_back(trim);
        return 0;
    }
    SKUA_ASSERT(trim->staying.open.count == 0); /* INV-20: see whole_chains_of_pages */
    mutex_lock(&trim->pool->lock);
    put_back_locked(trim->pool, &trim->staying);
    mutex_unlock(&trim->pool->lock);
    return trim_pages(trim);
}

size_t object_pool_trim_any(struct object_pool *pool, bool (*go_on)(void *arg), void *arg)
{
    struct trim trim = {.pool = pool, .go_on = go_on, .arg = arg};
    take_chains_out(&trim);
    const size_t census_size = trim.page_count * sizeof *trim.pages;
    size_t returned = 0;
    trim.pages = allocator_alloc_zeroed(pool->allocator, census_size, _Alignof(struct page_census));
    if (trim.pages != NULL) {
        returned = trim_chains(&trim);
    } else {
        put_all_back(&trim);
    }
    allocator_free(pool->allocator, trim.pages, census_size, _Alignof(struct page_census));
    mutex_lock(&pool->lock);
    pool->is_trimming = false;
    (void)pthread_cond_broadcast(&pool->put_back);
    mutex_unlock(&pool->lock);
    return returned;
}

uint32_t object_pool_trimmed_objects(struct object_pool *pool)
{
    mutex_lock(&pool->lock);
    const uint32_t count =
        (pool->trimmed_count << pool->page_shift) + (pool->reopened.end - pool->reopened.next);
    mutex_unlock(&pool->lock);
    return count;
}
