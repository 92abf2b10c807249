/* SPDX-License-Identifier: MIT */
#include "sched/stack_use.h"

#include <stdalign.h>
#include <stdio.h>

#include "base/mutex.h"

void stack_use_init(struct scheduler *sched)
{
    sched->stack_uses.first = NULL;
    mutex_init(&sched->stack_uses.lock);
}

static void forget(void *arg, const struct stack_use *use)
{
    (void)arg;
    (void)use;
}

void stack_use_deinit(struct scheduler *sched)
{
    stack_use_tell(sched, forget, NULL);
    mutex_deinit(&sched->stack_uses.lock);
}

/* That of the type; null: there is none. */
static struct stack_use *find_locked(const struct scheduler *sched, const skua_process_type *type)
{
    struct stack_use *use = sched->stack_uses.first;
    while (use != NULL && use->type != type) {
        use = use->next;
    }
    return use;
}

/* The same, made if there is none; null: no memory. */
static struct stack_use *use_of_locked(struct scheduler *sched, const skua_process_type *type,
                                       const struct stack *stack)
{
    struct stack_use *use = find_locked(sched, type);
    if (use != NULL) {
        return use;
    }
    use = allocator_alloc_zeroed(&sched->allocator, sizeof *use, alignof(struct stack_use));
    if (use != NULL) {
        use->type = type;
        use->size = stacks_size(stack->tier);
        (void)snprintf(use->name, sizeof use->name, "%s", type->name);
        use->next = sched->stack_uses.first;
        sched->stack_uses.first = use;
    }
    return use;
}

void stack_use_note(struct scheduler *sched, const skua_process_type *type, struct stack *stack)
{
    const size_t used = stacks_wipe(stack);
    mutex_lock(&sched->stack_uses.lock);
    struct stack_use *use = use_of_locked(sched, type, stack);
    if (use != NULL) {
        use->deepest = used > use->deepest ? used : use->deepest;
        use->tasks++;
    }
    mutex_unlock(&sched->stack_uses.lock);
}

size_t stack_use_deepest(struct scheduler *sched, const skua_process_type *type,
                         const struct stack *stack)
{
    const size_t used = stack != NULL ? stacks_used(stack) : 0;
    mutex_lock(&sched->stack_uses.lock);
    const struct stack_use *use = find_locked(sched, type);
    const size_t deepest = use != NULL && use->deepest > used ? use->deepest : used;
    mutex_unlock(&sched->stack_uses.lock);
    return deepest;
}

void stack_use_tell(struct scheduler *sched, void (*function)(void *arg, const struct stack_use *),
                    void *arg)
{
    mutex_lock(&sched->stack_uses.lock);
    while (sched->stack_uses.first != NULL) {
        struct stack_use *use = sched->stack_uses.first;
        sched->stack_uses.first = use->next;
        function(arg, use);
        allocator_free(&sched->allocator, use, sizeof *use, alignof(struct stack_use));
    }
    mutex_unlock(&sched->stack_uses.lock);
}
