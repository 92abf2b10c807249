/* SPDX-License-Identifier: MIT */
/* A shard of the registry of names: entries, the hash table that finds them, and readers that lock
 * nothing. relations/names.h says what an entry is for, and why readers see what they should. */
#ifndef SKUA_RELATIONS_NAME_SHARD_H
#define SKUA_RELATIONS_NAME_SHARD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/allocator.h"
#include "base/atomic.h"
#include "concurrent/object_pool.h"
#include "relations/name_key.h"

/* The models choose smaller ones. */
#ifndef NAMES_SHARD_BITS
#define NAMES_SHARD_BITS 6
#endif
#ifndef NAMES_FIRST_BITS
#define NAMES_FIRST_BITS 3 /* the first segment and the first table have so many bits of places */
#endif
#ifndef NAMES_IDLE_FLOOR
#define NAMES_IDLE_FLOOR 32
#endif
#ifndef NAMES_TRIES
#define NAMES_TRIES 3
#endif

#define NAMES_SHARDS (UINT32_C(1) << NAMES_SHARD_BITS)

/* The index of an entry is {number in its segment | segment | shard}; 0 is none. Segments are
 * numbered from 1, and each is twice as large as the one before. Writers count the entries of a
 * shard by places, which begin with the size of the first segment: so the highest bit of a place
 * names the segment, the bits below it the entry in there. Readers are spared the search for that
 * bit: it is slow on some processors, and one find would wait for the one before. */
#define NAMES_SEGMENT_BITS 5
#define NAMES_NUMBER_SHIFT (NAMES_SHARD_BITS + NAMES_SEGMENT_BITS)
#define NAMES_SEGMENTS_END (UINT32_C(1) << NAMES_SEGMENT_BITS)
#define NAMES_FIRST_PLACE  (UINT32_C(1) << NAMES_FIRST_BITS)
/* The last entry of the last segment whose numbers fit. */
#define NAMES_PLACE_MAX ((UINT32_C(2) << (32 - NAMES_NUMBER_SHIFT)) - 1)

_Static_assert(32 - NAMES_NUMBER_SHIFT - NAMES_FIRST_BITS + 1 < (int)NAMES_SEGMENTS_END,
               "all segments have a number");

/* An entry that has come so far is not used for another name. */
#define NAMES_GENERATION_LAST (UINT32_MAX - 1)

struct name_entry {
    CACHE_ALIGNED atomic_u32 generation; /* MO-name-entry; 0: never used */
    atomic_u32 next;                     /* index in the chain; MO-name-chain */
    atomic_u64 holder;                   /* bits of the PID, or 0 */
    /* See name_key.h. The first cache line has room for names of 47 bytes. */
    atomic_u64 words[NAME_WORDS];
    /* Under the shard's lock. Waiters are a list of event nodes, oldest first. */
    uint64_t hash;
    uint32_t first_waiter;
    uint32_t last_waiter;
    uint32_t waiter_count;
    uint32_t sweep_at; /* so many are looked through before there is one more */
    /* The holder's: links of the list of all that it has (names_links_owner). */
    struct name_links {
        uint32_t previous;
        uint32_t next;
    } of_owner;
};

_Static_assert(sizeof(struct name_entry) == (size_t)2 * CACHE_LINE, "a reader needs the first");

/* Tables that were too small are kept: readers may still be in them. */
struct name_table {
    struct name_table *smaller;
    uint32_t mask;      /* size - 1 */
    atomic_u32 heads[]; /* indices; MO-name-chain */
};

struct name_shard {
    /* For readers. */
    CACHE_ALIGNED atomic_u64 version;        /* MO-name-chain */
    atomic_ptr table;                        /* struct name_table, or null */
    atomic_ptr segments[NAMES_SEGMENTS_END]; /* struct name_entry[], each written once; 0: null */
    /* For writers. */
    CACHE_ALIGNED pthread_mutex_t lock;
    uint32_t number;
    uint32_t end;     /* places below it are used */
    uint32_t hand;    /* the place where the next idle entry is looked for */
    uint32_t counted; /* entries that are held or awaited */
    uint32_t awaited; /* of them, those with waiters */
};

/* An entry in one of its uses: leads to the holder without the text. It keeps nothing alive. */
struct name_handle {
    uint32_t entry;
    uint32_t generation;
};

/* A name that was found, at one moment. */
struct name_sight {
    struct name_handle handle;
    uint64_t holder;
};

/* The shard is zeroed. */
void name_shard_init(struct name_shard *shard, uint32_t number);
void name_shard_deinit(struct name_shard *shard, const struct allocator *allocator);

/* Whether the name has an entry, and what it says. */
NODISCARD bool name_shard_find_any(struct name_shard *shard, const struct name_key *key,
                                   struct name_sight *sight);

/* The index of a name's entry, or OBJECT_NONE. */
NODISCARD uint32_t name_shard_find_locked(struct name_shard *shard, const struct name_key *key);

/* Makes an entry for a name that has none; OBJECT_NONE if there is no memory. */
NODISCARD uint32_t name_shard_add_locked(struct name_shard *shard,
                                         const struct allocator *allocator,
                                         const struct name_key *key);

/* What an entry says. */
void name_shard_see_locked(struct name_shard *shard, uint32_t index, struct name_sight *sight);

static inline uint32_t name_segment_size(uint32_t segment)
{
    return NAMES_FIRST_PLACE << (segment - 1);
}

/* The entry of an index of this shard; null if there is none, because the index is forged. */
static inline struct name_entry *name_shard_entry(struct name_shard *shard, uint32_t index)
{
    const uint32_t segment = index >> NAMES_SHARD_BITS & (NAMES_SEGMENTS_END - 1);
    const uint32_t number = index >> NAMES_NUMBER_SHIFT;
    /* MO-name-chain: nothing has led to an entry of this segment before it was there, but a forged
     * handle may. */
    struct name_entry *entries = load_acquire(&shard->segments[segment]);
    const bool is_there = entries != NULL && number < name_segment_size(segment);
    return LIKELY(is_there) ? &entries[number] : NULL;
}

/* The index of the entry at a place of a shard. */
static inline uint32_t name_shard_index_at(const struct name_shard *shard, uint32_t place)
{
    const uint32_t highest = 31 - (uint32_t)__builtin_clz(place);
    const uint32_t segment = highest - NAMES_FIRST_BITS + 1;
    const uint32_t number = place ^ UINT32_C(1) << highest;
    return number << NAMES_NUMBER_SHIFT | segment << NAMES_SHARD_BITS | shard->number;
}

/* The entry at a place of a shard; null if there is none yet. */
static inline struct name_entry *name_shard_entry_at(struct name_shard *shard, uint32_t place)
{
    return name_shard_entry(shard, name_shard_index_at(shard, place));
}

/* Neither held nor awaited. */
static inline bool name_entry_is_idle_locked(struct name_entry *entry)
{
    return load_relaxed(&entry->holder) == 0 && entry->waiter_count == 0; /* under the lock */
}

#endif
