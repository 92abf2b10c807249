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

/* Waits until no call is under way. */
void visit_wait(skua_runtime *runtime);

#endif
