/* SPDX-License-Identifier: MIT */
/* Delivering to a process: messages, cancel events, completions, requests to end. */
#ifndef SKUA_SCHED_DELIVER_H
#define SKUA_SCHED_DELIVER_H

#include <skua/command.h>

#include "dispatch/call.h"
#include "sched/scheduler.h"

/* `worker` is the calling thread's worker or null, throughout. All return 0 or the error that the
 * public function documents. */

/* Takes payload, always, and marks it as taken. `from` is the sending process or zero. */
int deliver_message(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                    skua_payload *payload);

/* Delivers a message if that wakes its receiver, which the caller must then submit: it is returned.
 * Null: nothing has been done. Takes a reference to the payload if it is delivered; that has been
 * checked. The worker runs `from`. */
NODISCARD struct process *deliver_wake(struct worker *worker, skua_pid from, skua_pid to,
                                       const skua_payload *payload);

/* The same for an urgent one. */
int deliver_urgent(struct scheduler *sched, struct worker *worker, skua_pid from, skua_pid to,
                   skua_payload *payload);

int deliver_cancel(struct scheduler *sched, struct worker *worker, skua_pid to, int reason);

/* These in two halves. A prepared event has its node and, if it is a message, its place in the
 * mailbox; otherwise, on error or SHEDDING_DROPPED (sched/shedding.h), it has neither and the
 * payload stays the caller's. Delivering it fails if the process is gone: place and node are
 * released, a message is reported as a dead letter, and the payload, of which the caller kept a
 * copy, is the caller's again. */
struct prepared_event {
    struct process *process;
    uint32_t generation;
    uint32_t index; /* of the node */
    struct event_node *node;
    bool is_message;
    /* Known of those that are delivered in two halves. */
    bool is_urgent;      /* a message */
    struct quota *quota; /* that it was charged to, and which is pinned (limits.h); or null */
};
NODISCARD int deliver_prepare(struct scheduler *sched, struct worker *worker, skua_pid from,
                              skua_pid to, const skua_payload *payload,
                              struct prepared_event *prepared);
NODISCARD int deliver_prepare_urgent(struct scheduler *sched, struct worker *worker, skua_pid from,
                                     skua_pid to, const skua_payload *payload,
                                     struct prepared_event *prepared);
NODISCARD int deliver_prepare_cancel(struct scheduler *sched, struct worker *worker, skua_pid to,
                                     int reason, struct prepared_event *prepared);
NODISCARD bool deliver_prepared(struct scheduler *sched, struct worker *worker,
                                const struct prepared_event *prepared);

/* A message in its node, also in two halves: reserves a place, if the mailbox has room or makes it;
 * returns 0, SKUA_E_MAILBOX_FULL, SKUA_E_MESSAGE_QUOTA or SKUA_E_NO_PROCESS. Pushes it, and returns
 * the place if the process is gone; or only returns it. The node stays the caller's on failure. */
NODISCARD int deliver_reserve(struct scheduler *sched, struct prepared_event *event);
NODISCARD bool deliver_reserved(struct scheduler *sched, struct worker *worker,
                                const struct prepared_event *event);
void deliver_unreserve(struct scheduler *sched, const struct prepared_event *event);

/* Takes result, always. */
int deliver_completion(struct scheduler *sched, struct worker *worker, skua_completion completion,
                       int error, skua_payload *result);

/* Pushes the event that a claimed call or a ticker has become to its process. Returns the process
 * if it has become Ready, which the caller must then submit; otherwise null. */
NODISCARD struct process *deliver_call(struct scheduler *sched, struct worker *worker,
                                       skua_pid owner, uint32_t call);

/* Whether a call is still open: a snapshot. */
static inline bool deliver_is_open(struct scheduler *sched, skua_completion completion)
{
    struct event_node *node = event_at(&sched->events, call_index(completion));
    return load_acquire(&node->guard) == call_guard(completion); /* MO-guard */
}

/* Sets STATE_KILL or STATE_CANCEL, or (0) only wakes the process. */
int deliver_request(struct scheduler *sched, struct worker *worker, skua_pid to, uint32_t request);

/* Event nodes, from the worker's cache or the one that outside threads share. */
NODISCARD bool deliver_acquire_node_outside(struct scheduler *sched, uint32_t *index);
NODISCARD static inline bool deliver_acquire_node(struct scheduler *sched, struct worker *worker,
                                                  uint32_t *index)
{
    return LIKELY(worker != NULL)
               ? event_acquire_owner(&sched->events, &worker->caches.events, index)
               : deliver_acquire_node_outside(sched, index);
}
void deliver_release_node_outside(struct scheduler *sched, uint32_t index);
static inline void deliver_release_node(struct scheduler *sched, struct worker *worker,
                                        uint32_t index)
{
    if (LIKELY(worker != NULL)) {
        event_release_owner(&sched->events, &worker->caches.events, index);
    } else {
        deliver_release_node_outside(sched, index);
    }
}

#endif
