/* SPDX-License-Identifier: MIT */
/* A stack is made by makecontext; from then on setjmp and longjmp switch, because swapcontext would
 * cost a system call each time. The checked longjmp of hardened C libraries refuses to change the
 * stack, so this file asks for the plain one. */
#undef _FORTIFY_SOURCE

#include "fiber.h"

#include <stdlib.h>
#include <ucontext.h>

#define STACK_SIZE ((size_t)256 << 10)

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HAS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* Sanitizers keep something for every stack; they are told before and after each switch. Inline,
 * because the thread sanitizer would count the return from here for the fiber that is switched to.
 */
__attribute__((always_inline)) static inline void announce_leaving(struct fiber *from,
                                                                   struct fiber *to)
{
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&from->sanitizer_stack, to->stack, to->stack_size);
#endif
#ifdef HAS_TSAN
    __tsan_switch_to_fiber(to->sanitizer_fiber, 0);
#endif
    (void)from;
    (void)to;
}

static void announce_arrival(struct fiber *fiber)
{
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(fiber->sanitizer_stack, NULL, NULL);
#endif
    (void)fiber;
}

void fiber_adopt(struct fiber *fiber)
{
    *fiber = (struct fiber){0};
#ifdef HAS_TSAN
    fiber->sanitizer_fiber = __tsan_get_current_fiber();
#endif
}

/* makecontext hands over integers only. */
static struct fiber *created;
static struct fiber *created_by;

static void first_frame(void)
{
    struct fiber *const self = created;
#ifdef HAS_ASAN
    const void *stack; /* the creator's, which it cannot ask for itself */
    __sanitizer_finish_switch_fiber(NULL, &stack, &created_by->stack_size);
    created_by->stack = (char *)(uintptr_t)stack;
#endif
    if (setjmp(self->start) == 0) {
        announce_leaving(self, created_by);
        longjmp(created_by->here, 1);
    }
    announce_arrival(self);
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
#ifdef HAS_TSAN
    fiber->sanitizer_fiber = __tsan_create_fiber(0);
#endif
    context.uc_stack.ss_sp = fiber->stack;
    context.uc_stack.ss_size = fiber->stack_size;
    makecontext(&context, first_frame, 0);
    created = fiber;
    created_by = creator;
    if (setjmp(creator->here) == 0) {
        announce_leaving(creator, fiber);
        (void)setcontext(&context);
    }
    announce_arrival(creator);
}

void fiber_destroy(struct fiber *fiber)
{
#ifdef HAS_TSAN
    __tsan_destroy_fiber(fiber->sanitizer_fiber);
#endif
    free(fiber->stack);
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
    if (setjmp(from->here) == 0) {
        announce_leaving(from, to);
        longjmp(to->here, 1);
    }
    announce_arrival(from);
}

void fiber_start(struct fiber *from, struct fiber *to)
{
#ifdef HAS_ASAN
    __asan_unpoison_memory_region(to->stack, to->stack_size); /* frames that were given up */
#endif
    if (setjmp(from->here) == 0) {
        announce_leaving(from, to);
        longjmp(to->start, 1);
    }
    announce_arrival(from);
}
