/* SPDX-License-Identifier: MIT */
/* Processes that have a supervisor (skua_spawn_options.supervisor).
 *
 * A child is linked to its supervisor from its start on, by a link (relations/link.h) that ends it
 * when the supervisor ends in whatever way, also an orderly one; and that tells the supervisor how
 * the child has ended. If a step of the supervisor itself starts the child, it files its half of
 * the link there and then.
 *
 * Otherwise the half travels with the news of the child, one signal that is pushed when the child
 * is published and has not been queued yet: whoever starts it has its token, so it cannot run, but
 * what the supervisor then does to it arrives. If the supervisor has closed its event list
 * meanwhile, the child is ended before its first step, as it would have been had the signal come a
 * moment earlier. So there is no moment at which a supervised process runs that no supervisor knows
 * of; and a supervisor that ends before it has taken the signal takes it then, and tells the child
 * (signal_drop).
 *
 * In the simulator the signal takes no detour (detour.h). It would stay in order with what the
 * child and the starter do to the supervisor. But the child would run before the supervisor is
 * told, which skua/supervisor.h rules out: somebody who hears of the child from the child itself,
 * and then asks the supervisor, would find that it does not know it. That supervisors may be slow
 * to take the signal is what the simulator shows by its choice of who runs next. */
#ifndef SKUA_SCHED_CHILDREN_H
#define SKUA_SCHED_CHILDREN_H

#include "sched/spawn.h"

/* The start of a child. */
struct birth {
    skua_pid supervisor;
    bool is_own;         /* the supervisor's own step starts the child */
    bool is_linked;      /* what follows is set */
    struct quota *quota; /* that others' children count against, which is held; or null */
    skua_payload news;   /* what the supervisor gets to know; of others' children only */
    uint32_t half;       /* of the child */
    uint32_t other;      /* half, of the supervisor: likewise */
    uint32_t signal;     /* likewise */
};

/* Before the child's init: whether there may be such a child, of a type that is right and has this
 * method. Keeps a copy of the input, if that is wanted. Returns 0 or an error of skua_spawn_with;
 * then there is nothing to undo. */
NODISCARD int children_conceive(struct scheduler *sched, const struct spawn_request *request,
                                const char *method, struct birth *birth);

/* After its init: gives it a supervisor, which nobody can see yet. Returns 0 or SKUA_E_NO_MEMORY,
 * which leaves things to undo, as do later errors. */
NODISCARD int children_link(struct scheduler *sched, struct worker *worker,
                            const struct spawn_request *request, struct process *process,
                            skua_pid pid);

/* It is published, and its token is here: tells the supervisor. */
void children_announce(struct scheduler *sched, struct worker *worker, struct process *process,
                       skua_pid pid, struct birth *birth);

/* Takes back what children_link has done for a child that cannot be started. */
void children_undo(struct scheduler *sched, struct worker *worker, struct process *process,
                   const struct birth *birth);

/* Drops what is left of the copy, and lets go of the quota. */
void children_forget(struct scheduler *sched, struct birth *birth);

/* A process that ends takes no more children, if it is a supervisor. */
void children_stop(struct scheduler *sched, struct process *process);

/* It leaves the tree, as a child and as a supervisor: not before its event list is closed, so who
 * does not find it there knows why. */
void children_leave(struct scheduler *sched, struct process *process);

/* News of a child have arrived at its supervisor: gives *event; or is dropped with it. */
void children_take(struct worker *worker, struct process *process, uint32_t index,
                   skua_event *event);
void children_drop(struct worker *worker, struct process *process, uint32_t index);

/* As skua_ready, skua_supervise and skua_blame. */
int children_ready(skua_context *ctx);
int children_supervise(skua_context *ctx, const skua_supervisor *specification);
int children_blame(skua_context *ctx, skua_pid cause);

/* Who is to blame for an error of a process: itself, or whom it has named. */
NODISCARD skua_pid children_blamed(struct scheduler *sched, struct process *process, skua_pid self);

#endif
