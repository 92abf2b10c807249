/* SPDX-License-Identifier: MIT */
/* Where every object of a pool is. An audit records where it finds each of them; an object in two
 * places, or in none, is a finding. */
#ifndef SKUA_WATCH_CENSUS_H
#define SKUA_WATCH_CENSUS_H

#include "concurrent/object_pool.h"
#include "watch/finding.h"

enum place {
    PLACE_NOWHERE,
    /* of tokens */
    PLACE_NEXT,
    PLACE_DEQUE,
    PLACE_GLOBAL,
    PLACE_BEHIND,
    PLACE_LIST,
    /* of free objects */
    PLACE_CHAIN,
    PLACE_CACHE,
    PLACE_RESERVE,
    PLACE_TRIMMED,
    /* of nodes */
    PLACE_MAILBOX,
    PLACE_BACKLOG,
    PLACE_AGENDA,
    PLACE_ANNEX,
    PLACE_RELATION,
    PLACE_OWED_OPEN, /* a request whose server wants to hear if nobody waits any more */
};

/* Where an object was found. */
struct mark {
    uint8_t place;
    bool is_call;  /* in the list of open calls of a live process */
    bool is_armed; /* in a wheel */
};

/* The objects of one pool. */
struct census {
    struct finding *finding;
    struct object_pool *pool;
    const char *what;
    struct mark *marks; /* by index */
    uint32_t end;
};

/* False, with nothing allocated, if there is no memory. `what` names the objects in findings. */
NODISCARD bool census_begin(struct census *census, struct object_pool *pool, const char *what,
                            struct finding *finding);
void census_end(struct census *census);

/* Records where an object is; false if that is a finding. Whoever walks a list stops there, which
 * also ends cyclic lists. */
bool census_put(struct census *census, uint32_t index, enum place place);

/* Records all free objects of the pool itself, or of a cache. No thread may use them meanwhile. */
void census_put_pool(struct census *census);
void census_put_cache(struct census *census, const struct pool_cache *cache);

const char *census_place_name(enum place place);

static inline enum place census_place(const struct census *census, uint32_t index)
{
    return (enum place)census->marks[index].place;
}

static inline bool census_is_token_place(enum place place)
{
    return place >= PLACE_NEXT && place <= PLACE_LIST;
}

static inline bool census_is_free_place(enum place place)
{
    return place >= PLACE_CHAIN && place <= PLACE_TRIMMED;
}

#endif
