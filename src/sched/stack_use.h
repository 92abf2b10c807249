/* SPDX-License-Identifier: MIT */
/* How deep the stacks of tasks have been used, by type: for SKUA_DEBUG=stacks.
 *
 * A stack is all zeros when a task begins, so the lowest word that is not tells how deep the task
 * has been. It is found, and the stack wiped for the next, when the task has returned; so this
 * costs time, and the pages of a stack once more. Tasks that wait keep the memory below them
 * meanwhile, and can be asked. */
#ifndef SKUA_SCHED_STACK_USE_H
#define SKUA_SCHED_STACK_USE_H

#include "sched/scheduler.h"

#define STACK_USE_NAME 64

/* The tasks of one type. */
struct stack_use {
    struct stack_use *next;
    const skua_process_type *type;
    char name[STACK_USE_NAME];
    size_t size;    /* of a stack */
    size_t deepest; /* bytes */
    uint64_t tasks;
};

void stack_use_init(struct scheduler *sched);
void stack_use_deinit(struct scheduler *sched);

/* A task of this type has returned, and its stack is about to be released. */
void stack_use_note(struct scheduler *sched, const skua_process_type *type, struct stack *stack);

/* The deepest of the tasks of this type that have returned, and of this one, which waits; may be
 * null. */
NODISCARD size_t stack_use_deepest(struct scheduler *sched, const skua_process_type *type,
                                   const struct stack *stack);

/* Calls function(arg) for each type, and forgets them all. */
void stack_use_tell(struct scheduler *sched, void (*function)(void *arg, const struct stack_use *),
                    void *arg);

#endif
