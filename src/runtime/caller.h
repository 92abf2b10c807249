/* SPDX-License-Identifier: MIT */
/* Threads that are not workers, while they are in a call of the public interface. The effect of a
 * call can be seen before it returns: a completion arrives, the process ends, the program stops and
 * destroys the runtime. So destroy waits until such calls have returned. */
#ifndef SKUA_RUNTIME_CALLER_H
#define SKUA_RUNTIME_CALLER_H

#include "runtime/runtime.h"
#include "sched/worker.h"

/* Begins a call; returns the worker whose thread this is, or null. */
static inline struct worker *caller_enter(skua_runtime *runtime)
{
    struct worker *worker = worker_here(&runtime->sched);
    if (worker == NULL) {
        (void)fetch_add_seq_cst(&runtime->sched.callers, 1); /* MO-caller */
    }
    return worker;
}

/* Ends it: the runtime may be gone after this. */
static inline void caller_leave(skua_runtime *runtime, const struct worker *worker)
{
    if (worker == NULL) {
        (void)fetch_sub_seq_cst(&runtime->sched.callers, 1); /* MO-caller */
    }
}

/* A call that waits for a process is a visit only while it does something: memory can be given back
 * while it sleeps (sched/chores.c), but the runtime cannot be destroyed. Called by threads that are
 * not workers, during a visit; the visit is over until caller_resume. */
static inline void caller_pause(skua_runtime *runtime)
{
    (void)fetch_add_seq_cst(&runtime->waiters, 1);       /* MO-caller: before the visit ends */
    (void)fetch_sub_seq_cst(&runtime->sched.callers, 1); /* MO-caller */
}

static inline void caller_resume(skua_runtime *runtime)
{
    (void)fetch_add_seq_cst(&runtime->sched.callers, 1); /* MO-caller: before the wait ends */
    (void)fetch_sub_seq_cst(&runtime->waiters, 1);       /* MO-caller */
}

/* Waits until no call is under way. */
void caller_wait_for_all(skua_runtime *runtime);

#endif
