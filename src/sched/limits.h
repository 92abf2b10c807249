/* SPDX-License-Identifier: MIT */
/* Who counts against which quota (process/quota.h), and when.
 *
 * A process that has called skua_limit grants a quota to all that it starts: they count against it.
 * What they start counts against the same one, unless they grant another, which lies within it. A
 * child that others start under a supervisor counts as if that had started it. Both quotas of a
 * process are in its wing, and it holds them until its memory is released.
 *
 *   a process   counts from before its init until its close has returned, and before anybody hears
 *               of its end: so whoever starts it again finds its place free. One that cannot have a
 *               place is never seen.
 *   bytes       count as long as the process has the block (own_memory.c).
 *   a message   counts as long as it has a place in the mailbox (process/mailbox.h). Its sender
 *               pins the quota, charges it before it pushes, and refunds what it could not push.
 *               What the owner hands to steps or drops is not refunded one by one: `consumed` of
 *               the mailbox knows how many there were, and limits_settle refunds those that came
 *               since the last time. That is before each step, when a call is answered, and at the
 *               end, before anybody hears of that.
 *
 * Nobody else pays for this: such a process has a mark in place of the limit of its mailbox, which
 * leads senders, and what it starts, to here. */
#ifndef SKUA_SCHED_LIMITS_H
#define SKUA_SCHED_LIMITS_H

#include <skua/supervisor.h>

#include "process/annex.h"
#include "process/mailbox.h"
#include "process/quota.h"
#include "sched/scheduler.h"

/* As skua_limit. */
NODISCARD int limits_set(skua_context *ctx, const skua_quota *quota);

/* As skua_process_quota. */
NODISCARD int limits_read(struct scheduler *sched, skua_pid pid, skua_quota_use *use);

/* ---- processes ---- */

/* What the process of a context grants to those that it starts, or null. */
NODISCARD struct quota *limits_granted(const skua_context *starter);

/* A new process, before its init: counts against a quota from now on. Returns 0,
 * SKUA_E_PROCESS_QUOTA or SKUA_E_NO_MEMORY. */
NODISCARD int limits_enter(struct scheduler *sched, struct worker *worker, struct process *process,
                           struct quota *quota);

/* Its close has returned, and its events are dropped: it does not count any more. */
void limits_leave(struct scheduler *sched, struct process *process);

/* Lets go of its quotas, as its memory is released. */
void limits_release(struct scheduler *sched, struct process *process);

/* ---- messages: the sender ---- */

/* The limit on the mailbox of a process. */
NODISCARD uint32_t limits_of_mailbox(const struct scheduler *sched, struct process *process);

/* One message more for a process with a mark. Gives the quota, which is pinned, or null if messages
 * to the process count against none. Returns 0, SKUA_E_MESSAGE_QUOTA or SKUA_E_NO_PROCESS. */
NODISCARD int limits_charge(struct scheduler *sched, struct process *process, uint32_t generation,
                            struct quota **quota);

/* The message was pushed, or not: in that case it does not count any more. Lets go of the quota,
 * which may be null. */
void limits_pushed(struct scheduler *sched, struct quota *quota, bool is_pushed);

/* ---- messages: the owner ---- */

/* Refunds what the process has consumed since the last time. */
void limits_settle(struct scheduler *sched, struct process *process);

static inline void limits_settle_if_marked(struct scheduler *sched, struct process *process)
{
    if (mailbox_is_marked(process)) {
        limits_settle(sched, process);
    }
}

/* A place in the mailbox of its own process, if there is one. */
NODISCARD bool limits_reserve_own(struct scheduler *sched, struct process *process);
void limits_unreserve_own(struct scheduler *sched, struct process *process);

/* A message that was consumed is back in the mailbox: false if its quota is full. */
NODISCARD bool limits_return(struct scheduler *sched, struct process *process);

#endif
