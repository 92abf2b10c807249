/* SPDX-License-Identifier: MIT */
/* The loop of a worker, and its phases: one file each. */
#ifndef SKUA_SCHED_WORKER_H
#define SKUA_SCHED_WORKER_H

#include "sched/scheduler.h"

/* worker.c: the thread of a worker; `arg` is the worker. */
void *worker_main(void *arg);

/* Starts that thread. Returns 0 or SKUA_E_THREAD. */
NODISCARD int worker_start(struct worker *worker);

/* The worker that this thread is, if it is one of this scheduler's; otherwise null. */
struct worker *worker_here(const struct scheduler *sched);

/* The same for any scheduler. */
struct worker *worker_of_thread(void);

/* Makes the calling thread a worker: the simulator's, during a turn, and then what it was. */
void worker_set_current(struct worker *worker);

/* Whether this thread is one that the scheduler's stop waits for: a worker, or one that has said so
 * (null: is none any more); what it said before is returned. */
bool worker_is_in_callback(const struct scheduler *sched);
const struct scheduler *worker_enter_callback(const struct scheduler *sched);

/* find_work.c: the next process from this worker's own sources and the global queue, or null. */
NODISCARD struct process *find_work(struct worker *worker);

/* One from the global queue, and up to GLOBAL_BATCH more into the worker's deque. */
NODISCARD struct process *find_global(struct worker *worker);

/* Moves the process in the next slot, if there is one, to where a sleeping worker is woken for it.
 */
void find_release_next(struct worker *worker);

/* steal.c: up to half of the deque of another worker; the first of it is returned. On the last pass
 * of a search, also the process in the next slot of a worker that has been busy with one step
 * since the search began. */
NODISCARD struct process *steal(struct worker *worker, bool last_pass);

/* Time of work that makes up for moving one process to another worker. */
#define STEAL_WORTH_NS 400

/* Notes where every other worker stands as a search begins. */
void steal_begin(struct worker *worker);

/* idle.c: searches, and sleeps if there is nothing; null when the worker must exit. */
NODISCARD struct process *idle_find(struct worker *worker);

/* The worker is about to run processes, after it was idle. */
void idle_end(struct worker *worker);

/* Wakes a sleeping worker for work that has been published, if one sleeps and none searches (P2-P5
 * of concurrent/parking.h). `worker` is the caller or null. */
void idle_wake_one(struct scheduler *sched, struct worker *worker);

/* Wakes every sleeping worker. */
void idle_wake_all(struct scheduler *sched);

/* Whether a queue or a deque has something in it. */
bool idle_work_is_visible(struct scheduler *sched);

/* submit.c: places a process that has become Ready. */

/* From a thread that is no worker: to the end of the global queue. */
void submit_outside(struct scheduler *sched, struct process *process);

/* From a step or handler on a worker: it runs next, and what it displaces goes to the deque. From
 * any other thread (null): submit_outside. */
void submit_ready(struct scheduler *sched, struct worker *worker, struct process *process);

/* A process that is new: it runs next if nothing else does. Otherwise it goes to the deque itself
 * and displaces nothing, which would cost an atomic operation for each of a hundred children. */
void submit_spawned(struct scheduler *sched, struct worker *worker, struct process *process);

/* A process that has had its turns and is not done. One that cannot keep up with its events stays
 * with this worker, and gets as large a part of it as two processes that talk (find_work.c): behind
 * all that waits it would have one turn for each of all its senders' turns, and its mailbox would
 * only grow. One that goes on by its own will goes behind all that waits. */
void submit_unfinished(struct worker *worker, struct process *process);

/* Adds to the worker's deque and publishes; spills half of a full deque to the global queue. */
void submit_to_deque(struct worker *worker, struct process *process);

/* All that the worker has, for the others. */
void submit_all_to_global(struct worker *worker);

/* A process that has more to do goes on at once for this many steps, without any queue in between.
 */
#define STEP_TURNS_MAX 4

/* step.c: runs a process whose token the worker holds, for up to worker->turns_max steps. */
void step_run(struct worker *worker, struct process *process);

/* settle.c: acts on the output of a step. */
enum settlement {
    SETTLED, /* the process rests or has ended */
    AGAIN,   /* it is still Ready, here, and has something to do */
};
NODISCARD enum settlement settle_output(struct worker *worker, struct process *process, int error);

/* Ready -> Idle or Blocked, as the process last asked for. */
NODISCARD enum settlement settle_rest(struct process *process);

/* exit.c: ends a process that it runs and frees its record. Takes result (may be null). */
void exit_process(struct worker *worker, struct process *process, int error, skua_payload *result);

#endif
