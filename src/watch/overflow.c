/* SPDX-License-Identifier: MIT */
#include "watch/overflow.h"

#include <ucontext.h>

#include "sched/tasks.h"

/* A function may use this much below its stack pointer, or probe it. */
#define BELOW_POINTER ((uintptr_t)64 << 10)

#if defined(__x86_64__)
static uintptr_t stack_pointer(const void *context)
{
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
}

const void *overflow_place(const void *context)
{
    return (const void *)(uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}
#elif defined(__aarch64__)
static uintptr_t stack_pointer(const void *context)
{
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.sp;
}

const void *overflow_place(const void *context)
{
    return (const void *)(uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
}
#endif

/* The task that the worker has entered; null: none. */
static const struct task *entered_task(const struct worker *worker)
{
    struct process *process = worker->context->process;
    if (load_relaxed(&worker->running) == RUNNING_NOTHING || process == NULL || /* this thread's */
        !process_is_task(process_type(process))) {
        return NULL;
    }
    const struct task *task = process->state.of_task.task;
    return task != NULL && task->context.wait.peer != NULL ? task : NULL;
}

/* The address is below the stack, and not below what the function that runs uses. It need not be in
 * the guard: a large frame may lie beyond. Whether that is noticed is luck, unless the program is
 * compiled with -fstack-clash-protection. */
size_t overflow_find(const struct worker *worker, const siginfo_t *info, const void *context)
{
    const struct task *task = entered_task(worker);
    if (task == NULL || info->si_code <= 0) { /* somebody sent it */
        return 0;
    }
    const uintptr_t address = (uintptr_t)info->si_addr;
    const uintptr_t low = (uintptr_t)task->stack.low;
    const uintptr_t pointer = stack_pointer(context);
    const uintptr_t used = pointer < low ? pointer : low;
    return address < low && address + BELOW_POINTER >= used && pointer < low + BELOW_POINTER
               ? stacks_size(task->stack.tier)
               : 0;
}
