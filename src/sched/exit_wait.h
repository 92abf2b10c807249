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

/* Removes a waiter whose process turned out not to exist. False if it was told of the end in that
 * moment: then it stays, and exit_wait_until returns soon. */
NODISCARD bool exit_wait_remove(struct scheduler *sched, struct exit_waiter *waiter);

/* The end of a process in two halves: tells those who wait for it how it ended, and may take the
 * result for one of them; lets them return. */
void exit_wait_tell(struct scheduler *sched, skua_exit *exit);
void exit_wait_release(struct scheduler *sched, skua_pid pid);

/* What one of several gets of the result of a process: what owns memory goes to the first of them,
 * and leaves the result empty. */
skua_payload exit_wait_share(skua_payload *result);

#endif
