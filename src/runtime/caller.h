/* SPDX-License-Identifier: MIT */
/* Outside threads inside a call of the public interface. The effect of a call can be seen before
 * the call returns: a completion arrives, the process exits, the program stops and destroys the
 * runtime. So destroy waits until such callers have left. */
#ifndef SKUA_RUNTIME_CALLER_H
#define SKUA_RUNTIME_CALLER_H

#include "runtime/runtime.h"
#include "sched/worker.h"

/* Begins a call; returns the calling thread's worker or null. */
static inline struct worker *caller_enter(skua_runtime *runtime)
{
    struct worker *worker = worker_here(&runtime->sched);
    if (worker == NULL) {
        (void)fetch_add_seq_cst(&runtime->sched.callers, 1); /* MO-caller */
    }
    return worker;
}

/* Ends it. The runtime may be gone after this. */
static inline void caller_leave(skua_runtime *runtime, const struct worker *worker)
{
    if (worker == NULL) {
        (void)fetch_sub_seq_cst(&runtime->sched.callers, 1); /* MO-caller */
    }
}

/* A caller that waits for a process counts as a waiter while it sleeps: memory can be trimmed then
 * (sched/chores.c), but the runtime cannot be destroyed. For outside threads, between caller_enter
 * and caller_leave. */
static inline void caller_pause(skua_runtime *runtime)
{
    (void)fetch_add_seq_cst(&runtime->waiters, 1);       /* MO-caller: counted here first */
    (void)fetch_sub_seq_cst(&runtime->sched.callers, 1); /* MO-caller */
}

static inline void caller_resume(skua_runtime *runtime)
{
    (void)fetch_add_seq_cst(&runtime->sched.callers, 1); /* MO-caller: counted here first */
    (void)fetch_sub_seq_cst(&runtime->waiters, 1);       /* MO-caller */
}

/* A caller that only reads, such as statistics, counts as a waiter, too: it looks at records and
 * counters that are valid whatever happens to them, so memory can be trimmed meanwhile. Returns the
 * calling thread's worker or null, for caller_look_away. */
static inline const struct worker *caller_look(skua_runtime *runtime)
{
    const struct worker *worker = worker_here(&runtime->sched);
    if (worker == NULL) {
        (void)fetch_add_seq_cst(&runtime->waiters, 1); /* MO-caller */
    }
    return worker;
}

static inline void caller_look_away(skua_runtime *runtime, const struct worker *worker)
{
    if (worker == NULL) {
        (void)fetch_sub_seq_cst(&runtime->waiters, 1); /* MO-caller */
    }
}

/* Waits until no caller is left. */
void caller_wait_for_all(skua_runtime *runtime);

#endif
