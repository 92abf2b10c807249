/* SPDX-License-Identifier: MIT */
#include "relations/name_shard.h"

#include "base/assert.h"
#include "base/mutex.h"

/* No chain is so long that was not changed under the reader. If one is, the lock helps. */
#define WALK_MAX 64

/* ---- readers ---- */

enum look { LOOK_FOUND, LOOK_ABSENT, LOOK_CHANGED };

static bool has_words(struct name_entry *entry, const struct name_key *key)
{
    for (uint32_t i = 0; i < key->count; i++) {
        if (load_acquire(&entry->words[i]) != key->words[i]) { /* MO-name-entry, MO-name-chain */
            return false;
        }
    }
    return true;
}

/* Reads an entry that may be in any use. */
static enum look look_at(struct name_entry *entry, const struct name_key *key,
                         struct name_sight *sight)
{
    const uint32_t generation = load_acquire(&entry->generation); /* MO-name-entry */
    if (!has_words(entry, key)) {
        return LOOK_ABSENT;
    }
    sight->holder = load_acquire(&entry->holder); /* MO-name-entry */
    sight->handle.generation = generation;
    const bool is_odd = generation % 2 == 1;
    /* Relaxed: comes after the loads before it, and they have brought what it must see. */
    return is_odd || load_relaxed(&entry->generation) != generation ? LOOK_CHANGED : LOOK_FOUND;
}

/* Looks for a name without the lock. */
static enum look look_for(struct name_shard *shard, const struct name_key *key,
                          struct name_sight *sight)
{
    const uint64_t version = load_acquire(&shard->version); /* MO-name-chain */
    struct name_table *table = load_acquire(&shard->table); /* MO-name-chain */
    uint32_t index = OBJECT_NONE;
    if (table != NULL) {
        index = load_acquire(&table->heads[key->hash & table->mask]); /* MO-name-chain */
    }
    for (uint32_t steps = 0; index != OBJECT_NONE; steps++) {
        struct name_entry *entry = name_shard_entry(shard, index);
        const enum look look = look_at(entry, key, sight);
        if (look != LOOK_ABSENT) {
            sight->handle.entry = index;
            return look;
        }
        if (steps == WALK_MAX) {
            return LOOK_CHANGED;
        }
        index = load_acquire(&entry->next); /* MO-name-chain */
    }
    /* Relaxed: comes after the walk, which has brought what it must see. */
    const bool is_same = version % 2 == 0 && load_relaxed(&shard->version) == version;
    return is_same ? LOOK_ABSENT : LOOK_CHANGED;
}

uint32_t name_shard_find_locked(struct name_shard *shard, const struct name_key *key)
{
    struct name_table *table = load_relaxed(&shard->table); /* under the lock, as all below */
    if (table == NULL) {
        return OBJECT_NONE;
    }
    uint32_t index = load_relaxed(&table->heads[key->hash & table->mask]);
    while (index != OBJECT_NONE && !has_words(name_shard_entry(shard, index), key)) {
        index = load_relaxed(&name_shard_entry(shard, index)->next);
    }
    return index;
}

void name_shard_see_locked(struct name_shard *shard, uint32_t index, struct name_sight *sight)
{
    struct name_entry *entry = name_shard_entry(shard, index);
    sight->holder = load_relaxed(&entry->holder); /* under the lock */
    sight->handle.entry = index;
    sight->handle.generation = load_relaxed(&entry->generation); /* under the lock */
}

static bool find_by_lock(struct name_shard *shard, const struct name_key *key,
                         struct name_sight *sight)
{
    mutex_lock(&shard->lock);
    const uint32_t index = name_shard_find_locked(shard, key);
    if (index != OBJECT_NONE) {
        name_shard_see_locked(shard, index, sight);
    }
    mutex_unlock(&shard->lock);
    return index != OBJECT_NONE;
}

bool name_shard_find_any(struct name_shard *shard, const struct name_key *key,
                         struct name_sight *sight)
{
    for (uint32_t i = 0; i < NAMES_TRIES; i++) {
        const enum look look = look_for(shard, key, sight);
        if (LIKELY(look != LOOK_CHANGED)) {
            return look == LOOK_FOUND;
        }
    }
    return find_by_lock(shard, key, sight);
}

/* ---- chains ---- */

/* Between these two the chains may change. Relaxed: every change is a release, and brings it. */
static void begin_change_locked(struct name_shard *shard)
{
    store_relaxed(&shard->version, load_relaxed(&shard->version) + 1); /* MO-name-chain */
}

static void end_change_locked(struct name_shard *shard)
{
    store_release(&shard->version, load_relaxed(&shard->version) + 1); /* MO-name-chain */
}

static void chain_locked(struct name_table *table, struct name_entry *entry, uint32_t index)
{
    atomic_u32 *head = &table->heads[entry->hash & table->mask];
    store_release(&entry->next, load_relaxed(head)); /* MO-name-chain */
    store_release(head, index);                      /* MO-name-chain */
}

static void unchain_locked(struct name_shard *shard, struct name_entry *entry, uint32_t index)
{
    struct name_table *table = load_relaxed(&shard->table); /* under the lock, as all below */
    atomic_u32 *link = &table->heads[entry->hash & table->mask];
    while (load_relaxed(link) != index) {
        link = &name_shard_entry(shard, load_relaxed(link))->next;
    }
    store_release(link, load_relaxed(&entry->next)); /* MO-name-chain */
}

static size_t table_size(uint32_t mask)
{
    return sizeof(struct name_table) + ((size_t)mask + 1) * sizeof(atomic_u32);
}

/* Moves all entries to a table twice as large, if there is memory for one: chains that become
 * longer do no harm. */
static void grow_table_locked(struct name_shard *shard, const struct allocator *allocator)
{
    struct name_table *old = load_relaxed(&shard->table); /* under the lock */
    const uint32_t mask = old != NULL ? 2 * old->mask + 1 : NAMES_FIRST_PLACE - 1;
    struct name_table *table =
        allocator_alloc_zeroed(allocator, table_size(mask), _Alignof(struct name_table));
    if (table == NULL) {
        return;
    }
    table->smaller = old;
    table->mask = mask;
    begin_change_locked(shard);
    for (uint32_t place = NAMES_FIRST_PLACE; place < shard->end; place++) {
        chain_locked(table, name_shard_entry_at(shard, place), name_shard_index_at(shard, place));
    }
    store_release(&shard->table, table); /* MO-name-chain */
    end_change_locked(shard);
}

/* ---- entries ---- */

/* Finds an idle entry that can become another name's; OBJECT_NONE if there is none. */
static uint32_t find_idle_locked(struct name_shard *shard)
{
    for (uint32_t left = shard->end - NAMES_FIRST_PLACE; left > 0; left--) {
        const uint32_t place = shard->hand;
        shard->hand = place + 1 < shard->end ? place + 1 : NAMES_FIRST_PLACE;
        struct name_entry *entry = name_shard_entry_at(shard, place);
        const bool is_old = load_relaxed(&entry->generation) == NAMES_GENERATION_LAST; /* locked */
        if (name_entry_is_idle_locked(entry) && !is_old) {
            return name_shard_index_at(shard, place);
        }
    }
    return OBJECT_NONE;
}

static size_t bytes_of(uint32_t segment)
{
    return name_segment_size(segment) * sizeof(struct name_entry);
}

static bool add_segment_locked(struct name_shard *shard, const struct allocator *allocator,
                               uint32_t segment)
{
    void *entries = allocator_alloc_zeroed(allocator, bytes_of(segment), CACHE_LINE);
    store_release(&shard->segments[segment], entries); /* MO-name-chain */
    return entries != NULL;
}

/* Whether there is a table. It has room for one more entry, if there is memory for that. */
static bool make_room_locked(struct name_shard *shard, const struct allocator *allocator)
{
    struct name_table *table = load_relaxed(&shard->table); /* under the lock */
    if (table == NULL || shard->end - NAMES_FIRST_PLACE > table->mask) {
        grow_table_locked(shard, allocator);
    }
    return load_relaxed(&shard->table) != NULL; /* under the lock */
}

/* The next entry that was never used; OBJECT_NONE if there is no memory for it. */
static uint32_t take_new_locked(struct name_shard *shard, const struct allocator *allocator)
{
    const uint32_t place = shard->end;
    if (place > NAMES_PLACE_MAX || !make_room_locked(shard, allocator)) {
        return OBJECT_NONE;
    }
    const uint32_t index = name_shard_index_at(shard, place);
    const uint32_t segment = index >> NAMES_SHARD_BITS & (NAMES_SEGMENTS_END - 1);
    if (name_shard_entry(shard, index) == NULL && !add_segment_locked(shard, allocator, segment)) {
        return OBJECT_NONE;
    }
    shard->end = place + 1;
    return index;
}

static bool has_too_many_idle_locked(const struct name_shard *shard)
{
    const uint32_t all = shard->end - NAMES_FIRST_PLACE;
    return all > 2 * (uint64_t)shard->counted + NAMES_IDLE_FLOOR;
}

/* Gives an entry its text. */
static void write_text_locked(struct name_entry *entry, const struct name_key *key)
{
    const uint32_t generation = load_relaxed(&entry->generation); /* under the lock */
    /* Relaxed: every word is a release, and brings it. */
    store_relaxed(&entry->generation, generation + 1); /* MO-name-entry */
    for (uint32_t i = 0; i < key->count; i++) {
        store_release(&entry->words[i], key->words[i]); /* MO-name-entry, MO-name-chain */
    }
    store_release(&entry->generation, generation + 2); /* MO-name-entry */
    entry->hash = key->hash;
}

uint32_t name_shard_add_locked(struct name_shard *shard, const struct allocator *allocator,
                               const struct name_key *key)
{
    uint32_t idle = OBJECT_NONE;
    uint32_t fresh = OBJECT_NONE;
    if (has_too_many_idle_locked(shard)) {
        idle = find_idle_locked(shard);
    }
    if (idle == OBJECT_NONE) {
        fresh = take_new_locked(shard, allocator);
    }
    if (idle == OBJECT_NONE && fresh == OBJECT_NONE) {
        idle = find_idle_locked(shard);
    }
    const uint32_t index = idle != OBJECT_NONE ? idle : fresh;
    if (index == OBJECT_NONE) {
        return OBJECT_NONE;
    }
    struct name_entry *entry = name_shard_entry(shard, index);
    begin_change_locked(shard);
    if (idle != OBJECT_NONE) {
        unchain_locked(shard, entry, index);
    }
    write_text_locked(entry, key);
    chain_locked(load_relaxed(&shard->table), entry, index); /* under the lock */
    end_change_locked(shard);
    return index;
}

/* ---- the beginning and the end ---- */

void name_shard_init(struct name_shard *shard, uint32_t number)
{
    mutex_init(&shard->lock);
    shard->number = number;
    shard->end = shard->hand = NAMES_FIRST_PLACE;
}

void name_shard_deinit(struct name_shard *shard, const struct allocator *allocator)
{
    SKUA_ASSERT(shard->awaited == 0);
    struct name_table *table = load_relaxed(&shard->table); /* no other thread is left */
    while (table != NULL) {
        struct name_table *smaller = table->smaller;
        allocator_free(allocator, table, table_size(table->mask), _Alignof(struct name_table));
        table = smaller;
    }
    for (uint32_t i = 1; i < NAMES_SEGMENTS_END; i++) {
        void *entries = load_relaxed(&shard->segments[i]); /* no other thread is left */
        if (entries != NULL) {
            allocator_free(allocator, entries, bytes_of(i), CACHE_LINE);
        }
    }
    mutex_deinit(&shard->lock);
}
