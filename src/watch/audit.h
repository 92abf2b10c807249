/* SPDX-License-Identifier: MIT */
/* Audits: debug builds (SKUA_AUDIT) check all structures of a scheduler at moments when nothing
 * moves, and abort the program if they contradict each other. The checks:
 *
 *  INV-3   each Ready process has exactly one token: in a next slot, a deque, a shared queue or
 *          the simulator's list; nothing else is there, and no process runs without a worker
 *  INV-10  when all workers sleep, no queue, deque or next slot holds anything, no process is
 *          Ready, and one of them waits for timers and descriptors, no longer than until the first
 *          deadline
 *  INV-20  each constructed slot is live, retired or free, and each event node is free, in one
 *          mailbox or backlog, an open call or a relation of a live process, or on the simulator's
 *          agenda; none is in two places. A timer in a wheel is an open call. The counters agree.
 *  INV-46  a process that rests although it continues is in a line (sched/held_back.h)
 *
 * When:
 *  - stopping: when all workers are joined, and again before the scheduler is torn down. Exact;
 *  - simulating: between two turns, at rest, and when the simulation has stopped. Exact;
 *  - on threads: when a worker is about to sleep and all others do, and when all have slept for so
 *    long that the monitor is about to sleep, too. Workers may wake at any moment and their caches
 *    are private, so these audits read only atomics: INV-10, and as much of INV-3 as those show.
 *    Nodes and free lists (INV-20) are left to the other two.
 *
 * An audit allocates from the C library, not from the runtime's allocator, whose calls the program
 * may count. In other builds the functions below are empty. */
#ifndef SKUA_WATCH_AUDIT_H
#define SKUA_WATCH_AUDIT_H

#include "sched/scheduler.h"

/* An audit that is under way. */
struct audit;
struct finding;

/* What an audit must know about the moment. */
struct audit_moment {
    bool is_at_rest;    /* nothing may be Ready or due */
    bool is_at_end;     /* nothing may remain */
    uint32_t own_calls; /* calls of the public interface that are open on the calling thread */
    /* If not null: reports the tokens and nodes that are not in the scheduler's structures, through
     * the two functions below. */
    void (*show)(struct audit *audit, void *arg);
    void *arg;
};

/* How long a finding must last before it is believed, while other threads could still act. */
#define AUDIT_PATIENCE_MS 1000

#ifdef SKUA_AUDIT

void audit_show_token(struct audit *audit, const struct process *process);
void audit_show_node(struct audit *audit, uint32_t index);
void audit_show_signal(struct audit *audit, uint32_t index); /* and what it brings along */

/* Checks everything. No worker may be running, no step be under way on this thread, and no lock of
 * the scheduler be held but `control`. While other threads are inside a call, it reports
 * nothing. */
void audit_now(struct scheduler *sched, const struct audit_moment *moment);

/* The same, but only so often that audits take little time compared to the work between them: for
 * moments that recur. */
void audit_now_and_then(struct scheduler *sched, const struct audit_moment *moment);

/* If all workers sleep, checks the atomics. For any thread that is not about to act on what it
 * could find: a worker that has announced that it sleeps, and has taken the poller's role if that
 * was vacant; or the monitor. The second runs only as often as audit_now_and_then. */
void audit_asleep(struct scheduler *sched, uint32_t patience_ms);
void audit_asleep_now_and_then(struct scheduler *sched, uint32_t patience_ms);

/* INV-46, for a live process whose word has this tag. */
void audit_held_back(struct scheduler *sched, struct process *process, uint32_t tag,
                     struct finding *finding);

#else

static inline void audit_show_token(struct audit *audit, const struct process *process)
{
    (void)audit;
    (void)process;
}

static inline void audit_show_node(struct audit *audit, uint32_t index)
{
    (void)audit;
    (void)index;
}

static inline void audit_show_signal(struct audit *audit, uint32_t index)
{
    (void)audit;
    (void)index;
}

static inline void audit_now(struct scheduler *sched, const struct audit_moment *moment)
{
    (void)sched;
    (void)moment;
}

static inline void audit_now_and_then(struct scheduler *sched, const struct audit_moment *moment)
{
    (void)sched;
    (void)moment;
}

static inline void audit_asleep(struct scheduler *sched, uint32_t patience_ms)
{
    (void)sched;
    (void)patience_ms;
}

static inline void audit_asleep_now_and_then(struct scheduler *sched, uint32_t patience_ms)
{
    (void)sched;
    (void)patience_ms;
}

#endif

#endif
