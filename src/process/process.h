/* SPDX-License-Identifier: MIT */
/* The record of a process: one cache line, and one for small states.
 *
 *  field                   written by                              read by
 *  word                    any thread, through state.h only        any thread
 *  reserved                senders (process/mailbox.h)             senders, info
 *  consumed                whoever holds the token                 senders, info
 *  mailbox_limit, type     the spawner, then whoever runs it       any thread
 *  queue, backlog          whoever holds the token                 the same
 *  slot                    the table, before any use               any thread
 *  state, calls            the spawner, then whoever runs it       the same
 *  progress                the spawner, then whoever runs it       info
 *  born                    the spawner                             info
 *  run                     the spawner, then the monitor           info
 *
 * The token exists while the process is Ready (state.h). The operations that make and end it, and
 * those of the queues that it goes through, hand all the other fields from one holder to the next.
 *
 * Records are type-stable (object_pool.h): a thread with a stale PID may read `word` and the
 * counters of a later process, and the generation in `word` tells it that it came too late. */
#ifndef SKUA_PROCESS_PROCESS_H
#define SKUA_PROCESS_PROCESS_H

#include <skua/process.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "concurrent/global_queue.h"
#include "concurrent/object_pool.h"

#define PROCESS_INLINE_STATE 64

/* What a task has of that: the rest holds where its stack is (sched/tasks.h). */
#define PROCESS_TASK_STATE 48

/* `progress`: {steps:44 | defers:1 | tended:1 | supervised:1 | sockets:1 | method:8 | flags:8}. The
 * method is its number in the type's list. */
#define PROCESS_CANCELLED  UINT64_C(1)   /* the shutdown has asked it to cancel */
#define PROCESS_WATCHED    UINT64_C(2)   /* some thread waits for its exit */
#define PROCESS_CONTINUES  UINT64_C(4)   /* its next step needs no event */
#define PROCESS_ENDS       UINT64_C(8)   /* it is ending, and a note in its backlog says how far */
#define PROCESS_CANCEL_DUE UINT64_C(16)  /* the event for that comes after the backlog */
#define PROCESS_RUNS       UINT64_C(32)  /* a worker runs a step of it */
#define PROCESS_ANNEX      UINT64_C(64)  /* it has an annex (process/annex.h) */
#define PROCESS_HEARD_OF   UINT64_C(128) /* others, or the log, know of its end (sched/exit.c) */

#define PROCESS_METHOD_SHIFT 8
#define PROCESS_SOCKETS      (UINT64_C(1) << 16) /* it has some (net/sockets.h) */
#define PROCESS_SUPERVISED   (UINT64_C(1) << 17) /* it has a supervisor (sched/children.h) */
#define PROCESS_TENDED                                                                             \
    (UINT64_C(1) << 18)                        /* its mailbox is tended before each step: old
                                                  * messages are dropped (sched/shedding.h), or
                                                  * counted against a quota (sched/limits.h) */
#define PROCESS_DEFERS     (UINT64_C(1) << 19) /* it has deferred an event (sched/defer.h) */
#define PROCESS_STEP_SHIFT 20
#define PROCESS_STEP_ONE   (UINT64_C(1) << PROCESS_STEP_SHIFT)

struct process {
    CACHE_ALIGNED atomic_u64 word; /* see state.h */
    atomic_u32 reserved;           /* messages ever admitted to this slot; see mailbox.h */
    atomic_u32 consumed;           /* messages ever delivered or dropped */
    union {
        struct queue_link queue; /* while Ready and in a shared queue */
        struct pool_link free;   /* while Free */
    } link;
    _Atomic(const skua_process_type *) type;
    atomic_u32 born; /* telemetry/account.h */
    atomic_u32 run;
    uint32_t slot;
    uint32_t backlog;         /* events taken from the word and not yet delivered, oldest first */
    uint32_t calls;           /* open calls, in no order; or its annex (process/annex.h) */
    atomic_u32 mailbox_limit; /* or a mark; see mailbox.h */
    atomic_u64 progress;
    CACHE_ALIGNED union {
        unsigned char inline_state[PROCESS_INLINE_STATE];
        void *external; /* a larger state, allocated separately */
        struct {
            unsigned char state[PROCESS_TASK_STATE];
            uint32_t aside; /* events that its waits did not want, oldest first */
            uint32_t aside_last;
            struct task *task; /* null: it has no stack now */
        } of_task;
    } state;
};

_Static_assert(sizeof(struct process) == 2 * (size_t)CACHE_LINE, "one line, and one for the state");

#define PROCESS_LAYOUT                                                                             \
    ((struct object_layout){sizeof(struct process), offsetof(struct process, link.free)})

static inline struct process *process_of_link(struct queue_link *link)
{
    return CONTAINER_OF(link, struct process, link.queue);
}

/* For whoever holds the token, or is setting the process up. */
static inline const skua_process_type *process_type(struct process *process)
{
    return load_relaxed(&process->type); /* the holder's own, or came with the token */
}

/* For everybody else: the type may change meanwhile (sched/retype.h). Null only in a record that no
 * process has used yet. */
static inline const skua_process_type *process_type_any(struct process *process)
{
    return load_acquire(&process->type); /* MO-become */
}

static inline bool process_is_task(const skua_process_type *type)
{
    return type->step == NULL;
}

/* What `progress` says of a type. */
static inline uint64_t process_type_flags(const skua_process_type *type)
{
    return type->overflow == SKUA_OVERFLOW_DROP_OLD ? PROCESS_TENDED : 0;
}

/* Whether the state of a process of this type is in its record. */
static inline bool process_state_is_inline(const skua_process_type *type)
{
    return LIKELY(type->state_size <= PROCESS_TASK_STATE) ||
           (type->state_size <= PROCESS_INLINE_STATE && !process_is_task(type));
}

/* The state of a process of this type; null if it has none. */
static inline void *process_state(struct process *process, const skua_process_type *type)
{
    if (LIKELY(type->state_size - 1 < PROCESS_TASK_STATE)) {
        return process->state.inline_state;
    }
    if (type->state_size == 0) {
        return NULL;
    }
    return process_state_is_inline(type) ? process->state.inline_state : process->state.external;
}

static inline uint64_t process_progress(struct process *process)
{
    return load_relaxed(&process->progress); /* statistic; one writer */
}

static inline uint64_t process_steps(struct process *process)
{
    return process_progress(process) >> PROCESS_STEP_SHIFT;
}

/* The number of its method in the type's list. */
static inline uint32_t process_method(struct process *process)
{
    return (uint32_t)(process_progress(process) >> PROCESS_METHOD_SHIFT) % SKUA_METHODS_MAX;
}

static inline bool process_ends_when_cancelled(struct process *process)
{
    return process_type(process)->cancel == SKUA_CANCEL_END;
}

/* Whether its next step, if it makes one, is the first. */
static inline bool process_is_new(uint64_t progress)
{
    return progress < PROCESS_STEP_ONE;
}

static inline void process_set_progress_owner(struct process *process, uint64_t progress)
{
    store_relaxed(&process->progress, progress); /* statistic; one writer */
}

#endif
