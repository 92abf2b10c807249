/* SPDX-License-Identifier: MIT */
/* Sending one message to all members of a group.
 *
 * The members are visited with a cursor (relations/group_members.h), a slice at a time: the lock of
 * the group is held while the PIDs of a slice are copied, not while they are sent to. So neither
 * memory nor the time without other work depends on the size of the group. A small group is done
 * with at once. For a larger one the process that publishes pushes EVENT_PUBLISH to itself: the
 * next slice is sent in a later turn, among its other events, and others run in between, those that
 * it has woken first: their records and events are still in the cache then.
 *
 * What a member costs is mostly cache misses, as the records of many do not fit into a cache: so
 * the next records are fetched while one is written to, and so is the annex of one that was woken,
 * which it needs to rest. Those that were woken are queued together (submit_later). All of that is
 * so in simulations, too, but for messages that those deliver late.
 *
 * What a process publishes while it is at it waits in a list, with its cursor open: those who are
 * members at that moment will get it. One such event at most is on its way; it is for the first of
 * the list, so each member gets all of them in order.
 *
 * If the process ends, the event is dropped, and as that happens before others hear of the end
 * (exit.c), dropping it means to send the rest. */
#ifndef SKUA_SCHED_PUBLISHING_H
#define SKUA_SCHED_PUBLISHING_H

#include "process/event.h"
#include "sched/scheduler.h"

void publishing_attach(struct scheduler *sched);

/* As skua_yield_publish. Takes payload, always. */
NODISCARD int publishing_yield(skua_context *ctx, uint64_t tag, const char *name,
                               skua_payload *payload);

/* The worker's process takes EVENT_PUBLISH out of its backlog: sends a slice. Or, if it is ending,
 * a small one; if there is more, the event is back in the backlog. */
void publishing_take(struct worker *worker, struct process *process, uint32_t index);
void publishing_drop(struct worker *worker, struct process *process, uint32_t index);

/* What a yield asks for. */
const char *publishing_name(const struct yield *yield);
const skua_payload *publishing_payload(const struct yield *yield);

#endif
