/* SPDX-License-Identifier: MIT */
/* Whether a worker is stuck in the program's code, or only slow because the machine is busy.
 *
 * A thread that has waited for a CPU for a second looks like one that is stuck, but goes on when it
 * gets one. So a worker counts as stuck only if it has been in the same step, close or callback
 *  - while its thread used 100 ms of CPU time: that code computes for long, or for ever; or
 *  - in four samples in a row, 100 ms, with its thread asleep: that code waits for something.
 * Where the kernel does not tell whether a thread sleeps, one that uses no CPU time is taken to. */
#ifndef SKUA_SCHED_STUCK_H
#define SKUA_SCHED_STUCK_H

#include "sched/scheduler.h"

/* The time between two samples. */
#define STUCK_SAMPLE_NS UINT64_C(25000000)

/* Takes the first sample of all workers, which the next ones are compared with. The caller holds
 * sched->control. */
void stuck_begin_locked(struct scheduler *sched);

/* Takes another; whether a worker is stuck. */
NODISCARD bool stuck_sample_locked(struct scheduler *sched);

#endif
