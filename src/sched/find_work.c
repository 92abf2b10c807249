/* SPDX-License-Identifier: MIT */
/* The order of a worker's sources: its next slot, its deque (newest first), the global queue.
 *
 * That order alone is unfair: two processes that wake each other would hold the next slot for ever,
 * and a deque that is never empty would starve the global queue. So
 *  - after NEXT_STREAK_MAX picks from the next slot in a row, the oldest process of the deque, or
 *    else of the global queue, is picked;
 *  - processes that cannot keep up with their events return to the next slot over and over, so the
 *    deque may never be empty; while that happens, deque and global queue alternate;
 *  - every FAIRNESS_PERIOD picks the global queue comes first, and halfway through the period the
 *    oldest process of the deque.
 *
 * The bound (INV-16): a Ready process with n others ahead of it in its queue leaves that queue
 * after at most (n + 1) * FAIRNESS_PERIOD picks of any one worker that looks at the queue: the
 * owner of its deque, or every worker for the global queue. A pick runs at most STEP_TURNS_MAX
 * steps. It leaves the queue to run; or, while a worker was without work of its own, to that
 * worker's deque; or, out of a deque that overflows, to the end of the global queue. In the next
 * slot it waits for the end of the current pick and no longer: then it runs, or goes to the deque.
 * The bound for timers and descriptors is the same FAIRNESS_PERIOD, or what the monitor allows if
 * that is shorter (watch/monitor_thread.h). */
#include "sched/poll.h"
#include "sched/timers.h"
#include "sched/worker.h"

#define FAIRNESS_PERIOD 61
#define NEXT_STREAK_MAX 3
#define GLOBAL_BATCH    16
#define POLL_PERIOD_NS  UINT64_C(50000)
#define OVERDUE_NS      UINT64_C(1000000)

static struct process *empty_next(struct worker *worker)
{
    if (load_relaxed(&worker->next) == NULL) { /* only this thread fills it */
        return NULL;
    }
    return exchange_acq_rel(&worker->next, NULL); /* MO-next: a thief may be taking it */
}

/* Another process runs first. The one in the next slot has waited for one step already and must not
 * wait for a second where nobody can see it: it goes to the deque, and a parked worker is woken. */
void find_release_next(struct worker *worker)
{
    struct process *process = empty_next(worker);
    if (process != NULL) {
        submit_to_deque(worker, process);
    }
}

static struct process *take_newest(struct worker *worker)
{
    struct process *process = deque_pop_owner(&worker->deque);
    if (process != NULL) {
        counter_add_owner(&worker->stats.local_pops, 1);
    }
    return process;
}

static struct process *take_oldest(struct worker *worker)
{
    void *process;
    if (deque_length_owner(&worker->deque) == 0 ||
        deque_steal_any(&worker->deque, &process, 1) != 1) {
        return NULL; /* empty, or a thief was faster, which is just as good */
    }
    counter_add_owner(&worker->stats.local_pops, 1);
    return process;
}

/* Takes one, and up to `extra` more into the deque. */
static struct process *take_global(struct worker *worker, uint32_t extra)
{
    struct scheduler *sched = worker->sched;
    if (!global_queue_has_items(&sched->global)) {
        return NULL;
    }
    struct queue_link *links[1 + GLOBAL_BATCH];
    const uint32_t count =
        global_queue_pop_any(&sched->global, links, 1 + extra, sched->worker_count);
    if (count == 0) {
        return NULL;
    }
    counter_add_owner(&worker->stats.global_pops, count);
    /* The oldest runs now; the rest are pushed newest first, so that the oldest pops first. */
    for (uint32_t i = count - 1; i > 0; i--) {
        submit_to_deque(worker, process_of_link(links[i]));
    }
    return process_of_link(links[0]);
}

struct process *find_global(struct worker *worker)
{
    return take_global(worker, GLOBAL_BATCH);
}

/* Every FAIRNESS_PERIOD picks a worker that is never idle checks its own timers; those of one other
 * worker, in turn, in case that one is stuck or resting; and, if no idle worker has the poller's
 * role, the descriptors, but not too often because that is a system call. */
static NOINLINE void check_sources(struct worker *worker)
{
    struct scheduler *sched = worker->sched;
    const uint32_t other = worker->rounds++ % scheduler_threads(sched);
    const uint64_t timer = deadlines_next(&sched->deadlines, worker->index);
    const uint64_t other_timer = deadlines_next(&sched->deadlines, other);
    const bool waits = load_relaxed(&sched->poll.waits) > 0; /* hint: the next look sees it */
    if (LIKELY(timer == UINT64_MAX && other_timer == UINT64_MAX && !waits)) {
        return;
    }
    const uint64_t now = time_now(sched->time);
    timers_fire(sched, worker, worker->index, now);
    if (other_timer <= now && now - other_timer >= OVERDUE_NS) {
        timers_fire(sched, worker, other, now);
    }
    const uint64_t last = load_relaxed(&sched->poll.last); /* hint */
    if (waits && now > last && now - last >= POLL_PERIOD_NS) {
        poll_check(sched, worker, now);
    }
}

/* The oldest of the deque, or else of the global queue. After a process with a backlog has stayed
 * with this worker, every second time the other way round: such processes keep the deque from ever
 * being empty. */
static struct process *take_longest_waiting(struct worker *worker)
{
    const bool global_first = worker->is_behind && !worker->global_was_first;
    worker->is_behind = false;
    worker->global_was_first = global_first;
    struct process *process = global_first ? take_global(worker, 0) : take_oldest(worker);
    if (process != NULL) {
        return process;
    }
    return global_first ? take_oldest(worker) : take_global(worker, 0);
}

/* The pick that fairness calls for, if one is due. It takes only what it runs: moving more
 * processes into a deque that is never empty would gain them nothing. */
static struct process *take_fair(struct worker *worker)
{
    const uint32_t phase = worker->phase;
    worker->phase = phase + 1 < FAIRNESS_PERIOD ? phase + 1 : 0;
    if (UNLIKELY(phase == 0)) {
        check_sources(worker);
        return take_global(worker, 0);
    }
    if (UNLIKELY(phase == FAIRNESS_PERIOD / 2)) {
        return take_oldest(worker);
    }
    if (UNLIKELY(worker->next_streak >= NEXT_STREAK_MAX)) {
        worker->next_streak = 0;
        return take_longest_waiting(worker);
    }
    return NULL;
}

struct process *find_work(struct worker *worker)
{
    struct process *process = take_fair(worker);
    if (process != NULL) {
        find_release_next(worker);
        return process;
    }
    process = empty_next(worker);
    if (process != NULL) {
        counter_add_owner(&worker->stats.next_pops, 1);
        worker->next_streak++;
        return process;
    }
    worker->next_streak = 0;
    process = take_newest(worker);
    return process != NULL ? process : find_global(worker);
}
