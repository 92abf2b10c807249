/* SPDX-License-Identifier: MIT */
#include "sched/own_memory.h"

#include <stdalign.h>

#include "process/annex.h"
#include "sched/signal.h"

/* Stands before the memory that the process got. */
struct own_block {
    alignas(max_align_t) struct own_block *next;
    struct own_block *previous;
    size_t size; /* as the process asked for */
    skua_pid owner;
};

static void add_block(struct annex *annex, struct own_block *block)
{
    block->next = annex->own;
    if (annex->own != NULL) {
        annex->own->previous = block;
    }
    annex->own = block;
    annex->own_bytes += block->size;
}

int own_memory_alloc(skua_context *ctx, size_t size, void **pointer)
{
    const size_t limit = process_type(ctx->process)->own_limit;
    struct annex *annex = signal_annex(ctx->sched, ctx->worker, ctx->process);
    if (annex == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    if (limit != 0 && (size > limit || annex->own_bytes > limit - size)) {
        return SKUA_E_OWN_LIMIT;
    }
    if (size > PTRDIFF_MAX - sizeof(struct own_block)) {
        return SKUA_E_NO_MEMORY;
    }
    struct own_block *block = allocator_alloc_zeroed(&ctx->sched->allocator, sizeof *block + size,
                                                     alignof(struct own_block));
    if (block == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    block->size = size;
    block->owner = ctx->self;
    add_block(annex, block);
    *pointer = block + 1;
    return 0;
}

static void free_block(struct scheduler *sched, struct own_block *block)
{
    allocator_free(&sched->allocator, block, sizeof *block + block->size,
                   alignof(struct own_block));
}

int own_memory_free(skua_context *ctx, void *pointer)
{
    struct own_block *block = (struct own_block *)pointer - 1;
    struct annex *annex = annex_of(&ctx->sched->events, ctx->process);
    if (annex == NULL || !skua_pid_equal(block->owner, ctx->self)) {
        return SKUA_E_INVALID;
    }
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else {
        annex->own = block->next;
    }
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    annex->own_bytes -= block->size;
    block->owner = (skua_pid){0}; /* so that freeing it twice is noticed, as far as it can be */
    free_block(ctx->sched, block);
    return 0;
}

bool own_memory_free_first(struct scheduler *sched, struct annex *annex)
{
    if (annex == NULL || annex->own == NULL) {
        return false;
    }
    struct own_block *block = annex->own;
    annex->own = block->next;
    free_block(sched, block);
    return true;
}

uint32_t own_memory_count(const struct annex *annex, uint32_t most)
{
    uint32_t count = 0;
    for (const struct own_block *block = annex->own; block != NULL && count < most; count++) {
        block = block->next;
    }
    return count;
}

void own_memory_free_all(struct scheduler *sched, struct process *process)
{
    struct annex *annex = annex_of(&sched->events, process);
    while (own_memory_free_first(sched, annex)) {
    }
}
