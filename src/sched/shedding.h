/* SPDX-License-Identifier: MIT */
/* What becomes of messages that find a mailbox full, as the type of the process says. All of it is
 * where a message would be refused otherwise, so that others do not pay for it: at the limit, and
 * for an urgent message far beyond that (process/mailbox.h).
 *
 * DROP_NEW  the sender drops it.
 * DROP_OLD  the sender takes a place beyond the limit, as far as there are such, and pushes it. The
 *           oldest message is in the hands of the worker that runs the process, so it makes room:
 *           before a step it drops as many as there are too many, from the front of the backlog.
 *           Those in the event list are younger. Only so many in one turn, so that the worker is
 *           not held up; the rest of them may then reach the step after all. PROCESS_TENDED says
 *           that a type may want this.
 *           Urgent messages are never dropped for others; one that finds no place is dropped
 *           as new.
 * END       the sender turns the node of its message into the reason, EVENT_OVERFLOW, pushes that
 *           and kills the process: a kill is seen at once, however many events wait. The events of
 *           a process that ends are dropped before its close, and the reason is among them: there
 *           it becomes the exit error (exit.c). If the process gets to the reason before it is
 *           killed, that ends it, and the kill that follows changes nothing. */
#ifndef SKUA_SCHED_SHEDDING_H
#define SKUA_SCHED_SHEDDING_H

#include "sched/deliver.h"

/* What a sender that finds the mailbox full does next. */
enum {
    SHEDDING_PLACED = 0,  /* it has a place, and pushes the message */
    SHEDDING_DROPPED = 1, /* the message was dropped, and has been reported; not an error */
    SHEDDING_SENT = 2,    /* somebody else has pushed it (deliver.c) */
};

/* One of the first two, or SKUA_E_MAILBOX_FULL or SKUA_E_NO_PROCESS. If the message is not placed,
 * its node has been released; the payload is the caller's. `limit` is that of the mailbox. */
NODISCARD int shedding_find_place(struct scheduler *sched, struct worker *worker,
                                  const struct prepared_event *event, uint32_t limit);

/* Whether the receiver makes room for it, by dropping old messages: then none waits for that. */
NODISCARD bool shedding_makes_room(const struct prepared_event *event);

/* Drops old messages of the worker's process, which has PROCESS_TENDED. */
void shedding_drop_old(struct worker *worker, struct process *process);

#endif
