/* SPDX-License-Identifier: MIT */
/* A snapshot of a worker, taken without a lock and without stopping anybody. Its parts need not
 * belong to one instant. */
#ifndef SKUA_INSPECT_WORKER_VIEW_H
#define SKUA_INSPECT_WORKER_VIEW_H

#include "sched/scheduler.h"

struct worker_view {
    const char *doing; /* running, searching, parked, polling or resting */
    uint32_t queue;    /* processes in its deque and its next slot */
    skua_pid pid;      /* what it runs, or zero */
};

/* `worker` has a thread. */
struct worker_view worker_view_read(struct worker *worker);

/* Processes in its deque and its next slot. */
uint32_t worker_view_queue_length(struct worker *worker);

#endif
