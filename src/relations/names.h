/* SPDX-License-Identifier: MIT */
/* The registry of names: text by which a process can be found. A name has one holder or none; a
 * process may hold many. Those who look a name up lock nothing.
 *
 * Names are spread over shards by their hash. A shard has a lock for its writers and a hash table
 * of chains, linked by index through the entries. An entry is one name: its text, its holder, and
 * who waits for a holder. Entries live in segments that stay until names_deinit, so that a reader
 * who comes late finds some entry of the same shard there, and can tell.
 *
 * An entry outlives its holder. If the process is restarted and takes its name again, handles to
 * the entry that others have kept lead to it at once. An entry with neither holder nor waiters is
 * idle, and is reused for another name when the shard has more idle ones than others and
 * NAMES_IDLE_FLOOR beyond that, or when there is no memory for a new one; whose turn it is goes
 * round. So there are fewer than twice as many entries as names, and some.
 *
 * What a reader sees. All that it touches is atomic; every store that one might see too early is a
 * release, every load but the last an acquire, so that the loads happen in this order and no fence
 * is needed.
 *
 *  - MO-name-entry: the generation of an entry is odd while its text changes. The writer of a text
 *    makes it odd, stores the words, and makes it even again; `holder` is none all the time. A
 *    reader loads the generation, the words, the holder, and the generation once more. If it saw a
 *    word or a holder of a later use, it also sees that use's generation, and the two differ; if it
 *    saw an even generation, it sees no word from before. So with twice the same even generation
 *    the words were the name of this entry when it had this holder, or none. Nothing else matters:
 *    not how the reader came there, nor what happens to other names.
 *  - By handle only the end of this is needed: the holder, then the generation. An earlier holder
 *    than that of the handle's use was gone before the handle was made.
 *  - MO-name-chain: the version of a shard is odd while its chains change. That a chain does not
 *    have the name is true only if the version was even before the walk and is the same after it:
 *    whoever saw a link, a head, a table or a text of a change also sees its version. A walk that
 *    is led from one chain to another by all this could go on and on, so it has a limit.
 *  - A reader that has failed NAMES_TRIES times takes the lock.
 *
 * A reader of a name that has, in the order that the program has seen to, been held since before
 * the call finds the holder: what it has to see is ordered before the call, and coherence lets no
 * load go back behind that.
 *
 * Who waits. names_await_any looks for a holder and appends the waiter under the lock that
 * names_register_any has while it sets the holder and takes the waiters: no waiter is lost. A
 * waiter is an event node whose event names the waiting call: `from` the process, `tag` the `call`
 * of its completion. A call may end before somebody has the name, by a deadline or because it is
 * taken back. Its waiter then is stale: it is given back when the entry's waiters have doubled
 * since the last sweep, or when a limit is reached, or with the others; completing it is late.
 *
 * The limit counts names that are held or awaited. At the limit all waiters are looked at, shard by
 * shard, until a name turns out to be neither: an attempt that is refused may take long. */
#ifndef SKUA_RELATIONS_NAMES_H
#define SKUA_RELATIONS_NAMES_H

#include <skua/error.h>

#include "process/event.h"
#include "process/process.h"
#include "relations/name_shard.h"

/* The models choose a smaller one. */
#ifndef NAMES_SWEEP_FLOOR
#define NAMES_SWEEP_FLOOR 8
#endif

struct names {
    const struct allocator *allocator;
    const struct object_pool *events;
    uint64_t seed;
    uint32_t limit;
    atomic_ptr shards; /* struct name_shard[], or null until there is a name; MO-name-shards */
    pthread_mutex_t creation;
    CACHE_ALIGNED atomic_u32 count; /* names that are held or awaited */
};

/* What comes out of registering and awaiting. Both chains are linked by event_node.next, end with
 * OBJECT_NONE, and are the caller's. */
struct name_outcome {
    uint32_t entry;   /* that the new holder has to release */
    skua_pid holder;  /* who has the name, if it is taken */
    uint32_t waiters; /* for this name, oldest first: tell them, outside of all locks */
    uint32_t stale;   /* for any name: their calls have ended; also if there is an error */
};

/* Keeps `allocator` and `events`, the pool of the waiters and of the calls that they stand for,
 * until names_deinit. `limit` is the number of names that may be held or awaited. `seed` makes
 * names that collide in one runtime not collide in the next. Allocates nothing. */
void names_init(struct names *names, const struct allocator *allocator,
                const struct object_pool *events, uint32_t limit, uint64_t seed);

/* No other thread uses it any more, and names_take_all_waiters_any has been called. */
void names_deinit(struct names *names);

/* Whether this can be a name: 0, SKUA_E_NAME or SKUA_E_NAME_LENGTH. Reads NAME_SIZE bytes at
 * most. */
NODISCARD int names_check(const char *text);

/* Finds the holder of a name. Returns 0, SKUA_E_NO_PROCESS, or an error of names_check. */
NODISCARD int names_find_any(struct names *names, const char *text, skua_pid *holder);

/* Makes a handle for a name, held or not. Returns 0, SKUA_E_NO_MEMORY, or an error of
 * names_check. */
NODISCARD int names_handle_any(struct names *names, const char *text, struct name_handle *handle);

/* Makes `pid` the holder of a name. Returns
 *   0: `entry` and `waiters` are set,
 *   SKUA_E_NAME_TAKEN: `holder` is set, and may be `pid` itself,
 *   SKUA_E_NAME_LIMIT, SKUA_E_NO_MEMORY, or an error of names_check. */
NODISCARD int names_register_any(struct names *names, const char *text, skua_pid pid,
                                 struct name_outcome *outcome);

/* The same for a process that is being started: adds the entry to the list of its names
 * (names_link_owner), then publishes it, before anybody finds it by the name. On an error it is not
 * published. */
NODISCARD int names_publish_any(struct names *names, const char *text, struct process *process,
                                skua_pid pid, uint32_t *list, struct name_outcome *outcome);

/* Gives a name up, if `pid` still holds it; false if not. The index is that of an outcome. */
bool names_release_any(struct names *names, uint32_t index, skua_pid pid);

/* Waits for a name to be held. Returns
 *   0: `holder` is set, and the waiter not used,
 *   SKUA_PENDING: takes the waiter; names_register_any will give it back,
 *   SKUA_E_NAME_LIMIT, SKUA_E_NO_MEMORY, or an error of names_check: the waiter is not used. */
NODISCARD int names_await_any(struct names *names, const char *text, uint32_t waiter,
                              struct name_outcome *outcome);

/* All waiters for all names, linked as those of an outcome, in no order. */
NODISCARD uint32_t names_take_all_waiters_any(struct names *names);

/* Shows each waiter to `show`: for audits. */
void names_show_waiters_any(struct names *names, void (*show)(void *arg, uint32_t waiter),
                            void *arg);

/* Writes the text of an entry that the caller's process holds, with its end; returns its length. */
uint32_t names_text(struct names *names, uint32_t index, char text[NAME_SIZE]);

/* Names that are held or awaited. Any thread; a snapshot. */
static inline uint32_t names_count(struct names *names)
{
    return load_relaxed(&names->count); /* statistic */
}

/* The entry of an index, which may be forged; null if there is none. */
static inline struct name_entry *names_entry(struct names *names, uint32_t index)
{
    struct name_shard *shards = load_acquire(&names->shards); /* MO-name-shards */
    if (UNLIKELY(shards == NULL)) {
        return NULL;
    }
    return name_shard_entry(&shards[index & (NAMES_SHARDS - 1)], index);
}

/* Finds the holder by handle. Returns 0, SKUA_E_NO_PROCESS if there is none now, or SKUA_E_LATE if
 * the entry has become another name's: a new handle may be made of the text. */
NODISCARD static inline int names_of_handle_any(struct names *names, struct name_handle handle,
                                                skua_pid *holder)
{
    struct name_entry *entry = names_entry(names, handle.entry);
    if (UNLIKELY(entry == NULL)) {
        return SKUA_E_LATE;
    }
    const uint64_t bits = load_acquire(&entry->holder); /* MO-name-entry */
    /* Relaxed: the load before it has brought the generation that the holder belongs to. */
    if (UNLIKELY(load_relaxed(&entry->generation) != handle.generation)) {
        return SKUA_E_LATE;
    }
    *holder = (skua_pid){bits};
    return bits != 0 ? 0 : SKUA_E_NO_PROCESS;
}

/* The entry of a name that `pid` holds, or OBJECT_NONE. */
NODISCARD uint32_t names_entry_of(struct names *names, const char *text, skua_pid pid);

/* The links through the entries of one holder, which keeps the first: indices, or OBJECT_NONE. They
 * are written and read by the holder of the process's token only, and have no value at first. */
static inline struct name_links *names_links_owner(struct names *names, uint32_t index)
{
    return &names_entry(names, index)->of_owner;
}

/* Makes it the first of this list. The names of a process are a list, newest first, so that it can
 * give up one of a million. Before the newest comes the oldest: that is the one to call it by. */
void names_link_owner(struct names *names, uint32_t *list, uint32_t index);

#endif
