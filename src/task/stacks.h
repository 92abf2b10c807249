/* SPDX-License-Identifier: MIT */
/* The stacks of tasks.
 *
 * Each size tier is one reservation of address space, cut into slots: a guard page, then the
 * stack, whose last STACK_RECORD bytes belong to whoever uses it (sched/tasks.h). Slots are made
 * usable in pieces, lowest first, and never given back as address space; their memory is.
 *
 *   | guard | stack, grows down ........ record | guard | stack ... record | ...
 *
 * Workers have LIFO caches, so that a stack that was just left, and is warm, is the next one to be
 * used. The rest is under a lock: free slots, the last one freed first, and below them those whose
 * memory was given back.
 *
 * A slot without memory costs two trips to the system, for its guard and for its first page. The
 * lock is not held meanwhile: a cache takes a few such slots, which are its worker's own from then
 * on, as they count as used and are in no list. It makes one after the other into a stack.
 *
 * A guard is installed when a slot is first used, in the best way that works: one that leaves the
 * mapping whole; else a page without permissions, for as many stacks as a quarter of the mappings
 * that the program may have; else none, and whoever leaves a stack checks the canary at its end. */
#ifndef SKUA_TASK_STACKS_H
#define SKUA_TASK_STACKS_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "task/fiber.h"
#include "task/stack_memory.h"

#define STACK_TIERS        4
#define STACK_SIZE_DEFAULT ((size_t)64 << 10)
#define STACK_TIER_DEFAULT 1
#define STACK_RECORD       ((size_t)512)
#define STACK_CACHED_MAX   64
#define STACK_BARE_MAX     16

enum stack_guard {
    STACK_GUARD_UNKNOWN, /* no stack yet */
    STACK_GUARD_PAGE,    /* a guard that leaves the mapping whole */
    STACK_GUARD_MAPPING, /* a mapping of its own */
    STACK_GUARD_CANARY,  /* none but the canary */
};

/* The record of a stack begins with this. It reads as zeros before the stack is first used, and
 * after its memory was given back, but for what stacks_acquire fills in. */
struct stack {
    char *low; /* the end of the stack, where the canary is */
    uint32_t tier;
    bool has_guard; /* otherwise a canary */
    void *peer;     /* where its coroutine goes on, or, while that runs, its host does; null: it has
                       not begun (coroutine.h) */
    struct fiber fiber;
    atomic_u64 owner; /* a number of whoever uses it; 0: nobody */
};

struct stack_cache {
    uint32_t max; /* in each tier; less than STACK_CACHED_MAX */
    uint32_t count[STACK_TIERS];
    uint32_t bare_count[STACK_TIERS]; /* no more than half of `max`, or one */
    struct stack *stacks[STACK_TIERS][STACK_CACHED_MAX];
    uint32_t bare[STACK_TIERS][STACK_BARE_MAX]; /* slots without memory, as in a tier's `free` */
};

/* One size tier; all under the lock, but others read what is atomic. */
struct stack_tier {
    char *_Atomic start; /* null: nothing is reserved yet */
    uint32_t slots;      /* that fit into the reservation */
    atomic_u32 used;     /* ever, or in a cache; others read `start` after this */
    uint32_t committed;
    uint32_t *free; /* `free_count` slots, and whether they have a guard; the next to be used last;
                       usable for those committed */
    uint32_t free_count;
    uint32_t clean; /* the first ones of them, whose memory was given back */
};

/* Zero: that of the first stack. */
struct stack_place {
    uint32_t tier;
    uint32_t slot;
};

struct stacks {
    const struct stack_memory *memory;
    pthread_mutex_t lock;
    uint32_t limit;    /* of stacks that are not free, of all tiers */
    uint32_t mappings; /* under lock: guards that may still have a mapping of their own */
    atomic_u32 guard;  /* enum stack_guard: the weakest in use */
    atomic_u32 told;   /* the one that somebody has told of (sched/log.h) */
    atomic_u64 dirty;  /* bytes of the free stacks whose memory was not given back */
    atomic_u64 held;   /* bytes of those that are not free */
    size_t page;
    struct stack_tier tiers[STACK_TIERS];
};

/* The tier of the smallest stacks that have this size; STACK_TIERS if there are none so
 * large. */
NODISCARD uint32_t stacks_tier(size_t size);
NODISCARD size_t stacks_size(uint32_t tier);

void stacks_init(struct stacks *stacks, const struct stack_memory *memory, uint32_t limit);

/* Makes one of `count` caches, which is empty. Together they hold back a small share of the
 * limit. */
void stacks_init_cache(const struct stacks *stacks, struct stack_cache *cache, uint32_t count);

/* All stacks have been released, but may be in caches. */
void stacks_deinit(struct stacks *stacks);

/* Returns 0, SKUA_E_STACK_LIMIT, SKUA_E_SHADOW_STACK or SKUA_E_NO_MEMORY (also of address space).
 * The first function is for an empty cache. */
NODISCARD int stacks_refill(struct stacks *stacks, struct stack_cache *cache, uint32_t tier);

NODISCARD static inline int stacks_acquire(struct stacks *stacks, struct stack_cache *cache,
                                           uint32_t tier, struct stack **stack)
{
    if (UNLIKELY(cache->count[tier] == 0)) {
        const int error = stacks_refill(stacks, cache, tier);
        if (error != 0) {
            return error;
        }
    }
    *stack = cache->stacks[tier][--cache->count[tier]];
    return 0;
}

/* Puts half of a cache back that has more than it may have. */
void stacks_spill(struct stacks *stacks, struct stack_cache *cache, uint32_t tier);

static inline void stacks_release(struct stacks *stacks, struct stack_cache *cache,
                                  struct stack *stack)
{
    const uint32_t tier = stack->tier;
    cache->stacks[tier][cache->count[tier]++] = stack;
    if (UNLIKELY(cache->count[tier] > cache->max)) {
        stacks_spill(stacks, cache, tier);
    }
}

/* Empties a cache. */
void stacks_flush(struct stacks *stacks, struct stack_cache *cache);

/* How much memory free stacks hold at most, without those in caches. */
NODISCARD uint64_t stacks_free_bytes(const struct stacks *stacks);

/* Gives back the memory of up to `most` free stacks, *bytes of it. Returns whether there may be
 * more. */
bool stacks_trim(struct stacks *stacks, uint32_t most, size_t *bytes);

/* Gives back what a stack has used below `sp`, and returns how much that is. */
size_t stacks_trim_below(const struct stacks *stacks, const struct stack *stack, const void *sp);

/* How much of a stack is not zeros, from its beginning: how deep it was used since it was all
 * zeros. Its function waits or has returned. */
NODISCARD size_t stacks_used(const struct stack *stack);

/* Makes a stack all zeros whose function has returned. Returns how much of it was not. */
size_t stacks_wipe(struct stack *stack);

/* How much memory the others hold at most. */
NODISCARD uint64_t stacks_held_bytes(const struct stacks *stacks);

/* The owner of a stack, 0 if it has none, and moves *at to the next one. False after the last. */
NODISCARD bool stacks_next_owner(const struct stacks *stacks, struct stack_place *at,
                                 uint64_t *owner);

/* Whether a stack that is not running has not been used up, as far as its canary and its stack
 * pointer tell; always, if there is a guard. */
NODISCARD bool stacks_is_whole(const struct stack *stack);

#endif
