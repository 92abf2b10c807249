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

/* Links a process that is being started to its supervisor: its half is filed, and has an annex to
 * be in. In the first function the supervisor is that of `ctx`, whose step starts it: returns 0 or
 * SKUA_E_NO_MEMORY. In the second it is another process, to which *other must be sent. */
NODISCARD int links_make_own_child(skua_context *ctx, struct process *process, skua_pid pid,
                                   uint64_t tag);
NODISCARD bool links_make_child(struct scheduler *sched, struct worker *worker,
                                struct process *process, skua_pid pid, skua_pid supervisor,
                                uint32_t *half, uint32_t *other);
/* Takes that back: the half that was filed, and the other one if it cannot be sent. */
void links_unmake_child(struct scheduler *sched, struct worker *worker, struct process *process,
                        uint32_t half);
void links_drop_half(struct scheduler *sched, struct worker *worker, uint32_t other);

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
