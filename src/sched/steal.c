/* SPDX-License-Identifier: MIT */
/* Taking work from other workers. */
#include "base/random.h"
#include "sched/note.h"
#include "sched/worker.h"

#define STEAL_BATCH_MAX 32
#define STEAL_TRIES     4

void steal_begin(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        worker->victim_steps[i] = load_relaxed(&sched->workers[i].stats.steps); /* statistic */
    }
}

static void record_steal(struct worker *worker, const struct worker *victim, uint32_t count)
{
    note_trace(worker->sched, worker, TRACE_STEAL, (skua_pid){0}, count, victim->index);
}

/* The thief is about to run them, and what they need is in the cache of the victim: it asks for all
 * records at once, then for the events. */
static void prefetch(const struct object_pool *events, void *const *items, int count)
{
    for (int i = 0; i < count; i++) {
        __builtin_prefetch(items[i], 1);
    }
    for (int i = 0; i < count; i++) {
        const struct process *process = items[i];
        if (process->backlog != OBJECT_NONE) {
            __builtin_prefetch(event_at(events, process->backlog), 1);
        }
    }
}

/* Takes up to half of one deque: returns the first, pushes the rest to the thief's own deque. */
static struct process *steal_from_deque(struct worker *worker, struct worker *victim)
{
    void *items[STEAL_BATCH_MAX];
    int count = DEQUE_LOST;
    for (uint32_t try = 0; try < STEAL_TRIES && count == DEQUE_LOST; try++) {
        counter_add_owner(&worker->stats.steal_attempts, 1);
        count = deque_steal_any(&victim->deque, items, STEAL_BATCH_MAX);
    }
    if (count <= 0) {
        return NULL;
    }
    counter_add_owner(&worker->stats.steal_successes, 1);
    counter_add_owner(&worker->stats.stolen, (uint64_t)count);
    worker->last_steal.count = (uint32_t)count;
    record_steal(worker, victim, (uint32_t)count);
    prefetch(&worker->sched->events, items, count);
    for (int i = count - 1; i > 0; i--) {
        submit_to_deque(worker, items[i]); /* newest first: the oldest is popped first */
    }
    return items[0];
}

/* A worker normally picks its next slot within one step, and stealing it would tear two conversing
 * processes apart; Tokio measured that at a third of its message rate. So a thief takes it only
 * from a worker that has been in the same step for the whole search. */
static struct process *steal_next(struct worker *worker, struct worker *victim)
{
    if (load_relaxed(&victim->next) == NULL || /* re-checked by the exchange */
        load_relaxed(&victim->stats.steps) != worker->victim_steps[victim->index]) {
        return NULL;
    }
    counter_add_owner(&worker->stats.steal_attempts, 1);
    struct process *process = exchange_seq_cst(&victim->next, NULL); /* MO-next, MO-stop */
    if (process != NULL) {
        counter_add_owner(&worker->stats.steal_successes, 1);
        counter_add_owner(&worker->stats.stolen, 1);
        record_steal(worker, victim, 1);
    }
    return process;
}

bool steal_is_tempting(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    const uint32_t count = scheduler_threads(sched);
    for (uint32_t i = 0; i < count; i++) {
        if (i != worker->index && load_relaxed(&sched->workers[i].next) != NULL) { /* hint */
            return true;
        }
    }
    return false;
}

struct process *steal_from_next_slots(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    const uint32_t count = scheduler_threads(sched);
    struct process *process = NULL;
    for (uint32_t i = 0; i < count && process == NULL; i++) {
        process = i != worker->index ? steal_next(worker, &sched->workers[i]) : NULL;
    }
    return process;
}

struct process *steal(struct worker *worker, bool last_pass)
{
    struct scheduler *sched = worker->sched;
    const uint32_t count = scheduler_threads(sched);
    const uint32_t start = random_below(&worker->random, count);
    for (uint32_t i = 0; i < count; i++) {
        struct worker *victim = &sched->workers[(start + i) % count];
        if (victim == worker) {
            continue;
        }
        struct process *process = steal_from_deque(worker, victim);
        if (process == NULL && last_pass) {
            process = steal_next(worker, victim);
        }
        if (process != NULL) {
            return process;
        }
    }
    return NULL;
}
