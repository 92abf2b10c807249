/* SPDX-License-Identifier: MIT */
/* A look at a worker from outside: a snapshot that takes no lock and stops nobody. What was read
 * need not belong to one instant. */
#ifndef SKUA_INSPECTOR_LOOK_H
#define SKUA_INSPECTOR_LOOK_H

#include "sched/scheduler.h"

struct worker_look {
    const char *doing; /* running, searching, parked, polling or resting */
    uint32_t queue;    /* processes in its deque and its next slot */
    skua_pid pid;      /* what it runs, or zero */
};

/* `worker` has a thread. */
struct worker_look look_at_worker(struct worker *worker);

/* Processes in its deque and its next slot. */
uint32_t look_queue_length(struct worker *worker);

#endif
