/* SPDX-License-Identifier: MIT */
/* Signals: event nodes that one process pushes to another and that no step gets as they are.
 * Requests of calls, monitors, links, and what ends them; and questions of the inspector. What a
 * process does to another arrives in the order in which it was done, signals, messages and
 * completions alike; signals are not subject to the mailbox limit. */
#ifndef SKUA_SCHED_SIGNAL_H
#define SKUA_SCHED_SIGNAL_H

#include "sched/scheduler.h"

/* `worker` is the calling thread's worker or null, throughout. */

/* Pushes a node to a process. False if that is gone: then the node is still the caller's. The first
 * function may take a detour, and then returns true. */
NODISCARD bool signal_push(struct scheduler *sched, struct worker *worker, skua_pid from,
                           skua_pid to, uint32_t node);
NODISCARD bool signal_push_now(struct scheduler *sched, struct worker *worker, skua_pid to,
                               uint32_t node);

/* As deliver_completion, for what `from` does to another process. */
int signal_complete(struct scheduler *sched, struct worker *worker, skua_pid from,
                    skua_completion completion, int error, skua_payload *result);

/* What a signal has become that the worker took out of the backlog of its process. */
enum signal_outcome {
    SIGNAL_FILED, /* nothing that the step gets */
    SIGNAL_LONG,  /* the same, and it took a while */
    SIGNAL_EVENT, /* an event */
    SIGNAL_ENDS,  /* the end of the process */
};
struct signal_end {
    int error;
    skua_pid cause;
};

/* Takes a signal, whose node is in no list any more. Gives *event or *end. */
NODISCARD enum signal_outcome signal_take(struct worker *worker, struct process *process,
                                          uint32_t index, skua_event *event,
                                          struct signal_end *end);

/* Whether that would end the process or change its type: not before it has handled what came
 * before. */
NODISCARD bool signal_waits_for_step(struct scheduler *sched, const struct event_node *node);

/* Drops a signal to a process that is ending. Returns whether somebody must be told: then the node
 * stays, for farewell_tell. */
NODISCARD bool signal_drop(struct worker *worker, struct process *process, uint32_t index);

/* The annex of a process, or its wing, made if there is none; null without memory. */
NODISCARD struct annex *signal_annex(struct scheduler *sched, struct worker *worker,
                                     struct process *process);
NODISCARD struct wing *signal_wing(struct scheduler *sched, struct worker *worker,
                                   struct process *process);

#endif
