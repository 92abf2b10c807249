/* SPDX-License-Identifier: MIT */
/* Threads that are not workers, while they are in a call of the public interface. The effect of a
 * call can be seen before it returns: a completion arrives, the process ends, the program stops and
 * destroys the runtime. So destroy waits until such calls have returned. */
#ifndef SKUA_RUNTIME_VISIT_H
#define SKUA_RUNTIME_VISIT_H

#include "runtime/runtime.h"
#include "sched/worker.h"

/* Begins a call; returns the worker whose thread this is, or null. */
static inline struct worker *visit_begin(skua_runtime *runtime)
{
    struct worker *worker = worker_here(&runtime->sched);
    if (worker == NULL) {
        (void)fetch_add_seq_cst(&runtime->sched.visitors, 1); /* MO-visit */
    }
    return worker;
}

/* Ends it: the runtime may be gone after this. */
static inline void visit_end(skua_runtime *runtime, const struct worker *worker)
{
    if (worker == NULL) {
        (void)fetch_sub_seq_cst(&runtime->sched.visitors, 1); /* MO-visit */
    }
}

/* A call that waits for a process is a visit only while it does something: memory can be given back
 * while it sleeps (sched/chores.c), but the runtime cannot be destroyed. Called by threads that are
 * not workers, during a visit; the visit is over until visit_resume. */
static inline void visit_pause(skua_runtime *runtime)
{
    (void)fetch_add_seq_cst(&runtime->waiters, 1);        /* MO-visit: before the visit ends */
    (void)fetch_sub_seq_cst(&runtime->sched.visitors, 1); /* MO-visit */
}

static inline void visit_resume(skua_runtime *runtime)
{
    (void)fetch_add_seq_cst(&runtime->sched.visitors, 1); /* MO-visit: before the wait ends */
    (void)fetch_sub_seq_cst(&runtime->waiters, 1);        /* MO-visit */
}

/* Waits until no call is under way. */
void visit_wait(skua_runtime *runtime);

#endif
