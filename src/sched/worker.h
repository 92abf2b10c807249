/* SPDX-License-Identifier: MIT */
/* A worker's loop and its phases, one file each. */
#ifndef SKUA_SCHED_WORKER_H
#define SKUA_SCHED_WORKER_H

#include "sched/scheduler.h"

/* worker.c: the thread of a worker; `arg` is the worker. */
void *worker_main(void *arg);

/* Starts that thread. Returns 0 or SKUA_E_THREAD. */
NODISCARD int worker_start(struct worker *worker);

/* This thread's worker if it belongs to this scheduler; otherwise null. */
struct worker *worker_here(const struct scheduler *sched);

/* This thread's worker of any scheduler, or null. */
struct worker *worker_of_thread(void);

/* Makes the calling thread a worker, or what it was before: for the simulator, during a turn. */
void worker_set_current(struct worker *worker);

/* Whether this thread runs a callback that the scheduler's stop waits for, so that stopping from it
 * would deadlock: a worker does, and so does any thread between entering a callback of `sched` and
 * entering that of another or none (null). Entering returns the scheduler it was in before. */
bool worker_is_in_callback(const struct scheduler *sched);
const struct scheduler *worker_enter_callback(const struct scheduler *sched);

/* find_work.c: the next process from this worker's own sources and the shared queues, or null. */
NODISCARD struct process *find_work(struct worker *worker);

/* One from the global queue, and up to GLOBAL_BATCH more into the worker's deque; or else one from
 * the queue behind. */
NODISCARD struct process *find_shared(struct worker *worker);

/* Moves the process in the next slot, if any, to the deque, and wakes a parked worker for it. */
void find_release_next(struct worker *worker);

/* steal.c: takes up to half of another worker's deque and returns the first. On the last pass of a
 * search also the process in the next slot of a worker that has been in one step since the search
 * began. */
NODISCARD struct process *steal(struct worker *worker, bool last_pass);

/* How long a stolen process must run to be worth moving to another worker. */
#define STEAL_WORTH_NS 400

/* Whether another worker has a process in its next slot; takes one if that worker has been in one
 * step since the search began. */
bool steal_is_tempting(struct worker *worker);
NODISCARD struct process *steal_from_next_slots(struct worker *worker);

/* Records how many steps every worker has made as a search begins. */
void steal_begin(struct worker *worker);

/* idle.c: searches, and parks if there is nothing; null when the worker must exit. */
NODISCARD struct process *idle_find(struct worker *worker);

/* The worker was idle and is about to run processes. */
void idle_end(struct worker *worker);

/* Wakes a parked worker for work that was just published, if one is parked and none searches (P2-P5
 * of concurrent/parking.h). `worker` is the caller's or null. */
void idle_wake_one(struct scheduler *sched, struct worker *worker);

/* Wakes every parked worker. */
void idle_wake_all(struct scheduler *sched);

/* Whether any queue or deque has work. */
bool idle_work_is_visible(struct scheduler *sched);

/* submit.c: queues a process that has become Ready. */

/* From an outside thread: to the end of the global queue. */
void submit_outside(struct scheduler *sched, struct process *process);

/* From a step or handler on a worker: it runs next, and what it displaces goes to the deque. From
 * any other thread (null): submit_outside. */
void submit_ready(struct scheduler *sched, struct worker *worker, struct process *process);

/* Notes a process that has become Ready, to be queued with others by submit_woken, or by
 * submit_unfinished of the one that runs. Until then nobody can reach it, so the worker must not
 * call the program meanwhile. There is room for WOKEN_MAX. */
static inline void submit_later(struct worker *worker, struct process *process)
{
    worker->woken.processes[worker->woken.count++] = process;
}

/* Queues those that were noted, with one publication. */
void submit_woken(struct worker *worker);

/* A new process runs next if the next slot is empty; otherwise it goes to the deque. It displaces
 * nothing: that would cost an atomic operation for each of a hundred children. */
void submit_spawned(struct scheduler *sched, struct worker *worker, struct process *process);

/* A process that used up its slice and has more to do. If it has a backlog, it stays with this
 * worker and gets as large a share of it as two conversing processes do (find_work.c): at the back
 * of a queue it would get one pick for each pick of all its senders, and its mailbox would only
 * grow. A process that merely continues goes behind all that waits. */
void submit_unfinished(struct worker *worker, struct process *process);

/* A process whose end takes a while, or whose first step has to wait: behind all that waits. */
void submit_behind_all(struct worker *worker, struct process *process);

/* Pushes to the worker's deque and publishes; spills half of a full deque to the global queue. */
void submit_to_deque(struct worker *worker, struct process *process);

/* Moves everything the worker has queued to the global queue. */
void submit_all_to_global(struct worker *worker);

/* Steps in one pick, at most: more than fit into a slice (checkpoint.h), unless they do nothing. */
#define STEP_TURNS_MAX 1000

/* step.c: runs a process whose token the worker holds, for a slice at most. */
void step_run(struct worker *worker, struct process *process);

/* settle.c: acts on what a step asked for. */
enum settlement {
    SETTLED, /* the process rests or has ended */
    AGAIN,   /* it is still Ready, here, and has more to do */
};
NODISCARD enum settlement settle_output(struct worker *worker, struct process *process, int error);

/* Ready -> Blocked if it has open calls, otherwise Idle. */
NODISCARD enum settlement settle_rest(struct worker *worker, struct process *process);

/* exit.c: ends the process that the worker runs and frees its record, soon if there is much to do.
 * `cause` is who failed first. Takes result (may be null). */
void exit_process(struct worker *worker, struct process *process, int error, skua_pid cause,
                  skua_payload *result);

/* Goes on with the end of a process, whose token the worker holds. */
void exit_go_on(struct worker *worker, struct process *process);

#endif
