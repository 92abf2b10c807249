/* SPDX-License-Identifier: MIT */
#include "relations/names.h"

#include "base/assert.h"
#include "base/mutex.h"
#include "dispatch/call.h"
#include "process/state.h"
#include "process/table.h"

int names_check(const char *text)
{
    struct name_key key;
    return name_key_make(&key, text, 0);
}

/* ---- shards ---- */

/* Where a name belongs; null if there are no names at all. */
static struct name_shard *shard_of(struct names *names, const struct name_key *key)
{
    struct name_shard *shards = load_acquire(&names->shards); /* MO-name-shards */
    return shards != NULL ? &shards[(key->hash >> 32) >> (32 - NAMES_SHARD_BITS)] : NULL;
}

static struct name_shard *shard_of_index(struct names *names, uint32_t index)
{
    struct name_shard *shards = load_acquire(&names->shards); /* MO-name-shards */
    return &shards[index & (NAMES_SHARDS - 1)];
}

static struct name_shard *make_shards(struct names *names)
{
    struct name_shard *shards =
        allocator_alloc_zeroed(names->allocator, NAMES_SHARDS * sizeof *shards, CACHE_LINE);
    for (uint32_t i = 0; shards != NULL && i < NAMES_SHARDS; i++) {
        name_shard_init(&shards[i], i);
    }
    return shards;
}

/* The same, for a name that is to be added; null if there is no memory. */
static struct name_shard *shard_for(struct names *names, const struct name_key *key)
{
    if (load_acquire(&names->shards) == NULL) { /* MO-name-shards */
        mutex_lock(&names->creation);
        if (load_relaxed(&names->shards) == NULL) {            /* written under the lock */
            store_release(&names->shards, make_shards(names)); /* MO-name-shards */
        }
        mutex_unlock(&names->creation);
    }
    return shard_of(names, key);
}

/* ---- look-ups ---- */

int names_find_any(struct names *names, const char *text, skua_pid *holder)
{
    struct name_key key;
    const int error = name_key_make(&key, text, names->seed);
    if (UNLIKELY(error != 0)) {
        return error;
    }
    struct name_shard *shard = shard_of(names, &key);
    struct name_sight sight;
    if (shard == NULL || !name_shard_find_any(shard, &key, &sight) || sight.holder == 0) {
        return SKUA_E_NO_PROCESS;
    }
    *holder = (skua_pid){sight.holder};
    return 0;
}

uint32_t names_entry_of(struct names *names, const char *text, skua_pid pid)
{
    struct name_key key;
    struct name_sight sight;
    if (name_key_make(&key, text, names->seed) != 0) {
        return OBJECT_NONE;
    }
    struct name_shard *shard = shard_of(names, &key);
    const bool is_found = shard != NULL && name_shard_find_any(shard, &key, &sight);
    return is_found && sight.holder == pid.bits ? sight.handle.entry : OBJECT_NONE;
}

int names_handle_any(struct names *names, const char *text, struct name_handle *handle)
{
    struct name_key key;
    const int error = name_key_make(&key, text, names->seed);
    if (error != 0) {
        return error;
    }
    struct name_shard *shard = shard_for(names, &key);
    if (shard == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    struct name_sight sight;
    bool is_found = name_shard_find_any(shard, &key, &sight);
    if (!is_found) {
        mutex_lock(&shard->lock);
        uint32_t index = name_shard_find_locked(shard, &key);
        index = index != OBJECT_NONE ? index : name_shard_add_locked(shard, names->allocator, &key);
        is_found = index != OBJECT_NONE;
        if (is_found) {
            name_shard_see_locked(shard, index, &sight);
        }
        mutex_unlock(&shard->lock);
    }
    *handle = is_found ? sight.handle : (struct name_handle){0};
    return is_found ? 0 : SKUA_E_NO_MEMORY;
}

uint32_t names_text(struct names *names, uint32_t index, char text[NAME_SIZE])
{
    struct name_entry *entry = names_entry(names, index);
    uint64_t words[NAME_WORDS];
    for (uint32_t i = 0; i < NAME_WORDS; i++) {
        words[i] = load_relaxed(&entry->words[i]); /* the caller's own */
    }
    return name_key_text(words, text);
}

/* ---- waiters ---- */

static void append_waiter_locked(struct names *names, struct name_entry *entry, uint32_t index)
{
    event_at(names->events, index)->next = OBJECT_NONE;
    if (entry->waiter_count == 0) {
        entry->first_waiter = index;
    } else {
        event_at(names->events, entry->last_waiter)->next = index;
    }
    entry->last_waiter = index;
    entry->waiter_count++;
}

static uint32_t take_waiters_locked(struct name_entry *entry)
{
    const uint32_t first = entry->waiter_count > 0 ? entry->first_waiter : OBJECT_NONE;
    entry->waiter_count = 0;
    return first;
}

static bool is_stale(struct names *names, const struct event_node *waiter)
{
    const skua_event *event = &waiter->as.event;
    const skua_completion completion = {.process = event->from, .call = event->tag};
    struct event_node *call = event_at(names->events, call_index(completion));
    /* Relaxed: that it has ended may be seen by a later sweep. Before it was opened it is not. */
    return load_relaxed(&call->guard) != call_guard(completion);
}

/* Moves the stale waiters of an entry to `stale`. */
static void sweep_locked(struct names *names, struct name_entry *entry, uint32_t *stale)
{
    uint32_t next;
    for (uint32_t index = take_waiters_locked(entry); index != OBJECT_NONE; index = next) {
        struct event_node *waiter = event_at(names->events, index);
        next = waiter->next;
        if (is_stale(names, waiter)) {
            waiter->next = *stale;
            *stale = index;
        } else {
            append_waiter_locked(names, entry, index);
        }
    }
    entry->sweep_at = 2 * entry->waiter_count + NAMES_SWEEP_FLOOR;
}

/* ---- the limit ---- */

static bool count_one(struct names *names)
{
    uint32_t count = load_relaxed(&names->count); /* orders nothing */
    do {
        if (count >= names->limit) {
            return false;
        }
    } while (!cas_acq_rel_relaxed(&names->count, &count, count + 1)); /* orders nothing */
    return true;
}

/* A name is neither held nor awaited any more. */
static void become_idle_locked(struct names *names, struct name_shard *shard)
{
    shard->counted--;
    (void)fetch_sub_relaxed(&names->count, 1); /* orders nothing */
}

/* Sweeps the names of a shard; true if one has become idle. */
static bool sweep_shard_locked(struct names *names, struct name_shard *shard, uint32_t *stale)
{
    bool is_any_idle = false;
    for (uint32_t place = NAMES_FIRST_PLACE; place < shard->end && shard->awaited > 0; place++) {
        struct name_entry *entry = name_shard_entry_at(shard, place);
        if (entry->waiter_count == 0) {
            continue;
        }
        sweep_locked(names, entry, stale);
        if (entry->waiter_count == 0) {
            shard->awaited--;
            become_idle_locked(names, shard);
            is_any_idle = true;
        }
    }
    return is_any_idle;
}

/* Makes room below the limit; false if every name that is counted is held or really awaited. */
static bool sweep_until_idle(struct names *names, uint32_t *stale)
{
    struct name_shard *shards = load_acquire(&names->shards); /* MO-name-shards */
    bool is_any_idle = false;
    for (uint32_t i = 0; i < NAMES_SHARDS && !is_any_idle; i++) {
        mutex_lock(&shards[i].lock);
        is_any_idle = sweep_shard_locked(names, &shards[i], stale);
        mutex_unlock(&shards[i].lock);
    }
    return is_any_idle;
}

/* ---- holders ---- */

/* What is asked for: to hold a name, or if there is a waiter, to wait for a holder. */
struct request {
    struct name_key key;
    skua_pid pid;
    struct process *process; /* to be published first; null: it is */
    uint32_t *list;          /* of the names that it has */
    uint32_t waiter;
};

/* Finds or makes the entry of a name without a holder, and counts it. Returns 0 or an error; then
 * nothing has changed. */
static int claim_locked(struct names *names, struct name_shard *shard, const struct name_key *key,
                        uint32_t *index, skua_pid *holder)
{
    *index = name_shard_find_locked(shard, key);
    if (*index != OBJECT_NONE) {
        struct name_entry *entry = name_shard_entry(shard, *index);
        holder->bits = load_relaxed(&entry->holder); /* under the lock */
        if (!name_entry_is_idle_locked(entry)) {
            return holder->bits != 0 ? SKUA_E_NAME_TAKEN : 0;
        }
    }
    if (!count_one(names)) {
        return SKUA_E_NAME_LIMIT;
    }
    shard->counted++;
    if (*index == OBJECT_NONE) {
        *index = name_shard_add_locked(shard, names->allocator, key);
    }
    if (*index == OBJECT_NONE) {
        become_idle_locked(names, shard);
        return SKUA_E_NO_MEMORY;
    }
    return 0;
}

void names_link_owner(struct names *names, uint32_t *list, uint32_t index)
{
    struct name_links *links = names_links_owner(names, index);
    *links = (struct name_links){.previous = index, .next = *list};
    if (*list != OBJECT_NONE) {
        struct name_links *newest = names_links_owner(names, *list);
        links->previous = newest->previous;
        newest->previous = index;
    }
    *list = index;
}

/* A simulated fault may hit the process as soon as it is published, and its name is recorded. */
static uint32_t hold_locked(struct names *names, struct name_shard *shard, uint32_t index,
                            const struct request *request)
{
    struct name_entry *entry = name_shard_entry(shard, index);
    shard->awaited -= entry->waiter_count > 0;
    if (request->process != NULL) {
        names_link_owner(names, request->list, index);
        state_publish_owner(request->process, pid_generation(request->pid));
    }
    store_release(&entry->holder, request->pid.bits); /* MO-name-entry */
    return take_waiters_locked(entry);
}

static void wait_locked(struct names *names, struct name_shard *shard, struct name_entry *entry,
                        uint32_t waiter, uint32_t *stale)
{
    if (entry->waiter_count == 0) {
        shard->awaited++;
        entry->sweep_at = NAMES_SWEEP_FLOOR;
    } else if (entry->waiter_count >= entry->sweep_at) {
        sweep_locked(names, entry, stale);
    }
    append_waiter_locked(names, entry, waiter);
}

static int try_locked(struct names *names, struct name_shard *shard, const struct request *request,
                      struct name_outcome *outcome)
{
    uint32_t index;
    const int error = claim_locked(names, shard, &request->key, &index, &outcome->holder);
    if (error != 0) {
        return error;
    }
    if (request->waiter != OBJECT_NONE) {
        struct name_entry *entry = name_shard_entry(shard, index);
        wait_locked(names, shard, entry, request->waiter, &outcome->stale);
    } else {
        outcome->waiters = hold_locked(names, shard, index, request);
        outcome->entry = index;
    }
    return 0;
}

static int ask(struct names *names, const char *text, struct request *request,
               struct name_outcome *outcome)
{
    *outcome = (struct name_outcome){.entry = OBJECT_NONE};
    int error = name_key_make(&request->key, text, names->seed);
    if (error != 0) {
        return error;
    }
    struct name_shard *shard = shard_for(names, &request->key);
    if (shard == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    do {
        mutex_lock(&shard->lock);
        error = try_locked(names, shard, request, outcome);
        mutex_unlock(&shard->lock);
    } while (error == SKUA_E_NAME_LIMIT && sweep_until_idle(names, &outcome->stale));
    return error;
}

int names_register_any(struct names *names, const char *text, skua_pid pid,
                       struct name_outcome *outcome)
{
    SKUA_ASSERT(!skua_pid_is_none(pid));
    struct request request = {.pid = pid, .waiter = OBJECT_NONE};
    return ask(names, text, &request, outcome);
}

int names_publish_any(struct names *names, const char *text, struct process *process, skua_pid pid,
                      uint32_t *list, struct name_outcome *outcome)
{
    struct request request = {.pid = pid, .process = process, .list = list, .waiter = OBJECT_NONE};
    return ask(names, text, &request, outcome);
}

int names_await_any(struct names *names, const char *text, uint32_t waiter,
                    struct name_outcome *outcome)
{
    SKUA_ASSERT(waiter != OBJECT_NONE);
    struct request request = {.waiter = waiter};
    const int error = ask(names, text, &request, outcome);
    if (error == 0) {
        return SKUA_PENDING;
    }
    return error == SKUA_E_NAME_TAKEN ? 0 : error;
}

bool names_release_any(struct names *names, uint32_t index, skua_pid pid)
{
    struct name_shard *shard = shard_of_index(names, index);
    struct name_entry *entry = name_shard_entry(shard, index);
    mutex_lock(&shard->lock);
    const bool is_held = load_relaxed(&entry->holder) == pid.bits; /* under the lock */
    if (is_held) {
        /* Relaxed: it says nothing that is not true of every use of an entry, before its first
         * holder. */
        store_relaxed(&entry->holder, 0);
        become_idle_locked(names, shard);
    }
    mutex_unlock(&shard->lock);
    return is_held;
}

/* ---- the beginning and the end ---- */

void names_init(struct names *names, const struct allocator *allocator,
                const struct object_pool *events, uint32_t limit, uint64_t seed)
{
    names->allocator = allocator;
    names->events = events;
    names->seed = seed;
    names->limit = limit;
    store_relaxed(&names->shards, NULL); /* not shared yet */
    store_relaxed(&names->count, 0);     /* not shared yet */
    mutex_init(&names->creation);
}

/* Moves all waiters of a shard to `chain`. */
static void empty_shard_locked(struct names *names, struct name_shard *shard, uint32_t *chain)
{
    for (uint32_t place = NAMES_FIRST_PLACE; place < shard->end && shard->awaited > 0; place++) {
        struct name_entry *entry = name_shard_entry_at(shard, place);
        if (entry->waiter_count > 0) {
            event_at(names->events, entry->last_waiter)->next = *chain;
            *chain = take_waiters_locked(entry);
            shard->awaited--;
            become_idle_locked(names, shard);
        }
    }
}

uint32_t names_take_all_waiters_any(struct names *names)
{
    struct name_shard *shards = load_acquire(&names->shards); /* MO-name-shards */
    uint32_t chain = OBJECT_NONE;
    for (uint32_t i = 0; shards != NULL && i < NAMES_SHARDS; i++) {
        mutex_lock(&shards[i].lock);
        empty_shard_locked(names, &shards[i], &chain);
        mutex_unlock(&shards[i].lock);
    }
    return chain;
}

static void show_shard_locked(struct names *names, struct name_shard *shard,
                              void (*show)(void *arg, uint32_t waiter), void *arg)
{
    for (uint32_t place = NAMES_FIRST_PLACE; place < shard->end && shard->awaited > 0; place++) {
        const struct name_entry *entry = name_shard_entry_at(shard, place);
        uint32_t waiter = entry->first_waiter;
        for (uint32_t left = entry->waiter_count; left > 0; left--) {
            const uint32_t next = event_at(names->events, waiter)->next;
            show(arg, waiter);
            waiter = next;
        }
    }
}

void names_show_waiters_any(struct names *names, void (*show)(void *arg, uint32_t waiter),
                            void *arg)
{
    struct name_shard *shards = load_acquire(&names->shards); /* MO-name-shards */
    for (uint32_t i = 0; shards != NULL && i < NAMES_SHARDS; i++) {
        mutex_lock(&shards[i].lock);
        show_shard_locked(names, &shards[i], show, arg);
        mutex_unlock(&shards[i].lock);
    }
}

void names_deinit(struct names *names)
{
    struct name_shard *shards = load_relaxed(&names->shards); /* no other thread is left */
    for (uint32_t i = 0; shards != NULL && i < NAMES_SHARDS; i++) {
        name_shard_deinit(&shards[i], names->allocator);
    }
    allocator_free(names->allocator, shards, NAMES_SHARDS * sizeof *shards, CACHE_LINE);
    mutex_deinit(&names->creation);
}
