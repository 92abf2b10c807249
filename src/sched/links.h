/* SPDX-License-Identifier: MIT */
/* Processes that end together (relations/link.h). */
#ifndef SKUA_SCHED_LINKS_H
#define SKUA_SCHED_LINKS_H

#include "sched/scheduler.h"
#include "sched/signal.h"

/* As skua_link and skua_unlink, in a step. */
NODISCARD int links_make(skua_context *ctx, skua_pid pid, uint32_t flags, uint64_t tag,
                         skua_link_id *link);
int links_unmake(skua_context *ctx, skua_link_id link);

/* Links a process that is being started to that of `ctx`, whose step starts it. Returns 0 or
 * SKUA_E_NO_MEMORY. */
NODISCARD int links_make_at_spawn(skua_context *ctx, struct process *process, skua_pid pid,
                                  uint32_t flags, uint64_t tag, skua_link_id *link);

/* A signal about a link has arrived: the half of a new one, or the end of one. */
void links_take_new(struct worker *worker, struct process *process, uint32_t index);
void links_take_unlink(struct worker *worker, struct process *process, uint32_t index);
NODISCARD enum signal_outcome links_take_end(struct worker *worker, struct process *process,
                                             uint32_t index, skua_event *event,
                                             struct signal_end *end);
NODISCARD bool links_would_end(struct scheduler *sched, const struct event_node *node);

/* Takes back all links of a process that could not be started. */
void links_unmake_all(struct scheduler *sched, struct worker *worker, struct process *process);

/* Whether the step of a half's peer gets to know if its party fails. A peer that ends with it does
 * not. */
NODISCARD bool links_is_heard(struct scheduler *sched, const struct event_node *node);

/* Tells the peer of a half how its party has ended. Gives the node away. */
void links_tell(struct scheduler *sched, struct worker *worker, skua_pid pid,
                const struct ending *ending, uint32_t index);

#endif
