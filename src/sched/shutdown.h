/* SPDX-License-Identifier: MIT */
/* Starting and stopping the workers. */
#ifndef SKUA_SCHED_SHUTDOWN_H
#define SKUA_SCHED_SHUTDOWN_H

#include "sched/scheduler.h"

/* As skua_runtime_start and skua_runtime_stop, on threads that are not workers. */
NODISCARD int shutdown_start(struct scheduler *sched);
NODISCARD int shutdown_stop(struct scheduler *sched, uint64_t timeout_ns);

/* Whether nothing runs: never started, or all threads joined. */
bool shutdown_is_complete(struct scheduler *sched);

/* Called by a worker that has found nothing to do and is about to sleep. */
void shutdown_worker_is_quiet(struct scheduler *sched);

/* Called by a worker as its last act. */
void shutdown_worker_exits(struct scheduler *sched);

#endif
