/* SPDX-License-Identifier: MIT */
/* Threads that wait for a process to exit. A bit in the process's word says that there are some, so
 * that an ordinary exit takes no lock. */
#ifndef SKUA_SCHED_EXIT_WAIT_H
#define SKUA_SCHED_EXIT_WAIT_H

#include "sched/scheduler.h"

/* Adds a waiter whose pid is set. The caller then sets STATE_WATCHED on the process. */
void exit_wait_add(struct scheduler *sched, struct exit_waiter *waiter);

/* Waits until the waiter's process has ended or the deadline passes, and removes the waiter.
 * Returns 0 or SKUA_E_TIMEOUT. */
NODISCARD int exit_wait_until(struct scheduler *sched, struct exit_waiter *waiter,
                              uint64_t deadline_ns);

/* Removes a waiter whose process turned out not to exist. */
void exit_wait_remove(struct scheduler *sched, struct exit_waiter *waiter);

/* Tells all waiters of a process how it ended. A result that owns memory goes to the first waiter
 * that asked for it. */
void exit_wait_report(struct scheduler *sched, skua_exit *exit);

#endif
