/* SPDX-License-Identifier: MIT */
/* An allocator for tests: counts what is live, checks that each block is resized and freed with the
 * size and alignment it was allocated with, and can be made to fail.
 *
 *   struct counting_allocator memory;
 *   counting_allocator_init(&memory);
 *   ... pass &memory.allocator inside the library, or to a runtime
 *       {.alloc = counting_allocate, .alloc_arg = &memory} ...
 *   assert_true(counting_allocator_is_clean(&memory));
 *
 * Every function may be called from any thread. The counters are relaxed atomics and no lock is
 * taken, so that a thread sanitizer still sees races that an ordering allocator would hide. New and
 * freed memory is filled with garbage (of large blocks the beginning), and a resized block always
 * moves. */
#ifndef SKUA_TESTS_COUNTING_ALLOCATOR_H
#define SKUA_TESTS_COUNTING_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/allocator.h"
#include "base/atomic.h"

struct counting_allocator {
    struct allocator allocator; /* {counting_allocate, this} */
    /* Read them with the functions below. */
    atomic_u64 live_blocks;
    atomic_u64 live_bytes;
    atomic_u64 attempts;
    atomic_u64 faults;
    atomic_u64 fail_first;
    atomic_u64 fail_last;
};

void counting_allocator_init(struct counting_allocator *memory);

/* The hook itself, a skua_alloc_fn; `arg` is the struct counting_allocator. */
void *counting_allocate(void *arg, void *pointer, size_t old_size, size_t new_size,
                        size_t alignment);

/* ---- making it fail; frees never do ---- */

/* The n-th allocation or growth from now on fails, those after it work again; 1 is the next. */
void counting_allocator_fail_once(struct counting_allocator *memory, uint64_t n);

/* The n-th and all later ones fail. */
void counting_allocator_fail_from(struct counting_allocator *memory, uint64_t n);

void counting_allocator_fail_never(struct counting_allocator *memory);

/* ---- what it has seen ---- */

/* Nothing is live and no call broke the contract of skua_alloc_fn. Says on stderr what is wrong. */
bool counting_allocator_is_clean(struct counting_allocator *memory);

uint64_t counting_allocator_live_blocks(struct counting_allocator *memory);
uint64_t counting_allocator_live_bytes(struct counting_allocator *memory);

/* Allocations and growths so far, failed ones included. */
uint64_t counting_allocator_attempts(struct counting_allocator *memory);

/* Calls that broke the contract; each was reported on stderr. */
uint64_t counting_allocator_faults(struct counting_allocator *memory);

#endif
