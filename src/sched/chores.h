/* SPDX-License-Identifier: MIT */
/* Idle-priority work: done by a worker only when it would otherwise sleep, and given up as soon as
 * there is something better to do. A chore has a time before which it is not wanted; an idle worker
 * sleeps until then at most, so a chore that is never due wakes nobody. */
#ifndef SKUA_SCHED_CHORES_H
#define SKUA_SCHED_CHORES_H

#include "sched/scheduler.h"

void chores_init(struct scheduler *sched);

/* Wants a chore at `when`, unless it is wanted already. `worker` is the caller's or null. */
void chores_want(struct scheduler *sched, struct worker *worker, enum chore chore, uint64_t when);

/* When the next one is due, or UINT64_MAX; also while a worker is at them: it looks again when it
 * is done, and others need not wait for it. */
uint64_t chores_next(struct scheduler *sched);

/* For the monitor: looks for waits that can never end, if no worker has had the time. */
void chores_check_if_overdue(struct scheduler *sched, uint64_t now);

/* Called by a worker that has found no work: wants the trimming of memory if much of it is free. */
void chores_consider_trim(struct worker *worker);

/* Whether the caller must do what is due now; false if nothing is or another worker is at it. */
NODISCARD bool chores_are_due(struct scheduler *sched);

/* Does it. The caller must not count as searching, so that new work wakes others meanwhile. */
void chores_do(struct worker *worker);

#endif
