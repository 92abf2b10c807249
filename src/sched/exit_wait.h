/* SPDX-License-Identifier: MIT */
/* Threads that wait for a process to end. The word of the process knows that there are some, so
 * that ordinary exits take no lock. */
#ifndef SKUA_SCHED_EXIT_WAIT_H
#define SKUA_SCHED_EXIT_WAIT_H

#include "sched/scheduler.h"

/* Adds a waiter with its pid set; the process must then be told by STATE_WATCHED. */
void exit_wait_add(struct scheduler *sched, struct exit_waiter *waiter);

/* Waits until the waiter's process has ended or the deadline passes, and removes the waiter.
 * Returns 0 or SKUA_E_TIMEOUT. */
NODISCARD int exit_wait_until(struct scheduler *sched, struct exit_waiter *waiter,
                              uint64_t deadline_ns);

/* Removes a waiter whose process turned out not to exist. */
void exit_wait_remove(struct scheduler *sched, struct exit_waiter *waiter);

/* Tells all waiters of a process how it ended. The first that wants a result which owns memory
 * takes it. */
void exit_wait_report(struct scheduler *sched, skua_exit *exit);

#endif
