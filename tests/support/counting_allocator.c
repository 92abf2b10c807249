/* SPDX-License-Identifier: MIT */
#include "counting_allocator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lies just before each block. */
struct block_header {
    uint64_t magic;
    size_t size;
    size_t alignment;
    struct counting_allocator *owner;
};

#define MAGIC_LIVE   UINT64_C(0x6c69766520626c6b)
#define GARBAGE_NEW  0xa5
#define GARBAGE_FREE 0x5a
/* Of larger blocks only the beginning is filled: touching 2 MiB takes longer than most tests. */
#define GARBAGE_MAX ((size_t)1 << 17)

void counting_allocator_init(struct counting_allocator *memory)
{
    memory->allocator = (struct allocator){.function = counting_allocate, .arg = memory};
    store_relaxed(&memory->live_blocks, 0);
    store_relaxed(&memory->live_bytes, 0);
    store_relaxed(&memory->attempts, 0);
    store_relaxed(&memory->faults, 0);
    counting_allocator_fail_never(memory);
}

static void fail_between(struct counting_allocator *memory, uint64_t first, uint64_t last)
{
    store_relaxed(&memory->fail_first, first);
    store_relaxed(&memory->fail_last, last);
}

void counting_allocator_fail_once(struct counting_allocator *memory, uint64_t n)
{
    const uint64_t attempt = load_relaxed(&memory->attempts) + n;
    fail_between(memory, attempt, attempt);
}

void counting_allocator_fail_from(struct counting_allocator *memory, uint64_t n)
{
    fail_between(memory, load_relaxed(&memory->attempts) + n, UINT64_MAX);
}

void counting_allocator_fail_never(struct counting_allocator *memory)
{
    fail_between(memory, UINT64_MAX, 0);
}

static void report(struct counting_allocator *memory, const char *what)
{
    (void)fetch_add_relaxed(&memory->faults, 1);
    (void)fprintf(stderr, "counting_allocator: %s\n", what);
}

static void expect(struct counting_allocator *memory, bool holds, const char *otherwise)
{
    if (!holds) {
        report(memory, otherwise);
    }
}

static size_t real_alignment(size_t alignment)
{
    return alignment < sizeof(struct block_header) ? sizeof(struct block_header) : alignment;
}

static struct block_header *header_of(void *block)
{
    return (struct block_header *)block - 1;
}

static void fill(void *block, int garbage, size_t size)
{
    memset(block, garbage, size < GARBAGE_MAX ? size : GARBAGE_MAX);
}

static bool may_allocate(struct counting_allocator *memory)
{
    const uint64_t attempt = fetch_add_relaxed(&memory->attempts, 1) + 1;
    return attempt < load_relaxed(&memory->fail_first) ||
           attempt > load_relaxed(&memory->fail_last);
}

static void *take(struct counting_allocator *memory, size_t size, size_t alignment)
{
    /* A block begins one alignment after what the C library gave; the header is in between. */
    const size_t offset = real_alignment(alignment);
    void *base;
    if (!may_allocate(memory) || posix_memalign(&base, offset, offset + size) != 0) {
        return NULL;
    }
    void *block = (char *)base + offset;
    fill(block, GARBAGE_NEW, size);
    *header_of(block) = (struct block_header){
        .magic = MAGIC_LIVE, .size = size, .alignment = alignment, .owner = memory};
    (void)fetch_add_relaxed(&memory->live_blocks, 1);
    (void)fetch_add_relaxed(&memory->live_bytes, size);
    return block;
}

static void give(void *block)
{
    struct block_header *header = header_of(block);
    struct counting_allocator *memory = header->owner;
    void *base = (char *)block - real_alignment(header->alignment);
    (void)fetch_sub_relaxed(&memory->live_blocks, 1);
    (void)fetch_sub_relaxed(&memory->live_bytes, header->size);
    fill(block, GARBAGE_FREE, header->size);
    *header = (struct block_header){0};
    free(base);
}

static void check_block(struct counting_allocator *memory, void *block, size_t size,
                        size_t alignment)
{
    const struct block_header *header = header_of(block);
    if (header->magic != MAGIC_LIVE) {
        /* Its real size is unknown, so there is no way to go on. */
        (void)fprintf(stderr, "counting_allocator: not a live block, or written in front of\n");
        abort();
    }
    expect(memory, header->owner == memory, "a block of another allocator");
    expect(memory, header->size == size, "not the size the block was allocated with");
    expect(memory, header->alignment == alignment, "not the alignment it was allocated with");
}

static void check_request(struct counting_allocator *memory, const void *pointer, size_t old_size,
                          size_t new_size, size_t alignment)
{
    expect(memory, pointer != NULL || old_size == 0, "no block, but an old size");
    expect(memory, pointer != NULL || new_size != 0, "no block and no size");
    expect(memory, alignment != 0 && (alignment & (alignment - 1)) == 0,
           "the alignment is not a power of two");
}

void *counting_allocate(void *arg, void *pointer, size_t old_size, size_t new_size,
                        size_t alignment)
{
    struct counting_allocator *memory = arg;
    check_request(memory, pointer, old_size, new_size, alignment);
    if (pointer != NULL) {
        check_block(memory, pointer, old_size, alignment);
    }
    void *fresh = new_size > 0 ? take(memory, new_size, alignment) : NULL;
    const bool replaces = pointer != NULL && fresh != NULL;
    if (replaces) {
        const size_t kept = header_of(pointer)->size;
        memcpy(fresh, pointer, kept < new_size ? kept : new_size);
    }
    if (replaces || (pointer != NULL && new_size == 0)) {
        give(pointer);
    }
    return fresh;
}

uint64_t counting_allocator_live_blocks(struct counting_allocator *memory)
{
    return load_relaxed(&memory->live_blocks);
}

uint64_t counting_allocator_live_bytes(struct counting_allocator *memory)
{
    return load_relaxed(&memory->live_bytes);
}

uint64_t counting_allocator_attempts(struct counting_allocator *memory)
{
    return load_relaxed(&memory->attempts);
}

uint64_t counting_allocator_faults(struct counting_allocator *memory)
{
    return load_relaxed(&memory->faults);
}

bool counting_allocator_is_clean(struct counting_allocator *memory)
{
    const uint64_t blocks = counting_allocator_live_blocks(memory);
    const uint64_t bytes = counting_allocator_live_bytes(memory);
    const uint64_t faults = counting_allocator_faults(memory);
    if (blocks == 0 && bytes == 0 && faults == 0) {
        return true;
    }
    (void)fprintf(stderr,
                  "counting_allocator: %" PRIu64 " blocks of %" PRIu64 " bytes live, %" PRIu64
                  " faulty calls\n",
                  blocks, bytes, faults);
    return false;
}
