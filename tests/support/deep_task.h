/* SPDX-License-Identifier: MIT */
/* Tasks that use a lot of their stacks. */
#ifndef SKUA_TESTS_DEEP_TASK_H
#define SKUA_TESTS_DEEP_TASK_H

#include <skua/skua.h>

/* Uses about `size` bytes of the stack, in small frames, and returns. */
void use_stack(size_t size);

/* Has the current world's runtime, which is created and not started, guard stacks by mappings, or
 * by canaries alone. */
void deny_guard_pages(void);
void deny_guards(void);

/* And have shadow stacks. */
void claim_shadow_stacks(void);

/* What stacks ask of the system (task/stack_memory.h), refused. */
bool refuse_to_stacks(void *start, size_t size);

#endif
