/* SPDX-License-Identifier: MIT */
#include "deep_task.h"

#include "runtime/runtime.h"
#include "world.h"

#define FRAME 512

/* Not inline, not a loop: each call has a frame, and writes all of it. */
/* NOLINTNEXTLINE(misc-no-recursion) */
__attribute__((noinline)) void use_stack(size_t size)
{
    volatile char frame[FRAME];
    for (size_t i = 0; i < FRAME; i++) {
        frame[i] = (char)size;
    }
    if (size > FRAME) {
        use_stack(size - FRAME);
    }
    frame[0] = frame[1];
}

static struct stack_memory poor;

bool refuse_to_stacks(void *start, size_t size)
{
    (void)start;
    (void)size;
    return false;
}

void deny_guard_pages(void)
{
    struct scheduler *sched = &world_runtime()->sched;
    poor = stack_memory_of_system;
    poor.guard = refuse_to_stacks;
    sched->stacks.memory = &poor;
}

static bool claim(void)
{
    return true;
}

void claim_shadow_stacks(void)
{
    deny_guard_pages();
    poor.has_shadow_stack = claim;
}

void deny_guards(void)
{
    deny_guard_pages();
    poor.protect = refuse_to_stacks;
}
