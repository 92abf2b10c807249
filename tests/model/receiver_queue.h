/* SPDX-License-Identifier: MIT */
/* A receiver, in models that stand in for submit.c and want to know of it only that it is queued
 * once; and a way to go through what was sent to it. These are definitions, for one source of a
 * model. */
#ifndef SKUA_MODEL_RECEIVER_QUEUE_H
#define SKUA_MODEL_RECEIVER_QUEUE_H

#include "receiver.h"

/* Of a model with an array messages[SENDERS][MESSAGES_MAX]. */
#define FOR_MESSAGES(message)                                                                      \
    for (struct message *message = messages[0]; message < messages[0] + SENDERS * MESSAGES_MAX;    \
         message++)

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *ready)
{
    (void)sched;
    (void)worker;
    EXPLORE_CHECK(ready == process, "only the one process is woken");
    enqueue();
}

void submit_unfinished(struct worker *worker, struct process *ready)
{
    submit_ready(worker->sched, worker, ready);
}

void submit_behind_all(struct worker *worker, struct process *ending)
{
    submit_ready(worker->sched, worker, ending);
}

#endif
