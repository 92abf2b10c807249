/* SPDX-License-Identifier: MIT */
/* Object pools that give memory back: which pages go, what becomes of the objects in them, trims
 * that end early, and what the system does. All on one thread, but for the taker that has to wait
 * for a trim. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "mapping.h"
#include "pool_support.h"
#include "process/event.h"
#include "thing_pool.h"

#define CACHES THING_CACHES

static size_t trim(void)
{
    return pool_trim(&things.pool);
}

static uint32_t trimmed(void)
{
    return object_pool_trimmed_objects(&things.pool);
}

static uint32_t pages(void)
{
    return (things.limit + 1) / things_per_page();
}

static void take_up_to_the_limit(void)
{
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), things.limit);
}

/* Takes all there are up to the limit and gives them back, upper ones first: the caches keep the
 * lowest indices. */
static void open_burst(uint32_t limit, uint32_t cache_count)
{
    things_open(limit, cache_count);
    take_up_to_the_limit();
    things_give(0, limit);
}

/* All can be taken again, each once: those of trimmed pages newly constructed, with ages that they
 * never had, the others as they were. */
static void assert_all_are_there(void)
{
    const uint32_t expected = things.constructed + trimmed();
    things_audit();
    take_up_to_the_limit();
    things_audit();
    assert_int_equal(things.live_count, things.limit);
    assert_int_equal(things_ready(), things.limit + 1);
    assert_int_equal(trimmed(), 0);
    assert_int_equal(things.constructed, expected);
}

/* ---- giving memory back ---- */

TEST(pool_trim_after_a_burst_gives_nearly_all_back)
{
    open_burst(100000, 1);
    const size_t given = trim();
    assert_int_equal(given, trimmed() * sizeof(struct thing));
    assert_in_range(given / things.pool.page_size, pages() - 4, pages());
    assert_all_are_there();
}

/* Chains are of `batch` objects, which divides a page, is a multiple of it, or neither. */
TEST(pool_trim_with_chains_of_any_length_loses_nothing)
{
    static const uint32_t batches[] = {0, 1, 2, 3, 7, 24, 32, 63, 64};
    FOR_ROWS (batch, batches) {
        if (*batch == 0) {
            open_burst(5000, 100);
        } else {
            open_burst(128 * *batch + 5, 1);
        }
        assert_int_equal(things.pool.batch, *batch);
        assert_true(trim() / things.pool.page_size + 3 + (*batch > 0 ? *batch : 1) > pages());
        assert_all_are_there();
    }
}

TEST(pool_trim_without_change_gives_nothing_more)
{
    things_open(20000, 1);
    assert_int_equal(trim(), 0); /* nothing is made yet */
    take_up_to_the_limit();
    things_give(0, things.limit);
    assert_true(trim() > 0);
    const uint32_t before = trimmed();
    assert_int_equal(trim(), 0);
    assert_int_equal(trimmed(), before);
    assert_all_are_there();
}

TEST(pool_trim_after_each_burst_gives_the_same_back)
{
    open_burst(70000, 1);
    const size_t first = trim();
    for (int i = 0; i < 3; i++) {
        assert_all_are_there();
        things_give(0, things.limit);
        assert_in_range(trim(), first - 2 * things.pool.page_size,
                        first + 2 * things.pool.page_size);
    }
    assert_true(counting_allocator_live_bytes(&memory) <
                4 * OBJECT_POOL_SEGMENT_SIZE); /* so neither the stack nor the pool has grown */
}

TEST(pool_uses_chains_then_trimmed_pages_then_grows)
{
    const uint32_t used = 20000;
    things_open(100000, 1);
    things_take(0, used);
    const uint32_t batch = things.pool.batch;
    const uint32_t ready_before = things_ready();
    things_give(0, used);
    assert_true(trim() > 0);
    const uint32_t trimmed_before = trimmed();
    while (object_pool_free_chains(&things.pool) > 0) {
        assert_int_equal(trimmed(), trimmed_before);
        things_take(0, 1);
    }
    things_take(0, batch); /* the chain taken last */
    while (trimmed() > 0) {
        assert_int_equal(things_ready(), ready_before);
        things_take(0, 1);
    }
    things_audit();
    things_take(0, 2 * batch);
    assert_true(things_ready() > ready_before);
    things_audit();
}

/* One object of each of 400 pages is in use: in turn live, or in the cache of another thread. */
TEST(pool_trim_leaves_pages_with_an_object_in_use)
{
    const uint32_t limit = 40000;
    uint32_t kept = 0;
    uint32_t cached = 0;
    things_open(limit, CACHES);
    const uint32_t per_page = things_per_page();
    take_up_to_the_limit();
    for (uint32_t i = 0; i < limit; i++) {
        const uint32_t index = things.live[i];
        const uint32_t page = index / per_page;
        thing_at(index)->value = index + 7;
        const bool pins = page >= 1 && page <= 400 && index % per_page == page % per_page;
        if (pins && page % 4 == 0) {
            things.live[kept++] = index;
        } else {
            const bool caches = pins && page % 4 == 1;
            cached += caches;
            pool_give(&things.pool, &things.caches[caches ? 1 : 0], index);
        }
    }
    things.live_count = kept;
    assert_int_equal(kept + cached, 200);
    assert_int_equal(object_pool_free_chains(&things.pool) * things.pool.batch,
                     limit - kept - things_held());
    const uint32_t most = pages() - kept - cached;
    assert_in_range(trim() / things.pool.page_size, most - things_held(), most);
    things_audit();
    for (uint32_t i = 0; i < kept; i++) {
        assert_int_equal(thing_at(things.live[i])->value, things.live[i] + 7);
    }
    const uint32_t elsewhere = things.caches[1].active.count + things.caches[1].spare.count;
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), limit - kept - elsewhere);
    things_audit();
}

TEST(pool_trim_keeps_the_limit_with_retired_objects)
{
    const uint32_t limit = 20000;
    things_open(limit, 1);
    things.pool.shape.capacity = limit + 1; /* the directory has room for that */
    take_up_to_the_limit();
    const uint32_t lost = things.live[5000];
    for (uint32_t i = 0; i < 3; i++) {
        object_pool_retire_any(&things.pool);
    }
    things.live[5000] = things.live[--things.live_count];
    things_give(0, limit - 1);
    assert_true(trim() > 0);
    for (uint32_t i = 0; i < things.pool.trimmed_count; i++) {
        assert_false(lost - things.pool.trimmed[i].first < things_per_page());
    }
    assert_int_equal(things_take_all(0, OBJECT_POOL_LIMIT), limit); /* one was replaced */
    for (uint32_t i = 0; i < limit; i++) {
        assert_int_not_equal(things.live[i], lost);
    }
    assert_int_equal(things_ready(), limit + 2);
}

/* ---- ages ---- */

TEST(pool_trimmed_page_begins_at_its_highest_age)
{
    const uint32_t limit = 20000;
    bool was_trimmed[20000] = {false};
    things_open(limit, 1);
    const uint32_t per_page = things_per_page();
    take_up_to_the_limit();
    for (uint32_t index = 1; index <= limit; index++) {
        const uint32_t page = index / per_page;
        const bool is_oldest = index % per_page == page * 7 % per_page;
        thing_at(index)->age = is_oldest ? 10 * page : 5;
    }
    things_give(0, limit);
    assert_true(trim() > 0);
    for (uint32_t i = 0; i < things.pool.trimmed_count; i++) {
        was_trimmed[things.pool.trimmed[i].first / per_page] = true;
    }
    memset(things.next_age, 0, (limit + 1) * sizeof *things.next_age);
    assert_all_are_there();
    for (uint32_t index = 1; index <= limit; index++) {
        const uint32_t page = index / per_page;
        if (was_trimmed[page]) {
            const uint32_t floor = 10 * page > 5 ? 10 * page : 5;
            assert_int_equal(thing_at(index)->age, floor + 1); /* taking adds one */
        }
    }
}

TEST(pool_trim_leaves_pages_with_an_object_that_is_too_old)
{
    things_open(20000, 1);
    const uint32_t too_old = 100 * things_per_page() + 3;
    const uint32_t old = 101 * things_per_page() + 3;
    take_up_to_the_limit();
    thing_at(too_old)->age = THING_AGE_MAX + 1;
    thing_at(old)->age = THING_AGE_MAX;
    things_give(0, things.limit);
    assert_true(trim() > 0);
    assert_all_are_there();
    assert_int_equal(thing_at(too_old)->age, THING_AGE_MAX + 2); /* taking adds one */
    assert_int_equal(thing_at(too_old + 1)->age, 2);
    assert_int_equal(thing_at(old)->age, THING_AGE_MAX + 1);
    assert_int_equal(thing_at(old + 1)->age, THING_AGE_MAX + 1);
}

/* Old completions must not fit the calls of a node that was trimmed; dispatch/call.h. */
TEST(pool_of_events_keeps_the_serials_of_trimmed_nodes)
{
    enum { COUNT = 80 * OBJECT_POOL_BATCH_MAX };
    struct object_pool pool;
    struct pool_cache cache = {0};
    uint32_t indices[COUNT];
    uint32_t guards[COUNT + 1];
    memory_open();
    assert_true(event_pool_init(&pool, &memory.allocator, 1));
    pool_take_many(&pool, &cache, indices, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        atomic_u32 *guard = &event_at(&pool, indices[i])->guard;
        assert_in_range(indices[i], 1, COUNT);
        assert_int_equal(load_relaxed(guard), 0);
        guards[indices[i]] = 2 * (indices[i] * 7919 % 1000);
        store_relaxed(guard, guards[indices[i]]);
    }
    pool_give_many(&pool, &cache, indices, COUNT);
    assert_true(pool_trim(&pool) > 0);
    pool_take_many(&pool, &cache, indices, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t guard = load_relaxed(&event_at(&pool, indices[i])->guard);
        assert_in_range(guard, guards[indices[i]], 2 * 999);
        assert_int_equal(guard % 2, 0); /* not open */
    }
    assert_int_equal(object_pool_trimmed_objects(&pool), 0);
    object_pool_deinit(&pool);
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
    FOR_ROWS (batch, batches) {
        open_burst(128 * *batch, 1);
        const uint32_t chains = object_pool_free_chains(&things.pool);
        const uint64_t blocks = counting_allocator_live_blocks(&memory);
        struct patience patience = {0};
        for (uint32_t most = 1; most <= 1 + 2 * chains; most++) {
            patience = (struct patience){.most = most};
            assert_int_equal(object_pool_trim_any(&things.pool, until_impatient, &patience), 0);
            assert_int_equal(patience.asked, most);
            assert_int_equal(object_pool_free_chains(&things.pool), chains);
            assert_int_equal(trimmed(), 0);
            things_audit();
        }
        patience = (struct patience){.most = 2 + 2 * chains};
        assert_true(object_pool_trim_any(&things.pool, until_impatient, &patience) > 0);
        assert_int_equal(counting_allocator_live_blocks(&memory), blocks + 1);
        assert_all_are_there();
    }
}

TEST(pool_trim_without_memory_of_its_own_changes_nothing)
{
    open_burst(20000, 1);
    const uint64_t blocks = counting_allocator_live_blocks(&memory);
    for (uint32_t n = 1; n <= 2; n++) {
        counting_allocator_fail_once(&memory, n);
        assert_int_equal(trim(), 0);
        assert_int_equal(trimmed(), 0);
        assert_int_equal(counting_allocator_live_blocks(&memory), blocks);
        things_audit();
    }
    counting_allocator_fail_never(&memory);
    assert_true(trim() > 0);
    assert_all_are_there();
}

/* The stack of trimmed pages that there is stays as it is when it cannot grow. */
TEST(pool_trim_without_memory_for_more_pages_keeps_those_it_has)
{
    const uint32_t half = 20000;
    things_open(2 * half, 1);
    things_take(0, half);
    things_give(0, half);
    assert_true(trim() > 0);
    things_take(0, 2 * half);
    things_give(0, half); /* the upper half */
    assert_true(trim() > 0);
    const uint32_t before = trimmed();
    things_give(0, half);
    counting_allocator_fail_once(&memory, 2);
    assert_int_equal(trim(), 0);
    assert_int_equal(trimmed(), before);
    counting_allocator_fail_never(&memory);
    assert_true(trim() > 0);
    assert_true(trimmed() > before);
    assert_all_are_there();
}

struct needy_taker {
    pthread_t thread;
    bool is_started;
    enum object_pool_result result;
    uint32_t index;
    atomic_u32 is_done;
};

static void *take_needily(void *arg)
{
    struct needy_taker *taker = arg;
    taker->result = object_acquire_owner(&things.pool, things.pool.shape.layout, &things.caches[1],
                                         &taker->index);
    store_release(&taker->is_done, true);
    return NULL;
}

/* Goes on for ever, but a taker has come who finds nothing. */
static bool with_a_taker(void *arg)
{
    struct needy_taker *taker = arg;
    if (!taker->is_started) {
        taker->is_started = pthread_create(&taker->thread, NULL, take_needily, taker) == 0;
        while (taker->is_started && !load_relaxed(&things.pool.is_wanted) &&
               !load_acquire(&taker->is_done)) {
        }
    }
    return true;
}

TEST(pool_trim_ends_early_for_a_taker_at_the_limit)
{
    struct needy_taker taker = {.is_started = false};
    open_burst(40000, CACHES);
    const size_t given = object_pool_trim_any(&things.pool, with_a_taker, &taker);
    assert_true(taker.is_started);
    assert_int_equal(pthread_join(taker.thread, NULL), 0);
    assert_int_equal(taker.result, OBJECT_POOL_OK);
    assert_int_equal(given, 0);
    things.live[things.live_count++] = taker.index;
    things_audit();
    assert_true(trim() > 0); /* the next one works again */
    things_audit();
}

/* ---- what the system does with it ---- */

static const struct allocator default_allocator = {.function = allocator_default};

static uint32_t resident_pages(void)
{
    const struct object_pool *pool = &things.pool;
    uint32_t resident = 0;
    unsigned char states[OBJECT_POOL_SEGMENT_SIZE / 4096];
    for (uint32_t i = 0; i < pool->segment_count; i++) {
        void *segment = pool->segments[i];
        if (segment != NULL) {
            assert_int_equal(mincore(segment, OBJECT_POOL_SEGMENT_SIZE, states), 0);
            for (size_t page = 0; page < OBJECT_POOL_SEGMENT_SIZE / pool->page_size; page++) {
                resident += states[page] & 1;
            }
        }
    }
    return resident;
}

TEST(pool_trim_of_the_default_allocator_empties_resident_pages)
{
    const uint32_t count = 6 * THINGS_PER_SEGMENT - 1; /* whole ones, as they may be huge pages */
    things_open_with(&default_allocator, count, 1);
    take_up_to_the_limit();
    const uint32_t full = resident_pages();
    assert_true(full >= count * sizeof(struct thing) / things.pool.page_size);
    things_give(0, count);
    const size_t given = trim();
    const uint32_t left = resident_pages();
    assert_true(left <= full - given / things.pool.page_size);
    assert_true(left < full / 20);
    uint32_t index = 1; /* what a stale index leads to */
    while (thing_at(index)->index == index) {
        index++;
    }
    assert_true(object_pool_holds(&things.pool, index));
    assert_int_equal(thing_at(index)->age, 0);
}

/* The system would fill the gaps when it makes a huge page of a segment with gaps. */
TEST(pool_trim_of_a_part_of_a_segment_forbids_huge_pages_there)
{
    const uint32_t count = 3 * THINGS_PER_SEGMENT - 1;
    const uint32_t kept = THINGS_PER_SEGMENT + 5000;
    char flags[512];
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
        skip();
    }
    things_open_with(&default_allocator, count, 1);
    take_up_to_the_limit();
    for (uint32_t i = 0; i < count; i++) {
        if (things.live[i] != kept) {
            pool_give(&things.pool, &things.caches[0], things.live[i]);
        }
    }
    assert_true(trim() > OBJECT_POOL_SEGMENT_SIZE);
    mapping_flags(thing_at(THINGS_PER_SEGMENT), flags, sizeof flags);
    if (flags[0] != '\0') {
        assert_non_null(strstr(flags, " nh"));
    }
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
    static const struct allocator shared = {.function = allocate_shared};
    things_open_with(&shared, 20000, 1);
    take_up_to_the_limit();
    for (uint32_t index = 1; index <= things.limit; index++) {
        thing_at(index)->age = 5 + index;
        things.next_age[index] = 5 + index;
    }
    things_give(0, things.limit);
    (void)trim();
    assert_true(trimmed() > things.limit / 2);
    assert_all_are_there();
}

/* ---- all together ---- */

static void trim_randomly(uint64_t *random)
{
    const uint32_t chains = object_pool_free_chains(&things.pool);
    struct patience patience = {.most = 2 + random_below(random, 4 * chains + 1)};
    (void)object_pool_trim_any(&things.pool, until_impatient, &patience);
}

/* Up to the limit and down to nothing, by way of all caches. */
static void swing_randomly(uint64_t *random, uint32_t limit)
{
    const uint32_t target = random_below(random, limit + 1);
    enum object_pool_result result = OBJECT_POOL_OK;
    while (things.live_count < target && result == OBJECT_POOL_OK) {
        result = thing_take(random_below(random, CACHES));
    }
    while (things.live_count > target) {
        const uint32_t at = random_below(random, things.live_count);
        const uint32_t index = things.live[at];
        things.live[at] = things.live[things.live_count - 1];
        things.live[things.live_count - 1] = index;
        things_give(random_below(random, CACHES), 1);
    }
}

TEST(pool_random_use_with_trims_loses_doubles_and_repeats_nothing)
{
    static const uint32_t limits[] = {300, 128 * CACHES * 5 + 11, 128 * CACHES * 32};
    uint64_t random = 20250117;
    FOR_ROWS (limit, limits) {
        uint32_t most_trimmed = 0;
        things_open(*limit, CACHES);
        for (int step = 0; step < 150; step++) {
            swing_randomly(&random, random_below(&random, 3) == 0 ? 20 : *limit);
            things_audit();
            trim_randomly(&random);
            things_audit();
            most_trimmed = trimmed() > most_trimmed ? trimmed() : most_trimmed;
        }
        assert_true(most_trimmed > *limit / 4);
    }
}
