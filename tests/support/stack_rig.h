/* SPDX-License-Identifier: MIT */
/* Stacks of tasks without tasks, from a system that refuses what a test wants it to. */
#ifndef SKUA_TESTS_STACK_RIG_H
#define SKUA_TESTS_STACK_RIG_H

#include "task/stacks.h"

#define STACK_RIG_CACHES 2
#define STACK_RIG_CANARY 256 /* bytes of it */

/* What stacks ask the system for. */
enum stack_request { RESERVE, COMMIT, GUARD, PROTECT, DISCARD, STACK_REQUESTS };

struct stack_rig {
    struct stacks stacks;
    struct stack_cache caches[STACK_RIG_CACHES];
    uint32_t made[STACK_REQUESTS];
    uint32_t refused[STACK_REQUESTS]; /* the request with this number; 0: none */
    bool refuses[STACK_REQUESTS];     /* all */
    void (*before_guard)(void);       /* called once, before a guard is granted or refused */
    size_t reserve_max;
    size_t reserved; /* and not unreserved */
    uint32_t mappings;
    bool has_shadow_stack;
};

extern struct stack_rig stack_rig;

/* Closed when the test ends; then nothing may be lost. */
void stack_rig_open(uint32_t limit);

/* A stack from one of the caches, and back. */
struct stack *take_stack(uint32_t cache, size_t size);
void give_stack(uint32_t cache, struct stack *stack);
void give_stacks(struct stack *const *taken, uint32_t count);

/* Why there is no stack. */
int take_stack_error(size_t size);

/* Writes all over a stack, as a task would. */
void fill_stack(struct stack *stack);

#endif
