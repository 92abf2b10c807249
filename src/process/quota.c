/* SPDX-License-Identifier: MIT */
#include "process/quota.h"

#include <stdalign.h>

#include "base/assert.h"
#include "base/mutex.h"

/* ---- the table ---- */

static uint32_t chunk_length(uint32_t chunk)
{
    return (uint32_t)QUOTA_CHUNK << chunk;
}

/* Which chunk a number lies in; *place is its place there. */
static uint32_t chunk_of(uint32_t number, uint32_t *place)
{
    uint32_t chunk = 0;
    *place = number - 1;
    while (*place >= chunk_length(chunk)) {
        *place -= chunk_length(chunk);
        chunk++;
    }
    return chunk;
}

void quotas_init(struct quotas *quotas, const struct allocator *allocator)
{
    *quotas = (struct quotas){.allocator = allocator};
    mutex_init(&quotas->lock);
}

void quotas_deinit(struct quotas *quotas)
{
    for (uint32_t i = 0; i < QUOTA_CHUNKS; i++) {
        struct quota *chunk = load_relaxed(&quotas->chunks[i]); /* nobody else is left */
        if (chunk != NULL) {
            allocator_free(quotas->allocator, chunk, chunk_length(i) * sizeof *chunk,
                           alignof(struct quota));
        }
    }
    mutex_deinit(&quotas->lock);
}

struct quota *quotas_at(struct quotas *quotas, uint32_t number)
{
    uint32_t place;
    const uint32_t chunk = chunk_of(number, &place);
    struct quota *first = load_acquire(&quotas->chunks[chunk]); /* MO-quota */
    return &first[place];
}

/* A quota that was never used; null without memory. */
static struct quota *make_more_locked(struct quotas *quotas)
{
    uint32_t place;
    if (quotas->made == QUOTAS_MAX) {
        return NULL;
    }
    const uint32_t number = quotas->made + 1;
    const uint32_t chunk = chunk_of(number, &place);
    if (load_relaxed(&quotas->chunks[chunk]) == NULL) { /* under lock */
        void *memory = allocator_alloc_zeroed(
            quotas->allocator, chunk_length(chunk) * sizeof(struct quota), alignof(struct quota));
        if (memory == NULL) {
            return NULL;
        }
        store_release(&quotas->chunks[chunk], memory); /* MO-quota */
    }
    quotas->made = number;
    struct quota *quota = quotas_at(quotas, number);
    quota->number = number;
    return quota;
}

static struct quota *take_free(struct quotas *quotas)
{
    mutex_lock(&quotas->lock);
    struct quota *quota = quotas->free;
    if (quota != NULL) {
        quotas->free = quota->parent;
    } else {
        quota = make_more_locked(quotas);
    }
    mutex_unlock(&quotas->lock);
    return quota;
}

static void put_free(struct quotas *quotas, struct quota *quota)
{
    mutex_lock(&quotas->lock);
    quota->parent = quotas->free;
    quotas->free = quota;
    mutex_unlock(&quotas->lock);
}

/* ---- lifetime ---- */

struct quota *quota_make_any(struct quotas *quotas, struct quota *parent,
                             const uint64_t limit[QUOTA_KINDS])
{
    struct quota *quota = take_free(quotas);
    if (quota == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < QUOTA_KINDS; i++) {
        SKUA_ASSERT(load_relaxed(&quota->used[i]) == 0); /* INV-45 */
        quota->limit[i] = limit[i];
    }
    quota->meters = limit[QUOTA_MESSAGES] != 0 || (parent != NULL && parent->meters);
    quota->parent = parent;
    if (parent != NULL) {
        quota_hold_any(parent);
    }
    store_release(&quota->holders, 1); /* MO-quota */
    return quota;
}

bool quota_pin_any(struct quota *quota)
{
    uint32_t holders = load_relaxed(&quota->holders); /* re-checked */
    while (holders != 0) {
        if (cas_acq_rel_relaxed(&quota->holders, &holders, holders + 1)) { /* MO-quota */
            return true;
        }
    }
    return false;
}

void quota_let_go_any(struct quotas *quotas, struct quota *quota)
{
    while (quota != NULL && fetch_sub_acq_rel(&quota->holders, 1) == 1) { /* MO-quota */
        struct quota *parent = quota->parent;
        put_free(quotas, quota);
        quota = parent;
    }
}

/* ---- counting ---- */

static bool charge_one(struct quota *quota, enum quota_kind kind, uint64_t amount)
{
    uint64_t used = load_relaxed(&quota->used[kind]); /* re-checked */
    do {
        if (amount > quota->limit[kind] || used > quota->limit[kind] - amount) {
            return false;
        }
    } while (!cas_acq_rel_relaxed(&quota->used[kind], &used, used + amount)); /* counter */
    return true;
}

static void refund_until(struct quota *quota, const struct quota *end, enum quota_kind kind,
                         uint64_t amount)
{
    for (; quota != end; quota = quota->parent) {
        if (quota->limit[kind] != 0) {
            const uint64_t used = fetch_sub_relaxed(&quota->used[kind], amount); /* counter */
            SKUA_ASSERT(used >= amount);                                         /* INV-45 */
            (void)used;
        }
    }
}

bool quota_charge_any(struct quota *quota, enum quota_kind kind, uint64_t amount)
{
    for (struct quota *level = quota; level != NULL; level = level->parent) {
        if (level->limit[kind] != 0 && !charge_one(level, kind, amount)) {
            refund_until(quota, level, kind, amount);
            return false;
        }
    }
    return true;
}

void quota_refund_any(struct quota *quota, enum quota_kind kind, uint64_t amount)
{
    refund_until(quota, NULL, kind, amount);
}
