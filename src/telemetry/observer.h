/* SPDX-License-Identifier: MIT */
/* Callbacks that follow what the processes do, as they do it: for the simulator's trace. */
#ifndef SKUA_TELEMETRY_OBSERVER_H
#define SKUA_TELEMETRY_OBSERVER_H

#include <skua/process.h>

struct worker;

/* Called by the worker that runs the process; `worker->context` says which one that is. */
struct observer {
    /* A process is about to be started, by that worker or (null) by another thread. False if there
     * is no memory for that. */
    bool (*process_starts)(struct observer *observer, const struct worker *worker, skua_pid pid);
    void (*step_begins)(struct observer *observer, const struct worker *worker,
                        const skua_event *events, size_t count);
    /* What the step asked for is in `worker->out`. */
    void (*step_ends)(struct observer *observer, const struct worker *worker);
    /* The process is about to end, and gives up its names. */
    void (*names_go)(struct observer *observer, const struct worker *worker);
    /* It has become a member of a group, or is one no longer. */
    void (*group_changes)(struct observer *observer, const struct worker *worker, const char *group,
                          bool has_joined);
    /* The process has changed to another type or, with an error, has not. */
    void (*process_becomes)(struct observer *observer, const struct worker *worker,
                            const skua_process_type *from, const skua_process_type *to, int error);
    void (*process_ends)(struct observer *observer, const skua_exit *exit);
};

#endif
