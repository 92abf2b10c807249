/* SPDX-License-Identifier: MIT */
/* A stack is made by makecontext; from then on setjmp and longjmp switch, because swapcontext would
 * cost a system call each time. The checked longjmp of hardened C libraries refuses to change the
 * stack, so this file asks for the plain one. */
#undef _FORTIFY_SOURCE

#include "fiber.h"

#include <stdlib.h>
#include <ucontext.h>

#define STACK_SIZE ((size_t)256 << 10)

void fiber_adopt(struct fiber *fiber)
{
    *fiber = (struct fiber){0};
}

/* makecontext hands over integers only. */
static struct fiber *created;
static struct fiber *created_by;

static void first_frame(void)
{
    struct fiber *const self = created;
    if (setjmp(self->start) == 0) {
        longjmp(created_by->here, 1);
    }
    self->run(self->arg);
    abort();
}

void fiber_create(struct fiber *fiber, struct fiber *creator, fiber_fn *run, void *arg)
{
    ucontext_t context;
    *fiber = (struct fiber){
        .stack = malloc(STACK_SIZE), .stack_size = STACK_SIZE, .run = run, .arg = arg};
    if (fiber->stack == NULL || getcontext(&context) != 0) {
        abort();
    }
    context.uc_stack.ss_sp = fiber->stack;
    context.uc_stack.ss_size = fiber->stack_size;
    makecontext(&context, first_frame, 0);
    created = fiber;
    created_by = creator;
    if (setjmp(creator->here) == 0) {
        (void)setcontext(&context);
    }
}

void fiber_destroy(struct fiber *fiber)
{
    free(fiber->stack);
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
    if (setjmp(from->here) == 0) {
        longjmp(to->here, 1);
    }
}

void fiber_start(struct fiber *from, struct fiber *to)
{
    if (setjmp(from->here) == 0) {
        longjmp(to->start, 1);
    }
}
