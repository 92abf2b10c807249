/* SPDX-License-Identifier: MIT */
/* Coroutines: several stacks on one thread, switched by hand. */
#ifndef SKUA_MODEL_FIBER_H
#define SKUA_MODEL_FIBER_H

#include <setjmp.h>
#include <stddef.h>

typedef void fiber_fn(void *arg);

struct fiber {
    jmp_buf here;  /* where it was left */
    jmp_buf start; /* its first frame, which never returns */
    char *stack;   /* null: the program's own */
    size_t stack_size;
    fiber_fn *run;
    void *arg;
};

/* Makes a fiber of the caller, who runs on the program's own stack. */
void fiber_adopt(struct fiber *fiber);

/* Makes a fiber that is ready to be started from `creator`; aborts if there is no memory. `run`
 * must not return. */
void fiber_create(struct fiber *fiber, struct fiber *creator, fiber_fn *run, void *arg);
void fiber_destroy(struct fiber *fiber);

/* Leaves `from` for `to` and returns when somebody switches back to `from`. */
void fiber_switch(struct fiber *from, struct fiber *to);

/* The same, but `to` begins anew, whatever it was doing. */
void fiber_start(struct fiber *from, struct fiber *to);

#endif
