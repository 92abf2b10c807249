/* SPDX-License-Identifier: MIT */
#ifndef SKUA_SCHED_DELIVERY_H
#define SKUA_SCHED_DELIVERY_H

#include "sched/scheduler.h"

/* The events of one step: copies in the worker's batch or, for a single event, the event inside its
 * node, which is released after the step. */
struct delivery {
    skua_event *events;
    uint32_t count;
    uint32_t node;
    bool continues;      /* of a task: it has said so before, and gets something else first */
    int cancelled;       /* with no events: why the process ends now; 0: it does not */
    skua_pid cause;      /* and who failed first */
    struct trace *trace; /* null: nobody traces */
};

#endif
