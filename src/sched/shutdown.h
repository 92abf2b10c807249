/* SPDX-License-Identifier: MIT */
/* Starting and stopping the workers. */
#ifndef SKUA_SCHED_SHUTDOWN_H
#define SKUA_SCHED_SHUTDOWN_H

#include "sched/scheduler.h"

/* As skua_runtime_start and skua_runtime_stop, on threads that are not workers. */
NODISCARD int shutdown_start(struct scheduler *sched);
NODISCARD int shutdown_stop(struct scheduler *sched, uint64_t timeout_ns);

/* The parts of starting and stopping that have nothing to do with threads, for the simulator, too.
 * Under sched->control. */

/* 0, or why the runtime cannot be started (any more). */
NODISCARD int shutdown_refuse_start(struct scheduler *sched);

/* From now on processes are admitted. */
void shutdown_open(struct scheduler *sched);

/* Admits nothing more and asks every process to cancel. */
void shutdown_ask(struct scheduler *sched);

/* Names those that are left and tells them to end. */
void shutdown_end_survivors(struct scheduler *sched);

/* A thread that is no worker holds the gate while it makes a process visible. False, and nothing
 * is held, if the runtime is not running. */
NODISCARD bool shutdown_gate_enter(struct scheduler *sched);
void shutdown_gate_leave(struct scheduler *sched);

static inline enum sched_phase shutdown_phase(struct scheduler *sched)
{
    return (enum sched_phase)load_seq_cst(&sched->phase); /* MO-stop */
}

/* Whether nothing runs: never started, or all threads joined. */
bool shutdown_is_complete(struct scheduler *sched);

/* Called by a worker that has found nothing to do and is about to sleep. */
void shutdown_worker_is_quiet(struct scheduler *sched);

#endif
