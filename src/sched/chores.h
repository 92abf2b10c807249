/* SPDX-License-Identifier: MIT */
/* Idle-priority work. A worker does a chore only when it would otherwise sleep, and drops it as
 * soon as real work shows up. Each chore has a due time; an idle worker sleeps no longer than that,
 * so a chore that is never due wakes nobody. */
#ifndef SKUA_SCHED_CHORES_H
#define SKUA_SCHED_CHORES_H

#include "sched/scheduler.h"

void chores_init(struct scheduler *sched);

/* Schedules a chore for `when`, unless it is scheduled already. `worker` is the caller's or
 * null. */
void chores_schedule(struct scheduler *sched, struct worker *worker, enum chore chore,
                     uint64_t when);

/* The same, and if it is scheduled for later, it comes then. */
void chores_hasten(struct scheduler *sched, struct worker *worker, enum chore chore, uint64_t when);

/* When the next chore is due, or UINT64_MAX. Also UINT64_MAX while some worker is doing chores:
 * that worker checks again when it is done, so nobody else has to wake up for them. */
uint64_t chores_next(struct scheduler *sched);

/* For the monitor: checks for waits that can never end, if no worker has found the time. */
void chores_check_if_overdue(struct scheduler *sched, uint64_t now);

/* Called by a worker that found no work: schedules a trim if much memory is free. */
void chores_consider_trim(struct worker *worker);

/* Claims the chores that are due; the caller must then call chores_do. False if none is due or
 * another worker has them. */
NODISCARD bool chores_are_due(struct scheduler *sched);

/* Does them. The caller must not count as searching, so that new work wakes others meanwhile. */
void chores_do(struct worker *worker);

#endif
