/* SPDX-License-Identifier: MIT */
/* Whether a crash is the end of a task's stack. */
#ifndef SKUA_WATCH_OVERFLOW_H
#define SKUA_WATCH_OVERFLOW_H

#include <signal.h>

#include "sched/scheduler.h"

/* The size of the stack that the task of this worker has used up, by which the thread got this
 * SIGSEGV or SIGBUS; 0 if it has not. Async-signal-safe. */
NODISCARD size_t overflow_find(const struct worker *worker, const siginfo_t *info,
                               const void *context);

/* Where the thread was when it got a signal; null: unknown. */
NODISCARD const void *overflow_place(const void *context);

#endif
