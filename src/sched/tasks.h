/* SPDX-License-Identifier: MIT */
/* Tasks: processes that are functions on stacks of their own (skua/task.h).
 *
 * To the scheduler a task is a process like any other. Its step gets one event: one that its wait
 * wants. The step hands it over, enters the stack, and returns when the task waits again or has
 * returned; so yields act when it waits. What its wait does not want stays in its node, in the list
 * of events put aside. They count against the mailbox limit as before. One that the task wants
 * later goes back to the front of the backlog, where it is the next; so nothing is looked at twice
 * only because the task waits for something else in between. What is not wanted when its function
 * returns is for the next call of that. Urgent messages come first among those put aside, and are
 * looked at before what is recalled of the others.
 *
 * A wait that is a yield has a tag of its own, from SKUA_TASK_TAGS on; so has the timeout of a
 * receive. The completion of one that is over, because the wait has ended otherwise, is dropped.
 *
 * A task that waits when its process ends is entered once more, before close: all its waits now
 * end with SKUA_E_TERMINATED, until its function returns. */
#ifndef SKUA_SCHED_TASKS_H
#define SKUA_SCHED_TASKS_H

#include <skua/task.h>

#include "sched/delivery.h"
#include "task/coroutine.h"

/* A function to call when a task has returned. */
struct task_defer {
    struct task_defer *next;
    void (*function)(void *arg);
    void *arg;
};

/* What makes a task more than one that waits where it stands. */
#define TASK_RETURNED  UINT32_C(1) /* its function has */
#define TASK_CANCELLED UINT32_C(2)
#define TASK_CLOSING   UINT32_C(4) /* its process has ended */
#define TASK_CANARY    UINT32_C(8) /* its stack has no guard */

/* An event that a task has received. */
struct task_event {
    skua_event *event; /* null: none */
    uint32_t node;     /* that it is in; OBJECT_NONE: it is in `copy` */
    skua_event copy;
};

/* The record of a task, at the beginning of its stack. */
struct task {
    struct stack stack;         /* first */
    skua_context context;       /* what the program has */
    struct task_event received; /* until the next receive */
    struct task_event served;   /* what its function was called with, until that returns */
    skua_payload payload;       /* of the completion that it waited for; empty otherwise */
    uint64_t tag;               /* of its last wait that was a yield */
    uint64_t timer;             /* tag of the timeout of a receive; 0: none is open */
    uint32_t flags;             /* TASK_... */
    uint32_t recalled;          /* the event at the front of the backlog that it is known to want */
    uint32_t swept;             /* the last event put aside that was looked at again (inbox.c) */
    uint32_t recalled_after;    /* the one that it came after, of those put aside */
    uint32_t urgent_aside;      /* the last urgent one of those, if that is known */
    int cancelled;              /* why; 0: it is not */
    uint32_t moves;             /* attempts to have another worker run it (migrate.h) */
    bool polls;                 /* the receive has no time */
    bool has_polled;            /* and has seen the events that had come before it began */
    bool is_shielded;
    bool is_stopping; /* the shutdown's cancel has come, and it waits for something else */
    int outcome;      /* what the function has returned */
    uint32_t wanted;  /* the type of the payload */
    skua_match_fn *match;
    void *match_arg;
    struct task_defer *defers; /* the last one first */
};

_Static_assert(sizeof(struct task) <= STACK_RECORD, "it fits");

/* Its step, which takes what is delivered. Returns 0, or the error that ends it. */
NODISCARD int tasks_step(struct worker *worker, struct process *process,
                         const struct delivery *delivery);

/* A task's process is about to end: what was put aside goes back to the backlog. */
void tasks_end(struct worker *worker, struct process *process);

/* And is ending: its function returns. */
void tasks_unwind(struct worker *worker, struct process *process);

/* Where the task of a process waits, as "file:line"; null: it does not, or nobody knows. */
static inline const char *tasks_where(const struct process *process)
{
    const struct task *task = process->state.of_task.task;
    return task != NULL ? task->context.wait.where : NULL;
}

/* The task whose context this is; null, with *error, if it has none, or may not wait. */
NODISCARD struct task *tasks_enter(skua_context *ctx, int *error);

/* The task waits, until a step has found what it wants; returns the result. */
NODISCARD int tasks_wait(struct task *task, uint32_t kind);

/* The tag of its next wait that is a yield. */
uint64_t tasks_next_tag(struct task *task);

#endif
