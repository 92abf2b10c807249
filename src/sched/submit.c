/* SPDX-License-Identifier: MIT */
/* Where a process goes when it becomes Ready. */
#include "sched/worker.h"

static void push_global(struct scheduler *sched, struct process *process)
{
    global_queue_push_any(&sched->global, &process->link.queue, &process->link.queue);
}

/* Moves the older half of a full deque to the global queue, in order. */
static void spill(struct worker *worker)
{
    void *items[DEQUE_CAPACITY / 2];
    const int count = deque_steal_any(&worker->deque, items, DEQUE_CAPACITY / 2);
    if (count <= 0) {
        return; /* thieves made room */
    }
    for (int i = 1; i < count; i++) {
        struct process *process = items[i];
        struct process *older = items[i - 1];
        process->link.queue.next = &older->link.queue;
    }
    struct process *oldest = items[0];
    struct process *newest = items[count - 1];
    global_queue_push_any(&worker->sched->global, &newest->link.queue, &oldest->link.queue);
    counter_add_owner(&worker->stats.spills, 1);
}

void submit_all_to_global(struct worker *worker)
{
    find_release_next(worker);
    while (deque_length_owner(&worker->deque) > 0) {
        spill(worker);
    }
    idle_wake_one(worker->sched, worker);
}

void submit_to_deque(struct worker *worker, struct process *process)
{
    while (UNLIKELY(!deque_push_owner(&worker->deque, process))) {
        spill(worker);
    }
    idle_wake_one(worker->sched, worker);
}

/* Wakes nobody: this worker picks it as soon as its step ends. */
static bool put_in_empty_next(struct worker *worker, struct process *process)
{
    if (load_relaxed(&worker->next) != NULL) { /* only this thread fills it */
        return false;
    }
    store_release(&worker->next, process); /* MO-next */
    return true;
}

void submit_outside(struct scheduler *sched, struct process *process)
{
    push_global(sched, process);
    idle_wake_one(sched, NULL);
}

void submit_spawned(struct scheduler *sched, struct worker *worker, struct process *process)
{
    if (UNLIKELY(worker == NULL)) {
        submit_outside(sched, process);
    } else if (worker->blocks || !put_in_empty_next(worker, process)) {
        submit_to_deque(worker, process);
    }
}

void submit_ready(struct scheduler *sched, struct worker *worker, struct process *process)
{
    if (UNLIKELY(worker == NULL)) {
        submit_outside(sched, process);
        return;
    }
    if (UNLIKELY(worker->blocks)) {
        submit_to_deque(worker, process);
        return;
    }
    if (put_in_empty_next(worker, process)) {
        return;
    }
    struct process *displaced = exchange_acq_rel(&worker->next, process); /* MO-next */
    if (displaced != NULL) {
        submit_to_deque(worker, displaced);
    }
}

/* A process that used up its pick and asked to continue goes to the back of the global queue. */
static void submit_behind(struct worker *worker, struct process *process)
{
    struct scheduler *sched = worker->sched;
    const bool alone = deque_length_owner(&worker->deque) == 0 &&
                       !global_queue_has_items(&sched->global) &&
                       load_relaxed(&worker->next) == NULL; /* only this thread fills it */
    if (alone) {
        submit_ready(sched, worker, process);
        return;
    }
    push_global(sched, process);
    idle_wake_one(sched, worker);
}

void submit_unfinished(struct worker *worker, struct process *process)
{
    if (process->backlog != OBJECT_NONE) {
        worker->is_behind = true;
        submit_ready(worker->sched, worker, process);
    } else {
        submit_behind(worker, process);
    }
}
