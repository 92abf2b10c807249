/* SPDX-License-Identifier: MIT */
#include "watch/census.h"

#ifdef SKUA_AUDIT

#include <stdlib.h>

const char *census_place_name(enum place place)
{
    static const char *const names[] = {
        [PLACE_NOWHERE] = "no place",
        [PLACE_NEXT] = "a next slot",
        [PLACE_DEQUE] = "a deque",
        [PLACE_GLOBAL] = "the global queue",
        [PLACE_BEHIND] = "the queue behind",
        [PLACE_LIST] = "the simulator's list",
        [PLACE_CHAIN] = "a free chain",
        [PLACE_CACHE] = "a cache of free objects",
        [PLACE_RESERVE] = "the reserve of a worker",
        [PLACE_TRIMMED] = "a trimmed page",
        [PLACE_MAILBOX] = "a mailbox",
        [PLACE_BACKLOG] = "a backlog",
        [PLACE_AGENDA] = "the agenda",
        [PLACE_ANNEX] = "use as an annex",
        [PLACE_RELATION] = "use for a relation",
        [PLACE_OWED_OPEN] = "use for an open request",
    };
    return names[place];
}

bool census_begin(struct census *census, struct object_pool *pool, const char *what,
                  struct finding *finding)
{
    const uint32_t end = load_seq_cst(&pool->ready); /* MO-pool */
    *census = (struct census){
        .finding = finding,
        .pool = pool,
        .what = what,
        .marks = calloc(end, sizeof(struct mark)),
        .end = end,
    };
    return census->marks != NULL;
}

void census_end(struct census *census)
{
    free(census->marks);
}

bool census_put(struct census *census, uint32_t index, enum place place)
{
    const char *invariant = census_is_token_place(place) ? "INV-3" : "INV-20";
    if (index == OBJECT_NONE || index >= census->end) {
        finding_note(census->finding, "%s: %s %u in %s was never made", invariant, census->what,
                     index, census_place_name(place));
    } else if (census_place(census, index) != PLACE_NOWHERE) {
        finding_note(census->finding, "%s: %s %u is in %s and in %s", invariant, census->what,
                     index, census_place_name(census_place(census, index)),
                     census_place_name(place));
    } else {
        census->marks[index].place = (uint8_t)place;
    }
    return finding_is_none(census->finding);
}

static void walk_chain(struct census *census, uint32_t first, uint32_t count, enum place place)
{
    const struct object_pool *pool = census->pool;
    for (uint32_t index = first; count > 0 && census_put(census, index, place); count--) {
        index = object_pool_link(pool, object_pool_at(pool, index))->next;
    }
}

void census_put_cache(struct census *census, const struct pool_cache *cache)
{
    walk_chain(census, cache->active.first, cache->active.count, PLACE_CACHE);
    walk_chain(census, cache->spare.first, cache->spare.count, PLACE_CACHE);
}

static void walk_range(struct census *census, uint32_t begin, uint32_t end)
{
    for (uint32_t index = begin; index < end && census_put(census, index, PLACE_TRIMMED); index++) {
    }
}

void census_put_pool(struct census *census)
{
    struct object_pool *pool = census->pool;
    const uint32_t length = pool->batch > 0 ? pool->batch : 1;
    uint32_t chains = 0;
    for (uint32_t first = pool->chains; first != OBJECT_NONE && finding_is_none(census->finding);
         chains++) {
        walk_chain(census, first, length, PLACE_CHAIN);
        first = object_pool_link(pool, object_pool_at(pool, first))->next_chain;
    }
    if (chains != object_pool_free_chains(pool)) {
        finding_note(census->finding, "INV-20: %s: the pool has %u free chains and counts %u",
                     census->what, chains, object_pool_free_chains(pool));
    }
    for (uint32_t i = 0; i < pool->trimmed_count; i++) {
        const uint32_t first = pool->trimmed[i].first;
        walk_range(census, first, first + (UINT32_C(1) << pool->page_shift));
    }
    walk_range(census, pool->reopened.next, pool->reopened.end);
}

#endif
