/* SPDX-License-Identifier: MIT */
#include "task/stacks.h"

#include <skua/error.h>
#include <string.h>
#include <unistd.h>

#include "base/mutex.h"
#include "task/fiber.h"
#include "task/valgrind.h"

/* Made usable at once. */
#define PIECE ((size_t)8 << 20)

/* What a tier reserves at most; sanitizers keep a shadow of it. If the system refuses that, the
 * tier takes a share of what it can get, as the program needs address space, too; a piece at
 * least. */
#define RESERVED       (IS_SANITIZED ? (size_t)1 << 30 : (size_t)1 << 40)
#define RESERVED_SHARE 4

/* Below the stack pointer, functions that call nobody may use this much. */
#define RED_ZONE 128

/* A frame that is not filled may miss a short one. */
#define CANARY_WORDS 32
#define CANARY       UINT64_C(0x736b75612073746b)

/* Caches hold back this share of the limit at most. */
#define CACHED_SHARE 64

/* How many slots that have no memory go to a cache at once: no more than this share of the slots in
 * use, as the page tables of their guards cost some. */
#define BARE_SHARE 16

/* Beside the number of a free slot: it has no guard. */
#define UNGUARDED (UINT32_C(1) << 31)

static const size_t sizes[STACK_TIERS] = {
    (size_t)16 << 10,
    (size_t)64 << 10,
    (size_t)256 << 10,
    (size_t)1 << 20,
};

uint32_t stacks_tier(size_t size)
{
    uint32_t tier = 0;
    while (tier < STACK_TIERS && sizes[tier] < size) {
        tier++;
    }
    return tier;
}

size_t stacks_size(uint32_t tier)
{
    return sizes[tier];
}

/* Stack-clash probes of aarch64 are 64 KiB apart. */
static size_t guard_size(const struct stacks *stacks)
{
#ifdef __aarch64__
    (void)stacks;
    return (size_t)64 << 10;
#else
    return stacks->page;
#endif
}

static size_t stride_of(const struct stacks *stacks, uint32_t tier)
{
    return sizes[tier] + guard_size(stacks);
}

static char *place_at(const struct stacks *stacks, uint32_t tier, uint32_t slot)
{
    return load_relaxed(&stacks->tiers[tier].start) + slot * stride_of(stacks, tier);
}

static struct stack *record_at(const struct stacks *stacks, uint32_t tier, uint32_t slot)
{
    char *end = place_at(stacks, tier, slot) + stride_of(stacks, tier);
    return (struct stack *)(void *)(end - STACK_RECORD);
}

static uint32_t number_of(const struct stacks *stacks, const struct stack *stack)
{
    const char *start = load_relaxed(&stacks->tiers[stack->tier].start);
    return (uint32_t)((size_t)(stack->low - start) / stride_of(stacks, stack->tier));
}

void stacks_init(struct stacks *stacks, const struct stack_memory *memory, uint32_t limit)
{
    memset(stacks, 0, sizeof *stacks);
    stacks->memory = memory;
    stacks->limit = limit;
    stacks->page = (size_t)sysconf(_SC_PAGESIZE);
    stacks->mappings = memory->mappings_max() / 4;
    mutex_init(&stacks->lock);
}

void stacks_init_cache(const struct stacks *stacks, struct stack_cache *cache, uint32_t count)
{
    const uint32_t share = stacks->limit / CACHED_SHARE / STACK_TIERS / count;
    memset(cache, 0, sizeof *cache);
    cache->max = share < STACK_CACHED_MAX ? share : STACK_CACHED_MAX - 1;
}

static size_t list_size(const struct stack_tier *of)
{
    return of->slots * sizeof *of->free;
}

/* Sanitizers know of each stack. */
static void forget_fibers(struct stacks *stacks, uint32_t tier)
{
    for (uint32_t slot = 0; IS_SANITIZED && slot < load_relaxed(&stacks->tiers[tier].used);
         slot++) {
        struct stack *stack = record_at(stacks, tier, slot);
        if (stack->low != NULL) {
            fiber_deinit(&stack->fiber, stack->low, sizes[tier]);
        }
    }
}

void stacks_deinit(struct stacks *stacks)
{
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        struct stack_tier *of = &stacks->tiers[tier];
        char *start = load_relaxed(&of->start);
        if (start != NULL) {
            forget_fibers(stacks, tier);
            stacks->memory->unreserve(start, of->slots * stride_of(stacks, tier));
            stacks->memory->unreserve(of->free, list_size(of));
        }
    }
    mutex_deinit(&stacks->lock);
}

static uint32_t least(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* Half of a cache. */
static uint32_t half_of(const struct stack_cache *cache)
{
    return cache->max < 2 ? 1 : cache->max / 2;
}

/* ---- finding slots, under the lock ---- */

/* Sets how many slots a tier may have in `size` bytes. */
static size_t fit_slots(struct stacks *stacks, uint32_t tier, size_t size)
{
    struct stack_tier *of = &stacks->tiers[tier];
    const size_t slots = size / stride_of(stacks, tier);
    of->slots = least(slots, stacks->limit);
    return of->slots * stride_of(stacks, tier);
}

static size_t at_least_a_piece(size_t size)
{
    return size > PIECE ? size : PIECE;
}

/* Address space for as many slots as the limit allows, or for fewer. */
static char *reserve_slots(struct stacks *stacks, uint32_t tier)
{
    const struct stack_memory *memory = stacks->memory;
    const size_t wanted = fit_slots(stacks, tier, RESERVED);
    char *start = memory->reserve(wanted);
    for (size_t size = wanted / 2; start == NULL && size >= PIECE / 2; size /= 2) {
        const size_t tried = at_least_a_piece(size);
        start = memory->reserve(tried);
        if (start != NULL) {
            memory->unreserve(start, tried);
            const size_t share = at_least_a_piece(tried / RESERVED_SHARE);
            start = memory->reserve(fit_slots(stacks, tier, share));
        }
    }
    return start;
}

/* Reserves the slots of a tier, and the list for them. */
static bool reserve_locked(struct stacks *stacks, uint32_t tier)
{
    struct stack_tier *of = &stacks->tiers[tier];
    char *start = reserve_slots(stacks, tier);
    if (start == NULL) {
        return false;
    }
    of->free = stacks->memory->reserve(list_size(of));
    if (of->free == NULL) {
        stacks->memory->unreserve(start, of->slots * stride_of(stacks, tier));
        return false;
    }
    store_relaxed(&of->start, start); /* published with `used` */
    return true;
}

/* Makes the list usable for this many slots. What was usable before may be so twice. */
static bool commit_list_locked(struct stacks *stacks, struct stack_tier *of, uint32_t slots)
{
    const size_t page = stacks->page;
    const size_t begin = of->committed * sizeof *of->free & ~(page - 1);
    return stacks->memory->commit((char *)of->free + begin, slots * sizeof *of->free - begin);
}

/* Makes some more slots usable. */
static bool commit_locked(struct stacks *stacks, uint32_t tier)
{
    struct stack_tier *of = &stacks->tiers[tier];
    const size_t each = stride_of(stacks, tier);
    const uint32_t left = of->slots - of->committed;
    const uint32_t more = least(PIECE / each, left);
    if (more == 0 || !commit_list_locked(stacks, of, of->committed + more) ||
        !stacks->memory->commit(place_at(stacks, tier, of->committed), more * each)) {
        return false;
    }
    of->committed += more;
    return true;
}

static void paint_canary(struct stack *stack)
{
    const uint64_t canary = CANARY;
    for (size_t i = 0; i < CANARY_WORDS; i++) {
        memcpy(stack->low + i * sizeof canary, &canary, sizeof canary);
    }
}

bool stacks_is_whole(const struct stack *stack)
{
    const uint64_t canary = CANARY;
    if (LIKELY(stack->has_guard)) {
        return true;
    }
    if ((char *)stack->peer < stack->low + CANARY_WORDS * sizeof canary) {
        return false; /* a large frame has left the canary out */
    }
    for (size_t i = 0; i < CANARY_WORDS; i++) {
        if (memcmp(stack->low + i * sizeof canary, &canary, sizeof canary) != 0) {
            return false;
        }
    }
    return true;
}

/* How many free stacks may be used, or new ones be made. */
static uint64_t room_locked(const struct stacks *stacks)
{
    uint64_t room = stacks->limit;
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        const struct stack_tier *of = &stacks->tiers[tier];
        room -= load_relaxed(&of->used) - of->free_count; /* written under the lock */
    }
    return room;
}

/* How many slots without memory an empty cache gets. */
static uint32_t bare_locked(const struct stack_tier *of, const struct stack_cache *cache)
{
    const uint32_t share = 1 + load_relaxed(&of->used) / BARE_SHARE; /* written under the lock */
    return least(share, least(half_of(cache), STACK_BARE_MAX));
}

/* Slots whose memory was given back; the one that was freed last is used next. */
static void claim_clean_locked(struct stacks *stacks, struct stack_cache *cache, uint32_t tier,
                               uint32_t most)
{
    struct stack_tier *of = &stacks->tiers[tier];
    const uint32_t count = least(of->free_count, most);
    of->clean = of->free_count -= count;
    memcpy(cache->bare[tier], &of->free[of->free_count], count * sizeof *of->free);
    cache->bare_count[tier] = count;
}

static bool usable_locked(struct stacks *stacks, uint32_t tier)
{
    const struct stack_tier *of = &stacks->tiers[tier];
    return load_relaxed(&of->used) < of->committed || commit_locked(stacks, tier); /* under lock */
}

/* Slots that were never used, and have no guard; the lowest is used next. */
static int claim_new_locked(struct stacks *stacks, struct stack_cache *cache, uint32_t tier,
                            uint32_t most)
{
    struct stack_tier *of = &stacks->tiers[tier];
    if (load_relaxed(&of->start) == NULL) { /* written under the lock */
        if (stacks->memory->has_shadow_stack()) {
            return SKUA_E_SHADOW_STACK;
        }
        if (!reserve_locked(stacks, tier)) {
            return SKUA_E_NO_MEMORY;
        }
    }
    if (!usable_locked(stacks, tier)) {
        return SKUA_E_NO_MEMORY;
    }
    const uint32_t used = load_relaxed(&of->used); /* written under the lock */
    const uint32_t count = least(of->committed - used, most);
    for (uint32_t i = 0; i < count; i++) {
        cache->bare[tier][i] = used + count - 1 - i;
    }
    cache->bare_count[tier] = count;
    store_release(&of->used, used + count); /* MO-stacks: that they are usable */
    if (load_relaxed(&stacks->guard) == STACK_GUARD_UNKNOWN) {
        store_relaxed(&stacks->guard, STACK_GUARD_PAGE); /* until that is refused */
    }
    return 0;
}

/* How much memory stacks may hold. */
static void count_bytes_locked(struct stacks *stacks)
{
    uint64_t dirty = 0;
    uint64_t held = 0;
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        const struct stack_tier *of = &stacks->tiers[tier];
        dirty += (of->free_count - of->clean) * sizes[tier];
        held += (load_relaxed(&of->used) - of->free_count) * sizes[tier]; /* under the lock */
    }
    store_relaxed(&stacks->dirty, dirty); /* a hint */
    store_relaxed(&stacks->held, held);   /* likewise */
}

/* ---- making stacks of the slots in a cache, without the lock ---- */

/* The second best guard: what there is of them is counted under the lock. */
static bool protect(struct stacks *stacks, char *slot)
{
    mutex_lock(&stacks->lock);
    const bool is_tried = load_relaxed(&stacks->guard) != STACK_GUARD_CANARY;
    const bool works =
        is_tried && stacks->mappings > 0 && stacks->memory->protect(slot, guard_size(stacks));
    stacks->mappings -= works;
    store_relaxed(&stacks->guard, works ? STACK_GUARD_MAPPING : STACK_GUARD_CANARY);
    mutex_unlock(&stacks->lock);
    return works;
}

/* Guards a slot, if it can be. What has failed once is not tried again, but for those who are at it
 * just now. */
static bool guard(struct stacks *stacks, char *slot)
{
    switch (load_relaxed(&stacks->guard)) { /* only gets weaker; `protect` looks again */
    case STACK_GUARD_CANARY:
        return false;
    case STACK_GUARD_PAGE:
        return stacks->memory->guard(slot, guard_size(stacks)) || protect(stacks, slot);
    default:
        return protect(stacks, slot);
    }
}

/* Guards the slots of a cache, which are new. */
static void guard_bare(struct stacks *stacks, struct stack_cache *cache, uint32_t tier)
{
    for (uint32_t i = cache->bare_count[tier]; i > 0; i--) {
        uint32_t *slot = &cache->bare[tier][i - 1];
        char *place = place_at(stacks, tier, *slot);
        valgrind_know_stack(place + guard_size(stacks), place + stride_of(stacks, tier));
        *slot |= guard(stacks, place) ? 0 : UNGUARDED;
    }
}

/* Makes a stack of one of the slots, whose memory is all zeros. */
static void make(const struct stacks *stacks, struct stack_cache *cache, uint32_t tier)
{
    const uint32_t bare = cache->bare[tier][--cache->bare_count[tier]];
    const uint32_t slot = bare & ~UNGUARDED;
    struct stack *stack = record_at(stacks, tier, slot);
    stack->low = place_at(stacks, tier, slot) + guard_size(stacks);
    stack->tier = tier;
    stack->has_guard = slot == bare;
    if (!stack->has_guard) {
        paint_canary(stack);
    }
    cache->stacks[tier][cache->count[tier]++] = stack;
}

/* ---- from and to caches ---- */

/* Fills half of a cache with stacks that were used. The cache has them in the same order: the one
 * that was released last is used next. */
static void reuse_locked(struct stacks *stacks, struct stack_cache *cache, uint32_t tier,
                         uint32_t most)
{
    struct stack_tier *of = &stacks->tiers[tier];
    const uint32_t count = least(of->free_count - of->clean, most);
    for (uint32_t i = count; i > 0; i--) {
        const uint32_t slot = of->free[--of->free_count] & ~UNGUARDED;
        cache->stacks[tier][i - 1] = record_at(stacks, tier, slot);
    }
    cache->count[tier] = count;
}

/* Stacks that were used come first: they have memory. *is_new: the cache got new slots. */
static int refill_locked(struct stacks *stacks, struct stack_cache *cache, uint32_t tier,
                         bool *is_new)
{
    struct stack_tier *of = &stacks->tiers[tier];
    const uint64_t room = room_locked(stacks);
    int error = 0;
    if (room > 0 && of->free_count > of->clean) {
        reuse_locked(stacks, cache, tier, least(room, half_of(cache)));
    } else if (cache->bare_count[tier] > 0) {
        return 0;
    } else if (room == 0) {
        return SKUA_E_STACK_LIMIT;
    } else if (of->free_count > 0) {
        claim_clean_locked(stacks, cache, tier, least(room, bare_locked(of, cache)));
    } else {
        error = claim_new_locked(stacks, cache, tier, least(room, bare_locked(of, cache)));
        *is_new = error == 0;
    }
    count_bytes_locked(stacks);
    return error;
}

int stacks_refill(struct stacks *stacks, struct stack_cache *cache, uint32_t tier)
{
    if (cache->bare_count[tier] == 0 || stacks_free_bytes(stacks) > 0) {
        bool is_new = false;
        mutex_lock(&stacks->lock);
        const int error = refill_locked(stacks, cache, tier, &is_new);
        mutex_unlock(&stacks->lock);
        if (error != 0) {
            return error;
        }
        if (is_new) {
            guard_bare(stacks, cache, tier);
        }
    }
    if (cache->count[tier] == 0) {
        make(stacks, cache, tier);
    }
    return 0;
}

/* Puts the stacks that were released first back. */
static void put_back(struct stacks *stacks, struct stack_cache *cache, uint32_t tier,
                     uint32_t count)
{
    struct stack_tier *of = &stacks->tiers[tier];
    mutex_lock(&stacks->lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct stack *stack = cache->stacks[tier][i];
        of->free[of->free_count++] = number_of(stacks, stack) | (stack->has_guard ? 0 : UNGUARDED);
    }
    count_bytes_locked(stacks);
    mutex_unlock(&stacks->lock);
    cache->count[tier] -= count;
    memmove(&cache->stacks[tier][0], &cache->stacks[tier][count],
            cache->count[tier] * sizeof(struct stack *));
}

void stacks_spill(struct stacks *stacks, struct stack_cache *cache, uint32_t tier)
{
    put_back(stacks, cache, tier, cache->count[tier] - cache->max / 2);
}

/* The same with slots that have no memory, which come before those that have. */
static void put_back_bare(struct stacks *stacks, struct stack_cache *cache, uint32_t tier)
{
    struct stack_tier *of = &stacks->tiers[tier];
    mutex_lock(&stacks->lock);
    while (cache->bare_count[tier] > 0) {
        of->free[of->free_count++] = of->free[of->clean];
        of->free[of->clean++] = cache->bare[tier][--cache->bare_count[tier]];
    }
    count_bytes_locked(stacks);
    mutex_unlock(&stacks->lock);
}

void stacks_flush(struct stacks *stacks, struct stack_cache *cache)
{
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        if (cache->bare_count[tier] > 0) {
            put_back_bare(stacks, cache, tier);
        }
        if (cache->count[tier] > 0) {
            put_back(stacks, cache, tier, cache->count[tier]);
        }
    }
}

/* ---- memory ---- */

uint64_t stacks_free_bytes(const struct stacks *stacks)
{
    return load_relaxed(&stacks->dirty); /* a hint */
}

uint64_t stacks_held_bytes(const struct stacks *stacks)
{
    return load_relaxed(&stacks->held); /* a hint */
}

/* Free slots keep their places, so one by one is enough, and the lock is never held for long. */
static bool trim_one(struct stacks *stacks, uint32_t tier, size_t *bytes)
{
    struct stack_tier *of = &stacks->tiers[tier];
    mutex_lock(&stacks->lock);
    const bool found = of->clean < of->free_count;
    if (found) {
        const uint32_t slot = of->free[of->clean++] & ~UNGUARDED;
        char *start = place_at(stacks, tier, slot) + guard_size(stacks);
        *bytes += stacks->memory->discard(start, sizes[tier]);
        count_bytes_locked(stacks);
    }
    mutex_unlock(&stacks->lock);
    return found;
}

bool stacks_trim(struct stacks *stacks, uint32_t most, size_t *bytes)
{
    *bytes = 0;
    if (IS_SANITIZED) {
        return false; /* the record is needed to forget its fiber */
    }
    for (uint32_t tier = 0; tier < STACK_TIERS; tier++) {
        for (; trim_one(stacks, tier, bytes); most--) {
            if (most <= 1) {
                return true;
            }
        }
    }
    return false;
}

size_t stacks_trim_below(const struct stacks *stacks, const struct stack *stack, const void *sp)
{
    const size_t unused = (size_t)((const char *)sp - RED_ZONE - stack->low) & ~(stacks->page - 1);
    const size_t kept = stack->has_guard ? 0 : stacks->page; /* the canary */
    return unused > kept ? stacks->memory->discard(stack->low + kept, unused - kept) : 0;
}

size_t stacks_used(const struct stack *stack)
{
    const char *low = stack->low;
    const char *top = (const char *)stack;
    uint64_t word = 0;
    if (IS_SANITIZED) {
        return 0; /* they know of the frames */
    }
    for (low += stack->has_guard ? 0 : CANARY_WORDS * sizeof word; low < top; low += sizeof word) {
        memcpy(&word, low, sizeof word);
        if (word != 0) {
            break;
        }
    }
    return (size_t)(top - low);
}

/* Its coroutine begins anew: where it was is wiped, too. */
size_t stacks_wipe(struct stack *stack)
{
    const size_t used = stacks_used(stack);
    if (!IS_SANITIZED) {
        memset((char *)stack - used, 0, used);
        stack->peer = NULL;
    }
    return used;
}

/* ---- whose stack ---- */

bool stacks_next_owner(const struct stacks *stacks, struct stack_place *at, uint64_t *owner)
{
    while (at->tier < STACK_TIERS &&
           at->slot >= load_acquire(&stacks->tiers[at->tier].used)) { /* MO-stacks */
        at->tier++;
        at->slot = 0;
    }
    if (at->tier == STACK_TIERS) {
        return false;
    }
    *owner = load_relaxed(&record_at(stacks, at->tier, at->slot)->owner); /* a number */
    at->slot++;
    return true;
}
