/* SPDX-License-Identifier: MIT */
/* Running a function on a stack of its own: its host enters it, and goes on when it leaves.
 *
 * A stack that has run a function once keeps the frame that it was called from, so that the next
 * function needs nothing but a switch. */
#ifndef SKUA_TASK_COROUTINE_H
#define SKUA_TASK_COROUTINE_H

#include <skua/switch.h>

#include "task/stacks.h"

/* Runs on the stack, over and over: whenever the host has entered a stack whose last run has
 * returned, this is called again. */
typedef void coroutine_fn(struct stack *stack);

/* Prepares a stack that has not begun, or whose memory was given back. */
void coroutine_begin(struct stack *stack, coroutine_fn *run);

/* The host: until the coroutine leaves, or its run returns. Inline, see skua/switch.h. */
#if IS_SANITIZED
void coroutine_enter(struct stack *stack);
#else
static ALWAYS_INLINE void coroutine_enter(struct stack *stack)
{
    skua_switch_(&stack->peer);
}
#endif

/* The coroutine: until the host enters again. */
void coroutine_leave(struct stack *stack);

/* Where a coroutine that has left will go on, and the addresses that its functions return to, the
 * innermost first. Returns how many. For the host, which may enter it. */
NODISCARD uint32_t coroutine_backtrace(const struct stack *stack, void **frames, uint32_t max);

#endif
