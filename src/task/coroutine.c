/* SPDX-License-Identifier: MIT */
#include "task/coroutine.h"

#include <execinfo.h>
#include <string.h>

/* What a stack begins with, as skua_switch_ would have left it. */
struct first_frame {
#if defined(__x86_64__)
    void (*start)(void);
    struct stack *stack; /* in rbx */
    coroutine_fn *run;   /* in rbp */
    void *padding;
    void *nothing[2]; /* which valgrind takes for the address to return to */
#elif defined(__aarch64__)
    struct stack *stack; /* in x19 */
    coroutine_fn *run;   /* in x29 */
    void (*start)(void);
    void *padding;
#endif
};

/* Where a stack begins: calls `loop` with what is in the first frame. Says that nothing called it,
 * so that backtraces end here. */
void coroutine_start_(void);
void coroutine_loop_(struct stack *stack, coroutine_fn *run);

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl coroutine_start_\n"
        ".hidden coroutine_start_\n"
        ".type coroutine_start_, @function\n"
        "coroutine_start_:\n"
        ".cfi_startproc\n"
        ".cfi_undefined rip\n"
        "endbr64\n"
        "pop %rdi\n"
        "pop %rsi\n"
        "xor %ebp, %ebp\n"
        "add $8, %rsp\n"
        "call coroutine_loop_\n"
        "ud2\n"
        ".cfi_endproc\n"
        ".size coroutine_start_, . - coroutine_start_\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl coroutine_start_\n"
        ".hidden coroutine_start_\n"
        ".type coroutine_start_, @function\n"
        "coroutine_start_:\n"
        ".cfi_startproc\n"
        ".cfi_undefined x30\n"
        "hint #36\n"
        "ldp x0, x1, [sp], #32\n"
        "mov x29, xzr\n"
        "bl coroutine_loop_\n"
        "brk #1\n"
        ".cfi_endproc\n"
        ".size coroutine_start_, . - coroutine_start_\n");
#endif

/* Calls backtrace, and tells its unwinder that what called this is the coroutine whose frame is
 * given: the registers are where skua_switch_ has left them. The second is where backtrace returns
 * to. */
int coroutine_unwind_(const void *frame, void **frames, int max);
extern const char coroutine_unwound_[];

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl coroutine_unwind_\n"
        ".hidden coroutine_unwind_\n"
        ".hidden coroutine_unwound_\n"
        ".type coroutine_unwind_, @function\n"
        "coroutine_unwind_:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rbx\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset rbx, 0\n"
        "mov %rdi, %rbx\n"
        "mov %rsi, %rdi\n"
        "mov %edx, %esi\n"
        ".cfi_remember_state\n"
        ".cfi_def_cfa rbx, 24 + 128\n"
        ".cfi_offset rip, -(24 + 128)\n"
        ".cfi_offset rbx, -(16 + 128)\n"
        ".cfi_offset rbp, -(8 + 128)\n"
        "call backtrace@PLT\n"
        ".globl coroutine_unwound_\n"
        "coroutine_unwound_:\n"
        "nop\n"
        ".cfi_restore_state\n"
        "pop %rbx\n"
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_restore rbx\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size coroutine_unwind_, . - coroutine_unwind_\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl coroutine_unwind_\n"
        ".hidden coroutine_unwind_\n"
        ".hidden coroutine_unwound_\n"
        ".type coroutine_unwind_, @function\n"
        "coroutine_unwind_:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "stp x19, x30, [sp, #-16]!\n"
        ".cfi_adjust_cfa_offset 16\n"
        ".cfi_rel_offset x19, 0\n"
        ".cfi_rel_offset x30, 8\n"
        "mov x19, x0\n"
        "mov x0, x1\n"
        "mov w1, w2\n"
        ".cfi_remember_state\n"
        ".cfi_def_cfa x19, 32\n"
        ".cfi_offset x19, -32\n"
        ".cfi_offset x29, -24\n"
        ".cfi_offset x30, -16\n"
        "bl backtrace\n"
        ".globl coroutine_unwound_\n"
        "coroutine_unwound_:\n"
        "nop\n"
        ".cfi_restore_state\n"
        "ldp x19, x30, [sp], #16\n"
        ".cfi_adjust_cfa_offset -16\n"
        ".cfi_restore x19\n"
        ".cfi_restore x30\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size coroutine_unwind_, . - coroutine_unwind_\n");
#endif

/* Leaves out what is not the coroutine's: coroutine_unwind_, and what a sanitizer puts before. */
uint32_t coroutine_backtrace(const struct stack *stack, void **frames, uint32_t max)
{
    const int found = coroutine_unwind_(stack->peer, frames, (int)max);
    for (int i = 0; i < found; i++) {
        if (frames[i] == (const void *)coroutine_unwound_) {
            const uint32_t left = (uint32_t)(found - i - 1);
            memmove(frames, frames + i + 1, left * sizeof *frames);
            return left;
        }
    }
    return 0;
}

void coroutine_begin(struct stack *stack, coroutine_fn *run)
{
    struct first_frame *frame = (struct first_frame *)(void *)stack - 1;
    *frame = (struct first_frame){.start = coroutine_start_, .stack = stack, .run = run};
    stack->peer = frame;
}

/* The compiler must not move anything that sanitizers check across a switch: these functions are
 * not sanitized, and nothing but them switches. */
#define SWITCHES NOINLINE __attribute__((no_sanitize("address", "thread", "undefined")))

#if IS_SANITIZED
SWITCHES void coroutine_enter(struct stack *stack)
{
    fiber_enter(&stack->fiber, stack->low, (size_t)((char *)stack - stack->low) + STACK_RECORD);
    skua_switch_(&stack->peer);
    fiber_is_back(&stack->fiber);
}
#endif

static ALWAYS_INLINE void leave(struct stack *stack)
{
    fiber_leave(&stack->fiber);
    skua_switch_(&stack->peer);
    fiber_is_entered(&stack->fiber);
}

SWITCHES void coroutine_leave(struct stack *stack)
{
    leave(stack);
}

SWITCHES void coroutine_loop_(struct stack *stack, coroutine_fn *run)
{
    fiber_is_entered(&stack->fiber);
    for (;;) {
        run(stack);
        leave(stack);
    }
}
