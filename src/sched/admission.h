/* SPDX-License-Identifier: MIT */
/* skua_yield_send: a message whose sender waits until it is admitted to the receiver's mailbox.
 *
 * If there is room, it is a message like any other, and the yield completes at once. If not, it is
 * pushed to the receiver nevertheless, as a signal (EVENT_ADMISSION), which needs no place in the
 * mailbox: it waits in its place among the receiver's events. So messages of one sender arrive in
 * order, whichever way they come, and no list of those who wait is needed. There is one such node
 * for each open yield, and for each whose sender has given up since.
 *
 * When the receiver's worker gets to it, all that was before it has been handed over, so there is
 * room. It completes the sender's open call, and whether it is the one that claims the call's guard
 * decides all (dispatch/call.h): if so, the message goes to the step, and the sender gets 0;
 * otherwise the sender has been told that its time is up, has taken the yield back, or has ended,
 * and the message is dropped. A receiver that ends tells those that wait, as it tells callers
 * (farewell.c).
 *
 * A task may put the message aside, if it waits for something else. It then is admitted if the
 * mailbox has room: as a message with a place there. Otherwise it goes on waiting, put aside as it
 * is. */
#ifndef SKUA_SCHED_ADMISSION_H
#define SKUA_SCHED_ADMISSION_H

#include "sched/scheduler.h"

void admission_attach(struct scheduler *sched);

/* Admits a message to the worker's process that has waited: its node is in no list any more. Gives
 * *event; false if nobody waits for it any more, or the yield has just ended otherwise. */
NODISCARD bool admission_take(struct worker *worker, uint32_t index, skua_event *event);

/* The same if a task does not want it yet: it is admitted if there is room. Returns whether the
 * node is to be put aside; otherwise it is released. */
NODISCARD bool admission_put_aside(struct worker *worker, struct process *process, uint32_t index);

/* Whether the sender still waits: a snapshot. */
NODISCARD bool admission_is_awaited(const struct object_pool *events,
                                    const struct event_node *node);

/* The process `pid` has ended, and the message is dropped: tells its sender. Releases the node. */
void admission_tell(struct scheduler *sched, struct worker *worker, skua_pid pid, uint32_t index);

#endif
