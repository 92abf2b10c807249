/* SPDX-License-Identifier: MIT */
#include "sched/own_memory.h"

#include <stdalign.h>

#include "process/annex.h"
#include "process/quota.h"
#include "sched/signal.h"

/* Stands before the memory that the process got. */
struct own_block {
    alignas(max_align_t) struct own_block *next;
    struct own_block *previous;
    size_t size; /* as the process asked for */
    skua_pid owner;
};

static void add_block(struct wing *wing, struct own_block *block)
{
    block->next = wing->own;
    if (wing->own != NULL) {
        wing->own->previous = block;
    }
    wing->own = block;
    wing->own_bytes += block->size;
}

static void refund(const struct wing *wing, size_t size)
{
    if (wing->quota != NULL) {
        quota_refund_any(wing->quota, QUOTA_BYTES, size);
    }
}

int own_memory_alloc(skua_context *ctx, size_t size, void **pointer)
{
    const size_t limit = process_type(ctx->process)->own_limit;
    struct wing *wing = signal_wing(ctx->sched, ctx->worker, ctx->process);
    if (wing == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    if (limit != 0 && (size > limit || wing->own_bytes > limit - size)) {
        return SKUA_E_OWN_LIMIT;
    }
    if (size > PTRDIFF_MAX - sizeof(struct own_block)) {
        return SKUA_E_NO_MEMORY;
    }
    if (wing->quota != NULL && !quota_charge_any(wing->quota, QUOTA_BYTES, size)) {
        return SKUA_E_MEMORY_QUOTA;
    }
    struct own_block *block = allocator_alloc_zeroed(&ctx->sched->allocator, sizeof *block + size,
                                                     alignof(struct own_block));
    if (block == NULL) {
        refund(wing, size);
        return SKUA_E_NO_MEMORY;
    }
    block->size = size;
    block->owner = ctx->self;
    add_block(wing, block);
    *pointer = block + 1;
    return 0;
}

static void free_block(struct scheduler *sched, const struct wing *wing, struct own_block *block)
{
    refund(wing, block->size);
    allocator_free(&sched->allocator, block, sizeof *block + block->size,
                   alignof(struct own_block));
}

int own_memory_free(skua_context *ctx, void *pointer)
{
    struct own_block *block = (struct own_block *)pointer - 1;
    struct wing *wing = annex_wing(&ctx->sched->events, ctx->process);
    if (wing == NULL || !skua_pid_equal(block->owner, ctx->self)) {
        return SKUA_E_INVALID;
    }
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else {
        wing->own = block->next;
    }
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    wing->own_bytes -= block->size;
    block->owner = (skua_pid){0}; /* so that freeing it twice is noticed, as far as it can be */
    free_block(ctx->sched, wing, block);
    return 0;
}

bool own_memory_free_first(struct scheduler *sched, struct wing *wing)
{
    if (wing == NULL || wing->own == NULL) {
        return false;
    }
    struct own_block *block = wing->own;
    wing->own = block->next;
    free_block(sched, wing, block);
    return true;
}

uint32_t own_memory_count(const struct wing *wing, uint32_t most)
{
    uint32_t count = 0;
    for (const struct own_block *block = wing != NULL ? wing->own : NULL;
         block != NULL && count < most; count++) {
        block = block->next;
    }
    return count;
}

void own_memory_free_all(struct scheduler *sched, struct process *process)
{
    struct wing *wing = annex_wing(&sched->events, process);
    while (own_memory_free_first(sched, wing)) {
    }
}
