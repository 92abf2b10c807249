/* SPDX-License-Identifier: MIT */
/* Starting and stopping the workers. */
#ifndef SKUA_SCHED_SHUTDOWN_H
#define SKUA_SCHED_SHUTDOWN_H

#include "sched/scheduler.h"

/* As skua_runtime_start and skua_runtime_stop, on threads that are not workers. */
NODISCARD int shutdown_start(struct scheduler *sched);
NODISCARD int shutdown_stop(struct scheduler *sched, uint64_t timeout_ns);

/* The parts of start and stop that involve no threads; the simulator uses them too. The caller
 * holds sched->control. */

/* 0, or the reason why the runtime cannot be started. */
NODISCARD int shutdown_refuse_start(struct scheduler *sched);

/* Admits processes from now on. */
void shutdown_open_locked(struct scheduler *sched);

/* Stops admitting processes and asks every one to cancel. */
void shutdown_ask_locked(struct scheduler *sched);

/* Reports the processes that are left and ends them. Returns whether there are any. */
bool shutdown_end_survivors_locked(struct scheduler *sched);

/* An outside thread holds the gate while it publishes a process. False, with nothing held, if the
 * runtime is not running. */
NODISCARD bool shutdown_gate_enter(struct scheduler *sched);
void shutdown_gate_leave(struct scheduler *sched);

static inline enum sched_phase shutdown_phase(struct scheduler *sched)
{
    return (enum sched_phase)load_seq_cst(&sched->phase); /* MO-stop */
}

/* Whether nothing runs: never started, or all threads joined. */
bool shutdown_is_complete(struct scheduler *sched);

/* Called by a worker that has nothing to do, before it searches and before it sleeps. */
void shutdown_worker_is_quiet(struct scheduler *sched);

#endif
